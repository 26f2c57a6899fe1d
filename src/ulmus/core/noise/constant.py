"""Constant noise: one variance for all rows, its estimates and its forms."""

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

# The pilot fit has a ridge parameter this many powers of ten below the GCV choice: bias decreases
# faster than the residual degrees of freedom.
PILOT_DECADES = 2
# Least residual degrees of freedom of the pilot fit: this share of the rows, and this number or,
# for few rows, the second share. A variance estimate with ten degrees of freedom is below half of
# the true value in one fit of seven, with 35 in one of a thousand.
PILOT_RESIDUAL_SHARE = 0.2
PILOT_RESIDUALS, LARGEST_RESIDUAL_SHARE = 35, 0.7


@dataclass(frozen=True)
class ConstantNoise:
    """Noise with the same variance in all rows of weight 1."""

    name: ClassVar[str] = COMMON.name
    needs_residuals: ClassVar[bool] = False
    needs_order: ClassVar[bool] = False
    heteroskedastic: ClassVar[bool] = False
    by_member: ClassVar[bool] = False
    requires: ClassVar[tuple[str, ...]] = ()

    def dual(self, rows: RowFit, sigma2: Array) -> PairForms:
        """Forms of the weighted training rows."""
        return common_forms(row_form(rows.t, COMMON), sigma2)


@dataclass(frozen=True)
class NoiseVariance:
    """Two variances of each output, arrays of shape (K,)."""

    sigma2: Array  # noise variance, for the variance of a prediction
    # Variance of an observation around a prediction: the noise and the squared bias that residuals
    # contain.
    residual: Array


def noise_variance(
    choice: str | Array, fit: Smoother, path: UndersmoothingPath | None
) -> NoiseVariance:
    """A known variance, or an estimate from residuals of the members or of a pilot fit."""
    if not isinstance(choice, str):
        known = like(choice, fit.q)
        return NoiseVariance(known, known)
    residual = residual_noise(fit)
    # The ridge parameter of the pilot fit is below the round-off of single precision.
    if choice == "residual" or path is None or not double_precision(fit.q):
        return NoiseVariance(residual, residual)
    xp, pilot = namespace(fit.q), like(pilot_noise(path), fit.q)
    if fit.n_rows - fit.gamma >= fewest_residuals(path.n):
        # If the pilot fit is restricted to more smoothing, the members may be less biased.
        pilot = xp.where(like(restricted(path), fit.q) > 0, xp.minimum(residual, pilot), pilot)
    return NoiseVariance(pilot, xp.maximum(residual, pilot))


def residual_noise(fit: Smoother) -> Array:
    r"""Mean residual sum of squares over :math:`n - \gamma`, shape (K,).

    .. math:: \hat\sigma^2 = \frac{1}{M (n - \hat\gamma)} \sum_m r_m' r_m, \qquad
              \hat\gamma = \frac{1}{M} \sum_m \operatorname{tr}(2 P_m - P_m^2)

    (paper, section 3.2.2); the trace of a member is at most its rank, not its number of neurons.
    """
    # For a fit that interpolates, the difference is round-off.
    residual_dof = max(fit.n_rows - fit.gamma, SMALLEST_ONE_MINUS_LEVERAGE * fit.n_rows)
    return namespace(fit.rss).mean(fit.rss, axis=0) / residual_dof


def pilot_noise(path: UndersmoothingPath) -> np.ndarray:
    """Residual variance of the pilot fit, shape (K,).

    Residuals of the members contain squared bias. The pilot fit regresses on the hidden layers of a
    group of members jointly, with a hundredth of the ridge parameter of generalised
    cross-validation, and its bias is small.
    """
    steps = np.maximum(path.best - PILOT_DECADES * STEPS_PER_DECADE, _first_step(path))
    outputs = np.arange(len(steps))
    return path.rss[steps, outputs] / (path.n - path.dof[steps])


def restricted(path: UndersmoothingPath) -> np.ndarray:
    """1 for outputs whose pilot fit is restricted by its degrees of freedom, else 0, (K,)."""
    return (path.best - PILOT_DECADES * STEPS_PER_DECADE < _first_step(path)).astype(float)


def _first_step(path: UndersmoothingPath) -> int:
    """First step of the grid with enough residual degrees of freedom."""
    return int(np.argmax(path.n - path.dof >= fewest_residuals(path.n)))


def fewest_residuals(n: int) -> float:
    """Least residual degrees of freedom of the noise variance of n rows."""
    return max(PILOT_RESIDUAL_SHARE * n, min(PILOT_RESIDUALS, LARGEST_RESIDUAL_SHARE * n))
