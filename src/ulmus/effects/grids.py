"""Grids of values that columns are set to in a partial dependence curve."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats.mstats import mquantiles

from ulmus.effects.columns import Table, as_list, column_name, distinct_values, is_numeric
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting, invalid

# Values of the grid of a curve, and of each axis of a surface.
CURVE, SURFACE = 50, 20


def curve_features(table: Table, features: Any) -> list[str]:
    """Names of one or two columns."""
    keys = as_list(features)
    if len(keys) not in (1, 2):
        text = f"must be one or two columns, got {len(keys)}"
        raise _error("features", text, "call partial_dependence once for each curve")
    names = [column_name(table, key, "features") for key in keys]
    if len(set(names)) < len(names):
        text = f"names {names[0]!r} twice"
        raise _error("features", text, "give two different columns")
    return names


def curve_grids(
    table: Table, names: list[str], resolution: int | None, percentiles: Any, grid: Any
) -> list[list[Any]]:
    """The grid of each column, by default from its values."""
    if resolution is None:
        resolution = CURVE if len(names) == 1 else SURFACE
    shares = _checked_percentiles(percentiles)
    if grid is None:
        return [_default_grid(table, name, resolution, shares) for name in names]
    grids = [grid] if len(names) == 1 else as_list(grid)
    if len(grids) != len(names):
        raise InputError(invalid("grid", f"must contain values for each of {names}", grid))
    return [_checked_grid(table, name, own) for name, own in zip(names, grids, strict=True)]


def _error(parameter: str, text: str, *suggestions: str) -> InputError:
    return InputError(Message("grid", text, parameter, suggestions=suggestions))


def _default_grid(
    table: Table, name: str, resolution: int, percentiles: tuple[float, float]
) -> list[Any]:
    """All values of a column if they are few, else evenly spaced values between two quantiles.

    The rule is that of scikit-learn's ``partial_dependence``.
    """
    values = distinct_values(table, name)
    if not values:
        text = f"is required for column {name!r}, which has no values in these rows"
        raise _error("grid", text)
    column = table.column(name)
    assert column is not None  # a feature
    if len(values) < resolution or not is_numeric(column):
        return values
    column = column.astype(float)
    low, high = mquantiles(column[~np.isnan(column)], prob=percentiles)
    if low == high:
        text = f"of column {name!r} coincide at {low:g}"
        remedies = "widen them", Setting("grid_resolution", phrase="increase {}")
        raise InputError(Message("grid", text, "percentiles", percentiles, remedies))
    return list(np.linspace(low, high, resolution))


def _checked_percentiles(percentiles: Any) -> tuple[float, float]:
    try:
        low, high = (float(p) for p in percentiles)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0 <= low < high <= 1:
        requirement = "must be two numbers, 0 <= low < high <= 1"
        raise InputError(invalid("percentiles", requirement, percentiles))
    return low, high


def _checked_grid(table: Table, name: str, grid: Any) -> list[Any]:
    column = table.column(name)
    assert column is not None  # a feature
    values = [table.value(name, value) for value in as_list(grid)]
    if not values:
        raise _error("grid", f"of column {name!r} is empty", "give at least one value")
    if column.dtype.kind not in "biuf":
        return values
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise _error("grid", f"of column {name!r} must be numbers, got {values!r}") from error
    if numbers.ndim != 1 or not np.all(np.isfinite(numbers)):
        raise _error("grid", f"of column {name!r} must be finite numbers, got {values!r}")
    return list(numbers) if is_numeric(column) else values
