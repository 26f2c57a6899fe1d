"""Columns with one number per cell: numbers, booleans and dates."""

from __future__ import annotations

import datetime
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ulmus.tables.cells import BOOLEANS, Cells, number_of, text_of
from ulmus.tables.columns.base import Column, NumericStatistics
from ulmus.tables.dates import DATE_TEXT, days_since_1970, parsed_dates


@dataclass(frozen=True)
class NumericColumn(Column):
    """A column with one number per cell, which is its code and its input."""

    fill: float = 0.0

    @classmethod
    @abstractmethod
    def parse(cls, cells: Cells) -> np.ndarray:
        """One number per cell, NaN where missing."""

    @classmethod
    def statistics(cls) -> NumericStatistics:
        """Range and median."""
        return NumericStatistics(cls.parse)

    @classmethod
    def from_statistics(cls, name: str, statistics: NumericStatistics) -> Self:
        """A column whose missing cells are the median."""
        return cls(name, statistics.median)

    @property
    def fill_code(self) -> float:
        """The number that replaces missing cells when they are imputed."""
        return float(self.fill)

    def parse_text(self, text: str) -> float | str:
        """The number that a text is, or the text."""
        number = number_of(text)
        return text if number is None else number


class NumberColumn(NumericColumn):
    """A column of numbers.

    Parameters
    ----------
    name : str
        Name of the column.
    fill : float
        Median, which replaces missing cells when they are imputed.

    Examples
    --------
    >>> from ulmus.tables import NumberColumn
    >>> NumberColumn("t").describe()
    {'type': 'number', 'name': 't', 'fill': 0.0}
    """

    type_name, plural, continuous = "number", "numbers", True

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Integers and floats."""
        import pandas as pd

        return dtype.kind != "b" and bool(pd.api.types.is_numeric_dtype(dtype))

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Texts of which at least 80 % are numbers; the others are then errors."""
        return bool(np.mean([number_of(text_of(value)) is not None for value in values]) >= 0.8)

    @classmethod
    def parse(cls, cells: Cells) -> np.ndarray:
        """The numbers."""
        return cells.numbers()

    @classmethod
    def summary(cls, values: Any, show: Callable[[Any], str]) -> str:
        """Range and median."""
        low, median, high = map(float, np.quantile(values.astype(float), [0, 0.5, 1]))
        if not high > low:
            return f"always {show(low)}"
        return f"{show(low)} to {show(high)}, median {show(median)}"


class BooleanColumn(NumericColumn):
    """A column of booleans, encoded as 0 and 1.

    Parameters
    ----------
    name : str
        Name of the column.
    fill : float
        Median, which replaces missing cells when they are imputed.

    Examples
    --------
    >>> from ulmus.tables import BooleanColumn
    >>> BooleanColumn("wet").parse_text("true")
    1.0
    """

    type_name, plural = "boolean", "booleans"

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Booleans."""
        return bool(dtype.kind == "b")

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Booleans."""
        return all(isinstance(value, (bool, np.bool_)) for value in values)

    @classmethod
    def parse(cls, cells: Cells) -> np.ndarray:
        """Zeros and ones."""
        values = cells.numbers()
        cells.require(np.isin(values, (0.0, 1.0)), "a boolean", "write true or false, or 1 or 0")
        return values

    def to_pandas(self, codes: np.ndarray) -> Any:
        """Booleans, with NA where missing."""
        import pandas as pd

        values = pd.array(codes, dtype="boolean")
        return values if values.isna().any() else values.astype(bool)

    def parse_text(self, text: str) -> float | str:
        """0 or 1."""
        return BOOLEANS.get(text.lower(), super().parse_text(text))


class DateColumn(NumericColumn):
    """A column of dates, times of day or durations, encoded as days.

    Parameters
    ----------
    name : str
        Name of the column.
    fill : float
        Median in days (since 1970 for dates), which replaces missing cells when they are imputed.

    Examples
    --------
    >>> from ulmus.tables import DateColumn
    >>> DateColumn("day").parse_text("1970-01-11")
    10.0
    """

    type_name, plural, continuous = "date", "dates", True
    note = "Dates encoded as days since 1970 (times as fractions of a day): {}."

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Datetimes and timedeltas."""
        return dtype.kind in "mM"

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Dates or times of Python, or texts such as 2026-12-31."""
        if all(isinstance(value, (datetime.date, datetime.time)) for value in values):
            return True
        return all(DATE_TEXT.fullmatch(text_of(value)) for value in values)

    @classmethod
    def parse(cls, cells: Cells) -> np.ndarray:
        """Days."""
        return cells.days()

    @classmethod
    def summary(cls, values: Any, show: Callable[[Any], str]) -> str:
        """Range."""
        return f"{values.min()} to {values.max()}"

    def parse_text(self, text: str) -> float | str:
        """Days since 1970 of a date; other numbers are days already."""
        if not DATE_TEXT.fullmatch(text):
            return super().parse_text(text)
        import pandas as pd

        days = float(days_since_1970(parsed_dates(pd.Series([text])))[0])
        if np.isnan(days):
            raise ValueError(f"{text!r} is not a date; write it as 2026-12-31.")
        return days
