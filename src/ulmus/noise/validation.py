"""Checks of the parameters of noise, and conversion of locations to numbers and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ulmus.core.noise_covariance.errors import covariance_error
from ulmus.exceptions import InputError
from ulmus.messages import invalid
from ulmus.tables.dates import DATE_TEXT, datetimes, days_since_1970, parsed_dates
from ulmus.tables.missing import is_missing, missing_mask

# Squares of larger numbers, and sums of these, overflow.
LARGEST = 1e150
# Examples of naming a column instead, for messages.
NAMED = {
    "time": "AR1(time='day')",
    "coords": "Exponential(coords=('east', 'north'))",
    "groups": "Clustered(groups='site')",
}


def location_error(axis: str, text: str, *suggestions: str) -> InputError:
    """An error about values of time, coords or groups."""
    return covariance_error(f"invalid-{axis}", text, *suggestions)


# ------------------------------------------------------------ values of locations


def times(values: Any) -> np.ndarray:
    """Times as numbers: dates, also as ISO text, as days since 1970, durations as days.

    Missing times are NaN.
    """
    array = _dates_of_text(datetimes(_array("time", values)))
    return days_since_1970(array) if array.dtype.kind in "mM" else _axis_numbers("time", array)


def _dates_of_text(array: np.ndarray) -> np.ndarray:
    """Datetimes of ISO text, as in a column of dates that was read from CSV; others unchanged."""
    present = array[~missing_mask(array)] if array.ndim == 1 and array.dtype.kind in "OU" else ()
    is_date = (isinstance(text, str) and DATE_TEXT.fullmatch(text) for text in present)
    if not len(present) or not all(is_date):
        return array
    import pandas as pd

    return parsed_dates(pd.Series(array))


def coordinates(values: Any) -> np.ndarray:
    """Coordinates as numbers."""
    array = _axis_numbers("coords", _array("coords", values))
    if array.ndim > 1 and array.shape[1] == 0:
        raise location_error("coords", "coords has no columns", "give at least one coordinate")
    return array


def labels(values: Any) -> np.ndarray:
    """Groups as numbers, or as strings; dates as days."""
    array = _array("groups", values)
    if isinstance(values, (list, tuple)) and array.dtype.kind == "U":
        array = np.asarray(values, dtype=object)  # NumPy converts numbers beside strings
    if array.ndim != 1:
        text = f"groups has shape {array.shape}"
        raise location_error("groups", text, "give one label for each row")
    missing = missing_mask(array)
    if missing.any():
        text = f"groups of row {np.argmax(missing)} is missing"
        raise location_error("groups", text, "give each row a group", "exclude the row")
    if array.dtype.kind == "O":
        array = _of_one_type(array)
    if array.dtype.kind in "mM":
        return times(array)
    return array if array.dtype.kind in "iuf" else array.astype(str)


def _of_one_type(labels: np.ndarray) -> np.ndarray:
    """Labels of a type of NumPy where all of them are numbers, or dates; others unchanged."""
    is_text = [isinstance(label, str) for label in labels]
    if any(is_text) and not all(is_text):
        other = next(label for label, text in zip(labels, is_text, strict=True) if not text)
        text = f"groups contains strings and {other!r} of type {type(other).__name__}"
        raise location_error("groups", text, "give labels of one type")
    try:
        plain = datetimes(np.asarray(labels.tolist()))
    except ValueError:  # tuples of different lengths
        return labels
    return plain if plain.shape == labels.shape and plain.dtype.kind in "iufmM" else labels


def _array(axis: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as reason:  # rows of unequal length
        text = f"{axis} is not an array"
        raise location_error(axis, text, "give one value for each row") from reason
    if array.ndim == 0:
        raise covariance_error(
            f"invalid-{axis}",
            "is one value",
            "give an array with one value for each row",
            f"name a column of X in the noise, as in {NAMED[axis]}",
            parameter=axis,
            value=values,
        )
    return array


def _axis_numbers(axis: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "biuf":
        numbers = array.astype(float)
    else:
        numbers = np.full(array.shape, np.nan)
        for index, value in np.ndenumerate(array):
            if not is_missing(value):
                numbers[index] = _number(axis, index[0], value)
    finite = np.abs(numbers[np.isfinite(numbers)])
    if np.any(finite > LARGEST):
        text = f"{axis} contains {np.max(finite):.1g}, whose square overflows float64"
        raise location_error(axis, text, "use another unit")
    return numbers


def _number(axis: str, row: int, value: Any) -> float:
    try:
        return float(value.item() if isinstance(value, np.generic) else value)
    except (TypeError, ValueError):
        required = "number or date" if axis == "time" else "number"
        raise location_error(
            axis,
            f"{axis} of row {row} is {value!r}, which is not a {required}",
            "convert strings to numbers or dates first",
            f"name columns of X in the noise, as in {NAMED[axis]}",
        ) from None


# ------------------------------------------------------------ parameters of noise


def coordinate_names(coords: Any) -> tuple[str, ...] | None:
    """Names of the columns of coordinates as a tuple, which is hashable."""
    if coords is None or isinstance(coords, str):
        return None if coords is None else (coords,)
    if not isinstance(coords, (list, tuple)):
        raise _not_a_name("coords", "names of columns of X, such as ('east', 'north')", coords)
    if not coords or not all(isinstance(name, str) for name in coords):
        raise covariance_error(
            "invalid-coords",
            "must be names of one or more columns of X, such as ('east', 'north')",
            "give coordinates themselves to fit",
            parameter="coords",
            value=coords,
        )
    return tuple(coords)


def require_column_name(axis: str, name: Any) -> None:
    """Raise an error for values in the place of the name of a column."""
    if name is not None and not isinstance(name, str):
        raise _not_a_name(axis, "the name of a column of X", name)


def _not_a_name(axis: str, requirement: str, value: Any) -> InputError:
    text = f"{axis} must be {requirement}, got a value of type {type(value).__name__}"
    return location_error(axis, text, "give values themselves to fit")


def require_nugget(nugget: Any) -> None:
    """Raise an error for a nugget that is not a boolean, such as the name of a column."""
    if not isinstance(nugget, (bool, np.bool_)):
        raise location_error(
            "nugget",
            f"nugget must be True or False, got {nugget!r}",
            "name columns by their axis, as in AR1(time='day') or "
            "Exponential(coords=('east', 'north'))",
        )


def smoothness(nu: Any) -> float:
    """Smoothness of Matern noise as a number; its kernel checks the value."""
    if not _is_number(nu):
        raise InputError(invalid("nu", "must be a number, 0.5, 1.5 or 2.5", nu))
    return float(nu)


def bandwidth(name: str, value: Any) -> float | None:
    """Bandwidth of a kernel; None if it is chosen from the rows."""
    if isinstance(value, str) and value == "auto":
        return None
    if not _is_number(value) or not 0 < value < np.inf:
        raise InputError(invalid(name, "must be a positive number", value))
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
