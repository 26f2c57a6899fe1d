"""Noise variance: one number for all rows, or one estimate per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ulmus.core.backend import Array, namespace
from ulmus.core.basis import Basis
from ulmus.core.selection import SMALLEST_SLACK, residual_squares
from ulmus.core.wide import STEPS_PER_DECADE, WidePath

# The pilot's ridge parameter is that many powers of ten below the best predictor's: bias shrinks
# faster than the residual degrees of freedom do. At least a fifth of the rows stay residual.
PILOT_DECADES = 2
PILOT_RESIDUAL_SHARE = 0.2


def residual_noise(basis: Basis, q: Array, y_square: Array, n: int, alpha: float) -> Array:
    r"""Mean residual sum of squares over :math:`n - \gamma`, shape (K,).

    .. math:: \hat\sigma^2 = \frac{1}{M (n - \hat\gamma)} \sum_m r_m' r_m, \qquad
              \hat\gamma = \frac{1}{M} \sum_m \operatorname{tr}(2 P_m - P_m^2)

    (paper, section 3.2.2), where a member's trace counts its rank, never its neurons.
    """
    xp = namespace(q)
    gamma = float(xp.mean(basis.dof(alpha)))
    # A fit that interpolates leaves round-off of either sign.
    residual_dof = max(n - gamma, SMALLEST_SLACK * n)
    return xp.mean(residual_squares(basis, q, y_square, alpha), axis=0) / residual_dof


def pilot_noise(path: WidePath) -> np.ndarray:
    """Residual noise of a wider network that smooths less, shape (K,).

    The residuals of a good predictor hold its squared bias. The hidden layers of a group of
    members side by side, with a hundredth of the ridge parameter that generalised
    cross-validation picks for them, have little of it left.
    """
    n, best = path.n, int(np.argmin(path.gcv))
    roomy = int(np.argmax(n - path.dof >= PILOT_RESIDUAL_SHARE * n))
    pilot = min(best, max(best - PILOT_DECADES * STEPS_PER_DECADE, roomy))
    noise: np.ndarray = path.rss[pilot] / (n - path.dof[pilot])
    return noise


class RowFit(NamedTuple):
    """What the fit says about training rows, in the units of y.

    Parameters
    ----------
    Q : array of shape (M, N, n)
        Coordinates of the rows in the orthonormal basis, before their weights.
    residual : array of shape (M, K, n)
        Residuals of each member.
    leverage, leverage2 : arrays of shape (M, n)
        Sums of Q^2 d and Q^2 d^2: for rows of weight one, the diagonals of P and P^2.
    root_weight : array of shape (n,) or None
        Square roots of the row weights.
    """

    Q: Array
    residual: Array
    leverage: Array
    leverage2: Array
    root_weight: Array | None

    @property
    def loo(self) -> Array:
        """Exact leave-one-out residuals of each member, shape (M, K, n)."""
        weight = 1.0 if self.root_weight is None else self.root_weight**2
        return self.residual / slack(self.leverage * weight)[:, None, :]

    @property
    def left_out_norm2(self) -> Array:
        """z'z of each row's prediction without it: its variance in units of noise, (M, n)."""
        weight = 1.0 if self.root_weight is None else self.root_weight**2
        numerator = self.leverage2 - weight * self.leverage**2
        return numerator / slack(self.leverage * weight) ** 2

    @property
    def weighted(self) -> RowFit:
        """The same with rows scaled by their weights, where noise is the same for all."""
        root = self.root_weight
        if root is None:
            return self
        weight = root**2
        return RowFit(
            self.Q * root,
            self.residual * root,
            self.leverage * weight,
            self.leverage2 * weight,
            None,
        )


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


def mean_omega(hc: str, rows: RowFit, fit: FitSummary) -> Array:
    """Square of the mean over members of discounted residuals, shape (K, n).

    Averaging before squaring leaves out what only single members get wrong.
    """
    xp = namespace(rows.residual)
    discounted = rows.residual / xp.sqrt(HC[hc](rows, fit))[:, None, :]
    return xp.mean(discounted, axis=0) ** 2


def ensemble_omega(rows: RowFit, smoother2: Array) -> Array:
    """Squared residuals of the ensemble over their variance factor, the same for all members.

    ``smoother2`` is the diagonal of the squared mean smoother, shape (n,).
    """
    xp = namespace(rows.residual)
    factor = slack(2 * xp.mean(rows.leverage, axis=0) - smoother2)
    omega = xp.mean(rows.residual, axis=0) ** 2 / factor
    return xp.broadcast_to(omega, rows.residual.shape)
