"""The types of columns: number, boolean, date and category.

A new type is a subclass of :class:`Column` and a line in ``COLUMN_TYPES``. It implements how a
column is recognised, parsed to one code per cell, encoded as inputs of a model, and described.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ulmus.tables.cells import BOOLEANS, Cells, number_of, some, text_of
from ulmus.tables.column_statistics import CategoryStatistics, ColumnStatistics, NumericStatistics
from ulmus.tables.dates import DATE_TEXT, days_since_1970, parsed_dates

# A column of texts is numeric if at least this share of the distinct ones are numbers; the others
# are then errors.
MIN_NUMBER_SHARE = 0.8


class Column(ABC):
    """One column of a table; each type of column is a subclass.

    Attributes
    ----------
    name : str
        Name of the column.
    type_name : str
        Name of the type, as in files.
    plural : str
        What such a column contains, for messages.
    categorical : bool
        Whether cells are labels, of which differences and no slopes exist.
    continuous : bool
        Whether slopes exist.
    note : str
        A sentence for columns that are encoded in a way worth a note; ``{}`` are the columns.

    Examples
    --------
    >>> from ulmus.tables import Column, NumberColumn
    >>> issubclass(NumberColumn, Column)
    True
    """

    name: str
    type_name: ClassVar[str]
    plural: ClassVar[str]
    categorical: ClassVar[bool] = False
    continuous: ClassVar[bool] = False
    note: ClassVar[str] = ""

    @classmethod
    @abstractmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Whether a dtype of pandas is one of this type."""

    @classmethod
    @abstractmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Whether distinct texts or objects are of this type."""

    @classmethod
    @abstractmethod
    def statistics(cls) -> ColumnStatistics:
        """Empty statistics, from which a column is made."""

    @classmethod
    @abstractmethod
    def from_statistics(cls, name: str, statistics: Any) -> Self:
        """The column with such cells."""

    @classmethod
    @abstractmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """The column of a JSON description."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """A description for JSON."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the inputs that encode it."""
        return (self.name,)

    @property
    def label(self) -> str:
        """How a note names the column."""
        return self.name

    @property
    @abstractmethod
    def fill_code(self) -> float:
        """The code that replaces missing cells when they are imputed."""

    @abstractmethod
    def parse(self, cells: Cells) -> np.ndarray:
        """One code per cell, NaN where missing."""

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Inputs of a model, shape (n, features)."""
        return codes[:, None]

    def to_pandas(self, codes: np.ndarray) -> Any:
        """Codes as values of a data frame."""
        return codes

    @abstractmethod
    def parse_text(self, text: str) -> float | str:
        """A value of the column that was written as text."""


@dataclass(frozen=True)
class NumericColumn(Column):
    """A column with one number per cell, which is its code and its input."""

    name: str
    fill: float = 0.0

    @classmethod
    @abstractmethod
    def values(cls, cells: Cells) -> np.ndarray:
        """One number per cell, NaN where missing."""

    @classmethod
    def statistics(cls) -> NumericStatistics:
        """Range and median."""
        return NumericStatistics(cls.values)

    @classmethod
    def from_statistics(cls, name: str, statistics: NumericStatistics) -> Self:
        """A column whose missing cells are the median."""
        return cls(name, statistics.median)

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """The column of a JSON description."""
        return cls(description["name"], description["fill"])

    def describe(self) -> dict[str, Any]:
        """A description for JSON."""
        return {"name": self.name, "type": self.type_name, "fill": self.fill}

    @property
    def fill_code(self) -> float:
        """The number that replaces missing cells when they are imputed."""
        return float(self.fill)

    def parse(self, cells: Cells) -> np.ndarray:
        """One number per cell, NaN where missing."""
        return self.values(cells)

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
    {'name': 't', 'type': 'number', 'fill': 0.0}
    """

    type_name, plural, continuous = "number", "numbers", True

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Integers and floats."""
        import pandas as pd

        return dtype.kind != "b" and bool(pd.api.types.is_numeric_dtype(dtype))

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Texts of which most are numbers."""
        numbers = [number_of(text_of(value)) is not None for value in values]
        return bool(np.mean(numbers) >= MIN_NUMBER_SHARE)

    @classmethod
    def values(cls, cells: Cells) -> np.ndarray:
        """The numbers."""
        return cells.numbers()


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
    def values(cls, cells: Cells) -> np.ndarray:
        """Zeros and ones."""
        values = cells.numbers()
        valid = np.isin(values, (0.0, 1.0))
        cells.require(valid, "a boolean", "write true or false, or 1 or 0")
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
    def values(cls, cells: Cells) -> np.ndarray:
        """Days."""
        return cells.days()

    def parse_text(self, text: str) -> float | str:
        """Days since 1970 of a date; other numbers are days already."""
        if not DATE_TEXT.fullmatch(text):
            return super().parse_text(text)
        import pandas as pd

        days = float(days_since_1970(parsed_dates(pd.Series([text])))[0])
        if np.isnan(days):
            raise ValueError(f"{text!r} is not a date; write it as 2026-12-31.")
        return days


@dataclass(frozen=True)
class CategoryColumn(Column):
    """A column of categories, encoded as one indicator each.

    Parameters
    ----------
    name : str
        Name of the column.
    categories : tuple of str
        Its categories, as text.
    fill : str
        Most frequent category, which replaces missing cells when they are imputed.

    Examples
    --------
    >>> from ulmus.tables import CategoryColumn
    >>> CategoryColumn("species", ("elm", "oak"), fill="elm").features
    ('species=elm', 'species=oak')
    """

    name: str
    categories: tuple[str, ...]
    fill: str

    type_name, plural, categorical = "category", "categories", True
    note = "Encoded as categories (number of levels): {}."

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Categorical dtypes."""
        return hasattr(dtype, "categories")

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Anything that no other type matches."""
        return True

    @classmethod
    def statistics(cls) -> CategoryStatistics:
        """Counts of the categories."""
        return CategoryStatistics()

    @classmethod
    def from_statistics(cls, name: str, statistics: CategoryStatistics) -> Self:
        """A column whose missing cells are the most frequent category."""
        return cls(name, statistics.categories, statistics.mode)

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """The column of a JSON description."""
        categories = tuple(description["categories"])
        if not all(isinstance(category, str) for category in categories):
            raise TypeError("categories must be texts")
        return cls(description["name"], categories, description["fill"])

    def describe(self) -> dict[str, Any]:
        """A description for JSON."""
        categories = list(self.categories)
        head = {"name": self.name, "type": self.type_name}
        return {**head, "categories": categories, "fill": self.fill}

    @property
    def features(self) -> tuple[str, ...]:
        """One input per category."""
        return tuple(f"{self.name}={category}" for category in self.categories)

    @property
    def label(self) -> str:
        """Name and number of categories."""
        return f"{self.name} ({len(self.categories)})"

    @property
    def fill_code(self) -> float:
        """Index of the most frequent category."""
        return float(self.categories.index(self.fill))

    def parse(self, cells: Cells) -> np.ndarray:
        """The index of each cell among the categories, NaN where missing."""
        return cells.codes(self.categories)

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Indicators, shape (n, categories)."""
        return (codes[:, None] == np.arange(len(self.categories))).astype(float)

    def to_pandas(self, codes: np.ndarray) -> Any:
        """A categorical with all categories of the model."""
        import pandas as pd

        index = np.nan_to_num(codes, nan=-1).astype(int)
        return pd.Categorical.from_codes(index, dtype=pd.CategoricalDtype(list(self.categories)))

    def parse_text(self, text: str) -> str:
        """One of the categories."""
        if text not in self.categories:
            categories = some(map(repr, self.categories))
            raise ValueError(
                f"{text!r} is not a category of {self.name!r} ({categories}); put quotes around "
                "one that contains a comma."
            )
        return text


# The order is that of recognition by values.
COLUMN_TYPES: dict[str, type[Column]] = {
    one.type_name: one for one in (BooleanColumn, DateColumn, NumberColumn, CategoryColumn)
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
