"""The oracles against the peers they stand for: UncELMe, statsmodels, scikit-learn."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal

N_ROWS, N_POINTS, N_NEURONS, M = 60, 7, 9, 5
HETEROSKEDASTIC = ["S1", "NHe", "S2", "S3"]
HC = ["HC0", "HC1", "HC2", "HC3", "HC4", "ensemble", "HC3-exact"]


def table(seed=0):
    """X, noisy y and new points: 3 inputs in [-1, 1], noise growing with the first."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N_ROWS, 3))
    noise = rng.standard_normal(N_ROWS) * (0.2 + 0.1 * X[:, 0])
    y = 1 + np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + noise
    return X, y, rng.uniform(-1, 1, (N_POINTS, 3))


def hidden(X, seed=1, members=M, neurons=N_NEURONS):
    """Logistic hidden matrices of `members` draws, the same draws for the same seed."""
    rng = np.random.default_rng(seed)
    W = rng.uniform(-3, 3, (members, X.shape[1], neurons))
    b = rng.uniform(-3, 3, (members, 1, neurons))
    return list(1 / (1 + np.exp(-(X @ W + b))))


@pytest.fixture
def problem():
    """H, h, y."""
    X, y, X_new = table()
    return hidden(X), hidden(X_new), y


@pytest.fixture
def w():
    """Weights between 0.3 and 3."""
    return np.random.default_rng(2).uniform(0.3, 3, N_ROWS)


alphas = pytest.mark.parametrize("alpha", [0.0, 0.05])
intercepts = pytest.mark.parametrize("intercept", [False, True])


# ---------------------------------------------------------------- UncELMe 1.1


def uncelme(alpha, n_neurons=N_NEURONS, weight_scl=3.0):
    """A fitted UncELMe ensemble, its H and h from its own weights, and y."""
    unc = pytest.importorskip("UncELMe.elm_ensemble")
    settings = {"n_estimators": M, "n_neurons": n_neurons, "random_state": 3}
    settings["weight_scl"] = weight_scl
    if alpha == 0:
        ensemble = unc.ELMEnsemble(**settings)
    else:
        ensemble = unc.ELMEnsembleRidge(alpha=alpha, **settings)
    X, y, X_new = table()
    state = np.random.get_state()  # noqa: NPY002 (UncELMe seeds the global generator)
    ensemble.fit(X, y)
    np.random.set_state(state)  # noqa: NPY002
    layers = [(e.coef_hidden_, e.intercept_hidden_) for e in ensemble.estimators_]
    H = [1 / (1 + np.exp(-(X @ W + b))) for W, b in layers]
    h = [1 / (1 + np.exp(-(X_new @ W + b))) for W, b in layers]
    return ensemble, ensemble.predict(X_new), H, h, y


@alphas
def test_predictions_are_uncelme(alpha):
    _, f, H, h, y = uncelme(alpha)
    ours = oracles.predictions(H, h, y, alpha)
    assert_allclose(np.mean(ours, axis=0), f, rtol=1e-8)


@alphas
@pytest.mark.parametrize(("name", "theirs"), [("NHo", "naive"), ("BR", "bias-reduced")])
def test_homoskedastic_estimates_are_uncelme(alpha, name, theirs):
    ensemble, _, H, h, y = uncelme(alpha)
    variance, noise = ensemble.homoskedastic_variance(theirs)
    assert_allclose(oracles.noise_variance(H, y, alpha), noise, rtol=1e-8)
    assert_allclose(oracles.variance(name, H, h, y, alpha), variance, rtol=1e-8)


@alphas
@pytest.mark.parametrize(("hc", "approx"), [("HC3", True), ("HC3-exact", False)])
@pytest.mark.parametrize("name", HETEROSKEDASTIC)
def test_heteroskedastic_estimates_are_uncelme(alpha, name, hc, approx):
    ensemble, _, H, h, y = uncelme(alpha)
    theirs = "naive" if name == "NHe" else name
    variance, noise = ensemble.heteroskedastic_variance(theirs, approx, True)
    assert_allclose(oracles.variance(name, H, h, y, alpha, hc=hc), variance, rtol=1e-8)
    assert_allclose(np.mean(oracles.omega("HC3", H, y, alpha), axis=0), noise, rtol=1e-8)


def test_uncelme_counts_neurons_where_the_rank_is_smaller():
    # Slow logistic units are collinear to 1e-8: pinv drops directions, n - N does not.
    ensemble, _, H, _, y = uncelme(0.0, n_neurons=40, weight_scl=0.1)
    ours, theirs = oracles.noise_variance(H, y, 0), ensemble.homoskedastic_variance()[1]
    gamma = oracles.dof(H, 0)
    assert gamma < 39
    assert_allclose(ours * (N_ROWS - gamma), theirs * (N_ROWS - 40), rtol=1e-6)


def test_uncelme_gcv_lacks_the_square():
    # Golub, Heath & Wahba (1979): n ||r||^2 / (n - tr P)^2. UncELMe 1.1 has ||r||, so it
    # oversmooths; with its norm squared the criteria agree.
    unc = pytest.importorskip("UncELMe.elm_estimator")
    X, y, _ = table()
    grid = np.logspace(-4, 1, 6)
    state = np.random.get_state()  # noqa: NPY002
    elm = unc.ELMRidgeCV(n_neurons=9, alphas=grid, random_state=3).fit(X, y)
    np.random.set_state(state)  # noqa: NPY002
    H = [elm.H_]
    norm = [np.linalg.norm(oracles.residuals(H, y, a)) for a in grid]
    ours = [oracles.gcv_score(H, y, a) for a in grid]
    assert_allclose(elm.GCV * norm, ours, rtol=1e-8)
    assert elm.alpha_opt > grid[np.argmin(ours)]


# ---------------------------------------------------------------- statsmodels


@intercepts
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["HC0", "HC1", "HC2", "HC3"])
def test_hc_variances_are_statsmodels(problem, w, kind, intercept, weighted):
    sm = pytest.importorskip("statsmodels.api")
    H, h, y = problem
    H, h, w = H[:1], h[:1], w if weighted else None
    A, a = oracles.design(H[0], intercept), oracles.design(h[0], intercept)
    fitted = sm.WLS(y, A, weights=1.0 if w is None else w).fit()
    cov = fitted.get_robustcov_results(kind).cov_params()
    ours = oracles.noise_part("S1", H, h, y, 0, intercept, w, hc=kind)
    assert_allclose(ours, np.diag(a @ cov @ a.T), rtol=1e-8)


@intercepts
@pytest.mark.parametrize("weighted", [False, True])
def test_noise_variance_and_leverage_are_statsmodels(problem, w, intercept, weighted):
    sm = pytest.importorskip("statsmodels.api")
    H, h, y = problem
    H, h, w = H[:1], h[:1], w if weighted else None
    A, a = oracles.design(H[0], intercept), oracles.design(h[0], intercept)
    fitted = sm.WLS(y, A, weights=1.0 if w is None else w).fit()
    sigma2 = oracles.noise_variance(H, y, 0, intercept, w)
    assert_allclose(sigma2, fitted.scale, rtol=1e-8)
    ours = oracles.noise_part("NHo", H, h, y, 0, intercept, w)
    assert_allclose(ours, fitted.get_prediction(a).se_mean ** 2, rtol=1e-8)
    assert_allclose(oracles.dof(H, 0, intercept, w), A.shape[1], rtol=1e-10)
    # statsmodels has influence for OLS only: give it the weighted rows.
    root = oracles.root_weights(N_ROWS, w)
    influence = sm.OLS(root * y, root[:, None] * A).fit().get_influence()
    p = oracles.leverage(H, 0, intercept, w)[0]
    press = root * oracles.loo_residuals(H, y, 0, intercept, w)[0]
    assert_allclose(p, influence.hat_matrix_diag, rtol=1e-8)
    assert_allclose(press, influence.resid_press, rtol=1e-8)


# ---------------------------------------------------------------- scikit-learn


@intercepts
@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_and_predictions_are_sklearn_ridge(problem, w, intercept, weighted):
    linear_model = pytest.importorskip("sklearn.linear_model")
    H, h, y = problem
    w = w if weighted else None
    beta = oracles.coefficients(H, y, 0.05, intercept, w)
    f = oracles.predictions(H, h, y, 0.05, intercept, w)
    for m in range(M):
        ridge = linear_model.Ridge(0.05, fit_intercept=intercept, solver="cholesky")
        ridge.fit(H[m], y, sample_weight=w)
        assert_allclose(beta[m, int(intercept) :], ridge.coef_, rtol=1e-8)
        assert_allclose(f[m], ridge.predict(h[m]), rtol=1e-8)
        if intercept:
            assert_allclose(beta[m, 0], ridge.intercept_, rtol=1e-8)


@intercepts
@pytest.mark.parametrize("weighted", [False, True])
def test_loo_score_and_choice_are_sklearn_ridgecv(problem, w, intercept, weighted):
    linear_model = pytest.importorskip("sklearn.linear_model")
    H, _, y = problem
    H, w, grid = H[:1], w if weighted else None, np.logspace(-6, 2, 9)
    ridge = linear_model.RidgeCV(grid, fit_intercept=intercept, store_cv_results=True)
    ridge.fit(H[0], y, sample_weight=w)
    ours = [oracles.loo_score(H, y, a, intercept, w) for a in grid]
    assert_allclose(ours, np.sum(ridge.cv_results_, axis=0), rtol=1e-7)
    assert grid[np.argmin(ours)] == ridge.alpha_
    assert grid[0] < ridge.alpha_ < grid[-1]


@intercepts
def test_jackknife_plus_is_sklearn_leave_one_out(problem, intercept):
    linear_model = pytest.importorskip("sklearn.linear_model")
    H, h, y = problem
    low, high = [], []
    for i in range(N_ROWS):
        rest = np.arange(N_ROWS) != i
        f_i, f_x = 0.0, 0.0
        for m in range(M):
            ridge = linear_model.Ridge(0.05, fit_intercept=intercept, solver="cholesky")
            ridge.fit(H[m][rest], y[rest])
            f_i, f_x = f_i + ridge.predict(H[m][[i]])[0] / M, f_x + ridge.predict(h[m]) / M
        low.append(f_x - abs(y[i] - f_i))
        high.append(f_x + abs(y[i] - f_i))
    # n = 60, miscoverage 0.1: ranks floor(6.1) = 6 and ceil(54.9) = 55.
    ours = oracles.jackknife_plus_bounds(H, h, y, 0.05, 0.1, intercept)
    assert_allclose(ours[:, 0], np.sort(low, axis=0)[6 - 1], rtol=1e-8)
    assert_allclose(ours[:, 1], np.sort(high, axis=0)[55 - 1], rtol=1e-8)


# ---------------------------------------------------------------- the algebra


@intercepts
def test_ridge_inverse_is_the_normal_equations(problem, w, intercept):
    H, _, _ = problem
    A = np.sqrt(w)[:, None] * oracles.design(H[0], intercept)
    D = np.diag([0.0] * intercept + [1.0] * N_NEURONS)
    normal = np.linalg.inv(A.T @ A + 0.05 * D) @ A.T
    ours = oracles.ridge_inverse(H[0], 0.05, intercept, w)
    assert_allclose(ours, normal, rtol=1e-8, atol=1e-10)


@intercepts
def test_least_squares_is_the_limit_of_ridge_when_rank_deficient(problem, intercept):
    H, h, y = problem
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
@pytest.mark.parametrize("weighted", [False, True])
def test_loo_formula_is_brute_force(problem, w, alpha, intercept, weighted):
    H, _, y = problem
    args = (H, y, alpha, intercept, w if weighted else None)
    brute = oracles.loo_residuals_brute_force(*args)
    assert_allclose(oracles.loo_residuals(*args), brute, rtol=1e-8, atol=1e-10)


@alphas
@intercepts
@pytest.mark.parametrize("weighted", [False, True])
def test_jackknife_refits_are_the_closed_form(problem, w, alpha, intercept, weighted):
    # STATISTICS C: f_-i(x) = f(x) - 1/M sum_m z_mi(x) r_mi / (1 - p_mi).
    H, h, y = problem
    w = w if weighted else None
    z = oracles.smoother_rows(H, h, alpha, intercept, w)
    loo = oracles.loo_residuals(H, y, alpha, intercept, w)
    f = oracles.predictions(H, h, y, alpha, intercept, w)
    closed = np.mean(f, axis=0) - np.einsum("mpi,mi->ip", z, loo) / M
    refits, R = oracles.jackknife_refits(H, h, y, alpha, intercept, w)
    assert_allclose(refits, closed, rtol=1e-8, atol=1e-10)
    assert_allclose(R, np.abs(np.mean(loo, axis=0)), rtol=1e-8, atol=1e-10)


@alphas
@intercepts
def test_smoother_rows_predict_from_raw_and_weighted_targets(problem, w, alpha, intercept):
    H, h, y = problem
    f = oracles.predictions(H, h, y, alpha, intercept, w)
    raw = oracles.smoother_rows(H, h, alpha, intercept, w)
    white = oracles.smoother_rows(H, h, alpha, intercept, w, weighted=True)
    assert_allclose(raw @ y, f, rtol=1e-8)
    assert_allclose(white @ (np.sqrt(w) * y), f, rtol=1e-8)
    P = oracles.hat_matrix(H, alpha, intercept, w)
    assert_allclose(P, np.swapaxes(P, 1, 2), atol=1e-10)
    if alpha == 0:
        assert_allclose(P @ P, P, atol=1e-9)


@alphas
@intercepts
@pytest.mark.parametrize("hc", HC)
def test_zero_weights_are_dropped_rows(problem, w, alpha, intercept, hc):
    H, h, y = problem
    keep = np.arange(N_ROWS) >= 8
    zeroed = np.where(keep, w, 0)
    full = (H, h, y, alpha, intercept, zeroed)
    kept = ([A[keep] for A in H], h, y[keep], alpha, intercept, w[keep])
    for name in ["NHo", "BR", *HETEROSKEDASTIC]:
        ours = oracles.variance(name, *full, hc=hc)
        assert_allclose(ours, oracles.variance(name, *kept, hc=hc), rtol=1e-8)
    for score in [oracles.gcv_score, oracles.loo_score, oracles.noise_variance]:
        ours = score(H, y, alpha, intercept, zeroed)
        assert_allclose(ours, score(kept[0], *kept[2:]), rtol=1e-8)


@alphas
@pytest.mark.parametrize("hc", HC)
def test_weights_are_rows_times_their_root(problem, w, alpha, hc):
    H, h, y = problem
    scaled = ([np.sqrt(w)[:, None] * A for A in H], h, np.sqrt(w) * y, alpha)
    for name in ["NHo", "BR", *HETEROSKEDASTIC]:
        ours = oracles.variance(name, H, h, y, alpha, w=w, hc=hc)
        assert_allclose(ours, oracles.variance(name, *scaled, hc=hc), rtol=1e-8)


@alphas
@intercepts
def test_weights_count_up_to_a_constant(problem, w, alpha, intercept):
    # The penalty is in the units of w: both times 10 is the same fit.
    H, h, y = problem
    for name in ["BR", "S2"]:
        one = oracles.variance(name, H, h, y, alpha, intercept, w)
        ten = oracles.variance(name, H, h, y, 10 * alpha, intercept, 10 * w)
        assert_allclose(ten, one, rtol=1e-8)


def balanced():
    """Harmonics on a regular grid: every leverage is 5/60, so all corrections agree."""
    t = 2 * np.pi * np.arange(N_ROWS) / N_ROWS
    waves = [np.cos(t), np.sin(t), np.cos(2 * t), np.sin(2 * t)]
    return [np.column_stack([np.ones(N_ROWS), *waves])]


@pytest.mark.parametrize("kind", ["HC1", "HC2", "HC4", "ensemble"])
def test_hc_corrections_agree_in_a_balanced_design(kind):
    _, y, _ = table()
    H = balanced()
    assert_allclose(oracles.leverage(H, 0), 5 / 60, rtol=1e-10)
    expected = oracles.omega("HC0", H, y, 0) / (1 - 5 / 60)
    assert_allclose(oracles.omega(kind, H, y, 0), expected, rtol=1e-8)


@alphas
def test_hc4_exponent_is_cribari_neto(problem, alpha):
    H, _, y = problem
    ours = oracles.omega("HC4", H, y, alpha)
    p, r = oracles.leverage(H, alpha), oracles.residuals(H, y, alpha)
    for m in range(M):
        for i in range(N_ROWS):
            delta = min(4.0, p[m, i] / (sum(p[m]) / N_ROWS))
            assert_allclose(ours[m, i], r[m, i] ** 2 / (1 - p[m, i]) ** delta, rtol=1e-10)


@alphas
@intercepts
def test_hc2_and_ensemble_are_unbiased_for_pure_noise(problem, alpha, intercept):
    # E (a'e)^2 = |a|^2 sigma2 for any row a of I - P: the exact expectation, by columns.
    H, _, _ = problem
    for kind in ["HC2", "ensemble"]:
        columns = [oracles.omega(kind, H, e, alpha, intercept) for e in np.eye(N_ROWS)]
        assert_allclose(np.sum(columns, axis=0), 1, rtol=1e-8)


@alphas
@intercepts
def test_homoskedastic_estimates_are_the_heteroskedastic_with_sigma2(problem, w, alpha, intercept):
    args = (*problem, alpha, intercept, w)
    for homo, hetero in [("NHo", "NHe"), ("BR", "S2"), ("BR", "S3")]:
        ours = oracles.variance(hetero, *args, hc="homoskedastic")
        assert_allclose(oracles.variance(homo, *args), ours, rtol=1e-8)


@alphas
@intercepts
@pytest.mark.parametrize("kind", ["homoskedastic", "HC2", "HC3-exact"])
def test_components_sum_to_the_variance(problem, w, alpha, intercept, kind):
    args = (*problem, alpha, intercept, w)
    parts = oracles.components(*args, kind=kind)
    total = oracles.variance("S2", *args, hc=kind)
    assert_allclose(np.sum(parts, axis=0), total, rtol=1e-8)
    # The first two terms are the variance given the hidden weights, mu' Sigma mu.
    given = oracles.noise_part("NHe", *args, hc=kind)
    assert_allclose(parts[0] + parts[1], given, rtol=1e-8)
    plus = oracles.positive_part_variance(*args, kind=kind)
    assert_allclose(plus, np.maximum(total, given), rtol=1e-8)
    assert_allclose(oracles.variance_at(M, *args, kind=kind), total, rtol=1e-8)


def test_member_correlation_lies_below_its_bound_where_the_third_term_is_positive(problem):
    args = (*problem, 0.05)
    correlation = oracles.member_correlation(*args)
    bound = oracles.member_correlation_bound(*args)
    third = oracles.components(*args)[2]
    assert_array_equal(correlation < bound, third > 0)
    assert np.any(third > 0)
    z = oracles.smoother_rows(*problem[:2], 0.05)
    mu = np.mean(z, axis=0)
    trace = np.sum(np.var(z, axis=0, ddof=1), axis=1)
    mu_mu = np.sum(mu**2, axis=1) - trace / M
    assert_allclose(bound, mu_mu / (mu_mu + trace), rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 1.0])
def test_gcv_is_leave_one_out_after_levelling_the_leverages(problem, alpha):
    # Golub, Heath & Wahba (1979), section 2: rotate the rows by the left singular vectors,
    # then by the Fourier matrix; every leverage becomes tr P / n and PRESS becomes GCV.
    H, _, y = problem
    U = np.linalg.svd(H[0])[0]
    fourier = np.fft.fft(np.eye(N_ROWS), norm="ortho")
    A, target = (fourier @ U.T) @ H[0], (fourier @ U.T) @ y
    P = A @ np.linalg.inv(A.conj().T @ A + alpha * np.eye(N_NEURONS)) @ A.conj().T
    press = np.mean(np.abs((target - P @ target) / (1 - np.diag(P))) ** 2)
    assert_allclose(oracles.gcv_score(H[:1], y, alpha), press, rtol=1e-8)


@alphas
@intercepts
def test_scores_of_an_ensemble(problem, w, alpha, intercept):
    # LOO scores the averaged prediction, GCV averages the scores of the members.
    H, _, y = problem
    loo = oracles.loo_residuals_brute_force(H, y, alpha, intercept, w)
    ours = oracles.loo_score(H, y, alpha, intercept, w)
    assert_allclose(ours, np.sum(w * np.mean(loo, axis=0) ** 2), rtol=1e-8)
    each = [oracles.gcv_score([H_m], y, alpha, intercept, w) for H_m in H]
    assert_allclose(oracles.gcv_score(H, y, alpha, intercept, w), sum(each) / M, rtol=1e-8)


def test_jackknife_bounds_are_infinite_when_the_rank_exceeds_the_sample(problem):
    H, h, y = problem
    H, y = [A[:15] for A in H], y[:15]
    for bounds in [oracles.jackknife_plus_bounds, oracles.jackknife_bounds]:
        wide = bounds(H, h, y, 0.05, 0.01)
        assert np.all(wide[:, 0] == -np.inf)
        assert np.all(wide[:, 1] == np.inf)


def test_jackknife_half_width_is_a_ranked_loo_residual(problem):
    H, h, y = problem
    bounds = oracles.jackknife_bounds(H, h, y, 0.05, 0.1)
    R = np.sort(np.abs(np.mean(oracles.loo_residuals(H, y, 0.05), axis=0)))
    assert_allclose((bounds[:, 1] - bounds[:, 0]) / 2, R[55 - 1], rtol=1e-8)


@pytest.mark.parametrize(("miscoverage", "n", "rank"), [(0.1, 9, 9), (0.1, 60, 55)])
def test_upper_rank_survives_rounding(miscoverage, n, rank):
    assert oracles.upper_rank(miscoverage, n) == rank
    assert n + 1 - rank == int(np.floor(np.round(miscoverage * (n + 1), 9)))
