"""What intervals cover where rows have weights, and where rows are copies of others."""

import warnings

import numpy as np
import pytest
from models import plain_ensemble

from ulmus.exceptions import DuplicateRowsWarning, SampleWeightWarning


def signal(X):
    return np.sin(3 * X[:, 0]) + X[:, 1]


def weighted_rows(n, rng):
    """Rows with noise of standard deviation 0.1 to 1."""
    X, sd = rng.uniform(-1, 1, (n, 2)), rng.uniform(0.1, 1, n)
    return X, signal(X) + sd * rng.standard_normal(n), sd


@pytest.mark.parametrize("noise", ["homoskedastic", "auto"])
@pytest.mark.parametrize("method", ["auto", "gaussian"])
def test_intervals_by_weight_cover_noisy_and_quiet_rows(noise, method):
    inside, noisy = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y, sd = weighted_rows(400, rng)
        X_new, y_new, sd_new = weighted_rows(1000, rng)
        model = plain_ensemble(4, 40, noise=noise, random_state=seed).fit(X, y, 1 / sd**2)
        low, high = model.predict_interval(X_new, method=method, sample_weight=1 / sd_new**2).T
        inside.append((low <= y_new) & (y_new <= high))
        noisy.append(sd_new > np.median(sd_new))
    inside, noisy = np.concatenate(inside), np.concatenate(noisy)
    for part in (np.ones_like(noisy), noisy, ~noisy):
        assert 0.93 < np.mean(inside[part]) < 0.97


def test_intervals_without_weights_do_not_cover_noisy_rows():
    rng = np.random.default_rng(0)
    X, y, sd = weighted_rows(400, rng)
    X_new, y_new, sd_new = weighted_rows(2000, rng)
    model = plain_ensemble(4, 40, random_state=0).fit(X, y, 1 / sd**2)
    with pytest.warns(SampleWeightWarning):
        low, high = model.predict_interval(X_new).T
    assert np.mean(((low <= y_new) & (y_new <= high))[sd_new > 0.55]) < 0.7


@pytest.mark.parametrize("n_copies", [150, 300])
def test_intervals_of_a_table_with_copies(n_copies):
    covered = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, X_new = rng.uniform(-1, 1, (300, 3)), rng.uniform(-1, 1, (1000, 3))
        y, y_new = (signal(a) + 0.3 * rng.standard_normal(len(a)) for a in (X, X_new))
        rows = np.concatenate([np.arange(300), rng.choice(300, n_copies, replace=False)])
        model = plain_ensemble(4, 40, random_state=seed)
        with pytest.warns(DuplicateRowsWarning):
            model.fit(X[rows], y[rows])
        low, high = model.predict_interval(X_new, 0.9).T
        covered.append(np.mean((low <= y_new) & (y_new <= high)))
    assert 0.87 < np.mean(covered) < 0.93


def test_independent_rows_are_not_found_to_be_copies():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DuplicateRowsWarning)
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X = rng.integers(0, 4, (200, 2)).astype(float)
            y = np.round(X[:, 0] + 0.3 * rng.standard_normal(200))
            plain_ensemble(2, 8, random_state=seed).fit(X, y)
