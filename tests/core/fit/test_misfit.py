"""Signs that the layer cannot follow the function, and points beyond the rows."""

import numpy as np
import pytest
from models import plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal

from ulmus import ELMEnsembleRegressor
from ulmus.core.fit.misfit import LOCAL, neighbour_sums, participation
from ulmus.core.query.leave_out import outside_design
from ulmus.exceptions import BiasWarning, ExtrapolationWarning


def function_table(f, n=200, d=1, seed=0, noise=0.25):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, f(X) + noise * rng.standard_normal(n)


def jump(X):
    return 1.5 * (X[:, 0] > 0.13) + 0.5 * X[:, 0]


def steep(X):
    return np.tanh(10 * (X[:, 0] - 0.1))


def wave(X):
    return np.sin(12 * X[:, 0])


def default(X, y, seed=0, **parameters):
    how = {"n_estimators": 4, "n_neurons": 150, "random_state": seed} | parameters
    return ELMEnsembleRegressor(**how).fit(X, y)


# ---------------------------------------------------------------- formulas


def test_sums_over_neighbours_equal_loops():
    rng = np.random.default_rng(0)
    inputs, residuals = rng.normal(size=(50, 2)), rng.normal(size=(2, 50))
    largest, agreement = neighbour_sums(inputs, residuals)
    for k in range(2):
        robust = np.median(np.abs(residuals[k])) / 0.6745
        u = np.clip(residuals[k] / robust, -2.5, 2.5)
        u = u / np.sqrt(np.mean(u**2))
        best, total = 0.0, 0.0
        for i in range(50):
            order = np.argsort(np.sum((inputs - inputs[i]) ** 2, axis=1))
            for size in range(2, 9):
                best = max(best, abs(sum(u[j] for j in order[:size])) / size**0.5)
            total += sum(u[i] * u[j] for j in order[1 : 1 + LOCAL])
        assert_allclose(largest[k], best, rtol=1e-10)
        assert_allclose(agreement[k], total / np.sqrt(50 * LOCAL), rtol=1e-10)


def test_the_share_of_a_constant_slope_is_all_and_that_of_a_step_its_part():
    share = np.array([0.2, 0.5, 0.3])
    assert_allclose(participation(np.array([share]), share), [1.0], rtol=1e-12)
    assert_allclose(participation(np.array([[0.0, 0.0, 2.0]]), share), [0.3], rtol=1e-12)


# ---------------------------------------------------------------- signs


def test_a_function_that_is_smoothed_away_shows_in_neighbours():
    X, y = function_table(wave)
    model = plain_ensemble(4, 20, weight_scale=0.5, alpha=0.1, random_state=0).fit(X, y)
    misfit = model.fitted_.misfit
    assert misfit.clustered[0]
    assert not misfit.stepped[0]
    points = np.linspace(-0.9, 0.9, 50)[:, None]
    with pytest.warns(BiasWarning, match="neighbouring rows agree"):
        wide = model.predict_interval(points, kind="confidence")
    # Intervals reach by the mean residual of the four nearest rows farther.
    order = np.argsort(np.abs(X[:, 0] - points[7, 0]))[:LOCAL]
    expected = np.abs(np.mean(model.loo_residuals_[order]))
    assert_allclose(model.fitted_.misfit_allowance(points)[7, 0], expected, rtol=1e-9)
    truth = wave(points)
    assert np.mean((wide[:, 0] <= truth) & (truth <= wide[:, 1])) > 0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning")
def test_a_jump_is_distinguished_from_a_steep_slope():
    # Four tables each; a jump was detected in 24 of 24 fits, a steep slope in none.
    jumps, slopes = [], []
    for seed in range(4):
        jumps.append(default(*function_table(jump, seed=seed), seed).fitted_.misfit.stepped[0])
        slopes.append(default(*function_table(steep, seed=seed), seed).fitted_.misfit.stepped[0])
    assert np.sum(jumps) >= 3
    assert not np.any(slopes)


def test_a_step_widens_intervals_there_and_nowhere_else():
    X, y = function_table(jump, seed=3)
    model = default(X, y)
    with pytest.warns(BiasWarning, match="step"):
        model.predict_interval(X, kind="confidence")
    near = np.abs(X[:, 0] - 0.13) < 0.05
    allowance = model.fitted_.misfit_allowance(X)[:, 0]
    assert np.mean(allowance[near]) > 10 * np.mean(allowance[np.abs(X[:, 0] - 0.13) > 0.3])


def test_the_gain_of_a_step_does_not_depend_on_the_unit_of_the_weights():
    X, y = function_table(jump, seed=3)
    weight = np.random.default_rng(0).uniform(0.5, 2, 200)
    one, other = (
        default(X, y, input_map=None).fit(X, y, factor * weight).fitted_.misfit.step_gain
        for factor in (1.0, 100.0)
    )
    assert one[0] > 0
    assert_allclose(one, other, rtol=1e-6)


FOLLOWED = {
    "smooth": (2, lambda X: np.sin(2 * X[:, 0] + X[:, 1])),
    "nothing": (2, lambda X: 0 * X[:, 0]),
    "fold": (1, lambda X: 2 * np.abs(X[:, 0] - 0.2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLLOWED)
def test_functions_that_are_followed_raise_no_misfit(name):
    d, f = FOLLOWED[name]
    alarms = 0
    for seed in range(4):
        noise = 0.25 if seed % 2 else 0.1
        misfit = default(*function_table(f, d=d, seed=seed, noise=noise), seed).fitted_.misfit
        alarms += int(misfit.clustered[0] or misfit.stepped[0])
    assert alarms <= 1


def test_misfit_does_not_depend_on_units_or_on_the_factor_of_weights():
    X, y = function_table(wave)
    how = {"weight_scale": 0.5, "alpha": 0.1, "random_state": 0}
    one = plain_ensemble(4, 20, **how).fit(X, y).fitted_.misfit
    other = plain_ensemble(4, 20, **how).fit(X, 1e6 * y, np.full(200, 9.0)).fitted_.misfit
    again = plain_ensemble(4, 20, **how | {"alpha": 0.9}).fit(X, 1e6 * y, np.full(200, 9.0))
    assert_allclose(again.fitted_.misfit.agreement, one.agreement, rtol=1e-6)
    assert other.largest_sum.shape == (1,)


@pytest.mark.slow
def test_intervals_for_f_cover_functions_with_a_fold():
    # 0.84 before maps were learned; 8 fits and 60 points leave an error of about 0.02.
    X, _ = function_table(FOLLOWED["fold"][1])
    points = np.random.default_rng(1).uniform(-0.95, 0.95, (60, 1))
    truth, covered = FOLLOWED["fold"][1](points), []
    for seed in range(8):
        y = FOLLOWED["fold"][1](X) + 0.25 * np.random.default_rng(seed).standard_normal(200)
        low, high = default(X, y, seed).predict_interval(points, kind="confidence").T
        covered.append((low <= truth) & (truth <= high))
    assert np.mean(covered) > 0.88


# ---------------------------------------------------------------- beyond the rows


def test_points_beyond_the_rows_are_detected_by_leverage():
    X, y = function_table(lambda X: X[:, 0] + X[:, 1] ** 2, d=4)
    model = plain_ensemble(4, 60, random_state=0).fit(X, y)
    rng = np.random.default_rng(0)
    inside = rng.uniform(-0.95, 0.95, (300, 4))
    corners = rng.choice([-1.05, 1.05], (300, 4))
    model.predict_interval(inside)  # no warning
    with pytest.warns(ExtrapolationWarning, match="farther from the training rows"):
        wide = model.predict_interval(corners)
    width = np.mean(np.diff(wide, axis=1))
    assert width > 1.2 * np.mean(np.diff(model.predict_interval(inside), axis=1))
    rows = model.fitted_.rows
    largest = rows.loo_leverage.max()
    assert_array_equal(outside_design(rows, np.array([[0.1, 0.5, 5.0]]) * largest), [0, 0, 1])
