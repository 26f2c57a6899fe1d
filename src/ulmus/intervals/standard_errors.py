"""Variance of the prediction at points and of functionals, as a value that is never negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ulmus.core.arrays.backend import Array
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals
from ulmus.core.query.joint_covariance import bilinear, outer_sums, semidefinite
from ulmus.core.variance.estimates import PointParts, joined, model_variance, never_negative
from ulmus.exceptions import NegativeVarianceWarning, warn

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Variance:
    """Prediction, its variance, the spread of members over their number, leverage; each (p, K)."""

    mean: FloatArray
    model: FloatArray
    redrawing: FloatArray
    norm: FloatArray

    @property
    def from_weights(self) -> FloatArray:
        """The part of the variance that redrawing the hidden weights causes."""
        return np.minimum(self.redrawing, self.model)


def prediction_variance(fit: Fit, X: Array | Functionals, estimate: str | None = None) -> Variance:
    """Mean and variance of the prediction, with what choosing alpha and the map adds to it.

    Negative estimates are replaced, with a warning.
    """
    return _variance(fit, fit.parts(X, estimate), fit.choice_variance(X), estimate)


def joint_variance(
    fit: Fit, X: Array | Functionals, estimate: str | None = None
) -> tuple[Variance, FloatArray]:
    """The same with the joint covariance of the predictions, shape (K, p, p)."""
    name, own = fit.estimates[0] if estimate is None else estimate, []

    def form(h: Array, u: Array) -> FloatArray:
        parts = fit.parts_of(h, name, u)
        if u is h:
            own.append(parts.diagonal())
        return model_variance(name, parts)

    covariance, choice = bilinear(fit, X, form), fit.choice_shifts(X)
    first, second = choice.alpha[:, None]
    covariance += outer_sums(np.concatenate([first, choice.maps])) - outer_sums(second)
    variance = _variance(fit, joined(own), choice.variance, name)
    return variance, semidefinite(covariance, variance.model.T)


def _variance(fit: Fit, parts: PointParts, choice: FloatArray, estimate: str | None) -> Variance:
    name = fit.estimates[0] if estimate is None else estimate
    _warn_of_negative(parts, name)
    variance = never_negative(name, parts) + choice
    return Variance(parts.mean, variance, parts.spread / parts.n_members, parts.norm)


def _warn_of_negative(parts: PointParts, name: str) -> None:
    variance = model_variance(name, parts)
    n_negative = int(np.sum(variance < 0))
    if n_negative:
        warn(
            f"{n_negative} of {variance.size} variances estimated by {name!r} were "
            "negative and are replaced by their positive-part form; more n_estimators make "
            "this rare.",
            NegativeVarianceWarning,
        )
