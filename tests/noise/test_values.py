"""Times, coordinates and groups as people have them."""

from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from messages import mentions
from models import plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.noise import AR1, Clustered, Exponential
from ulmus.noise.validation import coordinates, labels, times

MONTHS = pd.date_range("1999-11-01", periods=5, freq="MS")
DAYS = np.array([0, 30, 61, 92, 121]) + 10896.0


@pytest.mark.parametrize(
    "values",
    [
        MONTHS,
        pd.Series(MONTHS),
        MONTHS.tz_localize("UTC"),
        pd.Series(MONTHS.tz_localize("UTC")),
        list(MONTHS),
        [stamp.to_pydatetime() for stamp in MONTHS],
        [stamp.to_pydatetime().replace(tzinfo=UTC) for stamp in MONTHS],
        [stamp.date() for stamp in MONTHS],
        [str(stamp.date()) for stamp in MONTHS],
        pd.Series(MONTHS).dt.strftime("%Y-%m-%dT00:00:00Z"),
        np.array(["1999-11", "1999-12", "2000-01", "2000-02", "2000-03"]),
        pl.Series(MONTHS),
        pl.Series(MONTHS).cast(pl.Date),
        pa.array(MONTHS),
        DAYS,
        DAYS.astype(object),
        DAYS.astype(np.float32),
    ],
)
def test_dates_of_all_kinds_are_days(values):
    assert_array_equal(times(values), DAYS)


def test_time_zones_count():
    summer = pd.date_range("2020-03-28 12:00", periods=3, tz="Europe/Zurich")
    assert_allclose(np.diff(times(pd.Series(summer))), [23 / 24, 1.0])


def test_spans_of_time_are_days():
    assert_array_equal(times(MONTHS - MONTHS[0]), DAYS - DAYS[0])


def test_dates_beyond_the_range_of_nanoseconds():
    long_ago = [date(1000, 1, 1), date(1000, 1, 11), date(2900, 1, 1)]
    assert_array_equal(np.diff(times(long_ago))[:1], [10])
    assert np.all(np.diff(times(np.array(long_ago, dtype="datetime64[D]"))) > 0)


@pytest.mark.parametrize("absent", [pd.NaT, None])
def test_a_missing_date_is_no_number(absent):
    assert_array_equal(np.isnan(times([MONTHS[0], absent])), [False, True])
    assert np.isnan(times(np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"))[1])


def test_labels_are_words_or_numbers():
    assert_array_equal(labels(pd.Series(["b", "a"], dtype="category")), ["b", "a"])
    assert_array_equal(labels([True, False]), ["True", "False"])
    assert labels(pd.Series([3, 1])).dtype.kind == "i"
    assert_array_equal(labels(MONTHS), DAYS)


@pytest.mark.parametrize(
    ("noise", "given", "words"),
    [
        (AR1(), {"time": "x"}, ("time='x'", "one value", "AR1(time=")),
        (AR1(), {"time": 3.0}, ("time=3.0", "one value")),
        (AR1(), {"time": ["1/2/2020"] * 9}, ("time of row 0", "'1/2/2020'", "dates first")),
        (AR1(), {"time": [datetime(2020, 1, 1), *[None] * 8]}, ("time of row 1", "nan", "exclude")),
        (AR1(), {"time": [MONTHS[0], *[2.0] * 8]}, ("time of row 0", "number or date")),
        (Exponential(), {"coords": ["x", "z"]}, ("coords of row 0", "'x'", "Exponential(coords=")),
        (Exponential(), {"coords": [[1.0, 2.0], [1.0]]}, ("coords is not an array", "each row")),
        (Exponential(), {"coords": np.empty((9, 0))}, ("coords has no columns", "at least one")),
        (
            Exponential(),
            {"coords": np.arange(9) * 1e200},
            ("coords contains 8e+200", "overflows", "unit"),
        ),
        (AR1(), {"time": np.arange(9) * 1e200}, ("time contains 8e+200", "overflows", "unit")),
        (AR1(), {"time": np.arange(9) * 1j}, ("time of row 0", "number or date")),
        (Clustered(), {"groups": "x"}, ("groups='x'", "one value", "Clustered(groups=")),
        (Clustered(), {"groups": [*"aabbccd", None, "e"]}, ("groups of row 7", "missing")),
        (Clustered(), {"groups": [1.0] * 8 + [np.nan]}, ("groups of row 8", "missing")),
        (Clustered(), {"groups": [pd.NA] + ["a"] * 8}, ("groups of row 0", "missing")),
        (Clustered(), {"groups": np.ones((9, 2))}, ("groups has shape (9, 2)", "one label")),
    ],
)
def test_invalid_locations_raise(noise, given, words):
    X = np.linspace(0, 1, 9)[:, None]
    with pytest.raises(ValueError, match=mentions(*words)):
        plain_ensemble(3, 4, noise=noise).fit(X, X[:, 0], **given)


def test_coordinates_are_numbers():
    assert_array_equal(coordinates(pd.DataFrame({"a": [1, 2], "b": [3, 4]})), [[1, 3], [2, 4]])


# ---------------------------------------------------------------- labels of several types


def test_groups_of_numbers_and_texts_are_refused():
    """The groups 1 and "1" were merged."""
    mixed = [1, "1", 2, "2"]
    for values in (mixed, tuple(mixed), np.array(mixed, dtype=object), pd.Series(mixed)):
        with pytest.raises(ValueError, match=mentions("groups", "strings", "1 of type int")):
            labels(values)


@pytest.mark.parametrize("values", [[3, 1, 3], [3.5, 1.0, 3.5]])
def test_numbers_among_objects_are_numbers(values):
    """They became strings, and numbers given to predict did not match them."""
    assert_array_equal(labels(np.array(values, dtype=object)), np.array(values))
    assert labels(np.array(values, dtype=object)).dtype == labels(values).dtype


def test_a_column_of_dates_read_from_csv_may_be_the_time():
    """The column was an input with seasons, and an error as the time of the noise."""
    text = pd.DataFrame({"date": pd.date_range("2020-01-01", periods=40).strftime("%Y-%m-%d")})
    y = np.random.default_rng(0).standard_normal(40)
    fits = [
        plain_ensemble(3, 8, noise=AR1(time="date"), random_state=0).fit(X, y)
        for X in (text, text.assign(date=pd.to_datetime(text.date)))
    ]
    assert_array_equal(*(fit.predict(text) for fit in fits))
