"""The core keeps its digits: whitening, bases, forms and activations against plain NumPy."""

import numpy as np
import oracles
import pytest
from core_fits import INDEPENDENT, blocks_of, core_fit
from fit_comparison import raw_variances
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.core.data.scaling import feature_scale, output_units
from ulmus.core.data.source import Block
from ulmus.core.layer.hidden_layer import ACTIVATIONS, HiddenLayer, UnitDistribution
from ulmus.core.layer.inputs import Inputs
from ulmus.core.ridge.factor import factor_of_moments, spectrum
from ulmus.core.ridge.member_pairs import lone_members
from ulmus.core.ridge.moments import FirstPass
from ulmus.core.ridge.preconditioner import sample_whitening
from ulmus.core.ridge.smoother import smoother
from ulmus.exceptions import DegenerateFitWarning

M = 4


def factors(layer, X, sample):
    """Factor, spectrum and the orthonormal rows, M arrays (n, N), from blocks and a sample."""
    y = np.zeros((1, len(X)))
    units = output_units(Block(X, y, None), layer.constant)
    whitening = sample_whitening(layer, Block(sample, y[:, : len(sample)], None))
    blocks = blocks_of(X, y[0])
    factor = factor_of_moments(
        blocks.reduce(FirstPass(whitening, units, lone_members(layer.n_members))), whitening
    )
    parts = spectrum(factor)
    centred_rows = layer(X)[:, int(layer.constant) :, :] - factor.center[:, :, None]
    Q = (parts.Vt * parts.inverse(1.0)[:, :, None]) @ centred_rows
    return factor, parts, np.swapaxes(Q, 1, 2)


def fit(layer, X, y, sample, alpha, dual=False):
    """Fit with every estimate, HC3 residuals and the paper's noise."""
    first = Block(sample, y[None, : len(sample)], None)
    return core_fit(layer, blocks_of(X, y), first, alpha=alpha, dual=dual)


def variances(fit, X):
    """Every estimate at the points, (6, p)."""
    return raw_variances(fit, X)[:, :, 0]


def oracle_variances(H, h, y, alpha, intercept):
    """The same by the textbook."""
    args = (H, h, y, alpha, intercept)
    return np.stack([oracles.variance(name, *args, hc="HC3") for name in INDEPENDENT])


def centred(H_m, constant):
    return H_m - H_m.mean(axis=0) if constant else H_m


def condition(H, constant):
    return max(np.linalg.cond(centred(H_m, constant)) for H_m in H)


# Weight scale, neurons, and the condition numbers they lead to on 300 rows of three inputs.
PLAIN = (0.6, 50, (5e6, 5e7))
RIDGE = (0.2, 70, (1e10, 1e12))


# ---------------------------------------------------------------- whitening and basis


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("scale", "N", "between"), [PLAIN, RIDGE])
def test_the_factor_has_the_svd_of_an_ill_conditioned_layer(
    make_table, make_layer, units, scale, N, between, constant
):
    data = make_table(300)
    layer = make_layer(M, N, 3, scale=scale, constant=constant)
    H = units(layer, data.X)
    assert between[0] < condition(H, constant) < between[1]
    factor, parts, Q = factors(layer, data.X, data.X[::3])
    for m in range(M):
        expected = np.linalg.svd(centred(H[m], constant), compute_uv=False)
        # An SVD itself is right to eps times the largest singular value.
        assert_allclose(parts.s[m], expected, rtol=1e-8, atol=1e-13 * expected[0])
        used = parts.s[m] > 1e-7 * parts.s[m, 0]
        Q_used = Q[m][:, used]
        assert_allclose(Q_used.T @ Q_used, np.eye(used.sum()), atol=1e-8)
        rebuilt = Q[m] * parts.s[m] @ parts.Vt[m]
        assert_allclose(rebuilt, centred(H[m], constant), atol=1e-11 * expected[0])
        gram = centred(H[m], constant).T @ centred(H[m], constant)
        assert_allclose(factor.R[m].T @ factor.R[m], gram, atol=1e-12 * expected[0] ** 2)
        if constant:
            assert_allclose(factor.center[m], H[m].mean(axis=0), rtol=1e-12)
            # The mean is right to the last digit, and the weakest direction divides it by 1e-7.
            assert_allclose(Q_used.T @ np.ones(300), 0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize(("setting", "alpha"), [(PLAIN, 0.0), (PLAIN, 1e-4), (RIDGE, 1e-6)])
def test_estimates_of_an_ill_conditioned_layer(
    make_table, make_layer, units, setting, alpha, dual, constant
):
    scale, N, _ = setting
    data = make_table(300)
    layer = make_layer(M, N, 3, scale=scale, constant=constant)
    H, h = units(layer, data.X), units(layer, data.X_new)
    model = fit(layer, data.X, data.y, data.X[::2], alpha, dual)
    f = np.mean(oracles.predictions(H, h, data.y, alpha, constant), axis=0)
    assert_allclose(model.mean(data.X_new)[0], f, rtol=1e-8)
    expected = oracle_variances(H, h, data.y, alpha, constant)
    assert_allclose(variances(model, data.X_new), expected, rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 0.01])
@pytest.mark.parametrize("constant", [False, True])
def test_units_that_are_dead_in_the_sample_still_count(
    make_table, make_layer, units, constant, alpha
):
    # Sorted data: in the sample, the rows with the smallest inputs, every relu unit is zero.
    data = make_table(200, d=2)
    X = data.X[np.argsort(data.X.max(axis=1))]
    y = data.y[np.argsort(data.X.max(axis=1))]
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.2, 1.0, (M, 6, 2))
    biases = -np.quantile(X[:20] @ np.swapaxes(weights, 1, 2), 1.0, axis=1)
    layer = HiddenLayer(weights, biases, Inputs(np.zeros(2), np.ones(2)), "relu", constant)
    H, h = units(layer, X), units(layer, data.X_new)
    assert np.max(np.abs([H_m[:20] for H_m in H])) < 1e-12
    assert min(np.linalg.matrix_rank(H_m) for H_m in H) == 6
    model = fit(layer, X, y, X[:20], alpha)
    f = np.mean(oracles.predictions(H, h, y, alpha, constant), axis=0)
    assert_allclose(model.mean(data.X_new)[0], f, rtol=1e-8)
    expected = oracle_variances(H, h, y, alpha, constant)
    assert_allclose(variances(model, data.X_new), expected, rtol=1e-8)


@pytest.mark.parametrize("constant", [False, True])
def test_one_unit_that_wakes_up_after_the_sample(make_table, make_layer, units, constant):
    data = make_table(200)
    X = data.X[np.argsort(data.X[:, 0])]
    y = data.y[np.argsort(data.X[:, 0])]
    layer = make_layer(M, 8, 3, activation="relu", constant=constant)
    # The last unit of each member is zero wherever the first input is below 0.5.
    layer.W[:, -1, :] = [1.0, 0.0, 0.0]
    layer.b[:, -1] = -0.5
    H, h = units(layer, X), units(layer, data.X_new)
    model = fit(layer, X, y, X[:100], 0.0)
    f = np.mean(oracles.predictions(H, h, y, 0, constant), axis=0)
    assert_allclose(model.mean(data.X_new)[0], f, rtol=1e-8)
    expected = oracle_variances(H, h, y, 0, constant)
    assert_allclose(variances(model, data.X_new), expected, rtol=1e-7)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("n", [8, 15, 16])
def test_fewer_rows_than_neurons(make_table, make_layer, units, n, constant):
    data = make_table(n)
    layer = make_layer(M, 15, 3, constant=constant)
    H, h = units(layer, data.X), units(layer, data.X_new)
    model = fit(layer, data.X, data.y, data.X, 0.1, dual=True)
    f = np.mean(oracles.predictions(H, h, data.y, 0.1, constant), axis=0)
    assert_allclose(model.mean(data.X_new)[0], f, rtol=1e-8)
    expected = oracle_variances(H, h, data.y, 0.1, constant)
    assert_allclose(variances(model, data.X_new), expected, rtol=1e-7)
    assert_allclose(
        model.ensemble.regressions[0].smoother.gamma, oracles.dof(H, 0.1, constant), rtol=1e-9
    )


# ---------------------------------------------------------------- rank


def linear_fit(X, y):
    """Least squares on [1, X]: rank and noise variance by numpy.linalg.lstsq."""
    A = np.column_stack([np.ones(len(X)), X])
    beta, _, rank, _ = np.linalg.lstsq(A, y)
    return rank, np.sum((y - A @ beta) ** 2) / (len(y) - rank)


@pytest.mark.parametrize(
    ("change", "n"),
    [
        (lambda X: X, 60),
        (lambda X: np.column_stack([X, X[:, 0]]), 60),
        (lambda X: np.column_stack([X, np.full(len(X), 3.0)]), 60),
        (lambda X: X, 12),
    ],
    ids=["more units than inputs", "repeated input", "constant input", "more units than rows"],
)
def test_linear_units_count_their_rank(make_table, change, n):
    data = make_table(n)
    X = change(data.X)
    model = plain_ensemble(
        3, 20, alpha=0, activation="identity", noise_variance="residual", random_state=0
    )
    with pytest.warns(DegenerateFitWarning, match="3 of 3 members"):
        model.fit(X, data.y)
    rank, noise = linear_fit(X, data.y)
    assert rank == 4
    assert_array_equal(model.rank_, rank)
    assert_allclose(model.dof_, rank, rtol=1e-10)
    assert_allclose(model.noise_variance_, noise, rtol=1e-8)
    # All members are the same linear regression.
    assert_allclose(model.predict_var(change(data.X_new), component="weights"), 0, atol=1e-14)


def test_repeated_units_change_nothing(make_table):
    data = make_table(60)

    def doubled(u):
        half = u.shape[0] // 2
        u = np.tanh(u)
        u[half : 2 * half] = u[:half]
        return u

    model = plain_member(12, alpha=0, activation=doubled, fit_intercept=False, random_state=0)
    model.set_params(noise_variance="residual")
    with pytest.warns(DegenerateFitWarning, match="linearly dependent"):
        model.fit(data.X, data.y)
    H = np.tanh(
        (data.X - data.X.mean(axis=0)) / data.X.std(axis=0) @ model.hidden_weights_[0][:, :6]
        + model.hidden_biases_[0][:6]
    )
    assert_array_equal(model.rank_, 6)
    beta = np.linalg.lstsq(H, data.y)[0]
    noise = np.sum((data.y - H @ beta) ** 2) / (60 - 6)
    assert_allclose(model.noise_variance_, noise, rtol=1e-8)
    # The coefficients of least norm share the weight between the copies.
    assert_allclose(model.coef_[0, :6], beta / 2, rtol=1e-6)
    assert_allclose(model.coef_[0, 6:], beta / 2, rtol=1e-6)


def test_weak_directions_are_dropped_without_ridge_only(make_table, make_layer):
    data = make_table(300)
    layer = make_layer(M, 40, 3, scale=0.2)
    factor, parts, _ = factors(layer, data.X, data.X)
    strong = np.sum(parts.s > np.finfo(float).eps ** 0.5 * parts.s[:, :1], axis=1)
    assert np.all(strong < 40)
    least_squares, ridge = (smoother(factor, alpha)[0] for alpha in (0.0, 1e-6))
    assert_array_equal(least_squares.rank, strong)
    assert_allclose(least_squares.dof, strong)
    assert np.all(ridge.rank > strong)


# ---------------------------------------------------------------- rows


def test_row_fits_are_the_oracles(make_table, make_layer, units):
    data = make_table(60)
    layer = make_layer(M, 8, 3, constant=True)
    H = units(layer, data.X)
    ensemble = fit(layer, data.X, data.y, data.X, 0.1).ensemble
    ((_, (rows,)),) = ensemble.row_fits([Block(data.X, data.y[None, :], None)])
    P = oracles.hat_matrix(H, 0.1, True)
    assert_allclose(np.swapaxes(rows.t, 1, 2) @ rows.t, P, atol=1e-10)
    residual = rows.residual[:, 0] * ensemble.unit
    assert_allclose(residual, oracles.residuals(H, data.y, 0.1, True), rtol=1e-8)
    assert_allclose(rows.square_length, np.diagonal(P, axis1=1, axis2=2), rtol=1e-8)
    assert_allclose(rows.square_row, np.diagonal(P @ P, axis1=1, axis2=2), rtol=1e-8)


# ---------------------------------------------------------------- hidden layer


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_their_definitions(name, reference_activations):
    u = np.concatenate([np.linspace(-6, 6, 101), [-35.0, 35.0, -0.0]])
    ours = ACTIVATIONS[name].value(u.copy())
    assert_allclose(ours, reference_activations[name](u), rtol=1e-13, atol=1e-15)


def test_every_reference_activation_exists(reference_activations):
    assert reference_activations.keys() == ACTIVATIONS.keys()


def test_a_callable_activation_is_used(make_table, hidden):
    data = make_table(50)
    named, called = (
        plain_ensemble(3, 9, activation=g, random_state=0).fit(data.X, data.y)
        for g in ("tanh", np.tanh)
    )
    assert_array_equal(called.predict(data.X_new), named.predict(data.X_new))


@pytest.mark.parametrize("constant", [False, True])
def test_features_are_scaled_inputs_times_weights(make_table, constant):
    rng = np.random.default_rng(0)
    X, W, b = make_table(20).X, rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 4))
    offset, scale = np.array([1.0, -2.0, 0.5]), np.array([0.5, 2.0, 3.0])
    H = HiddenLayer(W, b, Inputs(offset, scale), "tanh", constant)(X)
    for m in range(2):
        expected = np.tanh((X - offset) / scale @ W[m].T + b[m])
        assert_allclose(H[m, int(constant) :].T, expected, rtol=1e-12, atol=1e-14)
    if constant:
        assert_array_equal(H[:, 0], 1)


def draw(distribution, activation, scale, N=4000):
    law = UnitDistribution(distribution, np.array(scale), activation)
    members = [law.member(seed, 3, N) for seed in np.random.SeedSequence(0).spawn(2)]
    return tuple(map(np.stack, zip(*members, strict=True)))


def test_uniform_weights_fill_their_interval():
    W, b = draw("uniform", "tanh", [1.0, 2.0, 0.0])
    largest = np.abs(W).max(axis=(0, 2))
    # The largest of 8000 uniform numbers lies within 0.2% of the end, except once in 1e6.
    assert_allclose(largest[:2], [1.0, 2.0], rtol=2e-3)
    assert np.all(largest <= [1.0, 2.0, 0.0])
    assert_allclose(np.abs(b).max(), 2.0, rtol=2e-3)


def test_normal_weights_have_their_standard_deviation():
    W, b = draw("normal", "tanh", [1.0, 2.0, 0.5])
    # The standard deviation of 8000 normal numbers has a relative error of 0.8%.
    assert_allclose(W.std(axis=(0, 2)), [1.0, 2.0, 0.5], rtol=0.032)
    assert_allclose(b.std(), 2.0, rtol=0.032)


def test_phases_of_cosines_fill_a_turn():
    _, b = draw("normal", "cos", [1.0, 2.0, 0.5])
    assert np.all((b >= 0) & (b < 2 * np.pi))
    assert_allclose([b.min(), b.max()], [0, 2 * np.pi], atol=0.015)


@pytest.mark.parametrize("n", [801, 100_000])
@pytest.mark.parametrize("value", [0.1, 3.7, 1e9 / 3])
def test_the_round_off_of_a_mean_makes_no_constant_input_vary(n, value):
    scale = feature_scale([Block(np.full((n, 1), value), np.zeros((1, n)), None)])
    assert_array_equal(scale.sd, 1.0)


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
def test_single_precision_of_a_constant_input_changes_no_prediction():
    X = np.column_stack([np.linspace(-1, 1, 801), np.full(801, 3.7)])
    model = plain_ensemble(3, 10, random_state=0).fit(X, X[:, 0] ** 2)
    assert_allclose(model.predict(X.astype("f4")), model.predict(X), atol=1e-5)
