"""What the hidden layer sees of a table: standardised inputs, their scores and their levels.

Beside each standardised input may stand the normal scores of its ranks, which undo a skewed or
stretched scale, and indicators of its values where these are few. All of them are inputs of the
layer; which of them matter is left to the map in front of it.
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
# Inputs of many values that correlate with their scores by more than this are neither skewed nor
# stretched, and have no use for scores: those of a uniform input correlate by .977.
STRAIGHT = 0.97
# Knots of a curve of scores are so far apart in scores, or as far as holds so many rows where these
# are densest; with at most so many values all of them are knots.
KNOT_STEP, ROWS_PER_KNOT, ALL_KNOTS = 0.25, 16, 32
# Inputs with so many distinct values get an indicator of each.
FEWEST_LEVELS, MOST_LEVELS = 3, 10
# Values that hardly repeat are no levels.
ROWS_PER_LEVEL = 3
# A value is a level if it is nearer than this share of the smallest gap between levels.
SAME_LEVEL = 1e-3


@dataclass(frozen=True)
class Scores:
    """Normal scores of one input: a smooth rising curve through its knots, flat outside them.

    Between knots it is the cubic with the tangents of Fritsch and Butland (1984), which rises where
    the heights do; so the curve has a slope everywhere, and one that does not depend on how single
    values happen to lie.

    Parameters
    ----------
    column : int
        The input.
    knots, heights : arrays of shape (k,)
        Values of the input, and their scores.
    """

    column: int
    knots: Array
    heights: Array

    def __call__(self, x: Array) -> Array:
        """Scores of values x (n,)."""
        xp = namespace(self.knots)
        share, left = self._found(x)
        rise, start, end = (xp.take(a, left) for a in self.pieces)
        low = xp.take(self.heights, left)
        bend = start + end - 2 * rise
        return low + share * (start + share * (3 * rise - 2 * start - end + share * bend))

    def slope(self, x: Array) -> Array:
        """Derivative of the scores at values x (n,), zero outside the knots."""
        xp = namespace(self.knots)
        share, left = self._found(x)
        rise, start, end = (xp.take(a, left) for a in self.pieces)
        bend = start + end - 2 * rise
        steep = start + share * (2 * (3 * rise - 2 * start - end) + 3 * share * bend)
        inside = xp.astype((x > self.knots[0]) & (x < self.knots[-1]), x.dtype)
        # Scores differ by less than 16, and the quotient must be a number.
        gaps = xp.clip(self.gaps, min=16 * float(xp.finfo(x.dtype).smallest_normal))
        return inside * steep / xp.take(gaps, left)

    @property
    def gaps(self) -> Array:
        """Distances from knot to knot, shape (k - 1,)."""
        return self.knots[1:] - self.knots[:-1]

    @cached_property
    def pieces(self) -> tuple[Array, Array, Array]:
        """Rise from knot to knot, and slopes at both its ends for each gap, each (k - 1,)."""
        xp, rise = namespace(self.knots), self.heights[1:] - self.heights[:-1]
        span = self.knots[-1] - self.knots[0]
        # Products of smaller shares of the range would be no numbers.
        smallest = float(xp.finfo(self.knots.dtype).smallest_normal) ** 0.25
        gap = xp.clip(self.gaps / span, min=smallest)
        before, after = 2 * gap[1:] + gap[:-1], gap[1:] + 2 * gap[:-1]
        inverse = gap / rise
        inner = (before + after) / (before * inverse[:-1] + after * inverse[1:])
        flat = xp.zeros_like(rise[:1])
        tangents = xp.concat([flat, inner, flat])
        return rise, tangents[:-1] * gap, tangents[1:] * gap

    def _found(self, x: Array) -> tuple[Array, Array]:
        """How far values are from the knot to their left to the next, and which knot that is."""
        xp, last = namespace(self.knots), self.knots.shape[0] - 2
        x = xp.clip(x, min=self.knots[0], max=self.knots[-1])
        left = xp.clip(xp.searchsorted(self.knots, x, side="right") - 1, min=0, max=last)
        # As a share of the gap, since a gap may be so small that its slope is no number.
        return (x - xp.take(self.knots, left)) / xp.take(self.gaps, left), left


@dataclass(frozen=True)
class Levels:
    """Indicators of the few values of one input; another value is none of them.

    A value that is a level but for round-off, such as one in single precision, is that level.

    Parameters
    ----------
    column : int
        The input.
    values : array of shape (k,)
        Its values.
    """

    column: int
    values: Array

    def __call__(self, x: Array) -> Array:
        """Indicators of values x (n,), shape (k, n)."""
        xp, values = namespace(self.values), self.values[:, None]
        return xp.astype(xp.abs(values - x[None, :]) <= self.reach, self.values.dtype)

    @property
    def reach(self) -> Array:
        """How far from a level a value still counts as it."""
        return SAME_LEVEL * namespace(self.values).min(self.values[1:] - self.values[:-1])


@dataclass(frozen=True)
class Inputs:
    """Standardised inputs, then scores, then indicators of levels.

    Parameters
    ----------
    offset, scale : arrays of shape (d,)
        What is subtracted from each input and what divides it.
    scores : tuple of Scores
        Curves for further inputs.
    levels : tuple of Levels
        Indicators as further inputs.
    """

    offset: Array
    scale: Array
    scores: tuple[Scores, ...] = ()
    levels: tuple[Levels, ...] = ()

    @property
    def expands(self) -> bool:
        """Whether there are more inputs than those of the table."""
        return bool(self.scores or self.levels)

    @property
    def origin(self) -> np.ndarray:
        """Column of the table that each input of the layer comes from, shape (d',)."""
        return np.array(
            [
                *range(self.offset.shape[0]),
                *(part.column for part in self.scores),
                *(part.column for part in self.levels for _ in range(part.values.shape[0])),
            ]
        )

    def __call__(self, X: Array) -> Array:
        """Inputs of the layer for the rows of a dense X, shape (d', n)."""
        xp, X = namespace(self.offset), like(X, self.offset)
        Z = ((X - self.offset) / self.scale).T
        if not self.expands:
            return Z
        scores = [part(X[:, part.column])[None, :] for part in self.scores]
        return xp.concat([Z, *scores, *(part(X[:, part.column]) for part in self.levels)])

    def derivative(self, X: Array, directions: Array) -> Array:
        """Derivative of the inputs in a direction of the table's space for each row, (d', n).

        Indicators are flat between their values.
        """
        xp, directions = namespace(self.offset), like(directions, self.offset)
        changes = [(directions / self.scale).T]
        for part in self.scores:
            slope = part.slope(like(X[:, part.column], self.offset))
            changes.append((slope * directions[:, part.column])[None, :])
        flat = xp.zeros_like(directions[:, 0])[None, :]
        n_levels = sum(part.values.shape[0] for part in self.levels)
        return xp.concat([*changes, *[flat] * n_levels])

    def unseen(self, X: Array) -> dict[int, int]:
        """Rows whose value is none of the levels, counted for each such column of the table."""
        xp, counts = namespace(self.offset), {}
        for part in self.levels:
            x = like(X[:, part.column], self.offset)
            counts[part.column] = int(X.shape[0]) - int(xp.sum(part(x)))
        return {column: count for column, count in counts.items() if count}


def plain_inputs(scale: FeatureScale, standardize: bool, reference: Array) -> Inputs:
    """The table's own inputs, standardised or as they are."""
    d = len(scale.mean)
    offset, sd = (scale.mean, scale.sd) if standardize else (np.zeros(d), np.ones(d))
    return Inputs(like(offset, reference), like(sd, reference))


def expanded(
    inputs: Inputs, sample: Block, expansions: tuple[str, ...], *, only_stretched: bool = False
) -> Inputs:
    """Further inputs from the values of a sample of rows; scores of all, or of stretched ones."""
    scores, levels = [], []
    X = to_numpy(like(sample.X, inputs.offset))
    weight = None if sample.root_weight is None else to_numpy(sample.root_weight) ** 2
    for j in range(X.shape[1]):
        values, group = np.unique(X[:, j], return_inverse=True)
        if "normal_scores" in expansions and len(values) > 2:
            heights = _normal_scores(np.bincount(group, weight))
            if not only_stretched or _stretched(values, heights, np.bincount(group, weight)):
                knots = _knots(values, heights, len(X))
                scores.append(Scores(j, *(like(a, inputs.offset) for a in knots)))
        most = min(MOST_LEVELS, len(X) // ROWS_PER_LEVEL)
        if "one_hot" in expansions and FEWEST_LEVELS <= len(values) <= most:
            levels.append(Levels(j, like(values, inputs.offset)))
    return Inputs(inputs.offset, inputs.scale, tuple(scores), tuple(levels))


def _normal_scores(mass: np.ndarray) -> np.ndarray:
    """Normal quantiles at the middle of each value's share of the rows, of variance one."""
    share = mass / np.sum(mass)
    # Shares below round-off would lie at the end of the distribution, which is infinite.
    middle = np.cumsum(share) - share / 2
    scores = ndtri(np.clip(middle, np.finfo(float).tiny, 1 - np.finfo(float).eps))
    mean = share @ scores
    return (scores - mean) / np.sqrt(share @ (scores - mean) ** 2)


def _stretched(values: np.ndarray, heights: np.ndarray, mass: np.ndarray) -> bool:
    """Whether the scores of an input are another scale than its own, or its values are few."""
    if len(values) <= ALL_KNOTS:
        return True
    share = mass / np.sum(mass)
    # In units of the range, as squares of values may be no numbers.
    x = (values - values[0]) / (values[-1] - values[0])
    x = x - share @ x
    return bool(share @ (x * heights) < STRAIGHT * np.sqrt(share @ x**2))


def _knots(values: np.ndarray, heights: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Knots and their heights, for the values of an input and their rising scores.

    Those of many values lie half-way between two of them, evenly in scores; so the curve is smooth
    at the values of the rows themselves.
    """
    k = len(heights)
    if k <= ALL_KNOTS:
        return values, heights
    # A normal density has 0.4 of the rows in a score's unit where these are densest.
    step = max(KNOT_STEP, ROWS_PER_KNOT / (0.4 * n_rows))
    wanted = np.searchsorted(heights, np.arange(heights[0], heights[-1], step))
    left = np.unique(np.clip(wanted, 1, k - 3))
    inner = (0.5 * a[left] + 0.5 * a[left + 1] for a in (values, heights))
    knots, between = (
        np.concatenate([a[:1], b, a[-1:]]) for a, b in zip((values, heights), inner, strict=True)
    )
    return knots, between
