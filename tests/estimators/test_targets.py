"""Transformed, bounded and counted targets through the public methods."""

import pickle
import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.exceptions import ExtrapolationWarning, InputError, NeedsTwoPassesError
from ulmus.noise import AR1


def table(n=150, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    return X, np.sin(4 * X[:, 0]) + X[:, 1], rng


def lognormal(n=150, sd=0.5, seed=0):
    X, f, rng = table(n, seed=seed)
    return X, np.exp(f + sd * rng.standard_normal(n))


def counts(n=200, shift=0.5, seed=0):
    X, f, rng = table(n, seed=seed)
    return X, rng.poisson(np.exp(f + shift))


def rain(n=300, seed=0):
    X, f, rng = table(n, seed=seed)
    wet = rng.uniform(size=n) < 1 / (1 + np.exp(-3 * f + 1))
    return X, np.where(wet, np.exp(f + 0.4 * rng.standard_normal(n)), 0.0)


def shares(n=150, seed=0):
    X, f, rng = table(n, seed=seed)
    p = 1 / (1 + np.exp(-f))
    return X, rng.beta(8 * p, 8 * (1 - p))


def small(**parameters):
    return plain_ensemble(4, 30, random_state=0, weight_scale=2.0, **parameters)


TARGETS = {
    "log": (lognormal, {"target_transform": "log"}),
    "sqrt": (lognormal, {"target_transform": "sqrt"}),
    "yeo-johnson": (lognormal, {"target_transform": "yeo-johnson"}),
    "auto": (lognormal, {"target_transform": "auto"}),
    "logit": (shares, {"target_transform": "logit", "target_range": (0, 1)}),
    "range": (lognormal, {"target_range": (0, None)}),
    "rain": (rain, {"target_transform": "sqrt", "target_range": (0, None)}),
    "rain without a transformation": (rain, {"target_range": (0, None)}),
    "count": (counts, {"target_kind": "count"}),
    "transformer": (lognormal, {"target_transform": PowerTransformer()}),
}
EVERY = pytest.mark.parametrize("name", TARGETS)


def fitted(name, **parameters):
    make, target = TARGETS[name]
    X, y = make()
    return small(**target | parameters).fit(X, y), X, y


# ------------------------------------------------------------ the scale of the regression


def test_without_parameters_the_regression_is_that_of_y():
    X, y = lognormal()
    model = small().fit(X, y)
    assert model.fitted_.response is None
    assert model.target_transform_ == "identity"


@pytest.mark.parametrize("bounds", [(None, None), (-1e9, 1e9)])
def test_the_identity_through_the_families_changes_no_number(bounds):
    X, y = lognormal()
    plain, through = small().fit(X, y), small(target_range=bounds).fit(X, y)
    new = X[:20] * 0.9
    for method in (
        lambda m: np.array(m.predict(new, return_std=True)),
        lambda m: m.predict_interval(new, [0.5, 0.9]),
        lambda m: m.predict_interval(new, 0.9, method="gaussian"),
        lambda m: m.predict_interval(new, 0.9, kind="confidence"),
        lambda m: m.predict_quantiles(new, [0.1, 0.5]),
        lambda m: m.predict_dist(new).cdf(1.0),
        lambda m: m.predict_var(new, "model"),
        lambda m: m.predict_var(new, "weights"),
        lambda m: m.predict_var(new, "noise"),
        lambda m: m.summary_frame(new).to_numpy(),
        lambda m: m.loo_residuals_,
    ):
        assert_allclose(method(through), method(plain), rtol=1e-12, atol=1e-12)


def test_a_logarithm_is_a_fit_to_the_logarithm():
    X, y = lognormal()
    model, by_hand = small(target_transform="log").fit(X, y), small().fit(X, np.log(y))
    bounds = by_hand.predict_interval(X, 0.9)
    assert_allclose(model.predict_interval(X, 0.9), np.exp(bounds), rtol=1e-12)
    assert_allclose(model.predict_interval(X, 0.9, scale="link"), bounds, rtol=1e-12)
    quantiles = by_hand.predict_quantiles(X, [0.1, 0.8])
    assert_allclose(model.predict_quantiles(X, [0.1, 0.8]), np.exp(quantiles), rtol=1e-12)
    distribution = by_hand.predict_dist(X)
    assert_allclose(model.predict_dist(X).cdf(2.0), distribution.cdf(np.log(2.0)))
    density = model.predict_dist(X).pdf(2.0)
    assert_allclose(density, distribution.pdf(np.log(2.0)) / 2.0)
    # Duan's smearing by leave-one-out residuals.
    e = by_hand.loo_residuals_ / np.sqrt(by_hand.fitted_.rows.loo_leverage[0] + 1)
    e = (e - e.mean()) / e.std()
    scale = np.sqrt(by_hand.predict_var(X, "noise"))
    smeared = np.exp(by_hand.predict(X)[:, None] + scale[:, None] * e).mean(axis=1)
    assert_allclose(model.predict(X), smeared, rtol=1e-9)


def test_standard_errors_are_those_of_the_delta_method():
    X, y = lognormal(n=400, sd=0.2)
    model, by_hand = small(target_transform="log").fit(X, y), small().fit(X, np.log(y))
    se = np.sqrt(by_hand.predict_var(X, "model")) * model.predict(X)
    ratio = np.sqrt(model.predict_var(X, "model")) / se
    assert np.all((ratio >= 1) & (ratio < 1.1))  # and the error of the smearing


@EVERY
def test_results_stay_within_the_support(name):
    model, X, _ = fitted(name)
    far = np.array([[3.0, -2.0], [-2.0, 5.0]])
    new = np.concatenate([X, far])
    least, most = {"logit": (0, 1)}.get(name, (0, np.inf))
    if name in ("yeo-johnson", "transformer", "auto"):
        least = -np.inf
    with pytest.warns(ExtrapolationWarning):
        values = [
            model.predict(new),
            model.predict_median(new),
            model.predict_interval(new, [0.5, 0.99]),
            model.predict_interval(new, 0.9, method="gaussian"),
            model.predict_interval(new, 0.9, kind="confidence"),
            model.predict_interval(new, 0.9, kind="confidence", target="expectation"),
            model.predict_quantiles(new, [0.01, 0.99]),
            model.predict_dist(new).ppf(0.001),
            model.predict_dist(new).rvs(random_state=0),
        ]
    for one in values:
        assert np.all(np.isfinite(one))
        assert np.all((one >= least) & (one <= most))
    assert np.all(model.predict_var(X) >= 0)


@EVERY
def test_intervals_are_ordered_and_nested(name):
    model, X, _ = fitted(name)
    low, high = np.moveaxis(model.predict_interval(X, [0.3, 0.6, 0.9, 0.95]), 1, 0)
    assert np.all(low <= high)
    assert np.all(np.diff(low) <= 1e-12)
    assert np.all(np.diff(high) >= -1e-12)
    quantiles = model.predict_quantiles(X, [0.05, 0.5, 0.6, 0.95])
    assert np.all(np.diff(quantiles) >= 0)
    shortest = model.predict_interval(X, 0.9, tails="shortest")
    assert np.all(shortest[:, 0] <= shortest[:, 1])


@EVERY
def test_components_of_the_variance_add_up(name):
    model, X, _ = fitted(name)
    parts = model.predict_var(X, "model") + model.predict_var(X, "noise")
    assert_allclose(model.predict_var(X), parts)
    assert_allclose(model.predict(X, return_std=True)[1], np.sqrt(parts))
    assert_allclose(model.predict_dist(X).std(), np.sqrt(parts))
    assert_allclose(model.predict_dist(X).mean(), model.predict(X))


@EVERY
def test_leave_one_out_predictions_are_means_of_y(name):
    model, X, y = fitted(name)
    assert_allclose(model.loo_predictions_ + model.loo_residuals_, y)
    # They agree with predictions up to the influence of a row.
    assert np.corrcoef(model.loo_predictions_, model.predict(X))[0, 1] > 0.9
    assert abs(np.mean(model.loo_residuals_)) < 0.15 * np.std(y)


@EVERY
def test_copies_predict_the_same(name):
    model, X, _ = fitted(name)
    for copy in (pickle.loads(pickle.dumps(model)), clone(model).fit(*TARGETS[name][0]())):
        assert_array_equal(copy.predict_interval(X[:9]), model.predict_interval(X[:9]))
        assert_array_equal(copy.predict(X[:9]), model.predict(X[:9]))


@EVERY
def test_compression_keeps_predictions(name):
    model, X, _ = fitted(name, exact=True)
    mean, interval = model.predict(X), model.predict_interval(X, 0.9, method="gaussian")
    model.compress()
    assert_allclose(model.predict(X), mean, rtol=1e-9)
    assert_allclose(model.predict_interval(X, 0.9, method="gaussian"), interval, rtol=1e-6)
    assert np.all(np.isfinite(model.predict_interval(X)))


@EVERY
def test_no_row_count_is_too_small(name):
    make, target = TARGETS[name]
    X, y = make()
    model = small(**target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:12], y[:12])
        interval = model.predict_interval(X[:5], 0.95)
    assert np.all(np.isfinite(interval[:, 0]))
    assert np.all(interval[:, 0] <= interval[:, 1])


# ------------------------------------------------------------ units


@pytest.mark.parametrize("name", ["log", "sqrt", "yeo-johnson", "auto", "range", "rain"])
@pytest.mark.parametrize("unit", [1e-6, 1e5])
def test_units_of_y_do_not_matter(name, unit):
    make, target = TARGETS[name]
    X, y = make()
    model, scaled = small(**target).fit(X, y), small(**target).fit(X, unit * y)
    assert scaled.target_transform_ == model.target_transform_
    assert_allclose(scaled.predict(X), unit * model.predict(X), rtol=1e-6)
    bounds = model.predict_interval(X, 0.9)
    assert_allclose(scaled.predict_interval(X, 0.9), unit * bounds, rtol=1e-5, atol=1e-9 * unit)


def test_a_lower_bound_is_the_zero_of_logarithms():
    X, y = lognormal()
    model = small(target_transform="log").fit(X, y)
    shifted = small(target_transform="log", target_range=(5, None)).fit(X, y + 5)
    assert_allclose(shifted.predict(X), model.predict(X) + 5, rtol=1e-7)


# ------------------------------------------------------------ counts


def test_counts_agree_with_a_generalised_linear_model():
    """With linear units and no penalty, scoring converges to the maximum likelihood fit."""
    X, _, rng = table(400, d=3)
    y = rng.poisson(np.exp(X @ [1.0, -0.5, 0.3]))
    model = plain_member(3, activation="identity", alpha=0.0, random_state=0, target_kind="count")
    model.fit(X, y)
    glm = sm.GLM(y, sm.add_constant(X), family=sm.families.Poisson()).fit()
    assert_allclose(model.predict(X), glm.fittedvalues, rtol=2e-4)
    expected = glm.get_prediction(sm.add_constant(X)).linpred.se ** 2
    link = model.predict_var(X, "model") / model.predict(X) ** 2
    assert_allclose(link / model.noise_variance_, expected, rtol=0.02)
    assert model.noise_variance_ == pytest.approx(glm.pearson_chi2 / glm.df_resid, rel=0.02)


def test_intervals_of_counts_are_whole_numbers():
    model, X, _ = fitted("count")
    interval = model.predict_interval(X, [0.5, 0.9])
    assert_array_equal(interval, np.round(interval))
    distribution = model.predict_dist(X)
    k = np.arange(200.0)[:, None]
    assert_allclose(distribution.pmf(k).sum(axis=0), 1)
    assert_allclose(distribution.logpmf(3.0), np.log(distribution.pmf(3.0)))
    assert_allclose(distribution.sf(2.0), 1 - distribution.cdf(2.0))


def test_counts_need_no_weights_of_new_rows():
    model, X, _ = fitted("count")
    with pytest.raises(InputError, match="sample_weight does not apply to counts"):
        model.predict_interval(X, sample_weight=np.ones(len(X)))


def test_weights_of_counts_are_numbers_of_rows():
    X, y = counts()
    weight = 1.0 + (np.arange(len(y)) % 2)
    model = small(target_kind="count", alpha=1.0).fit(X, y, weight)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    X2 = X[twice] + 1e-9 * np.arange(len(twice))[:, None]  # copies would count once
    repeated = small(target_kind="count", alpha=1.0, standardize=False).fit(X2, y[twice])
    same = small(target_kind="count", alpha=1.0, standardize=False).fit(X, y, weight)
    assert_allclose(same.predict(X), repeated.predict(X), rtol=5e-3)
    assert np.all(model.predict(X) > 0)


def test_auto_finds_counts():
    X, y = counts(300)
    model = small(target_transform="auto").fit(X, y)
    assert model.target_transform_ == "count, Poisson"
    assert [one.name for one in model.fitted_.target_scores if one.chosen] == ["count"]


# ------------------------------------------------------------ the choice


def test_auto_keeps_normal_noise():
    X, f, rng = table(300)
    model = small(target_transform="auto").fit(X, 5 + f + 0.3 * rng.standard_normal(300))
    assert model.target_transform_ == "identity"
    names = {one.name for one in model.fitted_.target_scores}
    assert names >= {"identity", "log", "sqrt", "yeo-johnson, power 0.5"}


def test_the_chosen_transformation_is_confirmed_by_a_fit_of_its_own():
    X, y = lognormal(400, 0.8)
    scores = small(target_transform="auto").fit(X, y).fitted_.target_scores
    (chosen,) = [one for one in scores if one.chosen]
    assert chosen.name == "log"
    assert chosen.gain > 3 * chosen.standard_error
    assert chosen.confirmed_gain > 0
    assert scores[0].confirmed_gain is None


def test_few_exact_zeros_do_not_decide():
    """The density of a square root is infinite at zero."""
    X, y = lognormal(250, 0.8)
    y[:3] = 0.0
    scores = small(target_transform="auto").fit(X, y).fitted_.target_scores
    gain = {one.name: one.gain for one in scores}
    assert abs(gain["sqrt"] - gain["yeo-johnson, power 0.5"]) < 0.2


def test_streams_have_no_leave_one_out_attributes():
    X, y = lognormal()
    model = small(target_transform="log").fit_blocks([(X, y)])
    assert not hasattr(model, "loo_residuals_")
    assert not hasattr(model, "loo_predictions_")


def test_correlated_counts_are_transformed_by_auto():
    X, y = counts(150)
    model = small(target_transform="auto", noise=AR1()).fit(X, y)
    assert not model.target_transform_.startswith("count")
    model = small(target_transform="auto").partial_fit(X, y)
    assert "count" not in {one.name for one in model.fitted_.target_scores}


def test_link_intervals_of_counts_are_those_of_the_mean():
    model, X, _ = fitted("count")
    with pytest.raises(InputError, match="scale of the mean"):
        model.predict_interval(X, scale="link")
    link = model.predict_interval(X, kind="confidence", scale="link")
    assert_allclose(np.exp(link), model.predict_interval(X, kind="confidence"), rtol=1e-9)


def test_a_power_near_its_pole_is_not_inverted():
    """The inverse of this power is infinite not far beyond the largest value."""
    X, y = lognormal(200, 0.8)
    model = small(target_transform=PowerTransformer()).fit(X, y)
    named = small(target_transform="log").fit(X, y)
    assert_allclose(model.predict(X), named.predict(X), rtol=0.5)
    with pytest.warns(ExtrapolationWarning):
        assert np.max(model.predict(X * 3 - 1)) < 3 * np.max(y)


def test_each_output_has_its_own_transformation():
    X, y = lognormal(300)
    _, f, rng = table(300)
    both = np.stack([y, 9 + f + 0.2 * rng.standard_normal(300)], axis=1)
    model = small(target_transform="auto").fit(X, both)
    assert model.target_transform_ == ["log", "identity"]
    assert model.predict_interval(X).shape == (300, 2, 2)
    assert model.predict_dist(X).cdf(1.0).shape == (300, 2)
    assert_allclose(model.predict_dist(X).median(), model.predict_dist(X).ppf(0.5))


# ------------------------------------------------------------ streams


@pytest.mark.parametrize("name", ["log", "sqrt", "range", "logit"])
def test_streams_are_fitted_as_rows_in_memory(name):
    model, X, y = fitted(name)
    streamed = small(**TARGETS[name][1]).fit_blocks([(X[:70], y[:70]), (X[70:], y[70:])])
    link, expected = streamed.fitted_.mean(X), model.fitted_.mean(X)
    assert_allclose(link, expected, rtol=1e-5, atol=1e-6)
    assert_allclose(streamed.predict(X), model.predict(X), rtol=0.02)


@pytest.mark.parametrize("name", ["rain", "count", "auto", "yeo-johnson"])
def test_streams_have_families(name):
    model, X, y = fitted(name)
    streamed = small(**TARGETS[name][1]).fit_blocks([(X[:70], y[:70]), (X[70:], y[70:])])
    assert streamed.target_transform_ == model.target_transform_
    difference = np.abs(streamed.predict(X) - model.predict(X))
    assert np.median(difference / np.sqrt(model.predict_var(X, "model"))) < 0.2
    low, high = streamed.predict_interval(X, 0.9).T
    assert np.mean((low <= y) & (y <= high)) > 0.85


def test_rows_are_added_on_the_same_scale():
    X, y = lognormal()
    model = small(target_transform="log").partial_fit(X[:90], y[:90])
    model.partial_fit(X[90:], y[90:])
    by_hand = small().partial_fit(X[:90], np.log(y[:90])).partial_fit(X[90:], np.log(y[90:]))
    assert_allclose(model.fitted_.mean(X), by_hand.fitted_.mean(X))
    assert np.all(model.predict(X) > np.exp(by_hand.predict(X)))


def test_counts_require_several_passes():
    X, y = counts()
    with pytest.raises(NeedsTwoPassesError, match="weights of counts require several passes"):
        small(target_kind="count").partial_fit(X, y)


# ------------------------------------------------------------ scikit-learn


def test_cross_validation_scores_predictions_of_y():
    X, y = lognormal(200, 0.2)
    for transform in ("log", PowerTransformer(), StandardScaler()):
        assert np.mean(cross_val_score(small(target_transform=transform), X, y)) > 0.6


def test_a_fitted_transformer_is_used_as_it_is():
    X, y = lognormal()
    transformer = FunctionTransformer(np.log, np.exp)
    model = small(target_transform=transformer).fit(X, y)
    named = small(target_transform="log").fit(X, y)
    assert_allclose(model.predict(X), named.predict(X), rtol=1e-9)
    assert_allclose(model.predict_var(X), named.predict_var(X), rtol=1e-6)
    assert model.target_transform_ == "FunctionTransformer"


# ------------------------------------------------------------ errors


ERRORS = [
    ({"target_transform": "lob"}, "target_transform must be None, one of 'log'"),
    ({"target_transform": PowerTransformer}, "target_transform must be None"),
    ({"target_transform": 3}, "target_transform must be None"),
    ({"target_range": (1, 0)}, "target_range must be None or"),
    ({"target_range": (np.nan, 0)}, "target_range must be None or"),
    ({"target_range": 3}, "target_range must be None or"),
    ({"target_range": "ab"}, "target_range must be None or"),
    ({"target_range": (True, 2)}, "target_range must be None or"),
    ({"target_kind": "counts"}, "target_kind must be None or one of"),
    ({"target_range": (0, None)}, "does not contain -"),
    ({"target_transform": "log"}, "requires y >= 0 or a lower bound, and y contains -"),
    ({"target_transform": "sqrt"}, "requires y >= 0 or a lower bound"),
    ({"target_transform": "logit"}, "requires both bounds of y"),
    ({"target_kind": "count"}, "requires whole numbers >= 0, and y contains"),
    ({"target_kind": "count", "target_transform": "log"}, "takes no transformation"),
    ({"target_kind": "count", "target_range": (0, 5)}, "without an upper bound"),
    ({"target_kind": "count", "noise_variance": 1.0}, "determines the variance"),
]


@pytest.mark.parametrize(("parameters", "text"), ERRORS)
def test_unusable_parameters_are_named(parameters, text):
    X, f, rng = table()
    y = f - 1 + 0.3 * rng.standard_normal(len(f))
    earlier = small().fit(X, y)
    expected = earlier.predict(X)
    earlier.set_params(**parameters)
    with pytest.raises(InputError, match=text):
        earlier.fit(X, y)
    assert_array_equal(earlier.predict(X), expected)  # a failed fit changes nothing


def test_counts_of_zero_only():
    X, _, _ = table()
    with pytest.raises(InputError, match="requires a positive count"):
        small(target_kind="count").fit(X, np.zeros(len(X)))


def test_counts_have_one_output():
    X, y = counts()
    with pytest.raises(InputError, match="requires a single output"):
        small(target_kind="count").fit(X, np.stack([y, y], axis=1))


@pytest.mark.parametrize("method", ["jackknife+", "cv+"])
def test_methods_of_residuals_do_not_apply_to_counts(method):
    model, X, _ = fitted("count")
    with pytest.raises(InputError, match="predictive distributions instead"):
        model.predict_interval(X, method=method)


@pytest.mark.parametrize("cls", [ELMEnsembleRegressor, ELMRegressor])
def test_default_fits(cls):
    """The learned map, its folds and the noise model behind each family."""
    for name in ("log", "rain", "count"):
        make, target = TARGETS[name]
        X, y = make()
        model = cls(random_state=0, **target).fit(X, y)
        low, high = model.predict_interval(X, 0.9).T
        assert 0.84 < np.mean((low <= y) & (y <= high)) <= 1
        assert np.all(model.predict_interval(X, kind="confidence")[:, 0] >= 0)
