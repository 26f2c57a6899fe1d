"""Forms of low rank of any fit: their size, and the errors that they state."""

import numpy as np
import pytest
from models import mapped_ensemble, plain_ensemble

from ulmus.core.ensemble.components import point_parts
from ulmus.core.fit import small_forms as module
from ulmus.core.fit.small_forms import small_forms
from ulmus.core.variance.estimates import ESTIMATES, never_negative


def fit(n=150, d=3, **parameters):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.standard_normal(n)
    return mapped_ensemble(4, 50, exact=True, **parameters).fit(X, y).fitted_


def errors(one, small, X):
    name = one.estimates[0]
    pairing, h = ESTIMATES[name].pairing, one.features(X)
    exact = never_negative(name, point_parts(one.ensemble, pairing, h))
    found = never_negative(name, point_parts(one.ensemble, pairing, h, low_rank=small.forms.parts))
    return np.abs(np.sqrt(found / exact) - 1)


@pytest.mark.parametrize("parameters", [{}, {"noise": "heteroskedastic", "variance": "S3"}])
def test_large_forms_are_nearly_exact(parameters):
    one = fit(**parameters)
    assert one.low_rank is None
    small = small_forms(one, [10**6])
    new = np.random.default_rng(1).uniform(-1, 1, (200, 3))
    assert np.max(errors(one, small, new)) < 1e-3
    assert small.typical_error < 1e-3
    assert small.accepted


def test_a_smaller_size_has_larger_errors_which_are_stated():
    one = fit()
    new = np.random.default_rng(1).uniform(-1, 1, (300, 3))
    for size in (10_000, 3000, 600):
        small = small_forms(one, [size])
        (part,) = small.forms.parts
        features = np.count_nonzero(np.any(np.asarray(part.C) != 0, axis=0))
        assert part.rank * (features + 1.5 * part.rank) <= size
        found = np.sqrt(np.mean(errors(one, small, new) ** 2))
        assert 0.3 * small.typical_error < found < 3 * small.typical_error


def test_the_first_accurate_size_is_used():
    one = fit()
    small = small_forms(one, [600, 10**6, 10**7])
    assert small.accepted
    assert small.forms.rank == small_forms(one, [10**6]).forms.rank


def test_leave_one_out_shifts_are_those_of_the_fit():
    one = fit()
    small = small_forms(one, [10**6])
    X = np.random.default_rng(1).uniform(-1, 1, (20, 3))
    (part,), h = one.ensemble.regressions, one.features(X)
    exact = one.rows.shifts(part.exact, part.outputs, one.ensemble.layer, part.exact.coordinates(h))
    assert small.shifts is not None
    found = small.shifts[0].of(h)
    assert np.max(np.abs(found - exact)) < 0.01 * np.std(exact)


def test_forms_of_the_fit_are_kept_where_they_are_small_enough():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(600)
    one = plain_ensemble(8, 100, random_state=0).fit(X, y).fitted_
    assert one.low_rank is not None
    assert small_forms(one, [10**6]).forms is one.low_rank
    assert small_forms(one, [3000]).forms is not one.low_rank


def test_relative_errors_of_zero():
    found = module.relative_errors(np.array([0.0, 1.0, 4.0]), np.array([0.0, 0.0, 1.0]))
    assert found.tolist() == [0.0, 1.0, 1.0]


def test_a_fit_without_variance_has_forms():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    one = plain_ensemble(3, 20, random_state=0).fit(X, np.full(60, 0.1)).fitted_
    small = small_forms(one, [10**5])
    assert np.all(np.isfinite(small.forms.parts[0].C))
