"""Every number a fitted estimator reports, against the textbook formulas."""

import pickle

import numpy as np
import oracles
import pytest
import scipy.sparse
from messages import mentions
from models import plain_ensemble, small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from parametrisations import alphas, intercepts, weightings

from ulmus.core.variance import estimates as registry

# Results of fits with different weights are compared at the mean weight.

ESTIMATES = ["NHo", "BR", "NHe", "S1", "S2", "S3"]
HC = ["HC0", "HC2", "HC3", "HC3-exact", "pooled"]
# Rows, members and neurons: fewer features than rows keeps the matrices (primal), more keeps
# the rows (dual).
REGIMES = {"primal": (60, 4, 6), "dual": (40, 5, 9)}

regimes = pytest.mark.parametrize("regime", REGIMES)


@pytest.fixture
def fit_regime(make_table, hidden):
    """Function that fits, and returns the model with the oracles' arguments and the points."""

    def fit_regime(regime="primal", *, alpha, intercept, weighted=False, **parameters):
        n, M, N = REGIMES[regime]
        data = make_table(n)
        w = data.w if weighted else None
        model = plain_ensemble(M, N, alpha=alpha, fit_intercept=intercept, random_state=0)
        model.set_params(weight_scale=2.0, noise_variance="residual", variance="all")
        model.set_params(**parameters).fit(data.X, data.y, sample_weight=w)
        H, h = (hidden(model, X, data.X, w) for X in (data.X, data.X_new))
        return model, (H, h, data.y, model.alpha_, intercept, w), data

    return fit_regime


def without_points(args):
    """The oracles' arguments less the points: H, y, alpha, intercept, w."""
    return args[:1] + args[2:]


# ---------------------------------------------------------------- variance estimates


@pytest.mark.slow
@weightings
@intercepts
@alphas
@pytest.mark.parametrize("compress", [False, True])
@regimes
@pytest.mark.parametrize("hc", HC)
def test_every_estimate_is_the_oracle(fit_regime, hc, regime, compress, alpha, intercept, weighted):
    model, args, data = fit_regime(
        regime, alpha=alpha, intercept=intercept, weighted=weighted, hc=hc
    )
    if compress:
        model.compress()
    assert sorted(model.variance_estimates_) == sorted(ESTIMATES)
    for name in ESTIMATES:
        expected = oracles.variance(name, *args, hc=hc)
        ours = model.predict_var(data.X_new, component="model", estimate=name)
        assert_allclose(ours, expected, rtol=1e-8, err_msg=name)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_one_estimate_alone_is_the_same_as_among_all(fit_regime, estimate):
    both = [
        fit_regime("dual", alpha=0.3, intercept=True, variance=v)[0] for v in ("all", [estimate])
    ]
    X = fit_regime("dual", alpha=0.3, intercept=True)[2].X_new
    every, alone = (m.predict_var(X, component="model", estimate=estimate) for m in both)
    assert_allclose(alone, every, rtol=1e-12)
    assert both[1].variance_estimates_ == (estimate,)


@pytest.mark.parametrize(
    ("noise", "n_estimators", "default"),
    [
        ("homoskedastic", 3, "BR"),
        ("heteroskedastic", 3, "S2"),
    ],
)
def test_the_automatic_estimate_depends_on_the_noise(make_table, noise, n_estimators, default):
    data = make_table()
    model = plain_ensemble(n_estimators, 5, noise=noise, random_state=0).fit(data.X, data.y)
    assert model.variance_estimates_ == (default,)
    ours = model.predict_var(data.X_new, component="model")
    assert_array_equal(ours, model.predict_var(data.X_new, "model", default))


@pytest.mark.parametrize("estimate", ["BR", "S2"])
def test_components_of_the_prediction_variance(fit_regime, estimate):
    model, args, data = fit_regime(alpha=0.3, intercept=True, weighted=True, hc="HC2")
    sigma2 = oracles.noise_variance(*without_points(args))
    of_model = oracles.variance(estimate, *args, hc="HC2")
    spread = oracles.spread(*args)

    def ours(component):
        return model.predict_var(data.X_new, component=component, estimate=estimate)

    assert_allclose(ours("model"), of_model, rtol=1e-8)
    # A new observation has the mean weight of the rows.
    noise = sigma2 / np.mean(data.w)
    assert_allclose(ours("noise"), noise, rtol=1e-8)
    assert_allclose(ours("total"), of_model + noise, rtol=1e-8)
    assert_allclose(ours("weights"), spread / len(args[0]), rtol=1e-8)


def test_return_std_is_the_root_of_the_total_variance(fit_regime):
    model, _, data = fit_regime(alpha=0.3, intercept=True)
    mean, std = model.predict(data.X_new, return_std=True)
    assert_allclose(mean, model.predict(data.X_new), rtol=1e-12)
    assert_allclose(std**2, model.predict_var(data.X_new), rtol=1e-12)


@weightings
@alphas
@pytest.mark.parametrize(("estimate", "kind"), [("BR", "homoskedastic"), ("S2", "HC3")])
def test_decomposition_correlation_and_other_sizes(fit_regime, estimate, kind, alpha, weighted):
    model, args, data = fit_regime("dual", alpha=alpha, intercept=True, weighted=weighted, hc="HC3")
    X = data.X_new
    terms = np.stack(model.variance_components(X, estimate))
    assert_allclose(terms, oracles.components(*args, kind=kind), rtol=1e-8)
    correlation, bound = model.member_correlation(X, estimate)
    assert_allclose(correlation, oracles.member_correlation(*args, kind=kind), rtol=1e-8)
    if kind == "homoskedastic":
        assert_allclose(bound, oracles.member_correlation_bound(*args), rtol=1e-8)
    for M in (1, 3, 100):
        expected = oracles.variance_at(M, *args, kind=kind)
        assert_allclose(model.variance_at(X, M, estimate), expected, rtol=1e-8)


@pytest.mark.parametrize("estimate", ["BR", "S2", "S3"])
def test_the_three_terms_add_up_to_the_estimate(fit_regime, estimate):
    model, _, data = fit_regime(alpha=0.3, intercept=True)
    total = sum(model.variance_components(data.X_new, estimate))
    assert_allclose(total, model.predict_var(data.X_new, "model", estimate), rtol=1e-10)


def test_suggested_size_brings_the_weights_share_below_the_tolerance(fit_regime):
    model, args, data = fit_regime("dual", alpha=0.3, intercept=True)
    _, U = oracles.pair_forms(*args)
    needed = np.sort(np.ceil(oracles.spread(*args) / (0.1 * U)))
    assert len(set(needed)) > 3
    # Of seven points, the quantile q has rank 6q, counted from zero and rounded up.
    for quantile, enough in [(0.9, needed[6]), (0.8, needed[5]), (0.5, needed[3])]:
        assert model.suggest_n_estimators(data.X_new, 0.1, quantile) == enough


# ---------------------------------------------------------------- the fit


@weightings
@intercepts
@alphas
@regimes
def test_fit_is_the_oracle(fit_regime, regime, alpha, intercept, weighted):
    model, args, data = fit_regime(regime, alpha=alpha, intercept=intercept, weighted=weighted)
    beta = oracles.coefficients(*without_points(args))
    first = int(intercept)
    assert_allclose(model.coef_, beta[:, first:], rtol=1e-7, atol=1e-9)
    assert_allclose(model.intercept_, beta[:, 0] if intercept else 0, rtol=1e-8)
    f = np.mean(oracles.predictions(*args), axis=0)
    assert_allclose(model.predict(data.X_new), f, rtol=1e-9)


@weightings
@intercepts
@alphas
@regimes
def test_leverage_dof_rank_and_noise_are_the_oracle(fit_regime, regime, alpha, intercept, weighted):
    model, args, data = fit_regime(regime, alpha=alpha, intercept=intercept, weighted=weighted)
    H, y, alpha, intercept, w = without_points(args)
    p = oracles.leverage(H, alpha, intercept, w)
    assert_allclose(model.leverage_, np.mean(p, axis=0), rtol=1e-8)
    assert_allclose(model.dof_, oracles.dof(H, alpha, intercept, w), rtol=1e-10)
    assert_array_equal(model.rank_, np.full(len(H), H[0].shape[1] + intercept))
    sigma2 = oracles.noise_variance(H, y, alpha, intercept, w)
    assert_allclose(model.noise_variance_, sigma2, rtol=1e-9)
    assert np.shape(model.leverage_) == np.shape(data.y)


@weightings
@intercepts
@alphas
def test_leave_one_out_is_brute_force(fit_regime, alpha, intercept, weighted):
    model, args, data = fit_regime("dual", alpha=alpha, intercept=intercept, weighted=weighted)
    brute = np.mean(oracles.loo_residuals_brute_force(*without_points(args)), axis=0)
    assert_allclose(model.loo_residuals_, brute, rtol=1e-7, atol=1e-9)
    assert_allclose(model.loo_predictions_, data.y - brute, rtol=1e-7, atol=1e-9)


def test_known_noise_variance_is_used_as_it_is(fit_regime):
    model, args, data = fit_regime(alpha=0.3, intercept=True, noise_variance=0.25)
    z = oracles.smoother_rows(*args[:2], *args[3:], weighted=True)
    expected = oracles.br(z, 0.25) + oracles.spread(*args) / len(args[0])
    assert model.noise_variance_ == 0.25
    assert_allclose(model.predict_var(data.X_new, "model", "BR"), expected, rtol=1e-8)


# ---------------------------------------------------------------- shapes of the data


@weightings
@regimes
@pytest.mark.parametrize("hc", ["HC2", "HC3-exact", "pooled"])
def test_several_outputs_are_single_fits_side_by_side(make_table, regime, hc, weighted):
    n, M, N = REGIMES[regime]
    data = make_table(n)
    w = data.w if weighted else None
    Y = np.column_stack([data.y, 100 * np.cos(data.X[:, 1]) + data.y**2])
    model = plain_ensemble(
        M, N, alpha=0.3, variance="all", hc=hc, noise_variance="residual", random_state=0
    )
    both = model.fit(data.X, Y, sample_weight=w)
    mean, std = both.predict(data.X_new, return_std=True)
    variances = {e: both.predict_var(data.X_new, "model", e) for e in ESTIMATES}
    attributes = {a: getattr(both, a) for a in ("noise_variance_", "loo_residuals_")}
    coef = both.coef_
    for k, y in enumerate(Y.T):
        one = model.fit(data.X, y, sample_weight=w)
        one_mean, one_std = one.predict(data.X_new, return_std=True)
        assert_allclose(mean[:, k], one_mean, rtol=1e-9)
        assert_allclose(std[:, k], one_std, rtol=1e-9)
        assert_allclose(coef[:, k, :], one.coef_, rtol=1e-7)
        for name in ESTIMATES:
            expected = one.predict_var(data.X_new, "model", name)
            assert_allclose(variances[name][:, k], expected, rtol=1e-8, err_msg=name)
        for name, values in attributes.items():
            expected = getattr(one, name)
            assert_allclose(values[..., k], expected, rtol=1e-7, atol=1e-9, err_msg=name)


@weightings
@regimes
@pytest.mark.parametrize("standardize", [False, True])
def test_sparse_rows_are_dense_rows(make_table, regime, standardize, weighted):
    n, M, N = REGIMES[regime]
    data = make_table(n)
    w = data.w if weighted else None
    X = np.where(np.abs(data.X) > 0.4, data.X, 0.0)
    X_new = np.where(np.abs(data.X_new) > 0.4, data.X_new, 0.0)
    model = plain_ensemble(M, N, alpha=0.3, variance="all", standardize=standardize, random_state=0)
    dense = {e: model.fit(X, data.y, w).predict_var(X_new, "model", e) for e in ESTIMATES}
    mean = model.predict(X_new)
    model.fit(scipy.sparse.csr_array(X), data.y, w)
    assert_allclose(model.predict(scipy.sparse.csr_array(X_new)), mean, rtol=1e-9)
    for name, expected in dense.items():
        ours = model.predict_var(scipy.sparse.csr_array(X_new), "model", name)
        assert_allclose(ours, expected, rtol=1e-8, err_msg=name)


# ---------------------------------------------------------------- compressed models


@pytest.mark.parametrize("hc", HC)
def test_compressing_changes_no_result(fit_regime, hc):
    model, _, data = fit_regime("dual", alpha=0.3, intercept=True, hc=hc)
    before = [model.predict_var(data.X_new, "model", name) for name in ESTIMATES]
    mean = model.predict(data.X_new)
    model.compress()
    after = [model.predict_var(data.X_new, "model", name) for name in ESTIMATES]
    assert_allclose(after, before, rtol=1e-8)
    assert_array_equal(model.predict(data.X_new), mean)


def test_a_compressed_model_has_no_training_rows(fit_regime):
    model, _, _ = fit_regime("dual", alpha=0.3, intercept=True)
    assert model.compress() is model
    for name in ("leverage_", "loo_residuals_", "loo_predictions_"):
        assert not hasattr(model, name)
    model.compress()


@pytest.mark.slow
def test_a_compressed_pickle_does_not_grow_with_the_rows(make_table):
    model = plain_ensemble(20, 100, alpha=1e-3, random_state=0, exact=True)
    sizes = []
    for n in (150, 300, 2500):
        data = make_table(n)
        model.fit(data.X, data.y)
        expected = model.predict_var(data.X_new)
        dump = pickle.dumps(model.compress())
        sizes.append(len(dump))
        assert_allclose(pickle.loads(dump).predict_var(data.X_new), expected, rtol=1e-8)
    assert max(sizes) < 40e6
    # Many rows have coordinates along singular vectors, which take a little less.
    assert sizes[1] - sizes[0] < 1000
    assert sizes[2] - sizes[1] < 1000


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")
@pytest.mark.parametrize("hc", HC)
def test_residuals_of_an_interpolation_are_discounted_by_a_number(hc, make_table):
    X, y, _, _ = make_table(5)
    inputs = np.column_stack([X, X**2, X**3])
    layer = {"activation": "identity", "alpha": 1e-13, "random_state": 0}
    model = plain_ensemble(3, 20, noise="heteroskedastic", hc=hc, **layer).fit(inputs, y)
    variance = model.predict_var(inputs)
    assert np.all(np.isfinite(variance))
    assert np.all(variance >= 0)


@pytest.mark.parametrize("estimate", ["S1", "S2", "S3", "NHe"])
def test_a_summary_with_any_default_estimate(normal_rows, estimate):
    X, y = normal_rows
    for rows in (60, 600):  # forms of rows, forms of features
        model = small_ensemble(5, 20, variance=estimate).fit(X[:rows], y[:rows])
        assert np.all(np.isfinite(model.summary_frame(X[:9])))
        assert np.isfinite(model.undersmoothing_gap_)


def test_an_estimate_that_names_no_substitute(monkeypatch):
    monkeypatch.setitem(registry.ESTIMATES, "S9", registry.Estimate("own", lambda A, U, M: U, 9))
    with pytest.raises(ValueError, match=mentions("'S9'", "n_estimators >= 9", "'auto'")):
        small_ensemble(5, 20, variance="S9").fit(np.ones((9, 1)), np.ones(9))
