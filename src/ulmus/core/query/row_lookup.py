"""Rows of a table that a fit was trained on, found by their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ulmus.core.arrays.backend import Array, to_numpy
from ulmus.core.data.row_hashes import row_hashes, scattered
from ulmus.core.fit.training_rows import TrainingRows

IntArray = npt.NDArray[np.intp]

NO_ROW = -1
# Values are equal if they agree to so many bits, 12 decimal digits: transformers that multiply
# matrices round a row differently in another table.
BITS = 40


def trained_rows(rows: TrainingRows, X: Array, y: np.ndarray) -> IntArray:
    """Index of the training row that equals each row of X (p, d) and y (K, p), shape (p,).

    It is ``NO_ROW`` for a row whose inputs and outputs are not those of any training row; outputs
    are those that the user gave, before any transformation. The first of several equal rows is
    found as the first of the equal training rows, calibration rows first, the second one as the
    second, and so on; any more rows are found as the last. Tables of different precision are
    compared in single precision. Rows are compared by hashes of 64 bits, in O((n + p) log n).
    """
    inputs = _same_precision(_values(rows.data.X), _values(X))
    observed = rows.data.y if rows.observed is None else rows.observed
    outputs = _same_precision(observed.T, y.T)
    known, given = (
        row_hashes(x, _rounded) + scattered(row_hashes(z, _rounded))
        for x, z in zip(inputs, outputs, strict=True)
    )
    # Sorted by hash, with calibration rows first among equal ones.
    order = np.lexsort((~rows.calibration_rows, known))
    first, end = (np.searchsorted(known, given, side, sorter=order) for side in ("left", "right"))
    place = np.clip(first + _repetitions(given), 0, np.maximum(end - 1, 0))
    return np.where(end > first, order[place], NO_ROW)


def _repetitions(values: np.ndarray) -> IntArray:
    """How many earlier values equal each value, (p,)."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    out = np.empty(len(values), dtype=np.intp)
    out[order] = np.arange(len(values)) - np.repeat(starts, np.diff(np.append(starts, len(values))))
    return out


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


def _rounded(values: np.ndarray) -> np.ndarray:
    """Values to ``BITS`` binary digits."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS)
