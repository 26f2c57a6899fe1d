"""Confidence intervals for the expectation of the estimator and for the true function.

Bounds are NumPy arrays in the units of y, shape (2, levels, p, K).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.misfit import Misfit
from ulmus.core.layer.functionals import Functionals
from ulmus.core.query.joint_covariance import bilinear, outer_sums, semidefinite
from ulmus.exceptions import BiasWarning, ExtrapolationWarning, warn
from ulmus.intervals.bounds import normal_bounds, satterthwaite_dof
from ulmus.intervals.standard_errors import PredictionVariance, prediction_variance
from ulmus.messages import Message, Setting

TARGETS = ("function", "expectation")
# A larger difference between the prediction and the undersmoothed fit, in standard errors, is bias.
LARGE_BIAS = 5.0
MORE_NEURONS = Setting("n_neurons", phrase="use more {}")


class ErrorBars(NamedTuple):
    """Estimates and the terms of Student intervals around them, each (p, K)."""

    center: FloatArray  # the estimate
    variance: FloatArray  # its variance
    dof: FloatArray  # degrees of freedom of the variance
    allowance: FloatArray  # allowance for bias, added to both sides of an interval

    def bounds(self, levels: Sequence[float], method: str = "auto") -> FloatArray:
        """Student intervals, or normal ones, shape (2, levels, p, K)."""
        dof = np.inf if method == "normal" else self.dof
        low, high = normal_bounds(self.center, np.sqrt(self.variance), levels, dof)
        return np.stack([low - self.allowance, high + self.allowance])


def in_standard_errors(difference: FloatArray, se: FloatArray) -> FloatArray:
    """Differences divided by standard errors; 0 / 0 is 0, and others divided by 0 are infinite."""
    at_zero = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
    return np.divide(difference, se, out=at_zero, where=se > 0)


def error_bars(
    fit: Fit, X: Array | Functionals, target: str, variance: PredictionVariance | None = None
) -> ErrorBars:
    """Error bars for the true function, or for the expectation with its variance, if known."""
    if target == "function":
        return function_error_bars(fit, X)
    variance = prediction_variance(fit, X) if variance is None else variance
    return expectation_error_bars(fit, variance)


def expectation_error_bars(fit: Fit, variance: PredictionVariance) -> ErrorBars:
    """Error bars for the mean of the estimator over noise and hidden weights."""
    weights, members_dof = variance.from_weights, fit.ensemble.n_members - 1
    residual = np.minimum(fit.n_rows - fit.gamma, fit.covariance_dof)
    dof = satterthwaite_dof(variance.model - weights, weights, residual, members_dof)
    return ErrorBars(variance.mean, variance.model, dof, np.zeros_like(dof))


def function_error_bars(fit: Fit, X: Array | Functionals) -> ErrorBars:
    """Error bars for the true function, centred at the undersmoothed fit."""
    rough = fit.undersmoothed_parts(X)
    variance = rough.variance + fit.map_variance(X).T
    weights = rough.spread / rough.n_groups
    _warn_about_bias(fit.mean(X).T, rough.mean, np.sqrt(variance))
    _warn_about_misfit(fit.misfit)
    _warn_about_unseen(rough.null_space, variance)
    remaining = fit.n_rows - rough.dof - fit.ensemble.layer.constant
    residual = np.minimum(remaining, fit.covariance_dof)
    dof = satterthwaite_dof(variance - weights, weights, residual, rough.n_groups - 1)
    return ErrorBars(rough.mean, variance, dof, fit.misfit_allowance(X))


def function_covariance(fit: Fit, X: Array | Functionals, errors: ErrorBars) -> FloatArray:
    """Joint covariance of the undersmoothed fit, shape (K, p, p)."""
    covariance = bilinear(fit, X, lambda h, u: fit.undersmoothed_parts_of(h, u).variance)
    shifts = fit.map_shifts(X)
    covariance += outer_sums(shifts.added) - outer_sums(shifts.subtracted)
    return semidefinite(covariance, errors.variance.T)


def _warn_about_unseen(unseen: FloatArray, variance: FloatArray) -> None:
    """Warn where directions without training rows contribute most of the variance."""
    mostly = np.any(unseen > 0.5 * variance, axis=1) & np.any(variance > 0, axis=1)
    if np.any(mostly):
        text = (
            f"at {int(mostly.sum())} of {len(mostly)} points the hidden features have directions "
            "that no training row has; intervals there depend on the prior variance that the "
            "ridge parameter implies"
        )
        warn(Message("unseen-directions", text, topic="extrapolation"), ExtrapolationWarning)


def _warn_about_misfit(misfit: Misfit | None) -> None:
    if misfit is None:
        return
    if np.any(misfit.clustered):
        text = (
            "leave-one-out residuals of neighbouring rows agree in sign: the hidden layers do not "
            "represent the function everywhere. Intervals for the function include an allowance "
            "for this, and may still cover it less often than the confidence level"
        )
        another_map = Setting("input_map", phrase="use another {}")
        remedies = MORE_NEURONS, another_map, "use inputs in which the function is smoother"
        warn(Message("clustered-residuals", text, suggestions=remedies, topic="bias"), BiasWarning)
    if np.any(misfit.stepped):
        text = (
            "a step function fits the steepest change as well: the rows do not determine the "
            "function between its two sides. Intervals for the function are widened there, and "
            "may still exclude it near the step"
        )
        warn(Message("possible-step", text, topic="bias"), BiasWarning)


def _warn_about_bias(mean: FloatArray, center: FloatArray, se: FloatArray) -> None:
    biased = int(np.sum(np.abs(mean - center) > LARGE_BIAS * se))
    if biased:
        text = (
            f"at {biased} of {mean.size} points the prediction differs from the undersmoothed fit, "
            f"the centre of these intervals, by more than {LARGE_BIAS:g} standard errors: it is "
            "biased there, and the intervals may be"
        )
        remedies = MORE_NEURONS, Setting("weight_scale", phrase="use another {}")
        warn(Message("undersmoothing-gap", text, suggestions=remedies, topic="bias"), BiasWarning)
