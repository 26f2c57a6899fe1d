"""Dependent noise behind learned maps, and none at all: what random combinations found."""

import numpy as np
import pytest
from messages import mentions
from models import autocorrelated_table
from numpy.testing import assert_allclose

from ulmus import ELMEnsembleRegressor
from ulmus.exceptions import BiasWarning, CorrelatedErrorsWarning
from ulmus.noise import AR1, Clustered, Exponential, NeweyWest

# ---------------------------------------------------------------- what must not matter


@pytest.mark.parametrize("noise", [Clustered(), AR1() * Clustered(), NeweyWest() * Clustered()])
def test_the_order_of_groups_does_not_change_what_a_map_costs(noise):
    X, y = autocorrelated_table(60, 0.6, sd=0.3, scale=1.0)
    given = {"time": np.arange(60.0), "groups": np.repeat(np.arange(10), 6)}
    given = {axis: given[axis] for axis in noise.names()}
    backward = {axis: values[::-1] for axis, values in given.items()}
    model = ELMEnsembleRegressor(4, 15, noise=noise, alpha=0.1, random_state=0)
    expected = model.fit(X, y, **given).predict_interval(X[:5])
    found = model.fit(X[::-1], y[::-1], **backward).predict_interval(X[:5])
    assert_allclose(found, expected, rtol=1e-5)


# ---------------------------------------------------------------- noise that is independent


@pytest.mark.parametrize("noise", [AR1(), Exponential()], ids=repr)
def test_independent_rows_have_the_misfit_of_independent_noise(noise):
    # A steep function and few smooth units: the fit cannot follow.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 1))
    y = np.sign(X[:, 0]) + 0.1 * rng.standard_normal(200)
    given = {"coords": rng.uniform(0, 9, (200, 2))} if noise == Exponential() else {}
    settings = {"input_map": None, "alpha": 0.1, "random_state": 0}
    plain = ELMEnsembleRegressor(5, 20, noise="homoskedastic", **settings).fit(X, y)
    careful = ELMEnsembleRegressor(5, 20, noise=noise, **settings).fit(X, y, **given)
    assert careful.noise_covariance_.independent
    assert plain.fitted_.misfit.found
    points = np.linspace(-1, 1, 9)[:, None]
    with pytest.warns(BiasWarning):
        expected = plain.predict_interval(points, kind="confidence")
    with pytest.warns(BiasWarning):
        found = careful.predict_interval(points, kind="confidence")
    assert_allclose(found, expected, rtol=1e-6)
    severity = {one.code: one.severity for one in careful.check().findings}
    expected = {one.code: one.severity for one in plain.check().findings}
    assert severity["misfit"] == expected["misfit"]


# ---------------------------------------------------------------- advice that can be followed


def test_an_estimate_of_other_rows_is_no_matter_of_fitting_again():
    X, y = autocorrelated_table(60, 0.8, sd=0.3, scale=1.0)
    settings = {"input_map": None, "alpha": 0.1, "random_state": 0}
    together = ELMEnsembleRegressor(3, 8, noise=AR1(), **settings).fit(X, y)
    with pytest.raises(
        ValueError, match=mentions("estimate='S2'", "correlated noise", "'BD', 'BR'")
    ):
        together.predict_var(X, estimate="S2")
    together.predict_var(X, estimate="BR")
    alone = ELMEnsembleRegressor(3, 8, noise="homoskedastic", **settings).fit(X, y)
    with pytest.raises(ValueError, match=mentions("estimate='BD'", "independent noise", "'BR'")):
        alone.predict_var(X, estimate="BD")
    with pytest.raises(
        ValueError, match=mentions("estimate='S2'", "set the parameter variance to 'S2'")
    ):
        alone.predict_var(X, estimate="S2")


def test_several_series_in_a_stream_warn_about_groups():
    X, y = autocorrelated_table(60, 0.8, sd=0.3, scale=1.0)
    model = ELMEnsembleRegressor(3, 8, noise=AR1(), input_map=None, alpha=0.1, random_state=0)
    with pytest.warns(CorrelatedErrorsWarning, match="60 of 60 rows share their time"):
        model.fit_blocks([(X[:30], y[:30]), (X[30:], y[30:])], time=np.repeat(np.arange(30), 2))
