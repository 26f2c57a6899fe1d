"""Exact copies of rows count once, with a warning."""

import warnings

import numpy as np
import pytest
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_allclose, assert_array_equal

import ulmus
from ulmus.exceptions import DuplicateRowsWarning
from ulmus.noise import AR1, Clustered


def rows(n=100, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def order():
    """Rows of a table in which half of 100 rows come twice, in a random order."""
    rng = np.random.default_rng(1)
    return rng.permutation(np.concatenate([np.arange(100), np.arange(50)]))


def first_rows(order):
    """Positions of the first record of each row."""
    return np.sort(np.unique(order, return_index=True)[1])


@pytest.mark.parametrize("noise", ["homoskedastic", "auto", "heteroskedastic"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_results_are_those_of_the_table_without_copies(order, noise, n_outputs):
    X, y = rows()
    y = y if n_outputs == 1 else np.stack([y, X[:, 1] - y**2], axis=1)
    first = first_rows(order)
    model, other = (small_ensemble(4, 25, noise=noise) for _ in range(2))
    with pytest.warns(DuplicateRowsWarning, match=mentions("50 of 150 rows", "drop")):
        model.fit(X[order], y[order])
    other.fit(X[order][first], y[order][first])
    points = X[:9] * 0.9
    assert_allclose(model.alpha_, other.alpha_, rtol=1e-6)
    assert_allclose(model.noise_variance_, other.noise_variance_, rtol=1e-6)
    for component in ("model", "noise"):
        own, expected = (m.predict_var(points, component) for m in (model, other))
        assert_allclose(own, expected, rtol=1e-6)
    assert_allclose(model.predict_interval(points), other.predict_interval(points), rtol=1e-6)
    assert model.fitted_.n_rows == 100


def test_attributes_of_copies_are_those_of_their_rows(order):
    X, y = rows()
    with pytest.warns(DuplicateRowsWarning):
        model = small_ensemble(4, 25).fit(X[order], y[order])
    for name in ("leverage_", "loo_residuals_", "loo_predictions_"):
        values = getattr(model, name)
        assert values.shape == (150,)
        for i in range(50):
            assert np.ptp(values[order == i]) == 0
    assert np.all(model.leverage_ > 0)


def test_check_and_summary_report_copies(order, tmp_path):
    X, y = rows()
    with pytest.warns(DuplicateRowsWarning):
        model = small_ensemble(4, 25).fit(X[order], y[order])
    model.save(tmp_path / "m.ulmus")
    for one in (model, ulmus.load(tmp_path / "m.ulmus")):
        (found,) = (f for f in one.check().findings if f.code == "duplicate-rows")
        assert found.severity == "warning"
        assert found.statistic == pytest.approx(1 / 3)
        assert "sample_weight" in found.suggestion
        assert "50 of 150 rows are exact copies" in str(one.summary())
        assert_array_equal(one.loo_residuals_, model.loo_residuals_)


def test_rows_at_other_times_are_no_copies():
    X, y = rows()
    X, y = np.concatenate([X, X]), np.concatenate([y, y])
    time = np.concatenate([np.arange(100), np.arange(100)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", DuplicateRowsWarning)
        small_ensemble(3, 10, noise=AR1()).fit(X, y)
        small_ensemble(3, 10, noise=Clustered()).fit(X, y, groups=np.repeat([*range(20)], 10))
    with pytest.warns(DuplicateRowsWarning, match="100 of 200 rows"):
        small_ensemble(3, 10, noise=Clustered()).fit(X, y, groups=time // 10)
    with pytest.warns(DuplicateRowsWarning, match="100 of 200 rows"):
        small_ensemble(3, 10, noise=AR1()).fit(X, y, time=time)


def test_the_number_of_copies_as_weight_counts_them(order):
    X, y = rows()
    counts = np.bincount(order)
    model = small_ensemble(4, 25, alpha=0.1).fit(X, y, sample_weight=counts)
    repeated = small_ensemble(4, 25, alpha=0.1).fit_blocks([(X[order], y[order])])
    assert_allclose(model.predict(X), repeated.predict(X), rtol=1e-6)


def test_sums_of_partial_fit_count_copies_once(order):
    X, y = rows()
    more = rows(40, seed=2)
    parameters = {"alpha": 0.1, "standardize": False}
    with pytest.warns(DuplicateRowsWarning):
        model = small_ensemble(4, 25, **parameters).fit(X[order], y[order])
    whole = small_ensemble(4, 25, **parameters).fit(
        *map(np.concatenate, zip((X, y), more, strict=True))
    )
    assert_allclose(model.partial_fit(*more).predict(X), whole.predict(X), rtol=1e-6)
