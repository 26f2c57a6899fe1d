"""Statistics of the cells of a column, which decide whether and how it becomes an input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from enum import Enum

import numpy as np

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
    IDENTIFIER = "more than half of the texts are distinct"


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
        """An input, unless all cells are equal or more than half of many texts occur once."""
        single = sum(count == 1 for count in self.counts.values())
        few_repeats = len(self.counts) > MAX_INDICATORS and 2 * single > sum(self.counts.values())
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


class DigitTexts:
    """Texts of digits, which may be names or numbers."""

    def __init__(self) -> None:
        self.counts = DigitNames()

    def add(self, cells: Cells) -> bool:
        """Update by further cells; whether all are texts of digits or have no value.

        Texts that stand for a missing value may be why numbers are texts.
        """
        absent = cells.series[~cells.present]
        if cells.is_typed or not absent.isna().all():
            return False
        texts = cells.distinct()
        if not all(isinstance(text, str) and text.strip().isdecimal() for text in texts):
            return False
        self.counts.add(cells)
        return True

    @property
    def are_names(self) -> bool:
        """Whether they are names: at most half of them are distinct."""
        return 2 * len(self.counts.counts) <= self.counts.n_values


class DigitNames(CategoryStatistics):
    """Counts of texts of digits that are names."""

    def doubts(self) -> list[str]:
        """That they may be numbers."""
        text = "has texts of digits, which are used as names; use pandas.to_numeric for numbers"
        return [f"{text}, or list it in categorical to silence this"]
