"""Kriged residuals of a transformed target: lognormal kriging."""

import re
from dataclasses import replace

import numpy as np
import pytest
from messages import mentions
from models import autocorrelated_table, plain_ensemble
from numpy.testing import assert_allclose

from ulmus import ELMEnsembleRegressor
from ulmus.core.query.kriging import kriged_points
from ulmus.core.variance.estimates import never_negative
from ulmus.exceptions import ExtrapolationWarning, InputError
from ulmus.noise import AR1, Exponential

N_ROWS, PHI = 150, 0.8
X, Z = autocorrelated_table(N_ROWS, PHI, sd=0.6)
# Times between rows, and one long after all of them.
POINTS, TIMES = np.zeros((4, 2)), np.array([10.5, 40.25, 75.5, 1e4])
HOW = {"noise": AR1(), "random_state": 0, "weight_scale": 1.5, "alpha": 0.1}


def fitted(y, **target):
    return plain_ensemble(3, 20, **HOW | target).fit(X, y)


@pytest.fixture(scope="module")
def models():
    """A fit to logarithms, and one to a target that is transformed to them."""
    return fitted(Z), fitted(np.exp(Z), target_transform="log")


def kriged(model, **how):
    return model.predict(POINTS, residual_kriging=True, time=TIMES, **how)


def test_the_identity_changes_nothing():
    plain, bounded = fitted(Z), fitted(Z, target_range=(None, 1e9))
    (mean, sd), (expected, expected_sd) = (kriged(one, return_std=True) for one in (bounded, plain))
    assert_allclose(mean, expected, rtol=1e-11)
    assert_allclose(kriged(bounded), expected, rtol=1e-11)
    # The variance over residuals is that of their standard deviation, up to round-off.
    assert_allclose(sd, expected_sd, rtol=1e-9)
    how = {"residual_kriging": True, "time": TIMES}
    ours, theirs = (one.predict_interval(POINTS, [0.8, 0.95], **how) for one in (bounded, plain))
    assert_allclose(ours, theirs, rtol=1e-11)


@pytest.mark.parametrize("method", ["auto", "gaussian"])
@pytest.mark.parametrize("tails", ["equal", "shortest"])
def test_intervals_are_transformed_back(models, method, tails):
    link, log = models
    how = {"residual_kriging": True, "time": TIMES, "method": method, "tails": tails}
    expected = np.exp(link.predict_interval(POINTS, [0.5, 0.9], **how))
    assert_allclose(log.predict_interval(POINTS, [0.5, 0.9], **how), expected, rtol=1e-8)
    on_link = log.predict_interval(POINTS, [0.5, 0.9], scale="link", **how)
    assert_allclose(on_link, np.log(expected), rtol=1e-8, atol=1e-9)


def test_means_are_those_of_lognormal_kriging(models):
    """Means over residuals, in units of the noise that the rows do not explain."""
    _, log = models
    fit = log.fitted_
    (family,), variance = fit.response, fit.noise_variance(POINTS)[:, 0]
    locations = log._new_locations(POINTS, True, TIMES, None, None)
    remaining, prediction, model = np.empty((3, 4))
    for part in kriged_points(fit, POINTS, locations, 0):
        remaining[part.points] = variance[part.points] - part.explained
        prediction[part.points] = fit.mean(part.functionals)[0] + part.offset
        parts = fit.parts(part.functionals)
        of_fit = never_negative(fit.estimates[0], parts) + fit.choice_variance(part.functionals)
        model[part.points] = of_fit[:, 0]
    e, weight = family.nodes.value, family.nodes.weight
    factor = np.exp(np.sqrt(remaining)[:, None] * e)
    mean, sd = kriged(log, return_std=True)
    assert_allclose(mean, np.exp(prediction) * (factor @ weight), rtol=1e-10)
    assert_allclose(kriged(log), mean, rtol=1e-12)
    noise = (factor**2 @ weight - (factor @ weight) ** 2) * np.exp(2 * prediction)
    # The variance of the fit, and that of the estimated residuals, are small.
    assert np.all(sd**2 > noise + mean**2 * model)
    assert_allclose(sd**2, noise + mean**2 * model, rtol=0.05)
    # Near rows less noise remains than far from them.
    assert np.all(remaining[:3] < 0.8 * remaining[3])


def test_far_from_all_rows_the_prediction_is_that_of_predict(models):
    _, log = models
    mean, sd = kriged(log, return_std=True)
    expected, expected_sd = log.predict(POINTS, return_std=True)
    assert_allclose(mean[3], expected[3], rtol=1e-10)
    assert_allclose(sd[3], expected_sd[3], rtol=1e-8)
    assert np.all(sd[:3] / mean[:3] < expected_sd[:3] / expected[:3])
    with pytest.warns(ExtrapolationWarning, match="farther from the training rows"):
        far = log.predict(POINTS, residual_kriging=True, time=TIMES + 1e6)
    assert_allclose(far, expected, rtol=1e-10)


def test_kriged_means_are_more_accurate_and_unbiased():
    """Of held-out rows in space: the ratio of means, and squared errors."""
    rng = np.random.default_rng(1)
    coords = rng.uniform(0, 4, (500, 2))
    distance = np.linalg.norm(coords[:, None] - coords, axis=2)
    field = np.linalg.cholesky(np.exp(-distance) + 1e-9 * np.eye(500)) @ rng.standard_normal(500)
    table = rng.uniform(-1, 1, (500, 1))
    y = np.exp(np.sin(2 * table[:, 0]) + field)
    how = {"noise": Exponential(), "input_map": None, "random_state": 0}
    model = ELMEnsembleRegressor(3, 30, target_transform="log", **how)
    model.fit(table[:400], y[:400], coords=coords[:400])
    new = {"residual_kriging": True, "coords": coords[400:]}
    mean, sd = model.predict(table[400:], return_std=True, **new)
    plain = model.predict(table[400:])
    assert np.mean((y[400:] - mean) ** 2) < 0.6 * np.mean((y[400:] - plain) ** 2)
    assert 0.8 < np.mean(y[400:]) / np.mean(mean) < 1.25
    assert 0.5 < np.sqrt(np.mean(((y[400:] - mean) / sd) ** 2)) < 1.5
    low, high = model.predict_interval(table[400:], 0.9, **new).T
    covered = np.sum((low <= y[400:]) & (y[400:] <= high))
    assert 80 <= covered <= 98
    assert np.all(low > 0)


@pytest.mark.parametrize("family", ["count", "point mass"])
def test_distributions_of_their_own_are_refused_with_a_remedy(models, family):
    rng = np.random.default_rng(0)
    if family == "count":
        how, y = {"target_kind": "count"}, rng.poisson(3, N_ROWS).astype(float)
    else:
        how, y = {"target_transform": "log"}, np.where(Z > 0, np.exp(Z), 0.0)
    other = plain_ensemble(3, 20, random_state=0, alpha=0.1, **how).fit(X, y)
    model = fitted(np.exp(Z), target_transform="log")
    model.fitted_ = replace(model.fitted_, response=other.fitted_.response)
    for call in (kriged, lambda m: m.predict_interval(POINTS, residual_kriging=True, time=TIMES)):
        with pytest.raises(InputError, match="residual_kriging=True transforms") as caught:
            call(model)
        remedy = "target_kind='continuous'" if family == "count" else "without target_range"
        assert remedy in str(caught.value)
        assert re.search(mentions("residual_kriging=False"), str(caught.value))


def test_weights_of_new_observations_enter_their_means():
    weight = np.random.default_rng(2).uniform(0.5, 2, N_ROWS)
    model = plain_ensemble(3, 20, target_transform="log", **HOW)
    model.fit(X, np.exp(Z), sample_weight=weight)
    for w in (0.25, 4.0):
        own = np.full(4, w)
        mean, sd = kriged(model, sample_weight=own, return_std=True)
        expected, expected_sd = model.predict(POINTS, sample_weight=own, return_std=True)
        assert_allclose(mean[3], expected[3], rtol=1e-10)
        assert_allclose(sd[3], expected_sd[3], rtol=1e-8)
        assert_allclose(kriged(model, sample_weight=own), mean, rtol=1e-12)
