"""Response of a map to the outputs, against difference quotients and explicit matrices."""

import dataclasses
import math

import numpy as np
import pytest
from marginal_likelihood_oracles import LOG_ALPHA, MIXING, SCALES, S, d, n, sample_probes
from numpy.testing import assert_allclose

from ulmus.core.input_map import response
from ulmus.core.input_map.response import LEAST_CURVATURE, map_response
from ulmus.core.input_map.settings import LearnedMap

STEP = 1e-5


def learned(matrix, structure, log_alpha=LOG_ALPHA):
    undropped = matrix if structure == "full" else np.diag(matrix)
    return LearnedMap(structure, matrix, undropped, log_alpha, 0.0)


MAPS = {"ard": learned(np.diag(SCALES), "ard"), "full": learned(MIXING, "full")}
structures = pytest.mark.parametrize("structure", MAPS)
weightings = pytest.mark.parametrize("weighted", [False, True])


def gradient(networks, found):
    """Gradient of the negative log likelihood by the entries of P and by log alpha."""
    value = networks.negative_log_likelihood(found.matrix, found.log_alpha)
    by_change = value.by_map @ found.matrix.T
    entries = response._entries(found)
    return np.append(by_change[entries[:, 0], entries[:, 1]], value.by_log_alpha)


def terms(networks, found, k=0):
    entries = response._entries(found)
    each = [response._terms(networks, found, entries, s, k) for s in range(S)]
    return [np.mean(parts, axis=0) for parts in zip(*each, strict=True)]


@structures
@weightings
def test_second_derivatives_by_entries_and_outputs(structure, weighted):
    networks, found = sample_probes(1, weighted, centred=True), MAPS[structure]
    cross = terms(networks, found)[0]
    for i in range(0, n, 6):
        # The mean of a change of one output is no part of a centred one.
        change = networks.centred_rows(np.eye(n)[:, i : i + 1]) * STEP
        after, before = (
            gradient(dataclasses.replace(networks, y=networks.y + sign * change), found)
            for sign in (1, -1)
        )
        quotient = (after - before) / (2 * STEP)
        assert_allclose(cross @ change[:, 0] / STEP, quotient, rtol=1e-5, atol=1e-6)


@structures
@weightings
def test_average_information(structure, weighted):
    """With K = HH'/alpha + I and V = K^-1: y'V K_i V K_j V y / (2 s2), at the best s2."""
    networks, found = sample_probes(1, weighted, centred=True), MAPS[structure]
    entries, y, total = response._entries(found), networks.y[:, 0], 0.0
    for s in range(S):

        def covariance(L, log_alpha, s=s):
            H = networks.features(s, L)[0]
            return H @ H.T / math.exp(log_alpha) + np.eye(n)

        changes = []
        for i, j in entries:
            P = np.zeros((d, d))
            P[i, j] = STEP
            after, before = (
                covariance(found.matrix + sign * P @ found.matrix, LOG_ALPHA) for sign in (1, -1)
            )
            changes.append((after - before) / (2 * STEP))
        changes.append(np.eye(n) - covariance(found.matrix, LOG_ALPHA))
        V = np.linalg.inv(covariance(found.matrix, LOG_ALPHA))
        s2 = y @ V @ y / n
        slopes = np.array([y @ V @ K @ V @ y for K in changes])
        pairs = np.array([[y @ V @ K @ V @ J @ V @ y for J in changes] for K in changes])
        total = total + (pairs / s2 - np.outer(slopes, slopes) / (n * s2**2)) / (2 * S)
    assert_allclose(terms(networks, found)[1], total, rtol=1e-5, atol=1e-5 * np.abs(total).max())


@structures
def test_the_effect_is_that_on_predictions_of_the_networks(structure):
    networks, found = sample_probes(1), MAPS[structure]
    entries, columns = response._entries(found), []
    for i, j in entries:
        P = np.zeros((d, d))
        P[i, j] = STEP
        fitted = []
        for sign in (1, -1):
            L = found.matrix + sign * P @ found.matrix
            H = [networks.features(s, L)[0] for s in range(S)]
            b = networks.coefficients(L, LOG_ALPHA)
            fitted.append([h @ weights[:, 0] for h, weights in zip(H, b, strict=True)])
        columns.append((np.array(fitted[0]) - fitted[1]) / (2 * STEP))
    J = np.array(columns)  # (T, S, n)
    expected = np.einsum("tsi,usi->tu", J, J) / (S * n)
    assert_allclose(map_response(networks, found).effect, expected, rtol=1e-5, atol=1e-8)


@weightings
def test_outputs_add_up_and_units_divide(monkeypatch, weighted):
    monkeypatch.setattr(response, "LEAST_CURVATURE", 1e-2)
    found, one = MAPS["ard"], sample_probes(1, weighted)
    two = dataclasses.replace(one, y=np.repeat(one.y, 2, axis=1), sd=np.array([4.0, 0.0, 1.0]))
    answer = map_response(two, found)
    assert answer.by_y.shape == (d, 3, n)
    assert not np.any(answer.by_y[:, 1])
    assert_allclose(answer.by_y[:, 2], 4 * answer.by_y[:, 0], rtol=1e-10)
    cross, information, effect = terms(one, found)
    assert_allclose(answer.effect, 2 * effect[:d, :d], rtol=1e-10)
    curvature = 2 * information + response._prior_curvature(found, response._entries(found))
    assert np.linalg.eigvalsh(curvature)[0] > 1e-2
    root = 1.0 if one.weighting is None else one.weighting.root[:, 0]
    expected = -np.linalg.solve(curvature, cross)[:d] * root
    assert_allclose(answer.by_y[:, 2], expected, rtol=1e-8)


def test_flat_directions_have_the_curvature_of_the_prior():
    inverse = response._inverse(np.diag([1e-9, -5.0, 4.0]))
    assert_allclose(np.diag(inverse), [1 / LEAST_CURVATURE, 1 / LEAST_CURVATURE, 0.25])


def test_many_mixing_entries_are_held_fixed(monkeypatch):
    monkeypatch.setattr(response, "MOST_ENTRIES", 8)
    assert response._entries(MAPS["full"]).tolist() == [[0, 0], [1, 1], [2, 2]]


def test_dropped_inputs_have_no_entries():
    matrix = np.diag([0.7, 0.0, 0.4])
    assert response._entries(learned(matrix, "ard")).tolist() == [[0, 0], [2, 2]]
    assert len(response._entries(learned(matrix, "full"))) == 4


@structures
def test_the_covariance_of_log_scales_is_the_inverse_curvature_with_all_inputs(structure):
    networks = sample_probes()
    found = dataclasses.replace(MAPS[structure], matrix=np.diag([0.7, 0.0, 0.4]))
    root = response.log_scale_root(networks, found)
    matrix = SCALES if structure == "ard" else MIXING
    whole = dataclasses.replace(
        MAPS[structure], matrix=np.diag(matrix) if matrix.ndim == 1 else matrix
    )
    entries = np.repeat(np.arange(d)[:, None], 2, axis=1)
    information = response._terms(networks, whole, entries, 0, 0).information  # one network
    curvature = information + response._prior_curvature(whole, entries)
    assert_allclose(root @ root.T, response._inverse(curvature)[:d, :d], rtol=1e-8, atol=1e-10)
