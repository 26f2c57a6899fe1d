"""Transformations of a target: inverses, derivatives, supports, and units."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.preprocessing import FunctionTransformer, PowerTransformer

from ulmus.core.response.transformer import Transformer
from ulmus.core.response.transforms import Identity, Log, Logit, Sqrt, YeoJohnson
from ulmus.exceptions import InputError

POSITIVE = np.array([1e-3, 0.2, 1.0, 2.5, 30.0])
REAL = np.array([-20.0, -1.3, -0.1, 0.0, 0.4, 2.0, 9.0])
SHARES = np.array([0.001, 0.2, 0.5, 0.77, 0.999])


def fitted(y):
    return Transformer(FunctionTransformer(np.arcsinh, np.sinh), True).fitted(y)


CASES = [
    (Identity(), REAL),
    (Log(), POSITIVE),
    (Log(-3.0), POSITIVE - 3.0),
    (Log(0.0, 0.5), np.append(0.0, POSITIVE)),
    (Sqrt(), POSITIVE),
    (Sqrt(2.0), POSITIVE + 2.0),
    (Logit(), SHARES),
    (Logit(-1.0, 3.0), 4 * SHARES - 1),
    (Logit(0.0, 1.0, 0.01), np.concatenate([[0.0], SHARES, [1.0]])),
    *((YeoJohnson(power, 0.3, 2.0), REAL) for power in (-1.0, 0.0, 0.5, 1.0, 2.0, 2.7)),
    (fitted(REAL), REAL),
]


def name_of(case):
    return repr(case)[:40] if not isinstance(case, np.ndarray) else ""


@pytest.mark.parametrize(("transform", "y"), CASES, ids=name_of)
def test_the_inverse_returns_the_values(transform, y):
    assert_allclose(transform.inverse(transform.forward(y)), y, rtol=1e-10, atol=1e-12)
    assert np.all(np.diff(transform.forward(y)) > 0)


@pytest.mark.parametrize(("transform", "y"), CASES, ids=name_of)
def test_derivatives_are_difference_quotients(transform, y):
    inner = y[1:-1]  # a derivative at a bound is one-sided
    z, step = transform.forward(inner), 1e-6
    quotient = (transform.inverse(z + step) - transform.inverse(z - step)) / (2 * step)
    assert_allclose(transform.inverse_slope(z), quotient, rtol=1e-5, atol=1e-9)
    step = 1e-6 * np.maximum(np.abs(inner), 0.01)
    slope = (transform.forward(inner + step) - transform.forward(inner - step)) / (2 * step)
    assert_allclose(transform.log_slope(inner), np.log(slope), atol=1e-4)


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 1.0, 2.0, 2.7])
def test_yeo_johnson_is_that_of_scipy(power):
    assert_allclose(YeoJohnson(power).forward(REAL), stats.yeojohnson(REAL, power), rtol=1e-12)


@pytest.mark.parametrize(("transform", "y"), CASES, ids=name_of)
def test_inverses_beyond_the_domain_are_finite_and_within_the_support(transform, y):
    z = np.array([-1e8, -50.0, 50.0, 1e8])
    if transform.name == "FunctionTransformer":
        z = np.clip(z, -50, 50)  # sinh overflows
    values = transform.inverse(z)
    assert np.all(np.isfinite(values))
    assert np.all((values >= transform.support[0]) & (values <= transform.support[1]))
    assert np.all(np.diff(values) >= 0)


def test_a_transformer_is_fitted_to_a_copy():
    y = np.exp(np.random.default_rng(0).standard_normal(50))
    unfitted = PowerTransformer()
    transform = Transformer(unfitted, False).fitted(y)
    expected = PowerTransformer().fit(y[:, None]).transform(y[:, None])[:, 0]
    assert_allclose(transform.forward(y), expected)
    assert not hasattr(unfitted, "lambdas_")


@pytest.mark.parametrize(
    ("functions", "text"),
    [((np.negative, np.negative), "does not increase"), ((np.exp, np.exp), "has an inverse")],
)
def test_a_transformer_must_increase_and_have_an_inverse(functions, text):
    transformer = FunctionTransformer(*functions, check_inverse=False)
    with pytest.raises(InputError, match=text):
        Transformer(transformer, True).fitted(REAL)


def test_impossible_values_of_a_transformer_are_infinite():
    transform = Transformer(FunctionTransformer(np.log, np.exp), True).fitted(POSITIVE)
    assert_allclose(transform.forward(np.array([-1.0, 0.0, 1.0])), [-np.inf, -np.inf, 0.0])
