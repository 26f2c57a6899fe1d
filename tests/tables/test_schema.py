"""The schema of a table: inferred from parts, stored as JSON, applied to other rows."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import small_ensemble
from numpy.testing import assert_array_equal
from properties import at_least
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from ulmus import inference, load
from ulmus.exceptions import ColumnWarning, ExtrapolationWarning
from ulmus.tables import Schema, TableEncoder, infer_schema
from ulmus.tables.cells import Cells
from ulmus.tables.dates import AMBIGUOUS_DATE_TEXT
from ulmus.tables.schema_inference import ColumnScan


def test_columns_without_information_are_excluded_with_notes():
    table = pd.DataFrame(
        {
            "same": 1.0,
            "unit": "m",
            "word": "None",
            "empty": np.nan,
            "blank": "",
            "name": [f"n{i}" for i in range(101)],
            "level": [f"n{i % 40}" for i in range(101)],
            "x": np.arange(101.0),
        }
    )
    with pytest.warns(ColumnWarning, match=r"\(constant\): same, unit, word; .* distinct\): name"):
        schema = TableEncoder().fit(table).schema_
    assert schema.names == ("level", "x")
    assert schema.notes == (
        "Excluded (no values): empty, blank.",
        "Excluded (constant): same, unit, word.",
        "Excluded (more than half of the texts are distinct): name.",
        "'x' numbers the rows; drop it if it is an identifier.",
        "Encoded as categories (number of levels): level (40).",
    )
    named = infer_schema(
        [table[["name"]]], categorical=["name"]
    )  # who names it a category means it
    assert len(named.columns[0].categories) == 101
    with pytest.raises(ValueError, match="no column of the table can serve as an input: Excluded"):
        TableEncoder().fit(table[["same", "unit"]])


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]), {}, "several columns called 'x'"),
        (
            pd.DataFrame([[1, 2], [3, 4]]),
            {},
            "a column called 0, and names must",
        ),
        (pd.DataFrame({"x": []}), {}, "the table has no rows"),
        (pd.DataFrame({"x": [1, 2]}), {"categorical": ["z"]}, "categorical names the column 'z'"),
        (
            pd.DataFrame({"x": [1, 2]}),
            {"missing": "guess"},
            "missing='guess' must be one of impute, drop",
        ),
        (np.eye(3), {}, "X must be a data frame with named columns, got ndarray"),
    ],
)
def test_tables_that_cannot_be_used(table, options, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**options).fit(table)


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%m/%d/%Y", "%d-%m-%y", "%Y/%m/%d", "%d.%m.%Y %H:%M"])
def test_texts_that_resemble_dates_of_another_form_have_a_note(form):
    days = pd.date_range("2023-01-01", periods=120).strftime(form)
    table = pd.DataFrame({"day": days, "month": days[np.arange(120) % 9], "x": np.arange(120.0)})
    table.loc[0, "month"] = "unknown"
    assert infer_schema([table]).notes == (
        "Excluded (more than half of the texts are distinct): day.",
        "'day' probably contains dates; write them as 2023-12-31 to use them as dates.",
        "'month' probably contains dates; write them as 2023-12-31 to use them as dates.",
        "'x' numbers the rows; drop it if it is an identifier.",
        "Encoded as categories (number of levels): month (10).",
    )
    named = infer_schema([table], categorical=["month"])  # who names it a category means it
    assert not any("'month' probably" in note for note in named.notes)


@pytest.mark.parametrize("text", ["1.5", "12/31", "10.0.0.1", "2023-12-31", "3-4", "1.2-3"])
def test_other_texts_do_not_look_like_dates_of_another_form(text):
    assert not AMBIGUOUS_DATE_TEXT.fullmatch(text)


def test_columns_may_be_permuted_and_more_but_not_fewer():
    table = pd.DataFrame({"a": [1.0, 2.0], "k": ["u", "v"], "b": [3.0, 5.0]}, index=[7, 9])
    encoder = TableEncoder().fit(table)
    again = encoder.transform(table.assign(more="x")[["b", "more", "k", "a"]])
    pd.testing.assert_frame_equal(again, encoder.transform(table))
    assert list(again.index) == [7, 9]
    with pytest.raises(ValueError, match="lacks the columns 'a', 'b'; the model requires a, k, b"):
        encoder.transform(table[["k"]])
    with pytest.raises(ValueError, match="several columns called 'a'"):
        encoder.transform(table[["a", "a", "k", "b"]])


def mixed(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "k": rng.choice(np.array(["u", "v", "w", None], dtype=object), n),
            "code": rng.integers(0, 5, n),
            "d": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 50, n), "D"),
            "w": rng.random(n) < 0.5,
            "text": rng.choice(["3.5", "-999", "7"], n),
        }
    )


RULES = {"categorical": ["code"], "na_values": ["-999"]}


def test_a_schema_survives_json():
    table = mixed(60)
    schema = infer_schema([table], **RULES)
    again = Schema.from_description(json.loads(json.dumps(schema.describe())))
    assert again == schema
    assert_array_equal(again.parse(table)[0], schema.parse(table)[0])
    assert again.origins == (*["x"] * 2, *["k"] * 4, *["code"] * 5, *["d"] * 8, "w", *["text"] * 2)


@pytest.mark.parametrize(
    "change",
    [
        {"columns": None},
        {"columns": [{"name": "x"}]},
        {"columns": [{"name": "x", "type": "odd", "fill": 0.0}]},
        {"columns": [{"name": "x", "type": "number", "fill": "a"}]},
        {"columns": [{"name": "x", "type": "category", "categories": ["a"], "counts": [1, 2]}]},
        {"columns": [{"name": 3, "type": "number", "fill": 0.0}]},
        {"columns": [{"name": "x", "type": "category", "categories": "ab"}]},
        {"columns": [{"name": "x", "type": "category", "categories": [1]}]},
        {"columns": 2 * [{"name": "x", "type": "number", "fill": 0.0}]},
        {"columns": []},
        {"missing": "guess"},
        {"na_values": None},
        {"na_values": "ab"},
        {"na_values": [1]},
    ],
)
def test_a_description_of_something_else_is_refused(change):
    good = infer_schema([mixed(30)], **RULES).describe()
    with pytest.raises(ValueError, match="this is not the description"):
        Schema.from_description({**good, **change})


@at_least(25)
@given(st.sets(st.integers(1, 59)), st.integers(0, 5))
def test_parts_of_a_table_give_the_schema_of_the_whole(cuts, seed):
    table = mixed(60, seed)
    edges = [0, *sorted(cuts), 60]
    parts = [table.iloc[i:j] for i, j in pairwise(edges)]
    assert infer_schema(parts, **RULES) == infer_schema([table], **RULES)


def test_messages_count_rows_over_parts():
    parts = [pd.DataFrame({"x": [1.0, 2.0]}), pd.DataFrame({"x": [3.0, np.inf]})]
    with pytest.raises(ValueError, match="infinity in data row 4"):
        infer_schema(parts)


def test_a_transformer_of_scikit_learn():
    table = mixed(60)
    encoder = TableEncoder(**RULES)
    assert clone(encoder).get_params() == encoder.get_params()
    numbers = encoder.fit_transform(table)
    assert list(encoder.get_feature_names_out()) == list(numbers.columns)
    assert encoder.n_features_in_ == 6
    assert list(encoder.feature_names_in_) == list(table.columns)
    y = numbers.to_numpy() @ np.arange(numbers.shape[1])
    pipe = make_pipeline(TableEncoder(**RULES), LinearRegression()).fit(table, y)
    np.testing.assert_allclose(pipe.predict(table), y, rtol=1e-6)
    framed = clone(encoder).set_output(transform="pandas").fit(table)
    pd.testing.assert_frame_equal(framed.transform(table), numbers)


def test_a_transformer_with_known_columns_can_be_fitted_again():
    table = mixed(60)
    schema = TableEncoder(**RULES).fit(table).schema_
    assert clone(TableEncoder.from_schema(schema)).fit(table).schema_ == schema


def test_other_data_frames():
    polars = pytest.importorskip("polars")
    encoder = TableEncoder().fit(polars.DataFrame({"x": [1.0, 2.0], "k": ["a", "b"]}))
    numbers = encoder.transform(polars.DataFrame({"k": ["b", "b"], "x": [3.0, 4.0]}))
    assert_array_equal(numbers, [[3, 0, 1], [4, 0, 1]])


def test_a_long_table_leaves_no_trace_but_its_first_values():
    scan = ColumnScan("x")
    for part in range(20):
        scan.add(Cells("x", pd.Series(np.arange(20_000.0) + part)))
    assert sum(map(len, scan.statistics.parts)) == 100_000
    # A part of an array would keep all of it in memory.
    assert all(values.base is None for values in scan.statistics.parts)


# ---------------------------------------------------------------- unknown categories


def table_with_rare_categories():
    """Ninety rows with two categories of one row each, and their outputs."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"t": rng.uniform(size=90), "kind": rng.choice(["a", "b"], 90)})
    y = table.t + (table.kind == "b")
    table.loc[[0, 50], "kind"] = ["rare", "rarer"]
    return table, y


def test_a_category_of_held_out_rows_is_predicted():
    """Cross-validation failed if a category was in one fold only."""
    table, y = table_with_rare_categories()
    with pytest.warns(ExtrapolationWarning, match=r"1 of 30 rows have .* \(1 of 'kind'\)"):
        scores = cross_val_score(
            make_pipeline(TableEncoder(), LinearRegression()), table, y, cv=3, error_score="raise"
        )
    assert np.all(scores > 0.9)


def test_rows_with_unknown_categories_are_counted_once(recwarn):
    table, _ = table_with_rare_categories()
    encoder = TableEncoder().fit(table[1:50])
    indicators = encoder.transform(table)[["kind=a", "kind=b"]]
    shares = table[1:50].kind.value_counts(normalize=True)[["a", "b"]]
    assert_array_equal(indicators.loc[[0, 50]], [shares, shares])
    assert len(recwarn) == 1


def test_unknown_categories_are_an_error_on_request(tmp_path):
    table, y = table_with_rare_categories()
    encoder = TableEncoder(unknown="error").fit(table[1:50])
    with pytest.raises(ValueError, match=r"contains 'rare' in data row 1, .* unknown='average'"):
        encoder.transform(table)
    with pytest.raises(ValueError, match="unknown='drop' must be one of average, error"):
        TableEncoder(unknown="drop").fit(table)
    for rule in ("error", "average"):
        pipe = make_pipeline(TableEncoder(unknown=rule), small_ensemble(2, 5)).fit(table, y)
        inference(pipe).save(tmp_path / "model.ulmus")
        assert load(tmp_path / "model.ulmus").columns_.unknown == rule


def test_effects_of_unknown_categories_are_refused(recwarn):
    """A misspelt category is no category of another table."""
    table, y = table_with_rare_categories()
    known = table.kind.isin(["a", "b"])
    pipe = make_pipeline(TableEncoder(), small_ensemble(2, 5)).fit(table[known], y[known])
    with pytest.raises(ValueError, match=r"'c' is not a category of 'kind' \('a', 'b'\)"):
        inference(pipe).compare(table[known], {"kind": ["a", "c"]})
    recwarn.clear()
    assert inference(pipe).slope(table, "t").estimate.item() > 0
    assert [warning.category for warning in recwarn] == [ExtrapolationWarning]


@pytest.mark.parametrize(("n_single", "excluded"), [(200, True), (120, True), (80, False)])
def test_texts_most_of_which_occur_once_are_excluded(n_single, excluded):
    index = np.r_[np.arange(n_single), n_single + np.arange(200 - n_single) // 2]
    table = pd.DataFrame({"k": [f"name {i}" for i in index], "x": np.arange(200) % 7})
    assert ("k" not in infer_schema([table]).names) == excluded
