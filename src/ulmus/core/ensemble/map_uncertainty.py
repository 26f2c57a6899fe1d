r"""Variance of predictions due to the choice of the input map, to first order.

A learned map responds to the noise of the rows (``input_map/response.py``). A prediction has the
derivative z + J d theta/dy by the outputs, with its smoother row z and its derivatives J by the
entries of the map, so that with the noise covariance :math:`\Sigma` its variance increases by

.. math:: 2 z' \Sigma s + s' \Sigma s = \sum_j (a_j + b_j)^2 - b_j^2,
          \qquad s = (d\theta/dy)' J'.

Here j are directions of the map along which its changes are uncorrelated and of variance one,
:math:`a_j` is the derivative of the prediction along such a direction, including that of the
coefficients at the same ridge parameter, and :math:`b_j` the covariance of the prediction given the
map with the change. Both are linear in the functional, and a few directions have nearly all of the
effect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import (
    Array,
    dense,
    double_precision,
    like,
    namespace,
    row_blocks,
    taken_rows,
    to_numpy,
)
from ulmus.core.arrays.linalg import eigh
from ulmus.core.arrays.threads import mapped
from ulmus.core.data.source import Block
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.input_map.response import MapResponse
from ulmus.core.layer.functionals import Functionals, PointBlock, Points, by_features

# Directions of the map: as many as have this share of the effect on predictions, and not more than
# the limit.
EFFECT_SHARE, MOST_DIRECTIONS = 0.99, 8
# Changes of a variance below this share of the largest are round-off.
ROUND_OFF = 1e-10
# Relative difference of the weights of a sample and of all rows that is round-off.
SAME_WEIGHT = 1e-6
# Steps of the inputs in difference quotients, in double and in single precision.
STEPS = (1e-4, 3e-2)


@dataclass(frozen=True)
class MapUncertainty:
    """Directions of the map, and what they change."""

    changes: np.ndarray  # (r, d', d'): relative change P of the map along each direction
    # (r, M, N', K): derivatives of the coefficients of the features, in the fit's units of y.
    slopes: Array
    # (r, M, N', K): vectors whose products with features are the covariances b.
    covariances: Array

    def shifts(self, ensemble: Ensemble, X: Points) -> np.ndarray:
        """a + b and b at the rows of X, or for functionals, in the units of y, (2, r, K, p)."""
        layer, r = ensemble.layer, len(self.changes)
        xp = namespace(self.slopes)
        both = xp.stack([self.slopes + self.covariances, self.covariances])
        weights = xp.reshape(xp.permute_dims(both, (0, 1, 4, 2, 3)), (-1, layer.width))
        parts = by_features(lambda h: weights @ xp.reshape(h, (layer.width, -1)), layer, X)
        linear = to_numpy(xp.concat(parts, axis=1)) / layer.n_members
        out = linear.reshape(2, r, ensemble.n_outputs, -1)
        out[0] += self._by_layer(ensemble, X)
        return out * ensemble.unit[:, None]

    def _by_layer(self, ensemble: Ensemble, X: Points) -> np.ndarray:
        """Derivatives of functionals along each direction at the same coefficients, (r, K, p)."""
        if isinstance(X, Functionals):
            return self._by_layer_of_functionals(ensemble, X)
        layer = ensemble.layer
        if isinstance(X, PointBlock):
            return self._of_inputs(ensemble, layer.inputs(dense(X.X)), X.features(layer))

        def of_rows(rows: slice) -> np.ndarray:
            return self._of_inputs(ensemble, layer.inputs(dense(taken_rows(X, rows))))

        blocks = mapped(of_rows, row_blocks(X.shape[0], layer.width, layer.W))
        return np.concatenate(blocks, axis=2)

    def _by_layer_of_functionals(self, ensemble: Ensemble, X: Functionals) -> np.ndarray:
        layer, every = ensemble.layer, slice(0, X.count)
        total = np.zeros((len(self.changes), ensemble.n_outputs, X.count))
        for piece in X.pieces:
            for rows, weights in piece.blocks(every, layer):
                points = dense(piece.points(rows))
                if piece.directions is None:
                    values = self._of_inputs(ensemble, layer.inputs(points))
                else:
                    values = self._slope(ensemble, points, dense(piece.directions(rows)))
                flat = values.reshape(-1, values.shape[2])
                total += np.asarray(weights.T @ flat.T).T.reshape(total.shape)
        return total

    def _slope(self, ensemble: Ensemble, X: Array, directions: Array) -> np.ndarray:
        """Difference quotients of the same derivatives along directions (b, d), (r, K, b)."""
        inputs = ensemble.layer.inputs
        Z, change = inputs(X), inputs.derivative(X, directions)
        xp, step = namespace(Z), STEPS[0 if double_precision(Z) else 1]
        size = xp.max(xp.abs(change), axis=0)
        step = step / xp.where(size > 0, size, xp.ones_like(size))
        after = self._of_inputs(ensemble, Z + step * change)
        before = self._of_inputs(ensemble, Z - step * change)
        return (after - before) / (2 * to_numpy(step))

    def _of_inputs(self, ensemble: Ensemble, Z: Array, h: Array | None = None) -> np.ndarray:
        """Derivatives along each direction at inputs Z (d', b) with features h, (r, K, b)."""
        layer, xp, columns = ensemble.layer, namespace(Z), []
        slope = layer.slopes(Z, h)
        flat = xp.reshape(slope, (-1, slope.shape[2]))
        for regression in ensemble.regressions:
            beta = regression.smoother.beta[:, int(layer.constant) :, :] / layer.n_members
            weights = layer.W[:, :, None, :] * beta[:, :, :, None]
            stacked = xp.reshape(weights, (flat.shape[0], -1)).T @ flat
            columns.append(xp.reshape(stacked, (beta.shape[2], -1, stacked.shape[1])))
        total, changes = ensemble.ordered(columns), like(self.changes, Z)
        parts = [xp.sum(Z * (P @ total), axis=1) for P in changes]
        return np.stack([to_numpy(part) for part in parts])


def member_features(ensemble: Ensemble, m: int, Z: Array) -> tuple[Array, Array, Array]:
    """A member's features (N', b), slopes of its units (N, b) and weights (N, d')."""
    h, slope = ensemble.layer.members(slice(m, m + 1)).with_slopes(Z)
    return h[0, ...], slope[0, ...], ensemble.layer.W[m, :, :]


def _gradients(ensemble: Ensemble, m: int, slope: Array, W: Array) -> Array:
    """Gradients of a member's prediction by the mapped inputs, shape (K, d', b)."""
    xp, first = namespace(slope), int(ensemble.layer.constant)
    columns = []
    for regression in ensemble.regressions:
        beta = regression.smoother.beta[m, first:, :]
        columns.append(xp.stack([(W * beta[:, k, None]).T @ slope for k in range(beta.shape[1])]))
    return ensemble.ordered(columns)


# ------------------------------------------------------------ from a response to directions


def map_uncertainty(
    ensemble: Ensemble, response: MapResponse, sample: Block, noise: np.ndarray
) -> MapUncertainty | None:
    """Uncertainty due to the map, from its response to the rows of a sample.

    ``noise`` is the noise variance (K, n) of the rows at weight 1, in the fit's units of y. None if
    the map does not respond to noise.
    """
    root = sample.root_weight
    weight = np.ones(noise.shape[1]) if root is None else to_numpy(root) ** 2
    by_y = response.by_y * ensemble.unit[:, None]
    inverse = np.divide(1.0, weight, out=np.zeros_like(weight), where=weight > 0)
    scaled = (by_y * np.sqrt(noise * inverse)).reshape(len(by_y), -1)
    found = _directions(scaled, response.effect)
    if found is None:
        return None
    change, coordinate = found
    d, r = ensemble.layer.W.shape[2], change.shape[1]
    changes = np.zeros((r, d, d))
    changes[:, response.entries[:, 0], response.entries[:, 1]] = change.T
    along = np.einsum("tr,tkn->rkn", coordinate, by_y) * noise
    Z = ensemble.layer.inputs(sample.X)
    (in_units,) = ensemble.units.blocks([sample])
    members = mapped(
        lambda m: _member_changes(ensemble, m, Z, in_units, changes, along),
        range(ensemble.n_members),
    )
    xp = namespace(members[0][0])
    slopes, covariances = (xp.stack(list(each), axis=1) for each in zip(*members, strict=True))
    return MapUncertainty(changes, slopes, covariances)


def _directions(scaled: np.ndarray, effect: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Changes of the entries along uncorrelated directions, and what maps entries to coordinates.

    Both have shape (T, r); ``scaled`` (T, n K) are derivatives by noise of variance one. Directions
    are in the order of their effect on predictions.
    """
    values, vectors = eigh(scaled @ scaled.T)
    kept = values > ROUND_OFF * values[-1]
    if not values[-1] > 0:
        return None
    root = vectors[:, kept] * np.sqrt(values[kept])
    inverse = vectors[:, kept] / np.sqrt(values[kept])
    sizes, rotation = eigh(root.T @ effect @ root)
    sizes, rotation = np.maximum(sizes[::-1], 0), rotation[:, ::-1]
    if not np.sum(sizes) > 0:
        return None
    enough = int(np.searchsorted(np.cumsum(sizes) / np.sum(sizes), EFFECT_SHARE)) + 1
    rotation = rotation[:, : min(enough, MOST_DIRECTIONS)]
    return root @ rotation, inverse @ rotation


def _member_changes(
    ensemble: Ensemble,
    m: int,
    Z: Array,
    sample: Block,
    changes: np.ndarray,
    along: np.ndarray,
) -> tuple[Array, Array]:
    """Derivatives of a member's coefficients, and its covariances, each (r, N', K).

    Z (d', n) are the inputs of the layer for a sample with outputs in the fit's units, and
    ``along`` (r, K, n) the derivatives of the directions by the outputs times the noise
    variances.
    """
    h, slope, W = member_features(ensemble, m, Z)
    gradients, y = _gradients(ensemble, m, slope, W), sample.y
    slopes, covariances = [], []
    for regression in ensemble.regressions:
        outputs = regression.outputs
        rows = _MemberRows(regression, m, h, slope, W, Z, sample.root_weight)
        slopes.append(
            rows.slopes(
                namespace(y).stack([y[k, :] for k in outputs]),
                namespace(y).stack([gradients[k, ...] for k in outputs]),
                like(changes, Z),
            )
        )
        covariances.append(rows.covariances(like(along[:, list(outputs), :], Z)))
    return ensemble.ordered(slopes, axis=2), ensemble.ordered(covariances, axis=2)


@dataclass(frozen=True)
class _MemberRows:
    """Rows of a sample in one member of a regression."""

    regression: Regression
    m: int  # index of the member
    h: Array  # (N', n): features
    slope: Array  # (N, n): slopes of the units
    W: Array  # (N, d'): hidden weights, map included
    Z: Array  # (d', n): inputs of the layer
    root_weight: Array | None  # (n,): roots of the row weights

    @property
    def to_t(self) -> Array:
        """Map from features to coordinates, (N', N')."""
        return self.regression.exact.to_t[self.m, :, :]

    def covariances(self, along: Array) -> Array:
        """Vectors (r, N', K) whose products with features are covariances with the directions."""
        # The coordinates of the rows are not formed.
        parts = [self.to_t.T @ (self.to_t @ (self.h @ each.T)) for each in along]
        return namespace(along).stack(parts)

    def slopes(self, y: Array, gradients: Array, changes: Array) -> Array:
        r"""Derivatives (r, N', K) of the coefficients along changes (r, d', d') of the map.

        With :math:`G = H'H + \alpha I` they are :math:`G^{-1} (\dot H' r - H' \dot H b)`, solved in
        coordinates t. A sample stands for all rows: its sums are scaled by their weight.
        """
        xp, smoother = namespace(y), self.regression.exact
        first = self.h.shape[0] - self.slope.shape[0]
        weight = xp.ones_like(y[0, :]) if self.root_weight is None else self.root_weight**2
        share = smoother.mass / float(xp.sum(weight))
        weight = weight * share
        residual = (y - smoother.beta[self.m, :, :].T @ self.h) * weight
        sides = []
        for k in range(y.shape[0]):
            back = (self.slope * residual[k, :]) @ self.Z.T
            for P in changes:
                by_unit = xp.sum(back * (self.W @ P.T), axis=1)
                changed = weight * xp.sum(self.Z * (P @ gradients[k, ...]), axis=0)
                sides.append(self.to_t[:, first:] @ by_unit - self.to_t @ (self.h @ changed))
        solved = xp.stack(sides, axis=1)
        if share > 1 + SAME_WEIGHT:
            # The sample's share in Q'Q replaces Q'Q; of all rows the sum is the identity.
            gram = smoother.member_grams[self.m, :, :]
            eye = xp.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
            t = self.to_t @ self.h
            solved = xp.linalg.solve(eye - gram + (t * weight) @ t.T, solved)
        shape = (-1, y.shape[0], changes.shape[0])
        return xp.permute_dims(xp.reshape(self.to_t.T @ solved, shape), (2, 0, 1))
