"""What a report says about rows and inputs: excluded rows, dates, contrasts and averages."""

import re

import numpy as np
import pandas as pd
import pytest
from models import small_ensemble
from numpy.testing import assert_allclose

from ulmus.report import TableSource, report_html
from ulmus.report.answers import InputContrast, IntervalEstimate
from ulmus.report.contents import report_contents
from ulmus.report.report_input import prepare_input
from ulmus.report.text import contrast_text, exclusion_texts


def contents(model, X, y):
    return report_contents(prepare_input(model, X, y), "a title", "y")


@pytest.fixture(scope="module")
def incomplete():
    """A table with dates, years, categories and missing values, and a model that drops these."""
    rng = np.random.default_rng(0)
    n = 160
    X = pd.DataFrame(
        {
            "day": pd.date_range("2001-01-01", periods=n, freq="30D"),
            "kind": rng.choice(["oak", "elm"], n),
            "year": rng.integers(1990, 2020, n),
            "depth": np.where(np.arange(n) % 4 == 1, np.nan, rng.uniform(0, 9, n)),
        }
    )
    y = np.where(X.kind == "elm", 2.0, 0.0) + X.depth.fillna(0) + 0.3 * rng.standard_normal(n)
    return X, y


def test_excluded_rows_are_reported(incomplete):
    X, y = incomplete
    model = small_ensemble(4, 20, alpha=0.1, missing="drop").fit(X, y)
    found = contents(model, X, y)
    assert (found.n_rows, found.n_excluded) == (120, 40)
    excluded = " ".join(exclusion_texts(found))
    assert "Excluded rows with missing values: 40." in excluded
    assert "40 rows of 160 (25%) have missing values" in excluded
    source = TableSource("trees.csv", n_excluded=40)
    page = report_html(model, X, y, source=source)
    assert "40 of the 160 rows of trees.csv (25%) were excluded from the fit" in page
    assert "Excluded rows with missing values" not in page


def test_cells_that_were_filled_in_are_reported(incomplete):
    X, y = incomplete
    model = small_ensemble(4, 20, alpha=0.1).fit(X, y)
    text = report_html(model, X, y)
    assert "Missing values filled in (number of rows): depth (40)." in text
    assert exclusion_texts(contents(model, X, y)) == []


@pytest.mark.parametrize("converted", [False, True])
def test_dates_and_years_are_written_as_such(incomplete, converted):
    X, y = incomplete
    model = small_ensemble(4, 20, alpha=0.1).fit(X, y)
    found = contents(model, model.columns_.convert(X)[0] if converted else X, y)
    values = {column.name: column.values for column in found.columns}
    assert values["day"] == "2001-01-01 to 2014-01-23"
    assert values["year"].startswith("1990 to 2019")
    names = [curve.name for curve in found.curves]
    days, years = (found.curve_values[names.index(name)] for name in ("day", "year"))
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\d", day) for day in days)
    assert all(re.fullmatch(r"\d{4}", year) for year in years)
    assert len(set(years)) == len(years)


def test_contrasts_slopes_and_averages_are_those_of_the_library(incomplete):
    X, y = incomplete
    model = small_ensemble(4, 20, alpha=0.1).fit(X, y)
    found = contents(model, X, y).answers
    kind = next(c for c in found.contrasts if c.name == "kind")
    frame = model.compare(X, {"kind": [kind.first, kind.second]})
    expected = frame.loc[0, ["estimate", "conf_low", "conf_high"]].astype(float)
    assert_allclose([kind.change.value, kind.change.low, kind.change.high], expected)
    depth = next(c for c in found.contrasts if c.name == "depth")
    low, high = np.nanquantile(X.depth, [0.25, 0.75], method="nearest")
    frame = model.compare(X, {"depth": [low, high]})
    assert_allclose(depth.change.value, frame.estimate[0])
    assert depth.quartiles
    assert_allclose(found.average.value, model.average(X).estimate[0])
    slopes = dict(found.slopes)
    complete = X[X.depth.notna()]
    assert_allclose(slopes["depth"].value, model.slope(complete, ["depth"]).estimate[0])
    assert "day" not in slopes


def test_changes_in_words():
    higher = InputContrast("depth", "2", "5", True, IntervalEstimate(1.234, 1.0, 1.5))
    lower = InputContrast("kind", "oak", "elm", False, IntervalEstimate(-12345.6, -13000, -11000))
    unclear = InputContrast("kind", "oak", "ash", False, IntervalEstimate(0.5, -1.0, 2.0))
    assert contrast_text(higher, "y") == (
        "from 2 to 5 (first to third quartile): y is higher by 1.23 (95% interval 1 to 1.50)."
    )
    assert contrast_text(lower, "y") == (
        "elm instead of oak: y is lower by 12,300 (95% interval 11,000 to 13,000)."
    )
    assert contrast_text(unclear, "y") == (
        "ash instead of oak: no clear change of y, 0.500 (95% interval \N{MINUS SIGN}1 to 2)."
    )
