"""Marginal likelihood of a map of the inputs, against normal densities and central differences."""

import dataclasses
import math
from operator import attrgetter

import numpy as np
import pytest
from marginal_likelihood_oracles import (
    LOG_ALPHA,
    MIXING,
    SCALES,
    N,
    S,
    d,
    difference,
    features,
    minus_log_density,
    n,
    oracle_rows,
    outputs,
    sample_probes,
)
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.data.source import Block
from ulmus.core.input_map.marginal_likelihood import ProbeNetworks, Weighting, probe_networks
from ulmus.core.layer.hidden_layer import ACTIVATIONS, UnitDistribution
from ulmus.core.layer.inputs import Inputs

maps = pytest.mark.parametrize("L", [SCALES, MIXING], ids=["scales", "matrix"])
centrings = pytest.mark.parametrize("centred", [False, True])
weightings = pytest.mark.parametrize("weighted", [False, True])


@maps
@centrings
@weightings
def test_marginal_likelihood_is_the_normal_density_at_its_best_noise(L, centred, weighted):
    _, y, weight = oracle_rows(1, weighted)
    network = sample_probes(1, weighted, centred, seeds=[0])
    H = features(network, L, 0, weight, centred)
    y = outputs(y, weight, centred)[:, 0]
    expected = minus_log_density(y, H, math.exp(LOG_ALPHA))
    assert_allclose(network.negative_log_likelihood(L, LOG_ALPHA).value, expected, rtol=1e-7)


@maps
@centrings
@weightings
def test_the_profile_over_alpha_has_the_values_at_each(L, centred, weighted):
    network, log_alphas = sample_probes(2, weighted, centred), LOG_ALPHA + np.array([-4.0, 0.0, 3])
    expected = [network.negative_log_likelihood(L, float(a)).value for a in log_alphas]
    assert_allclose(network.profile(L, log_alphas), expected, rtol=1e-8)


@centrings
def test_outputs_add_up_and_networks_are_averaged(centred):
    K = 3
    _, y, weight = oracle_rows(K, weighted=True)
    network, total = sample_probes(K, True, centred), 0.0
    for s in range(S):
        H = features(network, SCALES, s, weight, centred)
        for column in outputs(y, weight, centred).T:
            total += minus_log_density(column, H, math.exp(LOG_ALPHA)) / S
    assert_allclose(network.negative_log_likelihood(SCALES, LOG_ALPHA).value, total, rtol=1e-8)


@pytest.mark.parametrize("seed", [0, 1])
def test_networks_have_weights_of_mean_one(seed):
    network = sample_probes(2, weighted=True)
    _, y, weight = oracle_rows(2, weighted=True)
    assert_allclose(network.weighting.root[:, 0] ** 2, weight / np.mean(weight), rtol=1e-9)
    assert_allclose(network.y, outputs(y, weight, True), rtol=1e-9, atol=1e-10)
    H = features(network, SCALES, seed, weight, True)
    assert_allclose(network.features(seed, SCALES)[0], H, rtol=1e-9, atol=1e-10)


@maps
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    ("centred", "weighted"), [(True, False), (False, True), (True, True)], ids=str
)
def test_gradients_are_central_differences(activation, L, centred, weighted):
    network = sample_probes(2, weighted, centred, activation)
    if activation == "relu":  # no unit passes its kink on the way
        for s in range(S):
            u = network.Z @ network.mapped(s, L) + network.b[s]
            assert np.min(np.abs(u)) > 1e-3
    result = network.negative_log_likelihood(L, LOG_ALPHA)
    by_map = np.empty_like(L)
    for index in np.ndindex(L.shape):
        by_map[index] = difference(
            lambda p: network.negative_log_likelihood(p, LOG_ALPHA).value, L, index
        )
    assert_allclose(result.by_map, by_map, rtol=1e-5, atol=1e-7)
    by_alpha = difference(lambda p: network.negative_log_likelihood(L, p[0]).value, [LOG_ALPHA], 0)
    assert_allclose(result.by_log_alpha, by_alpha, rtol=1e-5)


def test_a_diagonal_matrix_is_its_diagonal():
    network = sample_probes()
    scales, matrix = (
        network.negative_log_likelihood(L, LOG_ALPHA) for L in (SCALES, np.diag(SCALES))
    )
    assert_allclose(matrix.value, scales.value, rtol=1e-12)
    assert_allclose(np.diag(matrix.by_map), scales.by_map, rtol=1e-9, atol=1e-11)


def in_library(network, xp, dtype):
    """The same networks with arrays of another library."""
    arrays = {
        field.name: xp.asarray(value, dtype=dtype)
        for field in dataclasses.fields(ProbeNetworks)
        if isinstance(value := getattr(network, field.name), np.ndarray)
    }
    if network.weighting is not None:
        arrays["weighting"] = Weighting(xp.asarray(network.weighting.root, dtype=dtype))
    return dataclasses.replace(network, **(arrays | {"order": network.order}))


@pytest.mark.slow
@maps
@pytest.mark.parametrize("activation", ["tanh", "logistic", "rbf"])
def test_marginal_likelihood_in_other_libraries(xp, L, activation):
    network = sample_probes(2, True, True, activation)
    foreign = in_library(network, xp, xp.float64)
    result, expected = (one.negative_log_likelihood(L, LOG_ALPHA) for one in (foreign, network))
    assert isinstance(result.value, float)
    assert isinstance(result.by_map, np.ndarray)
    assert_allclose(result.value, expected.value, rtol=1e-10)
    assert_allclose(result.by_map, expected.by_map, rtol=1e-8, atol=1e-10)
    assert_allclose(result.by_log_alpha, expected.by_log_alpha, rtol=1e-8)
    sizes = [one.gradient_size(L, LOG_ALPHA) for one in (foreign, network)]
    assert_allclose(*sizes, rtol=1e-9)
    assert_allclose(foreign.feature_size, network.feature_size, rtol=1e-12)


@pytest.mark.slow
def test_marginal_likelihood_in_single_precision(torch):
    network = sample_probes(2, True)
    single = in_library(network, torch, torch.float32)
    result, expected = (one.negative_log_likelihood(SCALES, LOG_ALPHA) for one in (single, network))
    assert_allclose(result.value, expected.value, rtol=1e-4)
    assert_allclose(result.by_map, expected.by_map, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
def test_repeated_features_without_ridge_have_an_infinite_value(library):
    xp = pytest.importorskip(library)
    network = sample_probes()
    twice = np.concatenate([network.W, network.W], axis=2)
    b = np.concatenate([network.b, network.b], axis=1)
    network = in_library(dataclasses.replace(network, W=twice, b=b), xp, xp.float64)
    result = network.negative_log_likelihood(SCALES, -300.0)
    assert result.value == math.inf
    assert_array_equal(result.by_map, np.zeros(d))
    assert network.coefficients(SCALES, -300.0) is None
    assert network.gradient_size(SCALES, -300.0) is None
    assert math.isfinite(network.negative_log_likelihood(SCALES, LOG_ALPHA).value)


@maps
def test_gradient_size_is_the_mean_squared_derivative_of_predictions(L):
    network = sample_probes(2, weighted=True)
    b = network.coefficients(L, LOG_ALPHA)
    step, expected = 1e-5, []
    for j in range(d):
        move = step * (np.arange(d) == j)
        up, down = (network.predictions(network.Z + side * move, L, b) for side in (1, -1))
        expected.append(np.sum(np.mean(((up - down) / (2 * step)) ** 2, axis=0)))
    assert_allclose(network.gradient_size(L, LOG_ALPHA), expected, rtol=1e-7)


def test_coefficients_are_ridge_regressions():
    network = sample_probes(2, weighted=True)
    _, y, weight = oracle_rows(2, weighted=True)
    result = network.coefficients(SCALES, LOG_ALPHA)
    for s in range(S):
        H = features(network, SCALES, s, weight, True)
        G = H.T @ H + math.exp(LOG_ALPHA) * np.eye(N)
        expected = np.linalg.solve(G, H.T @ outputs(y, weight, True))
        assert_allclose(result[s], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_no_networks_where_nothing_varies(library):
    xp = pytest.importorskip(library)
    X, y, _ = oracle_rows(2)
    X, y = xp.asarray(X), xp.asarray(y)
    law = UnitDistribution("normal", None, "tanh")
    inputs = Inputs(xp.zeros(d, dtype=xp.float64), xp.ones(d, dtype=xp.float64))

    def made(X, y):
        return probe_networks(Block(X, y, None), inputs, law, [0], N, centred=True)

    assert made(X, y) is not None
    assert made(X, 0 * y + 5) is None
    assert made(0 * X + 2, y) is None


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_units_of_outputs_do_not_matter(size):
    X, y, _ = oracle_rows()
    law, inputs = UnitDistribution("normal", None, "tanh"), Inputs(np.zeros(d), np.ones(d))
    values = []
    for values_of in (y, size * y):
        network = probe_networks(Block(X, values_of, None), inputs, law, [0], N, centred=True)
        values.append(network.negative_log_likelihood(SCALES, LOG_ALPHA).value)
    assert_allclose(*values, rtol=1e-10)


@pytest.mark.parametrize("unit", [1.0, 3.7])
def test_networks_depend_neither_on_the_order_of_rows_nor_on_the_unit_of_weights(unit):
    X, y, weight = oracle_rows(2, weighted=True)
    law, inputs = UnitDistribution("normal", None, "tanh"), Inputs(np.zeros(d), np.ones(d))
    expected = probe_networks(Block(X, y, np.sqrt(weight)), inputs, law, [0], N, centred=True)
    for seed in range(20):
        rows = np.random.default_rng(seed).permutation(n)
        sample = Block(X[rows], y[:, rows], np.sqrt(unit * weight[rows]))
        result = probe_networks(sample, inputs, law, [0], N, centred=True)
        for field in ("Z", "y"):
            assert_array_equal(getattr(result, field), getattr(expected, field))
        assert_array_equal(result.weighting.root, expected.weighting.root)
        assert_array_equal(rows[result.order], expected.order)


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
@pytest.mark.parametrize("activation", ["tanh", "cos"])
def test_even_units_have_the_law_of_drawn_ones(distribution, activation):
    for scale in (None, np.array([0.5, 2.0])):
        law = UnitDistribution(distribution, scale, activation)
        sobol_member, drawn = law.sobol_member(0, 2, 1024), law.member(0, 2, 1024)
        for a, b in zip(sobol_member, drawn, strict=True):
            assert a.shape == b.shape
            # Standard errors of 1024 draws are about 3 % of a standard deviation.
            assert_allclose(np.std(a, axis=-1), np.std(b, axis=-1), rtol=0.1)
            assert_allclose(np.mean(a, axis=-1), np.mean(b, axis=-1), atol=0.15 * np.max(np.std(b)))


def test_torch_and_numpy_give_the_same_networks(torch):
    X, y, weight = oracle_rows(2, weighted=True)
    law = UnitDistribution("normal", None, "tanh")
    made = []
    for convert in (np.asarray, torch.asarray):
        inputs = Inputs(convert(np.zeros(d)), convert(np.ones(d)))
        sample = Block(convert(X), convert(y), convert(np.sqrt(weight)))
        made.append(probe_networks(sample, inputs, law, [4, 5], N, centred=True))
    for field in (*"ZyWb", "weighting.root"):
        one, other = (to_numpy(attrgetter(field)(network)) for network in made)
        assert_allclose(one, other, rtol=1e-12, atol=1e-14)
