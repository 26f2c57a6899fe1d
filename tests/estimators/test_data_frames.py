"""Data frames with categories, missing values and dates, from the fit to a file."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from messages import mentions
from models import plain_ensemble, plain_member, small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import ulmus
from ulmus.exceptions import ColumnWarning, ExtrapolationWarning, MissingValuesWarning

N = 120


def mixed(n=N, seed=0):
    """A table with a column of each kind, and a target."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "kind": rng.choice(["a", "b", "c"], n),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "town": [f"t{i}" for i in rng.integers(0, 35, n)],
            "wet": rng.random(n) < 0.5,
            "day": pd.date_range("2020-01-01", periods=n, freq="MS"),
        }
    )
    y = (
        table.x
        + 2.0 * (table.kind == "a")
        + 0.5 * table["size"].cat.codes
        + 0.1 * rng.normal(size=n)
    )
    gaps = rng.random((n, 2)) < 0.1
    return table.assign(
        x=table.x.where(~gaps[:, 0]), kind=table.kind.where(~gaps[:, 1], None)
    ), y.to_numpy().copy()


@pytest.fixture(scope="module")
def model():
    return small_ensemble(4, 20).fit(*mixed())


def test_the_schema_is_learned(model):
    types = {column.name: column.type_name for column in model.columns_.columns}
    assert types == {
        "x": "number",
        "kind": "category",
        "size": "ordered",
        "town": "target-encoded category",
        "wet": "boolean",
        "day": "date",
    }
    assert model.columns_.column("day").seasons == ("year",)
    assert model.columns_.column("size").categories == ("S", "M", "L")
    assert model.n_features_in_ == 6
    assert list(model.feature_names_in_) == list(mixed()[0].columns)


def test_complete_numbers_have_no_schema():
    X = np.random.default_rng(0).normal(size=(60, 2))
    for table in (X, pd.DataFrame(X, columns=["a", "b"])):
        assert not hasattr(plain_member().fit(table, X[:, 0]), "columns_")


@pytest.mark.parametrize("kind", ["nullable", "pyarrow types", "polars", "arrow"])
def test_frames_of_other_libraries_give_the_same(model, kind):
    table, y = mixed()
    if kind == "nullable":
        other = table.convert_dtypes()
    elif kind == "pyarrow types":
        pytest.importorskip("pyarrow")
        other = table.convert_dtypes(dtype_backend="pyarrow")
    elif kind == "polars":
        other = pytest.importorskip("polars").from_pandas(table)
    else:
        other = pytest.importorskip("pyarrow").Table.from_pandas(table)
    if kind in ("polars", "arrow"):
        table = other.to_pandas()
    again = small_ensemble(4, 20).fit(other, y)
    expected = small_ensemble(4, 20).fit(table, y)
    assert_allclose(again.predict(other), expected.predict(table), rtol=1e-9)
    assert again.columns_.features == expected.columns_.features


def test_a_lazy_frame_is_refused():
    polars = pytest.importorskip("polars")
    lazy = polars.from_pandas(mixed()[0]).lazy()
    with pytest.raises(ValueError, match=r"X is a lazy frame .*; give X.collect\(\)"):
        plain_member().fit(lazy, mixed()[1])


def test_copies_predict_the_same(model, tmp_path):
    table, _ = mixed()
    expected = model.predict(table, return_std=True)
    model.save(tmp_path / "m.ulmus")
    for again in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        ulmus.load(tmp_path / "m.ulmus"),
        clone(model).fit(*mixed()),
    ):
        assert_array_equal(again.predict(table, return_std=True), expected)
        assert again.columns_ == model.columns_


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
def test_cross_validation_and_grid_search():
    table, y = mixed()
    folds = KFold(4, shuffle=True, random_state=0)
    how = {"cv": folds, "error_score": "raise"}
    scores = cross_val_score(small_ensemble(3, 20), table, y, **how)
    assert scores.mean() > 0.5
    search = GridSearchCV(small_ensemble(3, 20), {"n_neurons": [5, 20]}, **how)
    assert search.fit(table, y).best_params_ == {"n_neurons": 20}


def test_blocks_give_the_fit_of_the_whole_table(model):
    table, y = mixed()
    blocks = [(table[a : a + 50], y[a : a + 50]) for a in range(0, N, 50)]
    streamed = small_ensemble(4, 20).fit_blocks(blocks)
    assert streamed.columns_.features == model.columns_.features
    assert streamed.columns_.notes == model.columns_.notes
    assert_allclose(streamed.predict(table), model.predict(table), rtol=1e-6)


def test_rows_that_are_added_have_the_encoding_of_the_first():
    (table, y), (more, y_more) = mixed(), mixed(seed=1)
    model = small_ensemble(3, 10, noise="homoskedastic")
    model.partial_fit(table.drop(columns="town"), y)
    first = model.columns_
    model.partial_fit(more, y_more)
    assert model.columns_ is first
    assert model.fitted_.n_rows == 2 * N


# ---------------------------------------------------------------- unknown categories


def test_an_unknown_category_is_a_draw_from_those_of_the_training_rows():
    table, y = mixed()
    model = plain_ensemble(4, 20, noise="homoskedastic").fit(table, y)
    new = table[:5].assign(kind="new")
    with pytest.warns(ExtrapolationWarning, match=r"5 of 5 rows .*\(5 of 'kind'\)"):
        mean, std = model.predict(new, return_std=True)
    shares = table.kind.value_counts(normalize=True)
    each = {kind: model.predict(new.assign(kind=kind)) for kind in shares.index}
    between = sum(shares[kind] * (each[kind] - mean) ** 2 for kind in shares.index)
    noise = model.predict_var(table[:5], component="noise")
    with pytest.warns(ExtrapolationWarning):
        model_variance = model.predict_var(new, component="model")
    assert_allclose(std**2, model_variance + noise + between, rtol=1e-9)
    average = sum(shares[kind] * each[kind] for kind in shares.index)
    assert_allclose(mean, average, atol=0.3)
    assert np.all(std > 0.5)


@pytest.mark.parametrize("column", ["size", "town"])
def test_unknown_ranks_and_target_encoded_categories_are_draws_too(model, column):
    table, _ = mixed()
    known = model.predict_var(table[:4], component="noise")
    new = table[:4].astype({column: object}).assign(**{column: "new"})
    with pytest.warns(ExtrapolationWarning, match=f"4 of '{column}'"):
        unknown = model.predict_var(new, component="noise")
    assert np.all(unknown > known if column == "size" else unknown >= known * 0.99)


def test_unknown_categories_are_refused_on_request():
    table, y = mixed()
    model = plain_member(unknown="error").fit(table, y)
    with pytest.raises(ValueError, match=r"'kind' contains 'new' .*unknown='average'"):
        model.predict(table.assign(kind="new"))


# ---------------------------------------------------------------- missing values


def test_nan_in_arrays_is_encoded():
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = X[:, 0] + X[:, 1]
    X[::7, 1] = np.nan
    model = small_ensemble(4, 20).fit(X, y)
    assert model.columns_.features == ("x0", "x1", "x1 (missing)", "x2")
    assert len(model.feature_relevance_ if model.fitted_.input_map else [0] * 3) == 3
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueError, match="'x1' has no value in data row 1"):
        small_ensemble(4, 20, missing="error").fit(X, y)
    assert small_ensemble(4, 20, missing="drop").fit(X, y).fitted_.n_rows == 171


def test_nan_in_new_rows_of_a_complete_table_has_an_error_of_its_own():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = plain_member().fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"X contains NaN, .* fit rows with missing values") as e:
        model.predict(np.where(X > 1, np.nan, X))
    assert "HistGradientBoosting" not in str(e.value)


def test_gaps_that_no_training_row_has_are_counted(model):
    table, _ = mixed()
    with pytest.warns(MissingValuesWarning, match=r"2 of 2 rows .*\(2 of 'wet'\)"):
        model.predict(table[:2].assign(wet=None))


@pytest.mark.parametrize("way", ["fit", "fit_blocks"])
def test_rows_without_a_target_are_excluded(way):
    table, y = mixed()
    y[[3, 50]] = np.nan
    model = small_ensemble(3, 10)
    blocks = [(table[:60], y[:60]), (table[60:], y[60:])]
    arguments = (table, y) if way == "fit" else (blocks,)
    with pytest.warns(MissingValuesWarning, match="2 of 120 rows have no target"):
        getattr(model, way)(*arguments)
    assert model.fitted_.n_rows == N - 2
    assert "Excluded rows without a target: 2." in model.columns_.notes


def test_the_summary_counts_gaps_by_column(model):
    n_x, n_kind = (int(mixed()[0][name].isna().sum()) for name in ("x", "kind"))
    text = f"Missing values filled in (number of rows): x ({n_x}), kind ({n_kind})."
    assert text in model.columns_.notes
    assert f"x ({n_x}), kind ({n_kind})" in " ".join(str(model.summary()).split())
    dropped = small_ensemble(3, 10, missing="drop").fit(*mixed()).columns_.notes[-1]
    assert (
        dropped == f"Excluded rows with missing values: {int(mixed()[0].isna().any(axis=1).sum())}."
    )


# ---------------------------------------------------------------- columns that are noticed


def test_columns_that_are_excluded_are_named():
    table, y = mixed()
    table = table[["x"]].assign(id=[f"id{i}" for i in range(N)], unit="m", empty=None)
    with pytest.warns(ColumnWarning, match=r"values\): empty; .*: unit; .* distinct\): id"):
        model = plain_member().fit(table, y)
    assert model.columns_.names == ("x",)


def test_leading_zeros_are_names_and_thousands_separators_numbers():
    table = pd.DataFrame(
        {
            "zip": np.resize(["00123", "00456", "10000"], 60),
            "cost": [f"{i},000" for i in range(1, 61)],
        }
    )
    with pytest.warns(ColumnWarning, match="'cost' contains commas, .* thousands separators"):
        model = plain_member().fit(table, np.arange(60.0))
    assert model.columns_.column("zip").categories == ("00123", "00456", "10000")
    assert model.fitted_.scale.high[-1] == 60_000
    assert "'zip' has leading zeros and is used as names." in model.columns_.notes


def test_infinite_values_are_named_by_column():
    table, y = mixed()
    with pytest.raises(ValueError, match="column 'x' contains infinity in data row 5"):
        plain_member().fit(table.assign(x=table.x.where(table.index != 4, np.inf)), y)


# ---------------------------------------------------------------- effects by original columns


def test_effects_are_asked_for_by_original_columns(model):
    table = mixed()[0].dropna()
    contrast = model.compare(table, {"kind": ["b", "a"]})
    assert contrast.contrast[0] == "a - b"
    expected = model.predict(table.assign(kind="a")) - model.predict(table.assign(kind="b"))
    assert_allclose(contrast.estimate[0], expected.mean(), rtol=1e-9)
    assert set(model.average(table, by="kind")["kind"].dropna()) == {"a", "b", "c"}
    curve = model.partial_dependence(table, "size")
    assert list(curve["size"]) == ["S", "M", "L"]
    each = [model.predict(table.assign(size=size)).mean() for size in "SML"]
    assert_allclose(curve.estimate, each, rtol=1e-9)


def test_dates_are_dates_in_effects(model):
    table = mixed()[0].dropna()
    curve = model.partial_dependence(table, "day", grid=["2021-06", "2023-06"])
    assert list(curve["day"]) == ["2021-06-01", "2023-06-01"]
    later = table.assign(day=pd.Timestamp("2023-06-01"))
    assert_allclose(curve.estimate[1], model.predict(later).mean(), rtol=1e-9)
    contrast = model.compare(table, {"day": ["2021-06", pd.Timestamp("2023-06-01")]})
    assert contrast.contrast[0] == "2023-06-01 - 2021-06-01"
    assert_allclose(contrast.estimate[0], curve.estimate[1] - curve.estimate[0], rtol=1e-9)


def test_the_slope_of_a_date_is_per_year_at_a_fixed_season():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"day": pd.date_range("2010-01-01", periods=144, freq="MS")})
    years = (table.day - table.day[0]).dt.days / 365.2425
    y = 3 * years + 5 * np.sin(2 * np.pi * years) + 0.1 * rng.normal(size=144)
    model = small_ensemble(5, 60).fit(table, y)
    slope = model.slope(table, "day")
    assert abs(slope.estimate[0] - 3) < 0.2


@pytest.mark.slow
def test_a_season_is_found_in_raw_dates():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"day": pd.date_range("2000-01-01", periods=240, freq="MS")})
    months = np.arange(240)
    y = 0.01 * months + np.sin(2 * np.pi * months / 12) + 0.1 * rng.normal(size=240)
    held = rng.random(240) < 0.25
    model = ulmus.ELMEnsembleRegressor(random_state=0).fit(table[~held], y[~held])
    error = model.predict(table[held]) - y[held]
    assert np.sqrt(np.mean(error**2)) < 0.15


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
def test_intervals_cover_rows_with_and_without_gaps():
    """A third of the rows lack an input that matters."""
    covered = {False: [], True: []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(900, 3))
        y = X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=900)
        X[rng.random(900) < 0.33, 1] = np.nan
        model = ulmus.ELMEnsembleRegressor(random_state=0).fit(X[:500], y[:500])
        low, high = model.predict_interval(X[500:], 0.9).T
        for gap in covered:
            rows = np.isnan(X[500:, 1]) == gap
            covered[gap].append(((low <= y[500:]) & (y[500:] <= high))[rows])
    for gap, parts in covered.items():
        assert 0.85 < np.concatenate(parts).mean() < 0.95, gap


# ---------------------------------------------------------------- files and clusters


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_of_mixed_columns_are_blocks(tmp_path, ending):
    pytest.importorskip("pyarrow")
    from ulmus.tables import from_arrow

    table, y = mixed()
    table = table.astype({"size": str}).assign(y=y)
    path = tmp_path / f"table.{ending}"
    table.to_parquet(path) if ending == "parquet" else table.to_csv(path, index=False)
    blocks = from_arrow(path, target="y", batch_rows=50)
    streamed = small_ensemble(4, 20).fit_blocks(blocks)
    whole = small_ensemble(4, 20).fit(table.drop(columns="y"), y)
    assert streamed.columns_.features == whole.columns_.features
    assert_allclose(streamed.predict(table), whole.predict(table), rtol=1e-6)


@pytest.mark.slow
def test_dask_data_frames_have_the_same_schema():
    dask = pytest.importorskip("dask.dataframe")
    import ulmus.dask

    table, y = mixed()
    table = table.astype({"size": str})
    frame = dask.from_pandas(table.assign(y=y), npartitions=3)
    X = frame[list(table.columns)]
    clustered = ulmus.dask.fit(small_ensemble(4, 20), X, frame["y"])
    table = X.compute()
    whole = small_ensemble(4, 20).fit(table, frame["y"].compute())
    assert clustered.columns_.features == whole.columns_.features
    assert_allclose(clustered.predict(table), whole.predict(table), rtol=1e-6)
    assert_allclose(ulmus.dask.predict(clustered, X).compute(), clustered.predict(table))


def test_a_graph_takes_the_encoded_columns(tmp_path, model):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from ulmus.onnx import to_onnx

    table, _ = mixed()
    inputs = model.columns_.encode(model.columns_.parse(table)[0])
    proto = to_onnx(model)
    session = runtime.InferenceSession(proto.SerializeToString())
    assert_allclose(session.run(None, {"X": inputs})[0], model.predict(table), rtol=1e-6)


# ------------------------------------------------------------------ dates beyond the training rows


@pytest.fixture(scope="module")
def monthly():
    table = pd.DataFrame({"day": pd.date_range("2010-01-01", periods=N, freq="MS")})
    table["x"] = np.random.default_rng(1).normal(size=N)
    return plain_ensemble(3, 15).fit(table, table.x + np.arange(N) / N)


def messages_of(function, *arguments, **how):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments, **how)
    return [str(one.message) for one in caught if one.category is ExtrapolationWarning]


def test_dates_beyond_those_of_the_training_rows_are_counted(monthly):
    new = pd.DataFrame({"day": pd.to_datetime(["2019-12-20", "2020-03-01", "2009-06-01"]), "x": 0})
    (text,) = messages_of(monthly.predict, new)
    assert "2 of 3 points have 'day' outside 2010-01-01 to 2019-12-01" in text
    assert "not extrapolated reliably" in text
    assert "refit" in text
    assert not messages_of(monthly.predict, new[:1])
    assert messages_of(monthly.compare, new[:1], {"day": ["2015-01", "2020-06"]})


def test_other_inputs_outside_their_range_are_counted_without_dates(monthly):
    new = pd.DataFrame({"day": pd.to_datetime(["2015-01-01", "2030-01-01"]), "x": [99.0, 0.0]})
    numbers, dates = messages_of(monthly.predict, new)
    assert numbers.startswith("1 of 2 points lie outside")
    assert "1 of 2 points have 'day' outside" in dates


def test_steps_of_dates_are_saved_and_learned_from_blocks(monthly, tmp_path):
    new = pd.DataFrame({"day": pd.to_datetime(["2020-02-01"]), "x": [0.0]})
    monthly.save(tmp_path / "m.ulmus")
    assert messages_of(ulmus.load(tmp_path / "m.ulmus").predict, new)
    table = pd.DataFrame({"day": pd.date_range("2010-01-01", periods=N, freq="MS")})
    table["x"] = np.random.default_rng(1).normal(size=N)
    y = table.x.to_numpy()
    blocks = [(table[:60], y[:60]), (table[60:], y[60:])]
    streamed = plain_ensemble(3, 15, noise="homoskedastic").fit_blocks(blocks)
    assert streamed.columns_.date_steps == monthly.columns_.date_steps == (("day", 31.0),)


# ------------------------------------------------------------------ errors


X2 = pd.DataFrame({"x": np.arange(8.0), "kind": list("abababab")})
Y2 = np.arange(8.0) ** 2


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (X2, None, ["y is None"]),
        (X2, pd.date_range("2020", periods=8), ["y contains dates", "convert"]),
        (X2, ["1", "2", "u", "3", "4", "5", "6", "7"], ["y contains the text 'u'"]),
        (pd.concat([X2[["x"]]] * 2, axis=1), Y2, ["several columns called 'x'", "rename"]),
        (X2[[]], Y2, ["X has no columns"]),
        (X2.to_dict("list"), Y2, ["dictionary", "pandas.DataFrame(X)"]),
        (X2.to_numpy(), Y2, ["array of texts", "data frame"]),
    ],
    ids=["no y", "dates", "text", "names", "columns", "dictionary", "array"],
)
def test_tables_that_cannot_be_fitted(X, y, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        plain_member().fit(X, y)


def test_an_empty_table_of_new_rows_is_refused():
    with pytest.raises(ValueError, match="X has no rows; give at least one"):
        plain_member().fit(X2, Y2).predict(X2[:0])


def test_lists_of_columns_are_lists():
    with pytest.raises(ValueError, match=r"categorical=None must be a list; use \[\]"):
        plain_member(categorical=None).fit(X2, Y2)


def test_names_of_columns_may_be_numbers():
    table = X2.assign(x=np.arange(8) % 3).set_axis([0, 1], axis=1)
    model = plain_member(categorical=[0]).fit(table, Y2)
    assert model.columns_.categorical == ("0", "1")


def test_the_text_nan_is_a_missing_value():
    table = X2.assign(z=["nan", *"1234567"])
    model = plain_member().fit(table, Y2)
    assert model.columns_.column("z").n_missing == 1
    model.predict(table)


@pytest.mark.parametrize(
    ("y", "words"),
    [(None, "y is None"), (pd.date_range("2020", periods=8), "y contains dates")],
    ids=["no y", "dates"],
)
def test_blocks_without_numbers_as_outputs_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        plain_member().fit_blocks([(X2, y)])


def test_levels_that_are_no_one_hot_inputs_are_named_by_column():
    table = pd.DataFrame({"n": np.arange(40) % 3, "kind": list("ab") * 20})
    noise = np.random.default_rng(0).normal(size=40)
    model = small_ensemble(3, 8, expand_inputs="one_hot").fit(table, table.n + noise)
    (text,) = messages_of(model.predict, table[:2].assign(n=[1.5, 2]))
    assert "1 of 2 points have a value of input 'n'" in text


def test_next_points_show_dates(monthly):
    table = pd.DataFrame({"day": pd.date_range("2010-01-01", periods=6, freq="MS"), "x": 0.0})
    found = monthly.next_points(table, n=2)
    assert list(found.day) == [str(day.date()) for day in table.day[found.row]]
