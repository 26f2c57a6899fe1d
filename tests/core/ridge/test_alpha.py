"""The choice of alpha and the noise variance, against the textbook formulas."""

import numpy as np
import oracles
import pytest
from interval_methods import every_interval
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose
from parametrisations import intercepts, weightings
from sklearn.base import clone

from ulmus.core.ridge import alpha as alpha_choice
from ulmus.core.ridge.alpha import RELATIVE_GRID
from ulmus.core.ridge.member_pairs import member_groups

few_rows = pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")


# ---------------------------------------------------------------- alpha


def alpha_grid(H, intercept, w):
    """Grid relative to the largest singular value of all (centred, weighted) members."""
    root = oracles.root_weights(len(H[0]), w)
    largest = 0.0
    for H_m in H:
        center = np.average(H_m, axis=0, weights=w) if intercept else 0.0
        largest = max(largest, np.linalg.norm(root[:, None] * (H_m - center), 2))
    return RELATIVE_GRID * largest**2


@pytest.mark.slow
@weightings
@intercepts
@pytest.mark.parametrize("size", [(60, 4), (40, 5)])  # rows and members
@pytest.mark.parametrize("criterion", ["loo", "gcv"])
def test_alpha_minimises_the_score(make_table, hidden, criterion, size, intercept, weighted):
    n, M = size
    data = make_table(n)
    y, w = data.y, data.w if weighted else None
    model = plain_ensemble(M, 25, alpha=criterion, fit_intercept=intercept, random_state=0)
    model.set_params(weight_scale=2.0, noise_variance="residual").fit(data.X, y, w)
    H = hidden(model, data.X, data.X, w)
    grid = alpha_grid(H, intercept, w)
    score = {"loo": oracles.loo_score, "gcv": oracles.gcv_score}[criterion]
    best = np.argmin([score(H, y, a, intercept, w) for a in grid])
    assert 0 < best < len(grid) - 1
    assert_allclose(model.alpha_, grid[best], rtol=1e-8)


def test_scores_of_many_rows_are_from_a_sample(make_table, monkeypatch):
    data = make_table(4000)
    model = plain_ensemble(3, 25, weight_scale=2.0, noise_variance="residual", random_state=0)
    exact = clone(model).fit(data.X, data.y).alpha_
    monkeypatch.setattr(alpha_choice, "SCORED_ROWS", 2000)
    scored = []
    add = alpha_choice.LeaveOneOutPass._add

    def counted(self, total, block, d):
        scored.append(block.y.shape[1])
        add(self, total, block, d)

    monkeypatch.setattr(alpha_choice.LeaveOneOutPass, "_add", counted)
    sampled = clone(model).fit(data.X, data.y).alpha_
    assert 1850 < sum(scored) < 2150
    assert abs(np.log10(sampled / exact)) <= 0.5  # two steps of the grid
    # Rows are chosen by their numbers, whatever the blocks.
    blocks = [(data.X[a : a + 700], data.y[a : a + 700]) for a in range(0, 4000, 700)]
    assert_allclose(clone(model).fit_blocks(blocks).alpha_, sampled, rtol=1e-8)


def test_alpha_leaves_out_interpolating_fits(make_table, hidden):
    # More neurons than rows: the smallest alphas reproduce y and have no leave-one-out residual.
    data = make_table(25)
    model = plain_member(40, weight_scale=3.0, noise_variance="residual", random_state=0)
    model.fit(data.X, data.y)
    H = hidden(model, data.X, data.X)
    grid = alpha_grid(H, True, None)
    usable = grid > 1e-8 * grid[-1]
    scores = [oracles.loo_score(H, data.y, a, True) for a in grid[usable]]
    assert_allclose(model.alpha_, grid[usable][np.argmin(scores)], rtol=1e-8)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_gcv_of_a_layer_that_could_interpolate(make_table, hidden, seed):
    # Both the residuals and n - tr P vanish with alpha; their ratio does not. With the SVD of
    # the centred H neither is a difference of large numbers.
    data = make_table(20, seed=seed)
    model = plain_member(40, alpha="gcv", weight_scale=3.0, random_state=seed)
    model.set_params(noise_variance="residual").fit(data.X, data.y)
    (H,) = hidden(model, data.X, data.X)
    U, s, _ = np.linalg.svd(H - H.mean(axis=0), full_matrices=False)
    U, s = U[:, :19], s[:19]
    grid = RELATIVE_GRID * s[0] ** 2
    left = grid[:, None] / (s**2 + grid[:, None])
    scores = np.sum((left * (U.T @ data.y)) ** 2, axis=1) / np.sum(left, axis=1) ** 2
    assert np.argmin(scores) > 30
    assert_allclose(model.alpha_, grid[np.argmin(scores)], rtol=1e-8)


@pytest.mark.parametrize("criterion", ["loo", "gcv"])
def test_each_output_has_its_own_alpha(make_table, hidden, criterion):
    data = make_table()
    noise = np.random.default_rng(3).standard_normal(60)
    Y = np.column_stack([data.y, noise, 1e4 * np.cos(2 * data.X[:, 1])])
    model = plain_ensemble(3, 8, alpha=criterion, random_state=0).fit(data.X, Y)
    H = hidden(model, data.X, data.X)
    score = {"loo": oracles.loo_score, "gcv": oracles.gcv_score}[criterion]
    grid = alpha_grid(H, True, None)
    best = [grid[np.argmin([score(H, y, a, True) for a in grid])] for y in Y.T]
    assert_allclose(model.alpha_, best, rtol=1e-8)
    assert len(set(best)) > 1


def test_several_outputs_are_fits_of_one_each(make_table):
    # A pure-noise output asks for a strong ridge, which must not reach the others.
    data = make_table()
    Y = np.column_stack([data.y, np.random.default_rng(3).standard_normal(60), -(data.y**2)])
    for noise in ("homoskedastic", "heteroskedastic"):
        model = plain_ensemble(3, 8, noise=noise, random_state=0)
        together = clone(model).fit(data.X, Y)
        for k, y in enumerate(Y.T):
            alone = clone(model).fit(data.X, y)
            for name in ("alpha_", "noise_variance_", "dof_"):
                ours = getattr(together, name)[k]
                assert_allclose(ours, getattr(alone, name), rtol=1e-8, err_msg=name)
            for name in ("leverage_", "loo_residuals_", "loo_predictions_"):
                ours = getattr(together, name)[:, k]
                assert_allclose(ours, getattr(alone, name), rtol=1e-7, atol=1e-9, err_msg=name)
            every = every_interval(together, data.X_new, [0.5, 0.9])
            for name, expected in every_interval(alone, data.X_new, [0.5, 0.9]).items():
                assert_allclose(every[name][:, k], expected, rtol=1e-6, atol=1e-8, err_msg=name)


# ---------------------------------------------------------------- noise variance


@few_rows
@weightings
@intercepts
@pytest.mark.parametrize("members", [1, 2, 5, 9])
def test_pilot_noise_is_the_residual_noise_of_an_undersmoothed_network(
    make_table, hidden, members, intercept, weighted
):
    # A hundredth of the best alpha leaves less squared bias in the residuals.
    data = make_table(90)
    w = data.w if weighted else None
    model = plain_ensemble(members, 7, variance="NHo", weight_scale=2.0, random_state=0)
    model.set_params(fit_intercept=intercept).fit(data.X, data.y, sample_weight=w)
    first_group = member_groups(members, 7)[0]
    group = [np.hstack(hidden(model, data.X, data.X, w)[first_group])]
    grid = alpha_grid(group, intercept, w)
    best = np.argmin([oracles.gcv_score(group, data.y, a, intercept, w) for a in grid])
    assert 12 < best < len(grid) - 1
    pilot = grid[best] / 100
    # A fifth of the rows, at least, remain residual degrees of freedom.
    assert oracles.dof(group, pilot, intercept, w) < 0.8 * len(data.y)
    expected = oracles.noise_variance(group, data.y, pilot, intercept, w)
    assert_allclose(model.noise_variance_, expected, rtol=1e-8)
    # A new observation is also as far from the prediction as the prediction is biased.
    H = hidden(model, data.X, data.X, w)
    residual = oracles.noise_variance(H, data.y, model.alpha_, intercept, w)
    ours = model.predict_var(data.X_new, component="noise")
    mean_weight = np.mean(w) if weighted else 1.0
    assert_allclose(ours, max(expected, residual) / mean_weight, rtol=1e-8)


@few_rows
@pytest.mark.parametrize("weight_scale", [0.3, 3.0])
@pytest.mark.parametrize("n_rows", [12, 25, 60])
def test_pilot_noise_of_a_layer_that_could_interpolate(make_table, n_rows, weight_scale):
    # The true noise variance is 0.0975 on average. Twelve rows leave two or three residual
    # degrees of freedom, so only the order of magnitude is tested.
    data = make_table(n_rows)
    model = plain_member(80, weight_scale=weight_scale, random_state=0).fit(data.X, data.y)
    assert 0.001 < model.noise_variance_ < 1


@few_rows
@pytest.mark.parametrize(
    ("seed", "parameters"),
    [
        (8, {"alpha": "gcv", "noise_variance": "residual"}),
        (72, {"alpha": "loo", "noise_variance": "residual"}),
        (20, {"noise": "heteroskedastic"}),
        (72, {"noise": "heteroskedastic"}),
    ],
)
def test_noise_stays_finite_where_the_best_alpha_nearly_interpolates(seed, parameters):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((25, 3))
    y = X[:, 0] + 0.3 * rng.standard_normal(25)
    model = plain_member(40, weight_scale=3.0, random_state=seed, **parameters).fit(X, y)
    assert np.isfinite(model.noise_variance_)
    assert np.all(np.isfinite(model.predict_var(X)))


def test_noise_of_an_output_does_not_depend_on_the_units_of_another(make_table):
    data = make_table(n=40)
    other = np.random.default_rng(5).standard_normal(40)
    noise = [
        plain_ensemble(4, 30, alpha=1.0, random_state=0)
        .fit(data.X, np.column_stack([data.y, c * other]))
        .noise_variance_[0]
        for c in (1e-4, 1e4)
    ]
    assert_allclose(noise[0], noise[1], rtol=1e-8)
