"""How likely a new observation, or the function itself, lies above a threshold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from ulmus.core.arrays.backend import Array
from ulmus.core.fit.fit import Fit
from ulmus.intervals.confidence import expectation_errors, function_errors, in_standard_errors
from ulmus.intervals.distribution import predictive_distribution
from ulmus.intervals.standard_errors import prediction_variance

FloatArray = npt.NDArray[np.float64]


def observation_exceedance(fit: Fit, X: Array, thresholds: Sequence[float]) -> FloatArray:
    """Probability that a new observation exceeds each threshold, shape (p, K, thresholds)."""
    distribution = predictive_distribution(fit, X)
    return np.stack([distribution.sf(c) for c in thresholds], axis=-1)


def mean_exceedance(fit: Fit, X: Array, thresholds: Sequence[float], target: str) -> FloatArray:
    """Confidence that the function exceeds each threshold, shape (p, K, thresholds)."""
    if target == "function":
        errors = function_errors(fit, X)
    else:
        errors = expectation_errors(fit, prediction_variance(fit, X))
    away = errors.center[..., None] - np.asarray(thresholds)
    # Where intervals allow for bias, that much of the distance to the threshold does not count.
    distance = np.sign(away) * np.maximum(np.abs(away) - errors.allowance[..., None], 0.0)
    se = np.sqrt(errors.variance)[..., None]
    return stats.t.cdf(in_standard_errors(distance, se), errors.dof[..., None])
