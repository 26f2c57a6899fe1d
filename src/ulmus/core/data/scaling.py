"""Scales of the data: moments and ranges of the inputs, and units of the outputs.

Results over blocks of rows merge with ``+``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import Array, like, namespace, taken_rows, to_numpy
from ulmus.core.data.source import Block
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

# ------------------------------------------------------------ inputs


@dataclass(frozen=True)
class FeatureScale:
    """Weighted mean, sum of squared deviations and range of each feature."""

    n_rows: int  # rows of positive weight
    mass: float  # sum of the row weights
    mean: np.ndarray  # (d,): mean
    deviations: np.ndarray  # (d,): sum of weighted squared deviations from it
    low: np.ndarray  # (d,): minimum over rows of positive weight
    high: np.ndarray  # (d,): maximum over rows of positive weight
    # Smallest and largest positive weight of a row.
    weight_range: tuple[float, float] = (1.0, 1.0)

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
            (
                min(self.weight_range[0], other.weight_range[0]),
                max(self.weight_range[1], other.weight_range[1]),
            ),
        )

    @property
    def sd(self) -> np.ndarray:
        """Standard deviations, 1 for features that are constant up to round-off."""
        sd = np.sqrt(self.deviations / self.mass)
        # The computed mean of equal values differs from them by round-off.
        constant = (self.low == self.high) | (sd <= 10 * np.finfo(float).eps * np.abs(self.mean))
        return np.where(constant, 1.0, sd)


def feature_scale(blocks: Iterable[Block]) -> FeatureScale:
    """Scale of the inputs over all blocks."""
    total: FeatureScale | None = None
    for block in blocks:
        scale = _block_scale(block.X, block.root_weight)
        total = scale if total is None else total + scale
    if total is None:
        raise ValueError("blocks contains no rows; give at least two rows of data.")
    return total


def checked_feature_scale(scale: FeatureScale) -> FeatureScale:
    """The scale, if some row has a positive weight and squares of all inputs are finite."""
    if scale.mass == 0:
        text = "is zero in all rows"
        suggestion = ("give at least two positive weights",)
        raise InputError(Message("zero-weights", text, "sample_weight", suggestions=suggestion))
    # Squares of ranges beyond these over- or underflow, also when summed over many rows.
    largest, smallest = 1e150, 1e-150
    with np.errstate(over="ignore"):
        low, high = scale.low.astype(float), scale.high.astype(float)
        size = np.maximum(high - low, np.where(np.maximum(-low, high) > largest, np.inf, 0))
    bad = (size > largest) | ((size > 0) & (size < smallest))
    if np.any(bad):
        j = int(np.argmax(bad))
        raise ValueError(
            f"input {j} of X ranges from {low[j]:.1g} to {high[j]:.1g}, and its squares are beyond "
            "the range of float64; multiply that column by a factor that brings it near 1."
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
        zero = np.zeros(d)
        return FeatureScale(0, 0.0, zero, zero, np.full(d, np.inf), np.full(d, -np.inf))
    if scipy.sparse.issparse(X):
        return _sparse_scale(X, weight, mass)
    xp = namespace(X)
    low, high = to_numpy(xp.min(X, axis=0)), to_numpy(xp.max(X, axis=0))
    X = xp.astype(X, xp.float64)
    rows = xp.asarray(weight, dtype=xp.float64, device=X.device)
    with np.errstate(over="ignore"):  # checked_feature_scale raises for such inputs
        mean = (rows @ X) / mass
        deviations = rows @ (X - mean) ** 2
    deviations = to_numpy(deviations)
    return FeatureScale(
        len(weight), mass, to_numpy(mean), deviations, low, high, weight_range(weight)
    )


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
    deviations = np.maximum(deviations, 0)
    return FeatureScale(len(weight), mass, mean, deviations, low, high, weight_range(weight))


def weight_range(weight: np.ndarray) -> tuple[float, float]:
    """Smallest and largest of positive row weights."""
    return float(np.min(weight)), float(np.max(weight))


def n_extrapolated(X: Any, scale: FeatureScale, margin: np.ndarray | None = None) -> int:
    """Number of rows outside the range of the training inputs, see ``extrapolated_rows``."""
    return int(np.sum(extrapolated_rows(X, scale, margin)))


def extrapolated_rows(X: Any, scale: FeatureScale, margin: np.ndarray | None = None) -> np.ndarray:
    """Rows with a value outside the range of its input by more than a margin, shape (n,).

    The margins of the inputs (d,) are a tenth of their range by default.
    """
    margin = 0.1 * (scale.high - scale.low) if margin is None else margin
    low, high = scale.low - margin, scale.high + margin
    if scipy.sparse.issparse(X):
        return _sparse_extrapolated(X, low, high)
    return to_numpy(namespace(X).any((like(low, X) > X) | (like(high, X) < X), axis=1))


def _sparse_extrapolated(X: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    outside = np.zeros(X.shape[0], dtype=bool)
    outside[rows[(low[X.indices] > X.data) | (high[X.indices] < X.data)]] = True
    # Entries that are not stored are zero, which may itself be out of range.
    zero_is_outside = (low > 0) | (high < 0)
    stored = np.bincount(rows[zero_is_outside[X.indices]], minlength=X.shape[0])
    return outside | (stored < np.sum(zero_is_outside))


# ------------------------------------------------------------ outputs


@dataclass(frozen=True)
class OutputUnits:
    """Shift and unit of each output: a fit works with (y - shift) / unit, arrays of shape (K,).

    Units keep squares of outputs from overflow. They are powers of two, so that the division is
    exact and results do not depend on them.
    """

    shift: Array
    unit: Array

    def blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Blocks with outputs in these units."""
        for block in blocks:
            yield block._replace(y=(block.y - self.shift[:, None]) / self.unit[:, None])

    def outputs(self, few: Iterable[int]) -> OutputUnits:
        """Units of some of the outputs."""
        xp, outputs = namespace(self.unit), list(few)
        if outputs == list(range(self.unit.shape[0])):
            return self
        index = xp.asarray(outputs, device=self.unit.device)
        return OutputUnits(xp.take(self.shift, index), xp.take(self.unit, index))


def output_units(sample: Block, constant: bool) -> OutputUnits:
    """Units from a sample of rows; outputs are shifted only with an intercept."""
    y = to_numpy(sample.y).astype(float)
    if not np.all(np.isfinite(y)):
        text = "y is beyond the range of dtype='float32'"
        suggestions = "multiply it by a factor that brings it near 1", Setting("dtype", "float64")
        raise InputError(Message("target-overflow", text, suggestions=suggestions))
    with np.errstate(over="ignore"):
        shift = np.mean(y, axis=1) if constant else np.zeros(len(y))
    deviation = np.max(np.abs(y - shift[:, None]), axis=1)
    # The deviation of a constant is round-off.
    deviation = np.where(deviation > 10 * np.finfo(float).eps * np.abs(shift), deviation, 0.0)
    for size in deviation[deviation > 0]:
        if not 1e-152 < size < 1e152:  # squares beyond over- or underflow
            raise ValueError(
                f"y varies by {size:.1g}, and its variance is beyond the range of float64; "
                "multiply y by a factor that brings it near 1."
            )
    unit = np.exp2(np.round(np.log2(np.where(deviation > 0, deviation, 1.0))))
    return OutputUnits(like(shift, sample.y), like(unit, sample.y))
