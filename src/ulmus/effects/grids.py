"""Grids of values that a feature is set to in a partial dependence curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats.mstats import mquantiles

from ulmus.effects.columns import Table, levels, listed, named_column, numeric

# Points of a curve, and of each axis of a surface.
CURVE, SURFACE = 50, 20


def asked_features(table: Table, features: Any) -> list[str]:
    """Names of one or two features."""
    parts = listed(features)
    if len(parts) not in (1, 2):
        raise ValueError(
            f"features must be one or two columns, got {len(parts)}; call partial_dependence once "
            "for each curve."
        )
    names = [named_column(table, part, "features") for part in parts]
    if len(set(names)) < len(names):
        raise ValueError(f"features names {names[0]!r} twice; give two different columns.")
    return names


def grid(
    table: Table,
    name: str,
    resolution: int,
    percentiles: Sequence[float],
    custom: Any = None,
) -> list[Any]:
    """Values of a feature: all of them if they are few, else evenly between two quantiles.

    The rule is that of scikit-learn's ``partial_dependence``.
    """
    column = table.column(name)
    assert column is not None  # a feature
    if custom is not None:
        return _checked_values(name, column, custom)
    found = levels(table, name)
    if not found:
        raise ValueError(f"column {name!r} has no values in these rows; give a grid of your own.")
    if len(found) < resolution or not numeric(column):
        return found
    column = column.astype(float)
    low, high = mquantiles(column[~np.isnan(column)], prob=percentiles)
    if low == high:
        raise ValueError(
            f"percentiles={tuple(percentiles)} of column {name!r} are the same value, {low:g}; "
            "widen them, or raise grid_resolution."
        )
    return list(np.linspace(low, high, resolution))


def checked_percentiles(percentiles: Any) -> tuple[float, float]:
    """Two shares of the rows, the lower first."""
    try:
        low, high = (float(p) for p in percentiles)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0 <= low < high <= 1:
        raise ValueError(
            f"percentiles must be two numbers, 0 <= low < high <= 1, got {percentiles!r}."
        )
    return low, high


def _checked_values(name: str, column: np.ndarray, custom: Any) -> list[Any]:
    values = listed(custom)
    if not values:
        raise ValueError(f"grid of column {name!r} has no values; give at least one.")
    if column.dtype.kind not in "biuf":
        return values
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"grid of column {name!r} must be numbers, got {values!r}.") from error
    if numbers.ndim != 1 or not np.all(np.isfinite(numbers)):
        raise ValueError(f"grid of column {name!r} must be finite numbers, got {values!r}.")
    return list(numbers) if numeric(column) else values
