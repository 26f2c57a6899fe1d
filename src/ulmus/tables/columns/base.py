"""Base class of the column types, and the statistics from which a column is described."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, ClassVar, Self

import numpy as np

from ulmus.core.layer.levels import Levels
from ulmus.tables.cells import LEADING_ZERO, Cells, number_of, text_of
from ulmus.tables.dates import AMBIGUOUS_DATE_TEXT, DATE_TEXT

# A category of more levels than this is encoded by target statistics, not by indicators.
MAX_INDICATORS = 30
# Levels of a category of which no more are counted.
MAX_LEVELS = 100_000
# Number of values from which a median and the steps of dates are computed.
MEDIAN_VALUES = 100_000


class ColumnUse(Enum):
    """Whether a column is an input, or why it is excluded."""

    INPUT = "input"
    EMPTY = "no values"
    CONSTANT = "constant"
    IDENTIFIER = "nearly all texts are distinct"


class ColumnStatistics(ABC):
    """What decides whether and how a column becomes an input."""

    n_missing = 0  # cells without a value
    n_values = 0  # cells with a value

    def add(self, cells: Cells) -> None:
        """Update by further cells."""
        present = int(np.sum(cells.present))
        self._update(cells)
        self.n_missing += len(cells.present) - present
        self.n_values += present

    @abstractmethod
    def _update(self, cells: Cells) -> None:
        """Update the statistics of values."""

    @property
    @abstractmethod
    def varies(self) -> bool:
        """Whether there are two values."""

    @property
    def use(self) -> ColumnUse:
        """An input, unless all cells are equal."""
        if not self.n_values:
            return ColumnUse.EMPTY
        return ColumnUse.INPUT if self.varies or self.n_missing else ColumnUse.CONSTANT

    def doubts(self) -> list[str]:
        """What may be wrong with the column, as ends of a sentence that starts with its name."""
        return []

    def remarks(self) -> list[str]:
        """What is less likely to be wrong, likewise."""
        return []


class NumericStatistics(ColumnStatistics):
    """Range and first values of a column; ``parse`` returns one number per cell, or NaN."""

    def __init__(self, parse: Callable[[Cells], np.ndarray]) -> None:
        self.parse = parse
        self.parts: list[np.ndarray] = []
        self.low, self.high = np.inf, -np.inf
        self.has_separators = False

    def _update(self, cells: Cells) -> None:
        """Update range, first values, and what the texts look like."""
        values = self.parse(cells)
        values = values[~np.isnan(values)]
        if len(values):
            self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        if self.n_values < MEDIAN_VALUES:
            self.parts.append(values[: MEDIAN_VALUES - self.n_values].copy())
        if not cells.is_typed:
            self.has_separators |= any("," in text_of(value) for value in cells.distinct())

    @property
    def varies(self) -> bool:
        """Whether two numbers differ."""
        return bool(self.low < self.high)

    @property
    def values(self) -> np.ndarray:
        """The first values."""
        return np.concatenate(self.parts)

    def doubts(self) -> list[str]:
        """Thousands separators."""
        text = "contains commas, which are read as thousands separators"
        return [text] if self.has_separators else []

    def remarks(self) -> list[str]:
        """Numbers that count the rows."""
        values = np.unique(self.values)
        counts_rows = len(values) == self.n_values == self.high - self.low + 1 >= 10
        if counts_rows and np.all(values == np.round(values)):
            return ["numbers the rows; drop it if it is an identifier"]
        return []


class CategoryStatistics(ColumnStatistics):
    """Counts of the texts of a column."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.declared: tuple[str, ...] = ()
        self.is_typed = self.is_ordered = False

    def _update(self, cells: Cells) -> None:
        """Update the counts, unless there are too many texts already."""
        if len(self.counts) <= MAX_LEVELS:
            self.counts.update(cells.counts())
        self.declared = self.declared or cells.declared_categories
        self.is_typed |= cells.is_typed
        self.is_ordered |= bool(getattr(cells.series.dtype, "ordered", False))

    @property
    def varies(self) -> bool:
        """Whether two texts differ."""
        return len(self.counts) > 1

    @property
    def use(self) -> ColumnUse:
        """An input, unless all cells are equal or nearly all of many texts are distinct."""
        few_repeats = len(self.counts) > max(MAX_INDICATORS, self.n_values / 2)
        all_distinct = len(self.counts) == self.n_values >= 10
        if self.varies and (few_repeats or all_distinct) and not self.is_ordered:
            return ColumnUse.IDENTIFIER
        return super().use

    def doubts(self) -> list[str]:
        """Dates in other forms."""
        total = sum(self.counts.values())
        forms = (DATE_TEXT, AMBIGUOUS_DATE_TEXT)
        dates = sum(n for text, n in self.counts.items() if any(f.fullmatch(text) for f in forms))
        text = "probably contains dates; write them as 2023-12-31 to use them as dates"
        return [text] if 2 * dates > total else []

    def remarks(self) -> list[str]:
        """Numbers among texts."""
        numbers = {text for text in self.counts if number_of(text) is not None}
        if self.is_typed or not numbers:
            return []
        if any(LEADING_ZERO.fullmatch(text) for text in numbers):
            return ["has leading zeros and is used as names"]
        mixed = len(numbers) < len(self.counts)
        return ["mixes numbers and texts and is used as a category"] if mixed else []

    @property
    def categories(self) -> tuple[str, ...]:
        """Categories in their declared order, then numbers by size, then texts."""
        declared = [text for text in dict.fromkeys(self.declared) if text in self.counts]
        others = sorted(set(self.counts).difference(declared), key=_by_number)
        return tuple(map(str, [*declared, *others]))


def _by_number(text: str) -> tuple[float, str]:
    number = number_of(text)
    return (float("inf"), text) if number is None else (number, text)


def as_lists(value: Any) -> Any:
    """Nested tuples as lists, for JSON."""
    return [as_lists(one) for one in value] if isinstance(value, tuple) else value


def as_tuples(value: Any) -> Any:
    """Nested lists of JSON as tuples."""
    return tuple(as_tuples(one) for one in value) if isinstance(value, list) else value


def missing_feature(name: str) -> str:
    """Name of the input that indicates missing cells of a column."""
    return f"{name} (missing)"


@dataclass(frozen=True)
class Column(ABC):
    """One column of a table; each type of column is a subclass.

    Attributes
    ----------
    name : str
        Name of the column.
    n_missing : int
        Number of training rows that have no value. If there are any, an input indicates them.
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
    n_missing: int = field(default=0, kw_only=True)  # training rows without a value
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
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {"type": self.type_name, **{name: as_lists(v) for name, v in values.items()}}

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """The column of a JSON description."""
        values = {name: as_tuples(v) for name, v in description.items() if name != "type"}
        return cls(**values)

    @classmethod
    def summary(cls, values: Any, show: Callable[[Any], str]) -> str:
        """The five most frequent values of a Series with their counts, formatted by ``show``."""
        counts = values.astype(str).value_counts()
        texts = [f"{show(text)} ({count})" for text, count in counts.iloc[:5].items()]
        more = len(counts) - len(texts)
        return ", ".join(texts) + (f" and {more} more" if more else "")

    @property
    @abstractmethod
    def features(self) -> tuple[str, ...]:
        """Names of the inputs that encode it."""

    @property
    def predictors(self) -> tuple[bool, ...]:
        """Which inputs predict missing ones: all but indicators of missing cells."""
        return tuple(name != missing_feature(self.name) for name in self.features)

    @property
    def fill_code(self) -> float:
        """The code that replaces missing cells where the other columns are not used for that."""
        return 0.0

    @property
    def indicates_missing(self) -> bool:
        """Whether an input indicates missing cells."""
        return self.n_missing > 0

    @property
    def levels(self) -> Levels | None:
        """Its categories as values of the inputs; None for a column of another type."""
        return None

    @property
    def label(self) -> str:
        """How a note names the column."""
        return self.name

    @abstractmethod
    def parse(self, cells: Cells) -> np.ndarray:
        """One code per cell, NaN where missing."""

    @abstractmethod
    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Inputs of a model, shape (n, features)."""

    def to_pandas(self, codes: np.ndarray) -> Any:
        """Codes as values of a data frame."""
        return codes

    @abstractmethod
    def parse_text(self, text: str) -> float | str:
        """A value of the column that was written as text."""
