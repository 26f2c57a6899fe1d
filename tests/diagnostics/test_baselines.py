"""Leave-one-out predictions of the mean and of a linear model, against refits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from ulmus.diagnostics import baselines
from ulmus.diagnostics.baselines import leave_one_out_mean, linear_baseline


@pytest.fixture
def rows(rng):
    X = rng.normal(3, 2, (40, 4)) * [1, 10, 0.1, 1]
    X[:, 3] = X[:, 0]  # a repeated input
    return X, X[:, 0] - 0.2 * X[:, 1] + rng.standard_normal(40), rng.uniform(0.3, 3, 40)


def without(i, *arrays):
    return [np.delete(a, i, axis=0) for a in arrays]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_without_each_row(rows, weighted):
    _, y, w = rows
    w = w if weighted else np.ones(len(y))
    expected = [np.average(a, weights=b) for a, b in (without(i, y, w) for i in range(len(y)))]
    assert_allclose(leave_one_out_mean(y, w if weighted else None), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_model_without_each_row_is_a_refit(rows, weighted, monkeypatch):
    X, y, w = rows
    w = w if weighted else np.ones(len(y))
    monkeypatch.setattr(baselines, "PENALTIES", np.array([0.02]))
    found = linear_baseline(X, y, w if weighted else None)
    mean = np.average(X, axis=0, weights=w)
    Z = (X - mean) / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    ridge = Ridge(alpha=0.02 * np.sum(w))
    expected = []
    for i in range(len(y)):
        Z_i, y_i, w_i = without(i, Z, y, w)
        expected.append(ridge.fit(Z_i, y_i, w_i).predict(Z[i : i + 1])[0])
    assert_allclose(found.loo_predictions, expected, rtol=1e-9)
    assert_allclose(found.predict(X), ridge.fit(Z, y, w).predict(Z), rtol=1e-9)


def test_the_penalty_is_the_one_of_least_error(rows, monkeypatch):
    X, y, _ = rows
    chosen = linear_baseline(X, y)
    errors = []
    for penalty in baselines.PENALTIES:
        with monkeypatch.context() as patch:
            patch.setattr(baselines, "PENALTIES", np.array([penalty]))
            errors.append(np.sum((y - linear_baseline(X, y).loo_predictions) ** 2))
    assert_allclose(np.sum((y - chosen.loo_predictions) ** 2), min(errors))


def test_more_inputs_than_rows_and_constant_inputs(rng):
    X = rng.standard_normal((20, 50))
    X[:, 7] = 5.0
    found = linear_baseline(X, rng.standard_normal(20))
    assert np.all(np.isfinite(found.loo_predictions))
    assert found.coef[7] == 0


def test_units_change_nothing(rows):
    X, y, _ = rows
    found, other = linear_baseline(X, y), linear_baseline(X * [1e6, 1, 1e-6, 3] - 5, 100 * y)
    assert_allclose(other.loo_predictions, 100 * found.loo_predictions, rtol=1e-8)
