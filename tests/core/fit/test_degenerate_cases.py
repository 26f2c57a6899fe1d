"""Degenerate cases, limits and substitutes of a fit; see benchmarks/mutants.py."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import oracles
import pytest
from models import member_or_ensemble, plain_ensemble, plain_member
from numpy.testing import assert_allclose
from parametrisations import intercepts, weightings

from ulmus.core.arrays.linalg import cholesky
from ulmus.core.noise.constant import pilot_noise
from ulmus.core.ridge.alpha import ALPHA_MEMBERS, ALPHA_UNITS, n_alpha_members
from ulmus.core.ridge.member_pairs import member_groups
from ulmus.core.variance.estimates import PointParts, positive_part, sufficient_members
from ulmus.core.variance.undersmoothing import UNDERSMOOTHING_GRID, UndersmoothingPath
from ulmus.exceptions import DegenerateFitWarning

# Members and neurons: forms of features, forms of rows.
sizes = pytest.mark.parametrize("size", [(4, 6), (6, 9)])

# ---------------------------------------------------------------- negative variances


def test_members_count_as_uncorrelated_only_where_their_mean_has_no_variance():
    M = 4
    U = np.array([0.5, 0.0, -0.2, -0.4, -1.0])
    A, spread = np.full(5, 1.0), np.array([0.1, 2.0, 3.0, 0.5, 2.5])
    # Variance of a mean of M numbers of variance A and covariance U.
    of_mean = [np.mean(np.where(np.eye(M) == 1, a, u)) for a, u in zip(A, U, strict=True)]
    assert np.min(of_mean) < 0 < of_mean[2]
    uncorrelated = [np.mean(np.diag(np.full(M, a))) for a in A]
    noise = [v if v > 0 else alone for v, alone in zip(of_mean, uncorrelated, strict=True)]
    weights = [max(s - (a - u), 0) / M for s, a, u in zip(spread, A, U, strict=True)]
    ours = positive_part(PointParts(np.zeros(5), spread, A, U, A, M))
    assert_allclose(ours, np.add(noise, weights), rtol=1e-12)


@pytest.mark.parametrize("spread", [0.0, 0.19, 0.21, 0.31, 4.05])
def test_sufficient_members_are_the_fewest_that_may_be_distinguished(spread):
    # With U = 1, redrawing the weights adds the share spread / M to the variance.
    one = np.ones((1, 1))
    fewest = next(M for M in range(2, 100) if spread / M <= 0.1)
    ours = sufficient_members(PointParts(one, spread * one, one, one, one, 5), 0.1, 1.0)
    assert ours == fewest


# ---------------------------------------------------------------- the noise of each row


def pooled_squares(args):
    """Residuals of the members, discounted as HC2 does, averaged and then squared; (n,)."""
    H, _, y, alpha, intercept, w = args
    squares = oracles.omega("HC2", H, y, alpha, intercept, w)
    signs = np.sign(oracles.residuals(H, y, alpha, intercept, w))
    return np.mean(signs * np.sqrt(squares), axis=0) ** 2


@weightings
@sizes
@pytest.mark.parametrize("hc", ["HC0", "HC3", "pooled"])
def test_rows_keep_their_pooled_squares_whatever_the_discount(fit_with_oracle, size, hc, weighted):
    how = {"noise": "heteroskedastic", "alpha": 0.3, "hc": hc}
    model, args, _ = fit_with_oracle(*size, weighted=weighted, **how)
    fit = model.fitted_
    assert_allclose(fit.rows.omega[0] * fit.ensemble.unit**2, pooled_squares(args), rtol=1e-8)


@weightings
@intercepts
@sizes
def test_pooled_residuals_are_one_noise_for_all_members(fit_with_oracle, size, intercept, weighted):
    estimates = ["S1", "NHe", "S2", "S3"]
    how = {"alpha": 0.3, "fit_intercept": intercept, "hc": "pooled", "variance": estimates}
    model, args, X = fit_with_oracle(*size, weighted=weighted, noise="heteroskedastic", **how)
    H, h, _, alpha, _, w = args
    z = oracles.smoother_rows(H, h, alpha, intercept, w, weighted=True)
    S = [np.diag(pooled_squares(args))] * len(H)
    for name in estimates:
        expected = getattr(oracles, name.lower())(z, S) + oracles.spread(*args) / len(H)
        ours = model.predict_var(X, component="model", estimate=name)
        assert_allclose(ours, expected, rtol=1e-8, err_msg=name)


@weightings
@intercepts
@pytest.mark.parametrize("hc", ["pooled", "HC2"])
def test_shared_residuals_of_one_network_are_its_own(fit_with_oracle, hc, intercept, weighted):
    how = {"alpha": 0.3, "fit_intercept": intercept, "noise": "heteroskedastic", "hc": hc}
    model, (H, h, y, *rest), X = fit_with_oracle(1, 6, weighted=weighted, **how)
    ours = model.predict_var(X, component="model")
    expected = oracles.noise_part("S1", H, h, y, *rest, hc="HC2")
    assert_allclose(ours, expected, rtol=1e-8)


# ---------------------------------------------------------------- the pilot's noise variance


@intercepts
def test_the_pilot_leaves_enough_residual_degrees_of_freedom(
    fit_with_oracle, make_table, intercept
):
    n, members, neurons = 60, 4, 30
    X = make_table(n).X
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * np.random.default_rng(1).normal(size=n)
    how = {"fit_intercept": intercept, "alpha": 0.1, "weight_scale": 6.0}
    model, (H, *_), _ = fit_with_oracle(members, neurons, n=n, y=y, **how)
    wide = [np.hstack(H[member_groups(members, neurons)[0]])]
    centred = wide[0] - wide[0].mean(axis=0) if intercept else wide[0]
    grid = UNDERSMOOTHING_GRID * np.linalg.norm(centred, 2) ** 2
    best = np.argmin([oracles.gcv_score(wide, y, a, intercept) for a in grid])
    left = n - np.array([oracles.dof(wide, a, intercept) for a in grid])
    pilot = np.flatnonzero(left >= 35)[0]
    assert grid[best] / 100 < grid[pilot]  # the limit is what decides
    expected = oracles.noise_variance(wide, y, grid[pilot], intercept)
    # The members leave enough as well, and then the smaller of both counts.
    members_dof = oracles.dof(list(H), model.alpha_, intercept)
    if n - members_dof >= 35:
        expected = min(expected, oracles.noise_variance(H, y, model.alpha_, intercept))
    assert_allclose(model.noise_variance_, expected, rtol=1e-7)


@pytest.mark.parametrize("best", [3, 10, 15, 30, 50])
def test_the_pilot_is_two_decades_below_the_best_but_never_too_rough(best):
    n, steps = 100, len(UNDERSMOOTHING_GRID)
    left = np.linspace(1, 99, steps)  # residual degrees of freedom, more for each step
    gcv = np.abs(np.arange(steps) - best)[:, None].astype(float)
    noise_of_step = np.arange(1.0, steps + 1)
    rss = (noise_of_step * left)[:, None]
    path = UndersmoothingPath(UNDERSMOOTHING_GRID, n - left, n - left, rss, gcv, np.ones(1), n)
    (ours,) = pilot_noise(path)
    allowed = [
        step
        for step in range(steps)
        if UNDERSMOOTHING_GRID[step] >= UNDERSMOOTHING_GRID[best] / 100 * (1 - 1e-9)
        and left[step] >= 35
    ]
    assert_allclose(ours, noise_of_step[min(allowed)], rtol=1e-12)


# ---------------------------------------------------------------- hidden units


@pytest.mark.parametrize("alpha", [0.0, 1e-20])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_units_that_never_change_leave_the_mean(make_table, size, alpha):
    # Their differences are round-off, of the size of the units themselves.
    data = make_table(37)

    def constant(u):
        return np.zeros_like(u) + size / 3

    model = plain_ensemble(3, 5, activation=constant, alpha=alpha, random_state=0)
    model.set_params(noise_variance="residual")
    degenerate = pytest.warns(DegenerateFitWarning) if alpha == 0 else nullcontext()
    with degenerate:
        model.fit(data.X, data.y)
    assert_allclose(model.predict(data.X_new), np.mean(data.y), rtol=1e-10)
    assert_allclose(model.rank_, 1)
    assert_allclose(model.noise_variance_, np.var(data.y, ddof=1), rtol=1e-10)


def test_least_squares_needs_one_row_more_than_its_rank(make_table):
    data = make_table(40)
    model = plain_member(9, alpha=0.0, weight_scale=3.0, random_state=0)
    model.set_params(noise_variance="residual").fit(data.X[:11], data.y[:11])
    assert model.rank_ == 10
    with pytest.raises(ValueError, match="rank 10 and there are 10 rows"):
        model.fit(data.X[:10], data.y[:10])


# ---------------------------------------------------------------- factorisations


@pytest.mark.parametrize("below", [1e-14, 1e-10, 1e-5])
def test_the_diagonal_is_raised_by_what_a_factor_needs(below):
    # The least eigenvalue of a correlation of r > 1 is 1 - r.
    A = np.eye(4)
    A[0, 1] = A[1, 0] = 1 + below
    (L,) = cholesky(A[None])
    raised = L @ L.T - A
    shift = raised[0, 0]
    assert_allclose(raised, shift * np.eye(4), atol=1e-15)
    assert 0.9 * below < shift < 11 * below
    assert_allclose(L, np.tril(L))


def test_a_matrix_that_has_a_factor_is_left_alone():
    A = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert_allclose(cholesky(A[None])[0], np.linalg.cholesky(A), rtol=1e-15)


# ---------------------------------------------------------------- the undersmoothing gap


def test_the_undersmoothing_gap_uses_every_row_of_a_table_of_500(make_table):
    data = make_table(500)
    model = member_or_ensemble(4, 6, alpha=0.1).fit(data.X, data.y)
    alarms = []
    for rows in (slice(0, None), slice(0, None, 2), slice(1, None, 2)):
        fit = replace(model.fitted_, gap_points=data.X[rows])
        alarms.append(fit.undersmoothing_gap)
    assert model.undersmoothing_gap_ == alarms[0] == max(alarms[1:])
    assert len(model.fitted_.gap_points) == 500


# ---------------------------------------------------------------- the choice of alpha


@pytest.mark.parametrize("members", [1, 3, 5, 40])
@pytest.mark.parametrize("neurons", [1, 100, 399, 450, 700, 1000, 1500, 5000])
def test_members_that_choose_alpha_have_so_many_units_together(members, neurons):
    n = n_alpha_members(members, neurons)
    most = min(members, ALPHA_MEMBERS)
    assert 1 <= n <= most
    # Neither one more nor one less would be nearer to the number of units wanted.
    distance = [abs(k * neurons - ALPHA_UNITS) for k in range(1, most + 1)]
    assert distance[n - 1] == min(distance)
