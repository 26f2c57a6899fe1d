"""Bounds of leave-one-out residuals contain exactly those that are counted as covered."""

import numpy as np
import pytest
from models import small_ensemble
from numpy.testing import assert_array_equal

from ulmus.diagnostics.leave_one_out import (
    LeaveOneOutRows,
    leave_one_out_coverage,
    leave_one_out_ends,
)

LEVELS = (0.5, 0.8, 0.9, 0.95)
DRAWS = {
    "symmetric": lambda rng: rng.standard_normal(200),
    "skewed": lambda rng: rng.exponential(size=300) - 1,
    "few": lambda rng: rng.standard_normal(12),
}


@pytest.mark.parametrize("kind", list(DRAWS))
@pytest.mark.parametrize("level", LEVELS)
def test_bounds_contain_the_covered_residuals(rng, kind, level):
    errors = DRAWS[kind](rng)
    low, high = leave_one_out_ends(errors, level)
    covered = leave_one_out_coverage(errors, (level,))[0]
    assert_array_equal((low <= errors) & (errors <= high), covered)


@pytest.mark.parametrize("kind", list(DRAWS))
def test_bounds_are_order_statistics_of_the_others(rng, kind):
    errors = DRAWS[kind](rng)
    low, high = leave_one_out_ends(errors, 0.8)
    for i in range(0, len(errors), 7):
        others = np.delete(errors, i)
        assert low[i] in np.append(others, [-np.abs(others), np.abs(others)])
        assert high[i] in np.append(others, np.abs(others))
        assert not np.isin(errors[i], [low[i], high[i]])


@pytest.mark.parametrize("options", [{}, {"target_transform": "log"}, {"target_kind": "count"}])
def test_intervals_cover_the_rows_that_the_diagnostics_count(rng, options):
    X = rng.uniform(-1, 1, (150, 2))
    y = np.exp(np.sin(3 * X[:, 0]) + 0.4 * rng.standard_normal(150))
    y = rng.poisson(2 * y).astype(float) if "target_kind" in options else y
    fit = small_ensemble(4, 30, **options).fit(X, y).fitted_
    found = LeaveOneOutRows.of(fit, fit.rows)
    low, high = found.bounds(0, 0.9)
    inside = (low <= y) & (y <= high)
    if "target_kind" in options:
        assert abs(np.mean(inside) - np.mean(found.coverage(0, (0.9,)))) < 0.03
    else:
        assert_array_equal(inside, found.coverage(0, (0.9,))[0])
