"""A fit as a linear model of few coefficients has the covariance of its predictions."""

import numpy as np
import pytest
from fit_comparison import cut, ensemble
from joint_covariance import joint_covariance
from numpy.testing import assert_allclose
from plain import plain_ensemble, plain_member

from ulmus import ELMEnsembleRegressor
from ulmus.core.directions import error_directions

PRECISE = {"rtol": 1e-7, "atol": 1e-12}


@pytest.fixture
def table(make_table):
    return make_table(70, p=25)


def assert_covariance(fit, X, **precision):
    directions = error_directions(fit)
    R = directions.columns(X)
    assert R.shape == (len(X), directions.n_directions)
    for name in fit.estimates:
        ours = R @ directions.covariance(name) @ R.T
        assert_allclose(ours, joint_covariance(fit, X, name), err_msg=name, **precision)


@pytest.mark.parametrize(
    "how",
    [
        {"alpha": 0.3},
        {"alpha": 0.0},
        {"alpha": "loo", "fit_intercept": False},
        {"alpha": 0.3, "hc": "HC3-exact"},
        {"alpha": 0.3, "hc": "ensemble"},
        {"alpha": "gcv", "n_neurons": 120},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_estimate_of_the_joint_covariance(table, how, weighted):
    model = ensemble(**how).fit(table.X, table.y, table.w if weighted else None)
    assert_covariance(model.fitted_, table.X_new, **PRECISE)


def test_one_member_has_no_spread(table):
    model = plain_member(10, random_state=0).fit(table.X, table.y)
    assert_covariance(model.fitted_, table.X_new, **PRECISE)


@pytest.mark.parametrize("kept", ["streamed", "compressed"])
def test_a_fit_without_its_rows(table, kept):
    model = ensemble(alpha=0.3)
    if kept == "streamed":
        model.fit_blocks(cut(table.X, table.y))
    else:
        model = model.fit(table.X, table.y).compress()
    assert_covariance(model.fitted_, table.X_new, **PRECISE)


def test_what_choosing_a_map_costs(table):
    model = ELMEnsembleRegressor(3, 12, input_map="ard", random_state=0).fit(table.X, table.y)
    fit = model.fitted_
    assert fit.folded
    assert np.all(fit.map_variance(table.X_new) > 0)
    assert_covariance(fit, table.X_new, **PRECISE)


def test_a_smooth_fit_errs_in_few_directions(make_table):
    table = make_table(200, d=2, p=100)
    model = plain_ensemble(4, 150, alpha=0.1, random_state=0).fit(table.X, table.y)
    fit = model.fitted_
    directions = error_directions(fit)
    assert directions.n_directions < 4 * 151 / 2
    R = directions.columns(table.X_new)
    variance = np.sum(R @ directions.covariance("BR") * R, axis=1)
    ours, exact = np.sqrt([variance, model.predict_var(table.X_new, component="model")])
    assert_allclose(ours, exact, rtol=1e-8)
    # A cut that is too coarse would show.
    coarse = error_directions(fit, least_share=1e-2)
    R = coarse.columns(table.X_new)
    variance = np.sum(R @ coarse.covariance("BR") * R, axis=1)
    assert np.max(np.abs(np.sqrt(np.abs(variance)) / exact - 1)) > 1e-4
