"""Variance of the prediction at points, as a value that is never negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ulmus.core.backend import Array
from ulmus.core.fit import Fit
from ulmus.core.variance import PointParts, model_variance, positive_part
from ulmus.exceptions import NegativeVarianceWarning, warn

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Variance:
    """Prediction, its variance, and the spread of members over their number, each (p, K)."""

    mean: FloatArray
    model: FloatArray
    redrawing: FloatArray

    @property
    def from_weights(self) -> FloatArray:
        """The part of the variance that redrawing the hidden weights causes."""
        return np.minimum(self.redrawing, self.model)


def prediction_variance(fit: Fit, X: Array, estimate: str | None = None) -> Variance:
    """Mean and variance of the prediction, with what choosing alpha and the map adds to it.

    Negative estimates are replaced, with a warning.
    """
    parts = fit.parts(X, estimate)
    name = fit.estimates[0] if estimate is None else estimate
    variance = _never_negative(parts, name) + fit.choice_variance(X)
    return Variance(parts.mean, variance, parts.spread / parts.n_members)


def _never_negative(parts: PointParts, name: str) -> FloatArray:
    variance = model_variance(name, parts)
    negative = variance < 0
    if np.any(negative):
        warn(
            f"{int(negative.sum())} of {variance.size} variances estimated by {name!r} were "
            "negative and are replaced by their positive-part form; more n_estimators make "
            "this rare.",
            NegativeVarianceWarning,
        )
        variance = np.where(negative, positive_part(parts), variance)
    return variance
