"""Conditional means of missing inputs, beside textbook formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.tables.imputation import MAX_INPUTS, Imputation, fitted_imputation


def correlated_rows(n=400, seed=0):
    """Rows of three correlated inputs in different units."""
    rng = np.random.default_rng(seed)
    a, noise = rng.normal(size=n), rng.normal(size=(2, n))
    return np.stack([a, 5 + 10 * (a + 0.3 * noise[0]), noise[1] - 0.5 * a], axis=1)


def conditional_mean(x, mean, covariance):
    """Conditional mean of the NaN of one row: the formula with an explicit inverse."""
    gap = np.isnan(x)
    inverse = np.linalg.inv(covariance[np.ix_(~gap, ~gap)])
    filled = x.copy()
    filled[gap] = mean[gap] + covariance[np.ix_(gap, ~gap)] @ inverse @ (x - mean)[~gap]
    return filled


def test_missing_inputs_are_conditional_means():
    X = correlated_rows()
    imputation = fitted_imputation(X)
    mean, scale = np.array(imputation.mean), np.array(imputation.scale)
    covariance = np.array(imputation.correlation) * np.outer(scale, scale)
    gaps = np.random.default_rng(1).random(X.shape) < 0.4
    filled = imputation.fill(np.where(gaps, np.nan, X))
    expected = [conditional_mean(x, mean, covariance) for x in np.where(gaps, np.nan, X)]
    assert_allclose(filled, expected, rtol=1e-9, atol=1e-9)
    assert_array_equal(filled[~gaps], X[~gaps])


def test_moments_of_complete_rows_are_those_of_the_sample():
    X = correlated_rows(20_000)
    found = fitted_imputation(X)
    assert_allclose(found.mean, X.mean(axis=0), atol=1e-9)
    assert_allclose(found.scale, X.std(axis=0), rtol=1e-3)
    assert_allclose(found.correlation, np.corrcoef(X.T), atol=1e-3)


def test_the_em_algorithm_recovers_moments_of_rows_with_gaps():
    """Values are missing where another input is large: means of the observed ones are biased."""
    X = correlated_rows(4000)
    incomplete = X.copy()
    incomplete[X[:, 0] > 0.5, 1] = np.nan
    found = fitted_imputation(incomplete)
    observed = np.nanmean(incomplete[:, 1])
    assert abs(found.mean[1] - X[:, 1].mean()) < 0.1 * abs(observed - X[:, 1].mean())
    assert_allclose(found.correlation, np.corrcoef(X.T), atol=0.03)


def test_many_inputs_are_filled_with_their_means():
    X = np.random.default_rng(0).normal(size=(50, MAX_INPUTS + 1))
    X[3, 7] = np.nan
    filled = fitted_imputation(X).fill(X)
    assert_allclose(filled[3, 7], np.nanmean(X[:, 7]))


@pytest.mark.parametrize(
    "wrong",
    [
        Imputation((0.0,), (1.0,)),
        Imputation((0.0, 1.0), (1.0, 0.0)),
        Imputation((0.0, np.nan), (1.0, 1.0)),
        Imputation((0.0, 1.0), (1.0, 1.0), ((1.0, 2.0), (2.0, 1.0))),
    ],
)
def test_moments_that_no_rows_have_are_recognised(wrong):
    assert not wrong.is_valid(2)
    assert Imputation((0.0, 1.0), (1.0, 1.0), ((1.0, 0.5), (0.5, 1.0))).is_valid(2)
