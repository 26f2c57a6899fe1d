"""Degenerate fits and points outside the data raise one warning each, and no other."""

import re
import warnings
from functools import partial

import numpy as np
import oracles
import pytest
import scipy.sparse
from messages import mentions
from models import ensemble_of_three, plain_ensemble, plain_member, small_ensemble
from numpy.testing import assert_allclose
from parametrisations import both_estimators
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ulmus.exceptions import (
    DegenerateFitWarning,
    ExtrapolationWarning,
    NegativeVarianceWarning,
)


@pytest.fixture
def data(make_table):
    return make_table(40)


def only(record):
    """Message of the one warning that was recorded."""
    (warning,) = record
    return str(warning.message)


@both_estimators
def test_a_row_that_determines_its_own_prediction_warns(data, make):
    # The second input differs from zero in one row only, and the model is linear.
    X = np.column_stack([data.X[:, 0], np.arange(40) == 7])
    model = make(2, alpha=0, activation="identity", random_state=0)
    with pytest.warns(DegenerateFitWarning) as record:
        model.fit(X, data.y)
    assert re.match(mentions("leverage 1", "alpha='loo'"), only(record))
    assert_allclose(model.leverage_[7], 1)
    assert_allclose(model.predict(X[7:8]), data.y[7])
    assert np.all(np.isfinite(model.predict_var(X)))


@both_estimators
def test_a_ridge_too_weak_to_smooth_warns(data, make):
    model = make(60, alpha=1e-12, weight_scale=3.0, random_state=0)
    with pytest.warns(DegenerateFitWarning) as record:
        model.fit(data.X[:12], data.y[:12])
    assert re.match(mentions("leverage 1", "alpha='loo'"), only(record))
    assert np.isfinite(model.noise_variance_)


@both_estimators
def test_saturated_units_warn(data, make):
    # Pre-activations of a million: every logistic unit is 0 or 1 in all rows of one sign.
    model = make(30, alpha=0, weight_scale=1e6, standardize=False, random_state=0)
    with pytest.warns(DegenerateFitWarning) as record:
        model.fit(np.abs(data.X[:, :1]) + 1, data.y)
    assert re.match(mentions("constant", "weight_scale", "alpha='loo'"), only(record))


def error_bars(model):
    """Methods whose results depend on the training range."""
    return (
        model.predict_var,
        model.variance_components,
        model.member_correlation,
        partial(model.variance_at, n_estimators=9),
        model.suggest_n_estimators,
    )


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
def test_points_outside_the_range_warn_with_their_number(data, container):
    model = plain_ensemble(3, 8, random_state=0).fit(container(data.X), data.y)
    X = data.X_new.copy()
    X[1, 0], X[4, 2] = 1.5, -1.21
    X[2, 1] = 1.19  # within a tenth of the range
    for ask in (model.predict, partial(model.predict, return_std=True), *error_bars(model)):
        with pytest.warns(ExtrapolationWarning) as record:
            ask(container(X))
        assert re.match(mentions("2 of 7 points", "range"), only(record))


def test_the_range_is_that_of_the_rows_that_count(data):
    X, w = data.X.copy(), data.w.copy()
    X[7], w[7] = 100.0, 0.0
    model = plain_ensemble(3, 8, random_state=0).fit(X, data.y, sample_weight=w)
    with pytest.warns(ExtrapolationWarning, match="1 of 1 points"):
        model.predict_var([[50.0, 50.0, 50.0]])


def rough_pair(members, **parameters):
    """Few wild units: members are hardly correlated, so that estimates may fall below zero."""
    return plain_ensemble(
        members,
        3,
        alpha=0.1,
        activation="cos",
        weight_scale=9.0,
        fit_intercept=False,
        random_state=6,
        **parameters,
    )


@pytest.mark.parametrize(
    ("name", "members", "hc"),
    [("BR", 2, "HC2"), ("S2", 2, "HC2"), ("S2", 2, "pooled"), ("S3", 3, "HC2")],
)
def test_negative_variances_take_their_positive_part(hidden, name, members, hc):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (40, 1)), 0.1 * rng.standard_normal(40)
    points = np.linspace(X.min(), X.max(), 300)[:, None]
    model = rough_pair(members, variance=[name], hc=hc, noise_variance="residual").fit(X, y)
    args = (hidden(model, X, X), hidden(model, points, X), y, 0.1)
    plain = oracles.variance(name, *args, hc=hc)
    negative = plain < 0
    assert 5 < negative.sum() < 150
    with pytest.warns(NegativeVarianceWarning) as record:
        ours = model.predict_var(points, component="model")
    words = (f"{negative.sum()} of 300 variances", repr(name), "n_estimators")
    assert re.match(mentions(*words), only(record))
    assert np.all(ours >= 0)
    assert_allclose(ours[~negative], plain[~negative], rtol=1e-8)
    if name == "S3":
        return
    # The variance given the weights and the positive part of what they cause:
    # mu'S mu + max(0, spread - (A - U)) / M.
    kind = "homoskedastic" if name == "BR" else hc
    plus = oracles.positive_part_variance(*args, kind=kind)
    usable = negative & (oracles.noise_part("NHe", *args, hc=kind) > 0)
    assert usable.sum() > 3
    assert_allclose(ours[usable], plus[usable], rtol=1e-8)


def test_a_negative_variance_is_never_the_root_of_a_standard_deviation():
    # Zero outputs and known noise: the members agree, and BR is sigma2 z_1'z_2 of any sign.
    X = np.random.default_rng(0).uniform(-1, 1, (40, 1))
    points = np.linspace(X.min(), X.max(), 300)[:, None]
    model = rough_pair(2, noise_variance=1.0).fit(X, np.zeros(40))
    with pytest.warns(NegativeVarianceWarning) as record:
        mean, std = model.predict(points, return_std=True)
    only(record)
    assert np.all(mean == 0)
    assert np.all(std >= 1)


def test_no_size_is_enough_where_members_are_not_correlated():
    X = np.random.default_rng(0).uniform(-1, 1, (40, 1))
    points = np.linspace(X.min(), X.max(), 300)[:, None]
    model = rough_pair(2, noise_variance=1.0).fit(X, np.sin(9 * X[:, 0]))
    assert np.mean(model.member_correlation(points).correlation == 0) > 0.2
    assert model.suggest_n_estimators(points) == 10_000


def far_away(data):
    return plain_ensemble(3, 8, random_state=0).fit(data.X, data.y), 9 + data.X_new


def members_at_odds(data):
    return rough_pair(2, noise_variance=1.0).fit(data.X, 0 * data.y), data.X_new


# Nine linear units of three inputs repeat one another.
LINEAR = {"alpha": 0, "activation": "identity", "random_state": 0}
# Each warning, by each way to cause it: a model, its arguments, and the method.
CAUSES = {
    "fit, one member": (lambda d: (plain_ensemble(1, 8), *d[:2]), "fit", {}),
    "fit, ensemble": (lambda d: (ensemble_of_three(9, **LINEAR), *d[:2]), "fit", {}),
    "fit, alone": (lambda d: (plain_member(9, **LINEAR), *d[:2]), "fit", {}),
    "range, predict": (far_away, "predict", {"return_std": True}),
    "range, predict_var": (far_away, "predict_var", {}),
    "range, variance_at": (far_away, "variance_at", {"n_estimators": 9}),
    "range, suggest": (far_away, "suggest_n_estimators", {}),
    "negative, predict": (members_at_odds, "predict", {"return_std": True}),
    "negative, predict_var": (members_at_odds, "predict_var", {}),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_warning_points_at_the_line_that_caused_it(data, cause):
    # Python shows a warning once per location: one inside ulmus would hide the next.
    prepare, method, options = CAUSES[cause]
    model, *arguments = prepare(data)
    with pytest.warns(UserWarning, match="points|members|variances|n_estimators") as record:
        getattr(model, method)(*arguments, **options)
    assert [warning.filename for warning in record] == [__file__]


def test_a_warning_is_given_once(normal_rows):
    X, y = normal_rows
    model = small_ensemble(5, 20).fit(X, y)
    calls = {
        "predict": lambda: model.predict(X[:2] + 9),
        "summary_frame": lambda: model.summary_frame(X[:2] + 9),
        "predict_dist": lambda: model.predict_dist(X[:2] + 9),
        "predict_interval": lambda: model.predict_interval(X[:2] + 9),
        "predict_quantiles": lambda: model.predict_quantiles(X[:2] + 9, 0.5),
    }
    for name, call in calls.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        kinds = [w.category for w in caught]
        assert kinds.count(ExtrapolationWarning) == 1, name
        assert {w.filename for w in caught} == {__file__}, name


def test_a_warning_through_a_pipeline_points_at_the_users_line(normal_rows):
    X, y = normal_rows
    pipe = make_pipeline(StandardScaler(), small_ensemble(5, 20)).fit(X, y)
    with pytest.warns(ExtrapolationWarning) as record:
        pipe.predict(X[:2] + 9)
    assert record[0].filename == __file__


def test_rows_of_zeros_that_are_out_of_range_warn(normal_rows):
    X, y = normal_rows
    X = np.abs(X) + 1  # zero is not among the values
    model = small_ensemble(5, 20).fit(scipy.sparse.csr_array(X), y)
    points = X[:4].copy()
    points[1], points[3, 2] = 0, 0
    with pytest.warns(ExtrapolationWarning, match="2 of 4 points"):
        model.predict(scipy.sparse.csr_array(points))
