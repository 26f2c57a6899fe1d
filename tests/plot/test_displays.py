"""Displays of predictions, residuals and relevance; and what all displays have in common."""

import sys
from subprocess import run

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from matplotlib_artists import area, bars, dots, labelled, legend, line, tick_labels
from messages import mentions
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.exceptions import NotFittedError

from ulmus import ELMEnsembleRegressor
from ulmus.plot import (
    CalibrationDisplay,
    Curve,
    EnsembleSizeDisplay,
    PartialDependenceDisplay,
    PredictionDisplay,
    RelevanceDisplay,
    ResidualsDisplay,
    SlopeDisplay,
    VarianceDisplay,
)

pytestmark = pytest.mark.usefixtures("figures")

CONFIDENCE, PREDICTION = "95% for the function", "95% for new observations"


@pytest.fixture(scope="module")
def frame():
    """A table with two continuous features and one of three values."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "depth": rng.uniform(0, 3, 80),
            "heat": rng.uniform(-1, 1, 80),
            "kind": rng.integers(0, 3, 80).astype(float),
        }
    )
    y = np.sin(X["depth"]) + 0.5 * X["heat"] + 0.2 * rng.standard_normal(80)
    return X, pd.Series(y, name="yield")


@pytest.fixture(scope="module")
def model(frame):
    return plain_ensemble(4, 8, random_state=0).fit(*frame)


@pytest.fixture(scope="module")
def two_outputs(frame):
    X, y = frame
    outputs = pd.DataFrame({"yield": y, "loss": -2 * y + 0.1 * X["heat"] ** 2})
    return plain_ensemble(4, 8, random_state=0).fit(X, outputs), outputs


@pytest.fixture(scope="module")
def sine():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 6, (60, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(60)
    return plain_ensemble(4, 8, random_state=0).fit(X, y), X, y


# ---------------------------------------------------------------- all displays


def one_axes_displays(model, X, y):
    """A way to draw each display that has one pair of axes."""
    x = np.linspace(0, 1, 20)
    bounds = np.stack([x - 1, x + 1], axis=1)
    return [
        lambda ax=None: PredictionDisplay.from_estimator(model, X, y, ax=ax),
        lambda ax=None: PredictionDisplay.from_predictions(x, x, bounds, ax=ax),
        lambda ax=None: VarianceDisplay.from_estimator(model, X, ax=ax),
        lambda ax=None: EnsembleSizeDisplay.from_estimator(model, X, ax=ax),
        lambda ax=None: ResidualsDisplay.from_estimator(model, ax=ax),
        lambda ax=None: RelevanceDisplay(names=["a", "b"], relevance=np.array([0.3, 0.7])).plot(ax),
        lambda ax=None: SlopeDisplay(curve=Curve("a", x, x, bounds)).plot(ax),
        lambda ax=None: PartialDependenceDisplay(terms=[Curve("a", x, x, bounds)]).plot(ax),
        lambda ax=None: CalibrationDisplay.from_predictions(
            y, stats.norm(0 * y), panels=["coverage"], ax=ax
        ),
    ]


@pytest.mark.parametrize("number", range(9))
def test_a_user_s_axes_are_drawn_on_and_keep_what_they_have(figures, sine, number):
    draw = one_axes_displays(*sine)[number]
    before = figures.get_fignums()  # other tests may leave figures open
    figure, ax = figures.subplots()
    (mine,) = ax.plot([0.2, 0.3], [0.2, 0.3], label="mine")
    display = draw(ax)
    assert getattr(display, "ax_", ax) is ax
    assert display.figure_ is figure
    assert mine in ax.lines
    assert len(ax.get_children()) > 12
    assert figures.get_fignums() == [*before, figure.number]
    figure.canvas.draw()


@pytest.mark.slow
@pytest.mark.parametrize("number", range(9))
def test_plot_can_be_called_again(figures, sine, number):
    display = one_axes_displays(*sine)[number]()
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first
    display.figure_.canvas.draw()
    axes = display.figure_.axes
    words = [legend(ax) for ax in axes if ax.get_legend() is not None]
    display.plot(axes if hasattr(display, "axes_") else axes[0])
    assert [legend(ax) for ax in axes if ax.get_legend() is not None] == words


def test_an_array_of_axes_is_refused_where_one_is_drawn(figures, sine):
    _, axes = figures.subplots(1, 2)
    with pytest.raises(ValueError, match=mentions("ax", "ndarray", "one element")):
        PredictionDisplay.from_estimator(*sine, ax=axes)


def test_drawing_names_the_extra_that_is_missing(monkeypatch, sine):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=mentions("matplotlib", "pip install 'ulmus[plot]'")):
        PredictionDisplay.from_estimator(*sine)


@pytest.mark.slow
def test_the_package_is_imported_without_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None; import ulmus.plot as p\n"
        "print(len(p.__all__), 'matplotlib.pyplot' in sys.modules)"
    )
    out = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "12 False\n"


# ---------------------------------------------------------------- predictions


def test_a_curve_is_what_predict_and_predict_interval_say(sine):
    model, X, y = sine
    display = PredictionDisplay.from_estimator(model, X, y, grid_resolution=30)
    grid = np.linspace(X.min(), X.max(), 30)
    points = grid[:, None]
    ax = display.ax_
    assert_array_equal(line(ax, "prediction"), [grid, model.predict(points)])
    for label, kind in ((CONFIDENCE, "confidence"), (PREDICTION, "prediction")):
        x, low, high = area(ax, label)
        assert_array_equal(x, grid)
        assert_array_equal(np.stack([low, high], 1), model.predict_interval(points, kind=kind))
    assert_array_equal(dots(ax, "observations"), [X[:, 0], y])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "y")
    assert legend(ax) == [PREDICTION, CONFIDENCE, "observations", "prediction"]


def test_the_level_is_passed_on_and_named(sine):
    model, X, _ = sine
    display = PredictionDisplay.from_estimator(model, X, confidence_level=0.5, grid_resolution=15)
    _, low, high = area(display.ax_, "50% for new observations")
    expected = model.predict_interval(np.linspace(X.min(), X.max(), 15)[:, None], 0.5)
    assert_array_equal(np.stack([low, high], 1), expected)
    assert "observations" not in legend(display.ax_)


def test_the_inner_band_can_be_for_the_expectation(sine):
    _, X, y = sine
    model = plain_ensemble(4, 8, dtype="float32", noise_variance="residual", random_state=0).fit(
        X, y
    )
    display = PredictionDisplay.from_estimator(model, X, target="expectation", grid_resolution=15)
    _, low, high = area(display.ax_, "95% for the mean of the estimator")
    points = np.linspace(X.min(), X.max(), 15)[:, None]
    expected = model.predict_interval(points, kind="confidence", target="expectation")
    assert_allclose(np.stack([low, high], 1), expected)


def test_other_features_stay_at_a_middle_value_that_was_observed(model, frame):
    X, y = frame
    display = PredictionDisplay.from_estimator(model, X, y, feature="heat", grid_resolution=12)
    points = pd.DataFrame({name: sorted(X[name])[(len(X) - 1) // 2] for name in X}, index=range(12))
    points["heat"] = np.linspace(X["heat"].min(), X["heat"].max(), 12)
    assert_array_equal(line(display.ax_, "prediction")[1], model.predict(points))
    assert display.ax_.get_xlabel() == "heat (other features at their median)"
    assert display.ax_.get_ylabel() == "yield"


def test_a_feature_with_few_values_is_drawn_at_these(frame):
    """Values between them would be levels that no row has, and warn."""
    X, y = frame
    model = plain_ensemble(3, 8, expand_inputs="one_hot", random_state=0).fit(X, y)
    ax = PredictionDisplay.from_estimator(model, X, y, feature=2).ax_
    assert_array_equal(line(ax, "prediction")[0], [0, 1, 2])
    assert_array_equal(bars(ax, PREDICTION)[0], [0, 1, 2])
    assert tick_labels(ax.xaxis) == ["0", "1", "2"]
    # Observations stand beside the bars.
    assert_allclose(dots(ax, "observations")[0], X["kind"] + 0.06)


def test_rows_are_drawn_in_their_order_with_a_bar_each(model, frame):
    X, y = frame
    ax = PredictionDisplay.from_estimator(model, X, y).ax_
    assert_array_equal(line(ax, "prediction"), [np.arange(80), model.predict(X)])
    for label, kind in ((CONFIDENCE, "confidence"), (PREDICTION, "prediction")):
        _, low, high = bars(ax, label)
        assert_array_equal(np.stack([low, high], 1), model.predict_interval(X, kind=kind))
    assert_array_equal(dots(ax, "observations"), [np.arange(80), y])
    # The legend stands above the data.
    assert ax.get_ylim()[1] > ax.dataLim.y1 + 0.2 * ax.dataLim.height


def test_observed_rows_are_drawn_over_a_feature(model, frame):
    X, _ = frame
    ax = PredictionDisplay.from_estimator(model, X, feature="depth", others="observed").ax_
    assert_array_equal(line(ax, "prediction"), [X["depth"], model.predict(X)])
    assert ax.get_xlabel() == "depth"


@pytest.mark.parametrize("output", [0, 1])
def test_one_of_several_outputs_is_drawn(two_outputs, frame, output):
    model, outputs = two_outputs
    ax = PredictionDisplay.from_estimator(model, frame[0], outputs, output=output).ax_
    assert_array_equal(line(ax, "prediction")[1], model.predict(frame[0])[:, output])
    assert_array_equal(
        bars(ax, CONFIDENCE)[1:], model.predict_interval(frame[0], kind="confidence")[:, output].T
    )
    assert_array_equal(dots(ax, "observations")[1], outputs.iloc[:, output])
    assert ax.get_ylabel() == ("yield", "loss")[output]


def test_one_network_and_a_sparse_table_are_drawn(sine):
    _, X, y = sine
    model = plain_member(8, random_state=0).fit(X, y)
    dense = PredictionDisplay.from_estimator(model, X, y)
    sparse = PredictionDisplay.from_estimator(model, scipy.sparse.csr_array(X), y)
    assert_array_equal(dense.mean, sparse.mean)


def test_predictions_of_any_model_are_sorted_along_x(rng):
    x, mean, y = rng.standard_normal((3, 25))
    bounds = np.stack([mean - 1, mean + 1], axis=1)
    display = PredictionDisplay.from_predictions(
        pd.Series(x, name="hours"),
        mean,
        prediction=bounds,
        y=pd.Series(y, name="level"),
        y_name="z",
    )
    order = np.argsort(x)
    assert_array_equal(line(display.ax_, "prediction"), [x[order], mean[order]])
    assert_array_equal(area(display.ax_, PREDICTION)[2], bounds[order, 1])
    assert_array_equal(dots(display.ax_, "observations"), [x[order], y[order]])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("hours", "z")
    assert CONFIDENCE not in legend(display.ax_)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"feature": "dept"}, ("feature='dept'", "depth", "heat")),
        ({"feature": 3}, ("feature=3", "from 0 to 2")),
        ({"others": "mean"}, ("others", "'mean'", "median")),
        ({"output": 1}, ("output=1", "from 0 to 0")),
        ({"y": [1.0, 2.0]}, ("y has 2 rows", "80")),
    ],
)
def test_a_wrong_argument_is_named(model, frame, options, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        PredictionDisplay.from_estimator(model, frame[0], **options)


def test_a_wrong_shape_is_named(sine):
    with pytest.raises(ValueError, match=mentions("confidence", "(3, 2)", "(2, 2)")):
        PredictionDisplay.from_predictions([1, 2, 3], [1, 2, 3], [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match=mentions("X", "(60,)", "reshape(-1, 1)")):
        PredictionDisplay.from_estimator(sine[0], sine[1][:, 0])


def test_options_reach_the_artists(sine):
    options = {"line_kw": {"color": "red"}, "scatter_kw": {"marker": "s", "label": "data"}}
    ax = PredictionDisplay.from_estimator(*sine, **options).ax_
    assert labelled(ax, "prediction").get_color() == "red"
    assert "data" in legend(ax)


# ---------------------------------------------------------------- residuals


def largest_first(values):
    """Row numbers by falling absolute value, by a plain sort."""
    return sorted(range(len(values)), key=lambda i: -abs(values[i]))


def test_residuals_are_leave_one_out_residuals(sine):
    model, _, y = sine
    ax = ResidualsDisplay.from_estimator(model, n_labels=3).ax_
    scatter = ax.collections[0]
    expected = np.stack([y - model.loo_residuals_, model.loo_residuals_], axis=1)
    assert_allclose(scatter.get_offsets(), expected, rtol=1e-12)
    words = [text.get_text() for text in ax.texts]
    assert words == [str(i) for i in largest_first(model.loo_residuals_)[:3]]
    locations = [text.xy for text in ax.texts]
    assert_array_equal(locations, scatter.get_offsets()[largest_first(model.loo_residuals_)[:3]])


def test_dots_grow_with_leverage_and_the_legend_states_how(sine):
    model = sine[0]
    ax = ResidualsDisplay.from_estimator(model).ax_
    sizes = ax.collections[0].get_sizes()
    assert_array_equal(np.argsort(sizes), np.argsort(model.leverage_))
    ends = f"{model.leverage_.min():.2g}", f"{model.leverage_.max():.2g}"
    assert (legend(ax)[0], legend(ax)[-1]) == ends
    assert_allclose(labelled(ax, ends[1]).get_sizes(), sizes.max())


def test_rows_have_their_own_names(sine):
    names = [f"site {i}" for i in range(60)]
    display = ResidualsDisplay.from_estimator(sine[0], labels=names, y_name="level", n_labels=1)
    assert display.ax_.texts[0].get_text() == names[largest_first(display.residuals)[0]]
    assert display.ax_.get_xlabel() == "leave-one-out prediction of level"
    with pytest.raises(ValueError, match=mentions("labels", "2", "60")):
        ResidualsDisplay.from_estimator(sine[0], labels=["a", "b"])


def test_residuals_of_one_of_several_outputs(two_outputs):
    model, _ = two_outputs
    display = ResidualsDisplay.from_estimator(model, output=1)
    assert_array_equal(display.residuals, model.loo_residuals_[:, 1])
    assert_array_equal(display.leverage, model.leverage_[:, 1])


def test_residuals_need_the_training_rows(sine):
    _, X, y = sine
    compressed = plain_ensemble(3, 8, random_state=0).fit(X, y).compress()
    streamed = plain_ensemble(3, 8, alpha=0.1, random_state=0).partial_fit(X, y)
    for model in (compressed, streamed):
        with pytest.raises(ValueError, match=mentions("estimator", "compress()", "fit(X, y)")):
            ResidualsDisplay.from_estimator(model)
    with pytest.raises(NotFittedError):
        ResidualsDisplay.from_estimator(plain_ensemble())


def test_residuals_without_leverage_have_dots_of_one_size(rng):
    ax = ResidualsDisplay.from_predictions(*rng.standard_normal((2, 20))).ax_
    assert len(np.unique(ax.collections[0].get_sizes())) == 1
    assert ax.get_legend() is None


# ---------------------------------------------------------------- relevance


def test_relevance_is_sorted_and_cut(frame):
    X, y = frame
    model = ELMEnsembleRegressor(2, 20, random_state=0).fit(X, y)
    shares = dict(zip(X.columns, model.feature_relevance_, strict=True))
    ax = RelevanceDisplay.from_estimator(model).ax_
    assert tick_labels(ax.yaxis) == sorted(shares, key=shares.get, reverse=True)
    assert_array_equal([bar.get_width() for bar in ax.patches], sorted(shares.values())[::-1])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first bar is on top
    ax = RelevanceDisplay.from_estimator(model, max_features=2).ax_
    assert tick_labels(ax.yaxis) == sorted(shares, key=shares.get, reverse=True)[:2]
    assert "1 more not shown" in ax.get_xlabel()


def test_error_bars_of_relevance_do_not_reach_below_zero():
    display = RelevanceDisplay(
        names=["a", "b"], relevance=np.array([0.9, 0.1]), deviation=np.array([0.2, 0.3])
    ).plot()
    (segments,) = [c.get_segments() for c in display.ax_.collections]
    assert_allclose([segment[:, 0] for segment in segments], [[0.7, 1.1], [0.0, 0.4]])


def test_relevance_needs_a_learned_map(model):
    with pytest.raises(ValueError, match=mentions("feature_relevance_", "input_map='auto'")):
        RelevanceDisplay.from_estimator(model)
    with pytest.raises(ValueError, match=mentions("max_features", "0")):
        RelevanceDisplay(names=["a"], relevance=np.ones(1)).plot(max_features=0)
