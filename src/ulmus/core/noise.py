"""Noise variance: one number for all rows, or one estimate per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ulmus.core.backend import Array, like, namespace, to_numpy
from ulmus.core.basis import Basis
from ulmus.core.selection import RELATIVE_GRID, SMALLEST_SLACK, residual_squares

# The pilot network is the hidden layers of this many members side by side.
PILOT_MEMBERS = 3
# It smooths this much less than the best predictor: bias shrinks faster than the residual
# degrees of freedom do. At least a fifth of the rows stay residual, though.
PILOT_FACTOR = 0.01
PILOT_RESIDUAL_SHARE = 0.2
# Eigenvalues below this share of the largest are round-off.
PILOT_RESOLUTION = 1e-13


def residual_noise(basis: Basis, q: Array, y_square: Array, n: int, alpha: float) -> Array:
    r"""Mean residual sum of squares over :math:`n - \gamma`, shape (K,).

    .. math:: \hat\sigma^2 = \frac{1}{M (n - \hat\gamma)} \sum_m r_m' r_m, \qquad
              \hat\gamma = \frac{1}{M} \sum_m \operatorname{tr}(2 P_m - P_m^2)

    (paper, section 3.2.2), where a member's trace counts its rank, never its neurons.
    """
    xp = namespace(q)
    gamma = float(xp.mean(basis.dof(alpha)))
    return xp.mean(residual_squares(basis, q, y_square, alpha), axis=0) / (n - gamma)


def pilot_noise(basis: Basis, q: Array, stack: Array, y_square: Array, n: int) -> Array:
    r"""Residual noise of a wider network that smooths less, shape (K,).

    The residuals of a good predictor hold its squared bias. The hidden layers of the first
    members side by side, with a hundredth of the ridge parameter that generalised
    cross-validation picks for them, have little of it left.

    Parameters
    ----------
    basis : Basis
        The members.
    q : array of shape (M, N, K)
        Q'y of each member.
    stack : array of shape (k N, k N)
        Gram matrix of the rows Q of the first k members.
    y_square : array of shape (K,)
        Sums of squared outputs.
    n : int
        Number of rows.
    """
    xp = namespace(q)
    first, (M, N, K) = int(basis.constant), q.shape
    k = stack.shape[0] // N
    # Rotated by V, the stacked hidden matrix is [s_1 Q_1; ...; s_k Q_k] without its constants.
    s = xp.reshape(basis.s[:k, :], (-1,))
    blocks = xp.reshape(stack, (k, N, k, N))[:, first:, :, first:]
    kernel = xp.reshape(blocks, (s.shape[0], s.shape[0])) * s[:, None] * s[None, :]
    values, vectors = xp.linalg.eigh(kernel)
    used = values > PILOT_RESOLUTION * values[-1]
    values = xp.where(used, values, xp.zeros_like(values))
    u = vectors.T @ (s[:, None] * xp.reshape(q[:k, first:, :], (-1, K)))
    u2 = to_numpy(xp.where(used[:, None], u, xp.zeros_like(u)) ** 2)
    centred = y_square - q[0, 0, :] ** 2 if first else y_square
    return like(_pilot_residual(to_numpy(values), u2, to_numpy(centred), n - first), q)


def _pilot_residual(values: np.ndarray, u2: np.ndarray, y_square: np.ndarray, n: int) -> np.ndarray:
    """Noise variance from eigenvalues and squared projections of a ridge path, shape (K,)."""
    alphas = RELATIVE_GRID * max(values[-1], np.finfo(float).tiny)
    shrink = values + alphas[:, None]
    trace = np.sum(values / shrink, axis=1)
    dof = np.sum((values / shrink) * (2 - values / shrink), axis=1)
    rss = np.clip(y_square - (2 / shrink - values / shrink**2) @ u2, 0, None)
    score = n * rss / np.maximum(n - trace, SMALLEST_SLACK * n)[:, None] ** 2
    best = int(np.argmin(np.sum(score / np.where(y_square > 0, y_square, 1), axis=1)))
    roomy = int(np.argmax(n - dof >= PILOT_RESIDUAL_SHARE * n))
    resolved = int(np.argmax(alphas >= PILOT_RESOLUTION * values[-1]))
    wanted = int(np.argmax(alphas >= PILOT_FACTOR * alphas[best]))
    pilot = min(best, max(wanted, roomy, resolved))
    return rss[pilot] / (n - dof[pilot])


class RowFit(NamedTuple):
    """What the fit says about training rows.

    Parameters
    ----------
    Q : array of shape (M, N, n)
        Orthonormal rows, scaled by the square roots of the row weights.
    residual : array of shape (M, K, n)
        Residuals of each member, likewise scaled.
    leverage : array of shape (M, n)
        Diagonal of each smoother P.
    leverage2 : array of shape (M, n)
        Diagonal of each P^2.
    """

    Q: Array
    residual: Array
    leverage: Array
    leverage2: Array

    @property
    def loo(self) -> Array:
        """Exact leave-one-out residuals of each member, shape (M, K, n)."""
        return self.residual / slack(self.leverage)[:, None, :]


class FitSummary(NamedTuple):
    """Totals over rows: their number n, and dof and trace of the smoothers, each (M,)."""

    n: int
    dof: Array
    trace: Array


def slack(leverage: Array) -> Array:
    """1 - p, kept off zero: a row with leverage 1 has a residual of round-off."""
    return namespace(leverage).clip(1 - leverage, min=SMALLEST_SLACK)


def _hc0(rows: RowFit, fit: FitSummary) -> Array:
    return namespace(rows.leverage).ones_like(rows.leverage)


def _hc1(rows: RowFit, fit: FitSummary) -> Array:
    xp = namespace(rows.leverage)
    return xp.broadcast_to(((fit.n - fit.dof) / fit.n)[:, None], rows.leverage.shape)


def _hc2(rows: RowFit, fit: FitSummary) -> Array:
    # Var(r_i) / sigma2 is the diagonal of (I - P)^2, which is 1 - p for a projection.
    return slack(2 * rows.leverage - rows.leverage2)


def _hc3(rows: RowFit, fit: FitSummary) -> Array:
    # MacKinnon & White (1985): the left-out residual.
    return slack(rows.leverage) ** 2


def _hc4(rows: RowFit, fit: FitSummary) -> Array:
    # Cribari-Neto (2004): more discount for rows of more than average leverage.
    delta = namespace(rows.leverage).clip(fit.n * rows.leverage / fit.trace[:, None], max=4.0)
    return slack(rows.leverage) ** delta


HC: dict[str, Callable[[RowFit, FitSummary], Array]] = {
    "HC0": _hc0,
    "HC1": _hc1,
    "HC2": _hc2,
    "HC3": _hc3,
    "HC4": _hc4,
    "HC3-exact": _hc3,
}


def member_omega(hc: str, rows: RowFit, fit: FitSummary) -> Array:
    """Squared residuals over the discount that each HC variant gives them, (M, K, n)."""
    return rows.residual**2 / HC[hc](rows, fit)[:, None, :]


def ensemble_omega(rows: RowFit, smoother2: Array) -> Array:
    """Squared residuals of the ensemble over their variance factor, the same for all members.

    ``smoother2`` is the diagonal of the squared mean smoother, shape (n,).
    """
    xp = namespace(rows.residual)
    factor = slack(2 * xp.mean(rows.leverage, axis=0) - smoother2)
    omega = xp.mean(rows.residual, axis=0) ** 2 / factor
    return xp.broadcast_to(omega, rows.residual.shape)
