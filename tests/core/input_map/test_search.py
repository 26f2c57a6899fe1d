"""The steps of the search of a map: coordinates of the curvature, starts, and small networks."""

import math

import numpy as np
import pytest
from marginal_likelihood_oracles import LOG_ALPHA, MIXING, SCALES, d, difference, sample_probes
from numpy.testing import assert_allclose

from ulmus.core.data.source import Block
from ulmus.core.input_map import search as searches
from ulmus.core.input_map.information import information
from ulmus.core.input_map.marginal_likelihood import probe_networks
from ulmus.core.input_map.optimisation import learned_map
from ulmus.core.input_map.search import Search, mixed
from ulmus.core.input_map.settings import SETTINGS
from ulmus.core.input_map.starts import best_starts
from ulmus.core.layer.hidden_layer import UnitDistribution
from ulmus.core.layer.inputs import Inputs


def silent(sentence):
    """Discard messages."""


def table(function, n=400, n_inputs=6, noise=0.2, seed=0):
    """Two networks for outputs of the first inputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_inputs))
    y = function(X) + noise * rng.normal(size=n)
    law, inputs = (
        UnitDistribution("normal", None, "tanh"),
        Inputs(np.zeros(n_inputs), np.ones(n_inputs)),
    )
    return probe_networks(Block(X, y[None, :], None), inputs, law, [0, 1], 256, centred=True)


def smooth(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


def wave(X):
    return X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2] * X[:, 3])


# ---------------------------------------------------------------- minimisation


def test_newton_steps_solve_a_quadratic(rng):
    A, centre = rng.normal(size=(5, 5)) * [100.0, 10.0, 1.0, 1.0, 0.1], rng.normal(size=5)
    curvature = A @ A.T + np.eye(5)

    def target(p):
        return 0.5 * (p - centre) @ curvature @ (p - centre), curvature @ (p - centre)

    root = np.linalg.inv(np.linalg.cholesky(curvature)).T
    bounds = np.array([[-10.0, 10.0]] * 5)
    p, value, evaluations = searches._minimum_near(target, np.zeros(5), bounds, 10, root)
    assert_allclose(p, centre, rtol=1e-6)
    assert value < 1e-8
    assert evaluations <= 3


def test_parameters_stay_within_their_bounds():
    def target(p):
        return float(np.sum((p - [3.0, 0.5]) ** 2)), 2 * (p - [3.0, 0.5])

    bounds = np.array([[-1.0, 1.0], [-1.0, 1.0]])
    p, _, _ = searches._minimum_near(target, np.zeros(2), bounds, 30, np.eye(2))
    assert_allclose(p, [1.0, 0.5], atol=1e-3)


def test_roots_are_those_of_the_inverse_curvature(monkeypatch):
    """Curvature of the criterion by log scales, or by theta and F, from the average information."""
    networks = sample_probes(1, seeds=[0])
    monkeypatch.setattr(searches, "for_curvature", lambda networks, alpha: (networks, alpha, 1.0))
    search, kept = Search(networks, silent), np.ones(d, dtype=bool)
    p = np.append(np.log(SCALES), LOG_ALPHA)
    root = search._scale_root(p, kept)
    entries = np.repeat(np.arange(d)[:, None], 2, axis=1)
    expected = information(networks, SCALES, LOG_ALPHA, entries, relative=True)
    prior = np.maximum(0, 2 * (1 - p[:d] ** 2) / (1 + p[:d] ** 2) ** 2)
    expected = expected + np.diag([*prior, 0]) + SETTINGS.least_information * np.eye(d + 1)
    assert_allclose(np.linalg.inv(root @ root.T), expected, rtol=1e-8)

    F = np.array([[0.1, 0.2, 0.0], [-0.1, 0.0, 0.3], [0.0, 0.2, -0.1]])
    p = np.concatenate([np.log(SCALES), F.ravel(), [LOG_ALPHA]])
    root, L = search._matrix_root(p, kept), mixed(p, kept)
    assert_allclose(L, SCALES[:, None] * (np.eye(d) + F), rtol=1e-12)
    entries = np.array([(i, j) for i in range(d) for j in range(d)])
    by_entries = information(networks, L, LOG_ALPHA, entries, relative=False)
    chain = np.empty((d * d, d + d * d))
    for t in range(d + d * d):
        move = 1e-6 * (np.arange(len(p)) == t)
        chain[:, t] = (mixed(p + move, kept) - mixed(p - move, kept)).ravel() / 2e-6
    inner = np.linalg.inv(root @ root.T)[: d + d * d, : d + d * d]
    prior = np.maximum(0, 2 * (1 - p[:d] ** 2) / (1 + p[:d] ** 2) ** 2)
    ridge = np.diag([*prior, *[SETTINGS.mixing_precision] * d * d])
    expected = chain.T @ by_entries[:-1, :-1] @ chain + ridge
    expected = expected + SETTINGS.least_information * np.eye(d + d * d)
    assert_allclose(inner, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_information_of_entries_and_of_relative_changes_agree():
    """A change P of L adds P L, so that entry (i, j) of P is a row of entries of L."""
    networks = sample_probes(2, weighted=True)
    entries = np.array([(i, j) for i in range(d) for j in range(d)])
    absolute, relative = (
        information(networks, MIXING, LOG_ALPHA, entries, relative=one) for one in (False, True)
    )
    chain = np.zeros((d * d + 1, d * d + 1))
    chain[-1, -1] = 1.0
    for t, (i, j) in enumerate(entries):
        P = np.zeros((d, d))
        P[i, j] = 1.0
        chain[:-1, t] = (P @ MIXING).ravel()
    assert_allclose(chain.T @ absolute @ chain, relative, rtol=1e-8)


# ---------------------------------------------------------------- small networks


def test_networks_in_single_precision_have_the_gradient_of_double_precision():
    networks = table(smooth, 1500)
    L, log_alpha = np.array([1.5, 0.7, 0.7, 0.1, 0.1, 0.1]), math.log(1e-3 * networks.feature_size)
    single, double = (
        one.negative_log_likelihood(L, log_alpha) for one in (networks.single, networks)
    )
    assert networks.single.Z.dtype == np.float32
    assert abs(single.value - double.value) < 0.02
    assert_allclose(single.by_map, double.by_map, rtol=1e-3, atol=0.05)
    assert_allclose(single.by_log_alpha, double.by_log_alpha, atol=0.02)


def test_degrees_of_freedom_are_the_trace_of_the_smoother():
    networks = sample_probes(2, weighted=True)
    traces = []
    for s in range(networks.n_networks):
        H, _ = networks.features(s, SCALES)
        G = H.T @ H + math.exp(LOG_ALPHA) * np.eye(H.shape[1])
        traces.append(np.trace(H @ np.linalg.solve(G, H.T)))
    assert_allclose(networks.dof(SCALES, LOG_ALPHA), np.mean(traces), rtol=1e-9)
    by_alpha = difference(lambda p: networks.value(SCALES, p[0]), [LOG_ALPHA], 0)
    gradient = networks.negative_log_likelihood(SCALES, LOG_ALPHA).by_log_alpha
    assert_allclose(gradient, by_alpha, rtol=1e-5)


def test_smaller_networks_are_the_first_ones_and_keep_the_order_of_their_rows():
    networks = table(smooth, 100)
    few = networks.smaller(50, 32, 1)
    assert few.W.shape == (1, 6, 32)
    assert_allclose(few.Z, networks.Z[::2])
    assert_allclose(few.order, networks.order[::2])


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["ard", "full"])
@pytest.mark.parametrize("function", [smooth, wave])
def test_most_steps_on_a_small_network_find_the_map_of_all_networks(structure, function):
    """Further steps by all networks gain less than a hundredth of what the map gains.

    The maxima that are found differ by a few units with the last digits of matrix products.
    """
    networks = table(function, 1200)
    found, last = learned_map(networks, structure, silent)
    assert last.n_units <= networks.n_units
    log_alpha = found.log_alpha + math.log(networks.n_units / last.n_units)
    search, kept = Search(networks, silent), np.any(found.matrix != 0, axis=1)
    value = networks.value(found.matrix, log_alpha)
    if structure == "ard":
        p = np.append(np.log(np.where(kept, np.diag(found.matrix), 1.0)), log_alpha)
        after = search.best_scales(p, kept, 100, "scales", near=True)[1]
    else:
        theta = np.log(np.where(kept, np.diag(found.matrix), 1.0))
        F = found.matrix / np.exp(theta)[:, None] - np.diag(kept)
        p = np.concatenate([theta, F.ravel(), [log_alpha]])
        after = search.matrix(p, kept, 100)[1]
    assert value - after < 0.01 * abs(value)
    useful = 3 if function is smooth else 4
    size = np.linalg.norm(found.matrix, axis=1)
    assert np.min(size[:useful]) > 3 * np.max(size[useful:])


def test_importances_are_a_start_and_required_where_other_starts_find_little():
    networks = table(wave, 300, n_inputs=24).smaller(300, 128, 1)
    search = Search(networks, silent)
    alone, _ = best_starts(search, None)
    importances = np.array([1.0] * 4 + [0.01] * 20)
    known, required = best_starts(search, importances)
    assert known[0].value < alone[0].value - 10
    assert known[0].name == "importances"
    assert required
    useless, required = best_starts(search, importances[::-1])
    assert not required
    assert useless[0].value <= alone[0].value + 1


def test_a_function_of_one_input_is_found_where_a_common_scale_explains_nothing():
    networks = table(wave, 300, n_inputs=24).smaller(300, 128, 1)
    found, _ = best_starts(Search(networks, silent), None)
    assert found[0].name == "single inputs"
    assert found[0].value < -50
    assert np.all(np.argsort(found[0].scales[:-1])[-2:] < 4)


def test_steps_from_a_far_start_begin_with_one_of_length_one():
    visited = []

    def target(p):
        visited.append(p)
        return 1e6 * float(np.sum((p - 1) ** 2)), 2e6 * (p - 1)

    bounds = np.array([(-6.0, 5.0), (-13.0, 7.0)])
    found, value, _ = searches._minimum_far(target, np.zeros(2), bounds, 50)
    assert_allclose(np.linalg.norm(visited[1] - visited[0]), 1.0, rtol=1e-6)
    assert_allclose(found, 1.0, atol=1e-3)
    assert value < 1.0


def test_log_alpha_is_raised_at_a_start_that_is_not_positive_definite_and_stays_within_bounds():
    def target(p):
        if p[-1] < -4:
            return math.inf, np.zeros(2)
        assert p[-1] <= 7  # the upper bound
        return float(p[0] ** 2 - p[-1]), np.array([2 * p[0], -1.0])

    bounds = np.array([(-6.0, 5.0), (-13.0, 7.0)])
    found, value, _ = searches._minimum_far(target, np.array([1.0, -12.0]), bounds, 50)
    assert_allclose(found, [0.0, 7.0], atol=1e-3)
    assert_allclose(value, -7.0, atol=1e-3)
