"""A root by nearest neighbours: exact where all rows are neighbours, close where they are few."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.noise_covariance.kernels import Kernel
from ulmus.core.noise_covariance.vecchia import Neighbourhoods, NeighbourRoot


def root_of(coords, kernel, scale, neighbours=30, nugget=0.0):
    near = Neighbourhoods.of(coords, neighbours)
    return NeighbourRoot(near, lambda d: 2.0 * kernel(d, scale), nugget)


@pytest.mark.parametrize("n", [1, 2, 5, 70])
def test_with_all_rows_as_neighbours_it_is_the_covariance(n):
    coords = np.random.default_rng(0).random((n, 2))
    S = 2 * Kernel("exponential")(cdist(coords, coords), 0.2) + 0.3 * np.eye(n)
    root = root_of(coords, Kernel("exponential"), 0.2, neighbours=n, nugget=0.3)
    L = root.applied(np.eye(n))
    assert_allclose(L @ L.T, S, atol=1e-8)
    Y = np.random.default_rng(1).standard_normal((n, 3))
    white = root.whitened(Y)
    assert_allclose(white.T @ white, Y.T @ np.linalg.solve(S, Y), rtol=1e-7)
    assert_allclose(root.log_det, np.linalg.slogdet(S)[1], atol=1e-7)


def test_the_root_undoes_the_whitening():
    coords = np.random.default_rng(2).random((400, 2))
    root = root_of(coords, Kernel("matern", 1.5), 0.1, neighbours=10)
    L = root.applied(np.eye(400))
    assert_allclose(root.whitened(L), np.eye(400), atol=1e-6)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_neighbours_are_the_nearest_earlier_rows(dimension):
    coords = np.random.default_rng(3).random((300, dimension))
    near = Neighbourhoods.of(coords, 7)
    assert_array_equal(np.sort(near.order), range(300))
    placed = coords[near.order]
    for i in range(1, 300):
        nearest = np.argsort(np.linalg.norm(placed[:i] - placed[i], axis=1))[:7]
        expected = [*nearest, *[i] * (7 - len(nearest))]
        assert_array_equal(near.index[i], expected)


@pytest.mark.parametrize("kernel", [Kernel("exponential"), Kernel("matern", 1.5)], ids=str)
@pytest.mark.parametrize("scale", [0.03, 0.3])
def test_variances_of_smooth_means_are_close(kernel, scale):
    coords = np.random.default_rng(4).random((1000, 2))
    S = 2 * kernel(cdist(coords, coords), scale)
    x, y = coords.T
    mu = np.stack([np.ones(1000), x, np.sin(3 * x) * y, np.exp(-((x - 0.5) ** 2 + y**2) / 0.05)])
    columns = root_of(coords, kernel, scale).applied(mu)
    exact = np.sum((mu @ S) * mu, axis=1)
    assert_allclose(np.sum(columns**2, axis=1), exact, rtol=0.02)


def test_rows_at_the_same_place_are_one():
    coords = np.repeat(np.random.default_rng(5).random((40, 2)), 2, axis=0)
    root = root_of(coords, Kernel("exponential"), 0.3)
    L = root.applied(np.eye(80))
    assert_allclose((L @ L.T)[::2, 1::2], (L @ L.T)[::2, ::2], atol=1e-4)


@pytest.mark.slow
def test_other_array_libraries(xp):
    coords = np.random.default_rng(6).random((50, 2))
    root, t = root_of(coords, Kernel("exponential"), 0.2), np.ones((2, 3, 50))
    ours = root.applied(xp.asarray(t))
    assert isinstance(ours, type(xp.asarray(t)))
    assert_allclose(to_numpy(ours), root.applied(t))
