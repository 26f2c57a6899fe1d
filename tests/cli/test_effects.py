"""Effects of columns with awkward names, dates, booleans and missing values."""

import re

import numpy as np
import pandas as pd
import pytest
from command_line import PLAIN, done, facts, refusal
from numpy.testing import assert_allclose

import ulmus

N = 60
WIND, SUM, TARGET = "wind, speed [m/s]", "a=b", "PM10 (ug/m3)"


def air():
    """A table as people have it."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            WIND: rng.uniform(0, 6, N).round(2),
            SUM: rng.normal(size=N).round(2),
            "site": rng.choice(["Lugano, Università", "Zürich"], N),
            "day": pd.date_range("2021-01-01", periods=N, freq="9D").strftime("%Y-%m-%d"),
            "rain": rng.random(N) < 0.5,
        }
    )
    trend = np.sin(table[WIND]) + table[SUM] + 2.0 * table.rain
    return table.assign(**{TARGET: (trend + 0.1 * rng.standard_normal(N)).round(3)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with that table, ``t.csv``, and a model of it, ``m.ulmus``."""
    folder = tmp_path_factory.mktemp("air")
    air().to_csv(folder / "t.csv", index=False)
    done("fit", folder / "t.csv", "-t", TARGET, "-o", folder / "m.ulmus", *PLAIN)
    return folder


@pytest.fixture
def effects(folder):
    """Function that runs a command on the table and returns its effects as a frame."""

    def effects(command, *options, data="t.csv"):
        result = facts(command, folder / "m.ulmus", folder / data, *options)
        return pd.DataFrame(result["effects"])

    return effects


def mean_change(folder, **changes):
    """The mean difference of predictions between two tables, by way of Python."""
    model, high, low = ulmus.inference(ulmus.load(folder / "m.ulmus")), air(), air()
    for name, (before, after) in changes.items():
        low[name], high[name] = before, after
    return np.mean(model.predict(high) - model.predict(low))


@pytest.mark.slow
def test_a_name_with_a_comma_is_one_name(folder, effects, tmp_path):
    assert list(effects("slope", "--variables", WIND).term) == [WIND]
    assert list(effects("slope", "--variables", f'"{WIND}", {SUM}').term) == [WIND, SUM]
    assert len(effects("average", "--by", WIND)) == air()[WIND].nunique()
    start = ("predict", folder / "m.ulmus", folder / "t.csv", "-o", tmp_path / "o.csv")
    done(*start, "--keep", WIND, "--keep", "site,day")
    assert list(pd.read_csv(tmp_path / "o.csv"))[:3] == [WIND, "site", "day"]
    start = ("fit", folder / "t.csv", "-t", TARGET, "-o", tmp_path / "m.ulmus", *PLAIN)
    assert facts(*start, "--columns", WIND)["columns"] == [WIND]
    assert WIND not in facts(*start, "--drop", WIND)["columns"]


@pytest.mark.slow
def test_a_change_of_a_column_with_signs_in_its_name(folder, effects):
    for name in (WIND, SUM):
        answer = effects("compare", "--variables", f"{name}=0.5,1")
        assert list(answer.term) == [name]
        assert_allclose(answer.estimate[0], mean_change(folder, **{name: (0.5, 1)}))


@pytest.mark.slow
def test_categories_with_commas_stand_in_quotes(folder, effects):
    answer = effects("compare", "--variables", 'site=Zürich,"Lugano, Università"')
    expected = mean_change(folder, site=("Zürich", "Lugano, Università"))
    assert_allclose(answer.estimate[0], expected)
    start = ("compare", folder / "m.ulmus", folder / "t.csv", "--variables")
    assert "'Lugano' is not a category of 'site' ('Lugano, Università', " in (
        refusal(*start, "site=Zürich,Lugano, Università")
    )


@pytest.mark.slow
@pytest.mark.parametrize("change", ["rain", "rain=false,true", "rain=0,1"])
def test_a_boolean_changes_from_false_to_true(folder, effects, change):
    answer = effects("compare", "--variables", change)
    assert_allclose(answer.estimate[0], mean_change(folder, rain=(False, True)))


def test_a_slope_is_that_of_numbers_and_dates(effects):
    assert list(effects("slope").term) == [WIND, SUM, "day"]


def test_dates_can_be_compared(folder, effects):
    answer = effects("compare", "--variables", "day=2021-02-01,2022-02-01")
    assert_allclose(answer.estimate[0], mean_change(folder, day=("2021-02-01", "2022-02-01")))
    assert_allclose(
        effects("compare", "--variables", "day=30").estimate[0],
        effects("compare", "--variables", "day=30.0").estimate[0],
    )
    start = ("compare", folder / "m.ulmus", folder / "t.csv", "--variables")
    assert refusal(*start, "day=2021-02-30,2021-03-01") == (
        "--variables day: '2021-02-30' is not a date; write it as 2026-12-31."
    )
    assert refusal(*start, f"{WIND}=low,high") == (
        f"--variables {WIND}=low,high must be numbers, as the column is."
    )


@pytest.mark.slow
def test_tables_in_another_csv_dialect(folder, effects):
    air().to_csv(folder / "latin.csv", sep="|", decimal=",", index=False, encoding="latin-1")
    given = ("--delimiter", "|", "--decimal", ",", "--encoding", "latin-1")
    for question in (("average",), ("compare", "--variables", "rain"), ("slope",)):
        assert_allclose(
            effects(*question, *given, data="latin.csv").estimate, effects(*question).estimate
        )


@pytest.mark.slow
def test_excluded_rows_are_noted_and_rows_keep_their_numbers(folder, tmp_path):
    table = air()
    table[WIND] = table[WIND].where(~table.index.isin([3, 7]))
    table.loc[5, TARGET] = np.nan
    table.loc[20, TARGET] = 50.0
    table.to_csv(tmp_path / "gaps.csv", index=False)
    start = (folder / "m.ulmus", tmp_path / "gaps.csv", "--missing", "drop")
    assert "Excluded: 2 rows with missing values." in facts("average", *start)["notes"]
    page = tmp_path / "page.html"
    result = facts("report", *start, "-o", page)
    assert result["rows"] == N - 3
    assert "Excluded: 2 rows with missing values." in result["notes"]
    assert "Excluded: 1 row without a value of the target." in result["notes"]
    rows = re.sub(r"<[^>]+>", " ", page.read_text().partition("Largest standardised errors")[2])
    assert re.search(r"leverage\s+21\s+50\s", rows), rows[:200]
    strict = "report", *start[:2], "--missing", "error", "-o", tmp_path / "no.html"
    assert f"{WIND!r} has no value in data row 4;" in refusal(*strict)


@pytest.mark.slow
def test_a_report_counts_the_values_that_were_filled_in(tmp_path):
    table = air()
    for column, rows in ((WIND, [3, 7]), ("site", [1, 2, 9]), ("rain", [4]), ("day", [5, 6])):
        table[column] = table[column].where(~table.index.isin(rows))
    table.to_csv(tmp_path / "t.csv", index=False)
    model, pages = tmp_path / "m.ulmus", (tmp_path / "a.html", tmp_path / "b.html")
    start = ("fit", tmp_path / "t.csv", "-t", TARGET, "-o", model, *PLAIN, "--missing", "impute")
    done(*start, "--report", pages[0])
    done("report", model, tmp_path / "t.csv", "-o", pages[1])
    for page in pages:
        inputs = page.read_text().partition("Inputs of 60 rows")[2].partition("</table>")[0]
        rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in inputs.split("<tr")]
        missing = {row[0]: row[-1] for row in rows if len(row) == 4}
        expected = {WIND: "2", SUM: "0", "site": "3", "day": "2", "rain": "1"}
        assert missing == {"input": "missing", **expected}
