"""Scores of uncertain predictions against loops, integrals and simulation."""

import doctest
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad

from ulmus import metrics

pytestmark = pytest.mark.filterwarnings("error")

LEVELS = np.linspace(0.05, 0.95, 19)
FINE = np.linspace(0.001, 0.999, 999)
floats = st.floats(-50, 50)
sigmas = st.floats(0.01, 20)


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture
def problem(rng):
    """Heteroskedastic normal targets with their true mean and sd, and row weights."""
    mean = rng.normal(size=300)
    std = rng.uniform(0.3, 3.0, size=300)
    return rng.normal(mean, std), mean, std, rng.uniform(0.0, 2.0, size=300)


def pinball(y, q, tau):
    return tau * (y - q) if y >= q else (1 - tau) * (q - y)


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


@pytest.mark.parametrize("weighted", [False, True])
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


@settings(deadline=None)
@given(st.lists(st.tuples(floats, floats, floats), min_size=1, max_size=20), st.floats(0.05, 0.95))
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


def test_calibration_error_agrees_across_the_three_forms(problem):
    y, mean, std, w = problem
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


# --- CRPS and log score ----------------------------------------------------------------------


@pytest.mark.parametrize(("y", "mu", "sigma"), [(0, 0, 1), (2, -1, 0.5), (-3, 0.2, 4), (9, 0, 1)])
def test_crps_normal_equals_its_integral(y, mu, sigma):
    below = quad(lambda t: stats.norm.cdf(t, mu, sigma) ** 2, -60, y, limit=300)[0]
    above = quad(lambda t: stats.norm.sf(t, mu, sigma) ** 2, y, 60, limit=300)[0]
    assert_allclose(metrics.crps_normal([y], [mu], [sigma]), below + above, rtol=1e-6)


@settings(deadline=None)
@given(floats, floats, sigmas, st.floats(0.01, 100))
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


def test_crps_and_log_score_prefer_the_truth(problem):
    y, mean, std, _ = problem
    for wrong_mean, wrong_std in [(mean + 0.7, std), (mean, 0.5 * std), (mean, 2 * std)]:
        assert metrics.crps_normal(y, mean, std) < metrics.crps_normal(y, wrong_mean, wrong_std)
        assert metrics.log_score(y, mean, std) > metrics.log_score(y, wrong_mean, wrong_std)


def test_crps_quantiles_equals_a_loop(problem):
    y, mean, std, w = problem
    tau = np.array([0.03, 0.2, 0.5, 0.6, 0.9])
    q = mean[:, None] + std[:, None] * stats.norm.ppf(tau)
    edges, total = [0.0, *tau, 1.0], 0.0
    for i in range(len(y)):
        loss = [0.0, *(pinball(y[i], q[i, j], tau[j]) for j in range(5)), 0.0]
        total += w[i] * 2 * np.trapezoid(loss, edges)
    assert_allclose(metrics.crps_quantiles(y, q, tau, w), total / w.sum())


def test_crps_quantiles_converges_to_the_closed_form(problem):
    y, mean, std, w = problem
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


def test_log_score_equals_the_written_out_density(problem):
    y, mean, std, w = problem
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


def test_pit_forms_agree(problem):
    y, mean, std, _ = problem
    q = mean[:, None] + std[:, None] * stats.norm.ppf(FINE)
    pit = metrics.pit_quantiles(y, q, FINE)
    assert_allclose(pit, metrics.pit_normal(y, mean, std), atol=1e-3)
    assert_allclose(pit, stats.norm.cdf((y - mean) / std), atol=1e-3)


# --- from one form to another ----------------------------------------------------------------


def test_normal_intervals_equal_scipy(problem):
    _, mean, std, _ = problem
    one = metrics.normal_intervals(mean, std, 0.9)
    assert one.shape == (300, 2)
    assert_allclose(one, np.stack(stats.norm.interval(0.9, mean, std), axis=1))
    many = metrics.normal_intervals(mean.reshape(100, 3), 2.0, [0.5, 0.9])
    assert many.shape == (100, 3, 2, 2)
    assert_allclose(many[4, 2, :, 1], stats.norm.interval(0.9, mean[14], 2.0))


def test_every_form_reaches_every_score(problem):
    """Normal -> intervals -> quantiles -> normal is the identity, so all scores agree."""
    y, mean, std, _ = problem
    levels = np.linspace(0.98, 0.02, 49)  # any order
    intervals = metrics.normal_intervals(mean, std, levels)
    quantiles = metrics.interval_quantiles(intervals, levels)
    assert np.all(np.diff(quantiles.quantiles) > 0)
    back = metrics.quantile_normal(*quantiles)
    assert_allclose(back.mean, mean, atol=1e-12)
    assert_allclose(back.std, std)
    assert_allclose(metrics.log_score(y, *back), metrics.log_score(y, mean, std))
    exact = metrics.crps_normal(y, mean, std)
    assert_allclose(metrics.crps_quantiles(y, *quantiles), exact, rtol=0.01)
    central = metrics.quantile_intervals(*quantiles)
    assert_allclose(central.intervals, intervals[..., ::-1])
    assert_allclose(
        metrics.interval_score(y, *central), metrics.interval_score(y, intervals, levels)[::-1]
    )


def test_quantile_normal_is_a_straight_line_fit(rng):
    tau = np.array([0.1, 0.3, 0.6])
    q = np.sort(rng.normal(size=(6, 2, 3)), axis=-1)
    found = metrics.quantile_normal(q, tau)
    for i in np.ndindex(6, 2):
        line = stats.linregress(stats.norm.ppf(tau), q[i])
        assert_allclose([found.mean[i], found.std[i]], [line.intercept, line.slope])
    assert_array_equal(metrics.quantile_normal([[2.0, 2.0]], [0.4, 0.5]).std, [0.0])


def test_quantile_intervals_leave_the_median_out():
    found = metrics.quantile_intervals([[1.0, 2, 3, 4, 5]], [0.05, 0.25, 0.5, 0.75, 0.95])
    assert_array_equal(found.intervals, [[[2.0, 1.0], [4.0, 5.0]]])
    assert_allclose(found.confidence_level, [0.5, 0.9])


# --- properties common to all ----------------------------------------------------------------


def all_scores(y, mean, std, w):
    levels = [0.5, 0.9]
    intervals = metrics.normal_intervals(mean, std, levels)
    quantiles = metrics.interval_quantiles(intervals, levels)
    n_outputs = None if y.ndim == 1 else y.shape[1]
    return np.hstack(
        [
            metrics.coverage(y, intervals, w),
            metrics.mean_width(intervals, w, n_outputs=n_outputs),
            metrics.interval_score(y, intervals, levels, w),
            metrics.calibration_error(y, intervals, levels, w),
            metrics.crps_normal(y, mean, std, w),
            metrics.crps_quantiles(y, *quantiles, w),
            metrics.log_score(y, mean, std, w),
        ]
    )


def test_integer_weights_are_repeated_rows(rng, problem):
    y, mean, std, _ = problem
    w = rng.integers(0, 4, size=len(y))
    repeated = (np.repeat(a, w) for a in (y, mean, std))
    assert_allclose(all_scores(y, mean, std, w), all_scores(*repeated, None))


def test_several_outputs_are_averaged(problem):
    y, mean, std, w = (a.reshape(100, 3) for a in problem)
    w = w[:, 0]
    per_output = [all_scores(y[:, o], mean[:, o], std[:, o], w) for o in range(3)]
    mean_score = np.mean(per_output, axis=0)
    found = all_scores(y, mean, std, w)
    linear = np.arange(len(found)) != 6  # the calibration error takes |.| after averaging
    assert_allclose(found[linear], mean_score[linear])
    assert metrics.pit_normal(y, mean, std).shape == y.shape
    q = metrics.interval_quantiles(metrics.normal_intervals(mean, std, 0.5), 0.5)
    assert metrics.pit_quantiles(y, *q).shape == y.shape


def test_row_order_does_not_matter_and_lists_are_fine(rng, problem):
    order = rng.permutation(300)
    assert_allclose(all_scores(*problem), all_scores(*(a[order] for a in problem)))
    y, mean, std, _ = problem
    listed = metrics.crps_normal(y.tolist(), mean.tolist(), std.tolist())
    assert listed == metrics.crps_normal(y, mean, std)


def test_inputs_are_not_changed(problem):
    before = [a.copy() for a in problem]
    all_scores(*problem)
    for a, b in zip(problem, before, strict=True):
        assert_array_equal(a, b)


# --- errors ----------------------------------------------------------------------------------

Y = [0.0, 1.0]
ENDS = [[-1.0, 1.0], [0.0, 2.0]]
Q = [[-1.0, 1.0], [0.0, 2.0]]
NAN = [0.0, np.nan]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.coverage(NAN, ENDS), r"y_true contains nan at index \(1,\); drop"),
        (lambda: metrics.coverage([0, np.inf], ENDS), r"y_true contains inf"),
        (lambda: metrics.coverage(["a", "b"], ENDS), r"y_true must be an array of numbers"),
        (lambda: metrics.coverage([], ENDS), r"y_true must be non-empty .* got shape \(0,\)"),
        (lambda: metrics.coverage(1.0, ENDS), r"y_true must be .*1 or 2 dimensions"),
        (lambda: metrics.coverage(Y, [[0, 1], [np.nan, 1]]), r"intervals contains nan"),
        (lambda: metrics.coverage(Y, [[0, 1], [2, 1]]), r"lower=2.0, upper=1.0 at index \(1,\)"),
        (lambda: metrics.coverage(Y, [[np.inf, np.inf]] * 2), r"intervals must have lower <= upp"),
        (lambda: metrics.coverage(Y, [[0, 1]]), r"shape \(2, 2\) or \(2, 2, 'k'\).*\(1, 2\)"),
        (lambda: metrics.coverage([[0], [1]], ENDS), r"shape \(2, 1, 2\) or.*got \(2, 2\)"),
        (lambda: metrics.coverage(Y, [[0, 1], [2]]), r"intervals must be an array of numbers"),
        (lambda: metrics.mean_width(np.zeros((4, 3, 2))), r"intervals must.*n_outputs"),
        (lambda: metrics.mean_width(3.0), r"intervals must be non-empty"),
        (lambda: metrics.mean_width([[0, 1], [2]]), r"intervals must be an array of numbers"),
        (lambda: metrics.coverage(Y, ENDS, [1]), r"sample_weight must have shape \(2,\), got \(1"),
        (lambda: metrics.coverage(Y, ENDS, [1, -1]), r"sample_weight must be >= 0.*minimum -1.0"),
        (lambda: metrics.coverage(Y, ENDS, [0, 0]), r"positive sum.*leave it out"),
        (lambda: metrics.crps_quantiles(Y, Q, [0.1, 0.9], [-1, 0]), r"sample_weight must be >= 0"),
        (lambda: metrics.interval_score(Y, ENDS, 95), r"confidence_level .*got 95.0; write 95 %"),
        (lambda: metrics.interval_score(Y, ENDS, [0.9]), r"confidence_level must have shape \(\)"),
        (lambda: metrics.calibration_error(Y, ENDS, [0.9]), r"confidence_level must have shape"),
        (lambda: metrics.interval_quantiles(ENDS, [0.9]), r"confidence_level must have shape"),
        (lambda: metrics.interval_quantiles(np.ones((3, 2, 2)), [0.9]), r"confidence_level must"),
        (
            lambda: metrics.interval_quantiles(np.ones((3, 2, 2)), [0.9, 0.9]),
            r"quantiles must be strictly increasing",
        ),
        (
            lambda: metrics.interval_quantiles([[-np.inf, 0.0]], 0.9),
            r"quantile_predictions contains -inf",
        ),
        (lambda: metrics.coverage_by_group(Y, ENDS, ["a"]), r"groups must have shape \(2,\)"),
        (lambda: metrics.coverage_by_group(Y, ENDS, NAN), r"groups contains NaN"),
        (
            lambda: metrics.coverage_by_group(Y, ENDS, np.array(["a", None], dtype=object)),
            r"groups must hold labels of one sortable type.*dtype=str",
        ),
        (lambda: metrics.quantile_groups(Y, 0), r"n_groups must be .*got 0"),
        (lambda: metrics.quantile_groups(Y, 2.5), r"n_groups must be .*got 2.5"),
        (lambda: metrics.quantile_groups(NAN), r"values contains nan"),
        (lambda: metrics.crps_normal(Y, [0.0], 1.0), r"mean must have shape \(2,\), got \(1,\)"),
        (lambda: metrics.crps_normal(Y, Y, [1.0]), r"std must have shape \(2,\).*or be a float"),
        (lambda: metrics.crps_normal(Y, Y, [1.0, -0.5]), r"std must be >= 0, got -0.5"),
        (lambda: metrics.crps_normal(Y, Y, NAN), r"std contains nan"),
        (lambda: metrics.log_score(Y, Y, [1.0, 0.0]), r"std must be > 0 here, got 0.0.*crps"),
        (lambda: metrics.pit_normal(Y, Y, 0.0), r"std must be > 0 here"),
        (lambda: metrics.crps_quantiles(Y, Y, [0.5]), r"quantile_predictions must be .*2 or 3"),
        (lambda: metrics.crps_quantiles(Y, Q, [0.5]), r"quantile_predictions must have shape"),
        (lambda: metrics.crps_quantiles(Y, Q, [0.9, 0.1]), r"quantiles must be strictly incr"),
        (lambda: metrics.crps_quantiles(Y, Q, [0, 0.5]), r"quantiles must lie strictly between"),
        (
            lambda: metrics.pit_quantiles(Y, [[0, 1], [2, 1]], [0.1, 0.9]),
            r"cross at index \(1, 0\): 2.0 .*np.sort",
        ),
        (lambda: metrics.quantile_intervals(Q, [0.1, 0.8]), r"quantiles must pair up.*\[0.1, 0.8"),
        (lambda: metrics.quantile_intervals([[0.0]], [0.5]), r"quantiles must pair up"),
        (lambda: metrics.quantile_normal([[0.0]], [0.5]), r"quantiles must hold 2 or more"),
    ],
)
def test_errors_name_parameter_value_and_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_public_functions_have_examples():
    finder = doctest.DocTestFinder(exclude_empty=False)
    for name in metrics.__all__:
        public = getattr(metrics, name)
        assert isinstance(public, type) or finder.find(public, name)[0].examples, name
