"""Every number a fitted estimator reports, against the textbook formulas."""

import pickle

import numpy as np
import oracles
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.core.forms import member_groups
from ulmus.core.selection import RELATIVE_GRID

ESTIMATES = ["NHo", "BR", "NHe", "S1", "S2", "S3"]
HC = ["HC0", "HC1", "HC2", "HC3", "HC4", "HC3-exact", "ensemble"]
# Rows, members and neurons: fewer features than rows keeps the matrices (primal), more keeps
# the rows (dual).
REGIMES = {"primal": (60, 4, 6), "dual": (40, 5, 9)}

alphas = pytest.mark.parametrize("alpha", [0.0, 0.3])
intercepts = pytest.mark.parametrize("intercept", [False, True])
weightings = pytest.mark.parametrize("weighted", [False, True])
regimes = pytest.mark.parametrize("regime", REGIMES)
few_rows = pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")


@pytest.fixture
def fitted(make_table, hidden):
    """Function that fits, and returns the model with the oracles' arguments and the points."""

    def fitted(regime="primal", *, alpha, intercept, weighted=False, **parameters):
        n, M, N = REGIMES[regime]
        data = make_table(n)
        w = data.w if weighted else None
        model = ELMEnsembleRegressor(M, N, alpha=alpha, fit_intercept=intercept, random_state=0)
        model.set_params(weight_scale=2.0, noise_variance="residual", variance="all")
        model.set_params(**parameters).fit(data.X, data.y, sample_weight=w)
        H, h = (hidden(model, X, data.X, w) for X in (data.X, data.X_new))
        return model, (H, h, data.y, model.alpha_, intercept, w), data

    return fitted


def without_points(args):
    """The oracles' arguments less the points: H, y, alpha, intercept, w."""
    return args[:1] + args[2:]


# ---------------------------------------------------------------- variance estimates


@weightings
@intercepts
@alphas
@pytest.mark.parametrize("compress", [False, True])
@regimes
@pytest.mark.parametrize("hc", HC)
def test_every_estimate_is_the_oracle(fitted, hc, regime, compress, alpha, intercept, weighted):
    model, args, data = fitted(regime, alpha=alpha, intercept=intercept, weighted=weighted, hc=hc)
    if compress:
        model.compress()
    assert sorted(model.variance_estimates_) == sorted(ESTIMATES)
    for name in ESTIMATES:
        expected = oracles.variance(name, *args, hc=hc)
        ours = model.predict_var(data.X_new, component="model", estimate=name)
        assert_allclose(ours, expected, rtol=1e-8, err_msg=name)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_one_estimate_alone_is_the_same_as_among_all(fitted, estimate):
    both = [fitted("dual", alpha=0.3, intercept=True, variance=v)[0] for v in ("all", [estimate])]
    X = fitted("dual", alpha=0.3, intercept=True)[2].X_new
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
    model = ELMEnsembleRegressor(n_estimators, 5, noise=noise, random_state=0).fit(data.X, data.y)
    assert model.variance_estimates_ == (default,)
    ours = model.predict_var(data.X_new, component="model")
    assert_array_equal(ours, model.predict_var(data.X_new, "model", default))


@pytest.mark.parametrize("estimate", ["BR", "S2"])
def test_components_of_the_prediction_variance(fitted, estimate):
    model, args, data = fitted(alpha=0.3, intercept=True, weighted=True)
    sigma2 = oracles.noise_variance(*without_points(args))
    of_model = oracles.variance(estimate, *args, hc="HC2")
    spread = oracles.spread(*args)

    def ours(component):
        return model.predict_var(data.X_new, component=component, estimate=estimate)

    assert_allclose(ours("model"), of_model, rtol=1e-8)
    assert_allclose(ours("noise"), sigma2, rtol=1e-8)
    assert_allclose(ours("total"), of_model + sigma2, rtol=1e-8)
    assert_allclose(ours("weights"), spread / len(args[0]), rtol=1e-8)


def test_return_std_is_the_root_of_the_total_variance(fitted):
    model, _, data = fitted(alpha=0.3, intercept=True)
    mean, std = model.predict(data.X_new, return_std=True)
    assert_allclose(mean, model.predict(data.X_new), rtol=1e-12)
    assert_allclose(std**2, model.predict_var(data.X_new), rtol=1e-12)


@weightings
@alphas
@pytest.mark.parametrize(("estimate", "kind"), [("BR", "homoskedastic"), ("S2", "HC3")])
def test_decomposition_correlation_and_other_sizes(fitted, estimate, kind, alpha, weighted):
    model, args, data = fitted("dual", alpha=alpha, intercept=True, weighted=weighted, hc="HC3")
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
def test_the_three_terms_add_up_to_the_estimate(fitted, estimate):
    model, _, data = fitted(alpha=0.3, intercept=True)
    total = sum(model.variance_components(data.X_new, estimate))
    assert_allclose(total, model.predict_var(data.X_new, "model", estimate), rtol=1e-10)


def test_suggested_size_brings_the_weights_share_below_the_tolerance(fitted):
    model, args, data = fitted("dual", alpha=0.3, intercept=True)
    _, U = oracles.pair_forms(*args)
    needed = np.quantile(oracles.spread(*args) / (0.1 * U), 0.9)
    assert model.suggest_n_estimators(data.X_new, tolerance=0.1) == np.ceil(needed)


# ---------------------------------------------------------------- the fit


@weightings
@intercepts
@alphas
@regimes
def test_fit_is_the_oracle(fitted, regime, alpha, intercept, weighted):
    model, args, data = fitted(regime, alpha=alpha, intercept=intercept, weighted=weighted)
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
def test_leverage_dof_rank_and_noise_are_the_oracle(fitted, regime, alpha, intercept, weighted):
    model, args, data = fitted(regime, alpha=alpha, intercept=intercept, weighted=weighted)
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
def test_leave_one_out_is_brute_force(fitted, alpha, intercept, weighted):
    model, args, data = fitted("dual", alpha=alpha, intercept=intercept, weighted=weighted)
    brute = np.mean(oracles.loo_residuals_brute_force(*without_points(args)), axis=0)
    assert_allclose(model.loo_residuals_, brute, rtol=1e-7, atol=1e-9)
    assert_allclose(model.loo_predictions_, data.y - brute, rtol=1e-7, atol=1e-9)


def alpha_grid(H, intercept, w):
    """Grid relative to the largest singular value of all (centred, weighted) members."""
    root = oracles.root_weights(len(H[0]), w)
    largest = 0.0
    for H_m in H:
        center = np.average(H_m, axis=0, weights=w) if intercept else 0.0
        largest = max(largest, np.linalg.norm(root[:, None] * (H_m - center), 2))
    return RELATIVE_GRID * largest**2


@weightings
@intercepts
@regimes
@pytest.mark.parametrize("criterion", ["loo", "gcv"])
def test_alpha_minimises_the_score(fitted, criterion, regime, intercept, weighted):
    model, args, _ = fitted(
        regime, alpha=criterion, intercept=intercept, weighted=weighted, n_neurons=25
    )
    H, y, _, _, w = without_points(args)
    grid = alpha_grid(H, intercept, w)
    score = {"loo": oracles.loo_score, "gcv": oracles.gcv_score}[criterion]
    best = np.argmin([score(H, y, a, intercept, w) for a in grid])
    assert 0 < best < len(grid) - 1
    assert_allclose(model.alpha_, grid[best], rtol=1e-8)


def test_alpha_leaves_out_interpolating_fits(make_table, hidden):
    # More neurons than rows: the smallest alphas reproduce y and have no left-out residual.
    data = make_table(25)
    model = ELMRegressor(40, weight_scale=3.0, noise_variance="residual", random_state=0)
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
    model = ELMRegressor(40, alpha="gcv", weight_scale=3.0, random_state=seed)
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
def test_outputs_share_an_alpha_in_units_of_their_own_variance(make_table, hidden, criterion):
    data = make_table()
    Y = np.column_stack([data.y, 1e4 * np.cos(2 * data.X[:, 1])])
    model = ELMEnsembleRegressor(3, 8, alpha=criterion, random_state=0).fit(data.X, Y)
    H = hidden(model, data.X, data.X)
    score = {"loo": oracles.loo_score, "gcv": oracles.gcv_score}[criterion]
    total = np.zeros(len(RELATIVE_GRID))
    grid = alpha_grid(H, True, None)
    for y in Y.T:
        total += np.array([score(H, y, a, True) for a in grid]) / np.sum((y - y.mean()) ** 2)
    assert_allclose(model.alpha_, grid[np.argmin(total)], rtol=1e-8)


# ---------------------------------------------------------------- noise variance


@few_rows
@weightings
@intercepts
@pytest.mark.parametrize("members", [1, 2, 5, 9])
def test_pilot_noise_is_the_residual_noise_of_a_wider_rougher_network(
    make_table, hidden, members, intercept, weighted
):
    # STATISTICS B: a hundredth of the best alpha leaves less squared bias in the residuals.
    data = make_table(90)
    w = data.w if weighted else None
    model = ELMEnsembleRegressor(members, 7, variance="NHo", weight_scale=2.0, random_state=0)
    model.set_params(fit_intercept=intercept).fit(data.X, data.y, sample_weight=w)
    first_group = member_groups(members)[0]
    wide = [np.hstack(hidden(model, data.X, data.X, w)[first_group])]
    grid = alpha_grid(wide, intercept, w)
    best = np.argmin([oracles.gcv_score(wide, data.y, a, intercept, w) for a in grid])
    assert 12 < best < len(grid) - 1
    pilot = grid[best] / 100
    # A fifth of the rows, at least, remain residual degrees of freedom.
    assert oracles.dof(wide, pilot, intercept, w) < 0.8 * len(data.y)
    expected = oracles.noise_variance(wide, data.y, pilot, intercept, w)
    assert_allclose(model.noise_variance_, expected, rtol=1e-8)


@few_rows
@pytest.mark.parametrize("weight_scale", [0.3, 3.0])
@pytest.mark.parametrize("n_rows", [12, 25, 60])
def test_pilot_noise_of_a_layer_that_could_interpolate(make_table, n_rows, weight_scale):
    # The true noise variance is 0.0975 on average. Twelve rows leave two or three residual
    # degrees of freedom, so all that can be asked is the order of magnitude.
    data = make_table(n_rows)
    model = ELMRegressor(80, weight_scale=weight_scale, random_state=0).fit(data.X, data.y)
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
    model = ELMRegressor(40, weight_scale=3.0, random_state=seed, **parameters).fit(X, y)
    assert np.isfinite(model.noise_variance_)
    assert np.all(np.isfinite(model.predict_var(X)))


def test_known_noise_variance_is_used_as_it_is(fitted):
    model, args, data = fitted(alpha=0.3, intercept=True, noise_variance=0.25)
    z = oracles.smoother_rows(*args[:2], *args[3:], weighted=True)
    expected = oracles.br(z, 0.25) + oracles.spread(*args) / len(args[0])
    assert model.noise_variance_ == 0.25
    assert_allclose(model.predict_var(data.X_new, "model", "BR"), expected, rtol=1e-8)


def test_noise_of_an_output_does_not_depend_on_the_units_of_another(make_table):
    data = make_table(n=40)
    other = np.random.default_rng(5).standard_normal(40)
    noise = [
        ELMEnsembleRegressor(4, 30, alpha=1.0, random_state=0)
        .fit(data.X, np.column_stack([data.y, c * other]))
        .noise_variance_[0]
        for c in (1e-4, 1e4)
    ]
    assert_allclose(noise[0], noise[1], rtol=1e-8)


# ---------------------------------------------------------------- shapes of the data


@weightings
@regimes
@pytest.mark.parametrize("hc", ["HC2", "HC3-exact", "ensemble"])
def test_several_outputs_are_single_fits_side_by_side(make_table, regime, hc, weighted):
    n, M, N = REGIMES[regime]
    data = make_table(n)
    w = data.w if weighted else None
    Y = np.column_stack([data.y, 100 * np.cos(data.X[:, 1]) + data.y**2])
    model = ELMEnsembleRegressor(
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
    model = ELMEnsembleRegressor(
        M, N, alpha=0.3, variance="all", standardize=standardize, random_state=0
    )
    dense = {e: model.fit(X, data.y, w).predict_var(X_new, "model", e) for e in ESTIMATES}
    mean = model.predict(X_new)
    model.fit(scipy.sparse.csr_array(X), data.y, w)
    assert_allclose(model.predict(scipy.sparse.csr_array(X_new)), mean, rtol=1e-9)
    for name, expected in dense.items():
        ours = model.predict_var(scipy.sparse.csr_array(X_new), "model", name)
        assert_allclose(ours, expected, rtol=1e-8, err_msg=name)


# ---------------------------------------------------------------- compressed models


@pytest.mark.parametrize("hc", HC)
def test_compressing_changes_no_result(fitted, hc):
    model, _, data = fitted("dual", alpha=0.3, intercept=True, hc=hc)
    before = [model.predict_var(data.X_new, "model", name) for name in ESTIMATES]
    mean = model.predict(data.X_new)
    model.compress()
    after = [model.predict_var(data.X_new, "model", name) for name in ESTIMATES]
    assert_allclose(after, before, rtol=1e-8)
    assert_array_equal(model.predict(data.X_new), mean)


def test_a_compressed_model_has_no_training_rows(fitted):
    model, _, _ = fitted("dual", alpha=0.3, intercept=True)
    assert model.compress() is model
    for name in ("leverage_", "loo_residuals_", "loo_predictions_"):
        assert not hasattr(model, name)
    model.compress()


def test_a_compressed_pickle_does_not_grow_with_the_rows(make_table):
    model = ELMEnsembleRegressor(20, 100, alpha=1e-3, random_state=0)
    sizes = []
    for n in (150, 300, 2500):
        data = make_table(n)
        model.fit(data.X, data.y)
        expected = model.predict_var(data.X_new)
        dump = pickle.dumps(model.compress())
        sizes.append(len(dump))
        assert_allclose(pickle.loads(dump).predict_var(data.X_new), expected, rtol=1e-8)
    assert max(sizes) < 40e6
    assert max(sizes) - min(sizes) < 1000
