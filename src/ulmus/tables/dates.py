"""Dates as days since 1970, durations as days."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np

from ulmus.tables.missing import is_missing, missing_mask

# Types of dates and of durations; those of pandas are subclasses.
DATES = datetime.date, np.datetime64
DURATIONS = datetime.timedelta, np.timedelta64
# Microseconds cover the years 1 to 9999; nanoseconds do not.
EPOCH, DAY = np.datetime64(0, "us"), np.timedelta64(1, "D")
# ISO 8601 dates, perhaps with a time: 2026-12, 2026-12-31, 2026-12-31 10:30.
DATE_TEXT = re.compile(r"\d{4}-(0[1-9]|1[0-2])(-([0-2]\d|3[01])([T ]\d\d:\d\d.*)?)?")
# Dates in which day and month are ambiguous: 31.12.2026, 12/31/26.
AMBIGUOUS_DATE_TEXT = re.compile(
    r"(\d{1,2}([./-])\d{1,2}\2(\d{4}|\d{2})|\d{4}([./])\d{1,2}\4\d{1,2})([T ,]+\d\d?:.*)?"
)


def days_since_1970(values: np.ndarray) -> np.ndarray:
    """Datetimes as days since 1970, durations as days; NaT becomes NaN."""
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]") - EPOCH
    return values / DAY


def datetimes(values: np.ndarray) -> np.ndarray:
    """Python dates as datetime64 in UTC, with NaT for missing ones; other arrays unchanged."""
    present = values[~missing_mask(values)] if values.dtype.kind == "O" else ()
    if not len(present) or not all(isinstance(value, datetime.date) for value in present):
        return values
    plain = [None if is_missing(value) else _in_utc(value) for value in values.flat]
    return np.array(plain, dtype="datetime64[us]").reshape(values.shape)


def _in_utc(date: Any) -> Any:
    if getattr(date, "tzinfo", None) is None:
        return date
    return date.astimezone(datetime.UTC).replace(tzinfo=None)


def parsed_dates(dates: Any) -> np.ndarray:
    """Dates of a pandas Series, perhaps as text, as datetime64 in UTC; NaT for other cells."""
    import pandas as pd

    if isinstance(dates.dtype, pd.PeriodDtype):
        dates = dates.dt.to_timestamp()
    utc = pd.to_datetime(dates, utc=True, format="ISO8601", errors="coerce")
    return np.asarray(utc.to_numpy(dtype="datetime64[us]"))


def fraction_of_day(value: Any) -> float:
    """A time of day in days; NaN for anything else."""
    if not isinstance(value, datetime.time):
        return float("nan")
    seconds = 3600 * value.hour + 60 * value.minute + value.second + value.microsecond / 1e6
    return seconds / 86_400.0


def iso_text(days: float, *, with_time: bool) -> str:
    """Days since 1970 as text: a date, and with ``with_time`` hours and minutes."""
    unit = 1440 if with_time else 1
    moment = EPOCH + np.timedelta64(round(days * unit) * (86_400 // unit), "s")
    return str(np.datetime_as_string(moment, unit="m" if with_time else "D"))
