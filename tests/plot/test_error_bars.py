"""Displays that check error bars: parts of a variance, size of an ensemble, calibration."""

from math import comb

import numpy as np
import pandas as pd
import pytest
from matplotlib_artists import area, labelled, legend, line, tick_labels
from messages import mentions
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from ulmus.plot import CalibrationDisplay, EnsembleSizeDisplay, VarianceDisplay
from ulmus.plot._calibration import BAND_LABEL
from ulmus.plot._variance import CHOICE, MODEL, OBSERVATION, OWN, SHARED, WEIGHTS

pytestmark = pytest.mark.usefixtures("figures")

STACK = [SHARED, OWN, WEIGHTS, CHOICE]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, (90, 2))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(90)
    return X, y


@pytest.fixture(scope="module")
def model(data):
    return plain_ensemble(4, 8, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def two_outputs(data):
    X, y = data
    return plain_ensemble(4, 8, random_state=0).fit(X, np.stack([y, X[:, 1] - 2 * y], axis=1))


def inside(X, n=25):
    """New points within the range of others."""
    rng = np.random.default_rng(5)
    return X.min(0) + rng.uniform(0, 1, (n, X.shape[1])) * np.ptp(X, axis=0)


# ---------------------------------------------------------------- parts of a variance


def test_areas_add_up_to_the_variance_of_a_new_observation(model, data):
    X, _ = data
    display = VarianceDisplay.from_estimator(model, X, feature=1, grid_resolution=20)
    points = np.tile(np.sort(X, axis=0)[44], (20, 1))
    points[:, 1] = np.linspace(X[:, 1].min(), X[:, 1].max(), 20)
    edges = [area(display.ax_, name) for name in (*STACK, OBSERVATION)]
    below = np.zeros(20)
    for x, low, high in edges:
        assert_array_equal(x, points[:, 1])
        assert_array_equal(low, below)
        assert np.all(high >= low)
        below = high
    assert_allclose(below, model.predict_var(points), rtol=1e-12)
    assert legend(display.ax_) == [OBSERVATION, CHOICE, WEIGHTS, OWN, SHARED]
    assert display.ax_.get_xlabel() == "x1 (other features at their median)"


def test_parts_are_those_of_the_estimator(model, data):
    X = inside(data[0])
    display = VarianceDisplay.from_estimator(model, X)
    own, shared, weights = model.variance_components(X)
    assert_array_equal(display.parts[OWN], own)
    assert_array_equal(display.parts[SHARED], shared)
    assert_array_equal(display.parts[WEIGHTS], weights)
    assert_allclose(sum(display.parts.values()), model.predict_var(X, component="model"))
    assert_array_equal(display.noise, model.predict_var(X, component="noise"))


def test_rows_get_a_stack_of_bars(model, data):
    X = inside(data[0], 12)
    ax = VarianceDisplay.from_estimator(model, X).ax_
    tops = np.array([bar.get_y() + bar.get_height() for bar in ax.patches]).reshape(5, 12)
    assert_allclose(tops[-1], model.predict_var(X), rtol=1e-12)
    assert_allclose([b.get_x() + b.get_width() / 2 for b in ax.patches[:12]], np.arange(12))
    assert ax.get_xlabel() == "row"


def test_without_noise_the_stack_is_the_variance_of_the_prediction(model, data):
    X = inside(data[0], 12)
    ax = VarianceDisplay.from_estimator(model, X, noise=False).ax_
    tops = np.array([bar.get_y() + bar.get_height() for bar in ax.patches]).reshape(4, 12)
    assert_allclose(tops[-1], model.predict_var(X, component="model"), rtol=1e-12)
    assert OBSERVATION not in legend(ax)
    assert ax.get_ylabel() == "variance of the prediction"


def test_negative_parts_are_not_drawn_and_the_sum_stays():
    parts = {
        SHARED: np.array([3.0, 1.0]),
        OWN: np.array([1.0, 0.0]),
        WEIGHTS: np.array([-2.0, 0.0]),
    }
    ax = (
        VarianceDisplay(x=np.array([0.0, 1.0]), parts=parts, noise=np.ones(2), connected=False)
        .plot()
        .ax_
    )
    heights = np.array([bar.get_height() for bar in ax.patches]).reshape(4, 2)
    assert_allclose(heights, [[1.5, 1.0], [0.5, 0.0], [0.0, 0.0], [1.0, 1.0]])


def test_one_network_has_one_part_besides_the_noise(data):
    X, y = data
    one = plain_member(8, random_state=0).fit(X, y)
    display = VarianceDisplay.from_estimator(one, X, feature=0)
    assert list(display.parts) == [MODEL]
    assert legend(display.ax_) == [OBSERVATION, MODEL]


def test_variance_of_one_of_several_outputs(two_outputs, data):
    X = inside(data[0])
    display = VarianceDisplay.from_estimator(two_outputs, X, output=1)
    total = sum(display.parts.values()) + display.noise
    assert_allclose(total, two_outputs.predict_var(X)[:, 1])


# ---------------------------------------------------------------- size of an ensemble


def test_variance_against_members_is_the_mean_over_points(model, data):
    X = inside(data[0])
    display = EnsembleSizeDisplay.from_estimator(model, X, sizes=[16, 2, 4])
    sizes, variance = line(display.ax_, "mean over the points")
    assert_array_equal(sizes, [2, 4, 16])
    assert_allclose(variance, [model.variance_at(X, m).mean() for m in (2, 4, 16)])
    # The variance is a + b / M.
    slope = (variance[0] - variance[1]) / (1 / 2 - 1 / 4)
    assert_allclose(line(display.ax_, "infinitely many members")[1], variance[0] - slope / 2)
    enough = model.suggest_n_estimators(X)
    assert_array_equal(line(display.ax_, f"suggested: {enough}")[0], enough)
    assert_array_equal(line(display.ax_, "fitted: 4")[0], 4)
    assert_allclose(display.ax_.get_ylim()[0], 0)


def test_default_sizes_go_beyond_what_is_fitted_and_suggested(model, data):
    display = EnsembleSizeDisplay.from_estimator(model, data[0], tolerance=0.5)
    assert display.suggested == model.suggest_n_estimators(data[0], 0.5)
    assert display.n_estimators[0] == 2
    assert display.n_estimators[-1] == max(16, 2 * display.suggested)
    assert np.all(np.diff(display.n_estimators) > 0)


def test_ticks_of_members_are_whole_numbers(figures):
    display = EnsembleSizeDisplay(
        n_estimators=np.array([2, 200]),
        variance=np.array([2.0, 1.0]),
        limit=0.9,
        fitted=8,
        suggested=50,
    ).plot()
    display.figure_.canvas.draw()
    low, high = display.ax_.get_xlim()
    locations = display.ax_.xaxis.get_majorticklocs()
    shown = [
        t for t, x in zip(tick_labels(display.ax_.xaxis), locations, strict=True) if low < x < high
    ]
    assert shown == ["2", "5", "10", "20", "50", "100", "200"]


def test_one_network_has_no_size(data):
    one = plain_member(8, random_state=0).fit(*data)
    with pytest.raises(ValueError, match=mentions("ELMRegressor", "ELMEnsembleRegressor")):
        EnsembleSizeDisplay.from_estimator(one, data[0])


# ---------------------------------------------------------------- calibration


def chance_bounds(n, p):
    """Shares between which 19 of 20 binomial counts lie, by adding up probabilities."""
    total, low, high = 0.0, None, None
    for k in range(n + 1):
        total += comb(n, k) * p**k * (1 - p) ** (n - k)
        low = k / n if low is None and total >= 0.025 else low
        high = k / n if high is None and total >= 0.975 else high
    return low, high


@pytest.fixture
def normal():
    """Normal observations, twice as wide as predicted on the second half, in two groups."""
    rng = np.random.default_rng(3)
    mean = rng.standard_normal(120)
    y = mean + rng.standard_normal(120) * np.repeat([1, 2], 60)
    return y, stats.norm(mean, 1), np.repeat(["calm", "wild"], 60)


def test_the_histogram_counts_pit_values(normal):
    y, distribution, _ = normal
    ax = CalibrationDisplay.from_predictions(y, distribution, n_bins=5).axes_[0]
    locations = [
        stats.norm.cdf(value - mean) for value, mean in zip(y, distribution.mean(), strict=True)
    ]
    counts = [sum(b / 5 <= p < (b + 1) / 5 for p in locations) for b in range(5)]
    assert_allclose([bar.get_height() for bar in ax.patches[:5]], np.array(counts) / 120 * 5)
    band = labelled(ax, BAND_LABEL)
    assert_allclose(
        [band.get_y(), band.get_y() + band.get_height()], np.multiply(chance_bounds(120, 0.2), 5)
    )


def test_coverage_counts_hits_at_each_level(normal):
    y, distribution, _ = normal
    ax = CalibrationDisplay.from_predictions(y, distribution).axes_[1]
    levels, shares = line(ax, "observed")
    assert_allclose(levels, np.arange(1, 20) / 20)
    for level, share in zip(levels, shares, strict=True):
        half = stats.norm.ppf((1 + level) / 2)
        hits = [abs(v - m) <= half for v, m in zip(y, distribution.mean(), strict=True)]
        assert share == pytest.approx(np.mean(hits))
    x, low, high = area(ax, BAND_LABEL)
    middle = np.argmin(np.abs(x - 0.5))
    assert_allclose((low[middle], high[middle]), chance_bounds(120, 0.5))


def test_groups_outside_the_band_are_marked(normal):
    y, distribution, groups = normal
    display = CalibrationDisplay.from_predictions(y, distribution, groups=groups)
    ax = display.axes_[2]
    z = np.abs(y - distribution.mean())
    calm, wild = (np.mean(z[groups == name] <= stats.norm.ppf(0.95)) for name in ("calm", "wild"))
    assert_allclose(line(ax, "observed"), [[calm], [0]])
    assert_allclose(line(ax, "outside the band"), [[wild], [1]])
    segments = labelled(ax, BAND_LABEL).get_segments()
    for segment in segments:
        assert_allclose(segment[:, 0], chance_bounds(60, 0.9))
    assert tick_labels(ax.yaxis) == ["calm (n = 60)", "wild (n = 60)"]
    assert ax.get_xlabel() == "coverage of 90% intervals"


def test_quantiles_are_as_good_as_distributions(normal):
    y, distribution, groups = normal
    levels = np.arange(1, 40) / 40
    quantiles = np.stack([distribution.ppf(q) for q in levels], axis=1)
    by_quantiles = CalibrationDisplay.from_predictions(
        y, quantile_predictions=quantiles, quantiles=levels, groups=groups, group_level=0.91
    )
    by_distribution = CalibrationDisplay.from_predictions(y, distribution, groups=groups)
    assert_allclose(by_quantiles.levels, by_distribution.levels)
    assert_array_equal(by_quantiles.coverage, by_distribution.coverage)
    assert_allclose(by_quantiles.pit, by_distribution.pit, atol=0.026)
    # The nearest level that was predicted is compared, and named.
    assert by_quantiles.group_level == pytest.approx(0.9)
    assert by_quantiles.groups == by_distribution.groups


def test_an_estimator_computes_its_intervals_and_distributions(model, data):
    X = inside(data[0], 60)
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * np.random.default_rng(1).standard_normal(60)
    groups = np.where(X[:, 0] > 1, "high", "low")
    display = CalibrationDisplay.from_estimator(
        model, X, pd.Series(y), groups=groups, group_level=0.8
    )
    assert_array_equal(display.pit, model.predict_dist(X).cdf(y))
    for level, share in zip(display.levels, display.coverage, strict=True):
        low, high = model.predict_interval(X, float(level)).T
        assert share == pytest.approx(np.mean((low <= y) & (y <= high)))
    low, high = model.predict_interval(X, 0.8).T
    hits = (low <= y) & (y <= high)
    for name, group in display.groups.items():
        assert group == (pytest.approx(np.mean(hits[groups == name])), np.sum(groups == name))


@pytest.mark.parametrize("output", [0, 1])
def test_calibration_of_one_of_several_outputs(two_outputs, data, output):
    X = inside(data[0], 40)
    y = two_outputs.predict(X) + np.random.default_rng(2).standard_normal((40, 2)) / 5
    display = CalibrationDisplay.from_estimator(two_outputs, X, y, output=output)
    assert_array_equal(display.pit, two_outputs.predict_dist(X).cdf(y)[:, output])
    low, high = two_outputs.predict_interval(X, 0.5)[:, output].T
    expected = np.mean((low <= y[:, output]) & (y[:, output] <= high))
    assert display.coverage[9] == pytest.approx(expected)


def test_panels_can_be_chosen_and_need_axes_each(figures, normal):
    y, distribution, _ = normal
    _, axes = figures.subplots(1, 2)
    display = CalibrationDisplay.from_predictions(y, distribution, panels=["coverage"], ax=axes[1])
    assert display.axes_.tolist() == [axes[1]]
    assert axes[1].get_ylabel() == "empirical coverage"
    assert not axes[0].lines
    with pytest.raises(ValueError, match=mentions("1 axes", "2 panels")):
        display.plot(axes[0])
    with pytest.raises(ValueError, match=mentions("panels", "'groups'", "labels")):
        display.plot(panels=["groups"])


def test_either_distributions_or_quantiles_are_required(normal):
    y, distribution, _ = normal
    with pytest.raises(ValueError, match=mentions("distribution", "neither")):
        CalibrationDisplay.from_predictions(y)
    with pytest.raises(ValueError, match=mentions("distribution", "both")):
        CalibrationDisplay.from_predictions(
            y, distribution, quantile_predictions=[[0, 1]], quantiles=[0.1, 0.9]
        )


def test_many_groups_get_a_higher_figure(figures):
    y = np.random.default_rng(0).standard_normal(300)
    few, many = (
        CalibrationDisplay.from_predictions(y, stats.norm(0 * y), groups=np.arange(300) % n)
        for n in (3, 30)
    )
    assert many.figure_.get_figheight() > 2 * few.figure_.get_figheight()
    many.figure_.canvas.draw()
    boxes = [t.get_window_extent() for t in many.axes_[2].get_yticklabels()]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
