"""Cells of every kind become numbers, and those that cannot are refused with their row."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from ulmus.tables import TableEncoder, infer_schema


def column(values, **options):
    """What a column becomes beside another one, and its column of the schema."""
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
    assert schema.type_name == "number"
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
def test_booleans_become_zero_and_one(values):
    numbers, schema = column(values)
    assert schema.type_name == "boolean"
    assert_array_equal(numbers.c, [1, 0, 1])


def test_a_column_of_booleans_may_come_as_text_or_numbers_later():
    encoder = TableEncoder().fit(pd.DataFrame({"c": [True, False]}))
    for values in (["TRUE", "false"], ["True", "False"], [1, 0], ["1", "0"]):
        assert_array_equal(encoder.transform(pd.DataFrame({"c": values})).c, [1, 0])
    with pytest.raises(ValueError, match=r"contains 'perhaps' in data row 2, where a number"):
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
    assert schema.type_name == {"time": "time", "span": "duration"}.get(kind, "date")
    np.testing.assert_allclose(numbers.c, EXPECTED_DAYS[kind], rtol=0, atol=1e-9)
    (note,) = TableEncoder().fit(pd.DataFrame({"c": DAYS[kind]})).schema_.notes
    assert note.startswith({"time": "Times of day", "span": "Durations"}.get(kind, "Dates"))


def test_dates_that_are_none_are_refused():
    encoder = TableEncoder().fit(pd.DataFrame({"c": DAYS["date"]}))
    for wrong in ("01.02.2024", "soon", "2024-13-01"):
        with pytest.raises(ValueError, match=f"contains '{wrong}' in data row 2, where a date"):
            encoder.transform(pd.DataFrame({"c": ["2024-01-01", wrong]}))


@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_texts_become_categories(dtype):
    numbers, schema = column(pd.Series(["b", "a ", "b", "10", "9"], dtype=dtype))
    assert schema.type_name == "category"
    ordered = ("10", "9", "a", "b") if dtype == "category" else ("9", "10", "a", "b")
    assert schema.categories == ordered
    assert dict(zip(schema.categories, schema.counts, strict=True))["b"] == 2
    for category in schema.categories:
        expected = [text == category for text in ("b", "a", "b", "10", "9")]
        assert_array_equal(numbers[f"c={category}"], np.array(expected, dtype=float))


def test_categories_keep_the_order_of_pandas():
    values = pd.Categorical(["low", "high", "low"], ["low", "mid", "high"])
    assert column(values)[1].categories == ("low", "high")
    values = pd.Categorical([1.0, 2.0, 1.0], [2.0, 1.0])
    assert column(values)[1].categories == ("2", "1")


@pytest.mark.slow
@pytest.mark.parametrize("values", [[10, 9, 10], [10.0, 9.0, 10.0], ["10", "9", "10"]])
def test_numbers_that_are_names(values):
    numbers, schema = column(values, categorical=["c"])
    assert schema.categories == ("9", "10")
    assert_array_equal(numbers["c=9"], [0, 1, 0])


@pytest.mark.parametrize(
    ("values", "na_values"),
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
def test_na_values(values, na_values):
    numbers, schema = column(values, na_values=na_values)
    assert schema.type_name == "number"
    assert schema.n_missing == 1
    assert_array_equal(numbers["c (missing)"], [0, 1, 0])
    np.testing.assert_allclose(numbers.c, [1, 2, 3])
    with pytest.raises(
        ValueError, match=r"'c' has no value in data row 2; fill it, use missing='drop'"
    ):
        column(values, na_values=na_values, missing="error")


def test_na_values_among_categories_and_dates():
    values = pd.Categorical(["a", "?", "b", "a"])
    numbers, schema = column(values, na_values=["?"])
    assert schema.categories == ("a", "b")
    assert_array_equal(numbers["c=a"], [1, 0, 0, 1])
    assert_array_equal(numbers["c (missing)"], [0, 1, 0, 0])
    days = pd.to_datetime(["2024-01-01 10:00", "1900-01-01 10:00", "2024-01-03 10:00"])
    numbers, schema = column(days, na_values=["1900-01-01 10:00:00"])
    np.testing.assert_allclose(numbers.c[1], np.median(numbers.c[[0, 2]]))


def test_a_schema_without_training_rows_fills_in_medians():
    table = pd.DataFrame(
        {
            "x": [1.0, 2.0, 10.0, np.nan, 4.0],
            "k": ["b", "a", None, "b", "c"],
            "w": pd.array([True, True, None, False, True], dtype="boolean"),
            "d": [dt.date(1970, 1, 2), None, dt.date(1970, 1, 4), dt.date(1970, 1, 9), None],
        }
    )
    schema = infer_schema([table])
    inputs = dict(zip(schema.features, schema.encode(schema.parse(table)[0]).T, strict=True))
    assert_array_equal(inputs["x"], [1, 2, 10, 3, 4])
    assert_array_equal(inputs["k=b"], [1, 0, 0, 1, 0])
    assert_array_equal(inputs["w"], [1, 1, 1, 0, 1])
    assert_array_equal(inputs["d"], [1, 3, 3, 8, 3])
    assert_array_equal(inputs["k (missing)"], [0, 0, 1, 0, 0])


def test_rows_with_missing_values_are_excluded():
    table = pd.DataFrame({"x": [1.0, None, 3.0, 4.0], "k": ["a", "b", None, "b"], "z": 7})
    schema = infer_schema([table[["x", "k"]]], missing="drop")
    converted, kept = schema.convert(table)
    assert_array_equal(kept, [True, False, False, True])
    assert list(converted.index) == [0, 3]
    assert list(converted.columns) == ["x", "k", "z"]
    assert list(converted.k.cat.categories) == ["a", "b"]
    with pytest.raises(ValueError, match="'x' has no value in data row 2"):
        TableEncoder.from_schema(schema).transform(table)  # a transformer cannot exclude rows


def test_a_converted_table_is_encoded_the_same():
    table = pd.DataFrame({"k": ["b", "a", "b"], "d": DAYS["text"], "w": [True, False, True]})
    encoder = TableEncoder().fit(table)
    converted, _ = encoder.schema_.convert(table)
    assert_array_equal(encoder.transform(converted), encoder.transform(table))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["a", "b", "d"],
            r"contains 'd' in data row 13, which is not a category of the model \(a, b\)",
        ),
        ([1, 2, 3], "contains '1' in data row 11, which is not"),
    ],
)
def test_unknown_categories(values, message):
    schema = infer_schema([pd.DataFrame({"k": ["a", "b"]})], unknown="error")
    with pytest.raises(ValueError, match=message):
        schema.parse(pd.DataFrame({"k": values}), first_row=10)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([*"123456789", "ten"], r"'c' contains 'ten' in data row 10, where a number is expected"),
        (
            [1.0, 2.0, -np.inf],
            r"'c' contains infinity in data row 3; correct it, or add it to na_values",
        ),
        ([*"12345678", "inf"], r"'c' contains infinity in data row 9"),
        ([[1], [2], [3]], "'c' contains values of the type list"),
        ([b"x", b"y"], "'c' contains values of the type bytes"),
        ([{}, None], "'c' contains values of the type dict"),
    ],
)
def test_cells_that_cannot_be_used(values, message):
    with pytest.raises(ValueError, match=message) as caught:
        column(values)
    assert "\n" not in str(caught.value)


def test_dates_far_from_1970_are_days_too():
    for values in (
        [dt.date(9999, 12, 31), dt.date(1, 1, 1), dt.date(1970, 1, 2)],
        ["9999-12-31", "0001-01-01", "1970-01-02"],
        np.array(["9999-12-31", "0001-01-01", "1970-01-02"], dtype="M8[s]"),
    ):
        numbers, schema = column(pd.Series(values))
        assert schema.type_name == "date"
        assert_array_equal(numbers.c, [2932896, -719162, 1])


def test_booleans_are_distinguished_from_numbers():
    encoder = TableEncoder().fit(pd.DataFrame({"c": [True, False]}))
    with pytest.raises(ValueError, match="contains '2' in data row 2, where a boolean is expected"):
        encoder.transform(pd.DataFrame({"c": [1, 2]}))
    converted, _ = encoder.schema_.convert(pd.DataFrame({"c": [1, 0]}))
    assert converted.c.dtype == bool
    assert list(converted.c) == [True, False]
