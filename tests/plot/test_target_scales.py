"""Figures of transformed targets and counts name their scale, and do not mix scales."""

import numpy as np
import pytest
from models import small_ensemble
from numpy.testing import assert_allclose
from response_tables import observations
from scipy import stats

from ulmus.exceptions import DuplicateRowsWarning
from ulmus.plot import (
    CalibrationDisplay,
    EnsembleSizeDisplay,
    ResidualsDisplay,
    VarianceDisplay,
)
from ulmus.plot._link_scale import on_link_scale

pytestmark = pytest.mark.usefixtures("figures")

GIVEN = {
    "log": {"target_transform": "log"},
    "count": {"target_kind": "count"},
    "rain": {"target_transform": "sqrt"},
}


def drawn(kind, n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    eta = np.sin(3 * X[:, 0])
    return X, observations(kind, eta, rng)


@pytest.fixture(scope="module", params=list(GIVEN))
def example(request):
    X, y = drawn(request.param)
    return request.param, small_ensemble(5, 40, **GIVEN[request.param]).fit(X, y), X, y


def test_residuals_have_the_scale_of_their_label(example):
    kind, model, _, y = example
    display = ResidualsDisplay.from_estimator(model, y_name="price")
    assert_allclose(display.predictions, model.loo_predictions_)
    label = display.ax_.get_ylabel()
    if kind == "log":
        assert label == "leave-one-out residual of log(price)"
        assert_allclose(display.residuals, on_link_scale(model).loo_residuals_)
    else:
        assert label == "quantile residual"
        assert stats.kstest(display.residuals, "norm").pvalue > 0.01
    assert len(display.residuals) == len(y)


def test_residuals_of_y_itself_are_those_of_the_estimator():
    X, y = drawn("log")
    model = small_ensemble(4, 30).fit(X, y)
    display = ResidualsDisplay.from_estimator(model)
    assert display.ax_.get_ylabel() == "leave-one-out residual"
    assert_allclose(display.residuals, model.loo_residuals_)


def test_residuals_of_copies_are_those_of_the_rows_they_repeat():
    X, y = drawn("count", 60)
    with pytest.warns(DuplicateRowsWarning):
        model = small_ensemble(4, 20, target_kind="count").fit(np.repeat(X, 2, 0), np.repeat(y, 2))
    residuals = ResidualsDisplay.from_estimator(model).residuals
    assert_allclose(residuals[::2], residuals[1::2])


def test_variance_components_add_up_to_that_of_the_prediction(example):
    _, model, X, _ = example
    display = VarianceDisplay.from_estimator(model, X[:20])
    assert_allclose(sum(display.parts.values()), model.predict_var(X[:20], component="model"))
    assert_allclose(display.noise, model.predict_var(X[:20], component="noise"))
    # Shares are those of the regression.
    link = VarianceDisplay.from_estimator(on_link_scale(model), X[:20])
    for name, part in display.parts.items():
        own, total = link.parts[name], sum(link.parts.values())
        assert_allclose(part / sum(display.parts.values()), own / total, atol=1e-12)


def test_the_variance_by_size_is_that_of_predictions(example):
    _, model, X, _ = example
    display = EnsembleSizeDisplay.from_estimator(model, X, sizes=[5, 10])
    mean = np.mean(model.predict_var(X, component="model"))
    assert 0.5 * mean < display.variance[0] < 1.02 * mean
    assert display.variance[1] < display.variance[0]


def test_calibration_of_discrete_predictions_is_randomised(example):
    kind, model, _, _ = example
    X, y = drawn(kind, 400, seed=1)
    groups = np.where(X[:, 0] > 0, "high", "low")
    display = CalibrationDisplay.from_estimator(model, X, y, groups=groups)
    assert stats.kstest(display.pit, "uniform").statistic < 0.1
    assert np.max(np.abs(display.coverage - display.levels)) < 0.1
    if kind == "log":
        return
    inside = np.abs(2 * display.pit - 1)
    assert_allclose(display.coverage, [np.mean(inside <= level) for level in display.levels])
    here = groups == "low"
    assert_allclose(display.groups["low"].coverage, np.mean(inside[here] <= 0.9))


def test_discrete_distributions_of_other_models():
    y = np.random.default_rng(0).poisson(1.5, 1000)
    display = CalibrationDisplay.from_predictions(y, stats.poisson(np.full(1000, 1.5)))
    assert stats.kstest(display.pit, "uniform").pvalue > 0.05
    assert np.max(np.abs(display.coverage - display.levels)) < 0.05


def test_the_estimator_is_not_changed(example):
    _, model, X, y = example
    before = model.predict(X)
    assert on_link_scale(model).fitted_.response is None
    assert model.fitted_.response is not None
    assert_allclose(model.predict(X), before)
    assert np.corrcoef(before, y)[0, 1] > 0.3
    plain = small_ensemble(3, 20).fit(X, y)
    assert on_link_scale(plain) is plain
