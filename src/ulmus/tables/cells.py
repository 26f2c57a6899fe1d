"""The cells of one column of a data frame: which are missing, and their values as numbers."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting
from ulmus.tables.dates import days_since_1970, fraction_of_day, parsed_dates

BOOLEANS = {"true": 1.0, "false": 0.0}
# Numbers with thousands separators, and texts of digits that are names: 1,234.5 and 00123.
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
LEADING_ZERO = re.compile(r"0\d+")
# Code of a category that the model does not have.
UNKNOWN = -1.0
# Objects that are neither numbers nor dates nor texts.
NESTED = (list, dict, tuple, set, bytes, np.ndarray)


@dataclass(frozen=True)
class Cells:
    """The cells of one column of a data frame."""

    name: str  # name of the column
    series: Any  # its values
    na_values: tuple[str, ...] = ()  # texts and numbers that stand for a missing value
    first_row: int = 0  # rows of the table before these, for messages
    unknown: str = "error"  # the rule for unknown categories, "error" or "average"

    @cached_property
    def present(self) -> np.ndarray:
        """Which cells have a value."""
        present = ~np.asarray(self.series.isna(), dtype=bool)
        if not self.is_typed:
            index, texts = self._distinct_texts
            absent = ("", *self.na_values)
            # Conversion of missing numbers to text leaves "nan".
            given = [text not in absent and text.lower() != "nan" for text in texts]
            present &= np.array(given, dtype=bool)[index]
        elif self.na_values:
            numbers = [text_of(n) for n in map(number_of, self.na_values) if n is not None]
            present &= ~np.isin(self._texts.astype(str), [*numbers, *self.na_values])
        return present

    @cached_property
    def is_numeric(self) -> bool:
        """Whether the dtype is one of numbers or booleans."""
        import pandas as pd

        dtype = self.series.dtype
        if dtype.kind == "c":
            text = f"column {self.name!r} contains complex numbers"
            raise ValueError(f"{text}; give their real and imaginary parts as columns.")
        return bool(dtype.kind == "b" or pd.api.types.is_numeric_dtype(dtype))

    @property
    def is_typed(self) -> bool:
        """Whether the dtype determines the column type; texts and objects do not."""
        dtype = self.series.dtype
        is_date = dtype.kind in "mM" or type(dtype).__name__ == "PeriodDtype"
        return self.is_numeric or is_date or hasattr(dtype, "categories")

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, Any]:
        """Index of each cell among the distinct values, and these."""
        import pandas as pd

        try:
            return pd.factorize(self.series, use_na_sentinel=False)
        except TypeError:  # lists and dictionaries are not hashable
            return np.arange(len(self.series)), list(self.series)

    def distinct(self) -> list[Any]:
        """Distinct values of the cells that have one; nested values are refused."""
        index, values = self._distinct
        present = [values[i] for i in np.unique(index[self.present])]
        nested = next((value for value in present if isinstance(value, NESTED)), None)
        if nested is not None:
            text = f"column {self.name!r} contains values of the type {type(nested).__name__}"
            raise ValueError(f"{text}, not numbers, dates or categories; exclude the column.")
        return present

    @cached_property
    def _distinct_texts(self) -> tuple[np.ndarray, np.ndarray]:
        """Index of each cell among the distinct values, and these as text."""
        index, values = self._distinct
        return index, np.array([text_of(value) for value in values], dtype=object)

    @property
    def _texts(self) -> np.ndarray:
        """All cells as text; whole numbers without a decimal point."""
        index, texts = self._distinct_texts
        return texts[index]

    @property
    def texts(self) -> np.ndarray:
        """The cells that have a value, as text."""
        return self._texts[self.present]

    def counts(self) -> dict[str, int]:
        """Number of the cells with each text, without cells that have no value."""
        index, texts = self._distinct_texts
        frequencies = np.bincount(index[self.present], minlength=len(texts))
        counts: dict[str, int] = {}
        for text, count in zip(texts, frequencies, strict=True):
            if count:
                counts[text] = counts.get(text, 0) + int(count)
        return counts

    @property
    def declared_categories(self) -> tuple[str, ...]:
        """The categories of a categorical dtype, in their order."""
        return tuple(map(text_of, getattr(self.series.dtype, "categories", ())))

    def numbers(self) -> np.ndarray:
        """The cells as numbers; NaN where missing."""
        if self.is_numeric:
            values = self.series.to_numpy(dtype=float, na_value=np.nan)
        else:
            index, distinct = self._distinct
            parsed = [
                BOOLEANS.get(text.lower(), number_of(text)) for text in map(text_of, distinct)
            ]
            self.require(np.array([n is not None for n in parsed], dtype=bool)[index], "a number")
            values = np.array([np.nan if n is None else n for n in parsed], dtype=float)[index]
        return self._finite(values)

    def days(self) -> np.ndarray:
        """Dates as days since 1970, times of day and durations as days; NaN where missing."""
        if self.is_numeric:
            return self.numbers()
        index, distinct = self._distinct
        if self.series.dtype.kind == "m":
            values = days_since_1970(self.series.to_numpy(dtype="timedelta64[us]"))
        elif any(isinstance(value, datetime.time) for value in distinct):
            values = np.array([fraction_of_day(value) for value in distinct], dtype=float)[index]
        else:
            values = days_since_1970(parsed_dates(self.series.where(self.present)))
        self.require(~np.isnan(values), "a date", "write it as 2026-12-31")
        return self._finite(values)

    def codes(self, categories: tuple[str, ...]) -> np.ndarray:
        """The index of each cell among categories; NaN where missing, -1 where unknown."""
        positions = {category: float(i) for i, category in enumerate(categories)}
        index, texts = self._distinct_texts
        codes = np.array([positions.get(text, np.nan) for text in texts], dtype=float)[index]
        unknown = self.present & np.isnan(codes)
        if unknown.any() and self.unknown == "error":
            text = self._texts[int(np.argmax(unknown))]
            clause = f"which is not a category of the model ({some(categories)})"
            average = Setting("unknown", "average")
            raise self._error(repr(text), unknown, clause, "correct it", average)
        return np.where(self.present, np.where(unknown, UNKNOWN, codes), np.nan)

    def require(self, valid: np.ndarray, noun: str, suggestion: str = "correct it") -> None:
        """Refuse present cells that are not valid."""
        invalid = self.present & ~valid
        if invalid.any():
            text = repr(self._texts[int(np.argmax(invalid))])
            raise self._error(text, invalid, f"where {noun} is expected", suggestion)

    def _finite(self, values: np.ndarray) -> np.ndarray:
        """The values of present cells, none of which may be infinite."""
        values = np.where(self.present, values, np.nan)
        infinite = np.isinf(values)
        if infinite.any():
            raise self._error("infinity", infinite)
        return values

    def _error(
        self,
        value: str,
        rows: np.ndarray,
        clause: str = "",
        *suggestions: str | Setting,
    ) -> InputError:
        """An error about the first of some rows."""
        row = self.first_row + int(np.argmax(rows)) + 1
        text = f"column {self.name!r} contains {value} in data row {row}"
        text = f"{text}, {clause}" if clause else text
        suggestions = (
            *(suggestions or ("correct it",)),
            Setting("na_values", phrase="add it to {}"),
        )
        return InputError(Message("invalid-cell", text, suggestions=suggestions))


def number_of(text: str) -> float | None:
    """The number that a text is, or None; digits with underscores, as in Python, are no number.

    Commas in front of groups of three digits are thousands separators.
    """
    if "," in text and THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def text_of(value: Any) -> str:
    """A value as text; whole numbers without a decimal point."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def some(values: Iterable[Any], most: int = 6) -> str:
    """The first of some values, for a message."""
    texts = [str(value) for value in values]
    return ", ".join(texts[:most]) + (", ..." if len(texts) > most else "")
