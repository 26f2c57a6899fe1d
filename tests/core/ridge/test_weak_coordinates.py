"""Coordinates skipped in products of pairs of members: their contribution is negligible."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ulmus import ELMEnsembleRegressor
from ulmus.core.ridge import smoother


def normal_inputs(n=3000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)


def fit_small_weights(X, y, way, **how):
    model = ELMEnsembleRegressor(
        4, 140, input_map=None, expand_inputs=None, weight_scale=0.05, random_state=0, **how
    )
    return model.fit(X, y) if way == "rows" else model.fit_blocks([(X, y)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning")
@pytest.mark.parametrize("way", ["rows", "blocks"])
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_error_bars_do_not_need_weak_coordinates(monkeypatch, way, noise):
    X, y = normal_inputs()
    how = {"noise": noise, "alpha": 1.0}
    if (way, noise) == ("blocks", "heteroskedastic"):
        how["variance"] = "S2"
    short = fit_small_weights(X, y, way, **how)
    monkeypatch.setattr(smoother, "WEAK", 0.0)
    monkeypatch.setattr(smoother, "FAINT", 0.0)
    full = fit_small_weights(X, y, way, **how)
    few, all_of_them = (m.fitted_.ensemble.regressions[0].smoother.n_strong for m in (short, full))
    assert all_of_them == 141
    assert few < 130
    assert_allclose(short.predict(X), full.predict(X), rtol=1e-11, atol=1e-12)
    far = 3 * X[:50]
    for points, rtol in ((X[:500], 1e-6), (far, 1e-5)):
        ours, theirs = (
            {"model": m.predict_var(points, component="model"), "total": m.predict_var(points)}
            for m in (short, full)
        )
        for name, values in theirs.items():
            assert_allclose(ours[name], values, rtol=rtol, err_msg=name)
    if way == "rows":
        bounds = [m.predict_interval(X[:500], kind="confidence") for m in (short, full)]
        assert_allclose(*bounds, rtol=1e-4, atol=1e-5)


def test_files_and_effects_skip_them_too():
    X, y = normal_inputs()
    model = fit_small_weights(X, y, "rows", noise="homoskedastic", alpha=1.0)
    covariance = model.predict_cov(X[:5])
    assert_allclose(np.diagonal(covariance), model.predict_var(X[:5], component="model"))
    small = fit_small_weights(X, y, "rows", noise="homoskedastic", alpha=1.0).compress()
    assert_allclose(small.predict_var(X[:5]), model.predict_var(X[:5]), rtol=1e-12)
    assert len(model.next_points(X[:50], n=2)) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning")
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic", "auto"])
@pytest.mark.parametrize("alpha", [0.0, 1.0, "loo"])
@pytest.mark.parametrize("intercept", [False, True])
def test_units_that_are_all_zero_leave_a_fit_without_signal(noise, alpha, intercept):
    X, y = normal_inputs(100)
    model = ELMEnsembleRegressor(
        3,
        3,
        alpha=alpha,
        activation="relu",
        weight_scale=1e-200,
        input_map=None,
        expand_inputs=None,
        fit_intercept=intercept,
        noise=noise,
        random_state=0,
    ).fit(X, y)
    assert model.fitted_.ensemble.regressions[0].smoother.n_strong == 1 + intercept
    assert_allclose(model.predict(X[:3]), np.mean(y) * intercept, atol=1e-12)
    for kind in ("prediction", "confidence"):
        bounds = model.predict_interval(X[:3], 0.9, kind=kind)
        assert np.all(np.isfinite(bounds))
        assert np.all(bounds[:, 0] <= bounds[:, 1])
    assert len(model.next_points(X[:5], n=1)) == 1
