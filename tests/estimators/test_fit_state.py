"""A fit keeps its state between calls of ``partial_fit``, in copies, and when its table changes."""

import pickle

import numpy as np
import pytest
from interval_methods import every_interval
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_allclose, assert_array_equal

from ulmus import ELMEnsembleRegressor


def test_parameters_of_the_layer_cannot_change_between_calls(normal_rows):
    X, y = normal_rows
    model = small_ensemble(5, 20).partial_fit(X[:300], y[:300])
    before = model.predict(X[:5])
    for change in ({"n_neurons": 50}, {"weight_scale": 2.0}, {"random_state": 1}):
        kept = model.get_params()
        with pytest.raises(ValueError, match=mentions(next(iter(change)), "same hidden layer")):
            model.set_params(**change).partial_fit(X[300:], y[300:])
        model.set_params(**kept)
        assert_array_equal(model.predict(X[:5]), before)
    # What does not touch the layer may change.
    model.set_params(alpha=0.3, noise_variance="residual").partial_fit(X[300:], y[300:])
    assert model.alpha_ == 0.3


def test_partial_fit_is_documented_where_help_looks():
    assert "Add rows to the fit" in ELMEnsembleRegressor.partial_fit.__doc__
    assert "standardize" in ELMEnsembleRegressor.partial_fit.__doc__


@pytest.mark.parametrize("state", [np.random.default_rng(0), np.random.RandomState(0)])
def test_a_stream_goes_on_after_it_was_copied(normal_rows, state):
    X, y = normal_rows
    model = small_ensemble(5, 20, random_state=state).partial_fit(X[:300], y[:300])
    copy = pickle.loads(pickle.dumps(model)).partial_fit(X[300:], y[300:])
    assert_allclose(copy.predict(X[:5]), model.partial_fit(X[300:], y[300:]).predict(X[:5]))


def test_a_fit_travels(normal_rows):
    X, y = normal_rows
    model = small_ensemble(5, 20, noise="heteroskedastic").fit(X, y)
    expected = model.predict_interval(X[:9], kind="confidence")
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_interval(X[:9], kind="confidence"), expected)


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_changing_the_table_after_a_fit_changes_nothing(normal_rows, noise):
    X, y, w = normal_rows[0].copy(), normal_rows[1].copy(), np.ones(600)
    points = X[:9].copy()
    model = small_ensemble(5, 20, noise=noise).fit(X, y, w)
    before, loo = every_interval(model, points, 0.9), model.loo_predictions_
    X[:], y[:], w[:] = 0, 0, 0
    for name, intervals in every_interval(model, points, 0.9).items():
        assert_array_equal(intervals, before[name], err_msg=name)
    assert_array_equal(model.loo_predictions_, loo)
