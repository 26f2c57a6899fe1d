"""Columns of dates, durations and times of day: a trend, and seasons as periodic inputs."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ulmus.tables.cells import Cells, text_of
from ulmus.tables.columns.base import missing_feature
from ulmus.tables.columns.numeric import NumericColumn
from ulmus.tables.columns.statistics import NumericStatistics
from ulmus.tables.dates import DATE_TEXT, days_since_1970, iso_text, parsed_dates

YEAR = 365.2425
# Seasons of dates, and their periods in days.
SEASONS = {"year": YEAR, "week": 7.0, "day": 1.0}
# Days of the week, which have an indicator each. Day 0, 1 January 1970, was a Thursday.
WEEKDAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
# Waves of other seasons: a second one follows seasons that are not symmetric, such as that of CO2.
HARMONICS = (1, 2)
# A season requires dates of one period, whose steps are at most a third of the period.
STEPS = 3


class DayStatistics(NumericStatistics):
    """Range and first values of a column of days."""

    def remarks(self) -> list[str]:
        """Successive days are no identifiers."""
        return []


@dataclass(frozen=True)
class DayColumn(NumericColumn):
    """A column whose cells are numbers of days, encoded as such and as seasons.

    A season is a point on a closed curve: sine and cosine of the phase of a date in its period, and
    of twice the phase. That of the week is an indicator of each day.
    """

    seasons: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The trend, four or seven inputs for each season, and an indicator of missing cells."""
        waves = [f"{wave} {k}" for k in HARMONICS for wave in ("sin", "cos")]
        seasons = (
            f"{self.name} ({season}, {one})"
            for season in self.seasons
            for one in (WEEKDAYS if season == "week" else waves)
        )
        missing = (missing_feature(self.name),) if self.indicates_missing else ()
        return (self.name, *seasons, *missing)

    @classmethod
    def statistics(cls) -> NumericStatistics:
        """Range and first values."""
        return DayStatistics(cls.parse)

    @classmethod
    def parse(cls, cells: Cells) -> np.ndarray:
        """Days."""
        return cells.days()

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Days, seasons, and indicators of missing cells, shape (n, features)."""
        inputs = [codes]
        for season in self.seasons:
            if season == "week":
                weekday = np.floor(codes) % 7
                same = [weekday == k for k in range(7)]
                inputs += [np.where(np.isnan(codes), np.nan, day) for day in same]
                continue
            phase = 2 * np.pi * codes / SEASONS[season]
            inputs += [wave(k * phase) for k in HARMONICS for wave in (np.sin, np.cos)]
        if self.indicates_missing:
            inputs.append(np.isnan(codes))
        return np.stack(inputs, axis=1).astype(float)

    @classmethod
    def summary(cls, values: Any, show: Callable[[Any], str]) -> str:
        """Range."""
        return f"{values.min()} to {values.max()}"


class DateColumn(DayColumn):
    """A column of dates, encoded as days since 1970 and as seasons.

    Parameters
    ----------
    name : str
        Name of the column.
    fill : float
        Median in days since 1970, which replaces missing cells if the other columns do not predict
        them.
    seasons : tuple of {"year", "week", "day"}
        Those that the range and the steps of the training dates resolve: one period at least, and
        steps of at most a third of a period.

    Examples
    --------
    >>> from ulmus.tables import DateColumn
    >>> DateColumn("day").parse_text("1970-01-11")
    10.0
    """

    type_name, plural, continuous = "date", "dates", True
    note = "Dates encoded as trend and seasons: {}."

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Datetimes and periods."""
        return dtype.kind == "M" or type(dtype).__name__ == "PeriodDtype"

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Dates of Python, or texts such as 2026-12-31."""
        if all(isinstance(value, datetime.date) for value in values):
            return True
        return all(DATE_TEXT.fullmatch(text_of(value)) for value in values)

    @classmethod
    def from_statistics(cls, name: str, statistics: NumericStatistics) -> Self:
        """A column with the median and the seasons of its dates."""
        values = np.unique(statistics.values)
        step = float(np.median(np.diff(values))) if len(values) > 1 else np.inf
        span = statistics.high - statistics.low + step
        seasons = tuple(
            season
            for season, period in SEASONS.items()
            if span >= 0.99 * period and step <= period / STEPS
        )
        fill = float(np.median(statistics.values))
        return cls(name, fill, seasons, n_missing=statistics.n_missing)

    @property
    def label(self) -> str:
        """Name and seasons."""
        return f"{self.name} ({', '.join(self.seasons) or 'no season'})"

    def parse_text(self, text: str) -> float | str:
        """Days since 1970 of a date; other numbers are days already."""
        if not DATE_TEXT.fullmatch(text):
            return super().parse_text(text)
        import pandas as pd

        days = float(days_since_1970(parsed_dates(pd.Series([text])))[0])
        if np.isnan(days):
            raise ValueError(f"{text!r} is not a date; write it as 2026-12-31.")
        return days

    def shown(self, days: float) -> str:
        """A date as text, with its time of day if the dates of the column have one."""
        return iso_text(days, with_time="day" in self.seasons)


class DurationColumn(DayColumn):
    """A column of durations, encoded as days.

    Parameters
    ----------
    name : str
        Name of the column.
    fill : float
        Median in days, which replaces missing cells if the other columns do not predict them.
    seasons : tuple
        Always empty.

    Examples
    --------
    >>> from ulmus.tables import DurationColumn
    >>> DurationColumn("age").features
    ('age',)
    """

    type_name, plural, continuous = "duration", "durations", True
    note = "Durations encoded as days: {}."

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Timedeltas."""
        return bool(dtype.kind == "m")

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Timedeltas of Python."""
        return all(isinstance(value, datetime.timedelta) for value in values)


class TimeColumn(DayColumn):
    """A column of times of day, encoded as fractions of a day and as a season of the day.

    Parameters
    ----------
    name : str
        Name of the column.
    fill : float
        Median as a fraction of a day, which replaces missing cells if the other columns do not
        predict them.
    seasons : tuple
        Always ``("day",)``.

    Examples
    --------
    >>> from ulmus.tables import TimeColumn
    >>> TimeColumn("hour", 0.5, ("day",)).features
    ('hour', 'hour (day, sin 1)', 'hour (day, cos 1)', 'hour (day, sin 2)', 'hour (day, cos 2)')
    """

    type_name, plural, continuous = "time", "times of day", True
    note = "Times of day encoded as fractions of a day and as a season of the day: {}."

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """No dtype of pandas is a time of day."""
        return False

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Times of Python."""
        return all(isinstance(value, datetime.time) for value in values)

    @classmethod
    def from_statistics(cls, name: str, statistics: NumericStatistics) -> Self:
        """A column with the median of its times."""
        fill = float(np.median(statistics.values))
        return cls(name, fill, ("day",), n_missing=statistics.n_missing)
