r"""Effects of categories beside those of the other inputs: means of residuals, and slopes.

The residuals r are those of an additive fit of linear splines to the other inputs. Within a
category l, the slope of an input x is

.. math:: b_l = \frac{\sum_{i \in l} w_i (x_i - \bar x_l) r_i}
                     {\sum_{i \in l} w_i (x_i - \bar x_l)^2}.

Residuals of a further category are those beside the means of the categories before it. Means and
slopes are shrunk as in :mod:`ulmus.tables.target_statistics`; the weight of a slope is
its denominator. They are estimates of random intercepts and slopes by category (Searle, Casella &
McCulloch, Variance Components, 1992, section 3.6), and all that a training row has of them is
computed without its fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ulmus.tables.target_statistics import N_FOLDS, shrunken

# Slopes of a category: those of the inputs whose slopes vary most between levels.
MAX_SLOPES = 3
# Cells of the matrix of a least-squares fit, which limit the number of its rows.
MAX_CELLS = 2e7
# Knots of the splines of that fit.
KNOTS = 5


class LevelEffects(NamedTuple):
    """Effects of L categories, m each."""

    values: np.ndarray  # (L, m)
    unknown: np.ndarray  # (m,): those of an unknown category


@dataclass(frozen=True)
class OtherInputs:
    """Rows with the inputs of other columns, beside which categories have effects."""

    names: tuple[str, ...]  # of d inputs
    X: np.ndarray  # (n, d), NaN where missing
    y: np.ndarray  # (n, K)
    weight: np.ndarray  # (n,)
    folds: np.ndarray  # (n,)

    @cached_property
    def Z(self) -> np.ndarray:
        """Standardised inputs; missing ones have their mean."""
        observed = np.maximum(np.sum(~np.isnan(self.X), axis=0), 1)
        Z = self.X - np.nansum(self.X, axis=0) / observed
        scale = np.sqrt(np.nansum(Z**2, axis=0) / observed)
        return np.nan_to_num(Z / np.where(scale > 0, scale, 1.0))

    @property
    def splines(self) -> np.ndarray:
        """A constant, the inputs, and hinges of those with more than two values, shape (n, N)."""
        Z = self.Z
        curved = Z[:, np.any((Z - Z.min(axis=0)) * (Z.max(axis=0) - Z) > 1e-9, axis=0)]
        knots = np.quantile(curved, np.arange(1, KNOTS + 1) / (KNOTS + 1), axis=0)
        (n, d), c = Z.shape, curved.shape[1]
        F = np.ones((n, 1 + d + KNOTS * c))
        F[:, 1 : 1 + d] = Z
        for i, knot in enumerate(knots):
            F[:, 1 + d + i * c : 1 + d + (i + 1) * c] = np.abs(curved - knot)
        return F


class EffectsByFold(NamedTuple):
    """Effects without each fold of the rows, and last those from all rows."""

    names: tuple[str, ...]  # of m effects
    parts: tuple[LevelEffects, ...]

    def without(self, fold: int | None) -> LevelEffects:
        """Effects without a fold, or from all rows."""
        return self.parts[-1 if fold is None else fold]


def level_effects(
    other: OtherInputs, categories: dict[int, tuple[np.ndarray, int]]
) -> dict[int, EffectsByFold]:
    """Effects of columns, given the category of each row (n,) and the number of categories."""
    found, residuals = {}, _residuals(other)
    for j in sorted(categories, key=lambda j: categories[j][1]):
        index, n_levels = categories[j]
        found[j] = _effects(other, residuals, index, n_levels)
        means = (part.values[index, : other.y.shape[1]] for part in found[j].parts)
        residuals = [r - mean for r, mean in zip(residuals, means, strict=True)]
    return found


def _residuals(other: OtherInputs) -> list[np.ndarray]:
    """Residuals (n, K) of fits without each fold of the rows, and of that to all rows."""
    F, y, folds = other.splines, other.y, other.folds
    step = max(1, int(np.ceil(F.size / MAX_CELLS)))
    weight = np.where(np.arange(len(F)) % step == 0, other.weight, 0.0)
    used = [np.flatnonzero((folds == fold) & (weight > 0)) for fold in range(N_FOLDS)]
    grams = [(F[rows].T * weight[rows]) @ F[rows] for rows in used]
    # A prior of the weight of one row for each coefficient but the constant.
    prior = np.diag(np.r_[1e-9, np.ones(F.shape[1] - 1)])
    found = []
    for without in (*range(N_FOLDS), None):
        kept = np.where(folds == without, 0.0, weight)[:, None]
        centered = y - np.sum(kept * y, axis=0) / max(np.sum(kept), 1e-300)
        gram = sum(grams[fold] for fold in range(N_FOLDS) if fold != without)
        found.append(centered - F @ np.linalg.solve(gram + prior, F.T @ (kept * centered)))
    return found


def _effects(
    other: OtherInputs, residuals: list[np.ndarray], index: np.ndarray, n_levels: int
) -> EffectsByFold:
    """Effects of one column."""
    folds = (*range(N_FOLDS), None)
    parts = [_Level(other, r, index, n_levels, f) for r, f in zip(residuals, folds, strict=True)]
    whole = parts[-1]
    slopes = whole.slopes(np.arange(len(other.names)))
    spread = slopes.variance / np.maximum(np.var(other.y, axis=0)[:, None], 1e-300)
    total = np.sum(np.where(slopes.is_clear, spread, 0.0), axis=0)
    chosen = np.array([j for j in np.argsort(-total)[:MAX_SLOPES] if total[j] > 0], dtype=int)
    n_outputs = other.y.shape[1]
    of = [""] if n_outputs == 1 else [f" {k}" for k in range(n_outputs)]
    names = [f"mean residual{k}" for k in of]
    names += [f"slope{k} of {other.names[j]}" for k in of for j in chosen]
    return EffectsByFold(tuple(names), tuple(part.effects(chosen) for part in parts))


class _Slopes(NamedTuple):
    values: np.ndarray  # (L, K, J)
    center: np.ndarray  # (K, J)
    variance: np.ndarray  # (K, J), between levels
    is_clear: np.ndarray  # (K, J): whether levels differ by more than chance


@dataclass(frozen=True)
class _Level:
    """Rows of the categories, without those of a fold."""

    other: OtherInputs
    residual: np.ndarray  # (n, K)
    index: np.ndarray  # (n,): category of each row
    n_levels: int
    without: int | None

    @cached_property
    def weight(self) -> np.ndarray:
        return np.where(self.other.folds == self.without, 0.0, self.other.weight)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Weighted sums of columns (n, m) by category, shape (L, m)."""
        columns = [np.bincount(self.index, self.weight * v, self.n_levels) for v in values.T]
        return np.stack(columns, axis=1)

    @cached_property
    def size(self) -> np.ndarray:
        """Weight of each category, shape (L, 1)."""
        return np.bincount(self.index, self.weight, self.n_levels)[:, None]

    @cached_property
    def means(self) -> np.ndarray:
        """Means of the residuals, shape (L, K)."""
        return self.sums(self.residual) / np.maximum(self.size, 1e-300)

    @cached_property
    def scatter(self) -> np.ndarray:
        """Sums of squares within categories, shape (K,)."""
        return np.sum(self.sums(self.residual**2) - self.size * self.means**2, axis=0)

    def effects(self, chosen: np.ndarray) -> LevelEffects:
        """Means of the residuals, and slopes along some inputs."""
        freedom = max(self.size.sum() - np.sum(self.size > 0), 1.0)
        means = shrunken(self.size, self.means, self.scatter / freedom)
        if not len(chosen):
            return LevelEffects(means.values, means.center)
        slopes = self.slopes(chosen)
        flat = slopes.values.reshape(self.n_levels, -1)
        return LevelEffects(
            np.hstack([means.values, flat]), np.r_[means.center, slopes.center.ravel()]
        )

    def slopes(self, chosen: np.ndarray) -> _Slopes:
        """Shrunken slopes of the residuals along J inputs."""
        Z, size = self.other.Z[:, chosen], np.maximum(self.size, 1e-300)
        x = self.sums(Z) / size
        squares = np.maximum(self.sums(Z**2) - self.size * x**2, 0.0)
        squares[squares < 1e-9 * self.size] = 0.0
        found = []
        for k in range(self.other.y.shape[1]):
            r, mean = self.residual[:, k : k + 1], self.means[:, k : k + 1]
            own = (self.sums(Z * r) - self.size * x * mean) / np.where(squares > 0, squares, np.inf)
            freedom = self.size.sum() - np.sum(self.size > 0) - np.sum(squares > 0, axis=0)
            scatter = self.scatter[k] - np.sum(squares * own**2, axis=0)
            within = np.maximum(scatter, 0.0) / np.maximum(freedom, 1.0)
            found.append(shrunken(squares, own, within))
        return _Slopes(
            np.stack([one.values for one in found], axis=1),
            np.stack([one.center for one in found]),
            np.stack([one.variance for one in found]),
            np.stack([one.is_clear for one in found]),
        )
