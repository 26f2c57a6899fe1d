"""Bad input gets a clear error, and numbers of any size give finite results."""

import numpy as np
import pytest
from messages import mentions
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose
from parametrisations import both_estimators
from sklearn.exceptions import NotFittedError

from ulmus.core.layer.hidden_layer import ACTIVATIONS
from ulmus.exceptions import (
    DegenerateFitWarning,
)


@pytest.fixture
def data(make_table):
    return make_table(40)


@pytest.fixture
def model(data):
    return plain_ensemble(3, 8, random_state=0).fit(data.X, data.y)


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
    ("alpha", "cv", "'loo', 'block-loo' or 'gcv'"),
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
    ("verbose", "loud", "0, 1 or 2"),
    ("verbose", None, "0, 1 or 2"),
]


@pytest.mark.parametrize(("name", "value", "suggestion"), UNUSABLE)
def test_an_unusable_parameter_is_named_with_a_suggestion(data, name, value, suggestion):
    shown = "S9" if value == ["BR", "S9"] else repr(value)
    with pytest.raises(ValueError, match=mentions(name, shown, suggestion)):
        plain_ensemble(3, 8).set_params(**{name: value}).fit(data.X, data.y)


@pytest.mark.parametrize(
    ("variance", "members", "suggestion"),
    [
        ("BR", 1, "'auto'"),
        ("S2", 1, "'auto'"),
        ("S3", 1, "'auto'"),
        ("S3", 2, "'S2'"),
        (["S1", "S3"], 2, "'S2'"),
    ],
)
def test_an_estimate_that_needs_more_members(data, variance, members, suggestion):
    name = variance if isinstance(variance, str) else variance[-1]
    needed = 3 if name == "S3" else 2
    words = (f"variance={name!r}", f"n_estimators >= {needed}", f"got {members}", suggestion)
    with pytest.raises(ValueError, match=mentions(*words)):
        plain_ensemble(members, 8, variance=variance).fit(data.X, data.y)


@pytest.mark.parametrize("n_neurons", [12, 30])
@both_estimators
def test_least_squares_needs_more_rows_than_the_rank(data, make, n_neurons):
    words = ("alpha=0", "rank 12", "12 rows", "alpha='loo'", "n_neurons")
    model = make(n_neurons, alpha=0, fit_intercept=False, weight_scale=3.0, random_state=0)
    with pytest.raises(ValueError, match=mentions(*words)):
        model.fit(data.X[:12], data.y[:12])


def test_rows_of_weight_zero_do_not_count_for_the_rank(data):
    w = (np.arange(40) < 12).astype(float)
    model = plain_member(12, alpha=0, weight_scale=3.0, random_state=0)
    with pytest.raises(ValueError, match=mentions("alpha=0", "12 rows")):
        model.fit(data.X, data.y, sample_weight=w)


# ---------------------------------------------------------------- data


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_values_are_refused(data, model, bad):
    word = "NaN" if np.isnan(bad) else "infinity"
    X, y, w = data.X.copy(), data.y.copy(), data.w.copy()
    X[3, 1] = y[5] = w[2] = bad
    strict = plain_member(missing="error")
    for arguments, name in [((X, data.y), "x1" if np.isnan(bad) else "X"), ((data.X, y), "y")]:
        if np.isnan(bad) and name == "y":
            continue  # such rows are excluded
        with pytest.raises(ValueError, match=name):
            strict.fit(*arguments)
    with pytest.raises(ValueError, match=mentions("sample_weight", word)):
        plain_member().fit(data.X, data.y, sample_weight=w)
    for method in (model.predict, model.predict_var, model.variance_components):
        with pytest.raises(ValueError, match=mentions("X", word)):
            method(X)


def test_a_wrong_number_of_features_is_refused(data, model):
    for method in (model.predict, model.predict_var, model.member_correlation):
        with pytest.raises(ValueError, match=mentions("2 features", "expecting 3 features")):
            method(data.X_new[:, :2])


def test_lengths_must_agree(data):
    with pytest.raises(ValueError, match="inconsistent"):
        plain_member().fit(data.X, data.y[:-1])
    with pytest.raises(ValueError, match="inconsistent"):
        plain_member().fit(data.X, data.y, sample_weight=data.w[:-1])


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
    with pytest.raises(ValueError, match=mentions(*words) if len(words) > 1 else "heavy"):
        plain_member().fit(data.X, data.y, sample_weight=w)


def test_one_row_is_not_enough(data):
    with pytest.raises(ValueError, match=mentions("1 sample", "minimum of 2")):
        plain_member().fit(data.X[:1], data.y[:1])


# ---------------------------------------------------------------- methods of a fitted model


def test_an_unfitted_model_raises_not_fitted_error(data):
    for method in ("predict", "predict_var", "variance_components", "member_correlation"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(plain_ensemble(), method)(data.X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        plain_ensemble().compress()


def test_an_estimate_that_was_not_computed(data, model):
    words = ("estimate='S2'", "not computed", "'BR'", "variance", "'all'")
    for method in (model.variance_components, model.member_correlation):
        with pytest.raises(ValueError, match=mentions(*words)):
            method(data.X_new, estimate="S2")
    with pytest.raises(ValueError, match=mentions(*words)):
        model.predict_var(data.X_new, estimate="S2")


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (lambda m, X: m.predict_var(X, component="bias"), ("component", "'bias'", "'model'")),
        (lambda m, X: m.predict_var(X, estimate="S4"), ("estimate", "'S4'", "'S2'")),
        (lambda m, X: m.variance_at(X, 0), ("n_estimators", "0", ">= 1")),
        (lambda m, X: m.suggest_n_estimators(X, tolerance=0.0), ("tolerance", "0", "> 0")),
        (lambda m, X: m.suggest_n_estimators(X, quantile=2), ("quantile", "2", "[0, 1]")),
    ],
    ids=["component", "estimate", "size", "tolerance", "quantile"],
)
def test_invalid_arguments_are_named_with_a_suggestion(data, model, method, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        method(model, data.X_new)


def test_one_member_cannot_be_compared_with_itself(data):
    with pytest.warns(DegenerateFitWarning, match=mentions("n_estimators=1", "n_estimators >= 2")):
        model = plain_ensemble(1, 8, random_state=0).fit(data.X, data.y)
    for method in (model.variance_components, model.member_correlation):
        with pytest.raises(
            ValueError, match=mentions("n_estimators >= 2", "n_estimators=1", method.__name__)
        ):
            method(data.X_new)
    alone = plain_member(8, random_state=0).fit(data.X, data.y)
    assert_allclose(model.predict_var(data.X_new), alone.predict_var(data.X_new), rtol=1e-12)


# ---------------------------------------------------------------- large numbers


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.3, "loo", "gcv"])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("size", [1e-100, 1e30, 1e100])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_inputs_of_any_size_give_finite_results(data, activation, size, standardize, alpha):
    model = plain_ensemble(
        3, 12, alpha=alpha, activation=activation, standardize=standardize, random_state=0
    ).fit(size * data.X, data.y)
    mean, std = model.predict(size * data.X_new, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(std))
    assert np.all(np.isfinite(model.loo_residuals_))


@pytest.mark.parametrize("size", [1e-100, 1e30, 1e100])
def test_standardised_inputs_have_no_unit(data, size):
    one, other = (
        plain_ensemble(3, 12, random_state=0).fit(c * data.X, data.y) for c in (1.0, size)
    )
    expected = one.predict_var(data.X_new)
    assert_allclose(other.predict_var(size * data.X_new), expected, rtol=1e-6)


# ---------------------------------------------------------------- outputs that are no numbers


def dates_of(kind):
    """Forty dates or durations in one of the forms in which libraries give them."""
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2020-01-01", periods=40)
    return {
        "datetime64": dates.to_numpy(),
        "index": dates,
        "series": pd.Series(dates),
        "time zone": pd.Series(dates.tz_localize("UTC")),
        "list": list(dates),
        "python": [date.date() for date in dates],
        "period": pd.Series(dates.to_period("D")),
        "frame": pd.DataFrame({"y": np.arange(40.0), "day": dates}),
        "timedelta64": (dates - dates[0]).to_numpy(),
        "durations": list(dates - dates[0]),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    ["datetime64", "index", "series", "time zone", "list", "python", "period", "frame"],
)
def test_a_target_of_dates_is_refused(data, kind):
    """Dates were fitted as 1.6e18 nanoseconds."""
    unfitted, y = plain_ensemble(3, 8), dates_of(kind)
    for fit in (unfitted.fit, unfitted.partial_fit):
        with pytest.raises(ValueError, match=mentions("y contains dates", "timedelta64")):
            fit(data.X, y)
    with pytest.raises(ValueError, match=mentions("y of block 0", "dates", "timedelta64")):
        unfitted.fit_blocks([(data.X, y)])


@pytest.mark.parametrize("kind", ["timedelta64", "durations"])
def test_a_target_of_durations_is_refused(data, model, kind):
    with pytest.raises(ValueError, match=mentions("y contains durations", "timedelta64", "days")):
        plain_ensemble(3, 8).fit(data.X, dates_of(kind))
    with pytest.raises(ValueError, match=mentions("y contains durations")):
        model.check(data.X, dates_of(kind))


def test_rules_of_columns_are_checked(data):
    for how, text in (
        ({"missing": "guess"}, "missing must be one of 'impute', 'drop', 'error', got"),
        ({"unknown": "guess"}, "unknown must be one of 'average', 'error', got"),
        ({"categorical": ["a"]}, "X has no column names, to which"),
    ):
        with pytest.raises(ValueError, match=text):
            plain_member(**how).fit(data.X, data.y)
