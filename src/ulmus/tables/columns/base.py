"""Base class of the column types, and the statistics from which a column is described."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, ClassVar, Self

import numpy as np

from ulmus.tables.cells import Cells, number_of
from ulmus.tables.dates import AMBIGUOUS_DATE_TEXT, DATE_TEXT

# A column of more distinct texts than this is an identifier or free text, not a category.
MAX_CATEGORIES = 100
# Number of values from which a median is computed.
MEDIAN_VALUES = 100_000


class ColumnUse(Enum):
    """Whether a column is an input, or why it is excluded."""

    INPUT = "input"
    EMPTY = "no values"
    CONSTANT = "constant"
    IDENTIFIER = "too many distinct texts"


class ColumnStatistics(ABC):
    """What decides whether and how a column becomes an input."""

    @abstractmethod
    def add(self, cells: Cells) -> None:
        """Update by further cells."""

    @property
    @abstractmethod
    def use(self) -> ColumnUse:
        """Whether the column is an input."""

    @property
    def resembles_dates(self) -> bool:
        """Whether most texts are dates, in whatever form."""
        return False


class NumericStatistics(ColumnStatistics):
    """Range and first values of a column; ``parse`` returns one number per cell, or NaN."""

    def __init__(self, parse: Callable[[Cells], np.ndarray]) -> None:
        self.parse = parse
        self.parts: list[np.ndarray] = []
        self.n_values = 0
        self.low, self.high = np.inf, -np.inf

    def add(self, cells: Cells) -> None:
        """Update by further cells."""
        values = self.parse(cells)
        values = values[~np.isnan(values)]
        if len(values):
            self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        if self.n_values < MEDIAN_VALUES:
            self.parts.append(values[: MEDIAN_VALUES - self.n_values].copy())
        self.n_values += len(values)

    @property
    def use(self) -> ColumnUse:
        """An input, unless all numbers are equal."""
        return ColumnUse.INPUT if self.low < self.high else ColumnUse.CONSTANT

    @property
    def median(self) -> float:
        """Median of the first values."""
        return float(np.median(np.concatenate(self.parts)))


class CategoryStatistics(ColumnStatistics):
    """Counts of the texts of a column."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.declared: tuple[str, ...] = ()

    def add(self, cells: Cells) -> None:
        """Update by further cells, unless there are too many texts already."""
        if self.use is not ColumnUse.IDENTIFIER:
            self.counts.update(cells.texts)
            self.declared = self.declared or cells.declared_categories

    @property
    def use(self) -> ColumnUse:
        """An input, unless all texts are equal or there are too many."""
        if len(self.counts) > MAX_CATEGORIES:
            return ColumnUse.IDENTIFIER
        return ColumnUse.INPUT if len(self.counts) > 1 else ColumnUse.CONSTANT

    @property
    def resembles_dates(self) -> bool:
        """Whether most texts are dates, in whatever form."""
        forms = (DATE_TEXT, AMBIGUOUS_DATE_TEXT)
        dates = (n for text, n in self.counts.items() if any(f.fullmatch(text) for f in forms))
        return 2 * sum(dates) > self.counts.total()

    @property
    def categories(self) -> tuple[str, ...]:
        """Categories in their declared order, then numbers by size, then texts."""
        declared = [text for text in dict.fromkeys(self.declared) if text in self.counts]
        others = sorted(set(self.counts).difference(declared), key=_by_number)
        return tuple(map(str, [*declared, *others]))

    @property
    def mode(self) -> str:
        """The most frequent category."""
        return str(self.counts.most_common(1)[0][0])


def _by_number(text: str) -> tuple[float, str]:
    number = number_of(text)
    return (float("inf"), text) if number is None else (number, text)


@dataclass(frozen=True)
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

    def describe(self) -> dict[str, Any]:
        """A description for JSON: the type, and the fields."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        lists = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
        return {"type": self.type_name, **lists}

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """The column of a JSON description."""
        lists = {n: tuple(v) for n, v in description.items() if isinstance(v, list)}
        values: dict[str, Any] = {**description, **lists}
        del values["type"]
        return cls(**values)

    @classmethod
    def summary(cls, values: Any, show: Callable[[Any], str]) -> str:
        """The five most frequent values of a Series with their counts, formatted by ``show``."""
        counts = values.astype(str).value_counts()
        texts = [f"{show(text)} ({count})" for text, count in counts.iloc[:5].items()]
        more = len(counts) - len(texts)
        return ", ".join(texts) + (f" and {more} more" if more else "")

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
