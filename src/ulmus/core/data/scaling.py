"""Mean, standard deviation and range of the inputs, over row blocks that merge with ``+``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import Array, like, namespace, taken_rows, to_numpy
from ulmus.core.data.source import Block

# Squares of larger and smaller ranges than these cannot be told from infinity and zero.
LARGEST_RANGE, SMALLEST_RANGE = 1e150, 1e-150

# Points farther out than this share of the training range count as extrapolation.
RANGE_MARGIN = 0.1


@dataclass(frozen=True)
class FeatureScale:
    """Weighted mean, sum of squared deviations and range of each feature.

    Parameters
    ----------
    n_rows : int
        Rows of positive weight.
    mass : float
        Sum of the row weights.
    mean, deviations : ndarrays of shape (d,)
        Mean, and sum of weighted squared deviations from it.
    low, high : ndarrays of shape (d,)
        Smallest and largest value among rows of positive weight.
    """

    n_rows: int
    mass: float
    mean: np.ndarray
    deviations: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def __add__(self, other: FeatureScale) -> FeatureScale:
        """Scale of the rows of both (Chan, Golub & LeVeque, 1979)."""
        if self.mass == 0 or other.mass == 0:
            return self if other.mass == 0 else other
        mass = self.mass + other.mass
        gap = other.mean - self.mean
        share = other.mass / mass
        deviations = self.deviations + other.deviations + gap**2 * self.mass * share
        return FeatureScale(
            self.n_rows + other.n_rows,
            mass,
            self.mean + gap * share,
            deviations,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    @property
    def sd(self) -> np.ndarray:
        """Standard deviations, 1 for features that are constant up to round-off."""
        sd = np.sqrt(self.deviations / self.mass)
        # The mean of many equal values is not quite that value.
        constant = (self.low == self.high) | (sd <= 10 * np.finfo(float).eps * np.abs(self.mean))
        return np.where(constant, 1.0, sd)


def feature_scale(blocks: Iterable[Block]) -> FeatureScale:
    """Scale of the inputs of all blocks."""
    total: FeatureScale | None = None
    for block in blocks:
        scale = _block_scale(block.X, block.root_weight)
        total = scale if total is None else total + scale
    if total is None:
        raise ValueError("blocks holds no rows; give at least two rows of data.")
    return total


def usable(scale: FeatureScale) -> FeatureScale:
    """Refuse a table without rows of positive weight, and inputs whose squares are no numbers."""
    if scale.mass == 0:
        raise ValueError("sample_weight is zero in all rows; give at least two positive weights.")
    with np.errstate(over="ignore"):
        low, high = scale.low.astype(float), scale.high.astype(float)
        size = np.maximum(high - low, np.where(np.maximum(-low, high) > LARGEST_RANGE, np.inf, 0))
    bad = (size > LARGEST_RANGE) | ((size > 0) & (size < SMALLEST_RANGE))
    if np.any(bad):
        j = int(np.argmax(bad))
        raise ValueError(
            f"input {j} of X reaches from {low[j]:.1g} to {high[j]:.1g}, beyond the range of "
            "numbers that can be squared; multiply that column by a factor that brings it near 1."
        )
    return scale


def _block_scale(X: Array, root_weight: Array | None) -> FeatureScale:
    if root_weight is not None:
        used = np.flatnonzero(to_numpy(root_weight))
        X, weight = taken_rows(X, used), to_numpy(root_weight)[used] ** 2
    else:
        weight = np.ones(X.shape[0])
    mass, d = float(np.sum(weight)), X.shape[1]
    if mass == 0:
        nothing = np.zeros(d)
        return FeatureScale(0, 0.0, nothing, nothing, np.full(d, np.inf), np.full(d, -np.inf))
    if scipy.sparse.issparse(X):
        return _sparse_scale(X, weight, mass)
    xp = namespace(X)
    low, high = to_numpy(xp.min(X, axis=0)), to_numpy(xp.max(X, axis=0))
    X = xp.astype(X, xp.float64)
    rows = xp.asarray(weight, device=X.device)
    with np.errstate(over="ignore"):  # such inputs are refused, with a message, by ``usable``
        mean = (rows @ X) / mass
        deviations = rows @ (X - mean) ** 2
    return FeatureScale(len(weight), mass, to_numpy(mean), to_numpy(deviations), low, high)


def _sparse_scale(X: Any, weight: np.ndarray, mass: float) -> FeatureScale:
    mean = (X.T @ weight) / mass
    entry_weight = np.repeat(weight, np.diff(X.indptr))
    squares = entry_weight * (X.data - mean[X.indices]) ** 2
    d = X.shape[1]
    stored = np.bincount(X.indices, entry_weight, minlength=d)
    full = np.bincount(X.indices, minlength=d) == X.shape[0]
    # Entries that are not stored are zero and deviate by the mean.
    absent = np.where(full, 0.0, mass - stored)
    deviations = np.bincount(X.indices, squares, minlength=d) + mean**2 * absent
    low, high = (extreme.toarray().ravel() for extreme in (X.min(axis=0), X.max(axis=0)))
    return FeatureScale(len(weight), mass, mean, np.maximum(deviations, 0), low, high)


def n_extrapolated(X: Any, scale: FeatureScale) -> int:
    """Number of rows farther outside the range of the inputs than a tenth of it."""
    return int(np.sum(extrapolated_rows(X, scale)))


def extrapolated_rows(X: Any, scale: FeatureScale) -> np.ndarray:
    """Which rows have a value that far outside the range of its input, shape (n,)."""
    margin = RANGE_MARGIN * (scale.high - scale.low)
    low, high = scale.low - margin, scale.high + margin
    if scipy.sparse.issparse(X):
        return _sparse_rows_outside(X, low, high)
    return to_numpy(namespace(X).any((like(low, X) > X) | (like(high, X) < X), axis=1))


def _sparse_rows_outside(X: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    outside = np.zeros(X.shape[0], dtype=bool)
    outside[rows[(low[X.indices] > X.data) | (high[X.indices] < X.data)]] = True
    # Entries that are not stored are zero, which may itself be out of range.
    zero_is_outside = (low > 0) | (high < 0)
    stored = np.bincount(rows[zero_is_outside[X.indices]], minlength=X.shape[0])
    return outside | (stored < np.sum(zero_is_outside))


# Squares of larger and smaller spreads than these cannot be told from infinity and zero.
LARGEST_SPREAD, SMALLEST_SPREAD = 1e152, 1e-152


@dataclass(frozen=True)
class OutputUnits:
    """What is subtracted from each output, and what then divides it, arrays of shape (K,)."""

    shift: Array
    unit: Array

    def blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Blocks whose outputs are in these units."""
        for block in blocks:
            yield block._replace(y=(block.y - self.shift[:, None]) / self.unit[:, None])

    def outputs(self, few: Iterable[int]) -> OutputUnits:
        """Units of some of the outputs."""
        xp, wanted = namespace(self.unit), list(few)
        if wanted == list(range(self.unit.shape[0])):
            return self
        index = xp.asarray(wanted, device=self.unit.device)
        return OutputUnits(xp.take(self.shift, index), xp.take(self.unit, index))


def output_units(sample: Block, constant: bool) -> OutputUnits:
    """Units from a sample of rows; only with an intercept may the outputs be shifted."""
    y = to_numpy(sample.y).astype(float)
    if not np.all(np.isfinite(y)):
        raise ValueError(
            "y is beyond the range of dtype='float32'; multiply it by a factor that brings it near "
            "1, or use dtype='float64'."
        )
    with np.errstate(over="ignore"):
        shift = np.mean(y, axis=1) if constant else np.zeros(len(y))
    spread = np.max(np.abs(y - shift[:, None]), axis=1)
    # What is left of a constant is round-off.
    spread = np.where(spread > 10 * np.finfo(float).eps * np.abs(shift), spread, 0.0)
    for size in spread[spread > 0]:
        if not SMALLEST_SPREAD < size < LARGEST_SPREAD:
            raise ValueError(
                f"y varies by {size:.1g}, and its variance is beyond the range of numbers; "
                "multiply y by a factor that brings it near 1."
            )
    unit = np.exp2(np.round(np.log2(np.where(spread > 0, spread, 1.0))))
    return OutputUnits(like(shift, sample.y), like(unit, sample.y))
