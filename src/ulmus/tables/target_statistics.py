r"""Means of the outputs by category, shrunk towards the mean of all rows.

.. math:: m_l = \bar y + r_l (\bar y_l - \bar y), \qquad r_l = \frac{w_l}{w_l + k},
   \qquad k = \hat\sigma^2_\text{within} / \hat\sigma^2_\text{between},

with the weight :math:`w_l` of a category l and the analysis of variance of random effects
(Searle, Casella & McCulloch, Variance Components, 1992, section 3.6). The statistic of a training
row is computed without the rows of its fold (Micci-Barreca, SIGKDD Explorations 3, 2001; Pargent et
al., Computational Statistics 37, 2022).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

# Folds of the training rows. Statistics of a row are computed without its fold.
N_FOLDS = 10
# Weights below which no category has an effect, and above which none has noise.
SMALLEST_PRIOR, LARGEST_PRIOR = 1e-3, 1e4


def fold_numbers(first_row: int, n_rows: int) -> np.ndarray:
    """Folds of some rows, which depend on the numbers of the rows only, shape (n,)."""
    rows = np.arange(first_row, first_row + n_rows, dtype=np.uint64)
    mixed = (rows + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # wraps around
    return ((mixed >> np.uint64(33)) % np.uint64(N_FOLDS)).astype(int)


class TargetStatistics(NamedTuple):
    """Shrunken means of K outputs by category."""

    means: np.ndarray  # (L, K)
    reliability: np.ndarray  # (L,)
    center: np.ndarray  # (K,)


@dataclass
class CategorySums:
    """Weights, sums and sums of squares of K outputs by fold and category, from blocks of rows."""

    n_categories: int
    n_outputs: int
    weight: np.ndarray = field(init=False)  # (folds, L)
    sums: np.ndarray = field(init=False)  # (folds, L, K)
    squares: np.ndarray = field(init=False)  # (folds, K)

    def __post_init__(self) -> None:
        shape = N_FOLDS, self.n_categories
        self.weight, self.sums = np.zeros(shape), np.zeros((*shape, self.n_outputs))
        self.squares = np.zeros((N_FOLDS, self.n_outputs))

    def add(self, index: np.ndarray, y: np.ndarray, weight: np.ndarray, folds: np.ndarray) -> None:
        """Add rows: categories (n,), outputs (n, K), weights (n,) and folds (n,)."""
        cell = folds * self.n_categories + index
        size = N_FOLDS * self.n_categories
        self.weight += np.bincount(cell, weight, size).reshape(self.weight.shape)
        for k in range(self.n_outputs):
            part = np.bincount(cell, weight * y[:, k], size)
            self.sums[:, :, k] += part.reshape(self.weight.shape)
            self.squares[:, k] += np.bincount(folds, weight * y[:, k] ** 2, N_FOLDS)

    def statistics(self, without: int | None = None) -> TargetStatistics:
        """Statistics of all rows, or of all but those of a fold."""
        kept = np.arange(N_FOLDS) != without
        w, sums = self.weight[kept].sum(axis=0), self.sums[kept].sum(axis=0)
        squares = self.squares[kept].sum(axis=0)
        own = sums / np.maximum(w, 1e-300)[:, None]
        scatter = np.maximum(squares - w @ own**2, 0)
        found = shrunken(w[:, None], own, scatter / max(w.sum() - np.sum(w > 0), 1))
        return TargetStatistics(found.values, found.reliability.mean(axis=1), found.center)


class Shrunken(NamedTuple):
    """Estimates for L levels, shrunk towards their centers, for each of m quantities."""

    values: np.ndarray  # (L, m)
    reliability: np.ndarray  # (L, m)
    center: np.ndarray  # (m,)
    variance: np.ndarray  # (m,): between levels
    is_clear: np.ndarray  # (m,): whether levels differ by more than chance


def shrunken(w: np.ndarray, own: np.ndarray, within: np.ndarray) -> Shrunken:
    """Estimates (L, m) of variance ``within`` (m,) over weights (L, m) or (L, 1), shrunk."""
    n, n_levels = np.maximum(w.sum(axis=0), 1e-300), np.sum(w > 0, axis=0)
    center = np.sum(w * own, axis=0) / n
    freedom = np.maximum(n_levels - 1, 1)
    between = np.sum(w * (own - center) ** 2, axis=0) / freedom
    size = (n - np.sum(w**2, axis=0) / n) / freedom
    variance = np.maximum((between - within) / np.maximum(size, 1e-300), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(variance > 0, within / variance, LARGEST_PRIOR)
    each = w / (w + np.clip(ratio, SMALLEST_PRIOR, LARGEST_PRIOR))
    # The ratio of mean squares has mean 1 and variance 2 / (L - 1) without an effect.
    is_clear = between > (1 + 2 * np.sqrt(2 / freedom)) * within
    return Shrunken(center + each * (own - center), each, center, variance, is_clear)
