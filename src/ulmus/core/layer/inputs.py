"""Inputs of the hidden layer: standardised columns, normal scores and one-hot indicators.

Normal scores of the ranks remove skewness and long tails; one-hot indicators represent columns of
few distinct values. The input map determines the relevance of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from ulmus.core.arrays.backend import Array, like, namespace, to_numpy
from ulmus.core.data.scaling import FeatureScale
from ulmus.core.data.source import Block

EXPANSIONS = ("normal_scores", "one_hot")
# Distance of the knots of a curve of normal scores, in scores. A column with at most ALL_KNOTS
# distinct values has a knot at each.
KNOT_STEP, ALL_KNOTS = 0.25, 32


@dataclass(frozen=True)
class NormalScores:
    """Normal scores of one column: a smooth increasing curve, constant outside its knots.

    Between knots it is the monotone cubic of Fritsch and Butland (1984), which is differentiable
    and does not follow single values.
    """

    column: int  # column of the table
    knots: Array  # (k,): values of the column
    heights: Array  # (k,): their scores

    def __call__(self, x: Array) -> Array:
        """Scores of values x (n,)."""
        xp = namespace(self.knots)
        share, left = self._position(x)
        rise, start, end = (xp.take(a, left) for a in self.pieces)
        low = xp.take(self.heights, left)
        bend = start + end - 2 * rise
        return low + share * (start + share * (3 * rise - 2 * start - end + share * bend))

    def slope(self, x: Array) -> Array:
        """Derivative of the scores at values x (n,), zero outside the knots."""
        xp = namespace(self.knots)
        share, left = self._position(x)
        rise, start, end = (xp.take(a, left) for a in self.pieces)
        bend = start + end - 2 * rise
        steep = start + share * (2 * (3 * rise - 2 * start - end) + 3 * share * bend)
        inside = xp.astype((x > self.knots[0]) & (x < self.knots[-1]), x.dtype)
        # Scores differ by less than 16; the bound keeps the quotient finite.
        gaps = xp.clip(self.gaps, min=16 * float(xp.finfo(x.dtype).smallest_normal))
        return inside * steep / xp.take(gaps, left)

    @property
    def gaps(self) -> Array:
        """Distances from knot to knot, shape (k - 1,)."""
        return self.knots[1:] - self.knots[:-1]

    @cached_property
    def pieces(self) -> tuple[Array, Array, Array]:
        """Rise between knots, and slopes at both ends of each gap, each of shape (k - 1,)."""
        xp, rise = namespace(self.knots), self.heights[1:] - self.heights[:-1]
        span = self.knots[-1] - self.knots[0]
        # Products of smaller shares of the range underflow.
        smallest = float(xp.finfo(self.knots.dtype).smallest_normal) ** 0.25
        gap = xp.clip(self.gaps / span, min=smallest)
        before, after = 2 * gap[1:] + gap[:-1], gap[1:] + 2 * gap[:-1]
        inverse = gap / rise
        inner = (before + after) / (before * inverse[:-1] + after * inverse[1:])
        flat = xp.zeros_like(rise[:1])
        tangents = xp.concat([flat, inner, flat])
        return rise, tangents[:-1] * gap, tangents[1:] * gap

    def _position(self, x: Array) -> tuple[Array, Array]:
        """Position of values between two knots, from 0 to 1, and the index of the left knot."""
        xp, last = namespace(self.knots), self.knots.shape[0] - 2
        x = xp.clip(x, min=self.knots[0], max=self.knots[-1])
        left = xp.clip(xp.searchsorted(self.knots, x, side="right") - 1, min=0, max=last)
        # A share of the gap is finite even where the slope overflows.
        return (x - xp.take(self.knots, left)) / xp.take(self.gaps, left), left


@dataclass(frozen=True)
class OneHot:
    """Indicators of the distinct values of one column; all are zero for another value.

    Values are compared up to round-off, so that single precision matches.
    """

    column: int  # column of the table
    values: Array  # (k,): its distinct values

    def __call__(self, x: Array) -> Array:
        """Indicators of values x (n,), shape (k, n)."""
        xp, values = namespace(self.values), self.values[:, None]
        return xp.astype(xp.abs(values - x[None, :]) <= self.tolerance, self.values.dtype)

    @property
    def tolerance(self) -> Array:
        """Largest difference between equal values: a thousandth of the smallest gap."""
        return 1e-3 * namespace(self.values).min(self.values[1:] - self.values[:-1])


@dataclass(frozen=True)
class Inputs:
    """Standardised columns, then normal scores, then one-hot indicators."""

    # (d,): columns are standardised to (x - offset) / scale.
    offset: Array
    scale: Array
    normal_scores: tuple[NormalScores, ...] = ()  # normal scores of some columns
    one_hot: tuple[OneHot, ...] = ()  # indicators of some columns

    @property
    def expands(self) -> bool:
        """Whether there are normal scores or indicators."""
        return bool(self.normal_scores or self.one_hot)

    @property
    def origin(self) -> np.ndarray:
        """Column of the table of each input of the layer, shape (d',)."""
        return np.array(
            [
                *range(self.offset.shape[0]),
                *(part.column for part in self.normal_scores),
                *(part.column for part in self.one_hot for _ in range(part.values.shape[0])),
            ]
        )

    def __call__(self, X: Array) -> Array:
        """Inputs of the layer for the rows of a dense X, shape (d', n)."""
        xp, X = namespace(self.offset), like(X, self.offset)
        Z = ((X - self.offset) / self.scale).T
        if not self.expands:
            return Z
        scores = [part(X[:, part.column])[None, :] for part in self.normal_scores]
        return xp.concat([Z, *scores, *(part(X[:, part.column]) for part in self.one_hot)])

    def derivative(self, X: Array, directions: Array) -> Array:
        """Derivative of the inputs in one direction (n, d) per row, shape (d', n).

        The derivative of indicators is zero.
        """
        xp, directions = namespace(self.offset), like(directions, self.offset)
        changes = [(directions / self.scale).T]
        for part in self.normal_scores:
            slope = part.slope(like(X[:, part.column], self.offset))
            changes.append((slope * directions[:, part.column])[None, :])
        flat = xp.zeros_like(directions[:, 0])[None, :]
        n_indicators = sum(part.values.shape[0] for part in self.one_hot)
        return xp.concat([*changes, *[flat] * n_indicators])

    def unknown_values(self, X: Array) -> dict[int, int]:
        """Number of rows whose value has no indicator, for each column with such rows."""
        xp, counts = namespace(self.offset), {}
        for part in self.one_hot:
            x = like(X[:, part.column], self.offset)
            counts[part.column] = int(X.shape[0]) - int(xp.sum(part(x)))
        return {column: count for column, count in counts.items() if count}


def plain_inputs(scale: FeatureScale, standardize: bool, reference: Array) -> Inputs:
    """The columns of the table, standardised or unchanged."""
    d = len(scale.mean)
    offset, sd = (scale.mean, scale.sd) if standardize else (np.zeros(d), np.ones(d))
    return Inputs(like(offset, reference), like(sd, reference))


def expanded(
    inputs: Inputs, sample: Block, expansions: tuple[str, ...], *, only_skewed: bool = False
) -> Inputs:
    """Inputs with the expansions of a sample of rows; scores of all columns, or of skewed ones.

    Indicators are added for columns of 3 to 10 distinct values, each in 3 rows on average.
    """
    scores, indicators = [], []
    X = to_numpy(like(sample.X, inputs.offset))
    weight = None if sample.root_weight is None else to_numpy(sample.root_weight) ** 2
    for j in range(X.shape[1]):
        values, group = np.unique(X[:, j], return_inverse=True)
        if "normal_scores" in expansions and len(values) > 2:
            heights = _normal_scores(np.bincount(group, weight))
            if not only_skewed or _skewed(values, heights, np.bincount(group, weight)):
                knots = _knots(values, heights, len(X))
                scores.append(NormalScores(j, *(like(a, inputs.offset) for a in knots)))
        if "one_hot" in expansions and 3 <= len(values) <= min(10, len(X) // 3):
            indicators.append(OneHot(j, like(values, inputs.offset)))
    return Inputs(inputs.offset, inputs.scale, tuple(scores), tuple(indicators))


def _normal_scores(mass: np.ndarray) -> np.ndarray:
    """Normal quantiles at the mid-ranks of the values, of variance one."""
    share = mass / np.sum(mass)
    # Shares below round-off would give infinite quantiles.
    middle = np.cumsum(share) - share / 2
    scores = ndtri(np.clip(middle, np.finfo(float).tiny, 1 - np.finfo(float).eps))
    mean = share @ scores
    return (scores - mean) / np.sqrt(share @ (scores - mean) ** 2)


def _skewed(values: np.ndarray, heights: np.ndarray, mass: np.ndarray) -> bool:
    """Whether a column has few values, or its correlation with its normal scores is below 0.97.

    The correlation of a uniform column is 0.977.
    """
    if len(values) <= ALL_KNOTS:
        return True
    share = mass / np.sum(mass)
    # In units of the range: squares of the values may overflow.
    x = (values - values[0]) / (values[-1] - values[0])
    x = x - share @ x
    return bool(share @ (x * heights) < 0.97 * np.sqrt(share @ x**2))


def _knots(values: np.ndarray, heights: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Knots and heights of a curve, from distinct values and their scores.

    With many values, inner knots are equidistant in scores and half-way between two values, so
    that the curve is smooth at the values themselves.
    """
    k = len(heights)
    if k <= ALL_KNOTS:
        return values, heights
    # At least 16 rows between knots: the normal density is at most 0.4.
    step = max(KNOT_STEP, 16 / (0.4 * n_rows))
    below = np.searchsorted(heights, np.arange(heights[0], heights[-1], step))
    left = np.unique(np.clip(below, 1, k - 3))

    def with_ends(a: np.ndarray) -> np.ndarray:
        return np.concatenate([a[:1], 0.5 * a[left] + 0.5 * a[left + 1], a[-1:]])

    return with_ends(values), with_ends(heights)
