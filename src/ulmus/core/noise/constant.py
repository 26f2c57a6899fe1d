"""One noise variance for all rows: how it is estimated, and its forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ulmus.core.backend import Array, double_precision, like, namespace
from ulmus.core.forms import Form, PairForms, common_forms, row_form
from ulmus.core.pairing import COMMON
from ulmus.core.rows import RowFit
from ulmus.core.selection import SMALLEST_SLACK
from ulmus.core.smoother import Smoother
from ulmus.core.wide import STEPS_PER_DECADE, WidePath

# The pilot's ridge parameter is that many powers of ten below the best predictor's: bias shrinks
# faster than the residual degrees of freedom do. At least a fifth of the rows stay residual.
PILOT_DECADES = 2
PILOT_RESIDUAL_SHARE = 0.2


@dataclass(frozen=True)
class ConstantNoise:
    """Noise with the same variance in all rows of weight 1; its forms need no residuals."""

    name: ClassVar[str] = COMMON.name
    needs_residuals: ClassVar[bool] = False
    needs_order: ClassVar[bool] = False

    def dual(self, rows: RowFit, sigma2: Array, common: Form | None) -> PairForms:
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


def noise_variance(choice: str | Array, fit: Smoother, path: WidePath | None) -> NoiseVariance:
    """Known, from the residuals, or from those of a wider network that smooths less."""
    if not isinstance(choice, str):
        known = like(choice, fit.q)
        return NoiseVariance(known, known)
    residual = residual_noise(fit)
    # The pilot's small ridge parameters are below the round-off of single precision.
    if choice == "residual" or path is None or not double_precision(fit.q):
        return NoiseVariance(residual, residual)
    pilot = like(pilot_noise(path), fit.q)
    return NoiseVariance(pilot, namespace(fit.q).maximum(residual, pilot))


def residual_noise(fit: Smoother) -> Array:
    r"""Mean residual sum of squares over :math:`n - \gamma`, shape (K,).

    .. math:: \hat\sigma^2 = \frac{1}{M (n - \hat\gamma)} \sum_m r_m' r_m, \qquad
              \hat\gamma = \frac{1}{M} \sum_m \operatorname{tr}(2 P_m - P_m^2)

    (paper, section 3.2.2), where a member's trace counts its rank, never its neurons.
    """
    # A fit that interpolates leaves round-off of either sign.
    residual_dof = max(fit.n_rows - fit.gamma, SMALLEST_SLACK * fit.n_rows)
    return namespace(fit.rss).mean(fit.rss, axis=0) / residual_dof


def pilot_noise(path: WidePath) -> np.ndarray:
    """Residual noise of a wider network that smooths less, shape (K,).

    The residuals of a good predictor hold its squared bias. The hidden layers of a group of
    members side by side, with a hundredth of the ridge parameter that generalised
    cross-validation picks for them, have little of it left.
    """
    n = path.n
    roomy = int(np.argmax(n - path.dof >= PILOT_RESIDUAL_SHARE * n))
    noise = []
    for k, best in enumerate(path.best):
        pilot = min(best, max(best - PILOT_DECADES * STEPS_PER_DECADE, roomy))
        noise.append(path.rss[pilot, k] / (n - path.dof[pilot]))
    return np.asarray(noise)
