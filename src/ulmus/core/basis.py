"""The orthonormal basis of each member: singular values, filters, and the maps to Q and t."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ulmus.core.backend import Array, namespace
from ulmus.core.whitening import Whitening, bordered

# Whitened columns of smaller squared norm are round-off: a direction the data do not have.
NULL_NORM = 1e-10


@dataclass(frozen=True)
class Basis:
    r"""Thin singular value decompositions :math:`\tilde H_m = Q_m S_m V_m'` of all members.

    :math:`\tilde H` is the hidden matrix, rows scaled by the square root of their weights and,
    with an intercept, projected off the constant. The constant is then the first direction of
    every member, unpenalised, and needs no formula of its own.

    Parameters
    ----------
    s : array of shape (M, N)
        Singular values, in descending order.
    Vt : array of shape (M, N, N)
        Right singular vectors, one per row.
    to_q : array of shape (M, N', N')
        Map from whitened features to rows of Q; N' counts the constant unit.
    shift : array of shape (M, N)
        Mean of the units over all rows; zero without an intercept.
    mass : float
        Sum of the row weights; used only with an intercept.
    """

    s: Array
    Vt: Array
    to_q: Array
    shift: Array
    mass: Array
    constant: bool

    @cached_property
    def largest(self) -> Array:
        """Largest singular value of each member, shape (M, 1)."""
        return self.s[:, :1]

    def kept(self, alpha: float) -> Array:
        """Directions that are used; without ridge the weakest are dropped."""
        xp = namespace(self.s)
        eps = float(xp.finfo(self.s.dtype).eps)
        tolerance = eps**0.5 if alpha == 0 else self.s.shape[1] * eps
        return self.s > tolerance * self.largest

    def gain(self, alpha: float) -> Array:
        """s / (s^2 + alpha) on the directions used, zero elsewhere, shape (M, N)."""
        xp = namespace(self.s)
        kept = self.kept(alpha)
        s = xp.where(kept, self.s, xp.ones_like(self.s))
        return xp.where(kept, s / (s**2 + alpha), xp.zeros_like(s))

    def filters(self, alpha: float) -> Array:
        """Filter factors d, shape (M, N'): the smoother of member m is Q_m d Q_m'."""
        xp = namespace(self.s)
        d = self.s * self.gain(alpha)
        return xp.concat([xp.ones_like(d[:, :1]), d], axis=1) if self.constant else d

    def rank(self, alpha: float) -> Array:
        """Number of directions used by each member, the constant included, shape (M,)."""
        xp = namespace(self.s)
        return xp.sum(xp.astype(self.kept(alpha), xp.int64), axis=1) + int(self.constant)

    def dof(self, alpha: float) -> Array:
        """tr(2P - P^2) of each member, shape (M,); their mean is the paper's gamma."""
        d = self.filters(alpha)
        return namespace(d).sum(2 * d - d**2, axis=1)

    def to_t(self, alpha: float) -> Array:
        """Map from features to t(x), so that z(x) = Q t(x); shape (M, N', N')."""
        rows = self.Vt * self.gain(alpha)[:, :, None]
        if not self.constant:
            return rows
        return bordered(rows, corner=self.mass**-0.5, column=-_times(rows, self.shift))


def gram_basis(gram: Array, whitening: Whitening) -> Basis:
    """Basis from the Gram matrices of the whitened features, shape (M, N', N')."""
    xp = namespace(gram)
    constant = whitening.layer.constant
    P_inverse = whitening.P_inverse
    mean = None
    if constant:
        mass = gram[0, 0, 0]
        mean = gram[:, 1:, 0] / mass
        gram = gram[:, 1:, 1:] - mass * mean[:, :, None] * mean[:, None, :]
    root, inverse_root = _matrix_roots(gram)
    # H = P^-1 Phi = (P^-1 root) Psi with orthonormal rows Psi = inverse_root Phi.
    V, s, Zt = xp.linalg.svd(P_inverse @ root)
    to_q = Zt @ inverse_root
    Vt = xp.permute_dims(V, (0, 2, 1))
    if not constant:
        return Basis(s, Vt, to_q, xp.zeros_like(s), xp.ones_like(gram[0, 0, 0]), False)
    to_q = bordered(to_q, corner=mass**-0.5, column=-_times(to_q, mean))
    return Basis(s, Vt, to_q, whitening.center + _times(P_inverse, mean), mass, True)


def _matrix_roots(gram: Array) -> tuple[Array, Array]:
    """Factor R with gram = R R', and a left inverse of it, for nearly singular gram.

    The columns are scaled to unit length first, so that a direction which was weak in the
    sample and strong in later rows costs no digits of the others.
    """
    xp = namespace(gram)
    norm2 = xp.linalg.diagonal(gram)
    null = norm2 < NULL_NORM
    zero, one = xp.zeros_like(norm2), xp.ones_like(norm2)
    norm = xp.where(null, one, norm2) ** 0.5
    scale = xp.where(null, zero, 1 / norm)
    correlation = gram * scale[:, :, None] * scale[:, None, :]
    correlation = (
        correlation
        + xp.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)
        * (xp.where(null, one, zero)[:, :, None])
    )
    values, vectors = xp.linalg.eigh(correlation)
    tiny = gram.shape[1] * float(xp.finfo(gram.dtype).eps)
    used = values > tiny
    root = xp.where(used, values, xp.ones_like(values)) ** 0.5
    vectors_t = xp.permute_dims(vectors, (0, 2, 1))
    norm = xp.where(null, zero, norm)
    forward = norm[:, :, None] * vectors * xp.where(used, root, xp.zeros_like(root))[:, None, :]
    backward = xp.where(used, 1 / root, xp.zeros_like(root))[:, :, None] * vectors_t
    return forward, backward * scale[:, None, :]


def _times(matrices: Array, vectors: Array) -> Array:
    """Matrix times vector for each member."""
    return (matrices @ vectors[:, :, None])[:, :, 0]
