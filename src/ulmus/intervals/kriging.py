"""Means, standard deviations and intervals of new observations with kriged residuals.

See :mod:`ulmus.core.query.kriging`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, FloatArray, taken_rows
from ulmus.core.fit.fit import Fit
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.query.kriging import kriged_points, leave_one_out_errors
from ulmus.core.variance.estimates import never_negative
from ulmus.intervals.bounds import conformal_bounds, has_ranks, normal_bounds
from ulmus.intervals.distribution import observation_dof
from ulmus.intervals.prediction import tail_ranks


class KrigedObservations(NamedTuple):
    """Mean and standard deviation of new observations and its degrees of freedom, each (p, K)."""

    mean: FloatArray
    sd: FloatArray
    dof: FloatArray


def kriged_mean(
    fit: Fit, X: Array, new_locations: Locations, weight: FloatArray | None = None
) -> FloatArray:
    """Prediction at points X (p, d) and their locations, shape (p, K).

    New observations have the weights (p,), or the mean weight of the training rows.
    """
    mean = np.empty((X.shape[0], fit.ensemble.n_outputs))
    for k in range(mean.shape[1]):
        for part in kriged_points(fit, X, new_locations, k, weight):
            mean[part.points, k] = fit.mean(part.functionals)[k] + part.offset
    return mean


def kriged_observations(
    fit: Fit, X: Array, new_locations: Locations, weight: FloatArray | None = None
) -> KrigedObservations:
    """The same with standard deviations, from the error of kriging and the variance of the fit."""
    shape = X.shape[0], fit.ensemble.n_outputs
    mean, total, weights = np.empty(shape), np.empty(shape), np.empty(shape)
    for k in range(shape[1]):
        for part in kriged_points(fit, X, new_locations, k, weight):
            here, a = part.points, part.functionals
            own = None if weight is None else weight[here]
            parts = fit.parts(a)
            model = never_negative(fit.estimates[0], parts) + fit.choice_variance(a)
            noise = fit.noise_variance(taken_rows(X, here), own)[:, k] - part.explained
            mean[here, k] = parts.mean[:, k] + part.offset
            total[here, k] = np.maximum(noise, 0.0) + model[:, k]
            weights[here, k] = np.minimum(parts.spread / parts.n_members, model)[:, k]
    # Errors of kriging are nearly uncorrelated.
    dof = observation_dof(fit, total, weights, fit.n_rows - fit.gamma)
    return KrigedObservations(mean, np.sqrt(total), dof)


def kriged_bounds(
    fit: Fit,
    X: Array,
    new_locations: Locations,
    levels: Sequence[float],
    method: str,
    tails: str = "equal",
    weight: FloatArray | None = None,
) -> FloatArray:
    """Intervals for new observations, shape (2, levels, p, K).

    They are Student t intervals, or quantiles of standardised leave-one-out errors if these are
    enough for the levels.
    """
    predicted = kriged_observations(fit, X, new_locations, weight)
    bounds = normal_bounds(predicted.mean, predicted.sd, levels, predicted.dof)
    if method == "gaussian":
        return bounds
    for k in range(predicted.mean.shape[1]):
        errors = leave_one_out_errors(fit, k)
        sd = np.sqrt(errors.variance)
        scaled = np.divide(errors.error, sd, out=np.zeros_like(sd), where=sd > 0)
        if all(has_ranks(len(scaled), level, two_sided=False) for level in levels):
            for low, high, positions, ranks in tail_ranks(scaled, levels, tails):
                ends = conformal_bounds(low, high, ranks) * predicted.sd[:, k]
                bounds[..., k][:, positions] = predicted.mean[:, k] + ends
    return bounds
