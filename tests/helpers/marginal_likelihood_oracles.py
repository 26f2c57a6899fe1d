"""Marginal likelihood of random networks by normal densities, with explicit matrices."""

import math

import numpy as np
from scipy.stats import multivariate_normal

from ulmus.core.data.source import Block
from ulmus.core.input_map.marginal_likelihood import probe_networks
from ulmus.core.layer.hidden_layer import UnitDistribution
from ulmus.core.layer.inputs import Inputs

n, d, N, S = 25, 3, 6, 2
LOG_ALPHA = math.log(0.3)
SCALES = np.array([0.7, 1.3, 0.4])
MIXING = np.array([[0.7, 0.2, -0.1], [0.3, 1.3, 0.5], [-0.2, 0.1, 0.4]])


def oracle_rows(K=1, weighted=False):
    """Rows in the order that networks put them into, outputs (K, n) and weights."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d)) * [1.0, 2.0, 0.5] + [0.0, 1.0, -1.0]
    X = X[np.argsort(X[:, -1])]
    y = np.stack([np.sin(X[:, 0]) + (k + 1) * X[:, 1] ** 2 for k in range(K)])
    weight = rng.uniform(0.3, 3.0, n) if weighted else None
    return X, y + 0.3 * rng.normal(size=(K, n)), weight


def sample_probes(K=1, weighted=False, centred=True, activation="tanh", seeds=(0, 1)):
    """Networks for that table, one for each seed."""
    X, y, weight = oracle_rows(K, weighted)
    sample = Block(X, y, None if weight is None else np.sqrt(weight))
    law = UnitDistribution("normal", None, activation)
    inputs = Inputs(np.mean(X, axis=0), np.std(X, axis=0))
    return probe_networks(sample, inputs, law, list(seeds), N, centred=centred)


def features(network, L, s, weight, centred, g=np.tanh):
    """Hidden features of one network, by loops: weighted, and centred by their weighted mean."""
    L = np.diag(L) if L.ndim == 1 else L
    Z, W, b = network.Z, network.W[s], network.b[s]
    w = np.ones(n) if weight is None else weight * n / np.sum(weight)
    H = np.empty((n, N))
    for i in range(n):
        for k in range(N):
            H[i, k] = g(sum(Z[i] @ L[:, j] * W[j, k] for j in range(d)) + b[k])
    if centred:
        for k in range(N):
            H[:, k] -= sum(w[i] * H[i, k] for i in range(n)) / n
    return np.sqrt(w)[:, None] * H


def outputs(y, weight, centred):
    """Outputs (n, K) of variance one, by loops."""
    w = np.ones(n) if weight is None else weight * n / np.sum(weight)
    columns = []
    for values in y:
        mean = sum(w * values) / n if centred else 0.0
        sd = math.sqrt(sum(w * (values - mean) ** 2) / n)
        columns.append(np.sqrt(w) * (values - mean) / sd)
    return np.stack(columns, axis=1)


def minus_log_density(y, H, alpha):
    """Of y under N(0, s2 (I + HH'/alpha)) with the s2 that makes it greatest.

    The evidence leaves out (n/2) (log(2 pi) + 1): the constant of the normal density, and the
    quadratic form at the best s2.
    """
    C = np.eye(n) + H @ H.T / alpha
    s2 = y @ np.linalg.solve(C, y) / n
    density = multivariate_normal(np.zeros(n), s2 * C, allow_singular=False).logpdf(y)
    return -density - n / 2 * (math.log(2 * math.pi) + 1)


def difference(function, at, index, step=1e-5):
    """Central difference of fourth order."""

    def moved(by):
        point = np.array(at, dtype=float)
        point[index] += by
        return function(point)

    near, far = moved(step) - moved(-step), moved(2 * step) - moved(-2 * step)
    return (8 * near - far) / (12 * step)
