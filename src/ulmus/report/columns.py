"""Summaries of the columns of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ulmus.plot._relevance import shortened
from ulmus.report.numbers import number
from ulmus.tables.columns import CategoryColumn, Column, dtype_column_type


@dataclass(frozen=True)
class ColumnSummary:
    """Type and values of one input."""

    name: str
    type_name: str  # type of its values
    values: str  # its range, or its most frequent categories with their counts
    missing: int  # rows without a value


def column_class(values: Any) -> type[Column]:
    """Column type of a Series by its dtype; texts and objects are categories."""
    return dtype_column_type(values.dtype) or CategoryColumn


def column_summaries(table: Any) -> tuple[ColumnSummary, ...]:
    """Summary of every column of a data frame."""
    return tuple(_column(str(name), table.iloc[:, j]) for j, name in enumerate(table.columns))


def _column(name: str, values: Any) -> ColumnSummary:
    found, present = column_class(values), values.dropna()
    text = found.summary(present, _shown) if len(present) else "no values"
    return ColumnSummary(name, found.plural, text, len(values) - len(present))


def _shown(value: Any) -> str:
    return number(value) if isinstance(value, float) else shortened(str(value))
