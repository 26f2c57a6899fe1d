"""The cells of one column: which are missing, what they hold, and what they are as numbers."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

NUMBER, TRUTH, DATE, CATEGORY = KINDS = ("number", "truth value", "date", "category")
# A column of texts of which at least this share are numbers is one of numbers with mistakes.
MOSTLY_NUMBERS = 0.8
SECONDS_OF_DAY = 86_400.0
# Texts that are dates, perhaps with a time: 2026-12-31, 2026-12-31 10:30.
DATE_TEXT = re.compile(r"\d{4}-(0[1-9]|1[0-2])-([0-2]\d|3[01])([T ]\d\d:\d\d.*)?")
# Texts that people mean as dates, though nobody can tell days from months: 31.12.2026, 12/31/26.
OTHER_DATE_TEXT = re.compile(
    r"(\d{1,2}([./-])\d{1,2}\2(\d{4}|\d{2})|\d{4}([./])\d{1,2}\4\d{1,2})([T ,]+\d\d?:.*)?"
)
# Microseconds reach from before year 1 to after year 9999; nanoseconds do not.
EPOCH = np.datetime64(0, "us")
# What Python calls the parts of a table that hold no numbers, dates or texts.
NO_CELLS = (list, dict, tuple, set, bytes, np.ndarray)


@dataclass(frozen=True)
class Cells:
    """The cells of one column of a data frame.

    Parameters
    ----------
    name : str
        Name of the column.
    series : pandas.Series
        Its values.
    marks : tuple of str
        Texts and numbers that stand for a missing value.
    first_row : int
        Rows of the table before these, for messages.
    """

    name: str
    series: Any
    marks: tuple[str, ...] = ()
    first_row: int = 0

    @cached_property
    def present(self) -> np.ndarray:
        """Which cells have a value."""
        present = ~np.asarray(self.series.isna(), dtype=bool)
        if self._dtype_kind is None:
            texts = self._texts
            present &= np.array([text not in ("", *self.marks) for text in texts], dtype=bool)
        elif self.marks:
            marked = [_text(value) for value in map(_number, self.marks) if value is not None]
            present &= ~np.isin(self._texts.astype(str), [*marked, *self.marks])
        return present

    @cached_property
    def kind(self) -> str | None:
        """What the column holds; None if no cell has a value."""
        if not self.present.any():
            return None
        return self._dtype_kind or self._kind_of_objects()

    @cached_property
    def _dtype_kind(self) -> str | None:
        """What the type of the column says; None for texts and objects."""
        import pandas as pd

        dtype, types = self.series.dtype, pd.api.types
        if isinstance(dtype, pd.CategoricalDtype):
            return CATEGORY
        if types.is_bool_dtype(dtype):
            return TRUTH
        if dtype.kind in "mM":
            return DATE
        if dtype.kind == "c":
            raise ValueError(
                f"column {self.name!r} holds complex numbers; give their real and imaginary parts "
                "as columns of their own."
            )
        if types.is_numeric_dtype(dtype):
            return NUMBER
        return None

    def _kind_of_objects(self) -> str:
        """What a column of texts or objects holds, by its values."""
        locations, values = self._distinct
        known = [values[place] for place in np.unique(locations[self.present])]
        odd = next((value for value in known if isinstance(value, NO_CELLS)), None)
        if odd is not None:
            raise ValueError(
                f"column {self.name!r} holds values of the type {type(odd).__name__}, which are no "
                "numbers, dates or categories; leave the column out."
            )
        if all(isinstance(value, (datetime.date, datetime.time)) for value in known):
            return DATE
        if all(isinstance(value, (bool, np.bool_)) for value in known):
            return TRUTH
        texts = [_text(value) for value in known]
        if all(map(DATE_TEXT.fullmatch, texts)):
            return DATE
        share = np.mean([_number(text) is not None for text in texts])
        return NUMBER if share >= MOSTLY_NUMBERS else CATEGORY

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, Any]:
        """Place of each cell among the distinct values, and these."""
        import pandas as pd

        try:
            return pd.factorize(self.series, use_na_sentinel=False)
        except TypeError:  # lists and dictionaries cannot be counted
            return np.arange(len(self.series)), list(self.series)

    @cached_property
    def _texts(self) -> np.ndarray:
        """The cells as text; whole numbers without a decimal point."""
        locations, values = self._distinct
        return np.array([_text(value) for value in values], dtype=object)[locations]

    @property
    def declared(self) -> tuple[str, ...]:
        """The categories that the type of the column lists, in their order."""
        return tuple(map(_text, getattr(self.series.dtype, "categories", ())))

    @property
    def texts(self) -> np.ndarray:
        """The cells that have a value as text."""
        return self._texts[self.present]

    def numbers(self, kind: str) -> np.ndarray:
        """The cells as numbers, of which absent ones are NaN."""
        if kind == DATE and self._dtype_kind not in (NUMBER, TRUTH):
            values = self._days()
        elif self._dtype_kind in (NUMBER, TRUTH):
            values = self.series.to_numpy(dtype=float, na_value=np.nan)
        else:
            values = self._parsed()
        values = np.where(self.present, values, np.nan)
        if kind == TRUTH:
            self._require_truth(values)
        infinite = np.isinf(values)
        if infinite.any():
            raise ValueError(
                f"column {self.name!r} holds infinity in {self.place(infinite)}; correct it, or "
                "name it as a mark of missing values."
            )
        return values

    def _require_truth(self, values: np.ndarray) -> None:
        wrong = ~np.isin(values, (0.0, 1.0)) & self.present
        if wrong.any():
            raise ValueError(
                f"column {self.name!r} holds {self._texts[int(np.argmax(wrong))]!r} in "
                f"{self.place(wrong)}, where a truth value should be; write true or false, or 1 or "
                "0."
            )

    def codes(self, categories: tuple[str, ...]) -> np.ndarray:
        """The place of each cell among categories, of which absent ones are NaN."""
        locations = {category: float(place) for place, category in enumerate(categories)}
        codes = np.array([locations.get(text, np.nan) for text in self._texts], dtype=float)
        unseen = self.present & np.isnan(codes)
        if unseen.any():
            text = self._texts[int(np.argmax(unseen))]
            raise ValueError(
                f"column {self.name!r} holds {text!r} in {self.place(unseen)}, which is none of "
                f"the model's categories ({some(categories)}); correct it, or name it as a mark "
                "of missing values."
            )
        return np.where(self.present, codes, np.nan)

    def _parsed(self) -> np.ndarray:
        """Numbers that were read as text, or as truth values."""
        truths = {"true": 1.0, "false": 0.0}
        locations, values = self._distinct
        texts = [_text(value) for value in values]
        numbers = [truths.get(text.lower(), _number(text)) for text in texts]
        parsed = np.array([np.nan if n is None else n for n in numbers], dtype=float)[locations]
        wrong = np.array([n is None for n in numbers], dtype=bool)[locations] & self.present
        if wrong.any():
            raise ValueError(
                f"column {self.name!r} holds {self._texts[int(np.argmax(wrong))]!r} in "
                f"{self.place(wrong)}, where a number should be; correct it, or name it as a mark "
                "of missing values."
            )
        return parsed

    def _days(self) -> np.ndarray:
        """Dates as days since 1970; times of day and spans of time as days."""
        locations, values = self._distinct
        if self.series.dtype.kind == "m":
            return _in_days(self.series.to_numpy(dtype="timedelta64[us]"))
        if any(isinstance(value, datetime.time) for value in values):
            days = np.array([_share_of_day(value) for value in values], dtype=float)[locations]
        else:
            days = days_since_1970(self.series.where(self.present))
        wrong = self.present & np.isnan(days)
        if wrong.any():
            raise ValueError(
                f"column {self.name!r} holds {self._texts[int(np.argmax(wrong))]!r} in "
                f"{self.place(wrong)}, where a date should be; write it as 2026-12-31, or name it "
                "as a mark of missing values."
            )
        return days

    def place(self, rows: np.ndarray) -> str:
        """How messages call the first of some rows."""
        return f"data row {self.first_row + int(np.argmax(rows)) + 1}"


def days_since_1970(dates: Any) -> np.ndarray:
    """A series of dates, perhaps as text, as days since 1970; NaN for what is no date."""
    import pandas as pd

    known = pd.to_datetime(dates, utc=True, format="ISO8601", errors="coerce")
    return _in_days(known.to_numpy(dtype="datetime64[us]") - EPOCH)


def _in_days(spans: np.ndarray) -> np.ndarray:
    """Spans of time as days, of which absent ones are NaN."""
    return spans / np.timedelta64(1, "s") / SECONDS_OF_DAY


def _share_of_day(value: Any) -> float:
    if not isinstance(value, datetime.time):
        return float("nan")
    seconds = 3600 * value.hour + 60 * value.minute + value.second + value.microsecond / 1e6
    return seconds / SECONDS_OF_DAY


def _number(text: str) -> float | None:
    """The number that a text is; Python's own digits with underscores are none."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _text(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def some(values: Iterable[Any], most: int = 6) -> str:
    """The first of some values, for a message."""
    listed = [str(value) for value in values]
    return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "")
