"""One noise variance for all rows: how it is estimated, and its forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ulmus.core.arrays.backend import Array, double_precision, like, namespace
from ulmus.core.ridge.member_pairs import COMMON
from ulmus.core.ridge.residuals import SMALLEST_ONE_MINUS_LEVERAGE, RowFit
from ulmus.core.ridge.smoother import Smoother
from ulmus.core.variance.quadratic_forms import PairForms, common_forms, row_form
from ulmus.core.variance.undersmoothing import STEPS_PER_DECADE, UndersmoothingPath

# The pilot's ridge parameter is that many powers of ten below the best predictor's: bias shrinks
# faster than the residual degrees of freedom do.
PILOT_DECADES = 2
# It leaves at least this share of the rows as residual degrees of freedom; and so many of them, or
# the second share of few rows, since a variance from ten of them is below half the truth in one
# fit of seven, and one from 35 in one of a thousand.
PILOT_RESIDUAL_SHARE = 0.2
PILOT_RESIDUALS, LARGEST_RESIDUAL_SHARE = 35, 0.7


@dataclass(frozen=True)
class ConstantNoise:
    """Noise with the same variance in all rows of weight 1; its forms need no residuals."""

    name: ClassVar[str] = COMMON.name
    needs_residuals: ClassVar[bool] = False
    needs_order: ClassVar[bool] = False
    heteroskedastic: ClassVar[bool] = False
    requires: ClassVar[tuple[str, ...]] = ()

    def dual(self, rows: RowFit, sigma2: Array) -> PairForms:
        """Forms that keep the weighted training rows."""
        return common_forms(row_form(rows.t, COMMON), sigma2)


@dataclass(frozen=True)
class NoiseVariance:
    """Two variances of each output, arrays of shape (K,).

    Parameters
    ----------
    sigma2 : array
        Noise variance, for the variance of a prediction.
    residual : array
        Variance of an observation around a prediction: the noise and the squared bias that
        the residuals hold.
    """

    sigma2: Array
    residual: Array


def noise_variance(
    choice: str | Array, fit: Smoother, path: UndersmoothingPath | None
) -> NoiseVariance:
    """Known, from the residuals, or from those of a wider network that smooths less."""
    if not isinstance(choice, str):
        known = like(choice, fit.q)
        return NoiseVariance(known, known)
    residual = residual_noise(fit)
    # The pilot's small ridge parameters are below the round-off of single precision.
    if choice == "residual" or path is None or not double_precision(fit.q):
        return NoiseVariance(residual, residual)
    xp, pilot = namespace(fit.q), like(pilot_noise(path), fit.q)
    if fit.n_rows - fit.gamma >= fewest_residuals(path.n):
        # Where the pilot had to smooth more than it should, the members may hold less bias.
        pilot = xp.where(like(held(path), fit.q) > 0, xp.minimum(residual, pilot), pilot)
    return NoiseVariance(pilot, xp.maximum(residual, pilot))


def residual_noise(fit: Smoother) -> Array:
    r"""Mean residual sum of squares over :math:`n - \gamma`, shape (K,).

    .. math:: \hat\sigma^2 = \frac{1}{M (n - \hat\gamma)} \sum_m r_m' r_m, \qquad
              \hat\gamma = \frac{1}{M} \sum_m \operatorname{tr}(2 P_m - P_m^2)

    (paper, section 3.2.2), where a member's trace counts its rank, never its neurons.
    """
    # A fit that interpolates leaves round-off of either sign.
    residual_dof = max(fit.n_rows - fit.gamma, SMALLEST_ONE_MINUS_LEVERAGE * fit.n_rows)
    return namespace(fit.rss).mean(fit.rss, axis=0) / residual_dof


def pilot_noise(path: UndersmoothingPath) -> np.ndarray:
    """Residual noise of a wider network that smooths less, shape (K,).

    The residuals of a good predictor hold its squared bias. The hidden layers of a group of
    members side by side, with a hundredth of the ridge parameter that generalised
    cross-validation picks for them, have little of it left.
    """
    # A best ridge parameter that leaves too little is no better than interpolation.
    steps = np.maximum(path.best - PILOT_DECADES * STEPS_PER_DECADE, _roomy(path))
    outputs = np.arange(len(steps))
    return path.rss[steps, outputs] / (path.n - path.dof[steps])


def held(path: UndersmoothingPath) -> np.ndarray:
    """1 for outputs whose pilot may not smooth as little as it should, else 0, shape (K,)."""
    return (path.best - PILOT_DECADES * STEPS_PER_DECADE < _roomy(path)).astype(float)


def _roomy(path: UndersmoothingPath) -> int:
    """First step of the grid that leaves enough residual degrees of freedom."""
    return int(np.argmax(path.n - path.dof >= fewest_residuals(path.n)))


def fewest_residuals(n: int) -> float:
    """Residual degrees of freedom that a noise variance of n rows must rest on."""
    return max(PILOT_RESIDUAL_SHARE * n, min(PILOT_RESIDUALS, LARGEST_RESIDUAL_SHARE * n))
