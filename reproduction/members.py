r"""Batches of members: their hidden features and one factorisation each.

A member is factorised without a singular value decomposition, so that a batch is nothing but
matrix products and small Cholesky factors. With T such that

.. math:: T' (H'H + \alpha I) T = I, \qquad Q = H T, \qquad t(x) = T' h(x),

the smoother row is :math:`z(x) = Q t(x)`, the smoother :math:`P = Q Q'`, and
:math:`Q'Q = I - \alpha T'T`. T comes from Cholesky factors of H'H and again of Q'Q
(shifted CholeskyQR: Fukaya et al., 2020, SIAM J. Sci. Comput. 42).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, logistic, namespace
from ulmus.core.arrays.linalg import inverted_triangle

# Keeps the first Cholesky factor alive for nearly singular H; what follows takes it out.
SHIFT = 10 * float(np.finfo(float).eps)
# The last correction of output weights, relative to the first, and how many there may be.
TOLERANCE = 1e-8
CORRECTIONS = 6


def hidden_units(inputs: Array, weights: Array) -> Array:
    """Features h at all points, (..., P, N), of inputs (P, d + 1) and weights (..., d + 1, N).

    The last input is 1.
    """
    return logistic(inputs @ weights)


class Members(NamedTuple):
    """Factorised members at one ridge parameter.

    Parameters
    ----------
    T : array of shape (..., N, N)
        What makes hidden features Q.
    alpha : float
        Ridge parameter.
    """

    T: Array
    alpha: float

    @property
    def gram(self) -> Array:
        """Q'Q, (..., N, N)."""
        xp, eye = namespace(self.T), _eye(self.T)
        if self.alpha == 0:
            return xp.broadcast_to(eye, self.T.shape)
        return eye - self.alpha * (self.T.mT @ self.T)

    def smoothed(self, alpha: float) -> Members:
        """The same members with a larger ridge parameter, from the same factorisation."""
        if alpha == self.alpha:
            return self
        extra = (alpha - self.alpha) * (self.T.mT @ self.T)
        return Members(self.T @ _inverse_factor(extra + _eye(extra)), alpha)


def factorised(H: Array, alpha: float) -> Members:
    """Factorise members with hidden features H, (..., n, N)."""
    T = _inverse_factor(_shifted(H.mT @ H, alpha))
    rows = H @ T
    gram = rows.mT @ rows + SHIFT * _eye(T)
    if alpha:
        gram = gram + alpha * (T.mT @ T)
    return Members(T @ _inverse_factor(gram), alpha)


def output_weights(H: Array, y: Array, alpha: float, gram: Array) -> Array:
    """Output weights (..., N) of features (..., n, N) with products H'H, and outputs (..., n).

    The Cholesky factor of H'H and a few corrections by the residuals of the rows do with one
    product (corrected seminormal equations: Björck, 1987, Linear Algebra Appl. 88). Where a
    member is too close to singular for these to converge, all are factorised.
    """
    xp, y = namespace(H), y[..., None]
    K = _inverse_factor(_shifted(gram, alpha))
    beta: Array = 0.0
    residual, largest = y, 0.0
    for _ in range(CORRECTIONS):
        step = K.mT @ (H.mT @ residual - alpha * beta)
        beta = beta + K @ step
        residual = y - H @ beta
        size = float(xp.max(xp.abs(step)))
        largest = max(largest, size)
        if size < TOLERANCE * largest:
            return beta[..., 0]
    T = factorised(H, alpha).T
    return (T @ ((H @ T).mT @ y))[..., 0]


def _shifted(gram: Array, alpha: float) -> Array:
    xp, eye = namespace(gram), _eye(gram)
    trace = xp.sum(gram * eye, axis=(-2, -1))[..., None, None]
    return gram + (alpha + SHIFT * trace) * eye


def _inverse_factor(gram: Array) -> Array:
    """K with K' gram K = I, upper triangular."""
    return inverted_triangle(namespace(gram).linalg.cholesky(gram)).mT


def _eye(reference: Array) -> Any:
    xp = namespace(reference)
    return xp.eye(reference.shape[-1], dtype=reference.dtype, device=reference.device)
