r"""Batches of members: one factorisation each, and the sums that all estimates are made of.

A member is factorised without a singular value decomposition, so that a batch is nothing but
matrix products and small Cholesky factors. With T such that

.. math:: T' (H'H + \alpha I) T = I, \qquad Q = H T, \qquad t(x) = T' h(x),

the smoother row is :math:`z(x) = Q t(x)`, the smoother :math:`P = Q Q'`, and
:math:`Q'Q = I - \alpha T'T`. T comes from Cholesky factors of H'H and again of Q'Q
(shifted CholeskyQR: Fukaya et al., 2020, SIAM J. Sci. Comput. 42).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ulmus.core.backend import Array, logistic, namespace

# Keeps the first Cholesky factor alive for nearly singular H; the second one takes it out.
SHIFT = 100 * float(np.finfo(float).eps)
# Larger triangles are inverted one by one: NumPy's batches do not know that they are triangles.
LAPACK_SIZE = 32


def transposed(a: Array) -> Array:
    """Swap the last two axes."""
    return namespace(a).moveaxis(a, -1, -2)


def hidden_units(inputs: Array, weights: Array) -> Array:
    """Features h at all points, (..., P, N), of inputs (P, d + 1) and weights (..., d + 1, N).

    The last input is 1. Pre-activations are at most d + 1, so that their exponentials need no
    care, and everything happens in place: new memory costs more than the arithmetic.
    """
    u = inputs @ weights
    if not isinstance(u, np.ndarray):
        return logistic(u)
    np.negative(u, out=u)
    np.exp(u, out=u)
    u += 1.0
    return np.reciprocal(u, out=u)


def _inverse_factor(gram: Array) -> Array:
    """K with K' gram K = I, upper triangular."""
    xp = namespace(gram)
    L = xp.linalg.cholesky(gram)
    if not isinstance(L, np.ndarray):
        import torch

        return transposed(torch.linalg.solve_triangular(L, _eye(xp, L), upper=False))
    N = L.shape[-1]
    if N < LAPACK_SIZE:
        return transposed(np.linalg.inv(L))
    K = np.empty_like(L)
    for target, lower in zip(K.reshape(-1, N, N), L.reshape(-1, N, N), strict=True):
        target[...] = scipy.linalg.lapack.dtrtri(lower.T, lower=0)[0]
    return K


def _eye(xp: Any, reference: Array) -> Array:
    return xp.eye(reference.shape[-1], dtype=reference.dtype, device=reference.device)


class Members(NamedTuple):
    """Factorised members at one ridge parameter.

    Parameters
    ----------
    rows : array of shape (..., n, N)
        Rows that span the hidden features of the training data.
    K : array of shape (..., N, N)
        What makes them Q.
    T : array of shape (..., N, N)
        What makes hidden features Q.
    alpha : float
        Ridge parameter.
    """

    rows: Array
    K: Array
    T: Array
    alpha: float

    @property
    def Q(self) -> Array:
        """Coordinates of the training rows, (..., n, N)."""
        return self.rows @ self.K

    def projection(self, y: Array) -> Array:
        """Q'y for outputs (..., n), shape (..., N)."""
        q = transposed(self.rows) @ y[..., None]
        return (transposed(self.K) @ q)[..., 0]

    def coefficients(self, y: Array) -> Array:
        """Output weights, (..., N)."""
        return (self.T @ self.projection(y)[..., None])[..., 0]

    @property
    def gram(self) -> Array:
        """Q'Q, (..., N, N)."""
        eye = _eye(namespace(self.T), self.T)
        if self.alpha == 0:
            return namespace(self.T).broadcast_to(eye, self.T.shape)
        return eye - self.alpha * (transposed(self.T) @ self.T)

    def smoothed(self, alpha: float) -> Members:
        """The same members with a larger ridge parameter, from the same factorisation."""
        if alpha == self.alpha:
            return self
        extra = (alpha - self.alpha) * (transposed(self.T) @ self.T)
        K = _inverse_factor(extra + _eye(namespace(extra), extra))
        return Members(self.rows, self.K @ K, self.T @ K, alpha)


def factorised(H: Array, alpha: float) -> Members:
    """Factorise members with hidden features H, (..., n, N)."""
    xp = namespace(H)
    gram = transposed(H) @ H
    eye = _eye(xp, gram)
    trace = xp.sum(xp.sum(gram * eye, axis=-1), axis=-1)[..., None, None]
    T = _inverse_factor(gram + (alpha + SHIFT * trace) * eye)
    rows = H @ T
    gram = transposed(rows) @ rows + SHIFT * eye
    if alpha:
        gram = gram + alpha * (transposed(T) @ T)
    K = _inverse_factor(gram)
    return Members(rows, K, T @ K, alpha)


def _side_by_side(a: Array) -> Array:
    """Members (g, s, k, N) next to each other, (g, k, s N): their sum is one product."""
    g, s, k, N = a.shape
    xp = namespace(a)
    return xp.reshape(xp.permute_dims(a, (0, 2, 1, 3)), (g, k, s * N))


@dataclass
class EnsembleSums:
    """Sums over members that grow as members are added, for g ensembles at P points.

    Parameters
    ----------
    y : array of shape (g, n)
        Outputs.
    heteroskedastic : bool
        Whether estimates from the residuals of single rows are wanted.
    product_dtype : dtype
        Of the products over rows, the bulk of the work.
    """

    y: Array
    heteroskedastic: bool
    product_dtype: Any

    def __post_init__(self) -> None:
        self.n_members = 0
        self.predictions: list[Array] = []
        self.kept: list[tuple[Array, Array]] = []
        self.rss: Array = 0.0
        self.residual_dof: Array = 0.0
        self.z: Array = 0.0
        self.squares: Array = 0.0
        self.omega: Array = 0.0
        self.weighted_z: Array = 0.0
        self.own: Array = 0.0

    def add(self, members: Members, h: Array) -> None:
        """Add members (g, s) with features h (g, s, P, N) at the points."""
        xp = namespace(h)
        y, Q = self.y[:, None, :], members.Q
        q = members.projection(y)
        t = h @ members.T
        self.n_members += h.shape[1]
        self.predictions.append((t @ q[..., None])[..., 0])
        r = y - (Q @ q[..., None])[..., 0]
        gram = members.gram
        dof = 2 * xp.sum(gram * _eye(xp, gram), axis=(-2, -1)) - xp.sum(gram**2, axis=(-2, -1))
        self.rss = self.rss + xp.sum(r**2, axis=(1, 2))
        self.residual_dof = self.residual_dof + xp.sum(y.shape[-1] - dof, axis=1)
        gram_t = t if members.alpha == 0 else t @ gram
        self.squares = self.squares + xp.sum(xp.sum(gram_t * t, axis=-1), axis=1)
        short_t = xp.astype(t, self.product_dtype)
        columns = transposed(_side_by_side(short_t))
        short_Q = xp.astype(Q, self.product_dtype)
        self.z = self.z + _side_by_side(short_Q) @ columns
        if self.heteroskedastic:
            # HC3 (MacKinnon & White, 1985): squares of exact left-out residuals.
            omega = (r / (1 - xp.sum(Q**2, axis=-1))) ** 2
            self.omega = self.omega + xp.sum(omega, axis=1)
            weighted_Q = xp.astype(omega, self.product_dtype)[..., None] * short_Q
            self.weighted_z = self.weighted_z + _side_by_side(weighted_Q) @ columns
            self.own = self.own + _quadratic(transposed(short_Q) @ weighted_Q, short_t, y)
            self.kept.append((short_Q, short_t))

    @property
    def prediction(self) -> Array:
        """Mean of the members, (g, P)."""
        xp = namespace(self.y)
        return xp.mean(xp.concat(self.predictions, axis=1), axis=1)

    def variances(self, names: tuple[str, ...]) -> Array:
        """Estimates of the variance of the mean, (g, len(names), P); none is negative."""
        xp = namespace(self.y)
        M, z = self.n_members, self.z
        spread = xp.var(xp.concat(self.predictions, axis=1), axis=1, correction=1)
        sigma2 = (self.rss / self.residual_dof)[:, None]
        total = _row_sums(z * z, self.y)
        parts = {
            "NHo": sigma2 * total / M**2,
            "BR": sigma2 * (total - self.squares) / (M * (M - 1)),
        }
        if self.heteroskedastic:
            own, every = self.own, _row_sums(z * self.weighted_z, self.y)
            parts["S1"] = own / M
            parts["NHe"] = every / M**2
            parts["S2"] = (every - own) / (M * (M - 1))
            if "S3" in names:
                triples = self._common_pairs() - 2 * (every - own)
                parts["S3"] = triples / (M * (M - 1) * (M - 2))
        stacked = xp.stack([parts[name] + spread / M for name in names], axis=1)
        return xp.clip(stacked, min=0.0)

    def _common_pairs(self) -> Array:
        """Sum over distinct pairs of z_m' (sum of all Omega) z_l, (g, P)."""
        xp = namespace(self.y)
        omega = xp.astype(self.omega, self.product_dtype)[..., None]
        pairs = _row_sums(self.z**2 * omega, self.y)
        for Q, t in self.kept:
            pairs = pairs - _quadratic(transposed(Q) @ (omega[:, None] * Q), t, self.y)
        return pairs


def _row_sums(products: Array, reference: Array) -> Array:
    """Sums over training rows in the precision of the reference, (g, n, P) to (g, P)."""
    return namespace(products).sum(products, axis=1, dtype=reference.dtype)


def _quadratic(K: Array, t: Array, reference: Array) -> Array:
    """Sum over members of t'Kt, (g, s, N, N) and (g, s, P, N) to (g, P)."""
    xp = namespace(t)
    return xp.sum(xp.sum((t @ K) * t, axis=-1), axis=1, dtype=reference.dtype)
