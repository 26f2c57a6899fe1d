"""Prediction intervals, quantiles and distributions: brute force, MAPIE, shapes, messages."""

import sys

import numpy as np
import oracles
import pytest
from interval_methods import LEVELS, PREDICTION_METHODS, every_interval
from models import member_or_ensemble, plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from parametrisations import alphas, intercepts, members, noises, weightings
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut

from ulmus.core.arrays import backend
from ulmus.core.query import leave_out as jackknife
from ulmus.exceptions import DegenerateFitWarning
from ulmus.intervals import conformal_ranks, prediction
from ulmus.intervals.bounds import order_quantiles

# ---------------------------------------------------------------- jackknife by brute force


@weightings
@intercepts
@alphas
@members
def test_jackknife_bounds_are_those_of_n_refits(fit_with_oracle, M, alpha, intercept, weighted):
    model, (*args, intercept, w), X = fit_with_oracle(
        M, alpha=alpha, fit_intercept=intercept, weighted=weighted
    )
    for level in LEVELS:
        miscoverage = 1 - level
        expected = oracles.jackknife_plus_bounds(*args, miscoverage, intercept, w)
        ours = model.predict_interval(X, level, method="jackknife+")
        assert_allclose(ours, expected, rtol=0, atol=1e-8)


@weightings
def test_chunks_of_rows_and_points_change_nothing(fit_with_oracle, monkeypatch, weighted):
    y = np.random.default_rng(0).standard_normal((150, 2))
    monkeypatch.setattr(backend, "BLOCK_ELEMENTS", 1)  # several blocks of rows
    model, _, X = fit_with_oracle(n=150, y=y, weighted=weighted, alpha=0.3)

    def intervals():
        intervals = [model.predict_interval(X, LEVELS, method=m) for m in PREDICTION_METHODS]
        return [*intervals, model.predict_quantiles(X, LEVELS)]

    whole = intervals()
    monkeypatch.setattr(jackknife, "POINT_ELEMENTS", 150 * 2 * 3)  # three points at a time
    for ours, expected in zip(intervals(), whole, strict=True):
        assert_allclose(ours, expected, rtol=1e-12)


def scaled_sample(model, H, h, y, alpha, intercept, w):
    """Leave-one-out predictions f_-i(x), and a(x) L_i / a_i, by n refits, each (rows, p)."""
    f, errors = [], []
    # A new observation varies by the noise and by what bias leaves in the residuals.
    sigma2 = model.noise_variance_
    residual2 = max(sigma2, oracles.noise_variance(H, y, alpha, intercept, w))
    # Its weight is the mean of the rows that count.
    mean_weight = 1 if w is None else np.mean(w[w > 0])
    norm = np.mean(oracles.expected_errors(H, h, alpha, intercept, w), axis=0)
    a = np.sqrt(residual2 / mean_weight + sigma2 * norm)
    for i in np.flatnonzero(oracles.root_weights(len(y), w)):
        at = [np.vstack([h[m], H[m][i : i + 1]]) for m in range(len(H))]
        both = np.mean(oracles.predictions_without(i, H, at, y, alpha, intercept, w), axis=0)
        rest = [np.delete(H_m, i, axis=0) for H_m in H]
        w_rest = None if w is None else np.delete(w, i)
        here = [H_m[i : i + 1] for H_m in H]
        norm2 = np.mean(oracles.expected_errors(rest, here, alpha, intercept, w_rest))
        a_i = np.sqrt(residual2 / (1 if w is None else w[i]) + sigma2 * norm2)
        f.append(both[:-1])
        errors.append((y[i] - both[-1]) / a_i * a)
    return np.array(f), np.array(errors)


@weightings
@intercepts
@members
def test_automatic_intervals_scale_each_residual(fit_with_oracle, M, intercept, weighted):
    model, args, X = fit_with_oracle(M, alpha=0.3, fit_intercept=intercept, weighted=weighted)
    f, error = scaled_sample(model, *args)
    k = oracles.upper_rank(0.2, len(f))
    expected = [np.sort(f - abs(error), axis=0)[len(f) - k], np.sort(f + abs(error), axis=0)[k - 1]]
    assert_allclose(model.predict_interval(X, 0.8), np.transpose(expected), rtol=0, atol=1e-8)


def test_unequal_sides_leave_half_the_error_on_each(fit_with_oracle):
    y = np.random.default_rng(0).exponential(size=150)
    model, args, X = fit_with_oracle(n=150, y=y, alpha=0.3)
    sample = np.sort(np.sum(scaled_sample(model, *args), axis=0), axis=0)
    k = oracles.upper_rank(0.1, len(sample))
    expected = np.transpose([sample[len(sample) - k], sample[k - 1]])
    assert_allclose(model.predict_interval(X, 0.8), expected, rtol=0, atol=1e-8)


@weightings
def test_quantiles_are_order_statistics_of_scaled_residuals(fit_with_oracle, weighted):
    # 99 rows: the level k/100 is the k-th smallest value, also where 100 * level is not k.
    model, args, X = fit_with_oracle(n=111 if weighted else 99, weighted=weighted, alpha=0.3)
    sample = np.sort(np.sum(scaled_sample(model, *args), axis=0), axis=0)
    ranks = np.arange(1, len(sample) + 1)
    ours = model.predict_quantiles(X, ranks / (len(sample) + 1))
    assert_allclose(ours, sample.T, rtol=0, atol=1e-8)


def test_quantiles_between_ranks_are_linear_and_both_tails_alike(fit_with_oracle):
    model, args, X = fit_with_oracle(n=20, alpha=0.3)
    sample = np.sort(np.sum(scaled_sample(model, *args), axis=0), axis=0)
    ours = model.predict_quantiles(X, [0.06, 0.94])
    # Locations 1.26 and 19.74 among 20 values, counted from one.
    expected = [0.74 * sample[0] + 0.26 * sample[1], 0.26 * sample[18] + 0.74 * sample[19]]
    assert_allclose(ours, np.transpose(expected), rtol=0, atol=1e-8)


def test_quantiles_of_values_are_those_of_a_loop_and_of_the_mirrored_values():
    rng = np.random.default_rng(0)
    levels = [0.001, 0.05, 0.13, 0.5, 0.87, 0.95, 0.999]
    for n in (1, 2, 20, 101):
        values = rng.exponential(size=(n, 3))
        expected = [[oracles.plotting_quantile(v, q) for v in values.T] for q in levels]
        assert_allclose(order_quantiles(values, levels), expected, rtol=1e-12)
        mirrored = order_quantiles(-values, [1 - q for q in levels])
        assert_allclose(order_quantiles(values, levels), -mirrored, rtol=1e-9)


# ---------------------------------------------------------------- MAPIE


class RidgeMembers(RegressorMixin, BaseEstimator):
    """Mean of ridge regressions on M groups of columns: an ensemble of fixed hidden weights."""

    def __init__(self, M, alpha, fit_intercept):
        self.M = M
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def fit(self, X, y):
        ridge = {"alpha": self.alpha, "fit_intercept": self.fit_intercept, "solver": "svd"}
        self.members_ = [Ridge(**ridge).fit(part, y) for part in np.hsplit(X, self.M)]
        return self

    def predict(self, X):
        parts = zip(self.members_, np.hsplit(X, self.M), strict=True)
        return np.mean([member.predict(part) for member, part in parts], axis=0)


@pytest.mark.slow
@intercepts
@alphas
@members
def test_jackknife_bounds_are_those_of_mapie(fit_with_oracle, M, alpha, intercept):
    regression = pytest.importorskip("mapie.regression")
    model, (H, h, y, *_), X = fit_with_oracle(M, alpha=alpha, fit_intercept=intercept)
    mapie = regression.CrossConformalRegressor(
        RidgeMembers(M, alpha, intercept), LEVELS, method="plus", cv=LeaveOneOut()
    )
    # The point prediction is that of the fit to all rows, not the mean over refits.
    mean, expected = mapie.fit_conformalize(np.hstack(H), y).predict_interval(
        np.hstack(h), aggregate_point_predictions=None
    )
    assert_allclose(model.predict(X), mean, rtol=0, atol=1e-8)
    ours = model.predict_interval(X, LEVELS, method="jackknife+")
    assert_allclose(ours, expected, rtol=0, atol=1e-8)


# ---------------------------------------------------------------- shapes and order


@noises
@pytest.mark.parametrize("K", [None, 1, 3])
def test_shapes(fit_with_oracle, K, noise):
    y = None if K is None else np.random.default_rng(0).standard_normal((40, K))
    model, _, X = fit_with_oracle(y=y, noise=noise)
    outputs = () if K is None else (K,)
    for name, intervals in every_interval(model, X, 0.8).items():
        assert intervals.shape == (len(X), *outputs, 2), name
    for name, intervals in every_interval(model, X, LEVELS).items():
        assert intervals.shape == (len(X), *outputs, 2, 3), name
    assert model.predict_quantiles(X, LEVELS).shape == (len(X), *outputs, 3)
    assert model.predict_quantiles(X, 0.5).shape == (len(X), *outputs, 1)


@noises
@members
def test_levels_are_nested_and_bounds_in_order(fit_with_oracle, M, noise):
    model, _, X = fit_with_oracle(M, noise=noise)
    levels = [0.9, 0.5, 0.8]  # not sorted
    alone = [every_interval(model, X, level) for level in levels]
    for name, intervals in every_interval(model, X, levels).items():
        low, high = intervals[:, 0], intervals[:, 1]
        assert np.all(low <= high), name
        assert np.all(np.diff(low[:, [1, 2, 0]], axis=1) <= 0), name
        assert np.all(np.diff(high[:, [1, 2, 0]], axis=1) >= 0), name
        for j in range(3):
            assert_allclose(intervals[..., j], alone[j][name], rtol=1e-12, err_msg=name)


@noises
def test_single_precision_in_and_out(fit_with_oracle, noise):
    model, _, X = fit_with_oracle(noise=noise)
    single = X.astype(np.float32)
    expected = every_interval(model, single.astype(float), LEVELS)
    for name, intervals in every_interval(model, single, LEVELS).items():
        assert intervals.dtype == np.float32, name
        assert_allclose(intervals, expected[name], rtol=1e-5, atol=1e-5, err_msg=name)
    assert model.predict_quantiles(single, LEVELS).dtype == np.float32


def same_intervals(joint, alone, X, outputs):
    """Whether a fit to several outputs has the intervals of fits to one each."""
    for name, intervals in every_interval(joint, X, LEVELS).items():
        for k, single in zip(outputs, alone, strict=True):
            expected = every_interval(single, X, LEVELS)[name]
            assert_allclose(intervals[:, k], expected, rtol=1e-6, atol=1e-9, err_msg=name)


@noises
def test_equal_outputs_in_other_units_have_equal_intervals(fit_with_oracle, make_table, noise):
    # All choices (alpha of the wide networks, of the noise) are made for all outputs at once.
    y = make_table(60).y
    settings = {"n": 60, "noise": noise, "alpha": 0.3}
    joint, _, X = fit_with_oracle(y=np.column_stack([y, 3 * y - 1]), **settings)
    alone = [fit_with_oracle(y=a, **settings)[0] for a in (y, 3 * y - 1)]
    same_intervals(joint, alone, X, [0, 1])


def test_outputs_do_not_change_one_another(fit_with_oracle, make_table):
    # One output is skewed, and only that one gets unequal sides.
    rng = np.random.default_rng(0)
    columns = [make_table(150).y, rng.exponential(size=150), rng.standard_normal(150)]
    settings = {"n": 150, "alpha": 0.3, "noise_variance": "residual"}
    joint, _, X = fit_with_oracle(y=np.column_stack(columns), **settings)
    for method in PREDICTION_METHODS:
        ours = joint.predict_interval(X, LEVELS, method=method)
        for k, y in enumerate(columns):
            expected = fit_with_oracle(y=y, **settings)[0].predict_interval(
                X, LEVELS, method=method
            )
            assert_allclose(ours[:, k], expected, rtol=0, atol=1e-8, err_msg=f"{method}, {k}")


# ---------------------------------------------------------------- quantiles, distribution, table


@noises
@members
def test_quantiles_never_cross_and_the_median_is_near_the_mean(fit_with_oracle, M, noise):
    model, _, X = fit_with_oracle(M, n=60, noise=noise)
    quantiles = model.predict_quantiles(X, [0.02, 0.1, 0.4, 0.5, 0.6, 0.9, 0.98])
    assert np.all(np.diff(quantiles, axis=1) >= 0)
    mean, sd = model.predict(X, return_std=True)
    assert np.all(np.abs(quantiles[:, 3] - mean) < 0.5 * sd)


@noises
def test_the_distribution_of_normal_residuals_is_students(fit_with_oracle, noise):
    model, _, X = fit_with_oracle(noise=noise)
    mean, sd = model.predict(X, return_std=True)
    distribution = model.predict_dist(X)
    assert_allclose(distribution.mean(), mean)
    # The scale is the standard deviation, which is uncertain itself.
    assert_allclose(distribution.kwds["scale"], sd)
    assert np.all((distribution.std() > sd) & (distribution.std() < 1.05 * sd))
    assert_allclose(distribution.cdf(mean), 0.5)
    assert distribution.rvs(size=(5, len(X)), random_state=0).shape == (5, len(X))
    bounds = np.column_stack([distribution.ppf(0.05), distribution.ppf(0.95)])
    assert_allclose(model.predict_interval(X, 0.9, method="gaussian"), bounds, rtol=1e-12)


def test_the_gaussian_quantiles_of_a_compressed_model(fit_with_oracle):
    model, _, X = fit_with_oracle()
    expected = [model.predict_dist(X).ppf(level) for level in LEVELS]
    assert_allclose(model.compress().predict_quantiles(X, LEVELS), np.transpose(expected))


COLUMNS = ["estimate", "std_error", "conf_low", "conf_high", "pred_low", "pred_high"]


def assert_summary(frame, model, X, level):
    """The columns contain the numbers of the other methods."""
    confidence = model.predict_interval(X, level, kind="confidence")
    prediction = model.predict_interval(X, level)
    se = np.sqrt(model.predict_var(X, component="model"))
    expected = [model.predict(X), se, *confidence.T, *prediction.T]
    for name, column in zip(COLUMNS, expected, strict=True):
        assert_array_equal(frame[name], column, err_msg=name)


@noises
def test_summary_frame(fit_with_oracle, noise):
    pd = pytest.importorskip("pandas")
    model, _, X = fit_with_oracle(noise=noise)
    frame = model.summary_frame(X, 0.8)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == COLUMNS
    assert_summary(frame, model, X, 0.8)


def test_summary_frame_keeps_the_index(make_table):
    pd = pytest.importorskip("pandas")
    data = make_table(40)
    X = pd.DataFrame(data.X, columns=["a", "b", "c"])
    X_new = pd.DataFrame(data.X_new, columns=["a", "b", "c"], index=list("tuvwxyz"))
    model = member_or_ensemble().fit(X, data.y)
    frame = model.summary_frame(X_new)
    assert list(frame.index) == list("tuvwxyz")
    assert_summary(frame, model, X_new, 0.95)


def test_summary_frame_of_a_list_of_rows(fit_with_oracle):
    pytest.importorskip("pandas")
    model, _, X = fit_with_oracle()
    assert_summary(model.summary_frame(X.tolist(), 0.8), model, X, 0.8)


def test_summary_frame_of_a_single_output_with_two_axes(make_table):
    pd = pytest.importorskip("pandas")
    data = make_table(40)
    column, expected = (
        member_or_ensemble().fit(data.X, y).summary_frame(data.X_new)
        for y in (data.y[:, None], data.y)
    )
    pd.testing.assert_frame_equal(column, expected)


def test_summary_without_pandas_is_a_record_array(fit_with_oracle, monkeypatch):
    model, _, X = fit_with_oracle()
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = model.summary_frame(X, 0.8)
    assert isinstance(table, np.recarray)
    assert list(table.dtype.names) == COLUMNS
    assert_summary(table, model, X, 0.8)


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"confidence_level": 95},
            "confidence_level must lie between 0 and 1.* 95; write 0.95 for 95 %",
        ),
        ({"confidence_level": [0.5, 1.0]}, "confidence_level must lie between 0 and 1"),
        ({"confidence_level": []}, "confidence_level must lie between 0 and 1"),
        ({"confidence_level": "high"}, "confidence_level must lie between 0 and 1.*'high'"),
        ({"kind": "credible"}, "kind must be one of 'prediction', 'confidence', got 'credible'"),
        ({"method": "t"}, "method must be one of 'auto', 'jackknife.*got 't'"),
        ({"kind": "confidence", "method": "jackknife+"}, "method must be one of 'auto', 't'"),
        ({"kind": "confidence", "target": "truth"}, "target must be one of 'function'.*'truth'"),
        (
            {"confidence_level": 0.99, "method": "jackknife+"},
            "0.99 requires at least 99 training rows.* got 40.*'gaussian'",
        ),
    ],
)
def test_bad_requests_name_the_parameter(fit_with_oracle, arguments, message):
    model, _, X = fit_with_oracle()
    with pytest.raises(ValueError, match=message):
        model.predict_interval(X, **arguments)


def test_the_rows_a_level_needs():
    for level, two_sided in [(0.9, False), (0.9, True), (0.95, False), (0.99, True), (0.7, False)]:
        with pytest.raises(ValueError, match="at least") as error:
            conformal_ranks(2, level, two_sided=two_sided)
        needed = int(str(error.value).split("at least ")[1].split()[0])
        assert conformal_ranks(needed, level, two_sided=two_sided) == (0, needed - 1)
        with pytest.raises(ValueError, match=f"at least {needed} .*got {needed - 1}"):
            conformal_ranks(needed - 1, level, two_sided=two_sided)


def test_rows_of_weight_zero_do_not_count_for_the_level(make_table):
    data = make_table(40)
    model = member_or_ensemble().fit(data.X, data.y, sample_weight=np.arange(40) >= 25)
    with pytest.raises(ValueError, match=r"at least 19 training rows.*got 15"):
        model.predict_interval(data.X_new, 0.95, method="jackknife+")


def test_levels_beyond_the_rows_are_gaussian_and_warn(fit_with_oracle):
    model, _, X = fit_with_oracle(n=40)
    expected = [
        model.predict_interval(X, 0.8),
        model.predict_interval(X, 0.99, method="gaussian"),
        model.predict_interval(X, 0.9),
    ]
    with pytest.warns(DegenerateFitWarning, match="40 training rows are too few.*0.99"):
        ours = model.predict_interval(X, [0.8, 0.99, 0.9])
    assert_allclose(ours, np.stack(expected, axis=2), rtol=1e-12)


def test_a_table_of_fifteen_rows_has_a_summary(fit_with_oracle):
    pytest.importorskip("pandas")
    model, _, X = fit_with_oracle(n=15)
    with pytest.warns(DegenerateFitWarning, match="15 training rows are too few"):
        frame = model.summary_frame(X)
    assert np.all(np.isfinite(frame))


def test_quantiles_beyond_the_rows_warn(fit_with_oracle):
    model, _, X = fit_with_oracle(n=40)
    with pytest.warns(DegenerateFitWarning, match=r"\[0.001, 0.999\].*40 training rows"):
        ours = model.predict_quantiles(X, [0.001, 0.5, 0.999])
    outermost = model.predict_quantiles(X, [1 / 41, 0.5, 40 / 41])
    assert_array_equal(ours, outermost)


@pytest.mark.parametrize("quantiles", [[0.5, 1.5], 50, []])
def test_bad_quantiles(fit_with_oracle, quantiles):
    model, _, X = fit_with_oracle()
    with pytest.raises(ValueError, match="quantiles must lie between 0 and 1"):
        model.predict_quantiles(X, quantiles)


def test_summary_frame_refuses_several_outputs_and_levels(fit_with_oracle):
    model, _, X = fit_with_oracle(y=np.random.default_rng(0).standard_normal((40, 2)))
    with pytest.raises(ValueError, match=r"single output.*use predict_interval"):
        model.summary_frame(X)
    with pytest.raises(ValueError, match="confidence_level must lie between 0 and 1"):
        fit_with_oracle()[0].summary_frame(X, [0.5, 0.9])


@pytest.mark.parametrize(
    "method",
    [
        lambda model, X: model.predict_interval(X),
        lambda model, X: model.predict_quantiles(X, 0.5),
        lambda model, X: model.predict_dist(X),
        lambda model, X: model.summary_frame(X),
        lambda model, X: model.undersmoothing_gap_,
    ],
    ids=[
        "predict_interval",
        "predict_quantiles",
        "predict_dist",
        "summary_frame",
        "undersmoothing_gap_",
    ],
)
def test_methods_require_a_fit(method):
    with pytest.raises(NotFittedError):
        method(plain_ensemble(), np.ones((3, 2)))


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.parametrize("skewed", [False, True])
def test_shifts_of_single_rows_matter_little_where_they_are_neglected(monkeypatch, skewed):
    """At 5 rows for each degree of freedom, inside the range of the rows and outside.

    Round-off can move a bound at the level .99 to the next of 1000 residuals, which are far apart
    in the tail of skewed noise; hence a wider band there.
    """
    rng = np.random.default_rng(5)
    X = rng.standard_normal((1000, 4))
    noise = rng.exponential(size=1000) if skewed else rng.standard_normal(1000)
    y = np.sin(3 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2]) + 0.3 * noise
    model = plain_ensemble(n_neurons=250, alpha=1e-3, n_estimators=4).fit(X, y)
    assert 5 < len(y) / model.dof_ < 9
    points = np.concatenate([rng.standard_normal((200, 4)), 2 * rng.standard_normal((50, 4))])
    levels = [0.5, 0.9, 0.99]
    neglected = model.predict_interval(points, levels)
    monkeypatch.setattr(prediction, "MANY_ROWS", 10_000)
    exact = model.predict_interval(points, levels)
    width = np.mean(exact[:, 1] - exact[:, 0], axis=0)
    change = np.sqrt(np.mean((neglected - exact) ** 2, axis=(0, 1)))
    assert np.all(change < [0.02, 0.02, 0.03] * width)
    assert np.any(change > 0)
