"""The columns of the table of a report: their summaries, and values as numbers and as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.plot._style import shortened
from ulmus.report.numbers import number
from ulmus.report.report_input import ReportInput
from ulmus.tables.columns import CategoryColumn, Column, DateColumn, dtype_column_type

SEPARATED = 1e4


@dataclass(frozen=True)
class ColumnSummary:
    """Type and values of one input."""

    name: str
    type_name: str  # type of its values
    values: str  # its range, or its most frequent categories with their counts
    missing: int  # rows without a value


@dataclass(frozen=True)
class TableColumn:
    """A column of the table, as the schema of the model reads it or by its dtype."""

    name: str
    type: type[Column]
    cells: Any  # (n,): a Series; days since 1970 where the schema reads dates
    column: Column | None = None  # how the schema encodes it; None without one

    @classmethod
    def of(cls, report_input: ReportInput, j: int) -> TableColumn:
        """A column by its position."""
        cells, schema = report_input.table.iloc[:, j], report_input.schema
        name = report_input.names[j]
        if schema is None or name not in schema.names:
            return cls(name, dtype_column_type(cells.dtype) or CategoryColumn, cells)
        column = schema.column(name)
        if column.continuous:
            cells = type(cells)(schema.numbers(name, cells), index=cells.index)
        return cls(name, type(column), cells, column)

    @property
    def numbers(self) -> FloatArray | None:
        """Present values as numbers, and dates as days, (n,); None for categories and others."""
        if not self.type.continuous or (self.type is DateColumn and self.column is None):
            return None
        return np.asarray(self.cells.dropna(), dtype=float)

    @property
    def dates(self) -> bool:
        """Whether numbers are days since 1970."""
        return self.type is DateColumn

    def text(self, value: Any) -> str:
        """A value as the report shows it."""
        if isinstance(self.column, DateColumn) and not isinstance(value, str):
            return self.column.shown(float(value))
        if not isinstance(value, (float, np.floating)):
            return shortened(str(value))
        # Numbers of four digits may be years, which have no thousands separator.
        text = number(value).replace(",", "") if abs(float(value)) < SEPARATED else number(value)
        return text.rstrip("0").removesuffix(".") if "." in text and "e" not in text else text

    def summary(self) -> ColumnSummary:
        """Its type, values and missing cells."""
        present = self.cells.dropna()
        missing = len(self.cells) - len(present)
        show: Callable[[Any], str] = self.text
        if isinstance(self.column, DateColumn) and len(present):
            values = f"{show(present.min())} to {show(present.max())}"
        elif self.type is DateColumn and len(present):
            values = " to ".join(str(end)[:10] for end in (present.min(), present.max()))
        else:
            values = self.type.summary(present, show) if len(present) else "no values"
        return ColumnSummary(self.name, self.type.plural, values, missing)


def column_summaries(report_input: ReportInput) -> tuple[ColumnSummary, ...]:
    """Summary of every column of the table."""
    columns = range(report_input.table.shape[1])
    return tuple(TableColumn.of(report_input, j).summary() for j in columns)
