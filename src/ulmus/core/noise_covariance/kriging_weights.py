r"""Weights by which the noise of the rows predicts noise elsewhere: simple kriging.

With :math:`\Sigma` the noise covariance of the rows and c their covariance with the noise at a new
location, the best linear predictor of the latter is :math:`w'\epsilon` with
:math:`w = \Sigma^{-1} c`, and it explains :math:`c'w` of its variance. The predictor of a row from
all other rows has the weights :math:`-K_{ij} / K_{ii}` with :math:`K = \Sigma^{-1}`, and the error
variance :math:`1 / K_{ii}`.

In time only rows within a multiple of the correlation scale have weights, and solves are banded. In
space all rows have weights, or the nearest ones if there are many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.spatial import cKDTree

from ulmus.core.arrays.linalg import cholesky
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.structure import MOST_DENSE
from ulmus.core.noise_covariance.vecchia import neighbour_weights
from ulmus.core.noise_covariance.whitening import JITTER, SerialWhitening

# Rows this many scales of time away have a correlation of 1e-13, and no weight.
REACH = 30.0
# Smaller weights are round-off.
SMALLEST_WEIGHT = 1e-13
# Number of nearest rows with weights, if there are many rows in space.
NEAREST = 50
# Rows times points, in elements, of one solve.
CHUNK_ELEMENTS = 2**21


class NoiseWeights(NamedTuple):
    """Kriging weights at some points."""

    points: np.ndarray  # (b,): indices of the points
    weights: Any  # (n, b): weights of the rows
    explained: np.ndarray  # (b,): variance of the noise at the points that they explain


def noise_weights(
    covariance: CovarianceEstimate,
    locations: Locations,
    new_locations: Locations,
    own: np.ndarray | None = None,
) -> Iterator[NoiseWeights]:
    """Weights of n rows, sorted by location, for the noise at p new locations.

    ``own`` (p,) are rows at these locations, each excluded from the prediction of its own noise.
    """
    if covariance.independent:
        n, p = locations.n, new_locations.n
        yield NoiseWeights(np.arange(p), scipy.sparse.csr_array((n, p)), np.zeros(p))
    elif locations.n > MOST_DENSE and not covariance.structure.serial:
        yield from _from_neighbours(covariance, locations, new_locations, own)
    else:
        for points, rows, solve in _windows(covariance, locations, new_locations):
            if own is None:
                C = covariance.covariance(locations.taken(rows), new_locations.taken(points))
                W = solve(C) if len(C) else C
                explained = np.sum(W * C, axis=0)
            else:
                W, left = _without_own(solve, rows, own[points])
                explained = covariance.variance - left
            yield NoiseWeights(points, _sparse(W, rows, locations.n), explained)


def _without_own(solve: Any, rows: slice, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the other rows of a window, and the error variance, from columns of K."""
    index = own - rows.start, np.arange(len(own))
    unit = np.zeros((rows.stop - rows.start, len(own)))
    unit[index] = 1.0
    K = solve(unit)
    left = 1 / K[index]
    W = -K * left
    W[index] = 0.0
    return W, left


def _sparse(W: np.ndarray, rows: slice, n: int) -> Any:
    """Weights (b, p) of the rows of a window as weights of all rows, shape (n, p)."""
    i, j = np.nonzero(np.abs(W) > SMALLEST_WEIGHT)
    return scipy.sparse.csr_array((W[i, j], (i + rows.start, j)), shape=(n, W.shape[1]))


def _slices(n: int, width: int) -> Iterator[np.ndarray]:
    """Indices of points in chunks, for so many rows per point."""
    size = max(1, CHUNK_ELEMENTS // max(width, 1))
    for start in range(0, n, size):
        yield np.arange(start, min(start + size, n))


# ------------------------------------------------------------ all rows, or those of a window


def _windows(
    covariance: CovarianceEstimate, locations: Locations, new_locations: Locations
) -> Iterator[tuple[np.ndarray, slice, Any]]:
    """Points, the rows within reach, and the solver of the covariance of these rows."""
    if not covariance.structure.serial:
        unit = covariance.variance or 1.0
        R = covariance.covariance(locations) / unit
        R[np.diag_indices_from(R)] += JITTER
        factor = cholesky(R[None])[0], True
        for points in _slices(new_locations.n, locations.n):
            yield points, slice(0, locations.n), lambda Y: scipy.linalg.cho_solve(factor, Y) / unit
        return
    parameters = covariance.scales, covariance.shares
    reach = REACH * covariance.scales[0]
    for points, rows in _segments(locations, new_locations, reach, new_locations.order):
        serial = SerialWhitening(locations.taken(rows))
        yield points, rows, lambda Y, s=serial: s.solved(*parameters, Y) / covariance.sill


def _segments(
    locations: Locations, new_locations: Locations, reach: float, points: np.ndarray
) -> Iterator[tuple[np.ndarray, slice]]:
    """Points in their order, split where rows times points are too many, and rows within reach."""
    if not len(points):
        return
    (first, last), times = new_locations.codes[points[[0, -1]]], new_locations.times[points]
    start = _position(locations, first, times[0] - reach, "left")
    stop = _position(locations, last, times[-1] + reach, "right")
    if (stop - start) * len(points) > CHUNK_ELEMENTS and len(points) > 1:
        half = len(points) // 2
        yield from _segments(locations, new_locations, reach, points[:half])
        yield from _segments(locations, new_locations, reach, points[half:])
    else:
        yield points, slice(start, stop)


def _position(locations: Locations, code: int, time: float, side: Any) -> int:
    """Position of a time of a group among the rows in their order."""
    start, stop = np.searchsorted(locations.codes, [code, code + 1])
    return int(start + np.searchsorted(locations.times[start:stop], time, side=side))


# ------------------------------------------------------------ nearest rows


def _from_neighbours(
    covariance: CovarianceEstimate,
    locations: Locations,
    new_locations: Locations,
    own: np.ndarray | None,
) -> Iterator[NoiseWeights]:
    """Weights of the nearest rows, for one term in space."""
    (term,), (scale,) = covariance.structure.terms, covariance.scales
    variance = covariance.structured_variance
    coords, new_coords = np.asarray(locations.coords), np.asarray(new_locations.coords)
    tree, k = cKDTree(coords), NEAREST + (0 if own is None else 1)
    for points in _slices(new_locations.n, NEAREST**2):
        nearest = tree.query(new_coords[points], k=np.arange(1, k + 1))[1]
        if own is not None:
            nearest = _without(nearest, own[points])
        w, explained = neighbour_weights(
            coords[nearest],
            new_coords[points],
            lambda distance: variance * term.kernel(distance, scale),
            covariance.variance * (1 + JITTER),
        )
        index = nearest.ravel(), np.repeat(np.arange(len(nearest)), nearest.shape[1])
        weights = scipy.sparse.csr_array((w.ravel(), index), shape=(locations.n, len(nearest)))
        yield NoiseWeights(points, weights, explained)


def _without(nearest: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Neighbours (b, m + 1) without the row itself, or without the last if it is not among them."""
    excluded = nearest == own[:, None]
    excluded[~excluded.any(axis=1), -1] = True
    return nearest[~excluded].reshape(len(nearest), -1)
