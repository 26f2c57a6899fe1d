"""Hash values of numbers and of rows, which are equal for equal rows of any two tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

HashArray = npt.NDArray[np.uint64]

# Constants of SplitMix64 (Steele, Lea & Flood, 2014).
STEP = np.uint64(0x9E3779B97F4A7C15)
FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def scattered(bits: HashArray) -> HashArray:
    """A step and the finaliser of SplitMix64, which scatter similar numbers."""
    bits = bits + STEP
    for factor, shift in zip(FACTORS, (30, 27), strict=True):
        bits = (bits ^ (bits >> np.uint64(shift))) * factor
    return bits ^ (bits >> np.uint64(31))


def row_hashes(table: Any, rounded: Callable[[np.ndarray], np.ndarray] | None = None) -> HashArray:
    """Hash of each row of a dense or sparse table, a sum over its entries other than zero.

    Values are rounded before, if a function is given that does it.
    """
    if scipy.sparse.issparse(table):
        entries = _entry_hashes(table.data, table.indices, rounded)
        # Sums of integers are exact modulo 2^64, and so are their differences.
        sums = np.append(np.uint64(0), np.cumsum(entries))
        return sums[table.indptr[1:]] - sums[table.indptr[:-1]]
    total = np.zeros(len(table), dtype=np.uint64)
    for j in range(table.shape[1]):
        total += _entry_hashes(table[:, j], np.array([j]), rounded)
    return total


def _entry_hashes(
    values: np.ndarray, columns: np.ndarray, rounded: Callable[[np.ndarray], np.ndarray] | None
) -> HashArray:
    """Hash of values in some columns; zero for the value zero."""
    numbers = values.astype(float)
    numbers = np.ascontiguousarray(numbers if rounded is None else rounded(numbers))
    bits = numbers.view(np.uint64) + columns.astype(np.uint64) * STEP
    return np.where(values == 0, np.uint64(0), scattered(bits))
