"""Effects of unusual tables, units and levels."""

import numpy as np
import pandas as pd
import pytest
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import ulmus
from ulmus.core.data.source import RowBlocks
from ulmus.core.fit.refits import value_order
from ulmus.effects.bands import simultaneous_band
from ulmus.effects.inference import Estimates, centered, ratios
from ulmus.intervals.confidence import ErrorBars
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


# ------------------------------------------------------------------ units and precision


@pytest.mark.parametrize(("unit", "origin"), [(1e-9, 0.0), (1e-60, 0.0), (1.0, 1.7e9)])
def test_a_curve_in_any_unit(unit, origin):
    plain = (
        small_ensemble(3, 8, alpha=0.1, standardize=True)
        .fit(X, Y)
        .partial_dependence(X, 0, grid_resolution=5)
    )
    there = X * unit + origin
    found = (
        small_ensemble(3, 8, alpha=0.1, standardize=True)
        .fit(there, Y)
        .partial_dependence(there, 0, grid_resolution=5)
    )
    assert_allclose((found.x0 - origin) / unit, plain.x0, rtol=1e-6, atol=1e-6)
    assert_allclose(found.estimate, plain.estimate, rtol=1e-5, atol=1e-6)


def test_a_step_smaller_than_single_precision():
    table = np.stack([5e7 + 1e7 * X[:, 0], X[:, 1]], axis=1)
    model = small_ensemble(3, 8, alpha=0.1, standardize=True).fit(table, Y)
    single = table.astype(np.float32)
    expected = model.compare(single.astype(float), {0: 1}).estimate[0]
    assert expected != 0
    assert_allclose(model.compare(single, {0: 1}).estimate[0], expected, rtol=1e-6)


def test_the_slope_of_a_logarithm():
    table = np.exp(4 * RNG.standard_normal((N, 1)))
    assert table.min() < 1e-5 * table.std()
    pipe = make_pipeline(FunctionTransformer(np.log), small_ensemble(3, 8, alpha=0.1)).fit(table, Y)
    expected = pipe[-1].slope(np.log(table), by="row").estimate / table[:, 0]
    found = ulmus.inference(pipe).slope(table, by="row").estimate
    assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("unit", [1e-310, 1e308])
def test_only_ratios_of_weights_count(unit):
    model, weights = small_ensemble(3, 8, alpha=0.1).fit(X, Y), 1 + (X[:, 0] > 0) * 0.5
    expected = np.average(model.predict(X), weights=weights)
    assert_allclose(model.average(X, weights=weights * unit).estimate[0], expected, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_weights_of_a_sum_have_squares(size):
    with pytest.raises(ValueError, match=mentions("A contains", f"{size:g}", "square", "multiply")):
        small_ensemble(3, 8, alpha=0.1).fit(X, Y).functional(np.full(N, size), X)


# ------------------------------------------------------------------ joint inference


def test_a_hypothesis_has_rows():
    with pytest.raises(ValueError, match=mentions("hypothesis", "row", "(0, 3)")):
        small_ensemble(3, 8, alpha=0.1).fit(X, Y).average(
            X, by=np.arange(N) % 3, hypothesis=np.zeros((0, 3))
        )


def test_pairs_are_few_enough():
    table = RNG.uniform(-1, 1, (120, 3))
    with pytest.raises(
        ValueError, match=mentions("hypothesis='pairwise'", "7140 pairs", "120 rows")
    ):
        small_ensemble(3, 8, alpha=0.1).fit(X, Y).average(table, by="row", hypothesis="pairwise")


@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999, 1 - 1e-9, 1 - 1e-16])
@pytest.mark.parametrize("R", [np.ones((3, 3)), np.eye(3)], ids=["same", "independent"])
def test_a_band_lies_between_one_interval_and_bonferroni(R, level):
    found = simultaneous_band(R, level)
    least, most = (stats.norm.isf((1 - level) / (2 * m)) for m in (1, 3))
    assert least <= found.critical_value <= most
    assert level <= found.pointwise_level < 1
    if R[0, 1] and level < 0.999:
        assert_allclose(found.critical_value, least, rtol=0.02)


def test_pointwise_and_simultaneous_intervals_of_one_estimate_agree():
    model = small_ensemble(3, 8, alpha=0.1).fit(X, Y)
    pointwise, band = (model.average(X, simultaneous=s) for s in (False, True))
    assert_allclose(band.conf_low, pointwise.conf_low, rtol=1e-12)


def estimates_of(center, covariance):
    center = np.asarray(center, dtype=float)[:, None]
    variance, zero = np.diag(covariance)[:, None], np.zeros_like(center)
    errors = ErrorBars(center, variance, np.full_like(center, 9.0), zero)
    return Estimates({"term": list("abc"[: len(center)])}, errors, np.asarray(covariance)[None])


def test_a_flat_curve_has_no_shape():
    # The same value thrice, up to round-off.
    C = 0.3 * np.ones((3, 3)) + 1e-17 * RNG.standard_normal((3, 3))
    flat = centered(estimates_of([0.1, 0.1 + 1e-17, 0.1 - 1e-17], C))
    assert_array_equal(flat.errors.center, 0.0)
    assert_array_equal(flat.errors.variance, 0.0)
    assert_array_equal(flat.covariance, 0.0)
    same = ratios(estimates_of([0.7, 0.7 * (1 + 2e-16)], 0.3 * np.ones((2, 2))))
    assert_array_equal(same.errors.center, 1.0)
    assert_array_equal(same.errors.variance, 0.0)


def test_a_curve_that_moves_keeps_its_shape():
    A = RNG.standard_normal((3, 3))
    center, C = RNG.standard_normal(3), A @ A.T
    L = np.eye(3) - 1 / 3
    found = centered(estimates_of(center, C))
    assert_allclose(found.errors.center[:, 0], L @ center, rtol=1e-12)
    assert_allclose(found.covariance[0], L @ C @ L.T, rtol=1e-9)
    assert_array_equal(found.covariance[0], found.covariance[0].T)


def test_covariances_of_points_in_two_libraries():
    torch = pytest.importorskip("torch")
    model = small_ensemble(3, 8, alpha=0.1).fit(X, Y)
    expected = model.predict_cov(X[:2], X[:3])
    assert_allclose(model.predict_cov(torch.asarray(X[:2]), X[:3]), expected, rtol=1e-9)
    assert_allclose(model.predict_cov(X[:2], torch.asarray(X[:3])), expected, rtol=1e-9)


def test_tensors_of_half_precision():
    torch = pytest.importorskip("torch")
    table = torch.asarray(X).bfloat16()
    model = small_ensemble(3, 8, alpha=0.1).fit(X, Y)
    expected = model.compare(table.double(), {0: (0.1, 0.3)})
    assert_allclose(model.compare(table, {0: (0.1, 0.3)}).estimate, expected.estimate, rtol=1e-9)


@pytest.mark.parametrize(("scale", "origin"), [(1.0, -11.0), (-1.0, 0.0), (7.3, 5.0)])
def test_folds_do_not_depend_on_the_units_of_outputs(scale, origin):
    coarse = X.round(0)
    rows, others = (
        value_order(RowBlocks(coarse, y[None, :], None, coarse)) for y in (Y, scale * Y + origin)
    )
    assert_array_equal(rows, others)


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
