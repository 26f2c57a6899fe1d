"""Copies of rows are distinguished from rows that coincide by chance."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_diabetes

from ulmus.core.data.copies import copied_rows
from ulmus.core.data.source import RowBlocks


def found(X, y, weight=None, locations=()):
    """Number of copies that are found."""
    root = None if weight is None else np.sqrt(weight)
    rows = RowBlocks(X, np.atleast_2d(y), root, np.zeros(1))
    return rows.counted_once(copied_rows(rows, locations)).n_copies


def normal(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] + rng.standard_normal(n)


def with_copies(X, y, n=150):
    return np.concatenate([X, X[:n]]), np.concatenate([y, y[:n]])


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("decimals", [12, 2, 1, 0])
@pytest.mark.parametrize("n", [150, 300])
def test_copies_are_found_in_continuous_and_rounded_outputs(d, decimals, n):
    X, y = normal(d=d)
    y = y.round(decimals)
    assert found(X, y) == 0
    assert found(*with_copies(X, y, n)) == n
    assert found(scipy.sparse.csr_array(with_copies(X, y, n)[0]), with_copies(X, y, n)[1]) == n


def test_copies_are_found_among_repeated_measurements():
    X = np.random.default_rng(0).integers(0, 4, (300, 2)).astype(float)
    y = X[:, 0] + np.random.default_rng(1).standard_normal(300)
    assert found(X, y) == 0
    assert found(*with_copies(X, y)) == 150


@pytest.mark.parametrize("seed", range(60))
def test_discrete_tables_have_no_copies(seed):
    rng = np.random.default_rng(seed)
    n, values = rng.choice([100, 300, 1000, 5000]), rng.integers(2, 30)
    X = rng.integers(0, values, (n, rng.integers(2, 4))).astype(float)
    f = X.sum(axis=1) * rng.choice([0, 0.3, 1, 3])
    y = f + rng.choice([0, 0.1, 0.3, 1, 3]) * rng.standard_normal(n)
    y = y.round(rng.integers(0, 3)) if seed % 2 else rng.poisson(np.exp(f / (1 + f.max())))
    assert found(X, y.astype(float)) == 0


def test_replicates_of_counts_are_no_copies():
    dose = np.repeat(np.linspace(0, 1, 30), 6)
    rng = np.random.default_rng(0)
    assert found(dose[:, None], rng.poisson(3 * dose).astype(float)) == 0
    assert found(dose[:, None], (rng.random(180) < dose).astype(float)) == 0


def test_diabetes_has_no_copies():
    X, y = load_diabetes(return_X_y=True)
    assert found(X, y) == 0


def test_grades_of_repeated_samples_are_copies():
    # As in the table of red wines: eleven measurements, and a grade that always comes along.
    rng = np.random.default_rng(0)
    X = rng.gamma(3, 1, (1350, 11)).round(2)
    grade = np.clip(np.round(5.5 + 0.4 * X[:, 0] - 1.2 + 0.6 * rng.standard_normal(1350)), 3, 8)
    assert found(X, grade) == 0
    assert found(*with_copies(X, grade, 240)) == 240


def test_few_copies_and_few_rows_are_left_alone():
    X, y = normal()
    assert found(*with_copies(X, y, 5)) == 0
    assert found(*with_copies(X[:15], y[:15], 15)) == 0


def test_all_outputs_and_locations_are_compared():
    X, y = normal()
    X, y = with_copies(X, y)
    other = np.random.default_rng(1).standard_normal(450)
    assert found(X, np.stack([y, y])) == 150
    assert found(X, np.stack([y, other])) == 0
    assert found(X, y, locations=[np.arange(450)]) == 0
    assert found(X, y, locations=[np.concatenate([np.arange(300), np.arange(150)])]) == 150


def test_rows_of_weight_zero_are_no_copies_and_the_largest_weight_is_kept():
    X, y = with_copies(*normal(), 300)
    weight = np.repeat([1.0, 0.0], 300)
    assert found(X, y, weight) == 0
    weight = np.repeat([1.0, 2.0], 300)
    rows = RowBlocks(X, y[None], np.sqrt(weight), np.zeros(1))
    np.testing.assert_array_equal(copied_rows(rows), np.tile(np.arange(300, 600), 2))


def test_zeros_of_both_signs_are_equal():
    X, y = normal()
    X[:, 1] = 0.0
    X, y = with_copies(X, y)
    X[300:, 1] = -0.0
    assert found(X, y) == 150
