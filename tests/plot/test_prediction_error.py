"""Observations against predictions, correlograms, and the text of relevance."""

import numpy as np
import pandas as pd
import pytest
from matplotlib_artists import area, labelled, legend, line
from messages import mentions
from models import plain_ensemble, small_ensemble
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.diagnostics.relevance import relevance_text
from ulmus.noise import Exponential
from ulmus.plot import CorrelogramDisplay, PredictionErrorDisplay, RelevanceDisplay

pytestmark = [
    pytest.mark.usefixtures("figures"),
    pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning"),
    pytest.mark.filterwarnings("ignore::ulmus.exceptions.CorrelatedErrorsWarning"),
]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (120, 2)), columns=["east", "north"])
    y = np.sin(2 * X.east) + 0.3 * rng.standard_normal(120)
    return X, pd.Series(y, name="height")


@pytest.fixture(scope="module")
def model(table):
    return plain_ensemble(4, 12, random_state=0).fit(*table)


def test_training_rows_are_predicted_without_themselves(model, table):
    display = PredictionErrorDisplay.from_estimator(model, y_name="height")
    assert_allclose(display.predictions, model.loo_predictions_)
    assert_allclose(display.observed, table[1])
    coverage = [r.coverage for r in model.check().coverage if (r.group, r.level) == ("all", 0.95)]
    assert_allclose(np.mean(display.inside), coverage)
    assert display.ax_.get_xlabel() == "predicted height"
    assert display.ax_.get_ylabel() == "observed height"


def test_new_rows_have_their_prediction_intervals(model, table):
    X, y = table[0] * 0.9, table[1]
    display = PredictionErrorDisplay.from_estimator(model, X, y, confidence_level=0.8)
    assert_allclose(display.predictions, model.predict(X))
    assert_allclose(display.bounds, model.predict_interval(X, 0.8))
    n_in = int(np.sum(display.inside))
    words = ["80% prediction interval", "identity", f"observed, inside: {n_in} rows"]
    assert legend(display.ax_) == [*words, f"outside: {120 - n_in} rows"]
    x, _ = line(display.ax_, f"outside: {120 - n_in} rows")
    assert_allclose(x, display.predictions[~display.inside])


def test_the_identity_does_not_stretch_the_axes():
    predictions, observed = np.linspace(0, 1, 50), np.linspace(0, 100, 50)
    ax = PredictionErrorDisplay.from_predictions(predictions, observed).ax_
    assert_allclose(ax.get_xlim(), [-0.03, 1.03])
    assert_allclose(ax.get_ylim(), [-3, 103])
    x, y = line(ax, "identity")
    assert_array_equal(x, y)
    assert_allclose(x, ax.get_xlim())


def test_without_overlap_there_is_no_identity():
    ax = PredictionErrorDisplay.from_predictions([0.0, 1.0], [10.0, 11.0]).ax_
    assert line(ax, "identity").size == 0
    assert_allclose(ax.get_ylim(), [9.97, 11.03])


def test_an_infinite_or_wide_interval_does_not_stretch_the_axes():
    rng = np.random.default_rng(0)
    mean = rng.uniform(size=200)
    observed = mean + 0.1 * rng.standard_normal(200)
    bounds = np.stack([mean - 0.2, mean + 0.2], axis=1)
    bounds[3], bounds[5] = [-np.inf, np.inf], [-50, 50]
    display = PredictionErrorDisplay.from_predictions(mean, observed, bounds)
    low, high = display.ax_.get_ylim()
    assert -0.5 < low < high < 1.5
    _, drawn = line(display.ax_, "95% prediction interval")
    assert np.nanmin(drawn) >= low
    assert display.inside[3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0, 2.0], [1.0]), ("observed", "one for each prediction")),
        (([1.0, 2.0], [1.0, 2.0], [[0.0, 1.0]]), ("bounds", "two for each prediction")),
    ],
)
def test_bad_shapes_are_named(arguments, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        PredictionErrorDisplay.from_predictions(*arguments)


@pytest.mark.parametrize("display", [PredictionErrorDisplay, CorrelogramDisplay])
def test_a_fit_without_rows_is_refused(model, display, table):
    bare = plain_ensemble(4, 12, random_state=0).fit(*table).compress()
    with pytest.raises(ValueError, match=mentions("keeps no training rows")):
        display.from_estimator(bare)


def test_the_correlogram_has_its_band(model):
    display = CorrelogramDisplay.from_estimator(model)
    (ax,) = display.axes_
    lags, low, high = area(ax, "95% band if independent")
    assert_array_equal(lags, np.arange(1, 25))
    assert_allclose(high, 1.96 * display.correlogram.deviations)
    assert_allclose(low, -high)
    heights = [bar.get_height() for bar in ax.containers[0]]
    assert_allclose(heights, display.correlogram.correlations)


def test_coordinates_add_a_variogram(table):
    located = small_ensemble(4, 20, noise=Exponential(("east", "north"))).fit(*table)
    display = CorrelogramDisplay.from_estimator(located)
    _, ax = display.axes_
    x, y = line(ax, "semivariance")
    assert_allclose(x, display.variogram.distances)
    assert_allclose(y, display.variogram.semivariances)
    whole = np.asarray(labelled(ax, "variance of all rows").get_ydata(), dtype=float)
    assert_allclose(whole, display.variogram.variance)


def test_relevance_is_one_number_with_its_standard_deviation():
    assert relevance_text(0.3794, 0.0591) == "37.9% (sd 5.9%)"
    assert relevance_text(0.0001, 0.00001) == "less than 0.1% (sd less than 0.1%)"
    assert relevance_text(0.25, None) == "25.0%"
    shares, deviations = np.array([0.0002, 0.9998]), np.array([0.0001, 0.02])
    ax = RelevanceDisplay(names=["a", "b"], relevance=shares, deviation=deviations).plot().ax_
    words = [text.get_text() for text in ax.texts]
    assert words == ["100.0% (sd 2.0%)", "less than 0.1% (sd less than 0.1%)"]
    assert max(ax.get_xticks()) <= 1.1
