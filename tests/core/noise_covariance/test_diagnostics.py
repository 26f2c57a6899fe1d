"""Correlation of neighbours against loops over pairs, and its rate of false positives."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from ulmus.core.noise_covariance.diagnostics import serial_correlation, variogram
from ulmus.core.noise_covariance.locations import Locations


def test_serial_correlation_pairs_rows_of_a_group():
    rng = np.random.default_rng(0)
    time, groups, e = rng.permutation(30) / 3, rng.integers(0, 4, 30), rng.standard_normal(30)
    centred = e - e.mean()
    products = []
    for g in range(4):
        rows = sorted(np.flatnonzero(groups == g), key=lambda i: time[i])
        products += [centred[i] * centred[j] for i, j in pairwise(rows)]
    ours = serial_correlation(e, Locations(time, groups=groups))
    assert_allclose(ours.correlation, np.mean(products) / np.mean(centred**2))
    assert_allclose(ours.z, np.sum(products) / np.sqrt(np.sum(np.square(products))))


def test_durbin_and_watson():
    tools = pytest.importorskip("statsmodels.stats.stattools", reason="needs statsmodels")
    e = np.random.default_rng(1).standard_normal(5000).cumsum() * 0.1
    ours = 2 * (1 - serial_correlation(e, Locations(n=5000)).correlation)
    assert_allclose(ours, tools.durbin_watson(e - e.mean()), atol=2e-3)


def test_the_variogram_is_a_mean_over_pairs():
    rng = np.random.default_rng(2)
    coords, e = rng.random((60, 2)), rng.standard_normal(60)
    ours = variogram(e, coords, n_bins=5)
    reach = np.linalg.norm(np.ptp(coords, axis=0)) / 3
    bins = [[] for _ in range(5)]
    for i in range(60):
        for j in range(i):
            d = np.linalg.norm(coords[i] - coords[j])
            if d <= reach:
                bins[min(int(d / (reach / 5)), 4)].append((d, (e[i] - e[j]) ** 2 / 2))
    assert_allclose(ours.counts, [len(b) for b in bins])
    assert_allclose(ours.distances, [np.mean([d for d, _ in b]) for b in bins])
    assert_allclose(ours.semivariances, [np.mean([s for _, s in b]) for b in bins])
    assert_allclose(ours.variance, np.var(e))


def test_neighbours_in_space_are_six_each_and_every_pair_counts_once():
    rng = np.random.default_rng(3)
    coords, e = rng.random((80, 2)), rng.standard_normal(80)
    centred, pairs = e - e.mean(), set()
    for i in range(80):
        nearest = np.argsort(np.linalg.norm(coords - coords[i], axis=1))[1:7]
        pairs |= {(min(i, j), max(i, j)) for j in nearest}
    products = [centred[i] * centred[j] for i, j in pairs]
    ours = variogram(e, coords)
    assert_allclose(ours.correlation, np.mean(products) / np.var(e))
    assert_allclose(ours.z, np.sum(products) / np.sqrt(np.sum(np.square(products))))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constant", "growing"])
def test_scores_of_independent_noise_are_standard_normal(kind):
    rng = np.random.default_rng(4)
    coords, n = rng.random((200, 2)), 200
    sd = 1 if kind == "constant" else 0.1 + 3 * coords[:, 0] ** 2
    times = np.argsort(np.argsort(coords[:, 0])).astype(float)
    noises = sd * rng.standard_normal((400, n))
    serial = [serial_correlation(e, Locations(times)).z for e in noises]
    spatial = [variogram(e, coords).z for e in noises]
    for scores in (serial, spatial):
        alarms = np.sum(np.array(scores) > stats.norm.ppf(0.95))
        assert stats.binom.cdf(alarms, 400, 0.05) > 1e-3
        assert stats.binom.sf(alarms - 1, 400, 0.05) > 1e-3
        assert 0.85 < np.std(scores) < 1.15


def test_correlated_noise_has_a_large_score():
    rng = np.random.default_rng(5)
    n = 200
    coords = rng.random((n, 2))
    D = np.linalg.norm(coords[:, None] - coords, axis=-1)
    e = np.linalg.cholesky(np.exp(-D / 0.1)) @ rng.standard_normal(n)
    found = variogram(e, coords)
    assert found.z > 6
    assert found.semivariances[0] < 0.5 * found.variance
    lags = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    series = np.linalg.cholesky(0.5**lags) @ rng.standard_normal(n)
    assert serial_correlation(series, Locations(n=n)).z > 4


def test_residuals_that_are_all_zero_have_no_score():
    assert serial_correlation(np.zeros(5), Locations(n=5)).z == 0
    coords = np.zeros((5, 2))
    assert variogram(np.zeros(5), coords).z == 0
    assert variogram(np.arange(5.0), coords).counts.sum() == 10  # all at one location


def test_a_part_of_many_rows_makes_the_variogram(monkeypatch):
    rng = np.random.default_rng(6)
    coords, e = rng.random((300, 2)), rng.standard_normal(300)
    full = variogram(e, coords)
    monkeypatch.setattr("ulmus.core.noise_covariance.diagnostics.VARIOGRAM_ROWS", 150)
    part = variogram(e, coords)
    assert part.counts.sum() < 0.3 * full.counts.sum()
    assert part.z == full.z


@pytest.mark.parametrize("unit", [1e-140, 1e-90, 1e90, 1e140])
def test_scores_do_not_depend_on_the_unit_of_residuals(unit):
    """Fourth powers of residuals overflowed, or were zero, from 1e77 on."""
    rng = np.random.default_rng(0)
    e, coords = np.cumsum(rng.standard_normal(60)), rng.uniform(size=(60, 2))
    one, other = (
        [serial_correlation(c * e, Locations(n=60)).z, variogram(c * e, coords).z]
        for c in (1.0, unit)
    )
    assert_allclose(other, one, rtol=1e-9)
