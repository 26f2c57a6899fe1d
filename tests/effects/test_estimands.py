"""Averages, contrasts, slopes and curves agree with predictions of changed tables."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from models import plain_ensemble, small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.inspection import partial_dependence

from ulmus import ELMEnsembleRegressor
from ulmus.core.arrays.backend import row_blocks
from ulmus.core.layer.hidden_layer import ACTIVATIONS
from ulmus.effects import JointCovariance

STEP = 1e-5


@pytest.fixture(scope="module")
def data(make_table):
    return make_table(80, p=30)


@pytest.fixture(scope="module")
def model(data):
    return small_ensemble(4, 12, alpha=0.1, weight_scale=2.0).fit(data.X, data.y)


@pytest.fixture(scope="module")
def frame(data):
    """The points with names, a column with few values and one that is no feature."""
    table = pd.DataFrame(data.X_new, columns=["t", "u", "v"], index=np.arange(100, 130))
    table["v"] = np.round(table.v)
    return table.assign(site=np.tile(["b", "a", "c"], 10))


@pytest.fixture(scope="module")
def named(data):
    """The model of a data frame, whose last column has three values."""
    X = pd.DataFrame(data.X, columns=["t", "u", "v"])
    return small_ensemble(4, 12, alpha=0.1, weight_scale=2.0).fit(X.assign(v=np.round(X.v)), data.y)


def changed(X, j, values):
    X = np.array(X, dtype=float)
    X[:, j] = values
    return X


def central_differences(predict, X, j, step=STEP):
    up, down = (predict(changed(X, j, X[:, j] + s)) for s in (step, -step))
    return (up - down) / (2 * step)


# ---------------------------------------------------------------- slopes


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_slopes_are_central_differences_of_predict(data, activation, standardize):
    fitted = small_ensemble(
        4, 12, alpha=0.1, weight_scale=2.0, activation=activation, standardize=standardize
    ).fit(data.X, data.y)
    slopes = fitted.slope(data.X_new, by="row")
    assert slopes.term.tolist() == np.repeat(["x0", "x1", "x2"], 30).tolist()
    expected = [central_differences(fitted.predict, data.X_new, j) for j in range(3)]
    assert_allclose(slopes.estimate, np.ravel(expected), rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def learned(data):
    """A model that sees normal scores and levels of its inputs behind a learned map."""
    X = changed(data.X, 1, np.round(2 * data.X[:, 1]) / 2)
    how = {"noise": "homoskedastic", "alpha": 0.1, "random_state": 0}
    fitted = ELMEnsembleRegressor(3, 30, **how).fit(X, data.y)
    inputs = fitted.fitted_.ensemble.layer.inputs
    assert inputs.normal_scores
    assert inputs.one_hot
    return fitted, X


def test_slopes_through_scores_levels_and_a_map(learned):
    fitted, X = learned
    # The curves of scores end at the outermost rows.
    inside = np.all((X.min(axis=0) < X) & (X.max(axis=0) > X), axis=1)
    assert np.sum(inside) > 20
    slopes = fitted.slope(X[inside], by="row")
    expected = [central_differences(fitted.predict, X[inside], j, 1e-6) for j in range(3)]
    assert_allclose(slopes.estimate, np.ravel(expected), rtol=1e-6, atol=1e-6)
    between = X[inside] + [0.0013, 0.0, 0.0013]
    slopes = fitted.slope(between, [0, 2], by="row")
    expected = [central_differences(fitted.predict, between, j, 1e-6) for j in (0, 2)]
    assert_allclose(slopes.estimate, np.ravel(expected), rtol=1e-6, atol=1e-6)


def test_averages_of_slopes_are_weighted(model, data):
    weights = np.linspace(0, 1, 30)
    ours = model.slope(data.X_new, "x2", weights=weights)
    each = model.slope(data.X_new, "x2", by="row").estimate
    assert_allclose(ours.estimate, np.average(each, weights=weights), rtol=1e-10)
    assert ours.contrast.tolist() == ["dy/dx"]


# ---------------------------------------------------------------- differences


def test_values_are_compared_with_the_first(model, data):
    X = data.X_new
    ours = model.compare(X, {0: (-0.5, 0.5), "x2": [0.1, 0.2, -0.3]})
    at = {
        (j, v): model.predict(changed(X, j, v)).mean()
        for j in (0, 2)
        for v in (-0.5, 0.5, 0.1, 0.2, -0.3)
    }
    expected = [at[0, 0.5] - at[0, -0.5], at[2, 0.2] - at[2, 0.1], at[2, -0.3] - at[2, 0.1]]
    assert_allclose(ours.estimate, expected, rtol=1e-10)
    assert ours.term.tolist() == ["x0", "x2", "x2"]
    assert ours.contrast.tolist() == ["0.5 - -0.5", "0.2 - 0.1", "-0.3 - 0.1"]


SPANS = {
    "sd": lambda x: (x + np.std(x, ddof=1) / 2, x - np.std(x, ddof=1) / 2),
    "iqr": lambda x: tuple(np.quantile(x, [0.75, 0.25])),
    "minmax": lambda x: (x.max(), x.min()),
    0.2: lambda x: (x + 0.2, x),
    -0.1: lambda x: (x - 0.1, x),
}


@pytest.mark.parametrize("how", SPANS)
def test_spans_and_steps_are_differences_of_predict(model, data, how):
    X = data.X_new
    high, low = SPANS[how](X[:, 1])
    difference = model.predict(changed(X, 1, high)) - model.predict(changed(X, 1, low))
    assert_allclose(model.compare(X, {1: how}).estimate, difference.mean(), rtol=1e-10)
    rows = model.compare(X, {1: how}, by="row")
    assert_allclose(rows.estimate, difference, rtol=1e-9, atol=1e-12)
    assert rows.row.tolist() == list(range(30))


def test_a_name_alone_is_a_step_of_one(data):
    wide = small_ensemble(4, 12, alpha=0.1, weight_scale=2.0).fit(5 * data.X, data.y)
    X = 5 * data.X_new
    expected = np.mean(wide.predict(changed(X, 0, X[:, 0] + 1)) - wide.predict(X))
    for variables in (0, "x0", ["x0"], [0], {"x0": None}, {0: 1}):
        ours = wide.compare(X, variables)
        assert_allclose(ours.estimate, expected, rtol=1e-9)
        assert ours.contrast[0] == "x + 1 - x"


@pytest.fixture(scope="module")
def naive(data):
    """A model whose estimate is semidefinite by itself, so that predict_cov is the raw form."""
    return small_ensemble(4, 12, alpha=0.1, weight_scale=2.0, variance="NHo").fit(data.X, data.y)


def test_ratios_are_tested_against_one_by_the_delta_method(naive, data):
    model, X, groups = naive, data.X_new, np.arange(30) % 2
    ours = model.compare(X, {0: (-0.5, 0.5)}, by=groups, comparison="ratio")
    high, low = changed(X, 0, 0.5), changed(X, 0, -0.5)
    A = np.array([np.where(groups == g, 1 / 15, 0) for g in (0, 1)])
    f_high, f_low = A @ model.predict(high), A @ model.predict(low)
    assert_allclose(ours.estimate, f_high / f_low, rtol=1e-10)
    joint = model.predict_cov(np.vstack([high, low]))
    gradient = np.hstack([A / f_low[:, None], -A * (f_high / f_low**2)[:, None]])
    C = gradient @ joint @ gradient.T
    assert_allclose(ours.std_error**2, np.diag(C), rtol=1e-7)
    assert_allclose(ours.statistic, (ours.estimate - 1) / ours.std_error, rtol=1e-10)
    assert ours.contrast.tolist() == ["0.5 / -0.5"] * 2


# ---------------------------------------------------------------- curves

CURVES = {
    "one": ("t", {}),
    "resolution": (["u"], {"grid_resolution": 7}),
    "percentiles": ("u", {"grid_resolution": 6, "percentiles": (0.2, 0.7)}),
    "as many values as nodes": ("t", {"grid_resolution": 30}),
    "few values": ("v", {}),
    "two": (["t", "u"], {"grid_resolution": 4}),
    "two, one with few values": (["t", "v"], {"grid_resolution": 5}),
}


@pytest.mark.parametrize("case", CURVES)
def test_curves_are_those_of_scikit_learn(named, frame, case):
    features, how = CURVES[case]
    ours = named.partial_dependence(frame, features, **how)
    names = [features] if isinstance(features, str) else features
    X = frame[["t", "u", "v"]]
    resolution = {"grid_resolution": 50 if len(names) == 1 else 20} | how
    theirs = partial_dependence(named, X, names, method="brute", kind="average", **resolution)
    assert_allclose(ours.estimate, theirs["average"].ravel(), rtol=1e-10)
    nodes = np.stack(np.meshgrid(*theirs["grid_values"], indexing="ij"), axis=-1)
    assert_allclose(ours[names], nodes.reshape(-1, len(names)), rtol=1e-12)


def test_curves_on_a_grid_of_ones_own(named, frame):
    ours = named.partial_dependence(frame, "t", grid=[0.3, -0.2])
    X = frame[["t", "u", "v"]]
    expected = [named.predict(X.assign(t=value)).mean() for value in (0.3, -0.2)]
    assert_allclose(ours.estimate, expected, rtol=1e-10)
    assert ours.t.tolist() == [0.3, -0.2]
    both = named.partial_dependence(frame, ["v", "t"], grid=[[0, 1], [0.1, 0.2, 0.3]])
    expected = [
        named.predict(X.assign(v=v, t=t)).mean() for v in (0.0, 1.0) for t in (0.1, 0.2, 0.3)
    ]
    assert_allclose(both.estimate, expected, rtol=1e-10)


def test_curves_with_weights(named, frame):
    weights = np.linspace(0, 1, 30)
    ours = named.partial_dependence(frame, "t", grid_resolution=5, weights=weights)
    how = {"method": "brute", "grid_resolution": 5, "sample_weight": weights}
    theirs = partial_dependence(named, frame[["t", "u", "v"]], ["t"], **how)
    assert_allclose(ours.estimate, theirs["average"].ravel(), rtol=1e-10)


def test_a_centred_curve_has_mean_zero_and_the_covariance_of_its_differences(named, frame):
    plain = named.partial_dependence(frame, "t", grid_resolution=8)
    ours = named.partial_dependence(frame, "t", grid_resolution=8, centered=True)
    assert_allclose(ours.estimate, plain.estimate - plain.estimate.mean(), rtol=1e-9, atol=1e-12)
    P = np.eye(8) - np.ones((8, 8)) / 8
    C = P @ plain.attrs["covariance"] @ P
    assert_allclose(ours.attrs["covariance"], C, rtol=1e-8, atol=1e-12)
    assert_allclose(ours.std_error**2, np.diag(C), rtol=1e-8)


def test_the_slope_of_a_curve_is_its_derivative(named, frame):
    grid = np.array([-0.5, 0.0, 0.4])
    ours = named.partial_dependence(frame, "u", grid=grid, kind="slope")
    up, down = (named.partial_dependence(frame, "u", grid=grid + s) for s in (STEP, -STEP))
    assert_allclose(ours.estimate, (up.estimate - down.estimate) / (2 * STEP), rtol=1e-6)
    # Its covariance is that of difference quotients.
    both = named.partial_dependence(frame, "u", grid=np.concatenate([grid + 1e-3, grid - 1e-3]))
    L = np.hstack([np.eye(3), -np.eye(3)]) / 2e-3
    C = L @ both.attrs["covariance"] @ L.T
    assert_allclose(ours.std_error**2, np.diag(C), rtol=1e-3)


# ---------------------------------------------------------------- groups


def test_an_average_is_not_a_sum_of_variances(naive, data):
    X = data.X_new
    ours = naive.average(X).std_error[0] ** 2
    assert_allclose(ours, naive.predict_cov(X).mean(), rtol=1e-8)
    variances = naive.predict_var(X, "model")
    assert ours > 1.5 * variances.sum() / 30**2
    assert ours < 0.9 * variances.mean()


def test_groups_by_name_array_series_and_row(named, frame):
    mean = pd.Series(named.predict(frame[["t", "u", "v"]]), index=frame.index)
    by_site = mean.groupby(frame.site).mean()
    for by in ("site", frame.site, ["site"], [frame.site]):
        ours = named.average(frame, by=by)
        assert ours.site.tolist() == ["a", "b", "c"]
        assert_allclose(ours.estimate, by_site, rtol=1e-10)
    codes = frame.site.map({"a": 0, "b": 1, "c": 2})
    for by in (frame.site.to_numpy(), codes.to_numpy(), codes.tolist()):
        ours = named.average(frame, by=by)
        assert ours.by.tolist() in (["a", "b", "c"], [0, 1, 2])
        assert_allclose(ours.estimate, by_site, rtol=1e-10)
    ours = named.average(frame, by="row")
    assert ours.row.tolist() == frame.index.tolist()
    assert_allclose(ours.estimate, mean, rtol=1e-10)
    assert_allclose(
        ours.std_error**2, named.predict_var(frame[["t", "u", "v"]], "model"), rtol=1e-8
    )


def test_groups_by_several_keys_have_those_combinations_that_occur(named, frame):
    late = np.arange(30) >= 28
    ours = named.average(frame, by=["site", late, "v"])
    mean = pd.Series(named.predict(frame[["t", "u", "v"]]), index=frame.index)
    expected = mean.groupby([frame.site, late, frame.v]).mean()
    assert list(zip(ours.site, ours.by1, ours.v, strict=True)) == list(expected.index)
    assert_allclose(ours.estimate, expected, rtol=1e-10)


def test_groups_of_each_term(named, frame):
    ours = named.compare(frame, {"t": (-0.5, 0.5), "u": "iqr"}, by="site")
    assert ours.term.tolist() == ["t"] * 3 + ["u"] * 3
    assert ours.site.tolist() == ["a", "b", "c"] * 2
    alone = named.compare(frame[frame.site == "b"], {"t": (-0.5, 0.5)})
    assert_allclose(ours.estimate[1], alone.estimate[0], rtol=1e-10)
    assert_allclose(ours.std_error[1], alone.std_error[0], rtol=1e-10)


def test_weights_by_name_and_array(named, frame):
    table = frame.assign(mass=np.linspace(0, 2, 30))
    mean = named.predict(frame[["t", "u", "v"]])
    for weights in ("mass", table.mass, table.mass.to_numpy(), 7 * table.mass):
        ours = named.average(table, weights=weights)
        assert_allclose(ours.estimate, np.average(mean, weights=table.mass), rtol=1e-10)


def test_columns_that_are_called_as_ours(data):
    X = pd.DataFrame(data.X, columns=["term", "estimate", "row"])
    points = pd.DataFrame(data.X_new, columns=X.columns)
    fitted = small_ensemble(4, 12, alpha=0.1, weight_scale=2.0).fit(X, data.y)
    curve = fitted.partial_dependence(points, ["term", "estimate"], grid_resolution=2)
    assert {"term_", "estimate_"} <= set(curve.columns)
    # The user's column of that name goes first.
    assert len(fitted.average(points.assign(row=0.0), by="row")) == 1


# ---------------------------------------------------------------- frames


def test_frames_survive_what_pandas_does_with_them(named, frame):
    ours = named.average(frame, by="site")
    again = named.average(frame, by="site")
    other = named.average(frame, by="v")
    names = pd.DataFrame({"site": ["a", "b", "c"], "name": ["x", "y", "z"]})
    assert len(pd.concat([ours, again])) == 6
    assert len(pd.concat([ours, other])) == 6
    assert ours.merge(names).name.tolist() == ["x", "y", "z"]
    copied = ours.copy()
    assert_array_equal(copied.attrs["covariance"], ours.attrs["covariance"])
    assert copied.attrs["covariance"] == ours.attrs["covariance"]
    assert_allclose(ours.groupby("contrast").estimate.mean(), ours.estimate.mean())
    assert ours[ours.estimate > 0].reset_index(drop=True).shape[1] == ours.shape[1]
    assert list(ours.columns) == [
        *("term", "contrast", "site", "estimate", "std_error"),
        *("statistic", "p_value", "conf_low", "conf_high"),
    ]


def test_many_rows_come_without_their_joint_covariance(model):
    X = np.random.default_rng(0).uniform(-0.8, 0.8, (501, 3))
    few, many = model.average(X[:500], by="row"), model.average(X, by="row")
    assert few.attrs["covariance"].shape == (500, 500)
    assert "covariance" not in many.attrs
    assert_allclose(many.std_error[:500], few.std_error, rtol=1e-10)
    assert model.average(X, by="row", simultaneous=True).attrs["covariance"].shape == (501, 501)


@pytest.mark.slow
def test_an_average_over_a_long_table_needs_the_memory_of_a_block(data):
    fitted = plain_ensemble(8, 140, alpha=0.1, random_state=0).fit(data.X, data.y)
    X = np.random.default_rng(0).uniform(-0.8, 0.8, (200_000, 3))
    assert len(list(row_blocks(len(X), fitted.fitted_.ensemble.layer.width))) >= 200
    fitted.average(X[:100])
    tracemalloc.start()
    ours = fitted.compare(X, {0: (-0.5, 0.5)}, by=np.arange(len(X)) % 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All hidden features at once would be 1.8 GB.
    assert peak < X.nbytes + 100e6
    assert len(ours) == 3


def test_long_tables_are_summed_over_all_blocks(data):
    fitted = plain_ensemble(8, 140, alpha=0.1, variance="NHo", random_state=0).fit(data.X, data.y)
    X = np.random.default_rng(0).uniform(-0.7, 0.7, (2500, 3))
    groups = np.arange(len(X)) % 3
    assert len(list(row_blocks(len(X), fitted.fitted_.ensemble.layer.width))) == 3
    frame = fitted.compare(X, {0: 0.1, 1: (-0.2, 0.2)}, by=groups)
    step = fitted.predict(changed(X, 0, X[:, 0] + 0.1)) - fitted.predict(X)
    values = fitted.predict(changed(X, 1, 0.2)) - fitted.predict(changed(X, 1, -0.2))
    expected = [change[groups == g].mean() for change in (step, values) for g in range(3)]
    assert_allclose(frame.estimate, expected, rtol=1e-8)
    last = X[groups == 2]
    joint = fitted.predict_cov(last)
    assert_allclose(fitted.average(X, by=groups).std_error[2] ** 2, joint.mean(), rtol=1e-6)


# ---------------------------------------------------------------- the covariance of sorted rows


def test_the_covariance_of_sorted_and_selected_rows(named, frame):
    """Attributes of a frame keep their order when its rows are sorted."""
    ours = named.average(frame, by="site")
    covariance = ours.attrs["covariance"]
    part = ours.sort_values("estimate", ascending=False).head(2)
    order = list(part.index)
    found = part.attrs["covariance"].of(part)
    assert_array_equal(found, np.asarray(covariance)[np.ix_(order, order)])
    assert_array_equal(covariance.loc[part.index, part.index], found)
    assert_allclose(np.sqrt(np.diagonal(found)), part.std_error)
    difference = np.array([1.0, -1.0])
    expected = named.average(frame, by="site", hypothesis="pairwise")
    se = np.sqrt(difference @ found @ difference)
    assert np.min(np.abs(expected.std_error - se)) < 1e-9 * se


def test_frames_whose_index_was_replaced_are_refused(named, frame):
    ours = named.average(frame, by="site")
    covariance = ours.attrs["covariance"]
    with pytest.raises(ValueError, match="other standard errors; keep the index"):
        covariance.of(ours.iloc[::-1].reset_index(drop=True))
    with pytest.raises(ValueError, match="the label 'a', which no row of the covariance has"):
        covariance.of(ours.set_index("site"))


def test_a_covariance_is_an_array_of_numpy(named, frame):
    covariance = named.average(frame, by="site").attrs["covariance"]
    C, L = np.asarray(covariance), np.array([[1.0, -1.0, 0.0]])
    assert covariance.shape == C.shape == (3, 3)
    assert len(covariance) == 3
    assert_array_equal(L @ covariance @ L.T, L @ C @ L.T)
    assert_array_equal(covariance @ L.T, C @ L.T)
    assert_array_equal(np.abs(covariance), np.abs(C))
    assert_array_equal(covariance[:2, 0], C[:2, 0])
    assert covariance == pickle.loads(pickle.dumps(covariance))
    assert covariance != JointCovariance(C, ["a", "b", "c"])
