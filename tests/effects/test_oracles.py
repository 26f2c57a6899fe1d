"""Effects against statsmodels and against explicit matrices of all rows."""

from typing import NamedTuple

import numpy as np
import oracles
import pytest
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose
from parametrisations import alphas, intercepts, noises, weightings
from scipy import stats
from scipy.sparse import csr_array

from ulmus import ELMEnsembleRegressor
from ulmus.core.layer import functionals
from ulmus.core.query.joint_covariance import bilinear, outer_sums
from ulmus.core.variance.estimates import model_variance
from ulmus.effects.columns import InputTable, value_functionals

ESTIMATES = ["NHo", "BR", "NHe", "S1", "S2", "S3"]
LEVEL = 0.9
# Seven points in two groups, their weights, and sums that are no averages.
GROUPS = np.array(["a", "b", "a", "b", "b", "a", "a"])
WEIGHTS = np.array([0.5, 2.0, 1.0, 0.0, 3.0, 1.0, 1.5])
A = np.random.default_rng(5).standard_normal((3, 7))


def shares(groups, weights=None):
    """Weights of rows in the mean of each group, by their definition, shape (groups, n)."""
    weights = np.ones(len(groups)) if weights is None else weights
    rows = [np.where(groups == g, weights, 0.0) for g in sorted(set(groups))]
    return np.array([row / row.sum() for row in rows])


# ---------------------------------------------------------------- one member: statsmodels


class Peer(NamedTuple):
    """One network, statsmodels' regression on its hidden units, and a table."""

    model: object
    regression: object
    data: object
    hidden: object

    def rows(self, X):
        """Rows of the design at points."""
        return oracles.design(self.hidden(self.model, X, self.data.X)[0], self.model.fit_intercept)

    def slopes(self, X, j):
        """Their derivatives by input j: a logistic unit g has g (1 - g) times its weight."""
        g = self.hidden(self.model, X, self.data.X)[0]
        slope = g * (1 - g) * self.model.hidden_weights_[0, j] / np.std(self.data.X[:, j])
        first = np.zeros((len(X), int(self.model.fit_intercept)))
        return np.hstack([first, slope])


KINDS = ["homoskedastic", "HC0", "HC2", "HC3"]


@pytest.fixture(
    scope="module", params=[(kind, i) for kind in KINDS for i in (True, False)], ids=str
)
def peer(request, make_table, hidden):
    sm = pytest.importorskip("statsmodels.api")
    kind, intercept = request.param
    data = make_table(60)
    constant = kind == "homoskedastic"
    how = {"noise": kind} if constant else {"noise": "heteroskedastic", "hc": kind}
    model = plain_member(8, alpha=0, fit_intercept=intercept, noise_variance="residual")
    model.set_params(weight_scale=2.0, random_state=0, **how).fit(data.X, data.y)
    D = oracles.design(hidden(model, data.X, data.X)[0], intercept)
    robust = {"cov_type": "nonrobust" if constant else kind, "use_t": True}
    return Peer(model, sm.OLS(data.y, D).fit(**robust), data, hidden)


def moved(X, value):
    X = X.copy()
    X[:, 1] = value
    return X


# An effect, and the combinations of coefficients that it is.
EFFECTS = {
    "average": (
        lambda m, X, how: m.average(X, **how),
        lambda p, X: p.rows(X).mean(axis=0, keepdims=True),
    ),
    "average by group": (
        lambda m, X, how: m.average(X, by=GROUPS, **how),
        lambda p, X: shares(GROUPS) @ p.rows(X),
    ),
    "weighted average": (
        lambda m, X, how: m.average(X, by=GROUPS, weights=WEIGHTS, **how),
        lambda p, X: shares(GROUPS, WEIGHTS) @ p.rows(X),
    ),
    "difference": (
        lambda m, X, how: m.compare(X, {1: (-0.5, 0.3, 0.6)}, by=GROUPS, **how),
        lambda p, X: np.vstack(
            [shares(GROUPS) @ (p.rows(moved(X, v)) - p.rows(moved(X, -0.5))) for v in (0.3, 0.6)]
        ),
    ),
    "slope": (
        lambda m, X, how: m.slope(X, [2, 0], weights=WEIGHTS, **how),
        lambda p, X: WEIGHTS @ np.stack([p.slopes(X, j) for j in (2, 0)]) / WEIGHTS.sum(),
    ),
    "slope by row": (
        lambda m, X, how: m.slope(X, 1, by="row", **how),
        lambda p, X: p.slopes(X, 1),
    ),
    "any sum": (lambda m, X, how: m.functional(A, X, **how), lambda p, X: A @ p.rows(X)),
    "curve": (
        lambda m, X, how: m.partial_dependence(X, 1, grid=[-0.4, 0.0, 0.7], **how),
        lambda p, X: np.array([p.rows(moved(X, v)).mean(axis=0) for v in (-0.4, 0.0, 0.7)]),
    ),
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_effects_of_one_member_are_those_of_statsmodels(peer, effect):
    compute, combinations = EFFECTS[effect]
    frame = compute(peer.model, peer.data.X_new, {"confidence_level": LEVEL})
    L = combinations(peer, peer.data.X_new)
    test = peer.regression.t_test(L)
    assert_allclose(frame.estimate, test.effect, rtol=1e-8)
    assert_allclose(frame.std_error, np.ravel(test.sd), rtol=1e-8)
    assert_allclose(frame.statistic, np.ravel(test.tvalue), rtol=1e-8)
    assert_allclose(frame.p_value, np.ravel(test.pvalue), rtol=1e-6, atol=1e-14)
    assert_allclose(frame[["conf_low", "conf_high"]], test.conf_int(1 - LEVEL), rtol=1e-8)
    joint = L @ peer.regression.cov_params() @ L.T
    size = 1e-9 * np.abs(joint).max()
    assert_allclose(frame.attrs["covariance"], joint, rtol=1e-8, atol=size)
    assert_allclose(frame.attrs["df"], peer.regression.df_resid, rtol=1e-8)


def test_one_member_covaries_as_statsmodels(peer):
    X = peer.data.X_new
    D = peer.rows(X)
    joint = D @ peer.regression.cov_params() @ D.T
    size = 1e-9 * np.abs(joint).max()
    assert_allclose(peer.model.predict_cov(X), joint, rtol=1e-8, atol=size)
    assert_allclose(peer.model.predict_cov(X[:4], X[4:]), joint[:4, 4:], rtol=1e-8, atol=size)


# ---------------------------------------------------------------- ensembles: n x n matrices


def raw_covariance(fit, X, name):
    """An estimate for all pairs as the paper defines it, before it is made semidefinite."""
    return bilinear(fit, X, lambda h, u: model_variance(name, fit.parts_of(h, name, u)))


@pytest.mark.parametrize("name", ESTIMATES)
def test_the_oracle_has_the_variances_of_the_oracle(oracle_problem, row_weights, name):
    H, h, y = oracle_problem
    args = (H, h, y, 0.05, True, row_weights)
    expected = oracles.variance(name, *args)
    assert_allclose(np.diag(oracles.covariance(name, *args)), expected, rtol=1e-8)


@pytest.mark.slow
@weightings
@intercepts
@alphas
@pytest.mark.parametrize("hc", ["HC2", "HC3", "HC3-exact", "pooled"])
@pytest.mark.parametrize("size", [(4, 6), (6, 9)], ids=["primal", "dual"])
def test_every_joint_estimate_is_the_oracle(fit_with_oracle, size, hc, alpha, intercept, weighted):
    how = {"alpha": alpha, "fit_intercept": intercept, "weighted": weighted, "hc": hc}
    model, args, X = fit_with_oracle(*size, variance="all", noise_variance="residual", **how)
    sums = functionals.Functionals(
        (value_functionals(InputTable(X, X, X, ("a", "b", "c")), csr_array(A.T)),)
    )
    for name in ESTIMATES:
        expected = oracles.covariance(name, *args, hc=hc)
        near = {"rtol": 1e-8, "atol": 1e-9 * np.abs(expected).max(), "err_msg": name}
        assert_allclose(raw_covariance(model.fitted_, X, name)[0], expected, **near)
        ours = raw_covariance(model.fitted_, sums, name)[0]
        assert_allclose(ours, A @ expected @ A.T, **near)


@intercepts
@alphas
@pytest.mark.parametrize("name", ESTIMATES)
def test_functionals_have_the_variance_of_the_oracle(fit_with_oracle, name, alpha, intercept):
    how = {"alpha": alpha, "fit_intercept": intercept, "variance": name, "hc": "HC3"}
    model, args, X = fit_with_oracle(6, 6, n=60, noise_variance="residual", **how)
    C = oracles.covariance(name, *args)
    f = np.mean(oracles.predictions(*args), axis=0)
    groups = shares(GROUPS, WEIGHTS)
    for frame, L in [
        (model.average(X, by=GROUPS, weights=WEIGHTS), groups),
        (model.functional(A, X), A),
        (
            model.average(X, by=GROUPS, hypothesis="pairwise"),
            shares(GROUPS)[1:] - shares(GROUPS)[:1],
        ),
    ]:
        assert_allclose(frame.estimate, L @ f, rtol=1e-8, atol=1e-10)
        assert_allclose(frame.std_error**2, np.diag(L @ C @ L.T), rtol=1e-7)


@pytest.mark.parametrize("name", ["BR", "S2"])
def test_slopes_of_an_ensemble_have_the_variance_of_the_oracle(fit_with_oracle, make_table, name):
    how = {"variance": name, "noise_variance": "residual", "hc": "HC3", "alpha": 0.3}
    model, (H, h, *rest), X = fit_with_oracle(5, 6, n=60, fit_intercept=False, **how)
    weights = model.hidden_weights_[:, 2] / np.std(make_table(60).X[:, 2])
    # Without an intercept a derivative is a row of features as any other.
    slopes = [g * (1 - g) * W for g, W in zip(h, weights, strict=True)]
    frame = model.slope(X, 2, by="row")
    f = np.mean(oracles.predictions(H, slopes, *rest), axis=0)
    assert_allclose(frame.estimate, f, rtol=1e-8)
    C = oracles.covariance(name, H, slopes, *rest)
    assert_allclose(frame.std_error**2, np.diag(C), rtol=1e-8)


def test_small_portions_give_the_same_covariance(fit_with_oracle, monkeypatch):
    model, _, X = fit_with_oracle(5, 9, variance="all")
    whole, frame = model.predict_cov(X), model.slope(X, by="row")
    of_function = model.slope(X, by="row", target="function")
    monkeypatch.setattr(functionals, "CHUNK_ELEMENTS", 110)
    assert len(functionals.portions(model.fitted_.ensemble.layer, X)) > 3
    assert_allclose(model.predict_cov(X), whole, rtol=1e-10)
    again = model.slope(X, by="row")
    assert_allclose(again.std_error, frame.std_error, rtol=1e-10)
    joint, size = frame.attrs["covariance"], np.abs(frame.attrs["covariance"]).max()
    assert_allclose(again.attrs["covariance"], joint, rtol=1e-9, atol=1e-10 * size)
    again, joint = model.slope(X, by="row", target="function"), of_function.attrs["covariance"]
    assert_allclose(again.conf_low, of_function.conf_low, rtol=1e-9)
    assert_allclose(again.attrs["covariance"], joint, rtol=1e-8, atol=1e-9 * np.abs(joint).max())


# ---------------------------------------------------------------- predict_cov


def assert_covariance(C, variance):
    """A covariance matrix with these variances."""
    assert_allclose(C, C.T, rtol=1e-12)
    assert np.linalg.eigvalsh(C).min() >= -1e-10 * np.trace(C)
    assert_allclose(np.diag(C), variance, rtol=1e-10)


@weightings
@pytest.mark.parametrize("name", ESTIMATES)
@pytest.mark.parametrize("hc", ["HC3", "HC3-exact", "pooled"])
def test_predict_cov_is_a_covariance(fit_with_oracle, make_table, name, hc, weighted):
    model, _, _ = fit_with_oracle(6, 6, n=60, weighted=weighted, variance="all", hc=hc)
    X = make_table(60, p=25).X_new
    model_part = model.predict_cov(X, estimate=name)
    assert_covariance(model_part, model.predict_var(X, "model", name))
    total = model.predict_cov(X, component="total", estimate=name)
    assert_covariance(total, model.predict_var(X, "total", name))
    noise = model.predict_cov(X, component="noise")
    assert_allclose(noise, np.diag(model.predict_var(X, "noise")), rtol=1e-10)
    assert_allclose(total, model_part + noise, rtol=1e-12)


@pytest.mark.parametrize("component", ["model", "total", "noise"])
def test_other_points_give_blocks_of_the_matrix_of_all(fit_with_oracle, make_table, component):
    model, _, X = fit_with_oracle(5, 6, n=60)
    X2 = make_table(60, p=4, seed=1).X_new
    both = model.predict_cov(np.vstack([X, X2]), component=component)
    ours = model.predict_cov(X, X2, component=component)
    assert_allclose(ours, both[:7, 7:], rtol=1e-12, atol=1e-16)


def test_several_outputs_have_a_matrix_each(make_table):
    X, y, _, X_new = make_table(60)
    Y = np.column_stack([y, 50 - 20 * X[:, 0] * y])
    # Outputs that choose alpha differently have regressions of their own.
    model = plain_ensemble(5, 8, weight_scale=2.0, random_state=0).fit(X, Y)
    C, variance = model.predict_cov(X_new), model.predict_var(X_new, "model")
    assert C.shape == (2, 7, 7)
    for k in range(2):
        assert_covariance(C[k], variance[:, k])
        alone = plain_ensemble(5, 8, weight_scale=2.0, random_state=0).fit(X, Y[:, k])
        assert_allclose(C[k], alone.predict_cov(X_new), rtol=1e-6)
    frame = model.average(X_new, by=GROUPS)
    assert frame.output.tolist() == [0, 0, 1, 1]
    joint = frame.attrs["covariance"]
    assert np.all(np.isnan(joint[:2, 2:]))
    assert_allclose(np.diag(joint), frame.std_error**2, rtol=1e-10)
    assert_allclose(frame.estimate[2:], shares(GROUPS) @ model.predict(X_new)[:, 1], rtol=1e-10)


# ---------------------------------------------------------------- choices of alpha and a map


@pytest.fixture(scope="module")
def learned(make_table):
    """An ensemble behind a learned map, with an alpha of its own choice, and points."""
    X, y, _, X_new = make_table(60)
    how = {"noise": "homoskedastic", "variance": ["BR", "NHo"], "random_state": 0}
    model = ELMEnsembleRegressor(3, 40, **how).fit(X, y)
    assert model.fitted_.folded
    return model, X_new


def test_choices_covary_by_their_shifts(learned):
    model, X = learned
    fit = model.fitted_
    first, second = fit.ensemble.alpha_shifts(X)[:, 0]
    maps = fit.map_shifts(X).added
    assert np.all(first != 0)
    assert np.any(maps != 0)
    of_maps = sum(np.outer(s[0], s[0]) for s in maps)
    assert_allclose(outer_sums(maps)[0], of_maps, rtol=1e-12)

    def variance(weights):
        noise = np.diag(weights @ (raw_covariance(fit, X, "BR")[0] + of_maps) @ weights.T)
        # Choosing alpha never lowers a variance.
        return noise + np.maximum((weights @ first) ** 2 - (weights @ second) ** 2, 0)

    assert_covariance(model.predict_cov(X), model.predict_var(X, "model"))
    assert_allclose(variance(np.eye(len(X))), model.predict_var(X, "model"), rtol=1e-10)
    frame = model.functional(A, X)
    assert_allclose(frame.std_error**2, variance(A), rtol=1e-8)
    assert_allclose(frame.estimate, A @ model.predict(X), rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [60, 900])  # triangular and spectral coordinates
def test_choosing_alpha_adds_the_variance_of_the_total_derivative(make_table, n, intercept):
    """By explicit smoothers: alpha follows the slope of the score, which follows the noise."""
    X, y, _, X_new = make_table(n)
    how = {"weight_scale": 2.0, "random_state": 0, "fit_intercept": intercept}
    model = plain_member(8, alpha="loo", **how).fit(X, y)
    (part,), layer = model.fitted_.ensemble.regressions, model.fitted_.ensemble.layer
    H, h = (layer(points)[0, int(intercept) :].T for points in (X, X_new))
    if intercept:
        y, h, H = y - y.mean(), h - H.mean(axis=0), H - H.mean(axis=0)
    inverse = np.linalg.inv(H.T @ H + model.alpha_ * np.eye(8))
    z, P = h @ inverse @ H.T, H @ inverse @ H.T
    left = np.eye(n) - P
    slope = -model.alpha_ * h @ inverse @ inverse @ H.T @ y

    def score_slope(y):
        return 2 * (y @ P @ left @ left @ y) / (y @ left @ left @ y)

    step = 1e-5 * np.std(y)
    gradient = np.array(
        [(score_slope(y + step * e) - score_slope(y - step * e)) / (2 * step) for e in np.eye(n)]
    )
    covariance = -part.alpha_response[0] * model.noise_variance_ * z @ gradient
    expected = slope**2 * part.alpha_deviation[0] ** 2 + 2 * slope * covariance
    first, second = model.fitted_.ensemble.alpha_shifts(X_new)[:, 0]
    assert_allclose(first**2 - second**2, expected, rtol=1e-4, atol=1e-8 * np.max(expected))


# ---------------------------------------------------------------- targets


@noises
@pytest.mark.parametrize("target", ["function", "expectation"])
def test_single_points_have_the_bounds_of_predict_interval(fit_with_oracle, target, noise):
    model, _, X = fit_with_oracle(6, 9, n=60, noise=noise, alpha=0.05)
    frame = model.functional(np.eye(7), X, target=target, confidence_level=LEVEL)
    bounds = model.predict_interval(X, LEVEL, kind="confidence", target=target)
    assert_allclose(frame[["conf_low", "conf_high"]], bounds, rtol=1e-8)
    assert_allclose(np.diag(frame.attrs["covariance"]), frame.std_error**2, rtol=1e-10)
    assert_covariance(np.asarray(frame.attrs["covariance"]), frame.std_error**2)
    assert frame.attrs["target"] == target


def test_the_function_covaries_by_the_shifts_of_its_map(learned):
    model, X = learned
    fit = model.fitted_
    wide = bilinear(fit, X, lambda h, u: fit.undersmoothed_parts_of(h, u).variance)[0]
    expected = wide + sum(np.outer(s[0], s[0]) for s in fit.map_shifts(X).added)
    frame = model.average(X, by="row", target="function")
    assert_allclose(frame.attrs["covariance"], expected, rtol=1e-8)


def test_learned_maps_have_the_bounds_of_predict_interval(learned):
    model, X = learned
    for target in ("function", "expectation"):
        frame = model.average(X, by="row", target=target)
        bounds = model.predict_interval(X, kind="confidence", target=target)
        assert_allclose(frame[["conf_low", "conf_high"]], bounds, rtol=1e-8)


@noises
def test_functionals_of_the_function_combine_its_covariance(fit_with_oracle, noise):
    model, _, X = fit_with_oracle(6, 9, n=60, noise=noise, alpha=0.05)
    points = model.average(X, by="row", target="function")
    frame = model.functional(A, X, target="function")
    assert_allclose(frame.estimate, A @ points.estimate, rtol=1e-8)
    C = A @ points.attrs["covariance"] @ A.T
    assert_allclose(frame.attrs["covariance"], C, rtol=1e-6, atol=1e-8 * np.abs(C).max())


@pytest.fixture(scope="module")
def misfit():
    """A step that smooth units cannot follow, so that intervals for the function are widened."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 1))
    y = np.sign(X[:, 0]) + 0.05 * rng.standard_normal(200)
    model = plain_ensemble(4, 8, random_state=0, alpha=0.1).fit(X, y)
    points = np.array([[-0.1], [0.1], [0.5]])
    allowance = model.fitted_.misfit_allowance(points)[:, 0]
    assert np.all(allowance[:2] > 0)
    return model, points, allowance


def assert_widened(frame, allowance):
    """Both sides of an interval get the allowance, and a test leaves as much out."""
    half = stats.t.isf(0.025, frame.attrs["df"]) * frame.std_error + allowance
    assert_allclose(frame.conf_high, frame.estimate + half, rtol=1e-8)
    assert_allclose(frame.conf_low, frame.estimate - half, rtol=1e-8)
    beyond = np.maximum(np.abs(frame.estimate) - allowance, 0) / frame.std_error
    assert_allclose(frame.p_value, 2 * stats.t.sf(beyond, frame.attrs["df"]), rtol=1e-8)


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning")
def test_a_functional_is_widened_by_what_its_points_are(misfit):
    model, points, allowance = misfit
    weights = np.array([[0.5, -2.0, 1.0], [0.0, 0.1, 0.0]])
    frame = model.functional(weights, points, target="function")
    assert_widened(frame, np.abs(weights) @ allowance)
    L = np.array([[1.0, -1.0]])
    combined = model.functional(weights, points, target="function", hypothesis=L)
    assert_widened(combined, np.abs(L) @ np.abs(weights) @ allowance)
    # An allowance for the function does not apply to its slope.
    assert_widened(model.slope(points, target="function"), 0.0)
    low = model.average(points, by="row", target="function").conf_low.tolist()
    exceeds = model.exceedance(points, low, of="mean", target="function")
    assert_allclose(np.diag(exceeds), 0.975, rtol=1e-8)
