"""Means, standard deviations and intervals of new observations with kriged residuals.

See :mod:`ulmus.core.query.kriging`. Means of a transformed target are those of ``predict``, around
the kriged prediction on the link scale and with the noise that remains after kriging (lognormal
kriging, for a logarithm); far from all rows both predictions are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, FloatArray, taken_rows
from ulmus.core.fit.fit import Fit
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.query.kriging import kriged_points, leave_one_out_errors
from ulmus.core.response import Counts, Transformed
from ulmus.core.response.family import LinkPrediction
from ulmus.core.variance.estimates import never_negative
from ulmus.exceptions import InputError
from ulmus.intervals.bounds import conformal_bounds, has_ranks, normal_bounds
from ulmus.intervals.distribution import observation_dof
from ulmus.intervals.prediction import tail_ranks
from ulmus.intervals.response import predicted_response
from ulmus.intervals.standard_errors import PredictionVariance
from ulmus.messages import Message, Setting


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
    if fit.response is not None:
        return kriged_observations(fit, X, new_locations, weight).mean
    mean = np.empty((X.shape[0], fit.ensemble.n_outputs))
    for k in range(mean.shape[1]):
        for part in kriged_points(fit, X, new_locations, k, weight):
            mean[part.points, k] = fit.mean(part.functionals)[k] + part.offset
    return mean


def kriged_observations(
    fit: Fit, X: Array, new_locations: Locations, weight: FloatArray | None = None
) -> KrigedObservations:
    """The same with standard deviations, from the error of kriging and the variance of the fit."""
    families = transformed_families(fit)
    parts = _link_parts(fit, X, new_locations, weight)
    predicted = _link_observations(fit, parts)
    if families is None:
        return predicted
    columns = zip(parts.mean.T, np.sqrt(parts.noise).T, np.sqrt(parts.model).T, strict=True)
    links = [LinkPrediction(*column, None) for column in columns]
    unused = np.zeros_like(parts.mean)
    variance = PredictionVariance(parts.mean, parts.model, parts.redrawing, unused)
    response = predicted_response(families, links, variance)
    return KrigedObservations(
        response.mean, np.sqrt(response.model + response.noise), predicted.dof
    )


def transformed_families(fit: Fit) -> tuple[Transformed, ...] | None:
    """The families of a fit; None where there are none, and an error for other distributions."""
    if fit.response is None:
        return None
    families = tuple(one for one in fit.response if isinstance(one, Transformed))
    if len(families) == len(fit.response):
        return families
    other = next(one for one in fit.response if not isinstance(one, Transformed))
    text = (
        "transforms observations with kriged noise back to y, which does not apply to the "
        f"distribution of this fit ({other.name})"
    )
    if isinstance(other, Counts):
        again = Setting("target_kind", "continuous", "fit with {}")
    else:
        phrase = "fit with {} and without target_range, which has no point mass"
        again = Setting("target_transform", "yeo-johnson", phrase)
    remedies = Setting("residual_kriging", False), again
    raise InputError(Message("kriged-mass", text, "residual_kriging", True, remedies))


class _LinkParts(NamedTuple):
    """Kriged predictions on the scale of the regression, each (p, K)."""

    mean: FloatArray
    noise: FloatArray  # variance of an observation that the noise of the rows does not explain
    model: FloatArray  # variance of the fit and of its residuals
    redrawing: FloatArray  # sample variance of the members divided by their number


def _link_parts(
    fit: Fit, X: Array, new_locations: Locations, weight: FloatArray | None
) -> _LinkParts:
    """Kriged predictions and the parts of their variance."""
    shape = X.shape[0], fit.ensemble.n_outputs
    out = _LinkParts(*(np.empty(shape) for _ in _LinkParts._fields))
    for k in range(shape[1]):
        for part in kriged_points(fit, X, new_locations, k, weight):
            here, a = part.points, part.functionals
            own = None if weight is None else weight[here]
            parts = fit.parts(a)
            model = never_negative(fit.estimates[0], parts) + fit.choice_variance(a)
            noise = fit.noise_variance(taken_rows(X, here), own)[:, k] - part.explained
            out.mean[here, k] = parts.mean[:, k] + part.offset
            out.noise[here, k] = np.maximum(noise, 0.0)
            out.model[here, k] = model[:, k]
            out.redrawing[here, k] = (parts.spread / parts.n_members)[:, k]
    return out


def _link_observations(fit: Fit, parts: _LinkParts) -> KrigedObservations:
    """Kriged observations on the scale of the regression."""
    total, weights = parts.noise + parts.model, np.minimum(parts.redrawing, parts.model)
    # Errors of kriging are nearly uncorrelated.
    dof = observation_dof(fit, total, weights, fit.n_rows - fit.gamma)
    return KrigedObservations(parts.mean, np.sqrt(total), dof)


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
    families = transformed_families(fit)
    bounds = _link_bounds(fit, X, new_locations, levels, method, tails, weight)
    for k, family in enumerate(families or ()):
        bounds[..., k] = family.inverse(bounds[..., k])
    return bounds


def _link_bounds(
    fit: Fit,
    X: Array,
    new_locations: Locations,
    levels: Sequence[float],
    method: str,
    tails: str,
    weight: FloatArray | None,
) -> FloatArray:
    """The same on the scale of the regression."""
    predicted = _link_observations(fit, _link_parts(fit, X, new_locations, weight))
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
