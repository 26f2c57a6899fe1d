"""Degrees of freedom of variances estimated from correlated noise, and where they count."""

import numpy as np
import pytest
from models import plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from smoothed_spaces import fixed

from ulmus.core.noise import ordered_rows
from ulmus.core.noise_covariance import smoothed_space
from ulmus.core.noise_covariance.kernels import Kernel
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.reml import (
    LEAST_DOF,
    covariance_estimate,
    curvature_covariance,
    retained_share,
    variance_dof,
)
from ulmus.core.noise_covariance.structure import CovarianceStructure, CovarianceTerm
from ulmus.noise import AR1, Clustered

AR = CovarianceStructure((CovarianceTerm("time", Kernel("exponential")),))
WIDE = [(-9.0, 9.0)] * 2


def smooth_directions(n, k=8):
    """Orthonormal polynomials."""
    return np.linalg.qr(np.polynomial.legendre.legvander(np.linspace(-1, 1, n), k - 1))[0]


def ar1_noise(phi, n, seed):
    lag = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return np.linalg.cholesky(phi**lag) @ np.random.default_rng(seed).standard_normal(n)


def test_the_covariance_is_the_inverse_of_the_curvature():
    H, best = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([0.4, -1.0])

    def parabola(p):
        return 7 + 0.5 * (p - best) @ H @ (p - best)

    assert_allclose(curvature_covariance(parabola, best, WIDE), np.linalg.inv(H), rtol=1e-8)
    at_bound = curvature_covariance(parabola, best, [(-9.0, 0.4), WIDE[1]])
    assert_allclose(at_bound, [[0, 0], [0, 1 / H[1, 1]]], rtol=1e-8)
    assert_array_equal(curvature_covariance(lambda p: -parabola(p), best, WIDE), 0)


def test_degrees_of_freedom_are_two_over_the_variance_of_the_logarithm():
    slope, C = np.array([0.5, -2.0]), np.array([[0.1, 0.02], [0.02, 0.03]])
    expected = 2 / (2 / 80 + slope @ C @ slope)
    assert_allclose(variance_dof(lambda p: 3 + slope @ p, np.ones(2), C, 80), expected)
    # A sill alone, of parameters that are known.
    assert_allclose(variance_dof(lambda p: slope @ p, np.ones(2), np.zeros((2, 2)), 80), 80)
    assert variance_dof(lambda p: 100 * slope @ p, np.ones(2), C, 80) == LEAST_DOF


def test_a_sill_is_known_as_well_as_from_so_many_independent_rows():
    # The variance of n correlated values varies as that of n / sum of squared correlations.
    n, A = 400, smooth_directions(400)
    found = [
        covariance_estimate(ar1_noise(0.8, n, seed), fixed(A), Locations(n=n), AR)
        for seed in range(30)
    ]
    spread = np.var(np.log([fit.sill for fit in found]), ddof=1)
    expected = np.mean([2 / fit.sill_dof for fit in found])
    assert 0.5 < expected / spread < 2.0  # a variance of 30 logarithms is known to 26 %
    assert (
        n * 0.36 / 1.64 / 2.5 < np.median([fit.sill_dof for fit in found]) < n * 0.36 / 1.64 * 1.5
    )


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_the_kept_share_is_the_variance_along_the_directions(share):
    n, A, scale = 60, smooth_directions(60), 4.0
    lag = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    S = share * np.exp(-lag / scale) + (1 - share) * np.eye(n)
    p = np.array([np.log(scale), np.log(share / (1 - share)) if share < 1 else 40.0])
    assert_allclose(retained_share(AR, Locations(n=n), A, p), np.trace(A.T @ S @ A) / 8, rtol=1e-10)
    assert retained_share(AR, Locations(n=n), A[:, :0], p) == 1


@pytest.mark.slow
def test_degrees_of_freedom_are_those_of_repeated_series():
    A, locations = smooth_directions(300), Locations(n=300)
    fits = [
        covariance_estimate(ar1_noise(0.7, 300, seed), fixed(A), locations, AR)
        for seed in range(60)
    ]
    logs = []
    for fit in fits:
        p = np.array([np.log(fit.scales[0]), np.log(fit.shares[0] / (1 - fit.shares[0]))])
        logs.append(np.log(fit.sill * retained_share(AR, locations, A, p)))
    # The variance of 60 logarithms is known to 18 %; the curvature knows no choice of a nugget.
    assert 0.6 < 2 / np.var(logs) / np.median([fit.dof for fit in fits]) < 1.6


def test_noise_of_a_longer_scale_has_fewer_degrees_of_freedom():
    A, locations = smooth_directions(300), Locations(n=300)
    middle = [
        np.median(
            [
                covariance_estimate(ar1_noise(phi, 300, s), fixed(A), locations, AR).dof
                for s in range(9)
            ]
        )
        for phi in (0.3, 0.6, 0.8)
    ]
    assert 292 > middle[0] > 2 * middle[1] > 4 * middle[2] >= 4 * LEAST_DOF


def test_a_scale_at_its_longest_has_the_fewest():
    n = 200
    found = covariance_estimate(
        ar1_noise(0.999, n, 0), fixed(smooth_directions(n, 30)), Locations(n=n), AR
    )
    assert np.isnan(found.standard_errors[0])
    assert found.dof == found.sill_dof == LEAST_DOF


# ---------------------------------------------------------------- intervals


def autocorrelated_sine(n=150, seed=0):
    X = np.arange(n)[:, None] / n
    return X, np.sin(6 * X[:, 0]) + 0.3 * ar1_noise(0.7, n, seed)


def quantile_of(model, X):
    """Half widths of 95 % intervals for the expectation over standard errors."""
    low, high = model.predict_interval(X, kind="confidence", target="expectation").T
    return (high - low) / 2 / np.sqrt(model.predict_var(X, component="model"))


def test_intervals_are_wider_by_the_degrees_of_freedom_of_the_noise():
    X, y = autocorrelated_sine()
    model = plain_ensemble(5, 30, alpha=0.01, noise=AR1(), random_state=0).fit(X, y)
    found = model.noise_covariance_
    assert not found.independent
    assert LEAST_DOF <= found.dof < 60
    # Members have their own degrees of freedom, and little of the variance.
    assert_allclose(quantile_of(model, X), stats.t.isf(0.025, found.dof), rtol=0.05)
    frame = model.average(X)
    half = (frame.conf_high - frame.conf_low)[0] / 2 / frame.std_error[0]
    assert_allclose(half, stats.t.isf(0.025, found.dof), rtol=0.05)


def test_few_groups_have_few_degrees_of_freedom():
    X, y = autocorrelated_sine()
    groups = np.arange(150) // 30
    model = plain_ensemble(5, 30, alpha=0.01, noise=Clustered(), random_state=0)
    model.fit(X, y, groups=groups)
    assert model.noise_covariance_.dof == 4
    assert_allclose(quantile_of(model, X), stats.t.isf(0.025, 4), rtol=0.1)


# ---------------------------------------------------------------- many rows


def test_the_likelihood_uses_segments_of_many_rows(monkeypatch):
    X, y = autocorrelated_sine(1200, seed=2)
    every = (
        plain_ensemble(4, 20, alpha=0.01, noise=AR1(), random_state=0).fit(X, y).noise_covariance_
    )
    monkeypatch.setattr(ordered_rows, "LIKELIHOOD_ROWS", 800)
    rows = ordered_rows.likelihood_rows(1200)
    assert_array_equal(np.flatnonzero(np.diff(rows) > 1), [199, 399, 599])
    assert rows[0] == 0
    assert rows[-1] == 1199
    few = plain_ensemble(4, 20, alpha=0.01, noise=AR1(), random_state=0).fit(X, y).noise_covariance_
    assert (few.n_rows, every.n_rows) == (800, 1200)
    assert abs(few.n_removed - every.n_removed) <= 1  # a share near the threshold
    assert abs(few.scales[0] - every.scales[0]) < 2 * every.standard_errors[0]


def test_rows_of_a_part_are_those_requested():
    X, y = autocorrelated_sine(100)
    model = plain_ensemble(3, 10, alpha=0.01, noise=AR1(), random_state=0).fit(X, y)
    ordered = ordered_rows.ordered_rows(model.fitted_.rows.data, Locations(n=100))
    rows = np.array([3, 4, 50, 99])
    part = ordered.part(rows)
    assert_array_equal(part.locations.times, rows)
    assert_allclose(np.concatenate([block.y[0] for block in part.blocks()]), y[rows])


def test_the_strong_space_is_the_same_by_features_and_by_a_search(monkeypatch):
    rng = np.random.default_rng(0)
    C = rng.standard_normal((60, 900)) / 30 * np.geomspace(1.5, 0.01, 60)[:, None]

    def blocks():
        return (C[:, start : start + 200] for start in range(0, 900, 200))

    by_features = smoothed_space.smoothed_directions(blocks, 2).directions
    monkeypatch.setattr(smoothed_space, "MOST_FEATURES", 0)
    searched = smoothed_space.smoothed_directions(blocks, 2).directions
    monkeypatch.setattr(smoothed_space, "MAX_EXACT_ROWS", 1000)
    by_rows = smoothed_space.smoothed_directions(blocks, 2).directions
    assert 5 < by_rows.shape[1] < 40
    assert_allclose(by_features @ by_features.T, by_rows @ by_rows.T, atol=1e-10)
    assert_allclose(searched @ searched.T, by_rows @ by_rows.T, atol=1e-3)
