"""Scores and PIT of predicted distributions against loops, integrals and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracles import pinball
from properties import at_least, moderate_floats
from scipy import stats
from scipy.integrate import quad

from ulmus import metrics

pytestmark = pytest.mark.filterwarnings("error")

FINE = np.linspace(0.001, 0.999, 999)
sigmas = st.floats(0.01, 20)


# --- CRPS and log score ----------------------------------------------------------------------


@pytest.mark.parametrize(("y", "mu", "sigma"), [(0, 0, 1), (2, -1, 0.5), (-3, 0.2, 4), (9, 0, 1)])
def test_crps_normal_equals_its_integral(y, mu, sigma):
    below = quad(lambda t: stats.norm.cdf(t, mu, sigma) ** 2, -60, y, limit=300)[0]
    above = quad(lambda t: stats.norm.sf(t, mu, sigma) ** 2, y, 60, limit=300)[0]
    assert_allclose(metrics.crps_normal([y], [mu], [sigma]), below + above, rtol=1e-6)


@at_least(100)
@given(moderate_floats, moderate_floats, sigmas, st.floats(0.01, 100))
def test_crps_normal_scales_with_units_and_is_below_absolute_error(y, mu, sigma, c):
    value = metrics.crps_normal([y], [mu], [sigma])
    scaled = metrics.crps_normal([c * y], [c * mu], [c * sigma])
    assert_allclose(scaled, c * value, rtol=1e-9, atol=1e-9)
    assert value >= -1e-12 * sigma
    # |CRPS - |y - mu|| <= sigma / sqrt(pi): the ensemble form E|X - y| - E|X - X'| / 2.
    assert abs(value - abs(y - mu)) <= sigma / math.sqrt(math.pi) + 1e-9


@pytest.mark.parametrize("std", [0.0, 1e-320, 1e-200])
def test_crps_normal_of_a_point_mass_is_the_absolute_error(std):
    assert_allclose(metrics.crps_normal([3.0, 1.0, -2.0], [1.0, 1.0, 0.0], std), 4 / 3)


def test_crps_and_log_score_prefer_the_true_distribution(normal_targets):
    y, mean, std, _ = normal_targets
    for wrong_mean, wrong_std in [(mean + 0.7, std), (mean, 0.5 * std), (mean, 2 * std)]:
        assert metrics.crps_normal(y, mean, std) < metrics.crps_normal(y, wrong_mean, wrong_std)
        assert metrics.log_score(y, mean, std) > metrics.log_score(y, wrong_mean, wrong_std)


def test_crps_quantiles_equals_a_loop(normal_targets):
    y, mean, std, w = normal_targets
    tau = np.array([0.03, 0.2, 0.5, 0.6, 0.9])
    q = mean[:, None] + std[:, None] * stats.norm.ppf(tau)
    edges, total = [0.0, *tau, 1.0], 0.0
    for i in range(len(y)):
        loss = [0.0, *(pinball(y[i], q[i, j], tau[j]) for j in range(5)), 0.0]
        total += w[i] * 2 * np.trapezoid(loss, edges)
    assert_allclose(metrics.crps_quantiles(y, q, tau, w), total / w.sum())


def test_crps_quantiles_converges_to_the_closed_form(normal_targets):
    y, mean, std, w = normal_targets
    exact = metrics.crps_normal(y, mean, std, w)
    gaps = []
    for q in (9, 99, 999):
        tau = np.arange(1, q + 1) / (q + 1)
        predicted = mean[:, None] + std[:, None] * stats.norm.ppf(tau)
        gaps.append(abs(metrics.crps_quantiles(y, predicted, tau, w) / exact - 1))
    assert gaps[0] < 0.08
    assert gaps[1] < 0.01
    assert gaps[2] < 0.001


def test_crps_quantiles_of_a_uniform_prediction_equals_its_integral():
    """An exact quantile function other than the normal's; F(t) = t on [0, 1]."""
    y = 0.3
    exact = quad(lambda t: t**2, 0, y)[0] + quad(lambda t: (t - 1) ** 2, y, 1)[0]
    assert_allclose(metrics.crps_quantiles([y], [FINE], FINE), exact, rtol=1e-4)


def test_log_score_equals_the_written_out_density(normal_targets):
    y, mean, std, w = normal_targets
    total = 0.0
    for t, m, s, weight in zip(y, mean, std, w, strict=True):
        total += weight * (-0.5 * math.log(2 * math.pi * s**2) - (t - m) ** 2 / (2 * s**2))
    assert_allclose(metrics.log_score(y, mean, std, w), total / w.sum())


def test_log_score_of_an_overconfident_miss_is_minus_infinity():
    assert metrics.log_score([1.0], [0.0], [1e-200]) == -math.inf


# --- PIT -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["normal", "quantiles"])
def test_pit_is_uniform_for_the_calibrated_only(rng, form):
    mean, std = rng.normal(size=4000), rng.uniform(0.5, 2.0, size=4000)
    y = rng.normal(mean, std)

    def pit(factor):
        if form == "normal":
            return metrics.pit_normal(y, mean, factor * std)
        q = mean[:, None] + factor * std[:, None] * stats.norm.ppf(FINE)
        return metrics.pit_quantiles(y, q, FINE)

    assert stats.kstest(pit(1.0), "uniform").pvalue > 0.01
    assert stats.kstest(pit(0.7), "uniform").pvalue < 1e-6
    assert np.mean((pit(0.7) < 0.1) | (pit(0.7) > 0.9)) > 0.25


def test_pit_quantiles_equals_linear_interpolation_per_row(rng):
    tau = np.array([0.1, 0.25, 0.5, 0.9])
    q, y = np.sort(rng.normal(size=(50, 4)), axis=1), rng.normal(size=50)
    y[:4] = q[np.arange(4), np.arange(4)]
    expected = [np.interp(y[i], q[i], tau, left=0.05, right=0.95) for i in range(50)]
    assert_allclose(metrics.pit_quantiles(y, q, tau), expected)


def test_pit_quantiles_takes_the_middle_of_what_is_open():
    q = [[0.0, 1.0, 1.0, 1.0, 2.0]] * 5
    tau = [0.1, 0.2, 0.4, 0.6, 0.8]
    expected = [0.05, 0.4, 0.7, 0.8, 0.9]
    assert_allclose(metrics.pit_quantiles([-1.0, 1.0, 1.5, 2.0, 3.0], q, tau), expected)
    assert_allclose(metrics.pit_quantiles([-1, 0, 1], [[0.0]] * 3, [0.5]), [0.25, 0.5, 0.75])


def test_pit_forms_agree(normal_targets):
    y, mean, std, _ = normal_targets
    q = mean[:, None] + std[:, None] * stats.norm.ppf(FINE)
    pit = metrics.pit_quantiles(y, q, FINE)
    assert_allclose(pit, metrics.pit_normal(y, mean, std), atol=1e-3)
    assert_allclose(pit, stats.norm.cdf((y - mean) / std), atol=1e-3)
