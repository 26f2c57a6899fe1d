"""The tables on which the oracles are compared with peers and among themselves."""

import numpy as np
import pytest

N_ROWS, N_POINTS, N_NEURONS, M = 60, 7, 9, 5
HETEROSKEDASTIC = ["S1", "NHe", "S2", "S3"]

alphas = pytest.mark.parametrize("alpha", [0.0, 0.05])


def noisy_table(seed=0):
    """X, noisy y and new points: 3 inputs in [-1, 1], noise growing with the first."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N_ROWS, 3))
    noise = rng.standard_normal(N_ROWS) * (0.2 + 0.1 * X[:, 0])
    y = 1 + np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + noise
    return X, y, rng.uniform(-1, 1, (N_POINTS, 3))


def hidden_matrices(X, seed=1, members=M, neurons=N_NEURONS):
    """Logistic hidden matrices of `members` draws, the same draws for the same seed."""
    rng = np.random.default_rng(seed)
    W = rng.uniform(-3, 3, (members, X.shape[1], neurons))
    b = rng.uniform(-3, 3, (members, 1, neurons))
    return list(1 / (1 + np.exp(-(X @ W + b))))
