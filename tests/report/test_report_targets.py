"""Reports about transformed targets, amounts with a point mass, and counts."""

import re

import numpy as np
import pandas as pd
import pytest
from models import small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from response_tables import observations
from scipy import special, stats
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ulmus
from ulmus.core.query.leave_out import scaled_residuals
from ulmus.diagnostics.baselines import leave_one_out_mean, linear_baseline
from ulmus.report import report_html
from ulmus.report.contents import report_contents
from ulmus.report.report_input import LEAVE_ONE_OUT, NEW, prepare_input

GIVEN = {
    "log": {"target_transform": "log"},
    "count": {"target_kind": "count"},
    "rain": {"target_transform": "sqrt"},
}


def drawn(kind, n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-0.95, 0.95, (n, 2)), columns=["slope", "angle"])
    eta = np.sin(3 * X.slope.to_numpy())
    return X, observations(kind, eta, rng)


@pytest.fixture(scope="module", params=list(GIVEN))
def example(request):
    X, y = drawn(request.param)
    model = small_ensemble(4, 40, **GIVEN[request.param]).fit(X, y)
    return request.param, model, X, y


def contents(model, X, y):
    return report_contents(prepare_input(model, X, y), "a title", "price")


def texts(page):
    """The words of a page."""
    body = re.sub(r"<script.*?</script>|<style.*?</style>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_training_rows_are_evaluated_on_the_scale_of_y(example):
    kind, model, X, y = example
    found = contents(model, X, y)
    evaluation, predicted = found.evaluation, model.loo_predictions_
    assert found.evaluated_on == LEAVE_ONE_OUT
    assert_array_equal(evaluation.observed, y)
    assert_array_equal(found.observed, y)
    assert_allclose(evaluation.predicted, predicted)
    own, mean, linear = evaluation.scores
    assert_allclose(own.r2, r2_score(y, predicted))
    assert_allclose(own.rmse, root_mean_squared_error(y, predicted))
    assert_allclose(own.rmse, model.summary().rmse)
    assert_allclose(mean.rmse, root_mean_squared_error(y, leave_one_out_mean(y)))
    expected = linear_baseline(X.to_numpy(), y).loo_predictions
    assert_allclose(linear.rmse, root_mean_squared_error(y, expected))
    assert evaluation.report == model.check()
    assert evaluation.randomised == (kind != "log")


def test_errors_are_comparable_between_rows(example):
    kind, model, X, y = example
    evaluation, fit = contents(model, X, y).evaluation, model.fitted_
    assert 0.8 < np.std(evaluation.scaled) < 1.2
    if kind == "log":
        assert evaluation.residual_name == "standardised error of log(price)"
        assert_allclose(evaluation.scaled, scaled_residuals(fit, fit.rows)[0])
        assert_array_equal(evaluation.size, evaluation.scaled)
        return
    assert evaluation.residual_name == "quantile residual"
    assert_allclose(special.ndtr(evaluation.scaled), evaluation.pit)
    # Outliers do not depend on random draws: a zero is the less likely, the larger its prediction.
    zeros = y == 0
    order = stats.spearmanr(evaluation.predicted[zeros], evaluation.size[zeros])
    assert order.statistic < -0.98
    assert np.ptp(evaluation.size[zeros]) < np.ptp(evaluation.scaled[zeros])


def test_new_rows_are_evaluated_on_the_scale_of_y(example):
    kind, model, _, _ = example
    X, y = drawn(kind, seed=1)
    found = contents(model, X, y)
    evaluation = found.evaluation
    assert found.evaluated_on == NEW
    assert_allclose(evaluation.predicted, model.predict(X))
    assert_allclose(evaluation.bounds, model.predict_interval(X))
    distribution = model.predict_dist(X)
    assert np.all(evaluation.pit <= distribution.cdf(y) + 1e-12)
    assert np.all(evaluation.pit >= distribution.cdf(y) - distribution.pmf(y) - 1e-12)
    assert 0.8 < np.std(evaluation.scaled) < 1.25
    assert evaluation.report == model.check(X, y)
    assert_allclose(evaluation.scores[1].rmse, np.sqrt(np.mean((y - example[3].mean()) ** 2)))


def test_impossible_new_rows_have_finite_errors(example):
    kind, model, _, _ = example
    X, y = drawn(kind, seed=1)
    y[:3] = [-1.0, 0.0, 1e6]
    evaluation = contents(model, X, y).evaluation
    assert np.all(np.isfinite(evaluation.scaled))
    assert np.all(np.isfinite(evaluation.size))
    assert evaluation.report.severity == "error"


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_training_rows_in_another_order_are_found(example, dtype):
    _, model, X, y = example
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = contents(model, X.iloc[order].astype(dtype), y[order].astype(dtype))
    assert shuffled.evaluated_on == LEAVE_ONE_OUT
    assert shuffled.evaluation.scores == contents(model, X, y).evaluation.scores


def test_components_of_the_variance_are_on_one_scale(example):
    _, model, X, y = example
    found = contents(model, X, y)
    components, curve = found.variance, found.ensemble_size
    assert_allclose(
        sum(components.prediction.values()), np.mean(model.predict_var(X, component="model"))
    )
    assert_allclose(components.noise, np.mean(model.predict_var(X, component="noise")))
    # The curve excludes the variance of the selected alpha.
    at_fitted = np.interp(4, curve.counts, curve.variance)
    total = sum(components.prediction.values())
    assert curve.limit < at_fitted < 1.02 * total
    assert at_fitted > 0.5 * total


def test_the_page_names_scales(example):
    kind, model, X, y = example
    text = texts(report_html(model, X, y, target="price"))
    if kind == "log":
        assert "These are residuals of log(price)." in text
        assert "Standardised errors of log(price) against predictions" in text
        assert "noise standard deviation of log(y)" in text
        assert "coverage is nominal by construction" in text
        return
    assert "These are Pearson residuals of price." in text
    assert "Quantile residuals against predictions" in text
    assert "Single values of price have a positive probability" in text
    assert "coverage is at least nominal by construction" in text
    assert "noise standard deviation" not in text
    expected = "counts, Poisson" if kind == "count" else "sqrt(y) with a point mass at 0"
    assert f"fitted target {expected}" in text


def test_names_of_targets_are_escaped():
    X, y = drawn("log")
    model = small_ensemble(3, 20, target_transform="log").fit(X, y)
    page = report_html(model, X, y, target="<b>&")
    assert "<b>&" not in page.replace("\\u003cb\\u003e\\u0026", "")


def test_a_page_without_a_transformed_target_names_no_scale():
    X, y = drawn("log")
    text = texts(report_html(small_ensemble(3, 20).fit(X, np.log(y)), X, np.log(y)))
    for words in ("fitted target", "log(", "quantile", "Pearson", "positive probability"):
        assert words not in text


@pytest.mark.parametrize("inside", ["nothing", "Pipeline", "around Pipeline"])
def test_transformed_target_regressors_have_reports(inside):
    X, y = drawn("log")
    own = small_ensemble(4, 40)
    transformed = {"func": np.log, "inverse_func": np.exp}
    if inside == "nothing":
        model = TransformedTargetRegressor(own, **transformed)
    elif inside == "Pipeline":
        model = TransformedTargetRegressor(make_pipeline(StandardScaler(), own), **transformed)
    else:
        model = make_pipeline(StandardScaler(), TransformedTargetRegressor(own, **transformed))
    model.fit(X, y)
    found = contents(model, X, y)
    assert found.evaluated_on == LEAVE_ONE_OUT
    assert_allclose(found.evaluation.observed, y)
    new, _ = drawn("log", seed=2)
    predicted = contents(model, new, y).evaluation.predicted
    assert_allclose(predicted, ulmus.inference(model).predict(new))
    assert report_html(model, X, y)
