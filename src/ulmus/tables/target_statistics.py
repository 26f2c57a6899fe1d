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
        center = sums.sum(axis=0) / max(w.sum(), 1e-300)
        own = sums / np.maximum(w, 1e-300)[:, None]
        prior = _prior_weight(w, own, squares, center)
        each = w[:, None] / (w[:, None] + prior)
        return TargetStatistics(
            center + each * (own - center) * (w > 0)[:, None], each.mean(axis=1), center
        )


def _prior_weight(
    w: np.ndarray, own: np.ndarray, squares: np.ndarray, center: np.ndarray
) -> np.ndarray:
    """Ratio of the variances within and between categories, for each output, shape (K,)."""
    n, n_levels = w.sum(), np.sum(w > 0)
    between = w @ (own - center) ** 2
    within = np.maximum(squares - w @ own**2, 0) / max(n - n_levels, 1)
    size = (n - w @ w / max(n, 1e-300)) / max(n_levels - 1, 1)
    variance = (between / max(n_levels - 1, 1) - within) / max(size, 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(variance > 0, within / variance, LARGEST_PRIOR)
    return np.clip(ratio, SMALLEST_PRIOR, LARGEST_PRIOR)
