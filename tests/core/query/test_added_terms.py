"""Coefficients of terms that are added to a fit, with the smoother as an explicit matrix."""

import numpy as np
import pytest
from models import plain_ensemble
from numpy.testing import assert_allclose

from ulmus.core.query.added_terms import added_terms
from ulmus.noise import AR1

N = 40


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N, 4))
    X[:, 3] = rng.integers(0, 2, N) + 0.5 * X[:, 0]
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 3] + 0.1 * rng.normal(size=N)


def model(**how):
    given = {"input_map": np.diag([1.0, 1.0, 0.0, 0.0]), "alpha": 0.1, "random_state": 0}
    return plain_ensemble(3, 8, **given | {"noise": "homoskedastic"} | how)


@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_are_those_of_least_squares_on_residuals(weighted):
    X, y = rows()
    weight = np.random.default_rng(1).uniform(0.5, 2, N) if weighted else np.ones(N)
    fit = model().fit(X, y, sample_weight=weight)
    # Predictions are linear in y: a column of the smoother is the fit to a unit vector.
    columns = [fit.__class__(**fit.get_params()).fit(X, e, sample_weight=weight) for e in np.eye(N)]
    smoother = np.stack([column.predict(X) for column in columns], axis=1)
    root = np.sqrt(weight / weight.mean())
    residual = np.diag(root) @ (np.eye(N) - smoother)
    D, own = residual @ X[:, 2:], residual @ y
    beta = np.linalg.lstsq(D, own, rcond=None)[0]
    terms = added_terms(fit.fitted_, np.array([False, False, True, True]))
    assert_allclose(terms.coefficients[:, 0], beta, rtol=1e-6)
    inverse, error = np.linalg.inv(D.T @ D), own - D @ beta
    dof = N - fit.dof_ - 2
    sandwich = inverse @ (D.T @ np.diag(error**2) @ D) @ inverse * N / dof
    assert_allclose(terms.covariance[0], sandwich, rtol=0.05)
    assert_allclose(terms.center, np.average(X[:, 2:], axis=0, weights=weight))


def test_there_are_none_without_rows_and_with_correlated_noise():
    X, y = rows()
    dropped = np.array([False, False, True, True])
    assert added_terms(model().fit_blocks([(X, y)]).fitted_, dropped) is None
    assert added_terms(model(noise=AR1()).fit(X, y).fitted_, dropped) is None


@pytest.mark.statistics
@pytest.mark.slow
def test_standard_errors_are_those_of_simulations():
    found, errors = [], []
    for seed in range(60):
        fit = model().fit(*rows(seed))
        terms = added_terms(fit.fitted_, np.array([False, False, False, True]))
        found.append(terms.coefficients[0, 0])
        errors.append(terms.covariance[0, 0, 0])
    assert abs(np.mean(found) - 0.5) < 4 * np.std(found) / np.sqrt(60)
    assert 0.7 < np.sqrt(np.mean(errors)) / np.std(found) < 1.4
