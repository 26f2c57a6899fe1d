"""Invariance to order, units and weights of zero with correlated noise, and special cases."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from messages import mentions
from models import autocorrelated_table
from numpy.testing import assert_allclose
from sklearn.base import clone

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.exceptions import BiasWarning, CorrelatedErrorsWarning
from ulmus.noise import AR1, Clustered, Conley, Exponential, Matern, NeweyWest

# Results of fits with different weights are compared at the mean weight.


@pytest.fixture(scope="module")
def locations():
    """Inputs, and where 80 rows are."""
    rng = np.random.default_rng(0)
    n = 80
    return {
        "X": rng.uniform(-1, 1, (n, 2)),
        "time": np.arange(n),
        "coords": rng.uniform(0, 3, (n, 2)),
        "groups": np.arange(n) % 8,
    }


# ---------------------------------------------------------------- invariance

NOISES = [
    AR1(),
    AR1(nugget=False),
    AR1() * Clustered(),
    Exponential(),
    Matern(nu=2.5, nugget=False),
    AR1() + Exponential(),
    NeweyWest(),
    NeweyWest("qs"),
    NeweyWest() * Clustered(),
    Clustered(),
]
noises = pytest.mark.parametrize("noise", NOISES, ids=repr)


def fit_and_predict(noise, X, y, given, **parameters):
    """Predictions, their standard errors and intervals at some points."""
    model = ELMEnsembleRegressor(3, 8, noise=noise, input_map=None, random_state=0, **parameters)
    model.fit(X, y, **given)
    new = np.random.default_rng(7).uniform(-1, 1, (9, 2))
    se = np.sqrt(model.predict_var(new, component="model"))
    return np.column_stack([model.predict(new), se, model.predict_interval(new)])


@pytest.fixture
def rows(locations):
    """Inputs, and outputs whose noise fades in the order of the rows."""
    rng = np.random.default_rng(3)
    S = np.exp(-np.abs(np.subtract.outer(locations["time"], locations["time"])) / 4)
    return locations["X"], np.sin(3 * locations["X"][:, 0]) + np.linalg.cholesky(S) @ (
        rng.standard_normal(80)
    )


@pytest.mark.slow
@pytest.mark.parametrize("noise", [Exponential(), Matern(), Conley(cutoff=1.0)], ids=repr)
@pytest.mark.parametrize("map_of_inputs", [None, "auto"])
def test_origin_and_rotation_of_coordinates_do_not_matter(locations, rows, noise, map_of_inputs):
    """Blocks of rows that are held out together had sides along the axes."""
    turned = np.array([[0.8, -0.6], [0.6, 0.8]])
    found = []
    for coords in (locations["coords"], locations["coords"] @ turned + [300.0, -20.0]):
        model = ELMEnsembleRegressor(3, 8, noise=noise, input_map=map_of_inputs, random_state=0)
        model.fit(*rows, coords=coords)
        se = np.sqrt(model.predict_var(rows[0], component="model"))
        found.append(np.column_stack([se, model.predict(rows[0]), model.predict_interval(rows[0])]))
    assert_allclose(*found, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@noises
@pytest.mark.parametrize("alpha", [0.1, "block-loo"])
def test_the_order_of_the_rows_does_not_matter(locations, rows, noise, alpha):
    given = {axis: locations[axis] for axis in noise.names()}
    order = np.random.default_rng(5).permutation(80)
    mixed = {axis: values[order] for axis, values in given.items()}
    X, y = rows
    found = fit_and_predict(noise, X[order], y[order], mixed, alpha=alpha)
    assert_allclose(found, fit_and_predict(noise, X, y, given, alpha=alpha), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@noises
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_of_the_outputs_and_the_locations_do_not_matter(locations, rows, noise, unit):
    given = {axis: locations[axis] for axis in noise.names()}
    X, y = rows
    expected = fit_and_predict(noise, X, y, given)
    shifted = fit_and_predict(noise, X, unit * (y + 5), given) / unit - [5, 0, 5, 5]
    assert_allclose(shifted, expected, rtol=1e-4, atol=1e-5)
    moved = {a: v if a == "groups" else unit * (v + 3.0) for a, v in given.items()}
    assert_allclose(fit_and_predict(noise, X, y, moved), expected, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- special cases

CONSTANT = {
    "in time": (AR1(nugget=False), ["time"]),
    "series": (AR1(nugget=False) * Clustered(), ["time", "groups"]),
    "space": (Exponential(), ["coords"]),
    "smooth space": (Matern(nugget=False), ["coords"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.0, 0.003, 3.0, 3e9])
@pytest.mark.parametrize("kind", CONSTANT)
@pytest.mark.parametrize("members", [1, 3])
def test_outputs_without_noise(locations, level, kind, members):
    noise, axes = CONSTANT[kind]
    settings = {"noise": noise, "input_map": None, "alpha": "gcv", "random_state": 0}
    single = members == 1
    model = ELMRegressor(8, **settings) if single else ELMEnsembleRegressor(3, 8, **settings)
    given = {axis: locations[axis] for axis in axes}
    model.fit(locations["X"], np.full(80, level), **given)
    assert model.noise_covariance_.independent
    new = locations["X"][::-1]
    for bounds in (
        model.predict_interval(new, residual_kriging=True, **given),
        model.predict_interval(new, kind="confidence"),
        model.predict_interval(new),
    ):
        assert_allclose(bounds, level, rtol=1e-9, atol=1e-12)


def test_tables_of_all_kinds_name_their_columns(locations):
    columns = {"x": locations["X"][:, 0], "t": locations["time"] * 0.5, "site": locations["groups"]}
    y = np.sin(3 * columns["x"]) + np.random.default_rng(1).standard_normal(80)
    noise = AR1(time="t") * Clustered("site")
    fit_and_predict = []
    for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        model = ELMEnsembleRegressor(3, 8, noise=noise, input_map=None, random_state=0)
        model.fit(table, y)
        kriged = model.predict(table, residual_kriging=True)
        fit_and_predict.append((*kriged, *model.average(table, by="site").std_error))
    assert_allclose(fit_and_predict[1:], [fit_and_predict[0]] * 2)


@pytest.mark.parametrize(
    "noise", [AR1(), Exponential(), AR1() * Clustered(), NeweyWest(), Clustered()]
)
def test_rows_of_weight_zero_are_as_if_they_were_not_there(locations, noise):
    rng = np.random.default_rng(2)
    X, y = locations["X"], rng.standard_normal(80) + locations["X"][:, 0]
    weight = rng.uniform(0.5, 2, 80)
    weight[rng.random(80) < 0.3] = 0.0
    used = weight > 0
    given = {axis: locations[axis] for axis in noise.names()}
    model = ELMEnsembleRegressor(3, 8, noise=noise, input_map=None, random_state=0)
    whole = clone(model).fit(X, y, weight, **given)
    few = clone(model).fit(
        X[used], y[used], weight[used], **{axis: values[used] for axis, values in given.items()}
    )
    fits = [whole, few]
    if noise in (AR1(), NeweyWest()):
        blocks = [(X[:33], y[:33], weight[:33]), (X[33:], y[33:], weight[33:])]
        fits.append(clone(model).fit_blocks(blocks, **given))
    assert_allclose([one.alpha_ for one in fits], whole.alpha_)
    assert_allclose([one.predict_var(X) for one in fits], [whole.predict_var(X)] * len(fits))
    assert_allclose(whole.predict_interval(X), few.predict_interval(X))


@pytest.mark.parametrize("noise", [AR1(), AR1() * Clustered(), AR1() + Exponential()])
def test_a_known_variance_is_no_part_of_a_fitted_covariance(locations, noise):
    given = {axis: locations[axis] for axis in noise.names()}
    model = ELMEnsembleRegressor(3, 8, noise=noise, noise_variance=0.5, input_map=None)
    with pytest.raises(ValueError, match=mentions("noise_variance=0.5", "AR1(", "'pilot'")):
        model.fit(locations["X"], locations["X"][:, 0], **given)


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (NeweyWest(bandwidth=80), ("bandwidth=80", "range of the time (79)", "unit of time")),
        (NeweyWest("qs", bandwidth=1e9), ("bandwidth=1000000000", "range of the time (79)")),
        (NeweyWest("qs", bandwidth=1e-9), ("bandwidth=1e-09", "far below")),
        (NeweyWest(bandwidth=1e-9), ("bandwidth=1e-09", "far below", "rows (1)")),
        (Conley(cutoff=5e3), ("cutoff=5000", "range of the coords (4.", "unit of coords")),
        (Conley(cutoff=1e-3), ("cutoff=0.001", "far below", "unit of coords")),
    ],
)
def test_kernels_in_other_units_than_the_locations_are_refused(locations, noise, words):
    """All products imply standard errors near zero, none those of independent noise."""
    given = {axis: locations[axis] for axis in noise.names()}
    model = ELMEnsembleRegressor(3, 8, noise=noise, input_map=None)
    with pytest.raises(ValueError, match=mentions(*words)):
        model.fit(locations["X"], locations["X"][:, 0], **given)


def test_a_kernel_may_hold_whole_groups(locations):
    noise = NeweyWest(bandwidth=1e9) * Clustered()
    model = ELMEnsembleRegressor(3, 8, noise=noise, input_map=None, random_state=0)
    y = locations["X"][:, 0] + np.random.default_rng(1).standard_normal(80)
    model.fit(locations["X"], y, time=locations["time"], groups=locations["groups"])
    assert np.all(model.predict_var(locations["X"], component="model") > 0)


def test_a_single_network_without_noise_has_real_intervals(locations):
    """Round-off below zero was the variance of output weights, and its root no real number."""
    model = ELMRegressor(8, noise="homoskedastic", alpha="gcv", input_map=None, random_state=0).fit(
        locations["X"], np.full(80, 0.003)
    )
    bounds = model.predict_interval(locations["X"], kind="confidence")
    assert bounds.dtype == float
    assert_allclose(bounds, 0.003)


# ---------------------------------------------------------------- learned maps


@pytest.mark.slow
@pytest.mark.parametrize("noise", [Clustered(), AR1() * Clustered(), NeweyWest() * Clustered()])
def test_the_order_of_groups_does_not_change_what_a_map_costs(noise):
    X, y = autocorrelated_table(60, 0.6, sd=0.3, scale=1.0)
    given = {"time": np.arange(60.0), "groups": np.repeat(np.arange(10), 6)}
    given = {axis: given[axis] for axis in noise.names()}
    backward = {axis: values[::-1] for axis, values in given.items()}
    model = ELMEnsembleRegressor(4, 15, noise=noise, alpha=0.1, random_state=0)
    expected = model.fit(X, y, **given).predict_interval(X[:5])
    found = model.fit(X[::-1], y[::-1], **backward).predict_interval(X[:5])
    assert_allclose(found, expected, rtol=1e-5)


# ---------------------------------------------------------------- noise that is independent


@pytest.mark.parametrize("noise", [AR1(), Exponential()], ids=repr)
def test_independent_rows_have_the_misfit_of_independent_noise(noise):
    # A steep function and few smooth units: the fit cannot follow.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 1))
    y = np.sign(X[:, 0]) + 0.1 * rng.standard_normal(200)
    given = {"coords": rng.uniform(0, 9, (200, 2))} if noise == Exponential() else {}
    settings = {"input_map": None, "alpha": 0.1, "random_state": 0}
    plain = ELMEnsembleRegressor(5, 20, noise="homoskedastic", **settings).fit(X, y)
    careful = ELMEnsembleRegressor(5, 20, noise=noise, **settings).fit(X, y, **given)
    assert careful.noise_covariance_.independent
    assert plain.fitted_.misfit.found
    points = np.linspace(-1, 1, 9)[:, None]
    with pytest.warns(BiasWarning):
        expected = plain.predict_interval(points, kind="confidence")
    with pytest.warns(BiasWarning):
        found = careful.predict_interval(points, kind="confidence")
    assert_allclose(found, expected, rtol=1e-6)
    severity = {one.code: one.severity for one in careful.check().findings}
    expected = {one.code: one.severity for one in plain.check().findings}
    assert severity["misfit"] == expected["misfit"]


# ---------------------------------------------------------------- advice that can be followed


def test_an_estimate_of_other_rows_is_no_matter_of_fitting_again():
    X, y = autocorrelated_table(60, 0.8, sd=0.3, scale=1.0)
    settings = {"input_map": None, "alpha": 0.1, "random_state": 0}
    together = ELMEnsembleRegressor(3, 8, noise=AR1(), **settings).fit(X, y)
    with pytest.raises(
        ValueError, match=mentions("estimate='S2'", "correlated noise", "'BD', 'BR'")
    ):
        together.predict_var(X, estimate="S2")
    together.predict_var(X, estimate="BR")
    alone = ELMEnsembleRegressor(3, 8, noise="homoskedastic", **settings).fit(X, y)
    with pytest.raises(ValueError, match=mentions("estimate='BD'", "independent noise", "'BR'")):
        alone.predict_var(X, estimate="BD")
    with pytest.raises(ValueError, match=mentions("estimate='S2'", "fit again with variance='S2'")):
        alone.predict_var(X, estimate="S2")


def test_several_series_in_a_stream_warn_about_groups():
    X, y = autocorrelated_table(60, 0.8, sd=0.3, scale=1.0)
    model = ELMEnsembleRegressor(3, 8, noise=AR1(), input_map=None, alpha=0.1, random_state=0)
    with pytest.warns(CorrelatedErrorsWarning, match="60 of 60 rows share their time"):
        model.fit_blocks([(X[:30], y[:30]), (X[30:], y[30:])], time=np.repeat(np.arange(30), 2))
