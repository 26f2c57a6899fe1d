"""Confidence intervals: for the mean of the estimator, and for the true function.

Bounds come as NumPy arrays in the units of y, shape (2, levels, p, K).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ulmus.core.backend import Array
from ulmus.core.fit import Fit
from ulmus.core.misfit import Misfit
from ulmus.exceptions import BiasWarning, ExtrapolationWarning, warn
from ulmus.intervals.bounds import normal_bounds, satterthwaite_dof
from ulmus.intervals.standard_errors import Variance

FloatArray = npt.NDArray[np.float64]

# The prediction may differ from the undersmoothed one by noise alone; more than this many
# standard errors is bias.
LARGE_BIAS = 5.0
# Where unseen directions hold more than this share of a variance, its interval rests on them.
UNSEEN_SHARE = 0.5


def expectation_bounds(
    fit: Fit, levels: Sequence[float], method: str, variance: Variance
) -> FloatArray:
    """Intervals for the mean of this estimator over noise and weights."""
    groups = fit.ensemble.n_members
    total, weights = variance.model, variance.from_weights
    return _student_bounds(
        variance.mean, total, weights, fit.n_rows - fit.gamma, groups, levels, method
    )


def function_bounds(fit: Fit, X: Array, levels: Sequence[float], method: str) -> FloatArray:
    """Intervals for the true function, centred on undersmoothed wide networks."""
    wide = fit.wide_parts(X)
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
    spent = wide.dof + fit.ensemble.layer.constant
    bounds = _student_bounds(
        wide.mean, variance, weights, fit.n_rows - spent, wide.n_groups, levels, method
    )
    allowance = fit.misfit_allowance(X)
    return np.stack([bounds[0] - allowance, bounds[1] + allowance])


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


def _student_bounds(
    center: FloatArray,
    variance: FloatArray,
    weights: FloatArray,
    residual_dof: FloatArray,
    groups: int,
    levels: Sequence[float],
    method: str,
) -> FloatArray:
    degrees: FloatArray | float = np.inf
    if method != "normal":
        degrees = satterthwaite_dof(variance - weights, weights, residual_dof, groups - 1)
    return normal_bounds(center, np.sqrt(variance), levels, degrees)


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
