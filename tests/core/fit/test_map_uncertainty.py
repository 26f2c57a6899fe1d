"""Variance due to the choice of a map to first order, for fits of more rows than folds are for."""

import dataclasses

import numpy as np
import oracles
import pytest
import scipy.sparse
from fit_comparison import cut
from models import mapped_ensemble
from numpy.testing import assert_allclose

from ulmus import load
from ulmus.core.ensemble import map_uncertainty as module
from ulmus.core.ensemble.regression import fitted_rows
from ulmus.core.fit import map_choice
from ulmus.core.layer.functionals import Functionals, Piece, count

N_ROWS, POINTS = 450, np.random.default_rng(9).uniform(-0.9, 0.9, (6, 3))
SMALL = {"input_map": "ard", "expand_inputs": None, "noise": "homoskedastic"}


def table(n=N_ROWS, K=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    Y = np.stack([np.sin(3 * X[:, 0]) + (k + 1) * X[:, 1] ** 2 for k in range(K)], axis=1)
    return X, np.squeeze(50 + 20 * (Y + 0.3 * rng.standard_normal((n, K))))


def small(**parameters):
    return mapped_ensemble(2, 12, **SMALL | parameters)


@pytest.fixture(scope="module")
def model():
    return small().fit(*table())


def refitted(fit, change):
    """Predictions behind a changed map at the same ridge parameter."""
    layer = fit.ensemble.layer
    P = np.eye(len(change)) + change
    spec = fit.spec.regression.without_estimates
    spec = dataclasses.replace(spec, alpha=fit.ensemble.regressions[0].smoother.alpha)
    changed = dataclasses.replace(layer, W=layer.W @ P.T)
    return fitted_rows(fit.rows.data, changed, spec).ensemble


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{}, {"input_map": "full"}, {"fit_intercept": False}])
@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives_along_directions_are_those_of_refits(parameters, weighted):
    X, y = table()
    w = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    fit = small(**parameters).fit(X, y, sample_weight=w).fitted_
    added, subtracted = fit.map_shifts(POINTS)
    assert len(added) == len(fit.map_uncertainty.changes) > 0
    step = 1e-2  # round-off of the refits over the step is 1e-7 of the largest value
    for P, shift in zip(fit.map_uncertainty.changes, added - subtracted, strict=True):
        means = [refitted(fit, k * step * P).mean(POINTS) for k in (2, 1, -1, -2)]
        quotient = (8 * (means[1] - means[2]) - (means[0] - means[3])) / (12 * step)
        assert_allclose(shift, quotient, rtol=1e-5, atol=1e-6 * np.abs(quotient).max())


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_the_variance_is_that_of_the_whole_smoother_row(monkeypatch, weighted):
    """2 z'Sigma s + s'Sigma s, with s = J d theta/dy from refits for each entry of the map."""
    monkeypatch.setattr(module, "EFFECT_SHARE", 1.0)
    calls, uncertainty = [], map_choice.map_uncertainty

    def recorded(ensemble, answer, sample, noise):
        calls.append((answer, sample))
        return uncertainty(ensemble, answer, sample, noise)

    monkeypatch.setattr(map_choice, "map_uncertainty", recorded)
    X, y = table()
    w = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    fit = small().fit(X, y, sample_weight=w).fitted_
    ((answer, sample),) = calls
    step, J = 1e-4, []
    for i, j in answer.entries:
        P = np.zeros((3, 3))
        P[i, j] = step
        after, before = (refitted(fit, sign * P).mean(POINTS)[0] for sign in (1, -1))
        J.append((after - before) / (2 * step))
    s = np.zeros((len(POINTS), N_ROWS))
    s[:, sample.rows] = np.array(J).T @ answer.by_y[:, 0]
    layer, alpha = fit.ensemble.layer, fit.ensemble.regressions[0].smoother.alpha
    H, h = ([np.asarray(a)[1:].T for a in layer(Z)] for Z in (X, POINTS))
    z = np.mean(oracles.smoother_rows(H, h, alpha, True, w, weighted=False), axis=0)
    Sigma = fit.sigma2[0] / (np.ones(N_ROWS) if w is None else w)
    expected = np.sum((2 * z + s) * Sigma * s, axis=1)
    added, subtracted = fit.map_shifts(POINTS)
    change = np.sum(added**2 - subtracted**2, axis=0)[0]
    assert_allclose(change, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_functionals_have_the_sums_of_points(model):
    fit, A = model.fitted_, np.random.default_rng(1).standard_normal((4, 6))
    functionals = Functionals((Piece(lambda rows: POINTS[rows], scipy.sparse.csr_array(A.T)),))
    shifts = zip(fit.map_shifts(functionals), fit.map_shifts(POINTS), strict=True)
    for of_functionals, of_points in shifts:
        assert_allclose(of_functionals, of_points @ A.T, rtol=1e-9, atol=1e-9)


def test_slopes_are_difference_quotients(model):
    frame = model.slope(POINTS, "x0", by="row")
    step = 1e-4 * np.eye(3)[0]
    X = np.concatenate([POINTS + step, POINTS - step])
    A = np.concatenate([np.eye(6), -np.eye(6)], axis=1) / 2e-4
    other = model.functional(A, X)
    assert_allclose(frame.estimate, other.estimate, rtol=1e-5, atol=1e-5)
    assert_allclose(frame.std_error, other.std_error, rtol=1e-5)


def test_error_bars_include_it(model):
    fit = model.fitted_
    without = dataclasses.replace(fit, map_uncertainty=None)
    assert not np.any(without.map_variance(POINTS))
    gain = fit.choice_variance(POINTS) - without.choice_variance(POINTS)
    assert_allclose(gain, fit.map_variance(POINTS).T)
    assert np.mean(gain) > 0


@pytest.mark.slow
def test_outputs_have_their_own():
    X, Y = table(K=2)
    fit = small().fit(X, Y).fitted_
    assert fit.map_variance(POINTS).shape == (2, 6)
    assert np.all(fit.map_variance(POINTS).mean(axis=1) > 0)
    flipped = small().fit(X, Y[:, ::-1]).fitted_
    assert_allclose(flipped.map_variance(POINTS)[::-1], fit.map_variance(POINTS), rtol=1e-3)


@pytest.mark.slow
def test_units_and_order_of_rows_do_not_matter(model):
    X, y = table()
    expected = model.fitted_.map_variance(POINTS)
    order = np.random.default_rng(0).permutation(len(y))
    assert_allclose(
        small().fit(X[order], y[order]).fitted_.map_variance(POINTS), expected, rtol=1e-3
    )
    scaled = small().fit(X, -(2.0**9) * y).fitted_.map_variance(POINTS)
    assert_allclose(scaled, 2.0**18 * expected, rtol=1e-6)


@pytest.mark.slow
def test_streams_files_and_compressed_fits_have_the_same(model, tmp_path):
    X, y = table()
    expected = model.fitted_.map_variance(POINTS)
    streamed = small().fit_blocks(cut(X, y, None, size=100)).fitted_
    assert_allclose(streamed.map_variance(POINTS), expected, rtol=1e-3)
    assert_allclose(model.compress().fitted_.map_variance(POINTS), expected, rtol=1e-10)
    model.save(tmp_path / "model.ulmus")
    loaded = load(tmp_path / "model.ulmus").fitted_
    assert_allclose(loaded.map_variance(POINTS), expected, rtol=1e-12)


@pytest.mark.slow
def test_a_sample_stands_for_all_rows(model, monkeypatch):
    """Coefficients respond about as they do with all rows."""
    X, y = table(2000)
    whole = small().fit(X, y).fitted_
    few = whole.rows.data.sample(800)
    changes = whole.map_uncertainty.changes
    along = np.zeros((len(changes), 1, 800))
    Z = whole.ensemble.layer.inputs(few.X)
    (few,) = whole.ensemble.units.blocks([few])
    slopes, _ = module._member_changes(whole.ensemble, 0, Z, few, changes, along)
    h = whole.features(POINTS)[0]
    exact = np.einsum("np,rnk->rp", h, whole.map_uncertainty.slopes[:, 0])
    sampled = np.einsum("np,rnk->rp", h, slopes)
    assert np.max(np.abs(sampled - exact)) < 0.2 * np.max(np.abs(exact))


@pytest.mark.slow
def test_few_rows_have_folds_instead():
    X, y = table(120)
    fit = small().fit(X, y).fitted_
    assert fit.map_uncertainty is None
    assert fit.folded
    assert fit.map_shifts(POINTS).added.shape == (5, 1, count(POINTS))
    aside = small(tuning_fraction=0.5).fit(X, y).fitted_
    assert aside.map_uncertainty is not None


def test_fits_without_a_learned_map_have_none():
    X, y = table()
    for input_map in (None, np.eye(3)):
        assert small(input_map=input_map).fit(X, y).fitted_.map_uncertainty is None
    assert small().partial_fit(X, y).fitted_.map_uncertainty is None
