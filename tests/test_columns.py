"""Columns of tables become numbers, and what they were is remembered."""

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from ulmus.columns import Schema, TableEncoder, learned_schema


def column(values, **options):
    """What a column becomes beside another one, and what the schema says of it."""
    table = pd.DataFrame({"c": values, "x": np.arange(len(values), dtype=float)})
    encoder = TableEncoder(**options).fit(table)
    numbers = encoder.transform(table).drop(columns="x")
    return numbers, encoder.schema_.columns[0]


NUMBERS = [
    pd.Series([1.5, 2.0, -3.0]),
    pd.Series([1, 2, 70_000]),
    pd.Series([1, 2, 3], dtype="uint8"),
    pd.Series([1, 2, 3], dtype="Int64"),
    pd.Series([1.5, 2.5, 3.5], dtype="Float32"),
    pd.Series([Decimal("1.25"), Decimal("2.5"), Decimal("-7")]),
    pd.Series(["1.25", " 2.5", "-7e3"]),
    pd.Series(["1", "2", "3"], dtype="string"),
]


@pytest.mark.parametrize("values", NUMBERS, ids=lambda v: f"{v.dtype}-{v[0]}")
def test_numbers_stay_as_they_are(values):
    numbers, schema = column(values)
    assert schema.kind == "number"
    assert list(numbers) == ["c"]
    assert numbers.c.dtype == float
    assert_array_equal(numbers.c, [float(value) for value in values])


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([True, False, True]),
        pd.Series([True, False, True], dtype="boolean"),
        pd.Series([True, False, True], dtype=object),
    ],
)
def test_truth_values_become_zero_and_one(values):
    numbers, schema = column(values)
    assert schema.kind == "truth value"
    assert_array_equal(numbers.c, [1, 0, 1])


def test_a_column_of_truth_values_may_come_as_text_or_numbers_later():
    encoder = TableEncoder().fit(pd.DataFrame({"c": [True, False]}))
    for values in (["TRUE", "false"], ["True", "False"], [1, 0], ["1", "0"]):
        assert_array_equal(encoder.transform(pd.DataFrame({"c": values})).c, [1, 0])
    with pytest.raises(ValueError, match=r"holds 'perhaps' in data row 2, where a number"):
        encoder.transform(pd.DataFrame({"c": ["true", "perhaps"]}))


DAYS = {
    "datetime64": pd.to_datetime(["1970-01-02 00:00", "2024-01-01 12:00", "1969-12-31 00:00"]),
    "date": [dt.date(1970, 1, 2), dt.date(2024, 1, 1), dt.date(1969, 12, 31)],
    "zone": pd.to_datetime(
        ["1970-01-02 00:00+06:00", "2024-01-01 12:00+06:00", "1969-12-31 00:00+06:00"]
    ),
    "text": ["1970-01-02", "2024-01-01T12:00", "1969-12-31 00:00:00"],
    "time": [dt.time(6), dt.time(12, 30), dt.time(23, 59, 59, 500_000)],
    "span": pd.to_timedelta(["1 day", "36 hours", "-1 day"]),
}
EXPECTED_DAYS = {
    "datetime64": [1, 19723.5, -1],
    "date": [1, 19723, -1],
    "zone": [0.75, 19723.25, -1.25],  # six hours before Greenwich's midnight
    "text": [1, 19723.5, -1],
    "time": [0.25, 12.5 / 24, 1 - 0.5 / 86_400],
    "span": [1, 1.5, -1],
}


@pytest.mark.parametrize("kind", DAYS)
def test_dates_become_days_with_a_note(kind):
    numbers, schema = column(pd.Series(DAYS[kind]))
    assert schema.kind == "date"
    np.testing.assert_allclose(numbers.c, EXPECTED_DAYS[kind], rtol=0, atol=1e-9)
    notes = TableEncoder().fit(pd.DataFrame({"c": DAYS[kind]})).notes_
    assert notes == ("Dates became days since 1970 (times, parts of a day): c.",)


def test_dates_that_are_none_are_refused():
    encoder = TableEncoder().fit(pd.DataFrame({"c": DAYS["date"]}))
    for wrong in ("01.02.2024", "soon", "2024-13-01"):
        with pytest.raises(ValueError, match=f"holds '{wrong}' in data row 2, where a date"):
            encoder.transform(pd.DataFrame({"c": ["2024-01-01", wrong]}))


@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_texts_become_categories(dtype):
    numbers, schema = column(pd.Series(["b", "a ", "b", "10", "9"], dtype=dtype))
    assert schema.kind == "category"
    ordered = ("10", "9", "a", "b") if dtype == "category" else ("9", "10", "a", "b")
    assert schema.categories == ordered
    assert schema.fill == "b"
    for category in schema.categories:
        expected = [text == category for text in ("b", "a", "b", "10", "9")]
        assert_array_equal(numbers[f"c={category}"], np.array(expected, dtype=float))


def test_categories_keep_the_order_of_pandas():
    values = pd.Categorical(["low", "high", "low"], ["low", "mid", "high"])
    assert column(values)[1].categories == ("low", "high")
    values = pd.Categorical([1.0, 2.0, 1.0], [2.0, 1.0])
    assert column(values)[1].categories == ("2", "1")


@pytest.mark.parametrize("values", [[10, 9, 10], [10.0, 9.0, 10.0], ["10", "9", "10"]])
def test_numbers_that_are_names(values):
    numbers, schema = column(values, categorical=["c"])
    assert schema.categories == ("9", "10")
    assert_array_equal(numbers["c=9"], [0, 1, 0])


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ([1.0, -999.0, 3.0], ["-999"]),
        ([1, -999, 3], ["-999.0"]),
        (["1", "-", "3"], ["-"]),
        (["1", "", "3"], []),
        ([1.0, None, 3.0], []),
        ([Decimal(1), None, Decimal(3)], []),
        (pd.array([1, None, 3], dtype="Int64"), []),
        ([1.0, np.inf, 3.0], ["inf"]),
    ],
)
def test_marks_of_missing_values(values, marks):
    numbers, schema = column(values, marks=marks, missing="impute")
    assert schema.kind == "number"
    assert schema.fill == 2.0
    assert_array_equal(numbers.c, [1, 2, 3])
    with pytest.raises(ValueError, match=r"'c' has no value in data row 2; fill it, or choose"):
        column(values, marks=marks)


def test_marks_among_categories_and_dates():
    values = pd.Categorical(["a", "?", "b", "a"])
    numbers, schema = column(values, marks=["?"], missing="impute")
    assert schema.categories == ("a", "b")
    assert_array_equal(numbers["c=a"], [1, 1, 0, 1])
    days = pd.to_datetime(["2024-01-01 10:00", "1900-01-01 10:00", "2024-01-03 10:00"])
    numbers, schema = column(days, marks=["1900-01-01 10:00:00"], missing="impute")
    assert numbers.c[1] == np.median(numbers.c[[0, 2]])


def test_medians_and_modes_by_hand():
    table = pd.DataFrame(
        {
            "x": [1.0, 2.0, 10.0, np.nan, 4.0],
            "k": ["b", "a", None, "b", "c"],
            "w": pd.array([True, True, None, False, True], dtype="boolean"),
            "d": [dt.date(1970, 1, 2), None, dt.date(1970, 1, 4), dt.date(1970, 1, 9), None],
        }
    )
    encoder = TableEncoder(missing="impute").fit(table)
    assert [c.fill for c in encoder.schema_.columns] == [3.0, "b", 1.0, 3.0]
    numbers = encoder.transform(table)
    assert_array_equal(numbers.x, [1, 2, 10, 3, 4])
    assert_array_equal(numbers["k=b"], [1, 0, 1, 1, 0])
    assert_array_equal(numbers.w, [1, 1, 1, 0, 1])
    assert_array_equal(numbers.d, [1, 3, 3, 8, 3])


def test_rows_with_missing_values_are_left_out():
    table = pd.DataFrame({"x": [1.0, None, 3.0, 4.0], "k": ["a", "b", None, "b"], "z": 7})
    schema = learned_schema([table[["x", "k"]]], missing="drop").schema
    tidy, kept = schema.tidied(table)
    assert_array_equal(kept, [True, False, False, True])
    assert list(tidy.index) == [0, 3]
    assert list(tidy.columns) == ["x", "k", "z"]
    assert list(tidy.k.cat.categories) == ["a", "b"]
    with pytest.raises(ValueError, match="'x' has no value in data row 2"):
        TableEncoder.of(schema).transform(table)  # a transformer cannot leave out rows


def test_a_tidy_table_means_the_same():
    table = pd.DataFrame({"k": ["b", "a", "b"], "d": DAYS["text"], "w": [True, False, True]})
    encoder = TableEncoder().fit(table)
    tidy, _ = encoder.schema_.tidied(table)
    assert_array_equal(encoder.transform(tidy), encoder.transform(table))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["a", "b", "d"], r"holds 'd' in data row 13, which is none of the model's categ.*\(a, b\)"),
        ([1, 2, 3], "holds '1' in data row 11, which is none"),
    ],
)
def test_unknown_categories(values, says):
    schema = learned_schema([pd.DataFrame({"k": ["a", "b"]})]).schema
    with pytest.raises(ValueError, match=says):
        schema.coded(pd.DataFrame({"k": values}), first_row=10)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([*"123456789", "ten"], r"'c' holds 'ten' in data row 10, where a number should be"),
        ([1.0, 2.0, -np.inf], r"'c' holds infinity in data row 3; correct it, or name it"),
        ([*"12345678", "inf"], r"'c' holds infinity in data row 9"),
        ([[1], [2], [3]], "'c' holds values of the type list"),
        ([b"x", b"y"], "'c' holds values of the type bytes"),
        ([{}, None], "'c' holds values of the type dict"),
    ],
)
def test_cells_that_cannot_be_used(values, says):
    with pytest.raises(ValueError, match=says) as caught:
        column(values)
    assert "\n" not in str(caught.value)


def test_columns_that_say_nothing_are_left_out_with_notes():
    table = pd.DataFrame(
        {
            "same": 1.0,
            "unit": "m",
            "word": "None",
            "empty": np.nan,
            "blank": "",
            "name": [f"n{i}" for i in range(101)],
            "level": [f"n{i % 100}" for i in range(101)],
            "x": np.arange(101.0),
        }
    )
    encoder = TableEncoder(missing="impute").fit(table)
    assert encoder.schema_.names == ("level", "x")
    assert encoder.notes_ == (
        "Left out, without any value: empty, blank.",
        "Left out, the same in all rows: same, unit, word.",
        "Left out: name, with more than 100 different texts, looks like a name or a remark.",
    )
    with pytest.raises(ValueError, match="'name' has more than 100 categories; join some"):
        TableEncoder(["name"]).fit(table)
    with pytest.raises(ValueError, match="no column of the table can serve as an input: Left out"):
        TableEncoder().fit(table[["same", "unit"]])


@pytest.mark.parametrize(
    ("table", "options", "says"),
    [
        (pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]), {}, "several columns called 'x'"),
        (pd.DataFrame([[1, 2], [3, 4]]), {}, r"a column called 0, which is no text"),
        (pd.DataFrame({"x": []}), {}, "the table has no rows"),
        (pd.DataFrame({"x": [1, 2]}), {"categorical": ["z"]}, "categorical names the column 'z'"),
        (pd.DataFrame({"x": [1, 2]}), {"missing": "guess"}, "missing must be one of error, drop"),
        (np.eye(3), {}, "X must be a data frame with named columns, got ndarray"),
    ],
)
def test_tables_that_cannot_be_used(table, options, says):
    with pytest.raises(ValueError, match=says):
        TableEncoder(**options).fit(table)


def test_columns_may_be_permuted_and_more_but_not_fewer():
    table = pd.DataFrame({"a": [1.0, 2.0], "k": ["u", "v"], "b": [3.0, 5.0]}, index=[7, 9])
    encoder = TableEncoder().fit(table)
    again = encoder.transform(table.assign(more="x")[["b", "more", "k", "a"]])
    pd.testing.assert_frame_equal(again, encoder.transform(table))
    assert list(again.index) == [7, 9]
    with pytest.raises(ValueError, match="lacks the columns 'a', 'b'; the model needs a, k, b"):
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


RULES = {"categorical": ["code"], "missing": "impute", "marks": ["-999"]}


def test_a_schema_survives_json():
    table = mixed(60)
    schema = learned_schema([table], **RULES).schema
    again = Schema.restored(json.loads(json.dumps(schema.described())))
    assert again == schema
    assert_array_equal(again.coded(table)[0], schema.coded(table)[0])
    assert again.origins == ("x", *["k"] * 3, *["code"] * 5, "d", "w", "text")


@pytest.mark.parametrize(
    "change",
    [
        {"columns": None},
        {"columns": [{"name": "x"}]},
        {"columns": [{"name": "x", "kind": "odd", "categories": [], "fill": 0.0}]},
        {"columns": [{"name": "x", "kind": "number", "categories": [], "fill": "a"}]},
        {"columns": [{"name": "x", "kind": "category", "categories": ["a"], "fill": "b"}]},
        {"columns": [{"name": 3, "kind": "number", "categories": [], "fill": 0.0}]},
        {"columns": [{"name": "x", "kind": "category", "categories": "ab", "fill": "a"}]},
        {"columns": [{"name": "x", "kind": "category", "categories": [1], "fill": 1}]},
        {"columns": 2 * [{"name": "x", "kind": "number", "categories": [], "fill": 0.0}]},
        {"columns": []},
        {"missing": "guess"},
        {"marks": None},
        {"marks": "ab"},
        {"marks": [1]},
    ],
)
def test_a_description_of_something_else_is_refused(change):
    good = learned_schema([mixed(30)], **RULES).schema.described()
    with pytest.raises(ValueError, match="this describes"):
        Schema.restored({**good, **change})


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(1, 59)), st.integers(0, 5))
def test_parts_of_a_table_give_the_schema_of_the_whole(cuts, seed):
    table = mixed(60, seed)
    edges = [0, *sorted(cuts), 60]
    parts = [table.iloc[i:j] for i, j in zip(edges[:-1], edges[1:], strict=True)]
    assert learned_schema(parts, **RULES) == learned_schema([table], **RULES)


def test_messages_count_rows_over_parts():
    parts = [pd.DataFrame({"x": [1.0, 2.0]}), pd.DataFrame({"x": [3.0, np.inf]})]
    with pytest.raises(ValueError, match="infinity in data row 4"):
        learned_schema(parts)


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
    np.testing.assert_allclose(pipe.predict(table), y, rtol=1e-8)
    framed = clone(encoder).set_output(transform="pandas").fit(table)
    pd.testing.assert_frame_equal(framed.transform(table), numbers)


def test_a_transformer_with_known_columns_can_be_fitted_again():
    table = mixed(60)
    schema = learned_schema([table], **RULES).schema
    assert clone(TableEncoder.of(schema)).fit(table).schema_ == schema


def test_other_data_frames():
    polars = pytest.importorskip("polars")
    encoder = TableEncoder().fit(polars.DataFrame({"x": [1.0, 2.0], "k": ["a", "b"]}))
    numbers = encoder.transform(polars.DataFrame({"k": ["b", "b"], "x": [3.0, 4.0]}))
    assert_array_equal(numbers, [[3, 0, 1], [4, 0, 1]])
