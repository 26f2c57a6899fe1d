"""Displays of partial dependence and slopes, from frames of a stand-in estimator."""

from dataclasses import dataclass, field
from itertools import pairwise

import matplotlib.dates
import numpy as np
import pandas as pd
import pytest
from matplotlib_artists import area, bars, labelled, legend, line, tick_labels
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.plot import (
    Curve,
    PartialDependenceDisplay,
    PredictionDisplay,
    SlopeDisplay,
    Surface,
    VarianceDisplay,
)

pytestmark = pytest.mark.usefixtures("figures")

POINTWISE, WHOLE = "95% at each point", "95% for the whole curve"
NAMES = ("age", "bmi", "sex")
COLUMNS = ("estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high")


@dataclass
class EffectsStandIn:
    """Effects in the frames that an estimator returns, and records the calls."""

    n_outputs: int = 1
    feature_names_in_: tuple = NAMES
    n_features_in_: int = 3
    calls: list = field(default_factory=list)

    def partial_dependence(
        self,
        X,
        features,
        *,
        grid_resolution=50,
        centered=False,
        simultaneous=False,
        confidence_level=0.95,
        kind="average",
    ):
        self.calls.append(
            {
                "features": features,
                "grid": grid_resolution,
                "centered": centered,
                "simultaneous": simultaneous,
                "level": confidence_level,
                "kind": kind,
            }
        )
        names = [f if isinstance(f, str) else NAMES[f] for f in features]
        grids = [
            np.unique(X[n])
            if X[n].nunique() <= 10
            else np.linspace(X[n].min(), X[n].max(), grid_resolution)
            for n in names
        ]
        mesh = np.stack([g.ravel() for g in np.meshgrid(*grids, indexing="ij")])
        frames = [self.answer(names, mesh, k, simultaneous) for k in range(self.n_outputs)]
        # Rows in an order of their own.
        return (
            pd.concat(frames)
            .sample(frac=1, random_state=0)
            .sort_values("output" if self.n_outputs > 1 else "term", kind="stable")
        )

    def answer(self, names, mesh, k, simultaneous):
        estimate = surface(mesh) + k
        error = 0.1 + 0.03 * np.abs(mesh[0])
        width = error * (3 if simultaneous else 2)
        columns = {"term": ", ".join(names)} | dict(zip(names, mesh, strict=True))
        columns |= {"output": f"y{k}"} if self.n_outputs > 1 else {}
        values = (estimate, error, estimate / error, 0 * error, estimate - width, estimate + width)
        return pd.DataFrame(columns | dict(zip(COLUMNS, values, strict=True)))


def surface(mesh):
    """The estimate over one or two features."""
    return np.sin(mesh).sum(axis=0)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"age": rng.uniform(0, 6, 50), "bmi": rng.uniform(0, 2, 50), "sex": np.arange(50) % 2.0}
    )


# ---------------------------------------------------------------- curves


def test_a_curve_has_its_bands_and_deciles(X):
    model = EffectsStandIn()
    display = PartialDependenceDisplay.from_estimator(
        model, X, "age", grid_resolution=20, simultaneous=True, y_name="weight"
    )
    (ax,) = display.axes_
    grid = np.linspace(X["age"].min(), X["age"].max(), 20)
    error = 0.1 + 0.03 * grid
    assert_array_equal(ax.lines[0].get_data(), [grid, np.sin(grid)])
    for label, factor in ((POINTWISE, 2), (WHOLE, 3)):
        x, low, high = area(ax, label)
        assert_array_equal(x, grid)
        assert_allclose(low, np.sin(grid) - factor * error)
        assert_allclose(high, np.sin(grid) + factor * error)
    ticks = ax.collections[-1].get_segments()
    expected = [np.quantile(X["age"], q / 10) for q in range(1, 10)]
    assert_allclose([segment[0, 0] for segment in ticks], expected)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "mean prediction of weight")
    assert legend(ax) == [WHOLE, POINTWISE]
    assert [call["simultaneous"] for call in model.calls] == [False, True]


def test_arguments_are_passed_on(X):
    model = EffectsStandIn()
    display = PartialDependenceDisplay.from_estimator(
        model, X, [1], grid_resolution=11, centered=True, confidence_level=0.8, deciles=False
    )
    (call,) = model.calls
    assert call == {
        "features": [1],
        "grid": 11,
        "centered": True,
        "simultaneous": False,
        "level": 0.8,
        "kind": "average",
    }
    assert legend(display.axes_[0]) == ["80% at each point"]
    assert display.axes_[0].get_ylabel() == "mean prediction, centred"
    assert len(display.axes_[0].collections) == 1


def test_a_feature_with_few_values_gets_bars(X):
    (ax,) = PartialDependenceDisplay.from_estimator(
        EffectsStandIn(), X, "sex", simultaneous=True
    ).axes_
    x, low, high = bars(ax, "95% at each value")
    assert_array_equal(x, [0, 1])
    assert_allclose(low, np.sin(x) - 2 * (0.1 + 0.03 * x))
    assert_allclose(bars(ax, "95% for all values at once")[2], np.sin(x) + 3 * (0.1 + 0.03 * x))
    assert tick_labels(ax.xaxis) == ["0", "1"]
    assert high[0] > low[0]


def test_several_features_share_the_range_of_the_vertical_axis(X):
    display = PartialDependenceDisplay.from_estimator(EffectsStandIn(), X, ["age", "bmi", "sex"])
    assert [ax.get_xlabel() for ax in display.axes_] == list(NAMES)
    assert len({ax.get_ylim() for ax in display.axes_}) == 1
    low, high = display.axes_[0].get_ylim()
    assert all(low <= t.bounds.min() and t.bounds.max() <= high for t in display.terms)
    display.figure_.canvas.draw()


@pytest.mark.parametrize("output", [0, 1])
def test_one_of_several_outputs_is_drawn(X, output):
    model = EffectsStandIn(n_outputs=2)
    display = PartialDependenceDisplay.from_estimator(model, X, ["age"], output=output)
    x, estimate = display.axes_[0].lines[0].get_data()
    assert_allclose(estimate, np.sin(x) + output)
    with pytest.raises(ValueError, match=mentions("output=2", "from 0 to 1")):
        PartialDependenceDisplay.from_estimator(model, X, ["age"], output=2)


# ---------------------------------------------------------------- surfaces


def test_a_surface_keeps_its_values_in_any_order_of_rows(X):
    frame = EffectsStandIn().partial_dependence(X, ["age", "bmi"], grid_resolution=12)
    found = Surface.from_frame(frame)
    assert (found.names, found.estimate.shape) == (("age", "bmi"), (12, 12))
    for i, a in enumerate(found.grids[0]):
        for j, b in enumerate(found.grids[1]):
            assert found.estimate[j, i] == pytest.approx(np.sin(a) + np.sin(b))
            assert found.std_error[j, i] == pytest.approx(0.1 + 0.03 * a)


def test_two_features_are_a_map_and_a_map_of_standard_errors(X):
    model = EffectsStandIn()
    display = PartialDependenceDisplay.from_estimator(
        model, X, [("age", "bmi")], grid_resolution=12, simultaneous=True
    )
    # A map has no band, so that one for the whole of it is not computed.
    assert [call["simultaneous"] for call in model.calls] == [False]
    left, right = display.axes_
    for ax, values in ((left, display.terms[0].estimate), (right, display.terms[0].std_error)):
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "bmi")
        levels = ax.collections[0].levels
        assert levels[0] <= values.min() < levels[1]
        assert levels[-2] < values.max() <= levels[-1]
    words = [ax.get_ylabel() for ax in display.figure_.axes[2:]]
    assert words == ["mean prediction", "standard error"]
    display.figure_.canvas.draw()


def test_a_map_over_few_values_has_fields_at_these(X):
    display = PartialDependenceDisplay.from_estimator(
        EffectsStandIn(), X, ["age", ("sex", "bmi")], grid_resolution=12
    )
    curve, left, _ = display.axes_
    assert curve.get_ylabel() == "mean prediction"
    assert_array_equal(left.collections[0].get_array(), display.terms[1].estimate)
    assert tick_labels(left.xaxis) == ["0", "1"]
    # Deciles only along the feature with many values.
    assert len(left.collections) == 2


def test_a_flat_surface_is_drawn(figures):
    x = np.linspace(0, 1, 12)
    flat = Surface(("a", "b"), (x, x), np.ones((12, 12)), np.zeros((12, 12)))
    PartialDependenceDisplay(terms=[flat]).plot().figure_.canvas.draw()


# ---------------------------------------------------------------- frames and axes


def test_frames_are_drawn_as_they_come(X):
    frames = [EffectsStandIn().partial_dependence(X, f) for f in (["age"], ["age", "bmi"])]
    display = PartialDependenceDisplay.from_frames(frames, y_name="weight")
    assert [type(term) for term in display.terms] == [Curve, Surface]
    assert display.axes_[0].get_ylabel() == "mean prediction of weight"


def test_given_axes_are_one_for_each_panel(figures, X):
    figure, axes = figures.subplots(1, 2)
    display = PartialDependenceDisplay.from_estimator(EffectsStandIn(), X, ["age", "bmi"], ax=axes)
    assert display.axes_.tolist() == axes.tolist()
    assert display.figure_ is figure
    with pytest.raises(ValueError, match=mentions("2 axes", "1 panels")):
        PartialDependenceDisplay.from_estimator(EffectsStandIn(), X, "age", ax=axes)


@pytest.mark.parametrize("features", [[], [("age", "bmi", "sex")]])
def test_features_come_alone_or_in_pairs(X, features):
    with pytest.raises(ValueError, match=mentions("features", "('age', 'bmi')")):
        PartialDependenceDisplay.from_estimator(EffectsStandIn(), X, features)


def test_an_unknown_feature_is_named(X):
    with pytest.raises(ValueError, match=mentions("feature='weight'", "age, bmi, sex")):
        PartialDependenceDisplay.from_estimator(EffectsStandIn(), X, ["weight"])


def test_a_frame_without_features_is_refused(X):
    frame = EffectsStandIn().partial_dependence(X, ["age"]).drop(columns="age")
    with pytest.raises(ValueError, match=mentions("one or two features", "[]")):
        PartialDependenceDisplay.from_frames([frame])


# ---------------------------------------------------------------- slopes


@pytest.mark.parametrize(("simultaneous", "factor"), [(False, 2), (True, 3)])
def test_slopes_are_stronger_where_the_band_excludes_zero(X, simultaneous, factor):
    model = EffectsStandIn()
    display = SlopeDisplay.from_estimator(model, X, "age", simultaneous=simultaneous)
    assert {call["kind"] for call in model.calls} == {"slope"}
    ax = display.ax_
    for label, sign in (("increasing: band above zero", 1), ("decreasing: band below zero", -1)):
        x, drawn = line(ax, label)
        for value, slope in zip(x, drawn, strict=True):
            certain = sign * np.sin(value) > factor * (0.1 + 0.03 * value)
            assert np.isnan(slope) != certain
            assert not certain or slope == pytest.approx(np.sin(value))
        assert labelled(ax, label).get_linewidth() > ax.lines[0].get_linewidth()
    assert_array_equal(ax.lines[1].get_ydata(), [0, 0])
    assert ax.get_ylabel() == "slope of the mean prediction"


def test_a_certain_point_alone_is_marked():
    """A line through one point would not be seen."""
    x = np.arange(12.0)
    estimate = np.where(np.isin(x, [3, 7, 8]), 2.0, 0.0)
    curve = Curve("age", x, estimate, np.stack([estimate - 1, estimate + 1], axis=1))
    ax = SlopeDisplay(curve=curve).plot().ax_
    assert labelled(ax, "increasing: band above zero").get_markevery() == [3]
    assert legend(ax) == [POINTWISE, "increasing: band above zero"]


def test_slopes_at_few_values_are_marks(X):
    ax = SlopeDisplay.from_estimator(EffectsStandIn(), X + 1.0, "sex").ax_
    x, slope = line(ax, "increasing: band above zero")
    assert_allclose(slope, np.sin(x))
    assert labelled(ax, "increasing: band above zero").get_markevery() == [0, 1]


# ---------------------------------------------------------------- categories and dates


def mixed_model():
    """A model of a date and a category, and its table."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "day": pd.date_range("2010-01-01", periods=96, freq="MS"),
            "kind": rng.choice(["ash", "elm"], 96),
        }
    )
    y = np.sin(2 * np.pi * np.arange(96) / 12) + (table.kind == "elm")
    return small_ensemble(4, 30).fit(table, y), table


def test_axes_of_categories_and_dates():
    model, table = mixed_model()
    terms = ["day", "kind", ("day", "kind")]
    display = PartialDependenceDisplay.from_estimator(model, table, terms, grid_resolution=20)
    dates, kinds, surface, _ = display.axes_
    assert [tick.get_text() for tick in kinds.get_xticklabels()] == ["ash", "elm"]
    assert [tick.get_text() for tick in surface.get_yticklabels()] == ["ash", "elm"]
    low, high = (matplotlib.dates.num2date(end).year for end in dates.get_xlim())
    assert (low, high) == (2009, 2017)
    dates.figure.canvas.draw()
    boxes = [tick.get_window_extent() for tick in dates.get_xticklabels() if tick.get_text()]
    assert 3 <= len(boxes) <= 7
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert display.terms[0].dates


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning")
@pytest.mark.parametrize("display", [PredictionDisplay, VarianceDisplay])
def test_curves_along_a_date_and_a_category(display):
    model, table = mixed_model()
    along = display.from_estimator(model, table, feature="day")
    assert along.x_dates
    assert along.connected
    across = display.from_estimator(model, table, feature="kind")
    assert across.x_categories == ("ash", "elm")
    assert [tick.get_text() for tick in across.ax_.get_xticklabels()] == ["ash", "elm"]
