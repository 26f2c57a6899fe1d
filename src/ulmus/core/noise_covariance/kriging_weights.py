r"""Weights by which the noise of rows predicts noise elsewhere: simple kriging.

With :math:`\Sigma` the covariance of the noise of the rows and c that with the noise at a new
place, the best linear prediction of the latter is :math:`w'\epsilon` with
:math:`w = \Sigma^{-1} c`, and it explains :math:`c'w` of its variance. A row without itself has the
weights :math:`-K_{ij} / K_{ii}` with :math:`K = \Sigma^{-1}`, which leave :math:`1 / K_{ii}`.

Along time only rows within some correlation scales count, and solves are banded. In space all rows
count, or the nearest ones where there are many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.spatial import cKDTree

from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.structure import MOST_DENSE
from ulmus.core.noise_covariance.vecchia import explained_by
from ulmus.core.noise_covariance.whitening import JITTER, SerialWhitening

# Rows so many scales of time away have a correlation of 1e-13, and no weight.
REACH = 30.0
# Smaller weights are round-off.
SMALLEST_WEIGHT = 1e-13
# Of many rows in space, so many nearest ones count.
NEAREST = 50
# Rows times points, in elements, that are solved for at once.
CHUNK_ELEMENTS = 2**21


class NoiseWeights(NamedTuple):
    """Some points, the weights of the rows' noise there, and what these explain.

    Parameters
    ----------
    points : ndarray of shape (b,)
        Which points.
    weights : csr_array of shape (n, b)
        Weights of the rows.
    explained : ndarray of shape (b,)
        Variance of the noise at the points that they explain.
    """

    points: np.ndarray
    weights: Any
    explained: np.ndarray


def noise_weights(
    found: CovarianceEstimate, locations: Locations, at: Locations
) -> Iterator[NoiseWeights]:
    """Weights at new places of the rows at ``places``, which are in their order."""
    if found.independent:
        yield _no_weights(locations.n, at.n)
    elif _by_neighbours(found, locations):
        tree = cKDTree(np.asarray(locations.coords))
        for points in _slices(at.n, NEAREST**2):
            near = tree.query(np.asarray(at.coords)[points], k=np.arange(1, NEAREST + 1))[1]
            yield _from_neighbours(found, locations, at.taken(points), points, near)
    else:
        for points, rows, solver in _windows(found, locations, at):
            C = found.covariance(locations.taken(rows), at.taken(points))
            W = solver(C) if len(C) else C
            yield NoiseWeights(points, _sparse(W, rows, locations.n), np.sum(W * C, axis=0))


def left_out_weights(
    found: CovarianceEstimate, locations: Locations, rows: np.ndarray
) -> Iterator[NoiseWeights]:
    """Weights of all other rows for the noise of some of them, each without itself."""
    at = locations.taken(rows)
    if found.independent:
        yield _no_weights(locations.n, at.n)
    elif _by_neighbours(found, locations):
        tree = cKDTree(np.asarray(locations.coords))
        for points in _slices(at.n, NEAREST**2):
            near = tree.query(np.asarray(at.coords)[points], k=np.arange(1, NEAREST + 2))[1]
            yield _from_neighbours(
                found, locations, at.taken(points), points, _others(near, rows[points])
            )
    else:
        for points, window, solver in _windows(found, locations, at):
            own, each = rows[points] - window.start, np.arange(len(points))
            unit = np.zeros((window.stop - window.start, len(points)))
            unit[own, each] = 1.0
            K = solver(unit)
            left = 1 / K[own, each]
            W = -K * left
            W[own, each] = 0.0
            yield NoiseWeights(points, _sparse(W, window, locations.n), found.variance - left)


def _no_weights(n: int, p: int) -> NoiseWeights:
    return NoiseWeights(np.arange(p), scipy.sparse.csr_array((n, p)), np.zeros(p))


def _sparse(W: np.ndarray, rows: slice, n: int) -> Any:
    """Weights (b, p) of some rows as those of all, shape (n, p)."""
    i, j = np.nonzero(np.abs(W) > SMALLEST_WEIGHT)
    return scipy.sparse.csr_array((W[i, j], (i + rows.start, j)), shape=(n, W.shape[1]))


def _slices(n: int, width: int) -> Iterator[np.ndarray]:
    """Numbers of points, as many at once as so many rows for each of them allow."""
    size = max(1, CHUNK_ELEMENTS // max(width, 1))
    for start in range(0, n, size):
        yield np.arange(start, min(start + size, n))


# ------------------------------------------------------------ all rows, or those of a window


def _windows(
    found: CovarianceEstimate, locations: Locations, at: Locations
) -> Iterator[tuple[np.ndarray, slice, Any]]:
    """Points, the rows that count for them, and the solver of these rows' covariance."""
    if not found.structure.serial:
        S = found.covariance(locations)
        S[np.diag_indices_from(S)] += JITTER * found.variance
        factor = scipy.linalg.cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
        for points in _slices(at.n, locations.n):
            yield points, slice(0, locations.n), lambda Y: scipy.linalg.cho_solve(factor, Y)
        return
    for points, rows in _stretches(locations, at, REACH * found.scales[0], at.order):
        serial = SerialWhitening(locations.taken(rows))
        yield points, rows, lambda Y, s=serial: s.solved(found.scales, found.shares, Y) / found.sill


def _stretches(
    locations: Locations, at: Locations, reach: float, points: np.ndarray
) -> Iterator[tuple[np.ndarray, slice]]:
    """Points in their order, cut where rows times points are too many, and rows within reach."""
    if not len(points):
        return
    first, last = points[0], points[-1]
    start = _position(locations, at.codes[first], at.times[first] - reach, "left")
    stop = _position(locations, at.codes[last], at.times[last] + reach, "right")
    if (stop - start) * len(points) > CHUNK_ELEMENTS and len(points) > 1:
        half = len(points) // 2
        yield from _stretches(locations, at, reach, points[:half])
        yield from _stretches(locations, at, reach, points[half:])
    else:
        yield points, slice(start, stop)


def _position(locations: Locations, code: int, time: float, side: Any) -> int:
    """Place of a time of a group among the rows, which are in their order."""
    start, stop = np.searchsorted(locations.codes, [code, code + 1])
    return int(start + np.searchsorted(locations.times[start:stop], time, side=side))


# ------------------------------------------------------------ nearest rows


def _by_neighbours(found: CovarianceEstimate, locations: Locations) -> bool:
    return locations.n > MOST_DENSE and not found.structure.serial


def _others(near: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Neighbours (b, m + 1) without the row itself, or without the last if it is not there."""
    gone = near == own[:, None]
    gone[~gone.any(axis=1), -1] = True
    return near[~gone].reshape(len(near), -1)


def _from_neighbours(
    found: CovarianceEstimate,
    locations: Locations,
    at: Locations,
    points: np.ndarray,
    near: np.ndarray,
) -> NoiseWeights:
    """Weights of the nearest rows (b, m), one term in space."""
    (term,), (scale,), variance = found.structure.terms, found.scales, found.structured_variance
    w, explained = explained_by(
        np.asarray(locations.coords)[near],
        np.asarray(at.coords),
        lambda distance: variance * term.kernel(distance, scale),
        found.variance * (1 + JITTER),
    )
    index = near.ravel(), np.repeat(np.arange(len(near)), near.shape[1])
    weights = scipy.sparse.csr_array((w.ravel(), index), shape=(locations.n, len(near)))
    return NoiseWeights(points, weights, explained)
