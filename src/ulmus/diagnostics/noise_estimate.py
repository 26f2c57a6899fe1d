"""How precisely the noise variance is estimated."""

from __future__ import annotations

import numpy as np
from scipy import special

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.fit.fit import Fit

# Level of intervals for the standard deviation of the noise.
NOISE_LEVEL = 0.95


def noise_sd(fit: Fit) -> FloatArray:
    """Standard deviation of the noise of an observation of mean weight, shape (K,)."""
    return np.sqrt(fit.sigma2 / fit.mean_weight)


def noise_sd_interval(fit: Fit) -> FloatArray | None:
    r"""95 % confidence interval for it, shape (2, K); None where the variance was given.

    With :math:`\nu` residual degrees of freedom, :math:`\nu \hat\sigma^2 / \sigma^2` is about
    chi-square distributed if errors are normal. Misfit is part of the estimate.
    """
    if not isinstance(fit.spec.regression.noise_variance, str):
        return None
    # Without degrees of freedom, the upper bound is infinite.
    dof = np.maximum(fit.noise_dof, 1e-3)
    tail = (1 - NOISE_LEVEL) / 2
    quantiles = np.stack([special.chdtri(dof, tail), special.chdtri(dof, 1 - tail)])
    with np.errstate(divide="ignore"):
        factor = np.sqrt(dof / quantiles)
    return np.where(noise_sd(fit) > 0, noise_sd(fit) * factor, 0.0)
