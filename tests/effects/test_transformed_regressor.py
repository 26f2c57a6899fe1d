"""Inference for a TransformedTargetRegressor is that of an estimator with target_transform."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler

import ulmus
from ulmus.exceptions import InputError

LOG = {"func": np.log, "inverse_func": np.exp}
NUMBERS = ["estimate", "std_error", "conf_low", "conf_high"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.uniform(-1, 1, (140, 2)), columns=["a", "b"])
    y = np.exp(np.sin(2 * X.a) + X.b + 0.4 * rng.standard_normal(140)).to_numpy()
    return X, y, X.iloc[:20] * 0.9


def small(**parameters):
    return small_ensemble(4, 15, alpha=0.1, **parameters)


@pytest.fixture(scope="module")
def expected(table):
    """The same model with a parameter instead."""
    return small(target_transform="log").fit(table[0], table[1])


def outer_models():
    regressor = small()
    search = GridSearchCV(regressor, {"alpha": [0.1]}, cv=2)
    log = TransformedTargetRegressor(regressor, **LOG)
    transformer = FunctionTransformer(np.log, np.exp)
    return {
        "functions": log,
        "transformer": TransformedTargetRegressor(regressor, transformer=transformer),
        "around a Pipeline": TransformedTargetRegressor(
            make_pipeline("passthrough", regressor), **LOG
        ),
        "last step of a Pipeline": make_pipeline("passthrough", log),
        "inside a search": GridSearchCV(log, {"regressor__alpha": [0.1]}, cv=2),
        "around a search": TransformedTargetRegressor(search, **LOG),
    }


# ---------------------------------------------------------------- the same results


@pytest.mark.parametrize("name", outer_models())
def test_results_are_those_of_an_estimator_with_a_parameter(table, expected, name):
    X, y, X_new = table
    outer = outer_models()[name].fit(X, y)
    ours = ulmus.inference(outer)
    for method in ("predict", "predict_median", "predict_var", "predict_interval"):
        values = getattr(expected, method)(X_new)
        assert_allclose(getattr(ours, method)(X_new), values, rtol=1e-7, err_msg=method)
    quantiles = ours.predict_quantiles(X_new, [0.1, 0.9])
    assert_allclose(quantiles, expected.predict_quantiles(X_new, [0.1, 0.9]), rtol=1e-9)
    for one in ("cdf", "logpdf"):
        values = (getattr(m.predict_dist(X_new), one)(1.5) for m in (ours, expected))
        assert_allclose(*values, rtol=1e-6)
    step = {"a": (-0.5, 0.5)}
    frames = [(m.average(X_new), m.compare(X_new, step), m.slope(X_new)) for m in (ours, expected)]
    for frame, other in zip(*frames, strict=True):
        assert_allclose(frame[NUMBERS], other[NUMBERS], rtol=1e-6)
    assert_allclose(ours.exceedance(X_new, 2.0), expected.exceedance(X_new, 2.0), rtol=1e-6)
    assert ours.summary().n_rows == 140


def test_predictions_are_means_and_theirs_are_about_medians(table, expected):
    X, y, X_new = table
    outer = TransformedTargetRegressor(small(), **LOG).fit(X, y)
    ours = ulmus.inference(outer)
    assert_allclose(np.mean(ours.predict(X)), np.mean(y), rtol=0.02)
    assert np.mean(outer.predict(X)) < 0.97 * np.mean(y)
    assert_allclose(outer.predict(X_new), ours.predict_median(X_new), rtol=0.1)


def test_the_outer_model_stays_as_it_is(table):
    X, y, _ = table
    outer = TransformedTargetRegressor(small(), **LOG).fit(X, y)
    before, fit = outer.predict(X), outer.regressor_.fitted_
    ours = ulmus.inference(outer)
    assert ours is not outer.regressor_
    assert outer.regressor_.fitted_ is fit
    assert outer.regressor_.target_transform is None
    assert_array_equal(outer.predict(X), before)
    assert ours.fitted_.response is not None
    assert ours.target_transform_ == "FunctionTransformer"


def test_checks_know_the_rows_by_the_values_of_the_target(table):
    X, y, _ = table
    outer = TransformedTargetRegressor(small(), **LOG).fit(X, y)
    ours = ulmus.inference(outer)
    assert_allclose(ours.fitted_.rows.observed[0], y, rtol=1e-12)
    assert_allclose(ours.loo_residuals_ + ours.loo_predictions_, y, rtol=1e-10)
    assert len(ours.check().findings) > 3


def test_a_power_transformer_that_was_fitted_to_the_target(table):
    X, y, X_new = table
    transformer = PowerTransformer("box-cox")
    outer = TransformedTargetRegressor(small(), transformer=transformer).fit(X, y)
    ours = ulmus.inference(outer)
    bounds = ours.predict_interval(X_new)
    assert np.all(np.isfinite(bounds))
    assert_allclose(np.mean(ours.predict(X)), np.mean(y), rtol=0.05)
    single = small(target_transform=transformer).fit(X, y)
    assert_allclose(bounds, single.predict_interval(X_new), rtol=1e-6)


def test_a_target_with_an_axis(table):
    X, y, X_new = table
    outer = TransformedTargetRegressor(small(), **LOG).fit(X, y[:, None])
    assert ulmus.inference(outer).predict(X_new).shape == outer.predict(X_new).shape == (20, 1)


def test_weights_and_rows_of_weight_zero(table):
    X, y, X_new = table
    weight = np.repeat([0.0, 1.0, 3.0, 2.0], 35)
    outer = TransformedTargetRegressor(small(), **LOG).fit(X, y, sample_weight=weight)
    single = small(target_transform="log").fit(X, y, sample_weight=weight)
    ours = ulmus.inference(outer)
    values = (m.predict(X_new, sample_weight=np.ones(20)) for m in (ours, single))
    assert_allclose(*values, rtol=1e-7)


def test_a_pipeline_with_other_columns_and_a_copy(table):
    X, y, X_new = table
    outer = TransformedTargetRegressor(make_pipeline(StandardScaler(), small()), **LOG).fit(X, y)
    ours = ulmus.inference(outer)
    frame = ours.slope(X_new)
    assert frame.term.tolist() == ["a", "b"]
    up, down = (ours.predict(X_new.assign(a=X_new.a + s)) for s in (1e-4, -1e-4))
    assert_allclose(frame.estimate[0], np.mean(up - down) / 2e-4, rtol=1e-5)
    assert "TransformedTargetRegressor" in repr(ours)
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert_array_equal(other.average(X_new)[NUMBERS], ours.average(X_new)[NUMBERS])


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("functions", "words"),
    [
        ({"func": np.negative, "inverse_func": np.negative}, "does not increase"),
        ({"func": np.reciprocal, "inverse_func": np.reciprocal}, "does not increase"),
        ({"func": np.log, "inverse_func": np.square, "check_inverse": False}, "inverse"),
    ],
)
def test_a_transformer_that_does_not_increase(table, functions, words):
    X, y, _ = table
    outer = TransformedTargetRegressor(small(), **functions).fit(X, y)
    match = mentions("transformer", "FunctionTransformer", words, "target_transform='auto'")
    with pytest.raises(InputError, match=match) as caught:
        ulmus.inference(outer)
    assert caught.value.parameter == "transformer"


def test_targets_that_are_not_transformed_back(table):
    X, y, _ = table
    several = TransformedTargetRegressor(small(), **LOG).fit(X, np.stack([y, y**2], axis=1))
    with pytest.raises(InputError, match=mentions("transformer", "2 outputs", "target_transform")):
        ulmus.inference(several)
    twice = TransformedTargetRegressor(small(target_transform="sqrt"), **LOG).fit(X, y + 1)
    with pytest.raises(InputError, match=mentions("transformer", "one of the two")):
        ulmus.inference(twice)
    compressed = TransformedTargetRegressor(small(), **LOG).fit(X, y)
    compressed.regressor_.compress()
    with pytest.raises(InputError, match=mentions("transformer", "rows", "target_transform")):
        ulmus.inference(compressed)


def test_other_models_are_refused(table):
    X, y, _ = table
    for other in (Ridge(), make_pipeline(StandardScaler(), Ridge())):
        outer = TransformedTargetRegressor(other, **LOG).fit(X, y)
        words = mentions("model", "ELMEnsembleRegressor", "TransformedTargetRegressor")
        with pytest.raises(ValueError, match=words):
            ulmus.inference(outer)
    inner = make_pipeline(TransformedTargetRegressor(make_pipeline(small()), **LOG)).fit(X, y)
    with pytest.raises(ValueError, match=mentions("model", "Pipeline")):
        ulmus.inference(inner)
    with pytest.raises(NotFittedError):
        ulmus.inference(TransformedTargetRegressor(small(), **LOG))


def test_files_contain_no_transformer(table, tmp_path):
    X, y, _ = table
    ours = ulmus.inference(TransformedTargetRegressor(small(), **LOG).fit(X, y))
    with pytest.raises(InputError, match=mentions("target_transform", "code", "skops")):
        ours.save(tmp_path / "m.ulmus")
    assert list(tmp_path.iterdir()) == []
