r"""Linear functionals of the fitted function: values, averages, differences and slopes.

A functional is a weighted sum of values and directional derivatives of the function at points,

.. math:: a(f) = \sum_i w_i f(x_i) + \sum_i v_i \, D_{d_i} f(x_i).

Its features are the same sum of hidden features, and estimates and variances are computed from
these as for a point. Features are summed first, so that an average over a million rows requires
no more memory than a point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, row_blocks, taken_rows
from ulmus.core.arrays.threads import mapped
from ulmus.core.layer.hidden_layer import HiddenLayer

Rows = slice | np.ndarray
Result = TypeVar("Result")

# Largest array of features of functionals, which is also cached.
CHUNK_ELEMENTS = 2**26


@dataclass(frozen=True)
class Piece:
    """Points with their weights in each functional."""

    points: Callable[[Rows], Array]  # returns points (b, d) for some rows, by slice or by index
    weights: Any  # (p, q): weight of each of p points in each of q functionals
    # Returns directions (b, d) of the derivatives at these points; None for values.
    directions: Callable[[Rows], Array] | None = None

    def features(self, layer: HiddenLayer, rows: Rows) -> Array:
        """Features, or their derivatives, at some of the points, shape (M, N', b)."""
        if self.directions is None:
            return layer(self.points(rows))
        return layer.derivative(self.points(rows), self.directions(rows))

    def blocks(self, few: slice, layer: HiddenLayer) -> Iterator[tuple[Rows, Any]]:
        """Rows of nonzero weight in some of the functionals, with their weights, in blocks."""
        p, q = self.weights.shape
        weights = self.weights if few == slice(0, q) else self.weights[:, few]
        nonzero = np.diff(weights.indptr) > 0
        if np.all(nonzero):
            for rows in row_blocks(p, layer.width, layer.W):
                yield rows, weights[rows]
            return
        index = np.flatnonzero(nonzero)
        for part in row_blocks(len(index), layer.width, layer.W):
            yield index[part], weights[index[part]]


@dataclass(frozen=True)
class Functionals:
    """Linear functionals, each a sum over pieces."""

    pieces: tuple[Piece, ...]  # the terms, with weights for the same functionals
    _kept: dict[int, tuple[HiddenLayer, list[Array]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def count(self) -> int:
        """Number of functionals q."""
        return int(self.pieces[0].weights.shape[1])

    def features(self, layer: HiddenLayer) -> Iterator[Array]:
        """Features of the functionals, in portions of shape (M, N', b).

        A single portion is cached.
        """
        slices = portions(layer, self)
        if len(slices) > 1:
            return (self.summed(layer, few) for few in slices)
        if id(layer) not in self._kept:
            self._kept[id(layer)] = layer, [self.summed(layer, few) for few in slices]
        return iter(self._kept[id(layer)][1])

    def summed(self, layer: HiddenLayer, few: slice) -> Array:
        """Features of some of the functionals, summed over pieces and points, (M, N', b)."""
        xp, W = namespace(layer.W), layer.W
        total = xp.zeros((layer.width, few.stop - few.start), dtype=W.dtype, device=W.device)
        for piece in self.pieces:
            for rows, weights in piece.blocks(few, layer):
                h = piece.features(layer, rows)
                total += _product(xp.reshape(h, (layer.width, -1)), weights)
        return xp.reshape(total, (layer.n_members, layer.n_units, -1))

    def largest_sum(self, size: Callable[[Array], np.ndarray], layer: HiddenLayer) -> np.ndarray:
        """Largest value of the functionals of a function within +- size (K, b), shape (q, K).

        Derivatives are excluded: a bound of a function does not bound its slope.
        """
        total: Any = np.zeros((self.count, 1))
        for piece in self.pieces:
            if piece.directions is not None:
                continue
            for rows, weights in piece.blocks(slice(0, self.count), layer):
                total = total + abs(weights).T @ size(piece.points(rows)).T
        return total


class PointBlock(NamedTuple):
    """Some points with their features in a layer, which are computed once for several results."""

    X: Array  # (b, d): the points
    layer: HiddenLayer
    h: Array  # (M, N', b): their features

    def features(self, layer: HiddenLayer) -> Array:
        """Features in the same layer or in another one, shape (M, N', b)."""
        return self.h if layer is self.layer else layer(self.X)


# What predictions are evaluated at.
Points = Array | Functionals | PointBlock


def by_points(
    task: Callable[[Points], Result], layer: HiddenLayer, points: Array | Functionals
) -> list[Result]:
    """Results of a task for blocks of points with their features, or for functionals."""
    if isinstance(points, Functionals):
        return [task(points)]

    def of_rows(rows: slice) -> Result:
        X = taken_rows(points, rows)
        return task(PointBlock(X, layer, layer(X)))

    return mapped(of_rows, row_blocks(points.shape[0], layer.width, layer.W))


def _product(h: Array, weights: Any) -> Array:
    """Features (w, b) times sparse weights (b, q), shape (w, q)."""
    # Above two percent nonzero weights, a dense product is faster.
    if weights.nnz < 0.02 * np.prod(weights.shape) and isinstance(h, np.ndarray):
        return (weights.T @ h.T).T.astype(h.dtype, copy=False)
    return h @ like(weights.toarray(), h)


def count(points: Points) -> int:
    """Number of points or functionals."""
    if isinstance(points, PointBlock):
        return int(points.X.shape[0])
    return points.count if isinstance(points, Functionals) else int(points.shape[0])


def by_features(
    task: Callable[[Array], Result], layer: HiddenLayer, points: Points
) -> list[Result]:
    """Results of a task for the features (M, N', b) of each block of points or functionals."""
    if isinstance(points, PointBlock):
        return [task(points.features(layer))]
    if isinstance(points, Functionals):
        return [task(h) for h in points.features(layer)]
    blocks = row_blocks(points.shape[0], layer.width, layer.W)
    return mapped(lambda rows: task(layer(taken_rows(points, rows))), blocks)


def portions(layer: HiddenLayer, points: Array | Functionals) -> list[slice]:
    """Slices of points or functionals whose features fit in memory."""
    size, n = max(1, CHUNK_ELEMENTS // layer.width), count(points)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def portion(layer: HiddenLayer, points: Array | Functionals, few: slice) -> Array:
    """Features of one portion, shape (M, N', b)."""
    if not isinstance(points, Functionals):
        return layer(taken_rows(points, few))
    return (
        next(points.features(layer)) if few == slice(0, points.count) else points.summed(layer, few)
    )
