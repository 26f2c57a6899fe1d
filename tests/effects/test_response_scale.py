"""Effects of transformed, bounded and counted targets, on the scale of y and on the link scale."""

from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

import ulmus
from ulmus import ELMEnsembleRegressor
from ulmus.core.query.sequential_design import next_points
from ulmus.core.response.family import covariances, variances
from ulmus.effects.linearisation import directional
from ulmus.effects.response_scale import possible_means
from ulmus.effects.simulation import predictions_of_means
from ulmus.exceptions import DegenerateFitWarning
from ulmus.intervals.response import link_predictions

N_ROWS, LAYER = 120, {"weight_scale": 1.5, "random_state": 0, "alpha": 0.1}
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N_ROWS, 2))
POINTS = RNG.uniform(-0.9, 0.9, (7, 2))
GROUPS = np.array(["a", "b", "a", "b", "b", "a", "a"])
A = np.random.default_rng(5).standard_normal((3, 7))
ETA = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1]
NOISE = RNG.standard_normal(N_ROWS)
POSITIVE = np.exp(ETA + 0.7 * NOISE)
COUNTS = RNG.poisson(np.exp(1 + ETA)).astype(float)
RAIN = np.where(NOISE + ETA > -0.5, np.exp(0.5 * ETA + 0.5 * RNG.standard_normal(N_ROWS)), 0.0)
# The noise varies tenfold with the first input.
VARYING = np.exp(ETA + np.exp(1.2 * X[:, 0]) * 0.4 * NOISE)
NUMBERS = ["estimate", "std_error", "conf_low", "conf_high", "p_value"]

# A target and its parameters.
TARGETS = {
    "log": (POSITIVE, {"target_transform": "log"}),
    "sqrt": (POSITIVE, {"target_transform": "sqrt"}),
    "logit": (stats.norm.cdf(ETA + NOISE), {"target_transform": "logit", "target_range": (0, 1)}),
    "yeo-johnson": (POSITIVE, {"target_transform": "yeo-johnson"}),
    "transformer": (POSITIVE, {"target_transform": FunctionTransformer(np.log1p, np.expm1)}),
    "varying noise": (VARYING, {"target_transform": "log", "noise": "auto"}),
    "count": (COUNTS, {"target_kind": "count"}),
    "point mass": (RAIN, {"target_transform": "log"}),
}
kinds = pytest.mark.parametrize("kind", TARGETS)


class Case(NamedTuple):
    """A model on another scale, with the family of its output."""

    model: ELMEnsembleRegressor
    y: np.ndarray

    @property
    def fit(self):
        return self.model.fitted_

    @property
    def family(self):
        return self.fit.response[0]

    def link(self, points):
        return link_predictions(self.fit, points)[0]


@pytest.fixture(scope="module")
def cases():
    """A function that fits each target once."""
    known = {}

    def case(kind):
        if kind not in known:
            y, how = TARGETS[kind]
            known[kind] = Case(plain_ensemble(3, 15, **LAYER | how).fit(X, y), y)
        return known[kind]

    return case


def moved(points, value, j=0):
    points = points.copy()
    points[:, j] = value
    return points


# ---------------------------------------------------------------- the identity

EFFECTS = {
    "average": lambda m, **how: m.average(POINTS, by=GROUPS, **how),
    "weighted average": lambda m, **how: m.average(POINTS, weights=POINTS[:, 0] + 1, **how),
    "difference": lambda m, **how: m.compare(POINTS, {0: (-0.5, 0.5), 1: 0.1}, by=GROUPS, **how),
    "ratio": lambda m, **how: m.compare(POINTS, {0: (-0.5, 0.5)}, comparison="ratio", **how),
    "slopes": lambda m, **how: m.slope(POINTS, by=GROUPS, **how),
    "slopes of rows": lambda m, **how: m.slope(POINTS, by="row", **how),
    "curve": lambda m, **how: m.partial_dependence(POINTS, 0, grid=[-0.5, 0, 0.5], **how),
    "centred curve": lambda m, **how: m.partial_dependence(
        POINTS, 0, grid=[-0.5, 0, 0.5], centered=True, **how
    ),
    "slope of a curve": lambda m, **how: m.partial_dependence(
        POINTS, 1, grid=[-0.5, 0, 0.5], kind="slope", **how
    ),
    "sums": lambda m, **how: m.functional(A, POINTS, **how),
}


@pytest.fixture(scope="module", params=["homoskedastic", "varying noise", "two outputs"])
def identity(request):
    """A model of y, and one whose results lead back from a link scale that is that of y."""
    two = request.param == "two outputs"
    y = np.column_stack([POSITIVE, -COUNTS]) if two else POSITIVE
    noise = "auto" if request.param == "varying noise" else "homoskedastic"
    y = ETA + np.exp(1.2 * X[:, 0]) * 0.4 * NOISE if noise == "auto" else y
    plain = plain_ensemble(3, 15, noise=noise, **LAYER)
    bounded = plain_ensemble(3, 15, noise=noise, target_range=(None, 1e9), **LAYER)
    plain, bounded = plain.fit(X, y), bounded.fit(X, y)
    assert plain.fitted_.response is None
    assert bounded.fitted_.response is not None
    return plain, bounded


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.UlmusWarning")
@pytest.mark.parametrize("target", ["expectation", "function"])
@pytest.mark.parametrize("effect", EFFECTS)
def test_effects_by_the_identity_are_those_of_y(identity, effect, target):
    plain, bounded = (EFFECTS[effect](one, target=target) for one in identity)
    size = np.abs(plain[NUMBERS[:2]]).to_numpy().max()
    # The undersmoothed fit has directions that no row determines, where round-off matters.
    rtol, of_estimate = (1e-11, 1e-12) if target == "expectation" else (1e-6, 1e-10)
    assert_allclose(bounded.estimate, plain.estimate, rtol=1e-10, atol=of_estimate * size)
    assert_allclose(bounded[NUMBERS], plain[NUMBERS], rtol=rtol, atol=0.1 * rtol * size)
    covariance = np.asarray(plain.attrs["covariance"])
    near = {"rtol": rtol, "atol": 0.1 * rtol * np.nanmax(np.abs(covariance))}
    assert_allclose(bounded.attrs["covariance"], covariance, **near)
    assert_allclose(bounded.attrs["df"], plain.attrs["df"], rtol=rtol)
    assert bounded.attrs["scale"] == plain.attrs["scale"] == "response"


def test_bands_and_tests_by_the_identity_are_those_of_y(identity):
    how = {"hypothesis": "pairwise", "simultaneous": True, "adjust": "holm"}
    plain, bounded = (EFFECTS["curve"](one, **how) for one in identity)
    assert_allclose(bounded[NUMBERS], plain[NUMBERS], rtol=1e-9, atol=1e-12)
    for ours, theirs in zip(bounded.attrs["wald"], plain.attrs["wald"], strict=True):
        assert_allclose(ours["statistic"], theirs["statistic"], rtol=1e-8)


def test_joint_results_by_the_identity_are_those_of_y(identity):
    plain, bounded = identity
    size = np.abs(plain.predict_cov(POINTS)).max()
    near = {"rtol": 1e-12, "atol": 1e-12 * size}
    assert_allclose(bounded.predict_cov(POINTS), plain.predict_cov(POINTS), **near)
    both = POINTS[:4], POINTS[4:]
    assert_allclose(bounded.predict_cov(*both), plain.predict_cov(*both), **near)
    draws = [one.simulate(POINTS, 20, random_state=1) for one in (bounded, plain)]
    assert_allclose(*draws, rtol=1e-12, atol=1e-12)
    limits = [-1.0, 0.5, 2.0, -1e6, 1e8]
    ours, theirs = (one.exceedance(POINTS, limits, of="mean") for one in (bounded, plain))
    assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    ours, theirs = (one.next_points(POINTS, targets=X[:9], n=3) for one in (bounded, plain))
    assert_allclose(ours, theirs, rtol=1e-12)
    assert_allclose(ours.attrs["before"], theirs.attrs["before"], rtol=1e-12)


# ---------------------------------------------------------------- estimates


@kinds
def test_averages_are_means_of_predict(cases, kind):
    model = cases(kind).model
    for points in (POINTS, X):
        assert_allclose(model.average(points).estimate, np.mean(model.predict(points)), rtol=1e-12)
    rows = model.average(POINTS, by="row")
    assert_allclose(rows.estimate, model.predict(POINTS), rtol=1e-12)
    assert_allclose(rows.std_error**2, model.predict_var(POINTS, "model"), rtol=1e-8)
    sums = model.functional(A, POINTS)
    assert_allclose(sums.estimate, A @ model.predict(POINTS), rtol=1e-12)


@kinds
def test_contrasts_are_differences_and_ratios_of_averages(cases, kind):
    model = cases(kind).model
    high, low = (model.average(moved(POINTS, value)) for value in (0.5, -0.5))
    difference = model.compare(POINTS, {0: (-0.5, 0.5)})
    assert_allclose(difference.estimate, high.estimate - low.estimate, rtol=1e-12)
    ratio = model.compare(POINTS, {0: (-0.5, 0.5)}, comparison="ratio")
    assert_allclose(ratio.estimate, high.estimate / low.estimate, rtol=1e-12)
    curve = model.partial_dependence(POINTS, 0, grid=[-0.5, 0.5])
    assert_allclose(curve.estimate, [*low.estimate, *high.estimate], rtol=1e-12)
    # Of the same functionals: differences and their errors.
    by_test = model.partial_dependence(POINTS, 0, grid=[-0.5, 0.5], hypothesis="pairwise")
    assert_allclose(by_test[NUMBERS[:2]], difference[NUMBERS[:2]], rtol=1e-9)


def test_a_ratio_of_a_log_target_is_the_exponential_of_the_difference(cases):
    """For single rows smearing cancels, and so does its error."""
    model = cases("log").model
    change = {0: (-0.5, 0.5)}
    ratio = model.compare(POINTS, change, comparison="ratio", by="row")
    link = model.compare(POINTS, change, by="row", scale="link")
    assert_allclose(ratio.estimate, np.exp(link.estimate), rtol=1e-12)
    assert_allclose(ratio.std_error, np.exp(link.estimate) * link.std_error, rtol=1e-4)


@kinds
def test_slopes_are_derivatives_of_predict(cases, kind):
    model, h = cases(kind).model, 1e-5
    frame = model.slope(POINTS, by="row")
    for j in range(2):
        ends = [model.predict(moved(POINTS, POINTS[:, j] + s * h, j)) for s in (1, -1)]
        ours = frame.estimate[frame.term == f"x{j}"]
        assert_allclose(ours, (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-7)


def test_the_slope_of_modelled_noise_changes_the_mean(cases):
    """A steeper noise steepens the mean of the exponential function."""
    case = cases("varying noise")
    assert case.fit.noise_model.varies[0]
    link = case.model.slope(POINTS, 0, by="row", scale="link")
    mean = case.family.mean_slope(case.link(POINTS))
    ours = case.model.slope(POINTS, 0, by="row")
    assert np.max(np.abs(ours.estimate / (mean * link.estimate) - 1)) > 0.1


def mixed_table(n=160):
    """Categories, a count with few values and dates, and a positive target."""
    rng = np.random.default_rng(2)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(n) * 9, unit="D")
    table = pd.DataFrame(
        {"kind": rng.choice(["u", "v", "w"], n), "size": rng.uniform(1, 3, n), "day": days}
    )
    y = np.exp(table["size"] - 2 + (table.kind == "v") + 0.3 * rng.standard_normal(n))
    return table, y.to_numpy()


def test_encoded_tables_have_slopes_and_contrasts_of_predict():
    table, y = mixed_table()
    model = plain_ensemble(3, 20, target_transform="log", **LAYER).fit(table, y)
    few, h = table.iloc[:9], 1e-5
    ends = [model.predict(few.assign(size=few["size"] + s * h)) for s in (1, -1)]
    slope = model.slope(few, "size", by="row")
    assert_allclose(slope.estimate, (ends[0] - ends[1]) / (2 * h), rtol=1e-6)
    contrast = model.compare(few, {"kind": ["u", "v"]})
    kinds = [model.predict(few.assign(kind=kind)).mean() for kind in ("u", "v")]
    assert_allclose(contrast.estimate, kinds[1] - kinds[0], rtol=1e-12)
    # Seasons are held fixed in a slope by a date, which is per year.
    link = model.slope(few, "day", by="row", scale="link")
    steep = model.predict(few)  # of an exponential function and constant noise
    assert_allclose(model.slope(few, "day", by="row").estimate, steep * link.estimate, rtol=1e-9)


def test_a_pipeline_has_slopes_by_its_own_columns():
    pipe = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler())
    pipe.steps.append(("model", plain_ensemble(3, 15, target_transform="log", **LAYER)))
    pipe.fit(X, POSITIVE)
    inference, h = ulmus.inference(pipe), 1e-5
    ends = [pipe.predict(moved(POINTS, POINTS[:, 0] + s * h)) for s in (1, -1)]
    slope = inference.slope(POINTS, 0, by="row")
    assert_allclose(slope.estimate, (ends[0] - ends[1]) / (2 * h), rtol=1e-5)
    assert_allclose(inference.average(POINTS).estimate, pipe.predict(POINTS).mean(), rtol=1e-12)
    cov = inference.predict_cov(POINTS)
    rows = inference.average(POINTS, by="row")
    assert_allclose(np.diag(cov), rows.std_error**2, rtol=1e-10)


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.NegativeVarianceWarning")
def test_indicators_of_values_are_constant_in_slopes():
    table = np.column_stack([X[:, 0], np.arange(N_ROWS) % 4])
    y = np.exp(ETA + 0.5 * (table[:, 1] == 2) + 0.3 * NOISE)
    how = {"expand_inputs": "one_hot", "target_transform": "log", **LAYER}
    model = plain_ensemble(3, 20, **how).fit(table, y)
    ours, link = (model.slope(table[:9], by="row", scale=one) for one in ("response", "link"))
    assert_allclose(ours.estimate, np.tile(model.predict(table[:9]), 2) * link.estimate, rtol=1e-9)


# ---------------------------------------------------------------- standard errors


def jacobian(function, values, steps):
    """Derivatives of a function (q,) of values (p,), by central differences."""
    columns = []
    for j, step in enumerate(steps):
        ends = []
        for sign in (1, -1):
            changed = values.copy()
            changed[j] += sign * step
            ends.append(function(changed))
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.column_stack(columns)


@kinds
def test_covariances_are_those_of_finite_differences(cases, kind):
    """Of a functional of the link values, whose covariance is known."""
    case = cases(kind)
    link, family = case.link(POINTS), case.family
    C = case.model.predict_cov(POINTS, scale="link")

    def functional(values):
        return A @ family.mean(link._replace(mean=values))

    J = jacobian(functional, link.mean, np.full(7, 1e-5))
    D = family.influence(link) @ A.T
    expected = J @ C @ J.T + covariances(D)
    frame = case.model.functional(A, POINTS)
    near = {"rtol": 1e-5, "atol": 1e-6 * np.abs(expected).max()}
    assert_allclose(frame.attrs["covariance"], expected, **near)
    assert_allclose(frame.std_error**2, np.diag(expected), rtol=1e-5)
    S = np.diag(family.mean_slope(link))
    D = family.influence(link)
    covariance = case.model.predict_cov(POINTS)
    assert_allclose(covariance, S @ C @ S + covariances(D), rtol=1e-8, atol=1e-12)
    assert_allclose(np.diag(covariance), case.model.predict_var(POINTS, "model"), rtol=1e-10)


@kinds
def test_standard_errors_of_slopes_are_those_of_differences(cases, kind):
    """A slope is a difference of the means at two points that are close to each other."""
    model, h = cases(kind).model, 1e-3
    ends = np.vstack([moved(POINTS, POINTS[:, 0] + s * h) for s in (1, -1)])
    weights = np.hstack([np.eye(7), -np.eye(7)]) / (2 * h)
    differences = model.functional(weights, ends)
    slopes = model.slope(POINTS, 0, by="row")
    assert_allclose(slopes.estimate, differences.estimate, rtol=1e-4, atol=1e-5)
    # Second derivatives of a mean over few residuals jump where these reach a bound.
    smooth = kind not in ("sqrt", "yeo-johnson")
    assert_allclose(slopes.std_error, differences.std_error, rtol=1e-3 if smooth else 0.05)
    average = model.slope(POINTS, 0)
    expected = model.functional(weights.mean(axis=0), ends)
    assert_allclose(average.std_error, expected.std_error, rtol=1e-3 if smooth else 0.05)


def test_noise_adds_to_the_diagonal(cases):
    for kind in TARGETS:
        model = cases(kind).model
        parts = [model.predict_cov(POINTS, component=one) for one in ("model", "noise", "total")]
        assert_allclose(parts[0] + parts[1], parts[2], rtol=1e-12)
        assert_allclose(np.diag(parts[2]), model.predict_var(POINTS), rtol=1e-10)
        assert_allclose(parts[1], np.diag(model.predict_var(POINTS, "noise")), rtol=1e-10)


def test_weights_of_observations_enter_their_means():
    how = {"target_transform": "log", **LAYER}
    weight = np.random.default_rng(3).uniform(0.2, 3, N_ROWS)
    model = plain_ensemble(3, 15, **how).fit(X, POSITIVE, sample_weight=weight)
    own = np.linspace(0.3, 2, 7)
    total = model.predict_cov(POINTS, component="total", sample_weight=own)
    assert_allclose(np.diag(total), model.predict_var(POINTS, sample_weight=own), rtol=1e-10)
    assert_allclose(model.average(POINTS).estimate, model.predict(POINTS).mean(), rtol=1e-12)


# ---------------------------------------------------------------- the link scale


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.UlmusWarning")
@pytest.mark.parametrize("effect", [name for name in EFFECTS if name != "ratio"])
def test_results_on_the_link_scale_are_those_of_the_logarithm(cases, effect):
    model = cases("log").model
    by_hand = plain_ensemble(3, 15, **LAYER).fit(X, np.log(POSITIVE))
    for target in ("expectation", "function"):
        ours = EFFECTS[effect](model, scale="link", target=target)
        theirs = EFFECTS[effect](by_hand, target=target)
        assert_allclose(ours[NUMBERS], theirs[NUMBERS], rtol=1e-10, atol=1e-12)
        assert ours.attrs["scale"] == "link"
    ours = model.predict_cov(POINTS, scale="link", component="total")
    assert_allclose(ours, by_hand.predict_cov(POINTS, component="total"), rtol=1e-10, atol=1e-14)


def test_an_unknown_scale_is_refused(cases):
    model = cases("log").model
    for call in (model.average, partial(model.slope, variables=0), model.predict_cov):
        with pytest.raises(ValueError, match="scale must be one of 'response', 'link'"):
            call(POINTS, scale="log")


# ---------------------------------------------------------------- several outputs


def test_each_output_has_its_own_family():
    Y = np.column_stack([POSITIVE, 5 + ETA + 0.3 * NOISE])
    how = {"target_transform": "log", "weight_scale": 1.5, "random_state": 0}
    both = plain_ensemble(3, 15, **how).fit(X, Y)
    assert len(both.fitted_.response) == 2
    for effect in ("average", "ratio", "slopes", "sums"):
        frame = EFFECTS[effect](both)
        for k in range(2):
            alone = EFFECTS[effect](plain_ensemble(3, 15, **how).fit(X, Y[:, k]))
            ours = frame[frame.output == k]
            assert_allclose(ours[NUMBERS], alone[NUMBERS], rtol=1e-6)
            covariance = frame.attrs["covariance"].of(ours)
            assert_allclose(covariance, alone.attrs["covariance"], rtol=1e-5, atol=1e-12)


# ---------------------------------------------------------------- ranges


@pytest.mark.parametrize(
    ("y", "how", "low", "high"),
    [
        (RAIN, {"target_transform": "log"}, 0, np.inf),
        (COUNTS, {"target_kind": "count"}, 0, np.inf),
        (stats.norm.cdf(3 * ETA + NOISE), {"target_range": (0, 1)}, 0, 1),
    ],
)
def test_intervals_of_averages_stay_in_the_range_of_means(y, how, low, high):
    model = plain_ensemble(3, 40, random_state=0, weight_scale=2.0, **how).fit(X, y)
    level = {"confidence_level": 1 - 1e-13}
    frames = [
        model.average(X, by="row", **level),
        model.partial_dependence(X, 0, grid=[-1.0, 1.0], **level),
        model.functional(np.eye(5, N_ROWS), X, **level),
    ]
    for frame in frames:
        assert frame.conf_low.min() >= low
        assert frame.conf_high.max() <= high
    assert frames[0].conf_low.min() == low
    for frame in (
        model.compare(X, {0: (0.9, -0.9)}, **level),
        model.slope(-X, 0, by="row", **level),
        model.functional(-np.eye(5, N_ROWS), X, **level),
        model.partial_dependence(X, 0, grid=[-1.0, 1.0], centered=True, **level),
    ):
        assert np.any(frame.conf_low < low)


# ---------------------------------------------------------------- targets of intervals


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.UlmusWarning")
@kinds
def test_the_function_is_centred_at_the_undersmoothed_fit(cases, kind):
    case = cases(kind)
    ours = case.model.functional(np.eye(7), POINTS, target="function")
    link = case.model.functional(np.eye(7), POINTS, target="function", scale="link")
    at_fit = case.link(POINTS)
    slope = case.family.mean_slope(at_fit)
    expected = case.model.predict(POINTS) + slope * (link.estimate - at_fit.mean)
    assert_allclose(ours.estimate, np.clip(expected, *possible_means(case.family)), rtol=1e-9)
    extra = variances(case.family.influence(at_fit))
    assert_allclose(ours.std_error**2, slope**2 * link.std_error**2 + extra, rtol=1e-6)


# ---------------------------------------------------------------- dropped columns


def table_with_treatment(n=150):
    rng = np.random.default_rng(6)
    table = pd.DataFrame(rng.uniform(-1, 1, (n, 2)), columns=["a", "b"])
    table["treated"] = rng.integers(0, 2, n).astype(float)
    log = np.sin(2 * table.a) + 0.4 * table.treated + 0.5 * rng.standard_normal(n)
    return table, np.exp(log).to_numpy()


@pytest.fixture(scope="module")
def dropping():
    """A model of a logarithm whose map drops the treatment."""
    table, y = table_with_treatment()
    how = {"target_transform": "log", "input_map": np.diag([1.0, 1.0, 0.0]), "alpha": 0.1}
    return plain_ensemble(3, 15, random_state=0, **how).fit(table, y), table


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")
def test_a_dropped_column_has_the_effect_of_an_added_term(dropping):
    model, table = dropping
    change = {"treated": (0.0, 1.0)}
    link = model.compare(table, change, scale="link")
    assert abs(link.estimate[0] - 0.4) < 3 * link.std_error[0]
    ratio = model.compare(table, change, comparison="ratio")
    # All rows have the same ratio, exp(beta), whose only error is that of beta.
    assert_allclose(ratio.estimate, np.exp(link.estimate), rtol=1e-10)
    assert_allclose(ratio.std_error, ratio.estimate * link.std_error, rtol=1e-6)
    difference = model.compare(table, change)
    curve = model.partial_dependence(table, "treated", grid=[0.0, 1.0])
    assert_allclose(difference.estimate[0], np.diff(curve.estimate)[0], rtol=1e-10)
    covariance = np.asarray(curve.attrs["covariance"])
    contrast = np.array([-1.0, 1.0])
    assert_allclose(difference.std_error[0] ** 2, contrast @ covariance @ contrast, rtol=1e-6)
    # exp(beta (x - center)) times the mean without the term.
    mean, center = model.predict(table).mean(), table.treated.mean()
    sides = mean * np.exp(link.estimate[0] * (np.array([0.0, 1.0]) - center))
    assert_allclose(curve.estimate, sides, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")
def test_slopes_by_dropped_columns_stand_beside_others(dropping):
    model, table = dropping
    both = model.slope(table)
    assert_allclose(both.estimate[0], model.slope(table, "a").estimate[0], rtol=1e-12)
    assert_allclose(both.std_error[0], model.slope(table, "a").std_error[0], rtol=1e-12)
    h = 1e-3
    change = {"treated": (table.treated.mean() - h, table.treated.mean() + h)}
    at_mean = table.assign(treated=table.treated.mean())
    secant = model.compare(at_mean, change)
    slope = model.slope(at_mean, "treated")
    assert_allclose(slope.estimate, secant.estimate / (2 * h), rtol=1e-6)
    assert_allclose(slope.std_error, secant.std_error / (2 * h), rtol=1e-3)
    assert_allclose(slope.estimate / model.predict(table).mean(), 0.4, atol=0.3)


def test_a_dropped_column_without_rows_has_no_standard_error(dropping):
    model, table = dropping
    small = plain_ensemble(3, 15).set_params(**model.get_params()).fit(*table_with_treatment())
    small.compress()
    with pytest.warns(DegenerateFitWarning, match="drops 'treated'"):
        frame = small.compare(table, {"treated": (0.0, 1.0), "a": (0.0, 0.5)})
    assert np.isnan(frame.std_error[0])
    assert frame.std_error[1] > 0


# ---------------------------------------------------------------- draws


@kinds
def test_draws_of_means_have_the_moments_of_predict(cases, kind):
    """Where errors are so small that the mean is nearly linear in the prediction."""
    case = cases(kind)
    draws = case.model.simulate(POINTS, 40_000, random_state=0)
    link = case.link(POINTS)
    se = np.sqrt(np.diag(case.model.predict_cov(POINTS, scale="link")))
    assert np.all(np.diff(np.quantile(draws, [0.1, 0.9], axis=0), axis=0) > 0)
    # Medians are those of the prediction, and spreads those of the error on the link scale.
    error = case.family.influence(link) / case.family.mean_slope(link)
    spread = np.sqrt(se**2 + variances(error))
    for q in (0.1, 0.5, 0.8):
        ends = link._replace(mean=link.mean + stats.norm.ppf(q) * spread)
        share = np.mean(draws <= case.family.mean(ends), axis=0)
        assert_allclose(share, q, atol=4 * np.sqrt(q * (1 - q) / 40_000))
    if kind in ("count", "log"):
        # Log-normal moments, which include the convexity.
        C = case.model.predict_cov(POINTS, scale="link") + covariances(error)
        mean = case.model.predict(POINTS) * np.exp(0.5 * np.diag(C))
        assert_allclose(draws.mean(axis=0), mean, rtol=0.01)
        assert_allclose(np.cov(draws.T), np.outer(mean, mean) * np.expm1(C), rtol=0.25, atol=0.03)


def test_draws_stay_in_the_range(cases):
    for kind in TARGETS:
        for of in ("mean", "observation"):
            draws = cases(kind).model.simulate(POINTS, 500, of=of, random_state=0)
            assert draws.shape == (500, 7)
            if kind not in ("yeo-johnson", "transformer"):
                assert np.all(draws >= 0)
    counts = cases("count").model.simulate(POINTS, 500, of="observation", random_state=0)
    assert_array_equal(counts, np.round(counts))
    rain = cases("point mass").model.simulate(POINTS, 500, of="observation", random_state=0)
    assert 0.05 < np.mean(rain == 0) < 0.6


@kinds
def test_draws_of_observations_have_their_distributions(cases, kind):
    model = cases(kind).model
    draws = model.simulate(POINTS, 20_000, of="observation", random_state=0)
    law = model.predict_dist(POINTS)
    for q in (0.1, 0.5, 0.9):
        y = law.ppf(q)
        share = np.mean(draws <= y, axis=0)
        assert_allclose(share, law.cdf(y), atol=0.015)
    if kind == "point mass":
        return  # most of its ranks are ties
    correlation = stats.spearmanr(draws).statistic
    total = model.predict_cov(POINTS, component="total")
    expected = total / np.sqrt(np.outer(np.diag(total), np.diag(total)))
    # Correlations of ranks and of values differ, where both are small.
    assert_allclose(correlation, expected, atol=0.12)


# ---------------------------------------------------------------- thresholds


@kinds
def test_observations_exceed_thresholds_as_their_distribution_does(cases, kind):
    model = cases(kind).model
    thresholds = [-1.0, 0.0, 0.5, 1.0, 3.0]
    ours = model.exceedance(POINTS, thresholds)
    law = model.predict_dist(POINTS)
    for j, c in enumerate(thresholds):
        assert_allclose(ours[:, j], 1 - law.cdf(c), atol=1e-12)
    if kind == "count":
        more = model.exceedance(POINTS, [2.0, 2.5])
        assert_allclose(more[:, 0], more[:, 1], atol=1e-12)  # strictly more than two is three
        assert_allclose(more[:, 0], 1 - law.cdf(2), atol=1e-12)
    if kind == "point mass":
        assert_allclose(ours[:, 1], 1 - law.pmf(0.0), atol=1e-12)


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.UlmusWarning")
@pytest.mark.parametrize("target", ["expectation", "function"])
@kinds
def test_confidence_of_exceeding_agrees_with_confidence_intervals(cases, kind, target):
    model = cases(kind).model
    bounds = model.predict_interval(POINTS, 0.9, kind="confidence", target=target)
    for i, (low, high) in enumerate(bounds):
        found = model.exceedance(POINTS[[i]], [low, high], of="mean", target=target)
        assert_allclose(found[0], [0.95, 0.05], atol=2e-6)


def test_impossible_thresholds_have_certain_answers(cases):
    for kind in ("log", "count", "point mass", "logit", "sqrt"):
        ours = cases(kind).model.exceedance(POINTS, [-3.0, 0.0], of="mean")
        assert_array_equal(ours, np.ones((7, 2)))
    assert_array_equal(cases("logit").model.exceedance(POINTS, [1.0, 7.0], of="mean"), 0.0)
    assert_allclose(cases("log").model.exceedance(POINTS, 1e12, of="mean"), 0.0, atol=1e-12)


@kinds
def test_means_are_inverted(cases, kind):
    case = cases(kind)
    link = case.link(POINTS)
    goals = np.quantile(case.model.predict(X), [0.2, 0.5, 0.9])
    found = predictions_of_means(case.family, link, goals)
    for j, goal in enumerate(goals):
        at = link._replace(mean=found[:, j])
        assert_allclose(case.family.mean(at), goal, rtol=1e-9)


# ---------------------------------------------------------------- new measurements


@kinds
def test_variances_of_new_measurements_are_those_of_means(cases, kind):
    case = cases(kind)
    frame = case.model.next_points(POINTS, targets=X[:9], n=2)
    before = case.model.predict_var(X[:9], "model").sum()
    assert_allclose(frame.attrs["before"], before, rtol=1e-8)
    assert np.all(np.diff([before, *frame.variance]) <= 1e-9 * before)


def test_the_best_measurement_has_the_least_sum_of_variances_of_means(cases):
    case = cases("log")
    frame = case.model.next_points(X, n=1)
    link, plain = case.link(X), case.fit.on_link_scale
    square, extra = case.family.mean_slope(link) ** 2, variances(case.family.influence(link))
    after = [next_points(plain, x[None], X, 1).variance[0, :, 0] for x in X]
    totals = np.sum(after * square, axis=1)
    assert frame.row[0] == np.argmin(totals)
    assert_allclose(frame.variance[0], np.min(totals) + np.sum(extra), rtol=1e-8)
    # Errors of large means are large; on the link scale, other rows are better.
    assert frame.row[0] != next_points(plain, X, X, 1).rows[0]


def test_new_counts_have_the_weights_of_their_means():
    """By refits to the same working responses and weights."""
    held = {"noise_variance": 1.0, "standardize": False, "weight_scale": 2.0, "alpha": 0.1}
    weight = np.exp(1 + ETA)
    z = np.log(weight) + (COUNTS - weight) / weight

    def fitted(points, values, weights):
        model = plain_ensemble(4, 6, random_state=0, **held)
        return model.fit(points, values, sample_weight=weights)

    model, own = fitted(X, z, weight), np.array([0.2, 1.0, 5.0, 2.0, 0.5, 3.0, 8.0])
    for i, w in enumerate(own):
        x = POINTS[[i]]
        ours = next_points(model.fitted_, x, X[:9], 1, weight=own[[i]])
        measured = np.append(z, model.predict(x))
        refit = fitted(np.vstack([X, x]), measured, np.append(weight, w))
        expected = refit.predict_var(X[:9], "model")
        assert_allclose(ours.variance[0, :, 0], expected, rtol=1e-6)


def test_counts_are_measured_where_they_are_many(cases):
    """A large count has a small relative error."""
    model = cases("count").model
    frame = model.next_points(np.array([[-0.8, 0.5], [0.8, 0.5]]), n=1)
    means = model.predict(np.array([[-0.8, 0.5], [0.8, 0.5]]))
    assert frame.row[0] == int(np.argmax(means))


# ---------------------------------------------------------------- sizes and edges


def test_long_tables_give_the_same_results_in_blocks(cases):
    for kind in ("log", "count"):
        model = cases(kind).model
        long = np.tile(X, (60, 1))
        ours, short = model.average(long), model.average(X)
        assert_allclose(ours[NUMBERS], short[NUMBERS], rtol=1e-9)
        ours, short = model.slope(long), model.slope(X)
        assert_allclose(ours[NUMBERS[:4]], short[NUMBERS[:4]], rtol=1e-9)


def test_many_functionals_have_errors_of_the_family_in_portions(cases, monkeypatch):
    model = cases("log").model
    whole = model.average(X, by="row")
    monkeypatch.setattr("ulmus.effects.linearisation.MOST_FUNCTIONALS", 50)
    monkeypatch.setattr("ulmus.effects.inference.DEFAULT_JOINT", 50)
    parts = model.average(X, by="row")
    assert "covariance" not in parts.attrs
    assert_allclose(parts[NUMBERS], whole[NUMBERS], rtol=1e-10)


def test_one_network_and_a_compressed_model():
    model = plain_member(12, target_transform="log", alpha=0.1, random_state=0).fit(X, POSITIVE)
    frames = [EFFECTS[effect](model) for effect in ("average", "ratio", "slopes")]
    model.compress()
    for effect, frame in zip(("average", "ratio", "slopes"), frames, strict=True):
        assert_allclose(EFFECTS[effect](model)[NUMBERS], frame[NUMBERS], rtol=1e-8)


def test_sparse_points():
    model = plain_ensemble(3, 15, target_transform="log", standardize=False, **LAYER)
    dense = model.fit(X, POSITIVE).slope(POINTS)
    ours = model.fit(csr_array(X), POSITIVE).slope(csr_array(POINTS))
    assert_allclose(ours[NUMBERS], dense[NUMBERS], rtol=1e-6)


def test_directional_derivatives_are_exact_for_quartics(cases):
    link = cases("log").link(POINTS)
    mean, sd = np.linspace(-1, 1, 7), np.linspace(0.5, -0.5, 7)

    def quartic(one):
        return one.mean**4 + one.noise_sd**3 * one.mean

    ours = directional(quartic, link, mean, sd, np.full(7, 0.1))
    expected = (4 * link.mean**3 + link.noise_sd**3) * mean
    expected += 3 * link.noise_sd**2 * link.mean * sd
    assert_allclose(ours, expected, rtol=1e-10)


def test_a_sum_without_weights_is_zero(cases):
    for kind in ("log", "count"):
        frame = cases(kind).model.functional(np.zeros((1, 7)), POINTS)
        assert_array_equal(frame[["estimate", "std_error"]], 0.0)
