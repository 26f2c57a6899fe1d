"""Variance of predictions at points, and of functionals, never negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import Array, FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals, Points, by_points
from ulmus.core.query.joint_covariance import bilinear, outer_sums, semidefinite
from ulmus.core.variance.estimates import PointParts, joined, model_variance, never_negative
from ulmus.exceptions import NegativeVarianceWarning, warn
from ulmus.messages import Message, Setting


@dataclass(frozen=True)
class PredictionVariance:
    """Predictions and their variance, each (p, K)."""

    mean: FloatArray  # predictions
    model: FloatArray  # their variance
    redrawing: FloatArray  # sample variance of the members divided by their number
    leverage: FloatArray  # mean of t't over members

    @property
    def from_weights(self) -> FloatArray:
        """The part of the variance due to the random hidden weights."""
        return np.minimum(self.redrawing, self.model)


def prediction_variance(
    fit: Fit, X: Array | Functionals, estimate: str | None = None
) -> PredictionVariance:
    """Mean and variance of the prediction, including that of the selected alpha and map.

    Negative estimates are replaced, with a warning.
    """
    name = fit.estimates[0] if estimate is None else estimate

    def both(points: Points) -> tuple[PointParts, FloatArray]:
        return fit.parts(points, name), fit.choice_variance(points)

    fit.prepare()
    parts, choice = zip(*by_points(both, fit.ensemble.layer, X), strict=True)
    return _variance(joined(list(parts)), np.concatenate(choice), name)


def joint_variance(
    fit: Fit, X: Array | Functionals, estimate: str | None = None
) -> tuple[PredictionVariance, FloatArray]:
    """The same with the joint covariance of the predictions, shape (K, p, p)."""
    name, own = fit.estimates[0] if estimate is None else estimate, []

    def form(h: Array, u: Array) -> FloatArray:
        parts = fit.parts_of(h, name, u)
        if u is h:
            own.append(parts.diagonal())
        return model_variance(name, parts)

    covariance, choice = bilinear(fit, X, form), fit.choice_shifts(X)
    for shifts in choice:
        covariance += outer_sums(shifts.added) - outer_sums(shifts.subtracted)
    variance = _variance(joined(own), choice.variance, name)
    return variance, semidefinite(covariance, variance.model.T)


def _variance(parts: PointParts, choice: FloatArray, name: str) -> PredictionVariance:
    estimate = model_variance(name, parts)
    n_negative = int(np.sum(estimate < 0))
    if n_negative:
        text = (
            f"{n_negative} of {estimate.size} variances estimated by {name!r} were negative and "
            "are replaced by their positive-part form"
        )
        remedy = Setting("n_estimators", phrase="use more {}")
        message = Message("negative-variance", text, suggestions=(remedy,), topic="members")
        warn(message, NegativeVarianceWarning)
    variance = never_negative(name, parts) + choice
    return PredictionVariance(parts.mean, variance, parts.spread / parts.n_members, parts.leverage)
