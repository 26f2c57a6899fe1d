"""Confidence intervals between the values of discrete inputs, where no row lies."""

import numpy as np
import pytest
from models import plain_ensemble, small_ensemble
from numpy.testing import assert_allclose

from ulmus.exceptions import ExtrapolationWarning


def corners(n, seed):
    """Inputs of zeros and ones, a smooth function of them, and points between the corners."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 3)).astype(float)
    points = np.array([[0.3, 0.7, 0.5], [0.5, 0.5, 0.5], [0.1, 0.9, 0.2]])

    def f(A):
        return np.sin(A[:, 0]) + A[:, 1]

    return X, f(X) + 0.3 * rng.standard_normal(n), points, f(points)


@pytest.mark.slow
@pytest.mark.parametrize("n_neurons", [20, 100])
def test_intervals_between_discrete_inputs_are_wide_and_warn(n_neurons):
    inside, centers, half = [], [], []
    for seed in range(20):
        X, y, points, truth = corners(400, seed)
        model = small_ensemble(5, n_neurons, random_state=seed).fit(X, y)
        with pytest.warns(ExtrapolationWarning, match="of 3 points.*no training row has"):
            low, high = model.predict_interval(points, kind="confidence").T
        inside.append((low <= truth) & (truth <= high))
        centers.append((low + high) / 2)
        half.append((high - low) / 2)
    # Coverage of at least 0.95 fails 7 times of 60 once in 500.
    assert np.mean(inside) > 0.88
    assert np.all(np.mean(half, axis=0) > 2 * np.std(centers, axis=0))


def test_intervals_at_discrete_inputs_are_as_wide_as_the_standard_error_of_a_cell():
    X, y, _, _ = corners(400, 0)
    cells = np.unique(X, axis=0)
    low, high = small_ensemble(5, 100).fit(X, y).predict_interval(cells, kind="confidence").T
    counts = np.array([np.sum(np.all(cell == X, axis=1)) for cell in cells])
    # The mean of a cell has a standard error of 0.3 / sqrt(count).
    assert_allclose((high - low) / 2, 1.97 * 0.3 / np.sqrt(counts), rtol=0.15)


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_compressing_changes_no_interval_between_discrete_inputs(noise):
    X, y, points, _ = corners(300, 0)
    model = small_ensemble(5, 100, noise=noise).fit(X, y)
    with pytest.warns(ExtrapolationWarning):
        before = model.predict_interval(points, kind="confidence")
    with pytest.warns(ExtrapolationWarning):
        after = model.compress().predict_interval(points, kind="confidence")
    assert np.all(np.isfinite(before))
    assert_allclose(after, before, rtol=1e-8)


def test_points_among_continuous_inputs_have_no_unseen_directions(normal_rows):
    X, y = normal_rows
    fit = plain_ensemble(random_state=0).fit(X, y).fitted_
    rng = np.random.default_rng(1)
    parts = fit.undersmoothed_parts(np.clip(rng.standard_normal((300, 3)), -2, 2))
    assert np.max(parts.null_space / parts.variance) < 1e-3
