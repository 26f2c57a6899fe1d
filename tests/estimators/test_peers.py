"""The estimators against other people's programs on the same hidden weights."""

import numpy as np
import pytest
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose
from parametrisations import intercepts, weightings
from sklearn.linear_model import Ridge, RidgeCV

from ulmus.core.ridge.alpha import RELATIVE_GRID

M, N = 5, 9

alphas = pytest.mark.parametrize("alpha", [0.0, 0.05])


@pytest.fixture
def data(make_table):
    return make_table(60)


# ---------------------------------------------------------------- UncELMe 1.1
# The authors' program; it has no intercept, no scaling and no sample weights.


def paper_settings(**parameters):
    """An ensemble as in the paper."""
    return plain_ensemble(
        M,
        N,
        weight_scale=2.0,
        fit_intercept=False,
        standardize=False,
        noise_variance="residual",
        variance="all",
        random_state=0,
        **parameters,
    )


@pytest.fixture
def with_weights_of(monkeypatch):
    """Function that makes UncELMe's members take the hidden weights of a fitted estimator."""
    elm_estimator = pytest.importorskip("UncELMe.elm_estimator")

    def with_weights_of(model):
        layers = iter(zip(model.hidden_weights_, model.hidden_biases_, strict=True))

        def take(elm):
            elm.coef_hidden_, elm.intercept_hidden_ = next(layers)

        monkeypatch.setattr(elm_estimator.ELM, "_weight_draw", take)

    return with_weights_of


@pytest.fixture
def uncelme(data, with_weights_of):
    """Function that fits UncELMe to the same data with the same weights, and predicts."""
    elm_ensemble = pytest.importorskip("UncELMe.elm_ensemble")

    def uncelme(model, alpha):
        with_weights_of(model)
        sizes = {"n_estimators": M, "n_neurons": N, "activation": model.activation}
        if alpha == 0:
            theirs = elm_ensemble.ELMEnsemble(**sizes)
        else:
            theirs = elm_ensemble.ELMEnsembleRidge(alpha=alpha, **sizes)
        return theirs.fit(data.X, data.y), theirs.predict(data.X_new)

    return uncelme


@alphas
@pytest.mark.parametrize("activation", ["logistic", "tanh"])
def test_homoskedastic_estimates_are_uncelme(data, uncelme, activation, alpha):
    ours = paper_settings(alpha=alpha, activation=activation).fit(data.X, data.y)
    theirs, mean = uncelme(ours, alpha)
    assert_allclose(ours.predict(data.X_new), mean, rtol=1e-8)
    for name, their_name in [("NHo", "naive"), ("BR", "bias-reduced")]:
        variance, noise = theirs.homoskedastic_variance(their_name)
        assert_allclose(ours.predict_var(data.X_new, "model", name), variance, rtol=1e-8)
        assert_allclose(ours.noise_variance_, noise, rtol=1e-8)


@pytest.mark.slow
@alphas
@pytest.mark.parametrize(("hc", "approximate"), [("HC3", True), ("HC3-exact", False)])
@pytest.mark.parametrize(
    ("name", "their_name"), [("S1", "S1"), ("NHe", "naive"), ("S2", "S2"), ("S3", "S3")]
)
def test_heteroskedastic_estimates_are_uncelme(
    data, uncelme, name, their_name, hc, approximate, alpha
):
    ours = paper_settings(alpha=alpha, hc=hc, noise="heteroskedastic").fit(data.X, data.y)
    theirs, _ = uncelme(ours, alpha)
    variance, _ = theirs.heteroskedastic_variance(their_name, approximate)
    assert_allclose(ours.predict_var(data.X_new, "model", name), variance, rtol=1e-8)


def test_gcv_choice_is_uncelme_with_its_norm_squared(data, with_weights_of, hidden):
    # UncELMe 1.1 has ||r|| where Golub, Heath & Wahba (1979) have ||r||^2.
    elm_estimator = pytest.importorskip("UncELMe.elm_estimator")
    settings = {"weight_scale": 2.0, "fit_intercept": False, "standardize": False}
    ours = plain_member(N, alpha="gcv", random_state=0, **settings).fit(data.X, data.y)
    (H,) = hidden(ours, data.X, data.X)
    grid = RELATIVE_GRID[20:] * np.linalg.norm(H, 2) ** 2
    with_weights_of(ours)
    theirs = elm_estimator.ELMRidgeCV(n_neurons=N, alphas=grid).fit(data.X, data.y)
    fits = [Ridge(a, fit_intercept=False, solver="svd").fit(H, data.y) for a in grid]
    norms = [np.linalg.norm(data.y - fit.predict(H)) for fit in fits]
    best = np.argmin(theirs.GCV * norms)
    assert 0 < best < len(grid) - 1
    assert_allclose(ours.alpha_, grid[best], rtol=1e-8)


# ---------------------------------------------------------------- statsmodels


@pytest.fixture
def least_squares(data, hidden):
    """Function that fits one ELM, and statsmodels to its hidden matrix."""
    sm = pytest.importorskip("statsmodels.api")

    def least_squares(intercept, w, **parameters):
        model = plain_member(
            N, alpha=0, weight_scale=2.0, fit_intercept=intercept, random_state=0, **parameters
        ).fit(data.X, data.y, sample_weight=w)
        H, h = (hidden(model, X, data.X, w)[0] for X in (data.X, data.X_new))
        if intercept:
            H, h = sm.add_constant(H), sm.add_constant(h)
        theirs = sm.OLS(data.y, H) if w is None else sm.WLS(data.y, H, weights=w)
        return model, theirs.fit(), h

    return least_squares


@weightings
@intercepts
@pytest.mark.parametrize("hc", ["HC0", "HC2", "HC3"])
def test_robust_variance_of_one_member_is_statsmodels(data, least_squares, hc, intercept, weighted):
    w = data.w if weighted else None
    model, theirs, h = least_squares(intercept, w, noise="heteroskedastic", hc=hc)
    covariance = theirs.get_robustcov_results(hc).cov_params()
    expected = np.sum(h @ covariance * h, axis=1)
    assert_allclose(model.predict_var(data.X_new, "model"), expected, rtol=1e-8)


@weightings
@intercepts
def test_variance_of_one_member_is_statsmodels(data, least_squares, intercept, weighted):
    w = data.w if weighted else None
    model, theirs, h = least_squares(intercept, w, noise_variance="residual")
    # A new observation has the mean weight of the rows.
    expected = theirs.get_prediction(h, weights=np.mean(w) if weighted else 1.0)
    assert_allclose(model.noise_variance_, theirs.scale, rtol=1e-9)
    assert_allclose(model.dof_, theirs.df_model + theirs.k_constant, rtol=1e-9)
    mean, std = model.predict(data.X_new, return_std=True)
    assert_allclose(mean, expected.predicted_mean, rtol=1e-9)
    assert_allclose(std, expected.se_obs, rtol=1e-9)
    assert_allclose(model.predict_var(data.X_new, "model"), expected.se_mean**2, rtol=1e-8)


def test_leverage_and_leave_one_out_residuals_are_those_of_statsmodels(least_squares):
    model, theirs, _ = least_squares(True, None)
    influence = theirs.get_influence()
    assert_allclose(model.leverage_, influence.hat_matrix_diag, rtol=1e-8)
    assert_allclose(model.loo_residuals_, influence.resid_press, rtol=1e-7, atol=1e-9)


# ---------------------------------------------------------------- scikit-learn


@weightings
@intercepts
def test_coefficients_are_sklearn_ridge(data, hidden, intercept, weighted):
    w = data.w if weighted else None
    model = plain_ensemble(
        M, N, alpha=0.05, weight_scale=2.0, fit_intercept=intercept, random_state=0
    ).fit(data.X, data.y, sample_weight=w)
    for m, H in enumerate(hidden(model, data.X, data.X, w)):
        ridge = Ridge(0.05, fit_intercept=intercept, solver="cholesky")
        ridge.fit(H, data.y, sample_weight=w)
        assert_allclose(model.coef_[m], ridge.coef_, rtol=1e-8)
        assert_allclose(model.intercept_[m], ridge.intercept_, rtol=1e-8)


@weightings
@intercepts
@pytest.mark.parametrize("gcv_mode", ["svd", "eigen"])
def test_leave_one_out_choice_is_sklearn_ridgecv(data, hidden, gcv_mode, intercept, weighted):
    w = data.w if weighted else None
    model = plain_member(N, alpha="loo", fit_intercept=intercept, random_state=0)
    model.fit(data.X, data.y, sample_weight=w)
    (H,) = hidden(model, data.X, data.X, w)
    root = 1.0 if w is None else np.sqrt(w)[:, None]
    center = np.average(H, axis=0, weights=w) if intercept else 0.0
    # RidgeCV solves in the sample space and loses digits below this part of the grid.
    grid = RELATIVE_GRID[16:] * np.linalg.norm(root * (H - center), 2) ** 2
    ridge = RidgeCV(grid, fit_intercept=intercept, gcv_mode=gcv_mode)
    ridge.fit(H, data.y, sample_weight=w)
    assert grid[0] < ridge.alpha_ < grid[-1]
    assert_allclose(model.alpha_, ridge.alpha_, rtol=1e-8)


def test_predictions_are_sklearn_ridgecv(data, hidden):
    model = plain_member(N, random_state=0).fit(data.X, data.y)
    H, h = (hidden(model, X, data.X)[0] for X in (data.X, data.X_new))
    ridge = RidgeCV([model.alpha_]).fit(H, data.y)
    assert_allclose(model.predict(data.X_new), ridge.predict(h), rtol=1e-8)
