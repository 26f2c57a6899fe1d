"""Targets that leave little to estimate, impossible values, extreme units, and poles."""

import numpy as np
import pytest
from models import plain_ensemble
from numpy.testing import assert_allclose
from sklearn.preprocessing import FunctionTransformer

from ulmus.exceptions import InputError

N = 200
X = np.random.default_rng(0).uniform(-1, 1, (N, 1))


def small(**parameters):
    return plain_ensemble(4, 30, random_state=0, weight_scale=2.0, **parameters)


def amounts(seed=0):
    """Amounts, of which 30 % are zero."""
    rng = np.random.default_rng(seed)
    return np.where(rng.uniform(size=N) < 0.3, 0.0, np.exp(2 * X[:, 0]) * rng.gamma(2, 0.5, N))


@pytest.mark.parametrize("value", [1.0, 3.0])
@pytest.mark.parametrize("transform", [None, "log", "sqrt", "auto"])
def test_amounts_of_a_single_positive_value(transform, value):
    model = small(target_transform=transform, target_range=(0, None))
    model.fit(X, value * (X[:, 0] > 0.2))
    bounds = model.predict_interval(X, 0.9)
    assert np.all(np.isfinite(bounds))
    assert np.all((bounds >= 0) & (bounds <= value * (1 + 1e-6)))
    assert np.all(np.isfinite(model.predict_median(X)))


def shares(n, seed):
    """Shares of which some are 0 and some are 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 1))
    return x, np.clip(0.5 + 0.3 * np.sin(3 * x[:, 0]) + 0.25 * rng.standard_normal(n), 0, 1)


def test_both_bounds_have_probability():
    model = small(target_range=(0, 1)).fit(*shares(600, 1))
    x, y = shares(3000, 2)
    distribution = model.predict_dist(x[:5])
    assert_allclose(distribution.pmf(1.0), 1 - distribution.cdf(1 - 1e-12), atol=1e-6)
    assert np.all(distribution.pmf(1.0) > 0)
    assert np.all(distribution.pmf(0.5) == 0)
    low, high = model.predict_interval(x, 0.9).T
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.9, abs=0.035)
    assert model.fitted_.response[0].scores[0] > 0


def test_scores_of_shares_at_both_bounds_are_numbers():
    model = small(target_range=(0, 1), target_transform="auto").fit(*shares(300, 3))
    assert np.all(np.isfinite([score.gain for score in model.fitted_.target_scores]))


def test_the_inverse_of_a_transformer_is_not_taken_beyond_its_pole():
    transformer = FunctionTransformer(lambda y: -1 / y, lambda z: -1 / z, check_inverse=False)
    y = np.exp(X[:, 0]) * np.random.default_rng(1).gamma(3, 1 / 3, N)
    model = small(target_transform=transformer).fit(X, y)
    quantiles = model.predict_quantiles(X, [0.05, 0.5, 0.95, 0.98])
    assert np.all(np.diff(quantiles) >= 0)
    assert np.all(quantiles > 0)
    assert np.all(model.predict(X) > 0)


@pytest.mark.parametrize("unit", [1e-50, 1e-3, 1e3, 1e50])
def test_units_of_amounts_do_not_matter_for_a_fixed_alpha(unit):
    y = amounts()
    model = small(alpha=1.0, target_range=(0, None)).fit(X, y)
    scaled = small(alpha=1.0, target_range=(0, None)).fit(X, unit * y)
    assert scaled.dof_ == pytest.approx(model.dof_, rel=1e-6)
    assert_allclose(scaled.predict(X), unit * model.predict(X), rtol=1e-6)


def test_means_do_not_explode_outside_the_rows():
    y, far = amounts(), np.array([[4.0]])
    for model in (small(target_range=(0, None)), small(target_kind="count")):
        model.fit(X, np.round(y))
        with pytest.warns(UserWarning, match="outside the range"):
            assert 0 < model.predict(far)[0] < 1e8


@pytest.mark.parametrize("bounds", [(-1, None), (None, 2)])
def test_a_logit_requires_both_bounds_where_one_is_given(bounds):
    y = np.random.default_rng(2).beta(2, 3, N)
    with pytest.raises(InputError, match="requires both bounds of y"):
        small(target_transform="logit", target_range=bounds).fit(X, y)


@pytest.mark.parametrize(
    "target", [{"target_range": (0, None)}, {"target_transform": "log"}, {"target_kind": "count"}]
)
def test_rows_of_weight_zero_may_have_impossible_values(target):
    weight, y = np.ones(N), np.round(amounts())
    weight[0] = 0
    expected = small(**target).fit(X[1:], y[1:]).predict(X)
    y[0] = -5
    assert_allclose(small(**target).fit(X, y, weight).predict(X), expected, rtol=1e-6)


def test_densities_outside_the_support_are_zero():
    y = np.exp(X[:, 0]) * np.random.default_rng(3).gamma(2, 0.5, N)
    assert np.all(small(target_transform="sqrt").fit(X, y).predict_dist(X).pdf(-1.0) == 0)
    counts = small(target_kind="count").fit(X, np.round(3 * y))
    assert np.all(counts.predict_dist(X).pmf(np.inf) == 0)


def test_a_ratio_of_logarithms_is_refused():
    model = small(target_transform="log").fit(X, amounts() + 0.1)
    with pytest.raises(InputError, match="difference of logarithms"):
        model.compare(X, {0: (0, 1)}, scale="link", comparison="ratio")


def test_a_set_is_no_range():
    with pytest.raises(InputError, match="target_range must be None or"):
        small(target_range={0, 1}).fit(X, amounts())
