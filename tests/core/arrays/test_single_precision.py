"""Single precision stays near double precision, and finite where it cannot."""

import numpy as np
import pytest
from fit_comparison import assert_close
from messages import mentions
from models import every_estimate_ensemble, plain_ensemble
from numpy.testing import assert_allclose
from sklearn.base import clone

from ulmus.core.arrays.backend import to_numpy
from ulmus.exceptions import DegenerateFitWarning


@pytest.fixture(scope="module")
def smooth():
    """A well-conditioned example: few units, strong weights, ridge; and its exact fit."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    y = 2 + np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(2000)
    model = plain_ensemble(
        8, 20, alpha=0.1, weight_scale=4.0, variance=["BR", "NHo", "S2"], random_state=0
    )
    return X, y, rng.uniform(-0.9, 0.9, (200, 3)), model


@pytest.mark.parametrize("device", [None, "cpu"], ids=["numpy", "torch"])
@pytest.mark.parametrize("streamed", [False, True])
def test_single_precision(smooth, request, device, streamed):
    if device:
        request.getfixturevalue("torch")
    X, y, points, model = smooth
    # Single precision cannot resolve the pilot's ridge and uses the residual noise variance.
    exact = clone(model).set_params(noise_variance="residual").fit(X, y)
    ours = clone(model).set_params(dtype="float32", device=device)
    if streamed:
        ours.fit_blocks([(X[a : a + 500], y[a : a + 500]) for a in range(0, 2000, 500)])
    else:
        ours.fit(X, y)
    assert "float32" in str(ours.fitted_.ensemble.layer.W.dtype)
    mean = ours.predict(points)
    assert mean.dtype == np.float64  # results have the precision of the points
    assert np.abs(mean - exact.predict(points)).max() < 1e-4 * np.std(y)
    assert_allclose(ours.noise_variance_, exact.noise_variance_, rtol=1e-3)
    for estimate in ours.variance_estimates_:
        both = [m.predict_var(points, "model", estimate) for m in (ours, exact)]
        assert_allclose(*both, rtol=0.01, err_msg=estimate)
    bounds = [m.predict_interval(points, method="gaussian") for m in (ours, exact)]
    assert_allclose(*bounds, rtol=0, atol=1e-3 * np.std(y))


@pytest.mark.slow
@pytest.mark.parametrize("device", [None, "cpu"], ids=["numpy", "torch"])
@pytest.mark.parametrize("noise_variance", ["pilot", "residual"])
@pytest.mark.parametrize("variance", ["BR", "S2"])
def test_single_precision_with_a_hundred_units(smooth, request, device, noise_variance, variance):
    if device:
        request.getfixturevalue("torch")
    X, y, points, _ = smooth
    model = plain_ensemble(8, 100, noise_variance=noise_variance, variance=variance, random_state=0)
    exact = clone(model).fit(X, y)
    ours = clone(model).set_params(dtype="float32", device=device).fit(X, y)
    assert np.abs(ours.predict(points) - exact.predict(points)).max() < 1e-2 * np.std(y)
    assert_allclose(ours.noise_variance_, exact.noise_variance_, rtol=0.05)
    both = [m.predict_var(points, component="model") for m in (ours, exact)]
    assert_allclose(*both, rtol=0.05)


@pytest.mark.parametrize("alpha", ["loo", "gcv", 1e-3, 0.0])
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.NegativeVarianceWarning")
def test_single_precision_is_finite_where_layers_are_ill_conditioned(
    make_table, request, library, alpha
):
    X, y, _, X_new = make_table(300)
    model = plain_ensemble(4, 60, alpha=alpha, dtype="float32", random_state=0)
    if library == "torch":
        torch = request.getfixturevalue("torch")
        X, X_new = torch.asarray(X), torch.asarray(X_new)
    if alpha == 0:
        with pytest.warns(DegenerateFitWarning, match="constant or linearly dependent"):
            model.fit(X, y)
    else:
        model.fit(X, y)
    mean, sd = (to_numpy(a) for a in model.predict(X_new, return_std=True))
    assert np.all(np.isfinite(mean))
    assert np.all(sd > 0)
    exact = plain_ensemble(4, 60, alpha="loo", random_state=0).fit(to_numpy(X), y)
    assert np.abs(mean - exact.predict(to_numpy(X_new))).max() < np.std(y)


def test_points_in_single_precision_get_results_in_it(xp, make_table):
    X, y, _, X_new = make_table(90)
    model = every_estimate_ensemble(6, variance="auto").fit(X, y)
    points = xp.asarray(X_new.astype(np.float32))
    assert model.predict(points).dtype == points.dtype
    assert_close(model.predict(points), model.predict(X_new), rtol=1e-5)
    assert model.predict(X_new.astype(np.float32)).dtype == np.float32


def test_an_unknown_precision(make_table):
    X, y, _, _ = make_table(60)
    with pytest.raises(ValueError, match=mentions("dtype", "'float16'", "'float32'")):
        every_estimate_ensemble(6, dtype="float16").fit(X, y)


def test_weighted_tensors_of_single_precision(smooth, torch):
    X, y, points, model = smooth
    w = np.random.default_rng(1).uniform(0.5, 2, len(y))
    expected = clone(model).fit(X, y, w).predict(points)
    single = clone(model).set_params(dtype="float32")
    for weight in (w, torch.asarray(w)):
        ours = single.fit(torch.asarray(X), torch.asarray(y), weight).predict(torch.asarray(points))
        assert_allclose(to_numpy(ours), expected, rtol=1e-3, atol=1e-3)
