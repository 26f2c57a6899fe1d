r"""All members at one ridge parameter: the coordinates t of points and rows.

For each member let A be a root of the ridge inverse, :math:`A A' = (H'H + \alpha I)^{-1}`, and

.. math:: t(x) = A' h(x), \qquad Q = H A, \qquad z(x) = Q t(x).

The rows of Q are the coordinates t of the training rows. The smoother is :math:`P = Q Q'`, the
leverage of a row is its squared length t't, and the prediction is :math:`q't(x)` with
:math:`q = Q'y`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import (
    Array,
    column_sums,
    member_products,
    namespace,
    to_numpy,
    transposed,
)
from ulmus.core.arrays.linalg import (
    inverted_triangle,
    lower_product,
    ridge_triangle,
    svd,
    upper_product,
)
from ulmus.core.ridge.factor import Factor, numerical_rank, spectrum
from ulmus.core.ridge.preconditioner import bordered

# Rows per unit from which coordinates are along singular vectors: the decomposition then costs
# little compared with the passes over the rows, which diagonal products Q'Q make cheaper.
SPECTRAL_ROWS = 20
# Relative round-off of hidden features in units of the machine epsilon, which alpha must exceed.
RESOLUTION = 1000.0
# Cross-member products skip coordinates whose gain is below WEAK in every member (they contribute
# < 1e-10 of a variance) and whose squared singular value is below FAINT times the largest (the
# undersmoothed fit ignores them).
WEAK, FAINT = 1e-5, 1e-16


@dataclass(frozen=True)
class Smoother:
    """All members at one ridge parameter."""

    alpha: float  # ridge parameter
    to_t: Array  # (M, N', N'): map A' from features to coordinates, including the constant
    q: Array  # (M, N', K): coordinates Q'y of the outputs
    # (M, N'): Q in an orthonormal basis of the hidden features: roots of the filter factors of a
    # singular value decomposition, or an upper triangle.
    gain: Array
    rss: Array  # (M, K): residual sums of squares
    rank: np.ndarray  # (M,): numerical rank of each member, including the constant
    center: Array  # (M, N): mean of the units over all rows; zero without an intercept
    constant: bool  # whether there is an intercept: the first coordinate
    mass: float  # sum of the row weights
    n_rows: int  # rows of positive weight

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without results that follow from them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def n_members(self) -> int:
        """Number of members."""
        return int(self.to_t.shape[0])

    @cached_property
    def beta(self) -> Array:
        """Coefficients of the features, shape (M, N', K)."""
        return transposed(self.to_t) @ self.q

    @property
    def spectral(self) -> bool:
        """Whether coordinates are along singular vectors: Q'Q is diagonal."""
        return bool(self.gain.ndim == 2)

    @property
    def ridge_slope(self) -> Array:
        r"""v with t'v the derivative of a prediction by log alpha, shape (M, N', K).

        The derivative of the coefficients is :math:`-\alpha (H'H + \alpha I)^{-1}\beta`, and zero
        for the constant.
        """
        return -self._unexplained(self.q)

    @property
    def score_gradient(self) -> Array:
        r"""v with 2 sigma2 t'v the covariance of a prediction and a slope in log alpha, (M, N', K).

        The slope of :math:`\log\|(I - P)y\|^2` is :math:`s = 2 y'P(I - P)^2y / y'(I - P)^2y`, and
        its gradient by y is :math:`2 (I - P)^2 (2P - sI) y / y'(I - P)^2y`.
        """
        xp = namespace(self.q)
        rss = xp.where(self.rss > 0, self.rss, xp.ones_like(self.rss))[:, None, :]
        once = self._unexplained(self.q)
        s = 2 * xp.sum(once**2, axis=1, keepdims=True) / rss
        twice = self._unexplained(once)
        return ((2 - s) * twice - 2 * self._unexplained(twice)) / rss

    def _unexplained(self, v: Array) -> Array:
        """(I - Q'Q) v for coordinates v (M, N', K), zero for the constant."""
        xp, first = namespace(self.to_t), int(self.constant)
        root = self.to_t[:, first:, first:]
        remainder = self.alpha * (root @ (transposed(root) @ v[:, first:, :]))
        if not first:
            return remainder
        return xp.concat([xp.zeros_like(v[:, :1, :]), remainder], axis=1)

    def coordinates(self, h: Array) -> Array:
        """Coordinates t of features h (M, N', p), shape (M, N', p)."""
        return self.to_t @ h if self.spectral else lower_product(self.to_t, h)

    def square_rows(self, t: Array) -> Array:
        """Squared lengths z'z of the smoother rows of coordinates t, shape (M, p)."""
        if self.spectral:
            return (self.gain[:, None, :] ** 2 @ t**2)[:, 0, :]
        return square_lengths(upper_product(self.gain, t))

    @cached_property
    def member_grams(self) -> Array:
        """Products Q'Q within members, shape (M, N', N')."""
        if not self.spectral:
            return member_products(transposed(self.gain), transposed(self.gain))
        xp, N = namespace(self.gain), self.gain.shape[1]
        eye = xp.eye(N, dtype=self.gain.dtype, device=self.gain.device)
        return eye * (self.gain**2)[:, None, :]

    @cached_property
    def n_strong(self) -> int:
        """Number of leading coordinates in products of pairs of members, at least one."""
        if not self.spectral:
            return int(self.to_t.shape[1])
        xp, first = namespace(self.to_t), int(self.constant)
        gain = to_numpy(self.gain)[:, first:]
        width = to_numpy(xp.sum(self.to_t[:, first:, first:] ** 2, axis=2))
        s2 = gain**2 / np.where(width > 0, width, 1.0)
        strong = (gain > WEAK) | (s2 > FAINT * s2.max(axis=1, keepdims=True))
        # Constant units have no strong coordinate; the first is kept.
        return first + int(np.max(np.flatnonzero(strong.any(axis=0)), initial=0)) + 1

    @cached_property
    def trace(self) -> Array:
        """tr(P) of each member, shape (M,)."""
        return namespace(self.gain).sum(self.gain**2, axis=tuple(range(1, self.gain.ndim)))

    @cached_property
    def dof(self) -> Array:
        """tr(2P - P^2) of each member, shape (M,); their mean is the paper's gamma."""
        xp = namespace(self.gain)
        if self.spectral:
            squares = xp.sum(self.gain**4, axis=1)
        else:
            squares = xp.sum(self.member_grams**2, axis=(1, 2))
        # No eigenvalue of P exceeds one, but for round-off in single precision.
        dof = 2 * self.trace - squares
        return xp.where(dof > self.trace, dof, self.trace)

    @property
    def gamma(self) -> float:
        """Effective degrees of freedom, the mean of ``dof``."""
        return float(np.mean(to_numpy(self.dof)))

    @property
    def constants(self) -> Array:
        """Coordinates of the outputs along the constant, shape (K,)."""
        return self.q[0, 0, :]

    @cached_property
    def largest_square(self) -> float:
        """Largest squared singular value of the hidden features of the first member."""
        first = int(self.constant)
        least = float(np.min(to_numpy(svd(self.to_t[:1, first:, first:])[1])))
        return 1 / least**2 if least > 0 else 0.0

    def summary(self, alpha_weights: Array) -> SmootherSummary:
        """What predictions and diagnostics need without coordinates of points."""
        return SmootherSummary(
            alpha=self.alpha,
            beta=self.beta,
            alpha_weights=alpha_weights,
            gamma=self.gamma,
            rank=self.rank,
            constant=self.constant,
            mass=self.mass,
            n_rows=self.n_rows,
            constants=self.constants,
            largest_square=self.largest_square,
        )

    def members(self, few: slice) -> Smoother:
        """Some of the members."""
        return replace(
            self,
            to_t=self.to_t[few, :, :],
            q=self.q[few, :, :],
            gain=self.gain[few, ...],
            rss=self.rss[few, :],
            rank=self.rank[few],
            center=self.center[few, :],
        )


@dataclass(frozen=True)
class SmootherSummary:
    """All members at one ridge parameter, without the coordinates of points."""

    alpha: float  # ridge parameter
    beta: Array  # (M, N', K): coefficients of the features
    alpha_weights: Array  # (2, K, M N'): coefficients of the shifts due to the choice of alpha
    gamma: float  # effective degrees of freedom
    rank: np.ndarray  # (M,): numerical rank of each member
    constant: bool  # whether there is an intercept
    mass: float  # sum of the row weights
    n_rows: int  # rows of positive weight
    constants: Array  # (K,): coordinates of the outputs along the constant
    largest_square: float  # largest squared singular value of the features of the first member

    @property
    def n_members(self) -> int:
        """Number of members."""
        return int(self.beta.shape[0])


def square_lengths(t: Array) -> Array:
    """Sums of squares over the units, (M, N, p) to (M, p)."""
    xp = namespace(t)
    return xp.stack([column_sums(t[m, :, :], t[m, :, :]) for m in range(t.shape[0])])


class RidgeRoot(NamedTuple):
    """A root of the ridge inverse of each member, before the constant is added."""

    to_t: Array  # (M, N, N): map A' from centred features to coordinates
    # (M, N, r): map from the orthonormal basis of the factor to coordinates, (R A)'.
    from_psi: Array
    gain: Array  # (M, N): as in a smoother
    rank: np.ndarray  # (M,): numerical rank


def smoother(factor: Factor, alpha: float) -> tuple[Smoother, Array | None]:
    """The members at a ridge parameter, and the map from whitened features to coordinates.

    The map (M, N', N') is None if the factor was computed from the rows.
    """
    few_units = factor.n_rows >= SPECTRAL_ROWS * factor.R.shape[2]
    root = _spectral(factor, alpha) if alpha == 0 or few_units else _triangular(factor, alpha)
    q = root.from_psi @ factor.y
    fitted = transposed(root.from_psi) @ q
    rss = factor.beyond + namespace(q).sum((factor.y - fitted) ** 2, axis=1)
    to_t, from_psi, gain, rank = root
    if factor.constant:
        # The constant is the first coordinate, unpenalised and orthogonal to the others.
        xp = namespace(q)
        shift = -(to_t @ factor.center[:, :, None])[:, :, 0]
        to_t = bordered(to_t, corner=factor.mass**-0.5, column=shift)
        from_psi = bordered(from_psi)
        if gain.ndim == 2:
            gain = xp.concat([xp.ones_like(gain[:, :1]), gain], axis=1)
        else:
            gain = bordered(gain)
        constants = xp.broadcast_to(factor.y_constant, (q.shape[0], 1, q.shape[2]))
        q = xp.concat([constants, q], axis=1)
    fit = Smoother(
        alpha, to_t, q, gain, rss, rank, factor.center, factor.constant, factor.mass, factor.n_rows
    )
    return fit, None if factor.from_phi is None else from_psi @ factor.from_phi


def _triangular(factor: Factor, alpha: float) -> RidgeRoot:
    """Root from the triangular factor of [R; sqrt(alpha) I], without singular values.

    Coordinates contain the round-off of the features divided by sqrt(alpha); alpha is raised to
    the resolution of the features.
    """
    R = factor.R
    roots = inverted_triangle(transposed(ridge_triangle(R, _resolved(factor, alpha) ** 0.5)))
    gain = R @ transposed(roots)
    return RidgeRoot(roots, transposed(gain), gain, numerical_rank(factor))


def _resolved(factor: Factor, alpha: float) -> float:
    xp = namespace(factor.R)
    size = factor.mass * xp.sum(factor.center**2, axis=1) + xp.sum(factor.R**2, axis=(1, 2))
    # At most 1e-6: in single precision, a larger bound would change the fit.
    resolution = min(RESOLUTION * float(xp.finfo(factor.R.dtype).eps), 1e-6)
    return max(alpha, resolution**2 * float(xp.max(size)))


def _spectral(factor: Factor, alpha: float) -> RidgeRoot:
    """Root along singular vectors; without ridge, the smallest singular values are dropped."""
    parts = spectrum(factor)
    xp, kept = namespace(parts.s), parts.kept(alpha)
    ridge = _resolved(factor, alpha) if alpha > 0 else 0.0
    s2 = xp.where(kept, parts.s, xp.ones_like(parts.s)) ** 2
    width = xp.where(kept, (s2 + ridge) ** -0.5, xp.zeros_like(s2))
    gain = parts.s * width
    to_t = parts.Vt * width[:, :, None]
    from_psi = transposed(parts.U) * gain[:, :, None]
    (m, r), N = parts.s.shape, parts.Vt.shape[2]
    if r < N:
        none = xp.zeros((m, N - r, N), dtype=to_t.dtype, device=to_t.device)
        to_t, gain = xp.concat([to_t, none], axis=1), xp.concat([gain, none[:, :, 0]], axis=1)
        from_psi = xp.concat([from_psi, none[:, :, :r]], axis=1)
    rank = numerical_rank(factor)
    if alpha == 0:
        rank = to_numpy(xp.sum(xp.astype(kept, xp.int64), axis=1)) + int(factor.constant)
    return RidgeRoot(to_t, from_psi, gain, rank)
