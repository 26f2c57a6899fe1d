"""Standard errors that follow the noise variance of the noise model."""

import numpy as np
import oracles
import pytest
from fit_comparison import cut
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose
from onnx_comparison import require_agreement

from ulmus import load


def mean(X):
    return np.sin(5 * X[:, 0]) + X[:, -1]


def sd_of(X):
    """A noise standard deviation that varies tenfold."""
    return 0.1 * 10 ** X[:, 0]


def table(n=300, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, mean(X) + sd_of(X) * rng.standard_normal(n)


POINTS = np.random.default_rng(9).random((30, 2))
PRIMAL, DUAL = (4, 15), (5, 90)  # members and units: fewer and more features than rows


def ensemble(size=PRIMAL, **parameters):
    return plain_ensemble(*size, **{"noise": "auto", "alpha": 0.1, "random_state": 0} | parameters)


def model_variance(model, X, estimate=None):
    return model.predict_var(X, component="model", estimate=estimate)


def oracle(model, X, y, points, w=None):
    """The mean over distinct pairs of z_m' Sigma z_l, and the spread over M, by loops."""
    layer = model.fitted_.ensemble.layer
    H, h = ([np.asarray(a)[1:].T for a in layer(Z)] for Z in (X, points))
    S = [np.diag(model.fitted_.rows.noise[0])] * len(H)
    z = oracles.smoother_rows(H, h, model.alpha_, True, w, weighted=True)
    unit2 = model.fitted_.ensemble.unit[0] ** 2
    return unit2 * oracles.s2(z, S) + oracles.spread(H, h, y, model.alpha_, True, w) / len(H)


@pytest.mark.parametrize("size", [PRIMAL, DUAL])
@pytest.mark.parametrize("weighted", [False, True])
def test_variances_are_those_of_the_modelled_noise(size, weighted):
    X, y = table()
    w = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    model = ensemble(size).fit(X, y, sample_weight=w)
    assert model.variance_estimates_ == ("BM", "BR")
    expected = oracle(model, X, y, POINTS, w)
    assert_allclose(model_variance(model, POINTS), expected, rtol=1e-6)
    ratio = model_variance(model, POINTS) / model.predict_var(
        POINTS, component="model", estimate="BR"
    )
    assert ratio.max() / ratio.min() > 3


def test_one_network_has_the_naive_estimate():
    X, y = table()
    model = plain_member(20, noise="auto", alpha=0.1, random_state=0).fit(X, y)
    assert model.variance_estimates_ == ("NM", "NHo")
    assert (
        np.ptp(model_variance(model, POINTS) / model_variance(model, POINTS, estimate="NHo")) > 0.1
    )


def test_named_estimates_are_kept_and_constant_noise_has_its_own():
    X, y = table()
    assert ensemble(variance="BR").fit(X, y).variance_estimates_ == ("BR",)
    flat = mean(X) + 0.3 * np.random.default_rng(5).standard_normal(len(X))
    for variance in ("auto", "BM", ["BM", "BR"]):
        assert ensemble(DUAL, variance=variance).fit(X, flat).variance_estimates_ == ("BR",)
    assert ensemble().partial_fit(X, y).variance_estimates_ == ("BR",)


@pytest.mark.parametrize("size", [PRIMAL, DUAL])
def test_streams_files_and_compressed_fits_have_the_same_variances(size, tmp_path):
    X, y = table()
    model = ensemble(size).fit(X, y)
    expected = model_variance(model, POINTS)
    streamed = ensemble(size).fit_blocks(cut(X, y, None, size=70))
    assert_allclose(model_variance(streamed, POINTS), expected, rtol=1e-5)
    assert_allclose(model_variance(model.compress(), POINTS), expected, rtol=1e-8)
    model.save(tmp_path / "model.ulmus")
    assert_allclose(model_variance(load(tmp_path / "model.ulmus"), POINTS), expected, rtol=1e-12)


@pytest.mark.parametrize("size", [PRIMAL, DUAL])
def test_graphs(size):
    X, y = table()
    require_agreement(ensemble(size).fit(X, y), POINTS)


@pytest.mark.parametrize("size", [PRIMAL, DUAL])
def test_outputs_of_constant_noise_keep_its_variances(size):
    X, y = table()
    flat = mean(X) + 0.3 * np.random.default_rng(5).standard_normal(len(X))
    model = ensemble(size).fit(X, np.column_stack([y, flat]))
    expected = [model_variance(ensemble(size).fit(X, one), POINTS) for one in (y, flat)]
    assert_allclose(model_variance(model, POINTS), np.transpose(expected), rtol=1e-6)
    both = model.next_points(POINTS, n=2)
    assert np.all(np.isfinite(both.to_numpy(dtype=float)))


@pytest.mark.statistics
def test_standard_errors_follow_the_noise():
    """Estimated over true standard deviations in fifths of the noise, n = 400, 60 draws of noise.

    With one noise variance for all rows the ratios are 2.6 to .55.
    """
    X = table(400)[0]
    points = np.random.default_rng(7).uniform(0.03, 0.97, (200, 2))
    fifths = np.array_split(np.argsort(sd_of(points)), 5)
    predictions, variances = [], []
    for seed in range(60):
        y = mean(X) + sd_of(X) * np.random.default_rng(100 + seed).standard_normal(len(X))
        model = plain_ensemble(5, 60, noise="auto", random_state=seed).fit(X, y)
        predictions.append(model.predict(points))
        variances.append(model_variance(model, points))
    true, estimated = np.var(predictions, axis=0, ddof=1), np.mean(variances, axis=0)
    ratios = [np.sqrt(np.mean(estimated[i]) / np.mean(true[i])) for i in fifths]
    assert min(ratios) > 0.85
    assert max(ratios) < 1.2


@pytest.mark.statistics
def test_errors_of_predictions_are_not_taken_for_noise():
    """Estimated over true noise deviation of the quietest fifth of the rows, d = 6, n = 600.

    Their leave-one-out predictions have errors due to the noise of other rows. If these are taken
    as proportional to the noise of the row itself, the ratio is 1.54.
    """
    rng = np.random.default_rng(3)
    X = rng.random((600, 6))
    true = sd_of(X)
    quiet, ratios = true < np.quantile(true, 0.2), []
    for seed in range(8):
        y = np.sin(3 * X[:, 1]) + X[:, 2] + true * rng.standard_normal(len(X))
        model = plain_ensemble(5, 100, noise="auto", random_state=seed).fit(X, y)
        noise = model.fitted_.rows.noise[0] * model.fitted_.ensemble.unit[0] ** 2
        ratios.append(np.sqrt(np.mean(noise[quiet] / true[quiet] ** 2)))
    assert 0.9 < np.mean(ratios) < 1.3
