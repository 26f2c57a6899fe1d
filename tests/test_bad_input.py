"""Bad input gets a clear error, doubtful fits a warning, and nothing else is said."""

import re
from functools import partial

import numpy as np
import oracles
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.core.hidden import ACTIVATIONS
from ulmus.exceptions import (
    DegenerateFitWarning,
    ExtrapolationWarning,
    NegativeVarianceWarning,
)


@pytest.fixture
def data(make_table):
    return make_table(40)


@pytest.fixture
def model(data):
    return ELMEnsembleRegressor(3, 8, random_state=0).fit(data.X, data.y)


def three(n_neurons, **parameters):
    """An ensemble of three."""
    return ELMEnsembleRegressor(3, n_neurons, **parameters)


both = [ELMRegressor, three]


def says(*words):
    """Pattern of a message that holds all the words, in any order."""
    return "(?s)" + "".join(f"(?=.*{re.escape(word)})" for word in words)


# ---------------------------------------------------------------- parameters

# Parameter, value, and what the message offers instead.
UNUSABLE = [
    ("n_estimators", 0, ">= 1"),
    ("n_estimators", 2.5, "whole number"),
    ("n_estimators", True, "whole number"),
    ("n_neurons", -3, ">= 1"),
    ("n_neurons", "many", "whole number"),
    ("alpha", -1.0, ">= 0"),
    ("alpha", float("nan"), "finite"),
    ("alpha", float("inf"), "finite"),
    ("alpha", "cv", "'loo' or 'gcv'"),
    ("alpha", None, "number"),
    ("activation", "sigmoid", "'logistic'"),
    ("activation", 3, "callable"),
    ("activation", ["relu"], "'relu'"),
    ("weight_distribution", "cauchy", "'uniform', 'normal'"),
    ("weight_scale", 0.0, "positive"),
    ("weight_scale", -1.0, "positive"),
    ("weight_scale", float("nan"), "positive"),
    ("weight_scale", [1.0, 2.0], "each of the 3 features"),
    ("weight_scale", [[1.0, 1.0, 1.0]], "each of the 3 features"),
    ("weight_scale", "wide", "positive"),
    ("fit_intercept", "no", "True"),
    ("standardize", "no", "True"),
    ("noise", "gaussian", "'homoskedastic', 'heteroskedastic'"),
    ("variance", "S4", "'S3'"),
    ("variance", ["BR", "S9"], "'BR'"),
    ("variance", [], "at least one"),
    ("variance", None, "'auto'"),
    ("variance", 3, "'auto'"),
    ("hc", "HC9", "'HC2'"),
    ("hc", None, "'HC2'"),
    ("noise_variance", "mle", "'pilot', 'residual'"),
    ("noise_variance", -1.0, ">= 0"),
    ("noise_variance", float("nan"), ">= 0"),
    ("noise_variance", [1.0, 2.0], "each of the 1 outputs"),
    ("random_state", -1, ">= 0"),
    ("random_state", "seed", "whole number"),
    ("random_state", 1.5, "whole number"),
]


@pytest.mark.parametrize(("name", "value", "remedy"), UNUSABLE)
def test_an_unusable_parameter_is_named_with_a_remedy(data, name, value, remedy):
    shown = "S9" if value == ["BR", "S9"] else "empty" if value == [] else repr(value)
    with pytest.raises(ValueError, match=says(name, shown, remedy)):
        ELMEnsembleRegressor(3, 8).set_params(**{name: value}).fit(data.X, data.y)


@pytest.mark.parametrize(
    ("variance", "members", "remedy"),
    [
        ("BR", 1, "'auto'"),
        ("S2", 1, "'auto'"),
        ("S3", 1, "'auto'"),
        ("S3", 2, "'S2'"),
        (["S1", "S3"], 2, "'S2'"),
    ],
)
def test_an_estimate_that_needs_more_members(data, variance, members, remedy):
    name = variance if isinstance(variance, str) else variance[-1]
    needed = 3 if name == "S3" else 2
    words = (f"variance={name!r}", f"n_estimators >= {needed}", f"got {members}", remedy)
    with pytest.raises(ValueError, match=says(*words)):
        ELMEnsembleRegressor(members, 8, variance=variance).fit(data.X, data.y)


@pytest.mark.parametrize("n_neurons", [12, 30])
@pytest.mark.parametrize("make", both)
def test_least_squares_needs_more_rows_than_the_rank(data, make, n_neurons):
    words = ("alpha=0", "rank 12", "12 rows", "alpha='loo'", "n_neurons")
    model = make(n_neurons, alpha=0, fit_intercept=False, weight_scale=3.0, random_state=0)
    with pytest.raises(ValueError, match=says(*words)):
        model.fit(data.X[:12], data.y[:12])


def test_rows_of_weight_zero_do_not_count_for_the_rank(data):
    w = (np.arange(40) < 12).astype(float)
    model = ELMRegressor(12, alpha=0, weight_scale=3.0, random_state=0)
    with pytest.raises(ValueError, match=says("alpha=0", "12 rows")):
        model.fit(data.X, data.y, sample_weight=w)


# ---------------------------------------------------------------- data


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_values_are_refused(data, model, bad):
    word = "NaN" if np.isnan(bad) else "infinity"
    X, y, w = data.X.copy(), data.y.copy(), data.w.copy()
    X[3, 1] = y[5] = w[2] = bad
    for arguments, name in [((X, data.y), "X"), ((data.X, y), "y")]:
        with pytest.raises(ValueError, match=says(name, word)):
            ELMRegressor().fit(*arguments)
    with pytest.raises(ValueError, match=says("sample_weight", word)):
        ELMRegressor().fit(data.X, data.y, sample_weight=w)
    for method in (model.predict, model.predict_var, model.variance_components):
        with pytest.raises(ValueError, match=says("X", word)):
            method(X)


def test_a_wrong_number_of_features_is_refused(data, model):
    for method in (model.predict, model.predict_var, model.member_correlation):
        with pytest.raises(ValueError, match=says("2 features", "expecting 3 features")):
            method(data.X_new[:, :2])


def test_lengths_must_agree(data):
    with pytest.raises(ValueError, match="inconsistent"):
        ELMRegressor().fit(data.X, data.y[:-1])
    with pytest.raises(ValueError, match="inconsistent"):
        ELMRegressor().fit(data.X, data.y, sample_weight=data.w[:-1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w: -w, ("sample_weight", "negative", "-")),
        (lambda w: w[:, None], ("sample_weight", "one number per row", "2")),
        (lambda w: 0 * w, ("sample_weight", "at least", "got 0")),
        (lambda w: (np.arange(len(w)) == 3) * 1.0, ("sample_weight", "at least", "got 1")),
        (lambda w: w.astype(str), ("sample_weight",)),
    ],
    ids=["negative", "two axes", "all zero", "one row", "words"],
)
def test_unusable_weights_are_refused(data, change, words):
    w = change(data.w)
    if w.dtype.kind == "U":
        w[0] = "heavy"
    with pytest.raises(ValueError, match=says(*words) if len(words) > 1 else "heavy"):
        ELMRegressor().fit(data.X, data.y, sample_weight=w)


def test_one_row_is_not_enough(data):
    with pytest.raises(ValueError, match=says("1 sample", "minimum of 2")):
        ELMRegressor().fit(data.X[:1], data.y[:1])


# ---------------------------------------------------------------- questions to a fitted model


def test_an_unfitted_model_says_so(data):
    for method in ("predict", "predict_var", "variance_components", "member_correlation"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(ELMEnsembleRegressor(), method)(data.X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ELMEnsembleRegressor().compress()


def test_an_estimate_that_was_not_computed(data, model):
    words = ("estimate='S2'", "not computed", "'BR'", "variance", "'all'")
    for method in (model.variance_components, model.member_correlation):
        with pytest.raises(ValueError, match=says(*words)):
            method(data.X_new, estimate="S2")
    with pytest.raises(ValueError, match=says(*words)):
        model.predict_var(data.X_new, estimate="S2")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda m, X: m.predict_var(X, component="bias"), ("component", "'bias'", "'model'")),
        (lambda m, X: m.predict_var(X, estimate="S4"), ("estimate", "'S4'", "'S2'")),
        (lambda m, X: m.variance_at(X, 0), ("n_estimators", "0", ">= 1")),
        (lambda m, X: m.suggest_n_estimators(X, tolerance=0.0), ("tolerance", "0", "> 0")),
        (lambda m, X: m.suggest_n_estimators(X, quantile=2), ("quantile", "2", "[0, 1]")),
    ],
    ids=["component", "estimate", "size", "tolerance", "quantile"],
)
def test_unknown_questions_are_named_with_a_remedy(data, model, ask, words):
    with pytest.raises(ValueError, match=says(*words)):
        ask(model, data.X_new)


def test_one_member_cannot_be_compared_with_itself(data):
    with pytest.warns(DegenerateFitWarning, match=says("n_estimators=1", "n_estimators >= 2")):
        model = ELMEnsembleRegressor(1, 8, random_state=0).fit(data.X, data.y)
    for ask in (model.variance_components, model.member_correlation):
        with pytest.raises(ValueError, match=says("n_estimators >= 2", "got 1", ask.__name__)):
            ask(data.X_new)
    alone = ELMRegressor(8, random_state=0).fit(data.X, data.y)
    assert_allclose(model.predict_var(data.X_new), alone.predict_var(data.X_new), rtol=1e-12)


# ---------------------------------------------------------------- warnings


def only(record):
    """Message of the one warning that was recorded."""
    (warning,) = record
    return str(warning.message)


@pytest.mark.parametrize("make", both)
def test_a_row_that_determines_its_own_prediction_warns(data, make):
    # The second input differs from zero in one row only, and the model is linear.
    X = np.column_stack([data.X[:, 0], np.arange(40) == 7])
    model = make(2, alpha=0, activation="identity", random_state=0)
    with pytest.warns(DegenerateFitWarning) as record:
        model.fit(X, data.y)
    assert re.match(says("leverage 1", "alpha='loo'"), only(record))
    assert_allclose(model.leverage_[7], 1)
    assert_allclose(model.predict(X[7:8]), data.y[7])
    assert np.all(np.isfinite(model.predict_var(X)))


@pytest.mark.parametrize("make", both)
def test_a_ridge_too_weak_to_smooth_warns(data, make):
    model = make(60, alpha=1e-12, weight_scale=3.0, random_state=0)
    with pytest.warns(DegenerateFitWarning) as record:
        model.fit(data.X[:12], data.y[:12])
    assert re.match(says("leverage 1", "alpha='loo'"), only(record))
    assert np.isfinite(model.noise_variance_)


@pytest.mark.parametrize("make", both)
def test_saturated_units_warn(data, make):
    # Pre-activations of a million: every logistic unit is 0 or 1 in all rows of one sign.
    model = make(30, alpha=0, weight_scale=1e6, standardize=False, random_state=0)
    with pytest.warns(DegenerateFitWarning) as record:
        model.fit(np.abs(data.X[:, :1]) + 1, data.y)
    assert re.match(says("constant", "weight_scale", "alpha='loo'"), only(record))


def error_bars(model):
    """Methods whose answers rest on the training range."""
    return (
        model.predict_var,
        model.variance_components,
        model.member_correlation,
        partial(model.variance_at, n_estimators=9),
        model.suggest_n_estimators,
    )


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
def test_points_outside_the_range_warn_with_their_number(data, container):
    model = ELMEnsembleRegressor(3, 8, random_state=0).fit(container(data.X), data.y)
    X = data.X_new.copy()
    X[1, 0], X[4, 2] = 1.5, -1.21
    X[2, 1] = 1.19  # within a tenth of the range
    model.predict(container(X))  # without error bars there is nothing to warn about
    for ask in (partial(model.predict, return_std=True), *error_bars(model)):
        with pytest.warns(ExtrapolationWarning) as record:
            ask(container(X))
        assert re.match(says("2 of 7 points", "range"), only(record))


def test_the_range_is_that_of_the_rows_that_count(data):
    X, w = data.X.copy(), data.w.copy()
    X[7], w[7] = 100.0, 0.0
    model = ELMEnsembleRegressor(3, 8, random_state=0).fit(X, data.y, sample_weight=w)
    with pytest.warns(ExtrapolationWarning, match="1 of 1 points"):
        model.predict_var([[50.0, 50.0, 50.0]])


def rough_pair(members, **parameters):
    """Few wild units: members are hardly correlated, so that estimates may fall below zero."""
    return ELMEnsembleRegressor(
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
    [("BR", 2, "HC2"), ("S2", 2, "HC2"), ("S2", 2, "ensemble"), ("S3", 3, "HC2")],
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
    assert re.match(says(*words), only(record))
    assert np.all(ours >= 0)
    assert_allclose(ours[~negative], plain[~negative], rtol=1e-8)
    if name == "S3":
        return
    # STATISTICS F: mu'S mu + max(0, spread - (A - U)) / M.
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
    return ELMEnsembleRegressor(3, 8, random_state=0).fit(data.X, data.y), 9 + data.X_new


def members_at_odds(data):
    return rough_pair(2, noise_variance=1.0).fit(data.X, 0 * data.y), data.X_new


# Nine linear units of three inputs repeat one another.
LINEAR = {"alpha": 0, "activation": "identity", "random_state": 0}
# Each warning, by each way to cause it: a model, its arguments, and the method.
CAUSES = {
    "fit, one member": (lambda d: (ELMEnsembleRegressor(1, 8), *d[:2]), "fit", {}),
    "fit, ensemble": (lambda d: (three(9, **LINEAR), *d[:2]), "fit", {}),
    "fit, alone": (lambda d: (ELMRegressor(9, **LINEAR), *d[:2]), "fit", {}),
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


# ---------------------------------------------------------------- large numbers


@pytest.mark.parametrize("alpha", [0.3, "loo", "gcv"])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("size", [1e-100, 1e30, 1e100])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_inputs_of_any_size_give_finite_results(data, activation, size, standardize, alpha):
    model = ELMEnsembleRegressor(
        3, 12, alpha=alpha, activation=activation, standardize=standardize, random_state=0
    ).fit(size * data.X, data.y)
    mean, std = model.predict(size * data.X_new, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(std))
    assert np.all(np.isfinite(model.loo_residuals_))


@pytest.mark.parametrize("size", [1e-100, 1e30, 1e100])
def test_standardised_inputs_have_no_unit(data, size):
    one, other = (
        ELMEnsembleRegressor(3, 12, random_state=0).fit(c * data.X, data.y) for c in (1.0, size)
    )
    expected = one.predict_var(data.X_new)
    assert_allclose(other.predict_var(size * data.X_new), expected, rtol=1e-6)
