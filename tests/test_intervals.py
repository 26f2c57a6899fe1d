"""Intervals, quantiles and distributions: brute force, MAPIE, shapes, and what they cover."""

import sys

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.core import backend, jackknife
from ulmus.core.forms import member_groups
from ulmus.core.wide import WIDE_GRID, undersmoothing_alpha, wide_path
from ulmus.exceptions import BiasWarning
from ulmus.intervals import conformal_ranks, is_skewed, satterthwaite_dof

LEVELS = [0.5, 0.8, 0.9]
PREDICTION_METHODS = ["auto", "jackknife+", "jackknife", "gaussian"]
NOISES = ["homoskedastic", "heteroskedastic"]
TARGETS = ["function", "expectation"]

members = pytest.mark.parametrize("M", [1, 4])
alphas = pytest.mark.parametrize("alpha", [0.0, 0.3])
intercepts = pytest.mark.parametrize("intercept", [False, True])
weightings = pytest.mark.parametrize("weighted", [False, True])
noises = pytest.mark.parametrize("noise", NOISES)
targets = pytest.mark.parametrize("target", TARGETS)


def ensemble(M=4, N=6, **parameters):
    """An unfitted ensemble, or one network for M = 1."""
    parameters = {"weight_scale": 2.0, "random_state": 0, **parameters}
    return ELMRegressor(N, **parameters) if M == 1 else ELMEnsembleRegressor(M, N, **parameters)


@pytest.fixture
def fitted(make_table, hidden):
    """Function that fits, and returns the model with the oracles' arguments and the points."""

    def fitted(M=4, N=6, *, n=40, weighted=False, y=None, **parameters):
        data = make_table(n)
        w = np.where(np.arange(n) % 9 == 4, 0, data.w) if weighted else None  # some rows dropped
        model = ensemble(M, N, **parameters).fit(data.X, data.y if y is None else y, w)
        H, h = (hidden(model, X, data.X, w) for X in (data.X, data.X_new))
        arguments = (data.y if y is None else y, model.alpha_, model.fit_intercept, w)
        return model, (H, h, *arguments), data.X_new

    return fitted


# ---------------------------------------------------------------- jackknife by brute force


@weightings
@intercepts
@alphas
@members
def test_jackknife_bounds_are_those_of_n_refits(fitted, M, alpha, intercept, weighted):
    model, (*args, intercept, w), X = fitted(
        M, alpha=alpha, fit_intercept=intercept, weighted=weighted
    )
    for level in LEVELS:
        miscoverage = 1 - level
        expected = oracles.jackknife_plus_bounds(*args, miscoverage, intercept, w)
        ours = model.predict_interval(X, level, method="jackknife+")
        assert_allclose(ours, expected, rtol=0, atol=1e-8)
        expected = oracles.jackknife_bounds(*args, miscoverage, intercept, w)
        ours = model.predict_interval(X, level, method="jackknife")
        assert_allclose(ours, expected, rtol=0, atol=1e-8)


@weightings
@pytest.mark.parametrize("rows", ["kept", "regenerated"])
def test_chunks_of_rows_and_points_change_nothing(fitted, monkeypatch, rows, weighted):
    y = np.random.default_rng(0).standard_normal((150, 2))
    monkeypatch.setattr(backend, "BLOCK_ELEMENTS", 1)  # several blocks of rows
    model, _, X = fitted(n=150, y=y, weighted=weighted, alpha=0.3)

    def answers():
        intervals = [model.predict_interval(X, LEVELS, method=m) for m in PREDICTION_METHODS]
        return [*intervals, model.predict_quantiles(X, LEVELS)]

    whole = answers()
    monkeypatch.setattr(jackknife, "POINT_ELEMENTS", 150 * 2 * 3)  # three points at a time
    if rows == "regenerated":
        monkeypatch.setattr(jackknife, "ROW_ELEMENTS", 0)
    for ours, expected in zip(answers(), whole, strict=True):
        assert_allclose(ours, expected, rtol=1e-12)


def scaled_sample(H, h, y, alpha, intercept, w):
    """f_-i(x) and a(x) L_i / a_i of STATISTICS C by n refits, each (rows, p)."""
    f, errors = [], []
    a = np.sqrt(1 + np.mean(squared_rows(H, h, alpha, intercept, w), axis=0))
    for i in np.flatnonzero(oracles.root_weights(len(y), w)):
        at = [np.vstack([h[m], H[m][i : i + 1]]) for m in range(len(H))]
        both = np.mean(oracles.predictions_without(i, H, at, y, alpha, intercept, w), axis=0)
        rest = [np.delete(H_m, i, axis=0) for H_m in H]
        w_rest = None if w is None else np.delete(w, i)
        here = [H_m[i : i + 1] for H_m in H]
        norm2 = np.mean(squared_rows(rest, here, alpha, intercept, w_rest))
        a_i = np.sqrt((1 if w is None else 1 / w[i]) + norm2)
        f.append(both[:-1])
        errors.append((y[i] - both[-1]) / a_i * a)
    return np.array(f), np.array(errors)


def squared_rows(H, h, alpha, intercept, w):
    """z_m(x)'z_m(x), shape (M, p)."""
    return np.sum(oracles.smoother_rows(H, h, alpha, intercept, w, weighted=True) ** 2, axis=2)


@weightings
@intercepts
@members
def test_automatic_intervals_scale_each_residual(fitted, M, intercept, weighted):
    model, args, X = fitted(M, alpha=0.3, fit_intercept=intercept, weighted=weighted)
    f, error = scaled_sample(*args)
    k = oracles.upper_rank(0.2, len(f))
    expected = [np.sort(f - abs(error), axis=0)[len(f) - k], np.sort(f + abs(error), axis=0)[k - 1]]
    assert_allclose(model.predict_interval(X, 0.8), np.transpose(expected), rtol=0, atol=1e-8)


def test_unequal_sides_leave_half_the_error_on_each(fitted):
    y = np.random.default_rng(0).exponential(size=150)
    model, args, X = fitted(n=150, y=y, alpha=0.3)
    sample = np.sort(np.sum(scaled_sample(*args), axis=0), axis=0)
    k = oracles.upper_rank(0.1, len(sample))
    expected = np.transpose([sample[len(sample) - k], sample[k - 1]])
    assert_allclose(model.predict_interval(X, 0.8), expected, rtol=0, atol=1e-8)


@weightings
def test_quantiles_are_order_statistics_of_scaled_residuals(fitted, weighted):
    # 99 rows: the level k/100 is the k-th smallest value, also where 100 * level is not k.
    model, args, X = fitted(n=111 if weighted else 99, weighted=weighted, alpha=0.3)
    sample = np.sort(np.sum(scaled_sample(*args), axis=0), axis=0)
    ranks = np.arange(1, len(sample) + 1)
    ours = model.predict_quantiles(X, ranks / (len(sample) + 1))
    assert_allclose(ours, sample.T, rtol=0, atol=1e-8)


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


@intercepts
@alphas
@members
@pytest.mark.parametrize(("method", "name"), [("jackknife+", "plus"), ("jackknife", "base")])
def test_jackknife_bounds_are_those_of_mapie(fitted, M, alpha, intercept, method, name):
    regression = pytest.importorskip("mapie.regression")
    model, (H, h, y, *_), X = fitted(M, alpha=alpha, fit_intercept=intercept)
    mapie = regression.CrossConformalRegressor(
        RidgeMembers(M, alpha, intercept), LEVELS, method=name, cv=LeaveOneOut()
    )
    # The point prediction is that of the fit to all rows, not the mean over refits.
    mean, expected = mapie.fit_conformalize(np.hstack(H), y).predict_interval(
        np.hstack(h), aggregate_point_predictions=None
    )
    assert_allclose(model.predict(X), mean, rtol=0, atol=1e-8)
    ours = model.predict_interval(X, LEVELS, method=method)
    assert_allclose(ours, expected, rtol=0, atol=1e-8)


# ---------------------------------------------------------------- shapes and order


def every_interval(model, X, levels):
    """Intervals of each kind and method, by name."""
    out = {m: model.predict_interval(X, levels, method=m) for m in PREDICTION_METHODS}
    for target in TARGETS:
        for method in ("t", "normal"):
            out[f"{target}, {method}"] = model.predict_interval(
                X, levels, kind="confidence", target=target, method=method
            )
    return out


@noises
@pytest.mark.parametrize("K", [None, 1, 3])
def test_shapes(fitted, K, noise):
    y = None if K is None else np.random.default_rng(0).standard_normal((40, K))
    model, _, X = fitted(y=y, noise=noise)
    outputs = () if K is None else (K,)
    for name, intervals in every_interval(model, X, 0.8).items():
        assert intervals.shape == (len(X), *outputs, 2), name
    for name, intervals in every_interval(model, X, LEVELS).items():
        assert intervals.shape == (len(X), *outputs, 2, 3), name
    assert model.predict_quantiles(X, LEVELS).shape == (len(X), *outputs, 3)
    assert model.predict_quantiles(X, 0.5).shape == (len(X), *outputs, 1)


@noises
@members
def test_levels_are_nested_and_bounds_in_order(fitted, M, noise):
    model, _, X = fitted(M, noise=noise)
    levels = [0.9, 0.5, 0.8]  # in the order asked for
    alone = [every_interval(model, X, level) for level in levels]
    for name, intervals in every_interval(model, X, levels).items():
        low, high = intervals[:, 0], intervals[:, 1]
        assert np.all(low <= high), name
        assert np.all(np.diff(low[:, [1, 2, 0]], axis=1) <= 0), name
        assert np.all(np.diff(high[:, [1, 2, 0]], axis=1) >= 0), name
        for j in range(3):
            assert_allclose(intervals[..., j], alone[j][name], rtol=1e-12, err_msg=name)


@noises
def test_single_precision_in_and_out(fitted, noise):
    model, _, X = fitted(noise=noise)
    single = X.astype(np.float32)
    expected = every_interval(model, single.astype(float), LEVELS)
    for name, intervals in every_interval(model, single, LEVELS).items():
        assert intervals.dtype == np.float32, name
        assert_allclose(intervals, expected[name], rtol=1e-5, atol=1e-5, err_msg=name)
    assert model.predict_quantiles(single, LEVELS).dtype == np.float32


def same_intervals(together, alone, X, outputs):
    """Whether a fit to several outputs has the intervals of fits to one each."""
    for name, intervals in every_interval(together, X, LEVELS).items():
        for k, single in zip(outputs, alone, strict=True):
            expected = every_interval(single, X, LEVELS)[name]
            assert_allclose(intervals[:, k], expected, rtol=1e-6, atol=1e-9, err_msg=name)


@noises
def test_equal_outputs_in_other_units_have_equal_intervals(fitted, make_table, noise):
    # All choices (alpha of the wide networks, of the noise) are made for all outputs at once.
    y = make_table(60).y
    settings = {"n": 60, "noise": noise, "alpha": 0.3}
    together, _, X = fitted(y=np.column_stack([y, 3 * y - 1]), **settings)
    alone = [fitted(y=a, **settings)[0] for a in (y, 3 * y - 1)]
    same_intervals(together, alone, X, [0, 1])


def test_outputs_do_not_change_one_another(fitted, make_table):
    # One output is skewed, and only that one gets unequal sides.
    rng = np.random.default_rng(0)
    columns = [make_table(150).y, rng.exponential(size=150), rng.standard_normal(150)]
    settings = {"n": 150, "alpha": 0.3, "noise_variance": "residual"}
    together, _, X = fitted(y=np.column_stack(columns), **settings)
    for method in PREDICTION_METHODS:
        ours = together.predict_interval(X, LEVELS, method=method)
        for k, y in enumerate(columns):
            expected = fitted(y=y, **settings)[0].predict_interval(X, LEVELS, method=method)
            assert_allclose(ours[:, k], expected, rtol=0, atol=1e-8, err_msg=f"{method}, {k}")


# ---------------------------------------------------------------- quantiles, distribution, table


@noises
@members
def test_quantiles_never_cross_and_the_median_is_near_the_mean(fitted, M, noise):
    model, _, X = fitted(M, n=60, noise=noise)
    quantiles = model.predict_quantiles(X, [0.01, 0.1, 0.4, 0.5, 0.6, 0.9, 0.99])
    assert np.all(np.diff(quantiles, axis=1) >= 0)
    mean, sd = model.predict(X, return_std=True)
    assert np.all(np.abs(quantiles[:, 3] - mean) < 0.5 * sd)


@noises
def test_the_distribution_is_normal_with_the_predicted_moments(fitted, noise):
    model, _, X = fitted(noise=noise)
    mean, sd = model.predict(X, return_std=True)
    distribution = model.predict_dist(X)
    assert_allclose(distribution.mean(), mean)
    assert_allclose(distribution.std(), sd)
    assert_allclose(distribution.cdf(mean), 0.5)
    assert_allclose(distribution.logpdf(mean), -np.log(sd * np.sqrt(2 * np.pi)))
    assert distribution.rvs(size=(5, len(X)), random_state=0).shape == (5, len(X))
    bounds = np.column_stack([distribution.ppf(0.05), distribution.ppf(0.95)])
    assert_allclose(model.predict_interval(X, 0.9, method="gaussian"), bounds, rtol=1e-12)


def test_the_gaussian_quantiles_of_a_compressed_model(fitted):
    model, _, X = fitted()
    expected = [model.predict_dist(X).ppf(level) for level in LEVELS]
    assert_allclose(model.compress().predict_quantiles(X, LEVELS), np.transpose(expected))


COLUMNS = ["mean", "mean_se", "mean_ci_lower", "mean_ci_upper", "obs_ci_lower", "obs_ci_upper"]


def assert_summary(frame, model, X, level):
    """The columns are those of statsmodels, with the numbers of the other methods."""
    confidence = model.predict_interval(X, level, kind="confidence")
    prediction = model.predict_interval(X, level)
    se = np.sqrt(model.predict_var(X, component="model"))
    expected = [model.predict(X), se, *confidence.T, *prediction.T]
    for name, column in zip(COLUMNS, expected, strict=True):
        assert_array_equal(frame[name], column, err_msg=name)


@noises
def test_summary_frame(fitted, noise):
    pd = pytest.importorskip("pandas")
    model, _, X = fitted(noise=noise)
    frame = model.summary_frame(X, 0.8)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == COLUMNS
    assert_summary(frame, model, X, 0.8)


def test_summary_frame_keeps_the_index(make_table):
    pd = pytest.importorskip("pandas")
    data = make_table(40)
    X = pd.DataFrame(data.X, columns=["a", "b", "c"])
    X_new = pd.DataFrame(data.X_new, columns=["a", "b", "c"], index=list("tuvwxyz"))
    model = ensemble().fit(X, data.y)
    frame = model.summary_frame(X_new)
    assert list(frame.index) == list("tuvwxyz")
    assert_summary(frame, model, X_new, 0.95)


def test_summary_frame_of_a_list_of_rows(fitted):
    pytest.importorskip("pandas")
    model, _, X = fitted()
    assert_summary(model.summary_frame(X.tolist(), 0.8), model, X, 0.8)


def test_summary_without_pandas_is_a_record_array(fitted, monkeypatch):
    model, _, X = fitted()
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = model.summary_frame(X, 0.8)
    assert isinstance(table, np.recarray)
    assert list(table.dtype.names) == COLUMNS
    assert_summary(table, model, X, 0.8)


# ---------------------------------------------------------------- confidence intervals


@noises
@members
def test_intervals_for_the_expectation_are_the_papers(fitted, M, noise):
    model, _, X = fitted(M, noise=noise, alpha=0.3)
    mean, variance = model.predict(X), model.predict_var(X, component="model")
    weights = model.predict_var(X, component="weights")
    ours = {
        method: model.predict_interval(
            X, 0.9, kind="confidence", target="expectation", method=method
        )
        for method in ("normal", "t", "auto")
    }

    def expected(quantile):
        half = quantile * np.sqrt(variance)
        return np.column_stack([mean - half, mean + half])

    # Satterthwaite's degrees of freedom (STATISTICS A).
    noise_part = variance - np.minimum(weights, variance)
    spent = noise_part**2 / (40 - model.dof_) + (variance - noise_part) ** 2 / max(M - 1, 1)
    assert_allclose(ours["normal"], expected(stats.norm.ppf(0.95)), rtol=1e-10)
    assert_allclose(ours["t"], expected(stats.t.ppf(0.95, variance**2 / spent)), rtol=1e-10)
    assert_array_equal(ours["auto"], ours["t"])
    assert np.all(np.diff(ours["t"]) > np.diff(ours["normal"]))


def test_satterthwaite_of_one_variance_alone():
    one = np.ones(3)
    assert_allclose(satterthwaite_dof(one, 0 * one, 20.0, 4), 20)
    assert_allclose(satterthwaite_dof(0 * one, one, 20.0, 4), 4)
    assert_allclose(satterthwaite_dof(one, one, 20.0, 4), 4 / (1 / 20 + 1 / 4))
    assert np.all(np.isinf(satterthwaite_dof(0 * one, 0 * one, 20.0, 4)))


# More neurons in a group than rows: the wide networks need ridge.
WIDE = {"n": 60, "N": 30, "alpha": 0.1, "weight_scale": 3.0}


def wide_alpha(model):
    """Ridge parameter of the wide networks, chosen by the library."""
    fit = model.model_
    groups = zip(member_groups(fit.n_members), fit.stacks, strict=True)
    paths = [wide_path(fit.basis, fit.q, g, stack, fit.y_square, fit.fit.n) for g, stack in groups]
    return undersmoothing_alpha(paths)


def side_by_side(H):
    """Hidden matrices of each group of members as one."""
    return [np.hstack(H[group]) for group in member_groups(len(H))]


@intercepts
def test_wide_networks_smooth_less_than_the_best_predictor(fitted, intercept):
    model, (H, _, y, *_), _ = fitted(5, fit_intercept=intercept, **WIDE)
    scores, traces, grid = [], [], []
    for H_g in side_by_side(H):
        centred = H_g - H_g.mean(axis=0) if intercept else H_g
        alphas = WIDE_GRID * np.linalg.norm(centred, 2) ** 2
        hat = [oracles.hat_matrix([H_g], a, intercept) for a in alphas]
        scores.append([oracles.gcv_score([H_g], y, a, intercept) for a in alphas])
        traces.append([np.trace(P[0]) - intercept for P in hat])
        grid.append(alphas)
    scores, traces, grid = (np.mean(a, axis=0) for a in (scores, traces, grid))
    best = np.argmin(scores)
    tolerated = np.flatnonzero(scores <= 1.05 * scores[best])[0]
    doubled = np.flatnonzero(traces <= 2 * traces[best])[0]
    assert 0 < min(tolerated, doubled) < best
    assert_allclose(wide_alpha(model), grid[min(tolerated, doubled)], rtol=1e-8)


@weightings
@intercepts
@noises
@pytest.mark.parametrize("M", [1, 5])
def test_intervals_for_the_function_are_those_of_wide_networks(
    fitted, M, noise, intercept, weighted
):
    model, (H, h, y, _, _, w), X = fitted(
        M, noise=noise, fit_intercept=intercept, weighted=weighted, **WIDE
    )
    alpha, n, G = wide_alpha(model), oracles.n_rows(y, w), len(member_groups(M))
    rest = (alpha, intercept, w)
    groups = [([a], [b]) for a, b in zip(side_by_side(H), side_by_side(h), strict=True)]
    f = np.array([oracles.predictions(*group, y, *rest)[0] for group in groups])
    z = np.mean([oracles.smoother_rows(*g, *rest, weighted=True)[0] for g in groups], axis=0)
    omega = np.full(len(y), model.noise_variance_)
    if noise == "heteroskedastic":
        omega = np.mean(oracles.omega("HC2", H, y, model.alpha_, intercept, w), axis=0)
    noise_part = z**2 @ omega
    from_weights = np.var(f, axis=0, ddof=1) / G if G > 1 else 0 * noise_part
    variance = noise_part + from_weights
    mean, se = np.mean(f, axis=0), np.sqrt(variance)

    def ours(method):
        return model.predict_interval(X, 0.9, kind="confidence", method=method)

    half = stats.norm.ppf(0.95) * se
    assert_allclose(ours("normal"), np.column_stack([mean - half, mean + half]), rtol=1e-6)
    residual_dof = n - np.mean([oracles.dof(H_g, *rest) for H_g, _ in groups])
    spent = noise_part**2 / residual_dof + from_weights**2 / max(G - 1, 1)
    half = stats.t.ppf(0.95, np.maximum(variance**2 / spent, 1)) * se
    assert_allclose(ours("t"), np.column_stack([mean - half, mean + half]), rtol=1e-6)
    assert_array_equal(ours("auto"), ours("t"))


# ---------------------------------------------------------------- bias


@pytest.fixture
def biased():
    """Few neurons for a wiggly function."""
    X = np.linspace(-1, 1, 300)[:, None]
    y = np.sin(8 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(300)
    return ELMEnsembleRegressor(8, 5, weight_scale=3.0, random_state=0).fit(X, y), X


def test_bias_raises_the_alarm_and_a_warning(biased):
    model, X = biased
    assert model.bias_alarm_ > 5
    with pytest.warns(BiasWarning, match="more n_neurons") as caught:
        model.predict_interval(X, kind="confidence")
    assert caught[0].filename == __file__


def test_bias_does_not_warn_elsewhere(biased):
    # Warnings are errors: neither fit, nor these, raise one.
    model, X = biased
    model.predict(X, return_std=True)
    model.predict_var(X)
    model.predict_interval(X)
    model.predict_quantiles(X, 0.5)
    model.predict_interval(X, kind="confidence", target="expectation")


def test_no_alarm_where_the_neurons_suffice(make_table):
    data = make_table(200)
    model = ensemble(8, 40, alpha="loo").fit(data.X, data.y)
    assert 0 < model.bias_alarm_ < 5
    model.predict_interval(data.X, kind="confidence")


def test_the_alarm_is_the_largest_distance_in_standard_errors(fitted, make_table):
    model, _, _ = fitted(n=60)
    X = make_table(60).X
    low, high = model.predict_interval(X, 0.9, kind="confidence", method="normal").T
    se = (high - low) / (2 * stats.norm.ppf(0.95))
    gap = np.abs(model.predict(X) - (low + high) / 2)
    assert_allclose(model.bias_alarm_, np.max(gap / se), rtol=1e-8)


# ---------------------------------------------------------------- without the training rows


@pytest.mark.parametrize("method", ["jackknife+", "jackknife"])
def test_a_compressed_model_has_no_jackknife(fitted, method):
    model, _, X = fitted()
    with pytest.raises(ValueError, match=f"method='{method[:9]}.*compress.*use method='gaussian'"):
        model.compress().predict_interval(X, method=method)


@noises
@pytest.mark.parametrize("size", [(4, 6), (10, 9)])  # forms of features, forms of rows
def test_compressing_keeps_everything_else(fitted, noise, size):
    model, _, X = fitted(*size, n=60, noise=noise)
    before, alarm = every_interval(model, X, LEVELS), model.bias_alarm_
    after = {"auto": model.compress().predict_interval(X, LEVELS)}
    assert_allclose(after["auto"], before["gaussian"], rtol=1e-8)
    assert_array_equal(after["auto"], model.predict_interval(X, LEVELS, method="gaussian"))
    for target in TARGETS:
        for method in ("t", "normal"):
            ours = model.predict_interval(
                X, LEVELS, kind="confidence", target=target, method=method
            )
            assert_allclose(ours, before[f"{target}, {method}"], rtol=1e-8)
    assert_allclose(model.bias_alarm_, alarm, rtol=1e-8)


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"confidence_level": 95}, "confidence_level must lie between 0 and 1.* 95"),
        ({"confidence_level": [0.5, 1.0]}, "confidence_level must lie between 0 and 1"),
        ({"confidence_level": []}, "confidence_level must lie between 0 and 1"),
        ({"confidence_level": "high"}, "confidence_level must lie between 0 and 1.*'high'"),
        ({"kind": "credible"}, "kind must be one of 'prediction', 'confidence', got 'credible'"),
        ({"method": "t"}, "method must be one of 'auto', 'jackknife.*got 't'"),
        ({"kind": "confidence", "method": "jackknife+"}, "method must be one of 'auto', 't'"),
        ({"kind": "confidence", "target": "truth"}, "target must be one of 'function'.*'truth'"),
        ({"confidence_level": 0.99}, "0.99 needs at least 99 training rows.* got 40.*'gaussian'"),
    ],
)
def test_bad_requests_name_the_parameter(fitted, asked, message):
    model, _, X = fitted()
    with pytest.raises(ValueError, match=message):
        model.predict_interval(X, **asked)


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
    model = ensemble().fit(data.X, data.y, sample_weight=np.arange(40) >= 25)
    with pytest.raises(ValueError, match=r"at least 19 training rows.*got 15"):
        model.predict_interval(data.X_new, 0.95)


@pytest.mark.parametrize("quantiles", [[0.5, 1.5], 50, []])
def test_bad_quantiles(fitted, quantiles):
    model, _, X = fitted()
    with pytest.raises(ValueError, match="quantiles must lie between 0 and 1"):
        model.predict_quantiles(X, quantiles)


def test_summary_frame_refuses_several_outputs_and_levels(fitted):
    model, _, X = fitted(y=np.random.default_rng(0).standard_normal((40, 2)))
    with pytest.raises(ValueError, match=r"one output.*call predict_interval"):
        model.summary_frame(X)
    with pytest.raises(ValueError, match="confidence_level must lie between 0 and 1"):
        fitted()[0].summary_frame(X, [0.5, 0.9])


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, X: model.predict_interval(X),
        lambda model, X: model.predict_quantiles(X, 0.5),
        lambda model, X: model.predict_dist(X),
        lambda model, X: model.summary_frame(X),
        lambda model, X: model.bias_alarm_,
    ],
    ids=["predict_interval", "predict_quantiles", "predict_dist", "summary_frame", "bias_alarm_"],
)
def test_nothing_to_say_before_fit(ask):
    with pytest.raises(NotFittedError):
        ask(ELMEnsembleRegressor(), np.ones((3, 2)))


# ---------------------------------------------------------------- noise that varies


def noisy(n, seed, sd):
    """Rows with noise of the given standard deviation, a function of X."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) + sd(X) * rng.standard_normal(n)


def growing(X):
    return 0.3 * np.exp(1.2 * X[:, 0])


def constant(X):
    return np.full(len(X), 0.3)


def heteroskedastic(M=8, N=40, **parameters):
    return ELMEnsembleRegressor(M, N, noise="heteroskedastic", random_state=0, **parameters)


def test_a_varying_noise_variance_is_recovered():
    X, y = noisy(400, 0, growing)
    X_new, _ = noisy(200, 1, growing)
    model = heteroskedastic().fit(X, y)
    variance = model.predict_var(X_new * 0.95, component="noise")
    truth = growing(X_new * 0.95) ** 2
    assert np.corrcoef(variance, truth)[0, 1] > 0.7
    assert 0.7 < np.mean(variance) / np.mean(truth) < 1.4


def test_constant_noise_is_mostly_recognised():
    flat = []
    for seed in range(40):
        X, y = noisy(150, seed, constant)
        model = heteroskedastic(5, 25).fit(X, y)
        variance = model.predict_var(X, component="noise")
        flat.append(np.ptp(variance) == 0)
        if flat[-1]:
            assert_array_equal(variance, model.noise_variance_)
    assert np.mean(flat) > 0.5


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.parametrize("outputs", ["growing", "without noise", "constant", "huge", "tiny"])
def test_the_noise_variance_is_positive_and_finite_everywhere(outputs):
    X, y = noisy(150, 0, growing)
    y = {
        "growing": y,
        "without noise": X[:, 0],
        "constant": np.ones(150),
        "huge": 1e150 * y,
        "tiny": 1e-150 * y,
    }[outputs]
    model = heteroskedastic(4, 20).fit(X, y)
    anywhere = np.random.default_rng(0).uniform(-50, 50, (200, 2))
    variance = model.predict_var(np.vstack([X, anywhere]), component="noise")
    assert np.all(variance >= 0 if outputs == "constant" else variance > 0)
    assert np.all(np.isfinite(variance))
    assert np.all(np.isfinite(model.predict_interval(anywhere)))


def test_rows_of_weight_zero_have_no_part_in_the_noise():
    X, y = noisy(160, 0, growing)
    used = np.arange(160) % 2 == 0
    settings = {"alpha": 0.1, "standardize": False}
    weighted = heteroskedastic(4, 10, **settings).fit(X, y, sample_weight=used.astype(float))
    alone = heteroskedastic(4, 10, **settings).fit(X[used], y[used])
    expected = alone.predict_var(X[used], component="noise")
    assert_allclose(weighted.predict_var(X[used], component="noise"), expected, rtol=1e-6)
    for name, intervals in every_interval(alone, X[used], 0.8).items():
        ours = every_interval(weighted, X[used], 0.8)[name]
        assert_allclose(ours, intervals, rtol=1e-4, atol=1e-4, err_msg=name)


# ---------------------------------------------------------------- skewness


@pytest.mark.parametrize(
    ("draw", "skewed"),
    [
        (lambda rng: rng.exponential(size=200), True),
        (lambda rng: -rng.exponential(size=200), True),
        (lambda rng: rng.gamma(4, size=200), True),
        (lambda rng: rng.standard_normal(200), False),
        (lambda rng: rng.laplace(size=200), False),
        (lambda rng: rng.standard_t(3, 200), False),
    ],
    ids=["exponential", "-exponential", "gamma", "normal", "Laplace", "t3"],
)
def test_skewed_residuals_are_told_from_symmetric_ones(draw, skewed):
    found = np.mean([is_skewed(draw(np.random.default_rng(seed))) for seed in range(200)])
    # Three standard errors from zero, so nearly never where there is no skewness.
    assert (found > 0.8) if skewed else (found < 0.05), found


def test_too_few_or_equal_residuals_are_not_skewed():
    assert not is_skewed(np.random.default_rng(0).exponential(size=19))
    assert not is_skewed(np.ones(200))


def test_skewed_noise_gets_unequal_sides():
    X, mean = noisy(300, 0, lambda X: 0)
    rng = np.random.default_rng(1)
    ratios = []
    for error in (rng.exponential(size=300) - 1, rng.standard_normal(300)):
        model = ELMEnsembleRegressor(5, 20, random_state=0).fit(X, mean + 0.3 * error)
        low, high = model.predict_interval(X, 0.9).T
        f = model.predict(X)
        ratios.append(np.median((high - f) / (f - low)))
    assert ratios[0] > 1.4
    assert 0.9 < ratios[1] < 1.1


# ---------------------------------------------------------------- coverage
# Fixed seeds. Thirty replications of 200 points: coverage given the training rows varies by
# about 0.03 around its mean, so three points are more than five standard errors.

R, POINTS = 30, 200


def mean_of(X):
    return 2 * np.sin(np.pi * X[:, 0] * X[:, 1]) + X[:, 2]


# Errors with mean zero; the last factor of the second is a standard deviation that varies.
ERRORS = {
    "homoskedastic": lambda rng, X: 0.5 * rng.standard_normal(len(X)),
    "heteroskedastic": lambda rng, X: (0.1 + 0.9 * X[:, 0] ** 2) * rng.standard_normal(len(X)),
    "t3": lambda rng, X: 0.4 * rng.standard_t(3, len(X)),
    "skewed": lambda rng, X: 0.5 * (rng.exponential(size=len(X)) - 1),
}


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.parametrize("kind", ERRORS)
def test_prediction_intervals_cover_new_observations(kind):
    noise = "heteroskedastic" if kind == "heteroskedastic" else "homoskedastic"
    inside = {"auto": [], "jackknife+": []}
    where_noisy = []
    for r in range(R):
        rng = np.random.default_rng(r)
        X, X_new = rng.uniform(0, 1, (150, 3)), rng.uniform(0, 1, (POINTS, 3))
        y, y_new = (mean_of(A) + ERRORS[kind](rng, A) for A in (X, X_new))
        model = ELMEnsembleRegressor(8, 50, noise=noise, random_state=r).fit(X, y)
        for method, answers in inside.items():
            low, high = model.predict_interval(X_new, 0.9, method=method).T
            answers.append((low <= y_new) & (y_new <= high))
        where_noisy.append(X_new[:, 0] > 2 / 3)
    for method, answers in inside.items():
        assert abs(np.mean(answers) - 0.9) < 0.03, method
    if kind == "heteroskedastic":
        # Plain jackknife+ has one width everywhere; the model of the noise widens its intervals
        # where they miss. Both are judged by the same 2,000 points (standard error 0.01).
        plus, auto = (np.mean(np.array(inside[m])[where_noisy]) for m in ("jackknife+", "auto"))
        assert plus + 0.05 < auto < 0.93


def test_confidence_intervals_cover_the_function():
    # Sixty replications: at a point that is covered with probability 0.95, the share has a
    # standard error of 0.028, and the median over points far less.
    X = np.random.default_rng(0).uniform(0, 1, (60, 1))
    points = np.linspace(0.05, 0.95, 60)[:, None]
    truth = np.sin(2 * np.pi * points[:, 0])
    inside = []
    for r in range(60):
        rng = np.random.default_rng(r)
        y = np.sin(2 * np.pi * X[:, 0]) + 0.3 * rng.standard_normal(60)
        model = ELMEnsembleRegressor(10, 30, random_state=r).fit(X, y)
        low, high = model.predict_interval(points, kind="confidence").T
        inside.append((low <= truth) & (truth <= high))
    assert 0.9 <= np.median(np.mean(inside, axis=0)) <= 0.99
