"""Confidence intervals: for the mean of the estimator, and for the true function.

Bounds come as NumPy arrays in the units of y, shape (2, levels, p, K).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ulmus.core.arrays.backend import Array
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.misfit import Misfit
from ulmus.core.layer.functionals import Functionals
from ulmus.core.query.joint_covariance import bilinear, outer_sums, semidefinite
from ulmus.exceptions import ExtrapolationWarning, BiasWarning, warn
from ulmus.intervals.bounds import normal_bounds, satterthwaite_dof
from ulmus.intervals.standard_errors import Variance

FloatArray = npt.NDArray[np.float64]

# The prediction may differ from the undersmoothed one by noise alone; more than this many
# standard errors is bias.
LARGE_BIAS = 5.0
# Where unseen directions hold more than this share of a variance, its interval rests on them.
UNSEEN_SHARE = 0.5


class Errors(NamedTuple):
    """An estimate with what an interval around it is made of, each (p, K).

    Parameters
    ----------
    center : ndarray
        The estimate.
    variance : ndarray
        Its variance.
    dof : ndarray
        Degrees of freedom of the variance.
    allowance : ndarray
        What is added to both sides of an interval.
    """

    center: FloatArray
    variance: FloatArray
    dof: FloatArray
    allowance: FloatArray

    def bounds(self, levels: Sequence[float], method: str = "auto") -> FloatArray:
        """Student intervals, or normal ones, shape (2, levels, p, K)."""
        dof = np.inf if method == "normal" else self.dof
        low, high = normal_bounds(self.center, np.sqrt(self.variance), levels, dof)
        return np.stack([low - self.allowance, high + self.allowance])


def in_standard_errors(away: FloatArray, se: FloatArray) -> FloatArray:
    """Distances in standard errors; an exact zero is none, and anything else infinitely many."""
    certain = np.where(away == 0, 0.0, np.copysign(np.inf, away))
    return np.divide(away, se, out=certain, where=se > 0)


def expectation_errors(fit: Fit, variance: Variance) -> Errors:
    """Errors of the prediction around the mean of this estimator over noise and weights."""
    weights = variance.from_weights
    members = fit.ensemble.n_members
    residual = np.minimum(fit.n_rows - fit.gamma, fit.covariance_dof)
    dof = satterthwaite_dof(variance.model - weights, weights, residual, members - 1)
    return Errors(variance.mean, variance.model, dof, np.zeros_like(dof))


def function_errors(fit: Fit, X: Array | Functionals) -> Errors:
    """Errors of undersmoothed wide networks around the true function."""
    wide = fit.undersmoothed_parts(X)
    variance = wide.variance + fit.map_variance(X).T
    weights = wide.spread / wide.n_groups
    _warn_about_bias(fit.mean(X).T, wide.mean, np.sqrt(variance))
    _warn_about_misfit(fit.misfit)
    unseen = np.any(wide.unseen > UNSEEN_SHARE * variance, axis=1) & np.any(variance > 0, axis=1)
    if np.any(unseen):
        warn(
            f"at {int(unseen.sum())} of {len(unseen)} points the hidden features have directions "
            "that no training row has; the data say nothing about them, and the intervals there "
            "rest on the smoothness that the ridge parameter assumes.",
            ExtrapolationWarning,
        )
    left = fit.n_rows - wide.dof - fit.ensemble.layer.constant
    residual = np.minimum(left, fit.covariance_dof)
    dof = satterthwaite_dof(variance - weights, weights, residual, wide.n_groups - 1)
    return Errors(wide.mean, variance, dof, fit.misfit_allowance(X))


def function_covariance(fit: Fit, X: Array | Functionals, errors: Errors) -> FloatArray:
    """Joint covariance of the undersmoothed networks, shape (K, p, p)."""
    covariance = bilinear(fit, X, lambda h, u: fit.undersmoothed_parts_of(h, u).variance)
    return semidefinite(covariance + outer_sums(fit.map_shifts(X)), errors.variance.T)


def _warn_about_misfit(misfit: Misfit | None) -> None:
    if misfit is None:
        return
    if np.any(misfit.clustered):
        warn(
            "left-out residuals of neighbouring rows agree in sign: the hidden layers do not "
            "follow the function everywhere. Intervals for it are widened by what the "
            "residuals show, and still are no intervals of the level asked for. Use more "
            "n_neurons, another input_map, or inputs in which the function is smoother.",
            BiasWarning,
        )
    if np.any(misfit.stepped):
        warn(
            "a step would explain the steepest change of the fit as well: the rows do not say "
            "how the function gets from one side to the other. Intervals for it are widened "
            "there, and may miss it near the step all the same.",
            BiasWarning,
        )


def _warn_about_bias(mean: FloatArray, center: FloatArray, se: FloatArray) -> None:
    biased = int(np.sum(np.abs(mean - center) > LARGE_BIAS * se))
    if biased:
        warn(
            f"at {biased} of {mean.size} points the prediction lies more than "
            f"{LARGE_BIAS:g} standard errors from the undersmoothed fit that centres these "
            "intervals: the prediction is biased there, and the intervals may be too. "
            "Use more n_neurons or another weight_scale.",
            BiasWarning,
        )
