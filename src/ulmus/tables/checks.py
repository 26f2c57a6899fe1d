"""Checks of inputs, outputs and row weights, the same for rows in memory and in blocks."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import is_foreign, namespace, to_numpy
from ulmus.exceptions import InputError
from ulmus.messages import Message
from ulmus.tables.dates import DATES, DURATIONS


def require_numeric_columns(X: Any, where: str = "X") -> None:
    """Refuse arrays of dates, and data frames with columns of dates or texts."""
    if getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
        name = where if where == "X" else f"X of {where}"
        raise ValueError(f"{name} contains dates or times; convert them to numbers first.")
    if not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        return
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        kind = getattr(dtype, "kind", "O")
        if kind in "mM" or (kind == "O" and not _is_numeric(X[name])):
            content = "dates or times" if kind in "mM" else "texts or categories"
            raise ValueError(
                f"column {name!r} of {where} contains {content}, and the rows of the fit contain "
                "numbers only; fit the model to a data frame with such values."
            )


def _is_numeric(column: Any) -> bool:
    try:
        np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return False
    return True


def require_no_dates(y: Any, what: str = "y") -> None:
    """Refuse outputs that are dates, durations or times of day, whose numbers depend on a unit."""
    if y is None or is_foreign(y) or scipy.sparse.issparse(y):
        return
    is_frame = hasattr(y, "columns") and hasattr(y, "iloc")
    columns = [y.iloc[:, j] for j in range(y.shape[1])] if is_frame else [y]
    content = next(filter(None, map(_temporal_content, columns)), None)
    if content is None:
        return
    numbers = {
        "dates": "(y - y.min()) / numpy.timedelta64(1, 'D'), the days since the first",
        "durations": "y / numpy.timedelta64(1, 'D'), which are days",
        "times of day": "hours since midnight",
    }
    suggestion = f"convert them to numbers of a unit, such as {numbers[content]}"
    text = f"{what} contains {content}, not numbers"
    raise InputError(Message("temporal-target", text, suggestions=(suggestion,), topic="input"))


def _temporal_content(values: Any) -> str | None:
    """What of time the values are, or None."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of unequal length
        return None
    if array.dtype.kind != "O":
        return {"M": "dates", "m": "durations"}.get(array.dtype.kind)
    types = {type(value) for value in array.flat}
    # Periods of pandas are no dates of Python.
    if any(issubclass(one, DATES) or one.__name__ == "Period" for one in types):
        return "dates"
    if any(issubclass(one, DURATIONS) for one in types):
        return "durations"
    return "times of day" if any(issubclass(one, datetime.time) for one in types) else None


def checked_inputs(X: Any, where: str) -> Any:
    """Inputs of a block as a matrix of floats: dense, sparse by rows, or of another library."""
    require_numeric_columns(X, where)
    what = f"X of {where}"
    if X is None:
        raise ValueError(f"{what} is None; give one row of inputs per row of y.")
    if scipy.sparse.issparse(X):
        X = canonical_rows(X.tocsr())
    elif not is_foreign(X):
        X = _as_array(X, what)
    if X.ndim != 2:
        raise ValueError(f"{what} must have rows and columns, got {X.ndim} axes.")
    if X.shape[1] == 0:
        raise ValueError(f"{what} has no columns; give at least one input.")
    _require_real(X, what)
    if not is_foreign(X) and X.dtype.kind != "f":
        X = X.astype(float)
    require_finite(X, what)
    return X


def checked_outputs(y: Any, where: str) -> Any:
    """Outputs of a block, one or several columns."""
    what = f"y of {where}"
    require_no_dates(y, what)
    y = y if is_foreign(y) else _as_array(y, what)
    _require_real(y, what)
    if y.ndim not in (1, 2):
        raise ValueError(
            f"{what} must have one number or row of outputs per row, not {y.ndim} axes."
        )
    if y.ndim == 2 and y.shape[1] == 0:
        raise ValueError(f"{what} has no columns; give at least one output.")
    if not is_foreign(y):
        y = y.astype(float, copy=False)
    require_finite(y, what)
    require_moderate(y, what)
    return y


def require_moderate(values: Any, what: str) -> None:
    """Refuse numbers whose squares overflow."""
    xp = namespace(values)
    largest = float(xp.max(xp.abs(values))) if values.shape[0] else 0.0
    if largest > 1e152:
        text = f"{what} reaches {largest:.1g}, and its variance is beyond the range of float64"
        raise ValueError(f"{text}; multiply y by a factor that brings it near 1.")


def canonical_rows(X: Any) -> Any:
    """Sparse rows in which every entry is stored once."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _as_array(values: Any, what: str) -> np.ndarray:
    try:
        array = np.asarray(values)
        return array.astype(float) if array.dtype.kind in "OUSbiu" else array
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must contain numbers: {error}.") from error


def _require_real(values: Any, what: str) -> None:
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind == "c" or "complex" in str(getattr(values, "dtype", "")):
        raise ValueError(f"{what} is complex; give real numbers. Complex data not supported.")
    if kind in ("m", "M"):
        raise ValueError(f"{what} contains dates or times; convert them to numbers first.")


def checked_weight(sample_weight: Any, n_rows: int, where: str, *, at_least: int = 0) -> Any:
    """Row weights as a NumPy array, or None; so many of them must be positive."""
    if sample_weight is None:
        return None
    what = f"sample_weight of {where}"
    weight = _as_array(to_numpy(sample_weight), what)
    _require_real(weight, what)
    weight = weight.astype(float)
    if weight.ndim != 1:
        raise ValueError(f"{what} must have one number per row, got {weight.ndim} axes.")
    if len(weight) != n_rows:
        lengths = f"{n_rows} rows and {len(weight)} numbers in sample_weight"
        raise ValueError(f"{where} has inconsistent lengths: {lengths}; give one of each per row.")
    require_finite(weight, what)
    if np.any(weight < 0):
        row = int(np.argmax(weight < 0))
        raise ValueError(f"{what} is negative in row {row}: {weight[row]:g}; give weights >= 0.")
    positive = weight[weight > 0]
    if len(positive) < at_least:
        text = (
            f"must differ from zero in at least {at_least} rows, got {len(positive)} such weights"
        )
        raise InputError(Message("zero-weights", text, "sample_weight"))
    # Sums beyond these overflow when they are multiplied with features and squared.
    if len(positive) and (positive.max() > 1e100 or positive.min() < 1e-100):
        span = f"from {positive.min():.1g} to {positive.max():.1g}"
        text = f"of {where} ranges {span}, which overflows"
        remedy = "divide them by their mean, as only ratios of weights matter"
        raise InputError(Message("weight-range", text, "sample_weight", suggestions=(remedy,)))
    return weight


def checked_positive_weight(sample_weight: Any, n_points: int) -> Any:
    """Positive weights (p,) of new observations."""
    weight = checked_weight(sample_weight, n_points, "the new rows")
    if np.any(weight == 0):
        text = f"is zero in row {int(np.argmax(weight == 0))} of the new rows: infinite variance"
        remedies = ("give positive weights, inverse noise variances as in fit",)
        raise InputError(Message("zero-weights", text, "sample_weight", suggestions=remedies))
    return weight


def require_finite(values: Any, what: str) -> None:
    """Refuse NaN and infinity, and name the first row that has them."""
    entries = values.data if scipy.sparse.issparse(values) else values
    if entries.shape[0] == 0:
        return
    xp = namespace(entries)
    finite = xp.isfinite(entries)
    if bool(xp.all(finite)):
        return
    bad = ~finite if finite.ndim == 1 else xp.any(~finite, axis=tuple(range(1, finite.ndim)))
    row = int(xp.argmax(xp.astype(bad, xp.int8)))
    if scipy.sparse.issparse(values):
        row = int(np.searchsorted(values.indptr, row, side="right")) - 1
    raise ValueError(f"{what} contains NaN or infinity, first in row {row}; drop or fill it.")
