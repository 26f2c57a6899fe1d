r"""An approximate root for many rows in space, by nearest neighbours (Vecchia, 1988).

In some order of the rows, the noise of each is a linear combination of the noise of its nearest
earlier neighbours and an innovation, :math:`\epsilon = B \epsilon + D^{1/2} e` with B
strictly lower triangular and sparse. So :math:`\Sigma \approx L L'` with
:math:`L = (I - B)^{-1} D^{1/2}`, and :math:`L^{-1} y` is a sparse product. A random order is nearly
as accurate as the best known ones (Guinness, 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from ulmus.core.arrays.backend import Array, like, row_blocks, to_numpy

NEIGHBOURS = 30
# Share of the variance added to the diagonal, since neighbours may coincide.
JITTER = 1e-10


@dataclass(frozen=True)
class Neighbourhoods:
    """An order of the rows, and the nearest earlier neighbours of each."""

    coords: np.ndarray  # (n, c): coordinates, in the order
    order: np.ndarray  # (n,): rows in the order
    index: np.ndarray  # (n, m): positions in the order, nearest first; padded with the row itself

    @classmethod
    def of(cls, coords: np.ndarray, neighbours: int = NEIGHBOURS) -> Neighbourhoods:
        """Neighbourhoods of rows at these coordinates (n, c)."""
        n = len(coords)
        order = np.random.default_rng(0).permutation(n)
        coords = coords[order]
        index = np.repeat(np.arange(n)[:, None], min(neighbours, max(n - 1, 1)), axis=1)
        # At least half of the rows up to the end of a segment precede all rows of the segment.
        stop = 1
        while stop < n:
            start, stop = stop, min(2 * stop, n)
            _find(index, cKDTree(coords[:stop]), np.arange(start, stop))
        return cls(coords, order, index)


def _find(index: np.ndarray, tree: cKDTree, rows: np.ndarray) -> None:
    """Write the nearest earlier neighbours of some rows into ``index``."""
    m, k = index.shape[1], 3 * index.shape[1]
    while len(rows):
        k = min(k, tree.n)
        near = tree.query(tree.data[rows], k=np.arange(1, k + 1))[1]
        earlier = near < rows[:, None]
        found = np.sum(earlier, axis=1)
        done = (found >= np.minimum(m, rows)) | (k == tree.n)
        # A stable sort moves earlier rows to the front and keeps them sorted by distance.
        front = np.argsort(~earlier[done], axis=1, kind="stable")[:, :m]
        nearest = np.take_along_axis(near[done], front, axis=1)
        valid = np.arange(front.shape[1]) < found[done, None]
        own = rows[done, None]
        index[rows[done], : front.shape[1]] = np.where(valid, nearest, own)
        rows, k = rows[~done], 2 * k


def neighbour_weights(
    neighbours: np.ndarray,
    points: np.ndarray,
    covariance: Callable[[np.ndarray], np.ndarray],
    diagonal: float,
    padding: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Kriging weights (b, m) of neighbours at points, and the variance (b,) that they explain.

    Coordinates are (b, m, c) for the neighbours and (b, c) for the points. ``covariance`` is a
    function of distances, ``diagonal`` the variance of a neighbour with its nugget, and ``padding``
    (b, m) a mask of entries that are no neighbours.
    """
    # One coordinate after another: sums over a short axis are slow.
    gaps = (x[:, :, None] - x[:, None, :] for x in np.moveaxis(neighbours, -1, 0))
    C = covariance(np.sqrt(sum(gap**2 for gap in gaps)))
    c = covariance(np.linalg.norm(neighbours - points[:, None, :], axis=-1))
    if padding is not None:
        C = np.where(padding[:, :, None] | padding[:, None, :], 0.0, C)
        c = np.where(padding, 0.0, c)
    own = np.arange(neighbours.shape[1])
    C[:, own, own] = diagonal
    weights = np.linalg.solve(C, c[:, :, None])[:, :, 0]
    return weights, np.sum(weights * c, axis=1)


@dataclass(frozen=True)
class NeighbourRoot:
    """An approximate root of a covariance in space."""

    neighbours: Neighbourhoods  # nearest neighbours of the rows
    # Covariance as a function of an array of distances.
    covariance: Callable[[np.ndarray], np.ndarray]
    nugget: float = 0.0  # additional variance of independent noise

    @cached_property
    def _regression(self) -> tuple[scipy.sparse.csc_array, np.ndarray]:
        """I - B, sparse, and the innovation variances D (n,)."""
        n, m = self.neighbours.index.shape
        B, D = np.empty((n, m)), np.empty(n)
        for rows in row_blocks(n, m**2):
            B[rows], D[rows] = self._row_regressions(rows)
        i, j = np.repeat(np.arange(n), m), self.neighbours.index.ravel()
        lower = scipy.sparse.coo_array((-B.ravel() * (i != j), (i, j)), shape=(n, n))
        return scipy.sparse.csc_array(lower + scipy.sparse.eye_array(n)), D

    def _row_regressions(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the neighbours and innovation variances of some rows, (b, m) and (b,)."""
        coords, index = self.neighbours.coords, self.neighbours.index[rows]
        own = np.arange(len(coords))[rows, None]
        variance = float(self.covariance(np.zeros(1))[0])
        own_variance = variance * (1 + JITTER) + self.nugget
        weights, explained = neighbour_weights(
            coords[index], coords[rows], self.covariance, own_variance, padding=index == own
        )
        return weights, np.maximum(own_variance - explained, JITTER * variance)

    @property
    def log_det(self) -> float:
        """Log determinant of the covariance."""
        return float(np.sum(np.log(self._regression[1])))

    @cached_property
    def _solver(self) -> Callable[[np.ndarray], np.ndarray]:
        # The matrix is triangular: no row or column is permuted.
        keep = {"SymmetricMode": True}
        factor = splu(self._regression[0].T.tocsc(), "NATURAL", diag_pivot_thresh=0.0, options=keep)
        return factor.solve

    def applied(self, t: Array) -> Array:
        """t L for t (..., n), shape (..., n)."""
        rows = to_numpy(t).reshape(-1, t.shape[-1])[:, self.neighbours.order]
        columns = self._solver(np.ascontiguousarray(rows.T, dtype=float)).T
        columns = columns * np.sqrt(self._regression[1])
        return like(columns.reshape(t.shape), t)

    def whitened(self, Y: np.ndarray) -> np.ndarray:
        """Y (n, k) times the inverse of L, shape (n, k)."""
        lower, D = self._regression
        return (lower @ Y[self.neighbours.order]) / np.sqrt(D)[:, None]
