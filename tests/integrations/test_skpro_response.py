"""Distributions of transformed, bounded and counted targets in skpro are not normal."""

import numpy as np
import pandas as pd
import pytest
from models import small_ensemble
from numpy.testing import assert_allclose
from sklearn.preprocessing import PowerTransformer

pytest.importorskip("skpro")

from ulmus.skpro import ELMProbaRegressor


@pytest.fixture(scope="module")
def frames():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(-1, 1, (120, 2)), columns=["a", "b"])
    f = np.sin(2 * X.a) + X.b
    y = pd.DataFrame(
        {
            "positive": np.exp(f + 0.4 * rng.standard_normal(120)),
            "count": rng.poisson(np.exp(f)).astype(float),
            "rain": np.maximum(f + 0.6 * rng.standard_normal(120), 0.0),
        }
    )
    return X, y, X.iloc[:15].set_axis([f"p{i}" for i in range(15)])


TARGETS = {
    "positive": {"target_transform": "log"},
    "count": {"target_kind": "count"},
    "rain": {"target_transform": "sqrt", "target_range": (0, None)},
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_distribution_has_the_quantiles_of_the_model(frames, name):
    X, y, X_new = frames
    model = small_ensemble(4, 15, alpha=0.1, **TARGETS[name])
    adapter = ELMProbaRegressor(model).fit(X, y[[name]])
    ours = adapter.estimator_
    found = adapter.predict_proba(X_new)
    assert list(found.index) == list(X_new.index)
    assert list(found.columns) == [name]
    expected = ours.predict_dist(X_new.set_axis(range(15)))
    for level in (0.1025, 0.5025, 0.9025):  # between the quantiles
        assert_allclose(np.ravel(found.ppf(level)), np.ravel(expected.ppf(level)), rtol=0.06)
    points = np.ravel(expected.ppf(0.6))
    value = found.cdf(pd.DataFrame({name: points}, index=X_new.index))
    assert_allclose(np.ravel(value), np.ravel(expected.cdf(points)), atol=0.006)
    levels = (np.arange(1000) + 0.5)[:, None] / 1000
    assert_allclose(np.ravel(found.mean()), expected.ppf(levels).mean(axis=0), 0.02, 0.002)
    assert np.all(np.ravel(found.sample(20)) >= 0)
    assert np.all(adapter.predict_interval(X_new).to_numpy() >= 0)
    assert_allclose(np.ravel(adapter.predict(X_new)), ours.predict(X_new))


def test_several_outputs(frames):
    X, y, X_new = frames
    y = y[["positive", "rain"]] + 0.5
    adapter = ELMProbaRegressor(small_ensemble(4, 15, alpha=0.1, target_transform="sqrt"))
    adapter.fit(X, y)
    found = adapter.predict_proba(X_new)
    assert list(found.columns) == ["positive", "rain"]
    assert_allclose(found.mean(), adapter.estimator_.predict(X_new), rtol=0.05)


def test_a_transformer_is_fitted_again_by_the_clone(frames):
    X, y, X_new = frames
    transformer = PowerTransformer("box-cox").fit(y[["positive"]])
    model = small_ensemble(4, 15, alpha=0.1, target_transform=transformer)
    adapter = ELMProbaRegressor(model).fit(X, y[["positive"]])
    expected = model.fit(X, y["positive"]).predict(X_new)
    assert_allclose(np.ravel(adapter.predict(X_new)), expected, rtol=1e-8)
