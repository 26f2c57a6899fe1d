"""Only ratios of weights matter, and weights that cannot be used are refused."""

import numpy as np
import pytest
from interval_methods import every_interval
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_allclose


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
@pytest.mark.parametrize("factor", [4.0, 1e-60, 1e60])
def test_a_constant_factor_of_the_weights_does_not_matter(normal_rows, noise, factor):
    X, y = normal_rows
    w = np.random.default_rng(0).uniform(0.5, 2, 600)
    for weight in (np.ones(600), w):
        one, other = (
            small_ensemble(5, 20, noise=noise).fit(X, y, c * weight) for c in (1.0, factor)
        )
        assert_allclose(other.predict_var(X[:9]), one.predict_var(X[:9]), rtol=1e-7)
        expected = every_interval(one, X[:9], 0.9)
        for name, intervals in every_interval(other, X[:9], 0.9).items():
            assert_allclose(intervals, expected[name], rtol=1e-6, atol=1e-8, err_msg=name)


def test_weights_of_four_are_no_weights(normal_rows):
    X, y = normal_rows
    none, four = small_ensemble(5, 20).fit(X, y), small_ensemble(5, 20).fit(X, y, np.full(600, 4.0))
    assert_allclose(four.predict_interval(X[:9]), none.predict_interval(X[:9]), rtol=1e-8)


def test_weights_that_overflow_are_refused(normal_rows):
    X, y = normal_rows
    for value in (1e300, 1e-300):
        for way in (small_ensemble(5, 20).fit, small_ensemble(5, 20).partial_fit):
            with pytest.raises(ValueError, match=mentions("sample_weight", "divide them")):
                way(X, y, np.full(600, value))
        with pytest.raises(ValueError, match=mentions("sample_weight of block 0", "divide them")):
            small_ensemble(5, 20).fit_blocks([(X, y, np.full(600, value))])


def test_complex_weights_and_dates_are_refused(normal_rows):
    X, y = normal_rows
    with pytest.raises(ValueError, match=mentions("sample_weight", "complex")):
        small_ensemble(5, 20).fit(X, y, np.ones(600) + 1j)
    with pytest.raises(ValueError, match="dates"):
        small_ensemble(5, 20).fit(X.astype("M8[s]"), y)
