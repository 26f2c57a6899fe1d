"""Effects in any unit and precision, and joint inference at its limits."""

import numpy as np
import pandas as pd
import pytest
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import ulmus
from ulmus.core.data.source import RowBlocks
from ulmus.core.fit.refits import value_order
from ulmus.effects.bands import simultaneous_band
from ulmus.effects.inference import Estimates, centered, ratios
from ulmus.intervals.confidence import ErrorBars

RNG = np.random.default_rng(5)
N = 60
X = RNG.uniform(-1, 1, (N, 3))
Y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * RNG.standard_normal(N)
SIZES = pd.Categorical(np.tile(["low", "mid", "high"], 20), ["low", "mid", "high", "never"])


def frame(names, **others):
    return pd.DataFrame(X.round(1), columns=names).assign(**others)


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


@pytest.mark.slow
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
