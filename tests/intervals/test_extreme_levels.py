"""Levels that are very low, next to one, or beyond what the number of rows supports."""

import numpy as np
import pytest
from models import small_ensemble

from ulmus.exceptions import DegenerateFitWarning


def test_too_few_rows_for_a_level_warn(normal_rows):
    X, y = normal_rows
    with pytest.warns(DegenerateFitWarning, match="15 training rows are too few"):
        small_ensemble(5, 20).fit(X[:15], y[:15]).predict_interval(X[:2])


@pytest.mark.parametrize("seed", range(6))
def test_levels_are_nested_where_rows_are_too_few_for_some(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, (30, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.exponential(size=30) ** 2
    model = small_ensemble(5, 100).fit(X, y)
    with pytest.warns(DegenerateFitWarning, match="too few"):
        low, high = np.moveaxis(model.predict_interval(X, [0.5, 0.9, 0.95, 0.97, 0.99]), 1, 0)
    assert np.all(np.diff(low, axis=1) <= 1e-12)
    assert np.all(np.diff(high, axis=1) >= -1e-12)


@pytest.mark.parametrize("method", ["auto", "jackknife+", "gaussian"])
def test_bounds_do_not_cross_at_low_levels(method):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((20, 3))
        y = X[:, 0] + rng.standard_normal(20)
        points = np.clip(rng.standard_normal((200, 3)), X.min(axis=0), X.max(axis=0))
        model = small_ensemble(5, 15, alpha=0.001).fit(X, y)
        low, high = np.moveaxis(
            model.predict_interval(points, [1e-13, 0.01, 0.05], method=method), 1, 0
        )
        assert np.all(low <= high)


def test_levels_next_to_one_are_finite(normal_rows):
    X, y = normal_rows
    model = small_ensemble(5, 20).fit(X, y)
    level = float(np.nextafter(1, 0))
    assert np.all(np.isfinite(model.predict_interval(X[:3], level, method="gaussian")))
    assert np.all(np.isfinite(model.predict_interval(X[:3], level, kind="confidence")))
