"""What choosing alpha and a map costs: out-of-fold rows behind maps optimised without them, CV+."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from models import interaction_table, mapped_ensemble, plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from ulmus import ELMEnsembleRegressor
from ulmus.core.data.source import RowBlocks
from ulmus.core.ensemble.regression import fitted_rows
from ulmus.core.fit.refits import N_FOLDS, out_of_fold, value_order
from ulmus.core.query.leave_out import leave_one_out_shifts, loo_residuals, out_of_fold_residuals
from ulmus.model_file.serialisation import from_arrays, to_arrays

LEVELS = [0.5, 0.9]


@pytest.fixture(scope="module")
def model():
    X, y, _ = interaction_table(60, 6, sd=0.4, n_points=40)
    return mapped_ensemble(3, 60).fit(X, y)


def test_folds_of_sparse_rows_are_those_of_dense_ones(rng):
    """Also where outputs are tied, in any order of the table."""
    X = np.round(rng.standard_normal((60, 4))) * [1.0, -1.0, 2.0, 0.5]
    y = np.round(rng.standard_normal((1, 60)))
    order = rng.permutation(60)
    expected = value_order(RowBlocks(X, y, None, X))
    assert_array_equal(value_order(RowBlocks(scipy.sparse.csr_array(X), y, None, X)), expected)
    shuffled = RowBlocks(scipy.sparse.csr_matrix(X[order]), y[:, order], None, X)
    found = order[value_order(shuffled)]
    assert_array_equal(X[found], X[expected])
    assert_array_equal(np.abs(y - np.median(y))[:, found], np.abs(y - np.median(y))[:, expected])


@pytest.mark.slow
def test_every_row_is_in_one_fold_and_held_out_behind_a_map_without_it(model):
    X, y, _ = interaction_table(60, 6, sd=0.4, n_points=40)
    fit = model.fitted_
    rows = np.concatenate([fold.rows for fold in fit.folds])
    assert_array_equal(np.sort(rows), np.arange(60))
    assert len(fit.folds) == N_FOLDS
    fold = fit.folds[2]
    # Other outputs of the fold's rows change nothing in the map of that fold.
    other = y.copy()
    other[fold.rows] += 5.0
    again = mapped_ensemble(3, 60).fit(X, other).fitted_.folds[2]
    assert_array_equal(again.rows, fold.rows)
    assert_array_equal(again.layer.W, fold.layer.W)
    # The regression behind the map left one row out, in closed form: here by a refit.
    alpha = 0.05
    fold = mapped_ensemble(3, 60, alpha=alpha).fit(X, y).fitted_.folds[2]
    layer, i = fold.layer, fold.rows[0]
    keep = np.arange(60) != i
    predictions = []
    for m in range(3):
        h = np.asarray(layer(X))[m, 1:]
        center = h[:, keep].mean(axis=1, keepdims=True)
        H, target = (h[:, keep] - center).T, y[keep] - y[keep].mean()
        beta = np.linalg.solve(H.T @ H + alpha * np.eye(H.shape[1]), H.T @ target)
        predictions.append(y[keep].mean() + (h[:, i] - center[:, 0]) @ beta)
    assert_allclose(fold.residuals[0, 0], y[i] - np.mean(predictions), rtol=1e-6)


def test_folds_have_the_ridge_parameters_of_the_fit():
    """The variance due to choosing alpha is another part of standard errors."""
    X, y, _ = interaction_table(60, 6, sd=0.4, n_points=40)
    Y = np.column_stack([y, np.random.default_rng(0).standard_normal(60)])
    fit = mapped_ensemble(3, 60).fit(X, Y).fitted_
    alphas, fold = fit.ensemble.alphas, fit.folds[1]
    assert alphas[0] != alphas[1]
    for k, alpha in enumerate(alphas):
        h = np.asarray(fold.layer(X))[0, 1:]
        H, y_k = (h - h.mean(axis=1, keepdims=True)).T, Y[:, k] - Y[:, k].mean()
        beta = np.linalg.solve(H.T @ H + alpha * np.eye(H.shape[1]), H.T @ y_k)
        assert_allclose(fold.coefficients[0, 1:, k], beta, rtol=1e-6, atol=1e-8)


def test_residuals_and_variance_of_the_folds(model):
    _, _, points = interaction_table(60, 6, sd=0.4, n_points=40)
    fit = model.fitted_
    residuals = out_of_fold_residuals(fit, fit.rows)
    for fold in fit.folds:
        assert_array_equal(residuals[:, fold.rows], fold.residuals)
    assert_array_equal(out_of_fold((), residuals), residuals)
    means = np.array([fold.mean(points)[0] for fold in fit.folds])
    expected = [np.sum((column - column.mean()) ** 2) / (N_FOLDS - 1) for column in means.T]
    assert_allclose(fit.map_variance(points)[0], expected, rtol=1e-10)
    # A row influences the map: out-of-fold residuals behind maps without it are larger.
    assert np.mean(residuals**2) > np.mean(loo_residuals(fit, fit.rows) ** 2)


def test_standard_errors_hold_what_both_choices_cost(model):
    _, _, points = interaction_table(60, 6, sd=0.4, n_points=40)
    fit = model.fitted_
    parts = fit.parts(points)
    paper = parts.U + parts.spread / parts.n_members
    first, second = fit.ensemble.alpha_shifts(points)
    alone = np.maximum(first**2 - second**2, 0).T + fit.map_variance(points).T
    assert_allclose(model.predict_var(points, "model"), (paper + alone)[:, 0], rtol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [40, 900])
def test_predictions_move_with_log_alpha_as_predicted(n, intercept):
    X, y, points = interaction_table(n, 3, sd=0.4, n_points=40)
    alpha, step = 0.02, 1e-4
    how = {"fit_intercept": intercept, "n_neurons": 30, "random_state": 0}
    below, here, above = (
        plain_ensemble(3, alpha=alpha * np.exp(k * step), **how).fit(X, y) for k in (-1, 0, 1)
    )
    expected = (above.predict(points) - below.predict(points)) / (2 * step)
    fit = here.fitted_
    smoother = fit.ensemble.regressions[0].smoother
    t = smoother.coordinates(fit.features(points))
    slope = np.mean(np.swapaxes(smoother.ridge_slope, 1, 2) @ t, axis=0)[0] * fit.ensemble.unit[0]
    assert_allclose(slope, expected, rtol=1e-5, atol=1e-8)
    # An alpha that was given was not chosen.
    assert_array_equal(fit.ensemble.alpha_shifts(points), 0)
    assert np.any(plain_ensemble(3).fit(X, y).fitted_.ensemble.alpha_shifts(points) != 0)


def test_the_deviation_of_log_alpha_is_that_of_new_noise():
    # Standard errors of the logarithm: within a factor of two of what 80 tables show.
    rng, chosen, estimated = np.random.default_rng(0), [], []
    X = rng.uniform(-1, 1, (150, 3))
    for seed in range(80):
        y = np.sin(2 * X[:, 0] + X[:, 1]) + 0.5 * X[:, 2] ** 2 + 0.3 * rng.standard_normal(150)
        fitted = plain_ensemble(3, 60, random_state=seed).fit(X, y)
        chosen.append(np.log(fitted.alpha_))
        estimated.append(fitted.fitted_.ensemble.regressions[0].alpha_deviation[0])
    assert 0.5 < np.sqrt(np.mean(np.square(estimated))) / np.std(chosen) < 2


@pytest.mark.slow
def test_standard_errors_are_those_of_repeated_fits():
    # Without the two terms the ratio is 0.7 to 0.8; 14 tables leave an error of 0.15, and
    # benchmarks/coverage.py --only chosen has more.
    X, _, points = interaction_table(60, 3, sd=0.4, n_points=40)
    truth = np.sin(2 * X[:, 0] + X[:, 1]) + 0.5 * X[:, 2] ** 2
    fits, variances = [], []
    for seed in range(14):
        y = truth + 0.25 * np.random.default_rng(seed).standard_normal(60)
        fitted = mapped_ensemble(3, 60, random_state=seed).fit(X, y)
        fits.append(fitted.predict(points))
        variances.append(fitted.predict_var(points, "model"))
    ratio = np.sqrt(np.mean(variances, axis=0)) / np.std(fits, axis=0, ddof=1)
    assert 0.85 < np.median(ratio) < 1.45


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
def test_prediction_intervals_cover_behind_a_map_of_few_rows():
    # 60 rows and 20 inputs: 0.80 before, when a map was taken as given.
    covered = []
    for seed in range(10):
        X, y, _ = interaction_table(60, 20, sd=0.4, n_points=40, seed=seed)
        points = np.random.default_rng(seed + 100).uniform(-1, 1, (300, 20))
        low, high = (
            mapped_ensemble(3, 60, random_state=seed).fit(X, y).predict_interval(points, 0.9).T
        )
        f = np.sin(2 * points[:, 0]) + points[:, 1] * points[:, 2]
        covered.append(np.mean(stats.norm.cdf((high - f) / 0.4) - stats.norm.cdf((low - f) / 0.4)))
    assert 0.86 < np.mean(covered) < 0.95


def test_a_fit_keeps_its_folds_when_it_travels(model):
    _, _, points = interaction_table(60, 6, sd=0.4, n_points=40)
    expected = model.predict_interval(points, 0.9)
    twin = pickle.loads(pickle.dumps(model))
    assert_array_equal(twin.predict_interval(points, 0.9), expected)
    arrays, description = to_arrays(model.fitted_)
    twin.fitted_ = from_arrays(arrays, description)
    assert_array_equal(twin.predict_interval(points, 0.9), expected)
    sd = model.predict(points, return_std=True)[1]
    assert_allclose(twin.compress().predict(points, return_std=True)[1], sd, rtol=1e-8)


# Last digits, which units and the order of rows change, led the search for a fold's map elsewhere
# in six of eight such tables.
@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-6, -1.0, 3.3])
@pytest.mark.parametrize("seed", [4, 6])
def test_error_bars_follow_the_units_of_y(seed, factor):
    X, y, points = interaction_table(60, 6, sd=0.4, n_points=40, seed=seed)
    model, other = mapped_ensemble(3, 60).fit(X, y), mapped_ensemble(3, 60).fit(X, factor * y)
    for one, two in zip(*(m.predict(points, return_std=True) for m in (model, other)), strict=True):
        assert_allclose(np.abs(two / factor), np.abs(one), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 6])
def test_neither_the_order_of_rows_nor_units_of_inputs_change_a_fold(seed):
    X, y, points = interaction_table(60, 6, sd=0.4, n_points=40, seed=seed)
    order, units = np.random.default_rng(1).permutation(60), np.array([1, 3, 1e-3, 7e5, 1, 0.1])
    model, other = (
        mapped_ensemble(3, 60).fit(X, y),
        mapped_ensemble(3, 60).fit(units * X[order], y[order]),
    )
    expected = model.predict_interval(points, 0.9)
    assert_allclose(other.predict_interval(units * points, 0.9), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")
def test_least_squares_behind_another_map_may_leave_no_residuals():
    # The first error bar raised where a fold's layer had the rank of the rows.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 4))
    y = np.sin(2 * X[:, 0]) + rng.exponential(size=40) - 1
    fitted = ELMEnsembleRegressor(
        alpha=0.0, activation="erf", expand_inputs=None, random_state=0
    ).fit(X, y)
    assert not fitted.fitted_.folded
    assert np.all(fitted.predict(X, return_std=True)[1] > 0)


# ---------------------------------------------------------------- CV+


def test_cv_plus_is_its_definition(model):
    X, y, points = interaction_table(60, 6, sd=0.4, n_points=40)
    values = {"low": [], "high": []}
    for fold in model.fitted_.folds:
        others = np.setdiff1d(np.arange(60), fold.rows)
        layer = fold.layer
        # The fold is held out of the map, the scale of the inputs and the regressions.
        held = next(h for h in model.fitted_.held_out if h.layer is layer)
        ridge = model.fitted_.spec.regression
        without = fitted_rows(model.fitted_.rows.data.taken(others), layer, ridge).ensemble
        assert_allclose(held.mean(points), without.mean(points), rtol=1e-10)
        residuals = np.abs(y[fold.rows] - held.mean(X[fold.rows])[0])
        for r in residuals:
            values["low"].append(held.mean(points)[0] - r)
            values["high"].append(held.mean(points)[0] + r)
    low, high = (np.sort(values[name], axis=0) for name in ("low", "high"))
    rank = int(np.ceil(0.9 * 61))
    ours = model.predict_interval(points, 0.9, method="cv+")
    assert_allclose(ours, np.transpose([low[60 - rank], high[rank - 1]]), rtol=1e-10)
    both = model.predict_interval(points, LEVELS, method="cv+")
    assert np.all(both[:, 0, 1] <= both[:, 0, 0])
    assert np.all(both[:, 1, 0] <= both[:, 1, 1])


def test_cv_plus_without_a_learned_map_is_jackknife_plus():
    X, y, points = interaction_table(60, 6, sd=0.4, n_points=40)
    fitted = mapped_ensemble(3, 60, input_map=None).fit(X, y)
    expected = fitted.predict_interval(points, 0.9, method="jackknife+")
    assert_array_equal(fitted.predict_interval(points, 0.9, method="cv+"), expected)
    with pytest.raises(ValueError, match=r"'cv\+'.*training rows.*'gaussian'"):
        fitted.compress().predict_interval(points, method="cv+")


# ---------------------------------------------------------------- rows set aside


def test_rows_set_aside_for_the_map_enter_no_regression():
    X, y, points = interaction_table(120, 6, sd=0.4, n_points=40)
    fitted = mapped_ensemble(3, 60, tuning_fraction=0.5).fit(X, y)
    rows = fitted.fitted_.rows
    assert rows.map_rows.sum() == 60
    assert not fitted.fitted_.folded
    assert_array_equal(rows.calibration_rows, ~rows.map_rows)
    # The map does not depend on the outputs of the others.
    other = y.copy()
    other[rows.calibration_rows] += 3.0
    assert_array_equal(
        mapped_ensemble(3, 60, tuning_fraction=0.5).fit(X, other).input_map_, fitted.input_map_
    )
    errors = np.abs(fitted.loo_residuals_[rows.calibration_rows])
    shifts = leave_one_out_shifts(fitted.fitted_, rows, points)
    shift = np.concatenate([chunk.shift[0] for chunk in shifts], axis=1)[rows.calibration_rows]
    without = fitted.predict(points) - shift
    low, high = int(np.floor(0.1 * 61)) - 1, int(np.ceil(0.9 * 61)) - 1
    lower = np.sort(without - errors[:, None], axis=0)[low]
    upper = np.sort(without + errors[:, None], axis=0)[high]
    expected = np.column_stack([lower, upper])
    ours = fitted.predict_interval(points, 0.9, method="jackknife+")
    assert_allclose(ours, expected, rtol=1e-10)
    assert np.all(np.isfinite(fitted.predict_interval(points, LEVELS)))


@pytest.mark.parametrize("value", [0.0, 1.0, -0.2, "half", True])
def test_a_share_must_lie_between_zero_and_one(value):
    X, y, _ = interaction_table(60, 6, sd=0.4, n_points=40)
    with pytest.raises(ValueError, match="tuning_fraction"):
        mapped_ensemble(3, 60, tuning_fraction=value).fit(X, y)


def test_too_few_rows_to_set_aside_warn():
    X, y, _ = interaction_table(60, 6, sd=0.4, n_points=40)
    with pytest.raises(ValueError, match=r"tuning_fraction=0\.2 of 60 rows.*30.*None"):
        mapped_ensemble(3, 60, tuning_fraction=0.2).fit(X, y)
    for ways in (lambda e: e.fit_blocks([(X, y)]), lambda e: e.partial_fit(X, y)):
        with pytest.raises(ValueError, match=r"tuning_fraction=0\.6.*use fit"):
            ways(mapped_ensemble(3, 60, tuning_fraction=0.6, noise="homoskedastic"))
