r"""The ensemble at one ridge parameter: the coordinates t in which everything is an inner product.

For each member let A be a root of the ridge inverse, :math:`A A' = (H'H + \alpha I)^{-1}`, and

.. math:: t(x) = A' h(x), \qquad Q = H A, \qquad z(x) = Q t(x).

A training row's coordinates are its own t, so that one map serves rows and points. The smoother
is :math:`P = Q Q'`, the leverage of a row its squared length, and a prediction
:math:`q't(x)` with :math:`q = Q'y`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ulmus.core.backend import Array, namespace, to_numpy, transposed
from ulmus.core.factor import Factor, numerical_rank, spectrum
from ulmus.core.linalg import inverted_triangle, triangular_factor
from ulmus.core.whitening import bordered

# Round-off of hidden features that a ridge parameter must exceed, in units of the last digit.
RESOLUTION = 10.0


@dataclass(frozen=True)
class Smoother:
    """All members at one ridge parameter.

    Parameters
    ----------
    alpha : float
        Ridge parameter.
    to_t : array of shape (M, N', N')
        Map A' from features to coordinates, the constant included.
    q : array of shape (M, N', K)
        Coordinates Q'y of the outputs.
    own : array of shape (M, N', N')
        Products Q'Q within members.
    rss : array of shape (M, K)
        Residual sums of squares.
    rank : ndarray of shape (M,)
        Numerical rank of each member, the constant included.
    center : array of shape (M, N)
        Mean of the units over all rows; zero without an intercept.
    constant : bool
        Whether there is an intercept: the first coordinate.
    mass : float
        Sum of the row weights.
    n_rows : int
        Rows of positive weight.
    """

    alpha: float
    to_t: Array
    q: Array
    own: Array
    rss: Array
    rank: np.ndarray
    center: Array
    constant: bool
    mass: float
    n_rows: int

    @property
    def n_members(self) -> int:
        """Number of members."""
        return int(self.to_t.shape[0])

    @property
    def beta(self) -> Array:
        """Coefficients of the features, shape (M, N', K)."""
        return transposed(self.to_t) @ self.q

    @cached_property
    def trace(self) -> Array:
        """tr(P) of each member, shape (M,)."""
        xp = namespace(self.own)
        return xp.sum(xp.linalg.diagonal(self.own), axis=1)

    @cached_property
    def dof(self) -> Array:
        """tr(2P - P^2) of each member, shape (M,); their mean is the paper's gamma."""
        return 2 * self.trace - namespace(self.own).sum(self.own**2, axis=(1, 2))

    @property
    def gamma(self) -> float:
        """Effective degrees of freedom, the mean of ``dof``."""
        return float(np.mean(to_numpy(self.dof)))

    def members(self, few: slice) -> Smoother:
        """Some of the members."""
        return replace(
            self,
            to_t=self.to_t[few, :, :],
            q=self.q[few, :, :],
            own=self.own[few, :, :],
            rss=self.rss[few, :],
            rank=self.rank[few],
            center=self.center[few, :],
        )


def smoother(factor: Factor, alpha: float) -> tuple[Smoother, Array | None]:
    """The ensemble at a ridge parameter, and the map from whitened features to coordinates.

    The map (M, N', N') is None where the factor was not made from whitened features.
    """
    if alpha == 0:
        roots, Qa, rank = _least_squares(factor)
    else:
        roots, Qa = _ridge(factor, alpha)
        rank = numerical_rank(factor)
    q = transposed(Qa) @ factor.y
    rss = factor.beyond + namespace(q).sum((factor.y - Qa @ q) ** 2, axis=1)
    own = transposed(Qa) @ Qa
    from_phi = None
    if factor.from_phi is not None:
        from_psi = bordered(transposed(Qa)) if factor.constant else transposed(Qa)
        from_phi = from_psi @ factor.from_phi
    if factor.constant:
        # The constant is a first direction, unpenalised and orthogonal to the others.
        xp = namespace(q)
        shift = -(roots @ factor.center[:, :, None])[:, :, 0]
        roots = bordered(roots, corner=factor.mass**-0.5, column=shift)
        constants = xp.broadcast_to(factor.y_constant, (q.shape[0], 1, q.shape[2]))
        q, own = xp.concat([constants, q], axis=1), bordered(own)
    fit = Smoother(
        alpha,
        roots,
        q,
        own,
        rss,
        rank,
        factor.center,
        factor.constant,
        factor.mass,
        factor.n_rows,
    )
    return fit, from_phi


def _ridge(factor: Factor, alpha: float) -> tuple[Array, Array]:
    """Map A' (M, N, N) and R A (M, r, N) from the triangular factor of [R; sqrt(alpha) I].

    Coordinates of features carry their round-off over sqrt(alpha): where that would be all they
    carry, the ridge is raised to what the features resolve.
    """
    R = factor.R
    xp, (M, _, N) = namespace(R), R.shape
    size = factor.mass * xp.sum(factor.center**2, axis=1) + xp.sum(R**2, axis=(1, 2))
    resolved = RESOLUTION * float(xp.finfo(R.dtype).eps) * float(xp.max(size)) ** 0.5
    eye = xp.eye(N, dtype=R.dtype, device=R.device) * max(alpha**0.5, resolved)
    stacked = xp.concat([R, xp.broadcast_to(eye, (M, N, N))], axis=1)
    roots = inverted_triangle(transposed(triangular_factor(stacked)))
    return roots, R @ transposed(roots)


def _least_squares(factor: Factor) -> tuple[Array, Array, np.ndarray]:
    """The same without ridge, and the rank: the weakest directions are dropped."""
    parts = spectrum(factor)
    xp, kept = namespace(parts.s), parts.kept(0.0)
    (m, r), N = parts.s.shape, parts.Vt.shape[2]
    roots = parts.Vt * parts.inverse(0.0)[:, :, None]
    Qa = parts.U * xp.astype(kept, parts.U.dtype)[:, None, :]
    if r < N:
        none = xp.zeros((m, N - r, N), dtype=roots.dtype, device=roots.device)
        roots = xp.concat([roots, none], axis=1)
        Qa = xp.concat([Qa, transposed(none)[:, :r, :]], axis=2)
    rank = to_numpy(xp.sum(xp.astype(kept, xp.int64), axis=1)) + int(factor.constant)
    return roots, Qa, rank
