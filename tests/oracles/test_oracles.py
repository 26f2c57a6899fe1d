"""The algebra of the oracles: identities, limits and brute force that they must agree with."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle_problems import HETEROSKEDASTIC, N_NEURONS, N_ROWS, M, alphas, noisy_table
from parametrisations import intercepts, weightings

HC = ["HC0", "HC2", "HC3", "pooled", "HC3-exact"]


@intercepts
def test_ridge_inverse_is_the_normal_equations(oracle_problem, row_weights, intercept):
    H, _, _ = oracle_problem
    A = np.sqrt(row_weights)[:, None] * oracles.design(H[0], intercept)
    D = np.diag([0.0] * intercept + [1.0] * N_NEURONS)
    normal = np.linalg.inv(A.T @ A + 0.05 * D) @ A.T
    ours = oracles.ridge_inverse(H[0], 0.05, intercept, row_weights)
    assert_allclose(ours, normal, rtol=1e-8, atol=1e-10)


@intercepts
def test_least_squares_is_the_limit_of_ridge_when_rank_deficient(oracle_problem, intercept):
    H, h, y = oracle_problem
    H = [np.column_stack([A, A[:, 0], np.full(len(A), 2.0)]) for A in H]
    h = [np.column_stack([A, A[:, 0], np.full(len(A), 2.0)]) for A in h]
    limit = oracles.coefficients(H, y, 1e-8, intercept)
    assert_allclose(oracles.coefficients(H, y, 0, intercept), limit, rtol=1e-4, atol=1e-5)
    rank = N_NEURONS + 1
    assert_allclose(oracles.dof(H, 0, intercept), rank, rtol=1e-10)
    f, f_limit = (oracles.predictions(H, h, y, a, intercept) for a in [0, 1e-8])
    assert_allclose(f, f_limit, rtol=1e-5)


@alphas
@intercepts
@weightings
def test_loo_formula_is_brute_force(oracle_problem, row_weights, alpha, intercept, weighted):
    H, _, y = oracle_problem
    args = (H, y, alpha, intercept, row_weights if weighted else None)
    brute = oracles.loo_residuals_brute_force(*args)
    assert_allclose(oracles.loo_residuals(*args), brute, rtol=1e-8, atol=1e-10)


@alphas
@intercepts
@weightings
def test_jackknife_refits_are_the_closed_form(
    oracle_problem, row_weights, alpha, intercept, weighted
):
    # f_-i(x) = f(x) - 1/M sum_m z_mi(x) r_mi / (1 - p_mi).
    H, h, y = oracle_problem
    w = row_weights if weighted else None
    z = oracles.smoother_rows(H, h, alpha, intercept, w)
    loo = oracles.loo_residuals(H, y, alpha, intercept, w)
    f = oracles.predictions(H, h, y, alpha, intercept, w)
    closed = np.mean(f, axis=0) - np.einsum("mpi,mi->ip", z, loo) / M
    refits, R = oracles.jackknife_refits(H, h, y, alpha, intercept, w)
    assert_allclose(refits, closed, rtol=1e-8, atol=1e-10)
    assert_allclose(R, np.abs(np.mean(loo, axis=0)), rtol=1e-8, atol=1e-10)


@alphas
@intercepts
def test_smoother_rows_predict_from_raw_and_weighted_targets(
    oracle_problem, row_weights, alpha, intercept
):
    H, h, y = oracle_problem
    f = oracles.predictions(H, h, y, alpha, intercept, row_weights)
    raw = oracles.smoother_rows(H, h, alpha, intercept, row_weights)
    white = oracles.smoother_rows(H, h, alpha, intercept, row_weights, weighted=True)
    assert_allclose(raw @ y, f, rtol=1e-8)
    assert_allclose(white @ (np.sqrt(row_weights) * y), f, rtol=1e-8)
    P = oracles.hat_matrix(H, alpha, intercept, row_weights)
    assert_allclose(P, np.swapaxes(P, 1, 2), atol=1e-10)
    if alpha == 0:
        assert_allclose(P @ P, P, atol=1e-9)


@alphas
@intercepts
@pytest.mark.parametrize("hc", HC)
def test_zero_weights_are_dropped_rows(oracle_problem, row_weights, alpha, intercept, hc):
    H, h, y = oracle_problem
    keep = np.arange(N_ROWS) >= 8
    zeroed = np.where(keep, row_weights, 0)
    full = (H, h, y, alpha, intercept, zeroed)
    kept = ([A[keep] for A in H], h, y[keep], alpha, intercept, row_weights[keep])
    for name in ["NHo", "BR", *HETEROSKEDASTIC]:
        ours = oracles.variance(name, *full, hc=hc)
        assert_allclose(ours, oracles.variance(name, *kept, hc=hc), rtol=1e-8)
    for score in [oracles.gcv_score, oracles.loo_score, oracles.noise_variance]:
        ours = score(H, y, alpha, intercept, zeroed)
        assert_allclose(ours, score(kept[0], *kept[2:]), rtol=1e-8)


@alphas
@pytest.mark.parametrize("hc", HC)
def test_weights_are_rows_times_their_root(oracle_problem, row_weights, alpha, hc):
    H, h, y = oracle_problem
    scaled = ([np.sqrt(row_weights)[:, None] * A for A in H], h, np.sqrt(row_weights) * y, alpha)
    for name in ["NHo", "BR", *HETEROSKEDASTIC]:
        ours = oracles.variance(name, H, h, y, alpha, w=row_weights, hc=hc)
        assert_allclose(ours, oracles.variance(name, *scaled, hc=hc), rtol=1e-8)


@alphas
@intercepts
def test_weights_count_up_to_a_constant(oracle_problem, row_weights, alpha, intercept):
    # The penalty is in the units of row_weights: both times 10 is the same fit.
    H, h, y = oracle_problem
    for name in ["BR", "S2"]:
        one = oracles.variance(name, H, h, y, alpha, intercept, row_weights)
        ten = oracles.variance(name, H, h, y, 10 * alpha, intercept, 10 * row_weights)
        assert_allclose(ten, one, rtol=1e-8)


def balanced():
    """Harmonics on a regular grid: every leverage is 5/60, so all corrections agree."""
    t = 2 * np.pi * np.arange(N_ROWS) / N_ROWS
    waves = [np.cos(t), np.sin(t), np.cos(2 * t), np.sin(2 * t)]
    return [np.column_stack([np.ones(N_ROWS), *waves])]


@pytest.mark.parametrize("kind", ["HC2", "pooled"])
def test_hc_corrections_agree_in_a_balanced_design(kind):
    _, y, _ = noisy_table()
    H = balanced()
    assert_allclose(oracles.leverage(H, 0), 5 / 60, rtol=1e-10)
    expected = oracles.omega("HC0", H, y, 0) / (1 - 5 / 60)
    assert_allclose(oracles.omega(kind, H, y, 0), expected, rtol=1e-8)


@alphas
@intercepts
def test_hc2_is_unbiased_for_pure_noise(oracle_problem, alpha, intercept):
    # E (a'e)^2 = |a|^2 sigma2 for any row a of I - P: the exact expectation, by columns.
    H, _, _ = oracle_problem
    columns = [oracles.omega("HC2", H, e, alpha, intercept) for e in np.eye(N_ROWS)]
    assert_allclose(np.sum(columns, axis=0), 1, rtol=1e-8)


@alphas
@intercepts
def test_homoskedastic_estimates_are_the_heteroskedastic_with_sigma2(
    oracle_problem, row_weights, alpha, intercept
):
    args = (*oracle_problem, alpha, intercept, row_weights)
    for homo, hetero in [("NHo", "NHe"), ("BR", "S2"), ("BR", "S3")]:
        ours = oracles.variance(hetero, *args, hc="homoskedastic")
        assert_allclose(oracles.variance(homo, *args), ours, rtol=1e-8)


@alphas
@intercepts
@pytest.mark.parametrize("kind", ["homoskedastic", "HC2", "HC3-exact"])
def test_components_sum_to_the_variance(oracle_problem, row_weights, alpha, intercept, kind):
    args = (*oracle_problem, alpha, intercept, row_weights)
    parts = oracles.components(*args, kind=kind)
    total = oracles.variance("S2", *args, hc=kind)
    assert_allclose(np.sum(parts, axis=0), total, rtol=1e-8)
    # The first two terms are the variance given the hidden weights, mu' Sigma mu.
    given = oracles.noise_part("NHe", *args, hc=kind)
    assert_allclose(parts[0] + parts[1], given, rtol=1e-8)
    plus = oracles.positive_part_variance(*args, kind=kind)
    assert_allclose(plus, np.maximum(total, given), rtol=1e-8)
    assert_allclose(oracles.variance_at(M, *args, kind=kind), total, rtol=1e-8)


def test_member_correlation_lies_below_its_bound_where_the_third_term_is_positive(oracle_problem):
    args = (*oracle_problem, 0.05)
    correlation = oracles.member_correlation(*args)
    bound = oracles.member_correlation_bound(*args)
    third = oracles.components(*args)[2]
    assert_array_equal(correlation < bound, third > 0)
    assert np.any(third > 0)
    z = oracles.smoother_rows(*oracle_problem[:2], 0.05)
    mu = np.mean(z, axis=0)
    trace = np.sum(np.var(z, axis=0, ddof=1), axis=1)
    mu_mu = np.sum(mu**2, axis=1) - trace / M
    assert_allclose(bound, mu_mu / (mu_mu + trace), rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 1.0])
def test_gcv_is_leave_one_out_after_levelling_the_leverages(oracle_problem, alpha):
    # Golub, Heath & Wahba (1979), section 2: rotate the rows by the left singular vectors,
    # then by the Fourier matrix; every leverage becomes tr P / n and PRESS becomes GCV.
    H, _, y = oracle_problem
    U = np.linalg.svd(H[0])[0]
    fourier = np.fft.fft(np.eye(N_ROWS), norm="ortho")
    A, target = (fourier @ U.T) @ H[0], (fourier @ U.T) @ y
    P = A @ np.linalg.inv(A.conj().T @ A + alpha * np.eye(N_NEURONS)) @ A.conj().T
    press = np.mean(np.abs((target - P @ target) / (1 - np.diag(P))) ** 2)
    assert_allclose(oracles.gcv_score(H[:1], y, alpha), press, rtol=1e-8)


@alphas
@intercepts
def test_scores_of_an_ensemble(oracle_problem, row_weights, alpha, intercept):
    # LOO scores the averaged prediction, GCV averages the scores of the members.
    H, _, y = oracle_problem
    loo = oracles.loo_residuals_brute_force(H, y, alpha, intercept, row_weights)
    ours = oracles.loo_score(H, y, alpha, intercept, row_weights)
    assert_allclose(ours, np.sum(row_weights * np.mean(loo, axis=0) ** 2), rtol=1e-8)
    each = [oracles.gcv_score([H_m], y, alpha, intercept, row_weights) for H_m in H]
    assert_allclose(
        oracles.gcv_score(H, y, alpha, intercept, row_weights), sum(each) / M, rtol=1e-8
    )


def test_jackknife_bounds_are_infinite_when_the_rank_exceeds_the_sample(oracle_problem):
    H, h, y = oracle_problem
    H, y = [A[:15] for A in H], y[:15]
    bounds = oracles.jackknife_plus_bounds(H, h, y, 0.05, 0.01)
    assert np.all(bounds[:, 0] == -np.inf)
    assert np.all(bounds[:, 1] == np.inf)


@pytest.mark.parametrize(("miscoverage", "n", "rank"), [(0.1, 9, 9), (0.1, 60, 55)])
def test_upper_rank_survives_rounding(miscoverage, n, rank):
    assert oracles.upper_rank(miscoverage, n) == rank
    assert n + 1 - rank == int(np.floor(np.round(miscoverage * (n + 1), 9)))
