r"""Triangular factor R of each member's hidden matrix, sufficient for every ridge fit.

:math:`\tilde H_m = \Psi_m R_m` with orthonormal :math:`\Psi`, where :math:`\tilde H` is the
hidden matrix with rows scaled by the square roots of their weights and, with an intercept,
projected off the constant. R is computed from the rows if all are in memory, otherwise from sums
over whitened rows; neither squares the condition number.

Singular values of R give the fit at every ridge parameter (:class:`Spectrum`). They are expensive
and computed for the few members that choose alpha.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, to_numpy, transposed
from ulmus.core.arrays.linalg import cholesky, inverted_triangle, svd, triangular_factor
from ulmus.core.arrays.threads import mapped
from ulmus.core.data.source import Block
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.ridge.moments import Moments
from ulmus.core.ridge.preconditioner import Whitening, bordered, centred_units
from ulmus.progress import stage


@dataclass(frozen=True)
class Factor:
    """Triangular factors of all members, and the outputs in their coordinates."""

    R: Array  # (M, r, N): factors; r is N, or the number of rows if that is smaller
    y: Array  # (M, r, K): coordinates Psi'y of the outputs
    beyond: Array  # (M, K): sum of squares of the outputs outside the span of the coordinates
    center: Array  # (M, N): mean of the units over all rows; zero without an intercept
    # (K,): coordinate of the outputs along the constant; zero without an intercept.
    y_constant: Array
    y_square: Array  # (K,): sum of squares of the outputs
    constant: bool  # whether there is an intercept
    mass: float  # sum of the row weights
    n_rows: int  # rows of positive weight
    # (M, N', N'): map from whitened features to Psi, including the constant, if R was computed from
    # them.
    from_phi: Array | None = None

    def members(self, few: slice) -> Factor:
        """Factors of some of the members."""
        return replace(
            self,
            R=self.R[few, :, :],
            y=self.y[few, :, :],
            beyond=self.beyond[few, :],
            center=self.center[few, :],
            from_phi=None if self.from_phi is None else self.from_phi[few, :, :],
        )


@stage("Fitting networks: factors of the features")
def factor_of_rows(layer: HiddenLayer, rows: Block) -> Factor:
    """Factors from all rows in memory."""
    parts = mapped(lambda some: _factor_of_rows(some, rows), layer.portions(rows.X.shape[0]))
    xp, names = namespace(layer.W), ("R", "y", "beyond", "center")
    joined = {name: xp.concat([getattr(part, name) for part in parts]) for name in names}
    return replace(parts[0], **joined)


def _factor_of_rows(layer: HiddenLayer, rows: Block) -> Factor:
    """Factors of some members, with the outputs as further columns."""
    units, center, size = centred_units(layer, rows)
    xp, (M, n, N) = namespace(units), units.shape
    root = xp.ones_like(rows.y[0, :]) if rows.root_weight is None else rows.root_weight
    centred = target = rows.y * root
    mass, K = float(xp.sum(root**2)), rows.y.shape[0]
    y_constant = xp.zeros_like(target[:, 0])
    if layer.constant:
        y_constant = (target @ root) / mass**0.5
        centred = target - y_constant[:, None] * root / mass**0.5
        units = _without_round_off(units, size)
    columns = xp.broadcast_to(centred.T, (M, n, K))
    R = triangular_factor(xp.concat([units, columns], axis=2))
    r = min(n, N)
    beyond = xp.sum(R[:, r:, N:] ** 2, axis=1)
    return Factor(
        R[:, :r, :N],
        R[:, :r, N:],
        beyond,
        center,
        y_constant,
        xp.sum(target**2, axis=1),
        layer.constant,
        mass,
        rows.n_observed,
    )


def _without_round_off(units: Array, size: Array) -> Array:
    """Centred units, zero in members whose units are constant up to round-off."""
    xp = namespace(units)
    tiny = 100 * float(xp.finfo(units.dtype).eps) * size
    norm = xp.sqrt(xp.sum(units**2, axis=(1, 2)))
    return units * xp.astype(norm > tiny, units.dtype)[:, None, None]


def factor_of_moments(moments: Moments, whitening: Whitening) -> Factor:
    """Factors from the Gram matrices of the whitened features."""
    gram = moments.gram.single
    xp = namespace(gram)
    constant, center, R0 = whitening.layer.constant, whitening.center, whitening.R
    mean = None
    if constant:
        mean = gram[:, 1:, 0] / moments.mass
        gram = gram[:, 1:, 1:] - moments.mass * mean[:, :, None] * mean[:, None, :]
        center = center + (transposed(R0) @ mean[:, :, None])[:, :, 0]
    root, from_phi = _matrix_roots(gram)
    if mean is not None:
        shift = -(from_phi @ mean[:, :, None])[:, :, 0]
        from_phi = bordered(from_phi, corner=moments.mass**-0.5, column=shift)
    y = from_phi @ moments.cross
    y_constant = y[0, 0, :] if constant else xp.zeros_like(y[0, 0, :])
    y = y[:, int(constant) :, :]
    # A difference of near equals; below round-off it is zero.
    beyond = moments.y_square - y_constant**2 - xp.sum(y**2, axis=1)
    resolution = 100 * float(xp.finfo(y.dtype).eps) * moments.y_square
    beyond = xp.where(beyond > resolution, beyond, xp.zeros_like(beyond))
    return Factor(
        transposed(root) @ R0,
        y,
        beyond,
        center,
        y_constant,
        moments.y_square,
        constant,
        moments.mass,
        moments.n_rows,
        from_phi,
    )


def _matrix_roots(gram: Array) -> tuple[Array, Array]:
    """Factor L with gram = L L', and its left inverse, for nearly singular gram.

    Columns are scaled to unit length first: a direction that is weak in the sample and strong in
    later rows does not reduce the precision of the others.
    """
    xp = namespace(gram)
    norm2 = xp.linalg.diagonal(gram)
    null = norm2 < 1e-10  # round-off: no row has a component in this direction
    zero, one = xp.zeros_like(norm2), xp.ones_like(norm2)
    norm = xp.where(null, one, norm2) ** 0.5
    inverse = xp.where(null, zero, 1 / norm)
    correlation = gram * inverse[:, :, None] * inverse[:, None, :]
    eye = xp.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)
    L = cholesky(correlation + eye * xp.where(null, one, zero)[:, :, None])
    root = xp.where(null, zero, norm)[:, :, None] * L
    return root, inverted_triangle(L) * inverse[:, None, :]


@dataclass(frozen=True)
class Spectrum:
    """Singular value decompositions R = U S V' of some members."""

    U: Array  # (m, r, r): left singular vectors, one per column
    s: Array  # (m, r): singular values, in descending order
    Vt: Array  # (m, r, N): right singular vectors, one per row
    q: Array  # (m, r, K): outputs in the orthonormal basis of the rows
    beyond: Array  # (m, K): sum of squares of the outputs outside that basis
    n_rows: int  # rows of positive weight
    n_constants: int  # 1 with an intercept, whose direction is not among the singular values

    def kept(self, alpha: float) -> Array:
        """Singular values that are used; without ridge, the smallest are dropped, shape (m, r)."""
        eps = float(namespace(self.s).finfo(self.s.dtype).eps)
        tolerance = eps**0.5 if alpha == 0 else self.Vt.shape[2] * eps
        return self.s > tolerance * self.s[:, :1]

    def inverse(self, alpha: float) -> Array:
        """1 / s for singular values that are used, zero for others, shape (m, r)."""
        xp, kept = namespace(self.s), self.kept(alpha)
        s = xp.where(kept, self.s, xp.ones_like(self.s))
        return xp.where(kept, 1 / s, xp.zeros_like(s))

    def filters(self, alpha: float) -> Array:
        """Filter factors s^2 / (s^2 + alpha), shape (m, r)."""
        xp, kept = namespace(self.s), self.kept(alpha)
        s2 = xp.where(kept, self.s, xp.ones_like(self.s)) ** 2
        return xp.where(kept, s2 / (s2 + alpha), xp.zeros_like(s2))

    def residual_squares(self, d: Array) -> Array:
        """Residual sum of squares of each member and output for filters d, shape (m, K)."""
        return self.beyond + namespace(d).sum(((1 - d)[:, :, None] * self.q) ** 2, axis=1)


def spectrum(factor: Factor) -> Spectrum:
    """Singular values and vectors of all members of a factor."""
    U, s, Vt = svd(factor.R)
    q = transposed(U) @ factor.y
    return Spectrum(U, s, Vt, q, factor.beyond, factor.n_rows, int(factor.constant))


def numerical_rank(factor: Factor) -> np.ndarray:
    """Number of linearly independent units of each member, including the constant."""
    xp = namespace(factor.R)
    size = xp.abs(xp.linalg.diagonal(factor.R))
    eps = float(xp.finfo(size.dtype).eps)
    tolerance = factor.R.shape[2] * eps * xp.max(size, axis=1, keepdims=True)
    rank = xp.sum(xp.astype(size > tolerance, xp.int64), axis=1)
    return to_numpy(rank) + int(factor.constant)
