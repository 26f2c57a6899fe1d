"""The types of columns: numbers, booleans, dates, durations, times of day and categories.

A new type is a subclass of :class:`Column` and an entry of ``COLUMN_TYPES``. It implements how a
column is recognised, parsed to one code per cell, encoded as inputs of a model, and described.
"""

from __future__ import annotations

from typing import Any

from ulmus.tables.cells import Cells
from ulmus.tables.columns.base import Column
from ulmus.tables.columns.category import CategoryColumn, OrderedColumn, TargetEncodedColumn
from ulmus.tables.columns.dates import DateColumn, DayColumn, DurationColumn, TimeColumn
from ulmus.tables.columns.numeric import BooleanColumn, NumberColumn, NumericColumn

__all__ = [
    "COLUMN_TYPES",
    "BooleanColumn",
    "CategoryColumn",
    "Column",
    "DateColumn",
    "DayColumn",
    "DurationColumn",
    "NumberColumn",
    "NumericColumn",
    "OrderedColumn",
    "TargetEncodedColumn",
    "TimeColumn",
    "column_type",
    "dtype_column_type",
]

# The order is that of recognition by values.
COLUMN_TYPES: dict[str, type[Column]] = {
    one.type_name: one
    for one in (
        BooleanColumn,
        DateColumn,
        DurationColumn,
        TimeColumn,
        NumberColumn,
        OrderedColumn,
        TargetEncodedColumn,
        CategoryColumn,
    )
}


def dtype_column_type(dtype: Any) -> type[Column] | None:
    """The column type of a dtype; None for texts and objects."""
    return next((one for one in COLUMN_TYPES.values() if one.matches_dtype(dtype)), None)


def column_type(cells: Cells) -> type[Column] | None:
    """The type of a column by its dtype or, for texts and objects, its values; None if empty."""
    if not cells.present.any():
        return None
    if cells.is_typed:
        return dtype_column_type(cells.series.dtype)
    values = cells.distinct()
    return next(one for one in COLUMN_TYPES.values() if one.matches_values(values))
