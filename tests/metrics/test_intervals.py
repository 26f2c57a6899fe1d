"""Scores of intervals and their calibration against loops, pinball losses and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles import pinball
from parametrisations import weightings
from properties import at_least, moderate_floats
from scipy import stats

from ulmus import metrics

pytestmark = pytest.mark.filterwarnings("error")

LEVELS = np.linspace(0.05, 0.95, 19)


# --- intervals -------------------------------------------------------------------------------


def loop_interval_scores(y, intervals, levels, w):
    """Coverage, width, interval score per level, by loops over rows, outputs and levels."""
    n, n_outputs, _, k = intervals.shape
    out = np.zeros((3, k))
    for j in range(k):
        for i in range(n):
            for o in range(n_outputs):
                lo, up = intervals[i, o, :, j]
                alpha = 1 - levels[j]
                score = up - lo
                score += 2 / alpha * (lo - y[i, o]) if y[i, o] < lo else 0
                score += 2 / alpha * (y[i, o] - up) if y[i, o] > up else 0
                inside = float(lo <= y[i, o] <= up)
                out[:, j] += w[i] * np.array([inside, up - lo, score]) / n_outputs
    return out / w.sum()


@weightings
@pytest.mark.parametrize("n_outputs", [None, 1, 2, 3])
@pytest.mark.parametrize("levels", [0.8, [0.5, 0.9], [0.3]])
def test_interval_scores_equal_loops(rng, levels, n_outputs, weighted):
    n, k = 23, np.atleast_1d(levels)
    ends = np.sort(rng.normal(size=(n, n_outputs or 1, 2, len(k))), axis=2)
    y = rng.normal(size=(n, n_outputs or 1))
    w = rng.integers(0, 3, size=n).astype(float) if weighted else None
    expected = loop_interval_scores(y, ends, k, np.ones(n) if w is None else w)
    if np.ndim(levels) == 0:
        ends, expected = ends[..., 0], expected[:, 0]
    if n_outputs is None:
        ends, y = ends[:, 0], y[:, 0]
    found = [
        metrics.coverage(y, ends, w),
        metrics.mean_width(ends, w, n_outputs=n_outputs),
        metrics.interval_score(y, ends, levels, w),
    ]
    for value, oracle in zip(found, expected, strict=True):
        assert_allclose(value, oracle)
        assert isinstance(value, float) == (np.ndim(levels) == 0)
    gap = np.mean(np.abs(expected[0] - levels))
    error = metrics.calibration_error(y, ends, levels, w)
    assert isinstance(error, float)
    assert_allclose(error, gap, atol=1e-15)


def test_coverage_includes_both_ends():
    assert metrics.coverage([0.0, 1.0], [[0.0, 1.0], [0.0, 1.0]]) == 1.0


def test_infinite_intervals_cover_and_are_infinitely_wide():
    y, ends = [0.0, 5.0], [[-np.inf, np.inf], [0.0, 1.0]]
    assert metrics.coverage(y, ends) == 0.5
    assert metrics.mean_width(ends) == math.inf
    assert metrics.interval_score(y, ends, 0.9) == math.inf
    assert metrics.mean_width(ends, [0.0, 1.0]) == 1.0
    assert_allclose(metrics.interval_score(y, ends, 0.9, [0, 1]), 1 + 2 / 0.1 * 4)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_interval_score_is_least_at_the_true_quantiles(rng, level):
    y = rng.exponential(size=100_000)
    true = stats.expon.ppf([(1 - level) / 2, (1 + level) / 2])

    def score(ends):
        return metrics.interval_score(y, np.broadcast_to(ends, (len(y), 2)), level)

    for shift in ([0.05, 0], [-0.05, 0], [0, 0.3], [0, -0.3], [0.05, 0.3], [-0.05, -0.3]):
        assert score(true) < score(true + shift)


@at_least(100)
@given(
    st.lists(st.tuples(moderate_floats, moderate_floats, moderate_floats), min_size=1, max_size=20),
    st.floats(0.05, 0.95),
)
def test_interval_score_is_two_pinball_losses(rows, level):
    """The interval score is (2 / alpha) times the pinball losses at alpha/2 and 1 - alpha/2."""
    y, a, b = np.array(rows).T
    ends = np.sort(np.stack([a, b], axis=1), axis=1)
    alpha = 1 - level
    losses = [
        pinball(t, lo, alpha / 2) + pinball(t, up, 1 - alpha / 2)
        for t, (lo, up) in zip(y, ends, strict=True)
    ]
    expected = 2 / alpha * np.mean(losses)
    assert_allclose(metrics.interval_score(y, ends, level), expected, rtol=1e-9, atol=1e-9)


# --- calibration -----------------------------------------------------------------------------


def test_calibration_error_is_small_only_for_the_calibrated(rng):
    n = 20_000
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2.0, size=n)
    y = rng.normal(mean, std)

    def error(factor):
        intervals = metrics.normal_intervals(mean, factor * std, LEVELS)
        return metrics.calibration_error(y, intervals, LEVELS)

    # Three standard errors of a coverage at its widest, level 0.5.
    assert error(1.0) < 3 * math.sqrt(0.25 / n)
    assert error(0.7) > 0.05
    assert error(1.5) > 0.05


def test_calibration_error_agrees_across_the_three_forms(normal_targets):
    y, mean, std, w = normal_targets
    levels = np.array([0.5, 0.8, 0.95])
    intervals = metrics.normal_intervals(mean, std, levels)
    through = metrics.quantile_intervals(*metrics.interval_quantiles(intervals, levels))
    listed = np.stack([metrics.normal_intervals(mean, std, c) for c in levels], axis=-1)
    assert_array_equal(listed, intervals)
    assert_allclose(through.intervals, intervals)
    assert_allclose(through.confidence_level, levels)
    assert_allclose(
        metrics.calibration_error(y, *through, sample_weight=w),
        metrics.calibration_error(y, intervals, levels, w),
        atol=1e-12,
    )


def test_coverage_by_group_equals_a_loop(rng):
    n = 60
    y, groups = rng.normal(size=n), rng.choice(["north", "south", "west"], size=n)
    ends = np.sort(rng.normal(size=(n, 2, 2)), axis=1)
    w = rng.uniform(0.1, 1.0, size=n)
    found = metrics.coverage_by_group(y, ends, groups, w)
    assert list(found) == sorted(set(groups.tolist()))
    assert sum(g.n_samples for g in found.values()) == n
    for key, group in found.items():
        rows = [i for i in range(n) if groups[i] == key]
        inside = [(ends[i, 0] <= y[i]) & (y[i] <= ends[i, 1]) for i in rows]
        expected = sum(w[i] * c for i, c in zip(rows, inside, strict=True)) / sum(w[rows])
        assert_allclose(group.coverage, expected)
        assert group.n_samples == len(rows)


def test_coverage_by_group_sees_what_the_total_hides(rng):
    """Constant-width intervals on noise that grows with x: right on average, wrong in the tails."""
    x = rng.uniform(0.2, 2.0, size=20_000)
    y = rng.normal(scale=x)
    half = np.quantile(np.abs(y), 0.9)
    ends = np.tile([-half, half], (len(y), 1))
    assert_allclose(metrics.coverage(y, ends), 0.9, atol=1e-3)
    found = metrics.coverage_by_group(y, ends, metrics.quantile_groups(x, 4))
    assert list(found) == [0, 1, 2, 3]
    assert {g.n_samples for g in found.values()} == {5000}
    assert found[0].coverage > 0.99
    assert found[3].coverage < 0.8


@at_least(100)
@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=40),
    st.integers(1, 12),
)
def test_quantile_groups_are_ordered_and_without_gaps(values, n_groups):
    code = metrics.quantile_groups(values, n_groups)
    assert sorted(set(code.tolist())) == list(range(code.max() + 1))
    assert code.max() < n_groups
    order = np.argsort(values, kind="stable")
    assert np.all(np.diff(code[order]) >= 0)
    for value in set(values):
        assert len({c for c, v in zip(code.tolist(), values, strict=True) if v == value}) == 1


def test_quantile_groups_of_distinct_values_are_even():
    counts = np.bincount(metrics.quantile_groups(np.arange(103.0), 10))
    assert len(counts) == 10
    assert set(counts.tolist()) <= {10, 11}
