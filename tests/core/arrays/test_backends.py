"""Torch and other array libraries give NumPy's numbers, in their own arrays."""

import numpy as np
import pytest
import scipy.special
from fit_comparison import assert_close, assert_same_predictions, every_prediction
from messages import mentions
from models import every_estimate_ensemble, plain_member
from numpy.testing import assert_allclose

from ulmus.core.arrays.backend import column_sums, erf, like, logistic, to_numpy
from ulmus.core.arrays.linalg import triangular_factor
from ulmus.core.data.scaling import feature_scale
from ulmus.core.data.source import Block
from ulmus.core.layer.hidden_layer import ACTIVATIONS

# ---------------------------------------------------------------- fits and predictions


# Members this small underfit the function, which raises a warning.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning")
@pytest.mark.parametrize("n", [30, 150], ids=["fewer rows than features", "more"])
@pytest.mark.parametrize(
    "how",
    [
        {"alpha": 0.1, "hc": "HC3"},
        {"alpha": "loo", "hc": "HC3-exact", "fit_intercept": False},
        {"alpha": "gcv", "hc": "pooled", "noise": "heteroskedastic"},
        {"alpha": "loo", "noise_variance": "residual", "standardize": False},
    ],
    ids=str,
)
def test_fit_follows_the_data(xp, make_table, how, n):
    X, y, w, X_new = make_table(n)
    ours = every_estimate_ensemble(6, **how).fit(xp.asarray(X), xp.asarray(y), xp.asarray(w))
    expected = every_estimate_ensemble(6, **how).fit(X, y, w)
    points = xp.asarray(X_new)
    assert isinstance(ours.fitted_.ensemble.layer.W, type(points))
    assert_same_predictions(ours, expected, points, X_new, type(points))
    for name in ("leverage_", "loo_residuals_", "loo_predictions_", "coef_", "intercept_"):
        assert isinstance(getattr(ours, name), np.ndarray)
        assert_allclose(getattr(ours, name), getattr(expected, name), rtol=1e-7, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
@pytest.mark.parametrize("method", ["auto", "jackknife+", "gaussian"])
def test_prediction_intervals(xp, make_table, method, noise):
    X, y, _, X_new = make_table(90)
    how = {"noise": noise, "variance": "auto"}
    ours, expected = (
        every_estimate_ensemble(6, **how).fit(xp.asarray(X), xp.asarray(y)),
        every_estimate_ensemble(6, **how).fit(X, y),
    )
    points = xp.asarray(X_new)
    bounds = ours.predict_interval(points, [0.5, 0.9], method=method)
    assert isinstance(bounds, type(points))
    assert_close(bounds, expected.predict_interval(X_new, [0.5, 0.9], method=method))
    quantiles = ours.predict_quantiles(points, [0.1, 0.9])
    assert isinstance(quantiles, type(points))
    assert_close(quantiles, expected.predict_quantiles(X_new, [0.1, 0.9]))


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_fit_blocks_follows_the_data(xp, make_table, noise):
    X, y, w, X_new = make_table(90)
    blocks = [
        (xp.asarray(X[a:b]), xp.asarray(y[a:b]), xp.asarray(w[a:b]))
        for a, b in ((0, 40), (40, 40), (40, 41), (41, 90))
    ]
    ours, expected = (
        every_estimate_ensemble(6, noise=noise).fit_blocks(blocks),
        every_estimate_ensemble(6, noise=noise).fit(X, y, w),
    )
    points = xp.asarray(X_new)
    assert isinstance(ours.fitted_.ensemble.layer.W, type(points))
    theirs = every_prediction(expected, X_new)
    for name, value in every_prediction(ours, points).items():
        assert isinstance(value, type(points)), name
        assert_close(value, theirs[name], err_msg=name)


def test_partial_fit_follows_the_data(xp, make_table):
    X, y, w, X_new = make_table(90)
    how = {"alpha": 0.1, "standardize": False, "variance": "auto"}
    ours = every_estimate_ensemble(6, **how)
    for rows in (slice(50), slice(50, 51), slice(51, 90)):
        ours.partial_fit(xp.asarray(X[rows]), xp.asarray(y[rows]), xp.asarray(w[rows]))
    expected = every_estimate_ensemble(6, **how).fit(X, y, w)
    variance = ours.predict_var(xp.asarray(X_new))
    assert isinstance(variance, type(xp.asarray(X_new)))
    assert_close(variance, expected.predict_var(X_new))


@pytest.mark.slow
def test_several_outputs(xp, make_table):
    X, y, _, X_new = make_table(90)
    Y = np.stack([y, 100 - 3 * X[:, 0]], axis=1)
    for ours in (
        every_estimate_ensemble(6).fit(xp.asarray(X), xp.asarray(Y)),
        every_estimate_ensemble(6).fit_blocks(
            [(xp.asarray(X[:50]), Y[:50]), (xp.asarray(X[50:]), Y[50:])]
        ),
    ):
        expected = every_estimate_ensemble(6).fit(X, Y)
        assert_close(ours.predict(xp.asarray(X_new)), expected.predict(X_new))
        assert_close(ours.predict_var(xp.asarray(X_new)), expected.predict_var(X_new))


def test_one_member(xp, make_table):
    X, y, _, X_new = make_table(60)
    ours = plain_member(8, random_state=0).fit(xp.asarray(X), xp.asarray(y))
    expected = plain_member(8, random_state=0).fit(X, y)
    assert_close(ours.predict_var(xp.asarray(X_new)), expected.predict_var(X_new))


def test_libraries_mix(xp, make_table):
    X, y, _, X_new = make_table(60)
    foreign, points = every_estimate_ensemble(6).fit(xp.asarray(X), y), xp.asarray(X_new)
    local = every_estimate_ensemble(6).fit(X, y)
    for ours, at, library in ((foreign, X_new, np.ndarray), (local, points, type(points))):
        assert isinstance(ours.predict(at), library)
        assert_close(ours.predict(at), local.predict(X_new))
        assert_close(ours.predict_var(at), local.predict_var(X_new))


def test_members_can_be_compared(xp, make_table):
    X, y, _, X_new = make_table(90)
    ours, expected = (
        every_estimate_ensemble(6).fit(xp.asarray(X), y),
        every_estimate_ensemble(6).fit(X, y),
    )
    for method in ("variance_components", "member_correlation"):
        ours_parts = getattr(ours, method)(xp.asarray(X_new))
        expected_parts = getattr(expected, method)(X_new)
        for one, two in zip(ours_parts, expected_parts, strict=True):
            assert_close(one, two)
    assert_allclose(ours.undersmoothing_gap_, expected.undersmoothing_gap_, rtol=1e-7)
    ours.compress()
    assert_close(ours.predict_var(xp.asarray(X_new)), expected.predict_var(X_new))


def test_bad_arrays_are_refused(xp, make_table):
    X, y, _, X_new = make_table(60)
    bad = X.copy()
    bad[41, 1] = np.nan
    with pytest.raises(ValueError, match=mentions("NaN", "drop or fill")):
        every_estimate_ensemble(6).fit(xp.asarray(bad), y)
    blocks = [(xp.asarray(bad[:40]), y[:40]), (xp.asarray(bad[40:]), y[40:])]
    with pytest.raises(ValueError, match=mentions("X of block 1", "row 1;")):
        every_estimate_ensemble(6).fit_blocks(blocks)
    model = every_estimate_ensemble(6).fit(xp.asarray(X), y)
    with pytest.raises(ValueError, match=mentions("2 features", "3")):
        model.predict(xp.asarray(X_new[:, :2]))
    with pytest.raises(ValueError, match="axes"):
        model.predict(xp.asarray(X_new[0]))


def test_the_scale_of_the_inputs(xp, make_table):
    X, y, w, _ = make_table(60)
    root = np.sqrt(w)
    ours = feature_scale([Block(xp.asarray(X), xp.asarray(y[None, :]), xp.asarray(root))])
    expected = feature_scale([Block(X, y[None, :], root)])
    assert isinstance(ours.sd, np.ndarray)
    assert_allclose(ours.mean, expected.mean, rtol=1e-12)
    assert_allclose(ours.sd, expected.sd, rtol=1e-12)


# ---------------------------------------------------------------- functions

POINTS = np.concatenate([np.linspace(-6, 6, 101), [-1e3, -40.0, 0.0, 40.0, 1e3]])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations(xp, reference_activations, name):
    value = ACTIVATIONS[name].value(xp.asarray(POINTS.copy()))
    assert isinstance(value, type(xp.asarray(POINTS)))
    assert_allclose(to_numpy(value), reference_activations[name](POINTS), rtol=1e-13, atol=1e-15)


def test_logistic_and_error_function(xp):
    ours = logistic(xp.asarray(POINTS.copy())), erf(xp.asarray(POINTS))
    assert_allclose(to_numpy(ours[0]), scipy.special.expit(POINTS), rtol=1e-13, atol=1e-15)
    assert_allclose(to_numpy(ours[1]), scipy.special.erf(POINTS), rtol=1e-13, atol=1e-15)


def test_matrices(xp):
    A = np.random.default_rng(0).standard_normal((3, 20, 4))
    R = to_numpy(triangular_factor(xp.asarray(A)))
    assert R.shape == (3, 4, 4)
    assert_allclose(R.transpose(0, 2, 1) @ R, A.transpose(0, 2, 1) @ A, rtol=1e-10, atol=1e-10)
    sums = to_numpy(column_sums(xp.asarray(A), xp.asarray(A)))
    assert_allclose(sums, np.einsum("ijk,ijk->k", A, A), rtol=1e-12)
    back = to_numpy(like(A[:, ::2], xp.asarray(A[0])))
    assert_allclose(back, A[:, ::2], rtol=0)
