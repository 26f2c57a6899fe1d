"""Outputs and inputs in extreme units, and those beyond the range of the numbers."""

import numpy as np
import pytest
from interval_methods import every_interval
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_allclose

from ulmus.exceptions import ExtrapolationWarning


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
@pytest.mark.parametrize("factor", [1e-150, 1e-80, 1e80, 1e150])
def test_outputs_in_extreme_units(normal_rows, noise, factor):
    X, y = normal_rows
    one, other = (small_ensemble(5, 20, noise=noise).fit(X, c * y) for c in (1.0, factor))
    assert_allclose(other.predict(X[:9]), factor * one.predict(X[:9]), rtol=1e-9)
    expected = every_interval(one, X[:9], 0.9)
    for name, intervals in every_interval(other, X[:9], 0.9).items():
        assert_allclose(intervals / factor, expected[name], rtol=1e-6, err_msg=name)


def test_units_beyond_all_numbers_are_refused(normal_rows):
    X, y = normal_rows
    for factor in (1e200, 1e-200):
        with pytest.raises(ValueError, match=mentions("y ", "range of float64", "multiply y")):
            small_ensemble(5, 20).fit(X, factor * y)
        with pytest.raises(ValueError, match=mentions("input 0 of X", "multiply that column")):
            small_ensemble(5, 20).fit(factor * X, y)
        with pytest.raises(ValueError, match=mentions("input 0 of X", "multiply that column")):
            small_ensemble(5, 20).fit_blocks([(factor * X, y)])


def test_units_beyond_all_numbers_are_refused_on_every_way(normal_rows):
    X, y = normal_rows
    started = small_ensemble(5, 20).partial_fit(X, y)
    for act, words in [
        (lambda: started.partial_fit(X, 1e200 * y), ["y reaches", "multiply y"]),
        (lambda: small_ensemble(5, 20).fit(X, np.full(600, 1e300)), ["y reaches", "multiply y"]),
        (
            lambda: small_ensemble(5, 20).fit_blocks([(X, 1e200 * y)]),
            ["y of block 0", "multiply y"],
        ),
        (
            lambda: small_ensemble(5, 20).fit(np.full((600, 1), 1e300), y),
            ["input 0 of X", "multiply"],
        ),
        (
            lambda: small_ensemble(5, 20, activation="relu", weight_scale=1e200).fit(X, y),
            ["hidden features"],
        ),
        (lambda: small_ensemble(5, 20, dtype="float32").fit(X, 1e40 * y), ["float32", "float64"]),
        (
            lambda: small_ensemble(5, 20, dtype="float32").fit(
                1e60 * X,
                y,
            ),
            ["float32"],
        ),
    ]:
        with pytest.raises(ValueError, match=mentions(*words)):
            act()


def test_inputs_that_single_precision_casts_to_zero_are_refused(normal_rows):
    """Their standard deviation became zero, and inputs 0 / 0."""
    X, y = normal_rows
    with pytest.raises(ValueError, match=mentions("float32", "input 0 of X", "float64")):
        small_ensemble(3, 5, dtype="float32").fit(1e-60 * X, y)


def test_slopes_whose_variance_overflows_are_refused(normal_rows):
    X, y = normal_rows
    model = small_ensemble(3, 5).fit(1e-140 * X, 1e140 * y)
    with pytest.raises(ValueError, match=mentions("variance is beyond the range", "column")):
        model.slope(1e-140 * X)


def test_variances_due_to_the_choice_of_alpha_do_not_overflow_in_single_precision():
    """Squares of shifts of predictions exceeded 3e38 far from the rows of a large output."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 1)), rng.normal(size=60)
    y[0] = 9e17
    model = small_ensemble(3, 20, dtype="float32", activation="relu", alpha="gcv").fit(X, y)
    with pytest.warns(ExtrapolationWarning):
        variance = model.predict_var(1e6 * X[:5], component="model")
    assert np.all(np.isfinite(variance) & (variance > 0))
