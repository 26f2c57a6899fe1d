"""Training rows found by their values, against loops."""

import numpy as np
import pytest
import scipy.sparse
from models import small_ensemble
from numpy.testing import assert_array_equal

from ulmus.core.query.row_lookup import NO_ROW, trained_rows


def coarse_table(n, seed=0, n_outputs=1):
    """Few different values, so that inputs and whole rows repeat."""
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 2, (n, 3)) / 3, rng.integers(0, 2, (n, n_outputs)) / 7


def loop_lookup(X, y, weight, X_new, y_new):
    """Training rows with these values, each counted once, those of positive weight first."""
    rows, found, seen = np.column_stack([X, y]), [], {}
    for row in np.column_stack([X_new, y_new]):
        equal = [i for i in range(len(rows)) if np.array_equal(rows[i], row)]
        equal = sorted(equal, key=lambda i: weight[i] == 0) or [NO_ROW]
        repetition = seen.get(tuple(row), 0)
        seen[tuple(row)] = repetition + 1
        found.append(equal[min(repetition, len(equal) - 1)])
    return found


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_rows_are_found_by_value(convert, n_outputs):
    X, y = coarse_table(60, n_outputs=n_outputs)
    weight = np.where(np.arange(60) % 7 == 0, 0.0, 1.0)
    rows = small_ensemble(2, 5, alpha=0.1).fit(convert(X), y, weight).fitted_.rows
    X_new, y_new = coarse_table(100, seed=1, n_outputs=n_outputs)
    expected = loop_lookup(X, y, weight, X_new, y_new)
    assert NO_ROW in expected
    for points in (X_new, scipy.sparse.csr_array(X_new)):
        assert_array_equal(trained_rows(rows, points, y_new.T), expected)


def test_precision_and_signs_of_zero(rng):
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    X[:, 2] = 0.0
    rows = small_ensemble(2, 5, alpha=0.1).fit(X, y).fitted_.rows
    single, every = X.astype(np.float32), np.arange(40)
    assert_array_equal(trained_rows(rows, single, y[None]), every)
    assert_array_equal(trained_rows(rows, X, y[None].astype(np.float32).astype(float)), every)
    assert_array_equal(trained_rows(rows, X * [1, 1, -1], y[None]), every)
    # Round-off of a transformer is no other value, a difference in the tenth digit is.
    assert np.mean(trained_rows(rows, X * (1 + 2e-16), y[None]) == every) > 0.95
    assert_array_equal(trained_rows(rows, X * (1 + 1e-10), y[None]), NO_ROW)
    assert_array_equal(trained_rows(rows, X[:, ::-1], y[None]), NO_ROW)


def test_rows_of_single_precision(rng):
    X, y = rng.standard_normal((40, 3)).astype(np.float32), rng.standard_normal(40)
    rows = small_ensemble(2, 5, alpha=0.1).fit(X, y).fitted_.rows
    assert_array_equal(trained_rows(rows, X.astype(float), y[None]), np.arange(40))


def test_many_rows_differ(rng):
    X = np.column_stack([np.arange(20_000.0), np.arange(20_000.0)[::-1]])
    rows = small_ensemble(2, 5, alpha=0.1).fit(X, np.zeros(20_000)).fitted_.rows
    order = rng.permutation(20_000)
    assert_array_equal(trained_rows(rows, X[order], np.zeros((1, 20_000))), order)
    assert_array_equal(trained_rows(rows, X + 0.5, np.zeros((1, 20_000))), NO_ROW)


def test_a_table_with_equal_rows_is_found_as_a_whole():
    X, y = coarse_table(80)
    rows = small_ensemble(2, 5, alpha=0.1).fit(X, y).fitted_.rows
    assert len(np.unique(np.column_stack([X, y]), axis=0)) < 60
    found = trained_rows(rows, X, y.T)
    assert_array_equal(np.sort(found), np.arange(rows.data.n_rows))
    assert_array_equal(rows.data.X[found], X)
