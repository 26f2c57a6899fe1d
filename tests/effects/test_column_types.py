"""Effects of columns with reserved names, booleans, categories, dates and missing values."""

import numpy as np
import pandas as pd
import pytest
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ulmus
from ulmus.plot import PartialDependenceDisplay, SlopeDisplay

RNG = np.random.default_rng(5)
N = 60
X = RNG.uniform(-1, 1, (N, 3))
Y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * RNG.standard_normal(N)
SIZES = pd.Categorical(np.tile(["low", "mid", "high"], 20), ["low", "mid", "high", "never"])


def frame(names, **others):
    return pd.DataFrame(X.round(1), columns=names).assign(**others)


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    "names",
    [["output", "estimate_", "estimate"], ["term", "term_", "contrast"], ["row", "p_value", "by"]],
    ids=str,
)
@pytest.mark.parametrize("y", [Y, np.stack([Y, -Y], axis=1)], ids=["one", "two"])
def test_no_column_of_a_frame_hides_another(names, y):
    table = frame(names)
    model = small_ensemble(3, 8, alpha=0.1).fit(table, y)
    effects = model.average(table, by=names)
    ours = 8 + (y.ndim == 2)
    assert len(effects.columns) == ours + len(names)
    labels = effects.iloc[:, 2:5].drop_duplicates().to_numpy()
    assert_array_equal(labels, np.unique(table.to_numpy(), axis=0))


@pytest.mark.parametrize("y", [Y, np.stack([Y, -Y], axis=1)], ids=["one", "two"])
def test_next_points_keep_all_features(y):
    names = ["variance", "variance_0", "step"]
    table = frame(names)
    found = small_ensemble(3, 8, alpha=0.1).fit(table, y).next_points(table, n=2)
    assert len(found.columns) == 2 + 3 + (2 if y.ndim == 2 else 1)
    assert_array_equal(found.iloc[:, 2:5], table.loc[found.row])


def test_two_columns_of_one_name_are_named():
    table = frame(["t", "u", "v"])
    model = small_ensemble(3, 8, alpha=0.1).fit(table, Y)
    twice = pd.concat([table, table[["t", "u"]].set_axis(["g", "g"], axis=1)], axis=1)
    with pytest.raises(ValueError, match=mentions("several columns", "'g'", "rename")):
        model.average(twice, by="g")


def test_columns_of_a_pipeline_may_be_numbers():
    table = pd.DataFrame(X)
    pipe = make_pipeline(StandardScaler(), small_ensemble(3, 8, alpha=0.1)).fit(table, Y)
    ours = ulmus.inference(pipe)
    high, low = (pipe.predict(np.where([False, True, False], v, X)) for v in (0.5, 0.0))
    found = ours.compare(table, {1: (0.0, 0.5)})
    assert_allclose(found.estimate[0], np.mean(high - low), rtol=1e-9)
    assert list(found.term) == ["1"]
    assert len(ours.slope(table)) == 3
    assert len(ours.partial_dependence(table, 0, grid_resolution=4)) == 4


# ------------------------------------------------------------------ kinds of columns


@pytest.mark.parametrize("as_pipe", [False, True])
def test_booleans_are_compared_as_such(as_pipe):
    table = frame(["t", "u", "v"]).assign(b=X[:, 2] > 0, i=np.arange(N) % 4)
    model = small_ensemble(3, 8, alpha=0.1)
    ours = make_pipeline("passthrough", model) if as_pipe else model
    ours = ulmus.inference(ours.fit(table, Y))
    found = ours.compare(table, "b")
    assert list(found.contrast) == ["True - False"]
    high, low = (model.predict(table.assign(b=b)) for b in (True, False))
    assert_allclose(found.estimate[0], np.mean(high - low), rtol=1e-9)
    assert ours.average(table, by="b").b.tolist() == [False, True]
    assert ours.average(table, by="i").i.dtype.kind == "i"
    assert ours.partial_dependence(table, "b").b.tolist() == [False, True]
    assert "b" not in set(ours.slope(table).term)
    with pytest.raises(ValueError, match=mentions("variables['b']", "numbers")):
        ours.compare(table, {"b": ("yes", "no")})


def test_categories_keep_their_order():
    table = frame(["t", "u", "v"], size=SIZES)
    model = small_ensemble(3, 8, alpha=0.1).fit(table[["t", "u", "v"]], Y)
    for by in ("size", table["size"], SIZES):
        found = model.average(table, by=by)
        assert found.iloc[:, 2].tolist() == ["low", "mid", "high"]
        for size, estimate in zip(found.iloc[:, 2], found.estimate, strict=True):
            rows = table.loc[table["size"] == size, ["t", "u", "v"]]
            assert_allclose(estimate, model.predict(rows).mean(), rtol=1e-9)
    pairs = model.average(table, by="size", hypothesis="pairwise")
    assert list(pairs.term) == ["mid - low", "high - low", "high - mid"]


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_dates_stay_dates(unit):
    days = np.repeat(np.array(["2020-01-01", "2020-01-02"], dtype=f"datetime64[{unit}]"), N // 2)
    model = small_ensemble(3, 8, alpha=0.1).fit(X, Y)
    assert_array_equal(model.average(X, by=days).by.to_numpy(), days[[0, -1]])
    found = model.average(X, by=days - days[0]).by
    assert_array_equal(found.to_numpy(), np.array([0, 1], dtype="timedelta64[D]"))


def test_a_grid_of_booleans():
    table = frame(["t", "u", "v"]).assign(b=X[:, 2] > 0)
    model = small_ensemble(3, 8, alpha=0.1).fit(table, Y)
    assert model.partial_dependence(table, "b", grid=[True]).b.tolist() == [True]
    with pytest.raises(ValueError, match=mentions("grid", "'b'", "numbers")):
        model.partial_dependence(table, "b", grid=["yes"])


def test_categories_of_a_pipeline_keep_their_order():
    table = frame(["t", "u", "v"], size=SIZES)
    encode = make_column_transformer((OneHotEncoder(), ["size"]), remainder="passthrough")
    ours = ulmus.inference(make_pipeline(encode, small_ensemble(3, 8, alpha=0.1)).fit(table, Y))
    assert list(ours.compare(table, "size").contrast) == ["mid - low", "high - low"]
    assert ours.partial_dependence(table, "size")["size"].tolist() == ["low", "mid", "high"]


def test_a_category_that_is_missing_is_not_compared():
    table = frame(["t", "u", "v"], kind=np.tile(np.array(["a", None, "b"], dtype=object), 20))
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    ours = ulmus.inference(make_pipeline(encode, small_ensemble(3, 8, alpha=0.1)).fit(table, Y))
    assert list(ours.compare(table, "kind").contrast) == ["b - a"]
    assert ours.partial_dependence(table, "kind").kind.tolist() == ["a", "b"]


@pytest.fixture(scope="module")
def imputed():
    table = frame(["t", "u", "v"])
    table.loc[::7, "t"] = np.nan
    pipe = make_pipeline(SimpleImputer(), small_ensemble(3, 8, alpha=0.1)).fit(table, Y)
    return pipe, table


@pytest.mark.parametrize("how", ["iqr", "minmax"])
def test_missing_values_have_no_part_in_a_span(imputed, how):
    pipe, table = imputed
    known = table.t.dropna()
    ends = np.quantile(known, [0.25, 0.75]) if how == "iqr" else (known.min(), known.max())
    low, high = (pipe.predict(table.assign(t=t)) for t in ends)
    found = ulmus.inference(pipe).compare(table, {"t": how})
    assert_allclose(found.estimate[0], np.mean(high - low), rtol=1e-9)


def test_missing_values_have_no_part_in_a_grid(imputed):
    pipe, table = imputed
    for resolution in (3, 100):
        found = ulmus.inference(pipe).partial_dependence(table, "t", grid_resolution=resolution)
        assert np.all(np.isfinite(found.t))
        assert found.t.is_monotonic_increasing


def test_a_row_without_a_value_cannot_move(imputed):
    pipe, table = imputed
    ours = ulmus.inference(pipe)
    for how in (1.0, "sd"):
        with pytest.raises(
            ValueError, match=mentions("variables['t']", "own value", "9 rows", "drop")
        ):
            ours.compare(table, {"t": how})
    with pytest.raises(ValueError, match=mentions("'t'", "missing", "drop")):
        ours.slope(table)
    assert len(ours.slope(table, ["u", "v"])) == 2
    with pytest.raises(ValueError, match=mentions("variables['t']='iqr'", "missing in all rows")):
        ours.compare(table.assign(t=np.nan), {"t": "iqr"})
    with pytest.raises(ValueError, match=mentions("'t'", "no values", "grid")):
        ours.partial_dependence(table.assign(t=np.nan), "t")


# ------------------------------------------------------------------ figures


@pytest.mark.usefixtures("figures")
def test_figures_of_tables_with_further_columns():
    table = frame(["t", "u", "v"], size=SIZES)
    encode = make_column_transformer((OneHotEncoder(), ["size"]), remainder="passthrough")
    ours = ulmus.inference(make_pipeline(encode, small_ensemble(3, 8, alpha=0.1)).fit(table, Y))
    shown = PartialDependenceDisplay.from_estimator(ours, table[["size", "v", "t", "u"]], ["v"])
    assert_allclose(shown.terms[0].deciles, np.quantile(table.v, np.arange(1, 10) / 10))
    assert SlopeDisplay.from_estimator(ours, table, "t").curve.name == "t"
    with pytest.raises(ValueError, match=mentions("feature='size'", "not numeric", "bars")):
        PartialDependenceDisplay.from_estimator(ours, table, ["size"])


@pytest.mark.parametrize("parameter", ["by", "weights"])
def test_a_series_of_other_rows_is_refused(parameter):
    table = frame(["a", "b", "c"])
    fitted = small_ensemble(3, 8, alpha=0.1).fit(table, Y)
    series = pd.Series(np.arange(N) % 2 + 1, index=table.index)
    expected = fitted.average(table, **{parameter: series.to_numpy()})
    assert_allclose(fitted.average(table, **{parameter: series}).estimate, expected.estimate)
    with pytest.raises(ValueError, match=mentions(parameter, "another index", "to_numpy")):
        fitted.average(table, **{parameter: series[::-1]})


# ------------------------------------------------------------------ missing labels


@pytest.mark.parametrize("name", ["kind", "t", "wet", "day", "other"])
def test_rows_without_a_label_are_a_group(name):
    gaps = np.arange(N) % 5 == 0
    table = frame(
        ["t", "u", "v"],
        kind=RNG.choice(["a", "b"], N),
        wet=pd.array(RNG.random(N) < 0.5, dtype="boolean"),
        day=pd.date_range("2020-01-01", periods=N, freq="MS"),
    )
    table[name] = RNG.choice(["c", "d"], N) if name == "other" else table[name]
    table[name] = table[name].where(~gaps)
    inputs = table.drop(columns="other", errors="ignore")
    model = small_ensemble(3, 8, alpha=0.1).fit(inputs, Y)
    effects = model.average(table, by=name)
    assert effects[name].iloc[-1] == "(missing)"
    assert sum(effects[name] == "(missing)") == 1
    expected = model.predict(inputs)[gaps].mean()
    assert_allclose(effects.estimate.iloc[-1], expected, rtol=1e-9)
    together = model.average(table, by=[name, "kind"] if name != "kind" else [name, "wet"])
    assert together[name].iloc[-1] == "(missing)"
