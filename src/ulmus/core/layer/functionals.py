r"""Linear functionals of the fitted function: averages, differences, slopes, and points themselves.

A functional is a weighted sum of values of the function at points, or of its derivatives there,

.. math:: a(f) = \sum_i w_i f(x_i) + \sum_i v_i \, D_{d_i} f(x_i).

The features of a functional are the same sum of hidden features. All that a fit says about a point
follows from its features, and so does all that it says about a functional: features are summed
before anything else is done, and an average over a million rows costs no more memory than a point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, row_blocks, taken_rows
from ulmus.core.layer.hidden_layer import HiddenLayer

Rows = slice | np.ndarray

# Features of functionals that are made at once, and that are kept for the next question.
CHUNK_ELEMENTS = 2**26
# Weights with a smaller share of entries that differ from zero are multiplied as sparse matrices.
DENSE_SHARE = 0.02


@dataclass(frozen=True)
class Piece:
    """Points with their weights in each functional.

    Parameters
    ----------
    points : callable
        Points (b, d) of some rows, by slice or by index; they are made when they are needed.
    weights : csr_array of shape (p, q)
        Weight of each of p points in each of q functionals.
    directions : callable or None
        Directions (b, d) in which the function is differentiated at these points; None for its
        values.
    """

    points: Callable[[Rows], Array]
    weights: Any
    directions: Callable[[Rows], Array] | None = None

    def features(self, layer: HiddenLayer, rows: Rows) -> Array:
        """Features, or their derivatives, at some of the points, shape (M, N', b)."""
        if self.directions is None:
            return layer(self.points(rows))
        return layer.derivative(self.points(rows), self.directions(rows))

    def blocks(self, few: slice, layer: HiddenLayer) -> Iterator[tuple[Rows, Any]]:
        """Rows that count in some of the functionals, with their weights, a block at a time."""
        p, q = self.weights.shape
        weights = self.weights if few == slice(0, q) else self.weights[:, few]
        counts = np.diff(weights.indptr) > 0
        if np.all(counts):
            for rows in row_blocks(p, layer.width, layer.W):
                yield rows, weights[rows]
            return
        index = np.flatnonzero(counts)
        for part in row_blocks(len(index), layer.width, layer.W):
            yield index[part], weights[index[part]]


@dataclass(frozen=True)
class Functionals:
    """Some linear functionals, each a sum over pieces.

    Parameters
    ----------
    pieces : tuple of Piece
        What is summed; all of them have weights in the same functionals.
    """

    pieces: tuple[Piece, ...]
    _kept: dict[int, tuple[HiddenLayer, list[Array]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def count(self) -> int:
        """Number of functionals q."""
        return int(self.pieces[0].weights.shape[1])

    def features(self, layer: HiddenLayer) -> Iterator[Array]:
        """Features of the functionals, in portions of shape (M, N', b).

        They are kept for the next question where they are not large.
        """
        cuts = portions(layer, self)
        if len(cuts) > 1:
            return (self.summed(layer, few) for few in cuts)
        if id(layer) not in self._kept:
            self._kept[id(layer)] = layer, [self.summed(layer, few) for few in cuts]
        return iter(self._kept[id(layer)][1])

    def summed(self, layer: HiddenLayer, few: slice) -> Array:
        """Features of some of the functionals: the sum over pieces and points, (M, N', b)."""
        xp, W = namespace(layer.W), layer.W
        total = xp.zeros((layer.width, few.stop - few.start), dtype=W.dtype, device=W.device)
        for piece in self.pieces:
            for rows, weights in piece.blocks(few, layer):
                h = piece.features(layer, rows)
                total += _product(xp.reshape(h, (layer.width, -1)), weights)
        return xp.reshape(total, (layer.n_members, layer.n_units, -1))

    def largest_sum(self, size: Callable[[Array], np.ndarray], layer: HiddenLayer) -> np.ndarray:
        """Largest value of the functionals of a function within +- size (K, b), shape (q, K).

        Derivatives are left out: a bound of a function says nothing about its slope.
        """
        total: Any = np.zeros((self.count, 1))
        for piece in self.pieces:
            if piece.directions is not None:
                continue
            for rows, weights in piece.blocks(slice(0, self.count), layer):
                total = total + abs(weights).T @ size(piece.points(rows)).T
        return total


def _product(h: Array, weights: Any) -> Array:
    """Features (w, b) times sparse weights (b, q), shape (w, q)."""
    if weights.nnz < DENSE_SHARE * np.prod(weights.shape) and isinstance(h, np.ndarray):
        return (weights.T @ h.T).T.astype(h.dtype, copy=False)
    return h @ like(weights.toarray(), h)


def count(where: Array | Functionals) -> int:
    """Number of points, or of functionals."""
    return where.count if isinstance(where, Functionals) else int(where.shape[0])


def features(layer: HiddenLayer, where: Array | Functionals) -> Iterator[Array]:
    """Features (M, N', b) of points (p, d), or of functionals, in portions of a good size."""
    if isinstance(where, Functionals):
        yield from where.features(layer)
        return
    for rows in row_blocks(where.shape[0], layer.width, layer.W):
        yield layer(taken_rows(where, rows))


def portions(layer: HiddenLayer, where: Array | Functionals) -> list[slice]:
    """Cuts of points or functionals into portions whose features are not too large at once."""
    size, n = max(1, CHUNK_ELEMENTS // layer.width), count(where)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def portion(layer: HiddenLayer, where: Array | Functionals, few: slice) -> Array:
    """Features of one portion, shape (M, N', b)."""
    if not isinstance(where, Functionals):
        return layer(taken_rows(where, few))
    return next(where.features(layer)) if few == slice(0, where.count) else where.summed(layer, few)
