"""The directions that a smoother keeps against an eigendecomposition of all of it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ulmus.core.noise_covariance import smoothed_space
from ulmus.core.noise_covariance.smoothed_space import smoothed_directions

M, N = 4, 30


def smoother(n, alpha=0.1, seed=0, width=3.0):
    """Coordinates (M N, n) of ridge regressions on random hidden units."""
    rng = np.random.default_rng(seed)
    x = np.linspace(-1, 1, n)
    parts = []
    for _ in range(M):
        H = np.tanh(np.outer(x, rng.normal(0, width, N)) + rng.normal(0, 2, N))
        C = np.linalg.cholesky(H.T @ H + alpha * np.eye(N))
        parts.append(np.linalg.solve(C, H.T))
    return np.concatenate(parts)


def blocks_of(C, size):
    n = C.shape[1]
    return lambda: (C[:, start : min(start + size, n)] for start in range(0, n, size))


@pytest.mark.slow
@pytest.mark.parametrize("size", [7, 100, 2000])
@pytest.mark.parametrize("n", [50, 600, 700, 1500])
def test_it_spans_the_leading_eigenvectors(n, size):
    C = smoother(n)
    values, vectors = np.linalg.eigh(C.T @ C / M)
    strong = vectors[:, values >= 0.01]
    space = smoothed_directions(blocks_of(C, size), M)
    A = space.directions
    assert_allclose(space.shares, values[values >= 0.01][::-1], atol=1e-4)
    assert A.shape == strong.shape
    assert_allclose(A.T @ A, np.eye(A.shape[1]), atol=1e-10)
    # The cosines of the angles between both spaces.
    assert_allclose(np.linalg.svd(A.T @ strong)[1], 1, atol=1e-3)


@pytest.mark.parametrize("start", [2, 8, 500])
def test_columns_are_added_until_all_are_found(monkeypatch, start):
    monkeypatch.setattr(smoothed_space, "FIRST_COLUMNS", start)
    C = smoother(800)
    values = np.linalg.eigvalsh(C.T @ C / M)
    assert smoothed_directions(blocks_of(C, 300), M).directions.shape == (
        800,
        np.sum(values >= 0.01),
    )


def test_a_smoother_may_keep_every_unit():
    C = smoother(700, alpha=1e-8)[:N]
    assert smoothed_directions(blocks_of(C, 300), 1, threshold=1e-6).directions.shape[1] <= N
    orthonormal = np.linalg.qr(np.random.default_rng(1).standard_normal((700, 20)))[0]
    assert smoothed_directions(blocks_of(orthonormal.T, 300), 1).directions.shape == (700, 20)


def test_it_is_the_same_each_time():
    C = smoother(700)
    assert_allclose(
        *(smoothed_directions(blocks_of(C, 300), M).directions for _ in range(2)), rtol=0
    )


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 700])
def test_other_array_libraries(xp, n):
    C = smoother(n)
    A, ours = (
        smoothed_directions(blocks_of(C, 300), M).directions,
        smoothed_directions(blocks_of(xp.asarray(C), 300), M).directions,
    )
    assert isinstance(ours, np.ndarray)
    assert_allclose(ours @ ours.T, A @ A.T, atol=1e-4)
