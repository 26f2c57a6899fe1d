"""Times, coordinates and groups as people have them, as numbers and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ulmus.tables.dates import datetimes, days_since_1970
from ulmus.tables.missing import is_missing, missing_mask

# Squares of larger numbers, and sums of these, overflow.
LARGEST = 1e150
# How a column is named instead, for messages.
NAMED = {
    "time": "AR1(time='day')",
    "coords": "Exponential(coords=('east', 'north'))",
    "groups": "Clustered(groups='site')",
}


def times(values: Any) -> np.ndarray:
    """Times as numbers: dates as days since 1970, durations as days; NaN where missing."""
    array = datetimes(_array("time", values))
    return days_since_1970(array) if array.dtype.kind in "mM" else _axis_numbers("time", array)


def coordinates(values: Any) -> np.ndarray:
    """Coordinates as numbers."""
    array = _axis_numbers("coords", _array("coords", values))
    if array.ndim > 1 and array.shape[1] == 0:
        raise ValueError("coords has no columns; give at least one coordinate of each row.")
    return array


def labels(values: Any) -> np.ndarray:
    """Groups as numbers, or as words; dates as days."""
    array = _array("groups", values)
    if array.ndim != 1:
        raise ValueError(f"groups has shape {array.shape}; give one label for each row.")
    absent = missing_mask(array)
    if absent.any():
        raise ValueError(
            f"groups of row {np.argmax(absent)} is missing; give each row a group, or leave the "
            "row out."
        )
    if array.dtype.kind in "mM":
        return times(array)
    return array if array.dtype.kind in "iuf" else array.astype(str)


def _array(axis: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as reason:  # rows of unequal length
        raise ValueError(f"{axis} is no array; give one value for each row.") from reason
    if array.ndim == 0:
        raise ValueError(
            f"{axis}={values!r} is one value; give an array with one for each row, or name a "
            f"column of X in the noise, as in {NAMED[axis]}."
        )
    return array


def _axis_numbers(axis: str, array: np.ndarray) -> np.ndarray:
    numbers = array.astype(float) if array.dtype.kind in "biuf" else _parsed(axis, array)
    finite = np.abs(numbers[np.isfinite(numbers)])
    if np.any(finite > LARGEST):
        raise ValueError(
            f"{axis} reaches {np.max(finite):.1g}, and squares of distances are beyond the range "
            "of numbers; use another unit."
        )
    return numbers


def _parsed(axis: str, array: np.ndarray) -> np.ndarray:
    numbers = np.full(array.shape, np.nan)
    for place, value in np.ndenumerate(array):
        if not is_missing(value):
            numbers[place] = _number(axis, place[0], value)
    return numbers


def _number(axis: str, row: int, value: Any) -> float:
    try:
        return float(value.item() if isinstance(value, np.generic) else value)
    except (TypeError, ValueError):
        kinds = "number or date" if axis == "time" else "number"
        raise ValueError(
            f"{axis} of row {row} is {value!r}, which is no {kinds}; turn texts into numbers or "
            f"dates first, or name columns of X in the noise, as in {NAMED[axis]}."
        ) from None


def coordinate_names(coords: Any) -> tuple[str, ...] | None:
    """Names of the columns of coordinates, as a tuple so that equal kinds are equal."""
    if coords is None or isinstance(coords, str):
        return None if coords is None else (coords,)
    if not isinstance(coords, (list, tuple)):
        raise ValueError(
            f"coords must be names of columns of X, such as ('east', 'north'), got a value of type "
            f"{type(coords).__name__}; give coordinates themselves to fit."
        )
    if not coords or not all(isinstance(name, str) for name in coords):
        raise ValueError(
            f"coords={coords!r} must be names of one or more columns of X, such as ('east', "
            "'north'); give coordinates themselves to fit."
        )
    return tuple(coords)


def require_column_name(axis: str, name: Any) -> None:
    """Refuse values where the name of a column is meant."""
    if name is not None and not isinstance(name, str):
        raise ValueError(
            f"{axis} must be the name of a column of X, got a value of type "
            f"{type(name).__name__}; give values themselves to fit."
        )


def require_nugget(nugget: Any) -> None:
    """Refuse a nugget that is neither there nor not, such as the name of a column."""
    if not isinstance(nugget, (bool, np.bool_)):
        raise ValueError(
            f"nugget must be True or False, got {nugget!r}; name columns by their axis, as in "
            "AR1(time='day') or Exponential(coords=('east', 'north'))."
        )


def smoothness(nu: Any) -> float:
    """The smoothness of Matern noise; which numbers it can be, its kernel knows."""
    if not _is_number(nu):
        raise ValueError(f"nu must be a number, for example 1.5, got {nu!r}.")
    return float(nu)


def reach(name: str, value: Any) -> float | None:
    """How far a kernel reaches; None where the rows are to tell."""
    if isinstance(value, str) and value == "auto":
        return None
    if not _is_number(value) or not 0 < value < np.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}.")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
