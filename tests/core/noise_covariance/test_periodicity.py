"""Periods of series: against loops and exact distributions, and rarely of noise."""

from math import comb

import numpy as np
import pytest
from models import autoregressive
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.core.noise_covariance.periodicity import (
    Series,
    lag_correlation,
    lagged_products,
    residual_series,
    strongest_period,
)

MONTH = 2 * np.pi / 12


def found(values, times=None):
    """The strongest period of values at times, 0, 1, ... by default."""
    times = np.arange(len(values)) if times is None else times
    return strongest_period(residual_series(values, times))


# ---------------------------------------------------------------- series


def test_products_of_lags_by_loops(rng):
    e = rng.standard_normal(23)
    expected = [sum(e[i] * e[i + h] for i in range(23 - h)) for h in range(8)]
    assert_allclose(lagged_products(e, 7), expected, atol=1e-12)


def test_correlations_count_only_pairs_that_are_there(rng):
    e, observed = rng.standard_normal(30), rng.uniform(size=30) < 0.6
    series = Series(np.where(observed, e, 0.0), observed, 1.0, np.arange(30.0))
    pairs = [e[i] * e[i + 3] for i in range(27) if observed[i] and observed[i + 3]]
    assert_allclose(lag_correlation(series, 3), np.mean(pairs) / np.mean(e[observed] ** 2))


def test_months_in_days_are_regular_and_missing_ones_are_gaps(rng):
    days = np.cumsum([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] * 4).astype(float)
    kept = np.delete(np.arange(48), [5, 6, 30])
    values = rng.standard_normal(48)
    series = residual_series(values[kept], days[kept])
    assert series.regular
    assert series.step == 31
    assert_array_equal(np.flatnonzero(series.observed), kept)
    assert_allclose(series.values[kept], values[kept] - values[kept].mean())
    assert_array_equal(series.values[[5, 6, 30]], 0)


def test_residuals_of_equal_time_are_added(rng):
    values, times = rng.standard_normal(60), np.tile(np.arange(20.0), 3)
    series = residual_series(values, times)
    sums = (values - values.mean()).reshape(3, 20).sum(axis=0) / np.sqrt(3)
    assert_allclose(series.values, sums - sums.mean())


def test_other_times_are_irregular(rng):
    assert not residual_series(rng.standard_normal(40), rng.uniform(size=40)).regular
    assert not residual_series(
        rng.standard_normal(40), np.arange(40) + 0.95 * (np.arange(40) == 7)
    ).regular
    # One gap of years between two series of days.
    times = np.append(np.arange(20), 5000 + np.arange(20))
    assert not residual_series(rng.standard_normal(40), times).regular


@pytest.mark.parametrize("values", [np.zeros(50), np.full(50, 0.1), np.arange(10.0)])
def test_nothing_is_tested_without_variation_or_rows(values):
    assert found(values) is None


# ---------------------------------------------------------------- periods


@pytest.mark.parametrize("n", [60, 120, 400])
@pytest.mark.parametrize("period", [7, 12])
def test_a_season_of_any_shape_is_found_at_its_length(rng, n, period):
    season = rng.standard_normal(period)[np.arange(n) % period]
    one = found(season + 0.3 * rng.standard_normal(n))
    assert one.p_value < 0.005
    assert one.is_lag
    assert one.repeats
    assert one.length == period
    assert one.size > 0.6


def test_a_weak_sine_is_found_by_the_periodogram(rng):
    t = np.arange(600)
    one = found(0.4 * np.sin(MONTH * t) + rng.standard_normal(600))
    assert one.p_value < 0.005
    assert_allclose(one.length, 12)
    assert one.size < 0.2


def test_a_season_in_autocorrelated_noise(rng):
    t = np.arange(360)
    one = found(np.sin(MONTH * t) + autoregressive(rng.standard_normal(360), 0.8))
    assert one.p_value < 0.005
    assert_allclose(one.length, 12)


def test_a_season_in_irregular_times_and_its_duration(rng):
    t = np.sort(rng.uniform(0, 40, 300))
    one = found(np.sin(2 * np.pi * t / 2.5) + rng.standard_normal(300), t)
    assert one.p_value < 1e-6
    assert_allclose(one.duration, 2.5, rtol=0.03)
    with_gaps = rng.choice(240, 150, replace=False)
    one = found(np.sin(MONTH * with_gaps) + 0.3 * rng.standard_normal(150), with_gaps * 30.4)
    assert one.p_value < 1e-6
    assert_allclose(one.length, 12)
    assert_allclose(one.duration, 365, rtol=0.01)


def test_noise_that_is_correlated_at_one_lag_does_not_repeat(rng):
    e = rng.standard_normal(2005)
    one = found(e[5:] + e[:-5])
    assert one.p_value < 0.005
    assert (one.length, one.repeats) == (5, False)


def test_the_bound_of_the_largest_ordinate_is_close_to_its_distribution():
    m = 40
    for g in (0.2, 0.3, 0.45):
        terms = [
            (-1) ** (k - 1) * comb(m, k) * (1 - k * g) ** (m - 1) for k in range(1, int(1 / g) + 1)
        ]
        assert_allclose(m * (1 - g) ** (m - 1), sum(terms), rtol=0.02)


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: (rng.standard_normal(60), np.arange(60)),
        lambda rng: (rng.standard_t(3, 240), np.arange(240)),
        lambda rng: (rng.exponential(size=100), np.arange(100)),
        lambda rng: (autoregressive(rng.standard_normal(240), 0.9), np.arange(240)),
        lambda rng: (rng.standard_normal(200), rng.choice(300, 200, replace=False)),
        lambda rng: (rng.standard_normal(60), rng.uniform(size=60)),
        lambda rng: (rng.standard_normal((60, 1)).repeat(5, 1).ravel(), np.arange(300) // 5),
    ],
    ids=["normal", "heavy tails", "skewed", "autocorrelated", "gaps", "irregular", "panel"],
)
def test_noise_seldom_has_a_period(draw):
    p = [found(*draw(np.random.default_rng(seed))).p_value for seed in range(300)]
    assert np.mean(np.array(p) < 0.05) < 0.08  # 0.05 and 2.4 standard errors
    assert np.sum(np.array(p) < 0.005) <= 6  # exceeded with probability 0.0007
