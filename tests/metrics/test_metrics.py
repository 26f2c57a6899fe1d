"""All metrics: forms of prediction, properties common to all scores, errors."""

import doctest

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from ulmus import metrics

pytestmark = pytest.mark.filterwarnings("error")


# --- from one form to another ----------------------------------------------------------------


def test_normal_intervals_equal_scipy(normal_targets):
    _, mean, std, _ = normal_targets
    one = metrics.normal_intervals(mean, std, 0.9)
    assert one.shape == (300, 2)
    assert_allclose(one, np.stack(stats.norm.interval(0.9, mean, std), axis=1))
    many = metrics.normal_intervals(mean.reshape(100, 3), 2.0, [0.5, 0.9])
    assert many.shape == (100, 3, 2, 2)
    assert_allclose(many[4, 2, :, 1], stats.norm.interval(0.9, mean[14], 2.0))


def test_every_form_reaches_every_score(normal_targets):
    """Normal -> intervals -> quantiles -> normal is the identity, so all scores agree."""
    y, mean, std, _ = normal_targets
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


def test_integer_weights_are_repeated_rows(rng, normal_targets):
    y, mean, std, _ = normal_targets
    w = rng.integers(0, 4, size=len(y))
    repeated = (np.repeat(a, w) for a in (y, mean, std))
    assert_allclose(all_scores(y, mean, std, w), all_scores(*repeated, None))


def test_several_outputs_are_averaged(normal_targets):
    y, mean, std, w = (a.reshape(100, 3) for a in normal_targets)
    w = w[:, 0]
    per_output = [all_scores(y[:, o], mean[:, o], std[:, o], w) for o in range(3)]
    mean_score = np.mean(per_output, axis=0)
    found = all_scores(y, mean, std, w)
    linear = np.arange(len(found)) != 6  # the calibration error takes |.| after averaging
    assert_allclose(found[linear], mean_score[linear])
    assert metrics.pit_normal(y, mean, std).shape == y.shape
    q = metrics.interval_quantiles(metrics.normal_intervals(mean, std, 0.5), 0.5)
    assert metrics.pit_quantiles(y, *q).shape == y.shape


def test_row_order_does_not_matter_and_lists_are_fine(rng, normal_targets):
    order = rng.permutation(300)
    assert_allclose(all_scores(*normal_targets), all_scores(*(a[order] for a in normal_targets)))
    y, mean, std, _ = normal_targets
    listed = metrics.crps_normal(y.tolist(), mean.tolist(), std.tolist())
    assert listed == metrics.crps_normal(y, mean, std)


def test_inputs_are_not_changed(normal_targets):
    before = [a.copy() for a in normal_targets]
    all_scores(*normal_targets)
    for a, b in zip(normal_targets, before, strict=True):
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
        (lambda: metrics.coverage(Y, ENDS, [0, 0]), r"positive sum.*omit it"),
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
            r"groups must contain labels of one sortable type.*dtype=str",
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
        (lambda: metrics.quantile_normal([[0.0]], [0.5]), r"quantiles must contain at least 2"),
    ],
)
def test_errors_name_parameter_value_and_suggestion(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_public_functions_have_examples():
    finder = doctest.DocTestFinder(exclude_empty=False)
    for name in metrics.__all__:
        public = getattr(metrics, name)
        assert isinstance(public, type) or finder.find(public, name)[0].examples, name
