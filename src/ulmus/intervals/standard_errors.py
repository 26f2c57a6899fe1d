"""Variance of predictions at points, and of functionals, never negative."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals, Points, by_points
from ulmus.core.query.joint_covariance import bilinear, outer_sums, semidefinite
from ulmus.core.variance.estimates import PointParts, joined, model_variance, never_negative
from ulmus.exceptions import NegativeVarianceWarning, warn
from ulmus.messages import Message, Setting


class PredictionVariance(NamedTuple):
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

    def of_points(points: Points) -> tuple[PredictionVariance, int]:
        return _variance(fit.parts(points, name), fit.choice_variance(points), name)

    fit.prepare()
    blocks, n_negative = zip(*by_points(of_points, fit.ensemble.layer, X), strict=True)
    fields = (np.concatenate(values) for values in zip(*blocks, strict=True))
    variance = PredictionVariance(*fields)
    _warn_about_negative(sum(n_negative), variance.model.size, name)
    return variance


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
    variance, n_negative = _variance(joined(own), choice.variance, name)
    _warn_about_negative(n_negative, variance.model.size, name)
    return variance, semidefinite(covariance, variance.model.T)


def _variance(parts: PointParts, choice: FloatArray, name: str) -> tuple[PredictionVariance, int]:
    """The variance with that of the choices, and how many estimates were negative."""
    n_negative = int(np.count_nonzero(model_variance(name, parts) < 0))
    variance = never_negative(name, parts) + choice
    redrawing = parts.spread / parts.n_members
    return PredictionVariance(parts.mean, variance, redrawing, parts.leverage), n_negative


def _warn_about_negative(n_negative: int, size: int, name: str) -> None:
    if not n_negative:
        return
    text = (
        f"{n_negative} of {size} variances estimated by {name!r} were negative and "
        "are replaced by their positive-part form"
    )
    remedy = Setting("n_estimators", phrase="use more {}")
    message = Message("negative-variance", text, suggestions=(remedy,), topic="members")
    warn(message, NegativeVarianceWarning)
