"""Statistics of one column, updated with every part of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from enum import Enum

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
