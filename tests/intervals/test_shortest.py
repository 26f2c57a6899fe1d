"""The shortest intervals: shares of the error by search, nested ranks, widths and messages."""

import numpy as np
import pytest
from models import plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from ulmus.core.query.leave_out import leave_one_out_shifts, prediction_moments, scaled_residuals
from ulmus.core.response.residual_distribution import residual_shape
from ulmus.exceptions import DegenerateFitWarning
from ulmus.intervals.bounds import is_asymmetric, shortest_ranks, shortest_tails

LEVELS = [0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99]
LAWS = {
    "normal": stats.norm(),
    "exponential": stats.expon(),
    "gamma": stats.gamma(3),
    "mirrored": stats.weibull_max(1.5),
    "t3": stats.t(3),
}
laws = pytest.mark.parametrize("law", LAWS)


def shortest_by_search(law, level):
    """Width of the shortest interval, over lower tails in small steps."""
    tails = np.linspace(0, 1 - level, 4001)[1:-1]
    return np.min(law.ppf(tails + level) - law.ppf(tails))


@laws
def test_intervals_are_as_short_as_those_of_a_search(law):
    law = LAWS[law]
    tails = shortest_tails(law.ppf, LEVELS)
    for level, tail in zip(LEVELS, tails, strict=True):
        width = law.ppf(tail + level) - law.ppf(tail)
        assert_allclose(width, shortest_by_search(law, level), rtol=0.02, err_msg=str(level))


@laws
def test_tails_and_ranks_are_nested(law):
    quantile = LAWS[law].ppf
    levels = np.linspace(0.001, 0.9999, 1500)
    below = shortest_tails(quantile, levels)
    above = 1 - levels - below
    for tails in (below, above):
        assert np.all(np.diff(tails) <= 1e-12)
        assert np.all(tails >= -1e-12)
    for n in (20, 99, 1000):
        levels = np.linspace(0.01, (n - 1) / (n + 1), 700)
        low, high = np.transpose(shortest_ranks(n, levels, quantile))
        assert np.all(np.diff(low) <= 0)
        assert np.all(np.diff(high) >= 0)
        assert low.min() >= 0
        assert high.max() <= n - 1
        # The usual count of ranks, and no more.
        assert_array_equal(high - low, np.ceil(np.round(levels * (n + 1), 9)))


def test_symmetric_residuals_are_seldom_lopsided():
    rng = np.random.default_rng(0)
    assert np.mean([is_asymmetric(rng.standard_normal(100)) for _ in range(300)]) < 0.03
    assert np.mean([is_asymmetric(rng.exponential(size=100)) for _ in range(100)]) > 0.95
    assert not is_asymmetric(np.ones(100))
    assert not is_asymmetric(np.arange(19.0) ** 3)


# ---------------------------------------------------------------- of a fit


def simulated(n, draw, seed=0):
    rng = np.random.default_rng([n, seed])
    X, points = rng.random((n, 1)), rng.uniform(0.05, 0.95, (300, 1))
    y, target = (np.sin(5 * A[:, 0]) + 0.4 * draw(rng, len(A)) for A in (X, points))
    return plain_ensemble(6, 30, random_state=seed).fit(X, y), points, target


def exponential(rng, n):
    return rng.exponential(size=n) - 1


def normal(rng, n):
    return rng.standard_normal(n)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.parametrize("draw", [exponential, normal])
def test_shortest_intervals_cover_and_are_short(draw):
    # Twenty fits of 300 points: a standard error of 0.006, and 1 / sqrt(n) is 0.07.
    inside, width = [], []
    for seed in range(20):
        model, X, y = simulated(200, draw, seed)
        bounds = [model.predict_interval(X, 0.9, tails=s) for s in ("equal", "shortest")]
        bounds.append(model.compress().predict_interval(X, 0.9, tails="shortest"))
        inside.append([np.mean((b[:, 0] <= y) & (y <= b[:, 1])) for b in bounds])
        width.append([np.mean(b[:, 1] - b[:, 0]) for b in bounds])
    assert_allclose(np.mean(inside, axis=0), 0.9, atol=0.03)
    equal, shortest, compressed = np.mean(width, axis=0)
    if draw is exponential:
        # The shortest interval of the noise itself is ln(10) wide, that of equal tails 2.94.
        assert equal > 1.25 * 0.4 * np.log(10)
        assert shortest < 1.2 * 0.4 * np.log(10)
        assert compressed < 1.2 * 0.4 * np.log(10)
    else:
        assert_allclose([shortest, compressed], equal, rtol=0.02)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")
@pytest.mark.parametrize("tails", ["equal", "shortest"])
@pytest.mark.parametrize("n", [20, 40, 100, 200])
def test_skewed_residuals_serve_every_level_with_nested_intervals(tails, n):
    # Two-sided ranks end at lower levels than one-sided ones.
    levels = [0.5, 0.8, 0.9, 0.95, 0.975, 0.98, 0.99, 0.995, 0.999]
    for seed in range(10):
        model, X, _ = simulated(n, exponential, seed)
        for _ in range(2):
            low, high = np.moveaxis(model.predict_interval(X, levels, tails=tails), 1, 0)
            assert np.all(np.diff(low) <= 1e-9)
            assert np.all(np.diff(high) >= -1e-9)
            model.compress()


def test_levels_beyond_two_sided_ranks_are_those_of_absolute_residuals():
    model, X, _ = simulated(60, exponential)
    expected = model.predict_interval(X, 0.97)
    assert_allclose(model.predict_interval(X, 0.97, tails="shortest"), expected)
    with pytest.warns(DegenerateFitWarning, match="60 training rows are too few"):
        model.predict_interval(X, [0.9, 0.99], tails="shortest")


def test_the_ends_are_order_statistics_of_signed_residuals():
    model, X, _ = simulated(199, exponential)
    fit = model.fitted_
    errors = scaled_residuals(fit, fit.rows)[0]
    quantile = residual_shape(errors[None], np.array([True])).quantile(0)
    levels = [0.5, 0.9]
    ours = model.predict_interval(X, levels, tails="shortest")
    shift = next(leave_one_out_shifts(fit, fit.rows, X)).shift[0]
    f, sd, _ = (a[0] for a in prediction_moments(fit, X))
    for j, (low, high) in enumerate(shortest_ranks(199, levels, quantile)):
        for i in range(10):
            sample = sorted(f[i] - shift[r, i] + sd[i] * errors[r] for r in range(199))
            assert_allclose(ours[i, :, j], [sample[low], sample[high]], rtol=1e-9)


def test_normal_intervals_are_the_shortest_already():
    model, X, _ = simulated(100, normal)
    for method in ("auto", "gaussian"):
        equal = model.predict_interval(X, [0.5, 0.9], method=method)
        ours = model.predict_interval(X, [0.5, 0.9], method=method, tails="shortest")
        assert_array_equal(ours, equal)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tails": "narrow"}, "tails must be one of 'equal', 'shortest', got 'narrow'"),
        ({"tails": "shortest", "kind": "confidence"}, "tails='shortest'.*'confidence'.*'equal'"),
        ({"tails": "shortest", "method": "jackknife+"}, "'jackknife.*use tails='equal'"),
    ],
)
def test_bad_requests_name_the_parameter(arguments, message):
    model, X, _ = simulated(40, normal)
    with pytest.raises(ValueError, match=message):
        model.predict_interval(X, **arguments)
