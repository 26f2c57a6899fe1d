"""Predictions of new observations from the fit and the residuals of rows nearby.

The noise of a new observation is told by the rows around it, where noise hangs together
(``core/query/kriging.py``): means, standard deviations and intervals of what is then predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ulmus.core.arrays.backend import Array, taken_rows
from ulmus.core.fit.fit import Fit
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.query.kriging import kriged, leave_one_out_errors
from ulmus.core.variance.estimates import never_negative
from ulmus.intervals.bounds import conformal_bounds, has_ranks, normal_bounds
from ulmus.intervals.distribution import observation_dof
from ulmus.intervals.prediction import level_sides

FloatArray = npt.NDArray[np.float64]


class KrigedObservations(NamedTuple):
    """Mean and standard deviation of new observations and its degrees of freedom, each (p, K)."""

    mean: FloatArray
    sd: FloatArray
    dof: FloatArray


def kriged_mean(fit: Fit, X: Array, at: Locations) -> FloatArray:
    """Prediction at points X (p, d) and their places, shape (p, K)."""
    mean = np.empty((X.shape[0], fit.ensemble.n_outputs))
    for k in range(mean.shape[1]):
        for part in kriged(fit, X, at, k):
            mean[part.points, k] = fit.mean(part.functionals)[k] + part.offset
    return mean


def kriged_observations(fit: Fit, X: Array, at: Locations) -> KrigedObservations:
    """The same with standard deviations: what kriging leaves of the noise, and the model's."""
    shape = X.shape[0], fit.ensemble.n_outputs
    mean, total, weights = np.empty(shape), np.empty(shape), np.empty(shape)
    for k in range(shape[1]):
        for part in kriged(fit, X, at, k):
            here, a = part.points, part.functionals
            parts = fit.parts(a)
            model = never_negative(fit.estimates[0], parts) + fit.choice_variance(a)
            noise = fit.noise_variance(taken_rows(X, here))[:, k] - part.explained
            mean[here, k] = parts.mean[:, k] + part.offset
            total[here, k] = np.maximum(noise, 0.0) + model[:, k]
            weights[here, k] = np.minimum(parts.spread / parts.n_members, model)[:, k]
    # What kriging leaves of the noise hardly hangs together.
    dof = observation_dof(fit, total, weights, fit.n_rows - fit.gamma)
    return KrigedObservations(mean, np.sqrt(total), dof)


def kriged_bounds(
    fit: Fit, X: Array, at: Locations, levels: Sequence[float], method: str, shape: str = "equal"
) -> FloatArray:
    """Intervals for new observations, shape (2, levels, p, K).

    They are Student's, or by the left-out errors of the rows in units of their own standard
    deviations, where these are enough for the levels.
    """
    seen = kriged_observations(fit, X, at)
    bounds = normal_bounds(seen.mean, seen.sd, levels, seen.dof)
    if method == "gaussian":
        return bounds
    for k in range(seen.mean.shape[1]):
        errors = leave_one_out_errors(fit, k)
        sd = np.sqrt(errors.variance)
        scaled = np.divide(errors.error, sd, out=np.zeros_like(sd), where=sd > 0)
        if all(has_ranks(len(scaled), level, two_sided=False) for level in levels):
            bounds[..., k] = _scaled_bounds(scaled, seen.mean[:, k], seen.sd[:, k], levels, shape)
    return bounds


def _scaled_bounds(
    errors: FloatArray, mean: FloatArray, sd: FloatArray, levels: Sequence[float], shape: str
) -> FloatArray:
    """Mean plus order statistics of scaled errors (n,) times standard deviations, (2, k, p)."""
    bounds = np.empty((2, len(levels), len(mean)))
    for signed, locations, ranks in level_sides(errors, levels, shape):
        high = errors[:, None] if signed else np.abs(errors)[:, None]
        ends = conformal_bounds(high if signed else -high, high, ranks)
        bounds[:, locations] = mean + ends * sd
    return bounds
