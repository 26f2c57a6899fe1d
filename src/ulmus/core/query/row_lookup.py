"""Rows of a table that a fit was trained on, found by their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ulmus.core.arrays.backend import Array, to_numpy
from ulmus.core.fit.training_rows import TrainingRows

IntArray = npt.NDArray[np.intp]
HashArray = npt.NDArray[np.uint64]

NO_ROW = -1
# Values are equal if they agree to so many bits, 12 decimal digits: transformers that multiply
# matrices round a row differently in another table.
BITS = 40
# Constants of splitmix64 (Steele, Lea & Flood, 2014).
STEP = np.uint64(0x9E3779B97F4A7C15)
FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def trained_rows(rows: TrainingRows, X: Array, y: np.ndarray) -> IntArray:
    """Index of the training row that equals each row of X (p, d) and y (K, p), shape (p,).

    It is ``NO_ROW`` for a row whose inputs and outputs are not those of any training row. Of equal
    training rows, the first calibration row counts. Tables of different precision are compared in
    single precision. Rows are compared by hashes of 64 bits, in O((n + p) log n).
    """
    inputs = _same_precision(_values(rows.data.X), _values(X))
    outputs = _same_precision(rows.data.y.T, y.T)
    known, given = (
        _row_hashes(x) + _scattered(_row_hashes(z)) for x, z in zip(inputs, outputs, strict=True)
    )
    # Sorted by hash, with calibration rows first among equal ones.
    order = np.lexsort((~rows.calibration_rows, known))
    place = np.searchsorted(known, given, sorter=order)
    candidate = order[np.minimum(place, len(order) - 1)]
    return np.where(known[candidate] == given, candidate, NO_ROW)


def _values(X: Array) -> Any:
    """Inputs as a NumPy array or a sparse matrix of rows."""
    return X.tocsr() if scipy.sparse.issparse(X) else to_numpy(X)


def _same_precision(known: Any, given: Any) -> tuple[Any, Any]:
    """Both tables, rounded to single precision if all values of one of them have it."""
    if not any(map(_is_single, (known, given))):
        return known, given
    with np.errstate(over="ignore"):  # beyond its range, values become infinite
        return known.astype(np.float32), given.astype(np.float32)


def _is_single(table: Any) -> bool:
    """Whether single precision represents all values exactly."""
    values = table.data if scipy.sparse.issparse(table) else table
    with np.errstate(over="ignore"):
        return bool(np.all(values.astype(np.float32) == values))


def _row_hashes(table: Any) -> HashArray:
    """Hash of each row: a sum over its entries other than zero, of a dense or sparse table."""
    if scipy.sparse.issparse(table):
        sums = np.append(np.uint64(0), np.cumsum(_entry_hashes(table.data, table.indices)))
        return sums[table.indptr[1:]] - sums[table.indptr[:-1]]
    total = np.zeros(len(table), dtype=np.uint64)
    for j in range(table.shape[1]):
        total += _entry_hashes(table[:, j], np.array([j]))
    return total


def _entry_hashes(values: np.ndarray, columns: np.ndarray) -> HashArray:
    """Hash of values in some columns; zero for the value zero."""
    mantissa, exponent = np.frexp(values.astype(float))
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS)
    bits = rounded.view(np.uint64) + columns.astype(np.uint64) * STEP
    return np.where(values == 0, np.uint64(0), _scattered(bits))


def _scattered(bits: HashArray) -> HashArray:
    """The finaliser of splitmix64, which scatters similar numbers."""
    bits = bits + STEP
    for factor, shift in zip(FACTORS, (30, 27), strict=True):
        bits = (bits ^ (bits >> np.uint64(shift))) * factor
    return bits ^ (bits >> np.uint64(31))
