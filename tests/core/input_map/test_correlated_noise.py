"""Input maps with correlated noise: the marginal likelihood of whitened rows, and its purpose."""

import math
from dataclasses import replace

import numpy as np
import pytest
from marginal_likelihood_oracles import (
    LOG_ALPHA,
    MIXING,
    SCALES,
    N,
    S,
    difference,
    features,
    minus_log_density,
    n,
    oracle_rows,
    outputs,
    sample_probes,
)
from models import mapped_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from ulmus.core.data.source import Block
from ulmus.core.fit import layer as fit_layer
from ulmus.core.input_map.correlated_noise import (
    learned_map_correlated,
    noise_correlation,
    whitened,
)
from ulmus.core.input_map.marginal_likelihood import probe_networks
from ulmus.core.input_map.optimisation import learned_map
from ulmus.core.layer.hidden_layer import UnitDistribution
from ulmus.core.layer.inputs import Inputs
from ulmus.core.noise_covariance.kernels import Kernel
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.core.noise_covariance.structure import CovarianceStructure, CovarianceTerm
from ulmus.noise import AR1, Exponential, NeweyWest

maps = pytest.mark.parametrize("L", [SCALES, MIXING], ids=["scales", "matrix"])
centrings = pytest.mark.parametrize("centred", [False, True])
weightings = pytest.mark.parametrize("weighted", [False, True])
silent_report = [].append  # messages are ignored
SERIAL = CovarianceStructure((CovarianceTerm("time", Kernel("exponential")),))


def correlation():
    """Of an autoregression with gaps and a nugget."""
    time = np.cumsum(np.random.default_rng(0).uniform(0.2, 3.0, n))
    return 0.8 * np.exp(-np.abs(np.subtract.outer(time, time)) / 3) + 0.2 * np.eye(n)


def symmetric_root(S):
    """The inverse of the symmetric root of S: another root than the triangle of a factor."""
    values, vectors = np.linalg.eigh(S)
    return vectors @ np.diag(values**-0.5) @ vectors.T


@maps
@weightings
def test_whitened_evidence_is_the_density_under_dependent_noise(L, weighted):
    _, y, weight = oracle_rows(1, weighted)
    plain, S_ = sample_probes(1, weighted, centred=False, seeds=[0]), correlation()
    found = whitened(plain, S_).negative_log_likelihood(L, LOG_ALPHA).value
    # Rows times the roots of their weights have noise of correlation S; V keeps their total weight.
    H, z = features(plain, L, 0, weight, centred=False), outputs(y, weight, centred=False)[:, 0]
    root = np.ones(n) if weight is None else np.sqrt(weight * n / np.sum(weight))
    size = n / (root @ np.linalg.solve(S_, root))
    covariance = S_ / size + H @ H.T / math.exp(LOG_ALPHA)
    s2 = z @ np.linalg.solve(covariance, z) / n
    density = multivariate_normal(np.zeros(n), s2 * covariance).logpdf(z)
    constant = n / 2 * (math.log(2 * math.pi) + 1) + np.linalg.slogdet(S_ / size)[1] / 2
    assert_allclose(found, -density - constant, rtol=1e-7)


@weightings
def test_an_intercept_is_taken_out_of_whitened_rows(weighted):
    _, y, weight = oracle_rows(1, weighted)
    plain, V = sample_probes(1, weighted, centred=True, seeds=[0]), symmetric_root(correlation())
    root = np.ones(n) if weight is None else np.sqrt(weight * n / np.sum(weight))
    V = V * math.sqrt(n / np.sum((V @ root) ** 2))
    along = V @ root / math.sqrt(n)
    left = np.eye(n) - np.outer(along, along)
    H = left @ V @ features(plain, SCALES, 0, weight, centred=False)
    z = left @ V @ outputs(y, weight, centred=True)[:, 0]
    expected = minus_log_density(z, H, math.exp(LOG_ALPHA))
    found = whitened(plain, correlation()).negative_log_likelihood(SCALES, LOG_ALPHA).value
    assert_allclose(found, expected, rtol=1e-7)


@maps
@centrings
@weightings
def test_gradients_of_whitened_evidence_are_central_differences(L, centred, weighted):
    network = whitened(sample_probes(2, weighted, centred), correlation())
    found = network.negative_log_likelihood(L, LOG_ALPHA)
    by_map = np.empty_like(L)
    for index in np.ndindex(L.shape):
        by_map[index] = difference(
            lambda p: network.negative_log_likelihood(p, LOG_ALPHA).value, L, index
        )
    assert_allclose(found.by_map, by_map, rtol=1e-5, atol=1e-7)
    by_alpha = difference(lambda p: network.negative_log_likelihood(L, p[0]).value, [LOG_ALPHA], 0)
    assert_allclose(found.by_log_alpha, by_alpha, rtol=1e-5)


@centrings
@weightings
def test_independent_noise_whitens_nothing(centred, weighted):
    plain = sample_probes(2, weighted, centred)
    found, expected = (
        network.negative_log_likelihood(SCALES, LOG_ALPHA)
        for network in (whitened(plain, np.eye(n)), plain)
    )
    assert_allclose(found.value, expected.value, rtol=1e-8)
    assert_allclose(found.by_map, expected.by_map, rtol=1e-6, atol=1e-9)


@centrings
@weightings
def test_coordinates_are_those_of_the_mean_smoother(centred, weighted):
    _, _, weight = oracle_rows(1, weighted)
    network, P = sample_probes(1, weighted, centred), np.zeros((n, n))
    root = np.ones(n) if weight is None else np.sqrt(weight * n / np.sum(weight))
    for s in range(S):
        H = features(network, SCALES, s, weight, centred)
        P += H @ np.linalg.solve(H.T @ H + math.exp(LOG_ALPHA) * np.eye(N), H.T) / S
        P += centred * np.outer(root, root) / n / S
    C = network.coordinates(SCALES, LOG_ALPHA)
    assert_allclose(C.T @ C / S, P, rtol=1e-8, atol=1e-10)


def autoregression(rng, size, phi):
    e, noise = rng.standard_normal(size) * math.sqrt(1 - phi**2), np.empty(size)
    noise[0] = rng.standard_normal()
    for i in range(1, size):
        noise[i] = phi * noise[i - 1] + e[i]
    return noise


def autocorrelated_inputs(seed, phi, size=200):
    """Autocorrelated inputs, a function of the first, and noise."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([autoregression(rng, size, 0.8) for _ in range(3)])
    f = np.tanh(2 * X[:, 0])
    return X, f, f + 0.5 * autoregression(rng, size, phi)


@pytest.mark.slow
def test_a_map_follows_dependent_noise_less():
    """Over twelve tables the error is less by a tenth or more, and hardly ever greater."""
    errors = []
    for seed in range(12):
        X, f, y = autocorrelated_inputs(seed, phi=0.8)
        free = mapped_ensemble(4, 60, noise=AR1(), random_state=seed).fit(X, y)
        # The kernel of Newey and West implies no covariance: its map assumes independent rows.
        blind = mapped_ensemble(4, 60, noise=NeweyWest(), random_state=seed).fit(X, y)
        errors.append([np.sqrt(np.mean((m.predict(X) - f) ** 2)) for m in (free, blind)])
    mean = np.mean(errors, axis=0)
    assert mean[0] < 0.9 * mean[1]


def test_independent_rows_have_the_map_of_independent_noise():
    X, _, y = autocorrelated_inputs(0, phi=0.0)
    maps_ = [
        mapped_ensemble(4, 60, noise=noise).fit(X, y).fitted_.input_map.matrix
        for noise in (AR1(), "homoskedastic")
    ]
    assert_array_equal(*maps_)


def sample_networks(X, y, size=120):
    inputs = Inputs(np.mean(X, axis=0), np.std(X, axis=0))
    law = UnitDistribution("normal", None, "tanh")
    return probe_networks(Block(X, y[None, :], None), inputs, law, [1, 2], size // 2, centred=True)


def test_noise_is_estimated_given_the_first_map_at_the_locations_of_the_sorted_rows():
    X, _, y = autocorrelated_inputs(1, phi=0.8, size=400)
    judging = sample_networks(X, y)
    assumed = CovarianceSpec(SERIAL, Locations(np.arange(400.0)))
    found, judging = learned_map(judging, "ard", silent_report)
    R = noise_correlation(judging, found, assumed, silent_report)
    assert_allclose(np.diag(R), 1.0, rtol=1e-12)
    # Networks sort the rows by their inputs; neighbours in time correlate wherever they are.
    rank = np.argsort(judging.order)
    neighbours = R[rank[:-1], rank[1:]]
    assert 0.6 < np.min(neighbours) <= np.max(neighbours) < 0.95


def test_the_second_map_keeps_what_the_first_kept():
    X, _, y = autocorrelated_inputs(1, phi=0.8)
    judging = sample_networks(X, y)
    assumed = CovarianceSpec(SERIAL, Locations(np.arange(200.0)))
    first, _ = learned_map(judging, "ard", silent_report)
    second, white = learned_map_correlated(judging, "ard", assumed, silent_report)
    assert_array_equal(np.diag(second.matrix) > 0, np.diag(first.matrix) > 0)
    assert white.weighting.root.shape == (200, 200)
    matrix, _ = learned_map_correlated(judging, "full", assumed, silent_report)
    assert matrix.structure == "full"
    assert matrix.value < second.value


def test_too_few_rows_beside_the_smoother_are_independent():
    X, _, y = autocorrelated_inputs(1, phi=0.8, size=40)
    judging = sample_networks(X, y, 80)
    found, judging = learned_map(judging, "ard", silent_report)
    wiggly = replace(found, matrix=30 * np.eye(3), log_alpha=-12.0)
    assumed = CovarianceSpec(SERIAL, Locations(np.arange(40.0)))
    assert noise_correlation(judging, wiggly, assumed, silent_report) is None


@pytest.mark.slow
def test_streams_and_rows_of_weight_zero_have_the_same_map():
    X, _, y = autocorrelated_inputs(3, phi=0.8)
    weight = np.ones(len(y))
    weight[::7] = 0.0
    model = mapped_ensemble(4, 60, noise=AR1()).fit(X, y, sample_weight=weight)
    blocks = [(X[i : i + 64], y[i : i + 64], weight[i : i + 64]) for i in range(0, 200, 64)]
    streamed = mapped_ensemble(4, 60, noise=AR1()).fit_blocks(blocks)
    kept = weight > 0
    alone = mapped_ensemble(4, 60, noise=AR1()).fit(
        X[kept], y[kept], time=np.flatnonzero(kept).astype(float)
    )
    matrices = [m.fitted_.input_map.matrix for m in (model, streamed, alone)]
    assert_allclose(matrices[1], matrices[0], rtol=1e-9)
    assert_allclose(matrices[2], matrices[0], rtol=0.05)  # another sample, in another order


def test_rows_in_any_order_have_the_same_map():
    X, _, y = autocorrelated_inputs(4, phi=0.8)
    time = np.arange(200.0)
    order = np.random.default_rng(0).permutation(200)
    first = mapped_ensemble(4, 60, noise=AR1()).fit(X, y, time=time)
    other = mapped_ensemble(4, 60, noise=AR1()).fit(X[order], y[order], time=time[order])
    matrices = [m.fitted_.input_map.matrix for m in (first, other)]
    assert_allclose(*matrices, rtol=1e-6)


@pytest.mark.slow
def test_folds_and_rows_set_aside_learn_under_the_same_noise():
    X, _, y = autocorrelated_inputs(5, phi=0.8)
    model = mapped_ensemble(4, 60, noise=AR1()).fit(X, y)
    blind = mapped_ensemble(4, 60, noise=NeweyWest()).fit(X, y)
    folds = [m.fitted_.folds for m in (model, blind)]
    assert len(folds[0]) == 5
    for mine, theirs in zip(*folds, strict=True):
        assert not np.allclose(mine.layer.W, theirs.layer.W)
    aside = mapped_ensemble(4, 60, noise=AR1(), tuning_fraction=0.5).fit(X, y)
    assert np.all(np.isfinite(aside.predict_interval(X[:5])))


def test_many_rows_use_a_sample_at_its_locations(monkeypatch):
    monkeypatch.setattr(fit_layer, "MAX_WHITENED_ROWS", 80)
    seen = []

    def spy(networks, kind, assumed, *others):
        seen.append(assumed.locations.taken(networks.order).coords)
        seen.append(networks.Z)
        return learned_map_correlated(networks, kind, assumed, *others)

    monkeypatch.setattr(fit_layer, "learned_map_correlated", spy)
    rng = np.random.default_rng(0)
    locations = rng.uniform(size=(200, 2))
    y = locations[:, 0] + rng.normal(size=len(locations))
    model = mapped_ensemble(4, 60, noise=Exponential(), expand_inputs=None, alpha=1.0).fit(
        locations, y, coords=locations
    )
    at, Z = seen[:2]
    assert len(at) == 80
    assert_allclose(Z, (at - model.fitted_.scale.mean) / np.std(locations, axis=0), atol=1e-8)
