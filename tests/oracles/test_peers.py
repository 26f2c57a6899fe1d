"""The oracles against the peers they stand for: UncELMe, statsmodels, scikit-learn."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose
from oracle_problems import HETEROSKEDASTIC, N_NEURONS, N_ROWS, M, alphas, noisy_table
from parametrisations import intercepts, weightings

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
    X, y, X_new = noisy_table()
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
    X, y, _ = noisy_table()
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
@weightings
@pytest.mark.parametrize("kind", ["HC0", "HC2", "HC3"])
def test_hc_variances_are_statsmodels(oracle_problem, row_weights, kind, intercept, weighted):
    sm = pytest.importorskip("statsmodels.api")
    H, h, y = oracle_problem
    H, h, w = H[:1], h[:1], row_weights if weighted else None
    A, a = oracles.design(H[0], intercept), oracles.design(h[0], intercept)
    fitted = sm.WLS(y, A, weights=1.0 if w is None else w).fit()
    cov = fitted.get_robustcov_results(kind).cov_params()
    ours = oracles.noise_part("S1", H, h, y, 0, intercept, w, hc=kind)
    assert_allclose(ours, np.diag(a @ cov @ a.T), rtol=1e-8)


@intercepts
@weightings
def test_noise_variance_and_leverage_are_statsmodels(
    oracle_problem, row_weights, intercept, weighted
):
    sm = pytest.importorskip("statsmodels.api")
    H, h, y = oracle_problem
    H, h, w = H[:1], h[:1], row_weights if weighted else None
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
@weightings
def test_coefficients_and_predictions_are_sklearn_ridge(
    oracle_problem, row_weights, intercept, weighted
):
    linear_model = pytest.importorskip("sklearn.linear_model")
    H, h, y = oracle_problem
    w = row_weights if weighted else None
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
@weightings
def test_loo_score_and_choice_are_sklearn_ridgecv(oracle_problem, row_weights, intercept, weighted):
    linear_model = pytest.importorskip("sklearn.linear_model")
    H, _, y = oracle_problem
    H, w, grid = H[:1], row_weights if weighted else None, np.logspace(-6, 2, 9)
    ridge = linear_model.RidgeCV(grid, fit_intercept=intercept, store_cv_results=True)
    ridge.fit(H[0], y, sample_weight=w)
    ours = [oracles.loo_score(H, y, a, intercept, w) for a in grid]
    assert_allclose(ours, np.sum(ridge.cv_results_, axis=0), rtol=1e-7)
    assert grid[np.argmin(ours)] == ridge.alpha_
    assert grid[0] < ridge.alpha_ < grid[-1]


@intercepts
def test_jackknife_plus_is_sklearn_leave_one_out(oracle_problem, intercept):
    linear_model = pytest.importorskip("sklearn.linear_model")
    H, h, y = oracle_problem
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
