"""Names, types and categories of columns, through a Pipeline, a file and inference."""

import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import ulmus
from ulmus import ELMEnsembleRegressor
from ulmus.exceptions import ColumnWarning
from ulmus.tables import NumberColumn, TableEncoder, from_arrow, infer_schema

N = 60
RNG = np.random.default_rng(0)
X1, X2, Y = RNG.normal(size=(3, N))


def encoded_fit(table, **how):
    """A Pipeline that was fitted to a table."""
    model = ELMEnsembleRegressor(2, 10, input_map=None, random_state=0)
    return make_pipeline(TableEncoder(**how), model).fit(table, Y)


# ---------------------------------------------------------------- names


@pytest.mark.parametrize("names", [[0, 1], ["a", 1], [("a", 1), ("a", 2)]])
def test_names_that_are_no_texts_are_refused_before_a_fit(names):
    table = pd.DataFrame(np.column_stack([X1, X2]), columns=pd.Index(names))
    with pytest.raises(ValueError, match=r"names must be texts; rename it"):
        TableEncoder().fit(table)


@pytest.mark.parametrize(
    ("first", "second"),
    [(["a", "b"], X1), (["a=b", "c"], None)],
    ids=["a column", "a category"],
)
def test_a_category_with_the_name_of_another_input_is_refused(first, second):
    table = pd.DataFrame(
        {"c": np.resize(first, N), "c=a": np.resize(["b", "q"], N) if second is None else second}
    )
    with pytest.raises(ValueError, match=r"columns 'c' and 'c=a' would both have an input"):
        TableEncoder().fit(table)


def test_names_that_look_like_code_survive_a_file(tmp_path):
    names = ['a"b', "c'd\n<script>", "n" * 500, "mean", "row", "😀"]
    table = pd.DataFrame(RNG.normal(size=(N, len(names))), columns=names)
    table["y"] = np.resize(["nan", "<b>", "one"], N)
    pipe = encoded_fit(table)
    ulmus.inference(pipe).save(tmp_path / "ü n.ulmus")
    again = ulmus.load(tmp_path / "ü n.ulmus")
    assert_array_equal(again.predict(table), pipe.predict(table))
    assert list(again.feature_names_in_) == [*names, "y"]
    assert "<script>" not in pipe[-1]._brief_summary_html()


@pytest.mark.parametrize(
    "how", [{"na_values": "-999"}, {"na_values": -999}, {"categorical": "kind"}]
)
def test_a_text_in_place_of_a_list_is_refused(how):
    table = pd.DataFrame({"kind": [1, 2, 9, -999]})
    with pytest.raises(ValueError, match=r"must be a list; use \["):
        TableEncoder(**how).fit(table)


def test_a_single_column_is_no_table():
    with pytest.raises(ValueError, match="X must be a data frame with named columns, got Series"):
        TableEncoder().fit(pd.Series(X1, name="a"))


# ---------------------------------------------------------------- types


def test_dates_of_arrow_are_days():
    dates = pd.Series(pd.date_range("1970-01-11", periods=N, freq="36h"))
    table = pd.DataFrame(
        {
            "numpy": dates,
            "arrow": dates.astype("timestamp[ns][pyarrow]"),
            "zone": dates.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
            "span": (dates - dates[0]).astype("duration[us][pyarrow]"),
        }
    )
    days = TableEncoder().fit(table).transform(table)
    expected = 10 + 1.5 * np.arange(N)
    for name in ("numpy", "arrow", "zone"):
        assert_allclose(days[name], expected, rtol=1e-15, err_msg=name)
    assert_allclose(days["span"], expected - 10, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["datetime64[s]", object])
def test_dates_of_every_year_are_days(dtype):
    ends = [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)]
    table = pd.DataFrame({"t": pd.Series(ends * (N // 2), dtype=dtype), "x": X1})
    days = TableEncoder().fit(table).transform(table)["t"]
    assert_array_equal(np.unique(days), [-719162, 2932896])


def test_missing_dates_of_arrow_are_filled():
    dates = pd.Series(pd.date_range("2020", periods=N)).astype("timestamp[us][pyarrow]")
    table = pd.DataFrame({"t": dates.where(np.arange(N) != 3), "x": X1})
    inputs = TableEncoder().fit(table).transform(table)
    assert_array_equal(inputs["t (missing)"], np.arange(N) == 3)
    assert inputs["t"].drop(3).min() < inputs["t"][3] < inputs["t"].max()


def test_complex_numbers_are_refused():
    with pytest.raises(ValueError, match=r"'c' contains complex numbers; give their real"):
        TableEncoder().fit(pd.DataFrame({"c": X1 + 1j * X2}))


# ---------------------------------------------------------------- categories


def test_categories_that_differ_in_spaces_are_one():
    labels = np.resize(["a", " a", "b"], N)
    for column in (labels, pd.Categorical(labels)):
        assert TableEncoder().fit(pd.DataFrame({"c": column})).schema_.features == ("c=a", "c=b")


@pytest.mark.parametrize("kind", ["parameter", "dtype"])
def test_numbers_that_are_categories_have_differences_and_no_slopes(kind, tmp_path):
    table = pd.DataFrame({"c": np.resize([1, 2, 3], N), "x": X1})
    texts = pd.DataFrame({"c": np.resize(["1", "2", "3"], N), "x": X1})
    if kind == "dtype":
        table["c"] = table["c"].astype("category")
    pipe = encoded_fit(table, categorical=["c"] if kind == "parameter" else [])
    ulmus.inference(pipe).save(tmp_path / "model.ulmus")
    expected = ulmus.inference(encoded_fit(texts, categorical=["c"]))
    for asked in map(ulmus.inference, (pipe, ulmus.load(tmp_path / "model.ulmus"))):
        assert list(asked.slope(table)["term"]) == ["x"]
        found, known = asked.compare(table, ["c"]), expected.compare(texts, ["c"])
        assert list(found["contrast"]) == list(known["contrast"]) == ["2 - 1", "3 - 1"]
        assert_allclose(found["estimate"], known["estimate"])
        assert list(asked.average(table, by="c")["c"]) == [1, 2, 3]
        with pytest.raises(ValueError, match="'c' is not numeric and has no slope; use compare"):
            asked.slope(table, ["c"])


def test_a_loaded_pipeline_can_be_fitted_again(tmp_path):
    table = pd.DataFrame({"c": np.resize([1, 2, 3], N), "x": X1})
    pipe = encoded_fit(table, categorical=["c"])
    ulmus.inference(pipe).save(tmp_path / "model.ulmus")
    again = clone(ulmus.load(tmp_path / "model.ulmus")).set_params(categorical=["c"])
    again.fit(table, Y)
    assert again.columns_ == pipe[0].schema_
    assert_allclose(again.predict(table), pipe.predict(table), rtol=1e-9)


# ---------------------------------------------------------------- texts of digits


def texts_of_digits(values):
    """Schema of a column of texts."""
    return infer_schema([pd.DataFrame({"nr": pd.Series(values, dtype=object), "x": X1})])


def test_texts_of_digits_are_names():
    table = pd.DataFrame({"nr": [str(i % 12) for i in range(N)], "x": X1})
    table.loc[0, "nr"] = None
    with pytest.warns(
        ColumnWarning, match="'nr' has texts of digits, which are used as names; use"
    ):
        schema = TableEncoder().fit(table).schema_
    assert schema.columns[0].categories == tuple(map(str, range(12)))
    assert not TableEncoder(categorical=["nr"]).fit(table).schema_.doubts
    blocks = infer_schema([table[:30], table[30:]])
    assert blocks.columns == schema.columns


@pytest.mark.parametrize(
    "values",
    [
        [str(i % 40) for i in range(N)],  # most are distinct
        [f"{i % 12}.5" for i in range(N)],
        [f"-{i % 12}" for i in range(N)],
        [i % 12 for i in range(N)],  # numbers in a column of objects
        ["", *(str(i % 12) for i in range(N - 1))],  # why numbers are texts
    ],
    ids=["distinct", "decimals", "signs", "objects", "a missing text"],
)
def test_other_texts_are_numbers(values):
    schema = texts_of_digits(values)
    assert isinstance(schema.columns[0], NumberColumn)
    assert not schema.doubts


def test_a_file_of_texts_has_numbers(tmp_path):
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({"nr": np.arange(N) % 12, "x": X1, "y": Y})
    frame.to_csv(path, index=False, quoting=1)
    model = ELMEnsembleRegressor(2, 10, input_map=None, noise="homoskedastic", random_state=0)
    model.fit_blocks(from_arrow(path, target="y"))
    assert not hasattr(model, "columns_")


# ---------------------------------------------------------------- dates


def test_days_of_the_week_have_indicators():
    hours = pd.Series(pd.date_range("2024-01-01", periods=24 * 14, freq="h"), name="t")
    schema = infer_schema([hours.to_frame().assign(t=hours.where(hours.index != 5))])
    assert schema.columns[0].seasons == ("week", "day")
    names = [f"t ({day})" for day in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")]
    where = [schema.features.index(name.replace("(", "(week, ")) for name in names]
    codes, _ = schema.parse(hours.to_frame())
    assert_array_equal(np.argmax(schema.encode(codes)[:, where], axis=1), hours.dt.dayofweek)
    assert_array_equal(schema.encode(codes)[:, where].sum(axis=1), 1.0)
    assert np.isnan(schema.raw_inputs(np.array([[np.nan]]))[0, where]).all()
