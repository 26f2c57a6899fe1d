"""Joint draws of the function, or of new observations, at points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from ulmus.core.arrays.backend import Array
from ulmus.core.fit.fit import Fit
from ulmus.core.query.joint_covariance import root
from ulmus.intervals.confidence import function_covariance, function_errors
from ulmus.intervals.distribution import predictive_distribution
from ulmus.intervals.standard_errors import joint_variance

FloatArray = npt.NDArray[np.float64]


def mean_draws(
    fit: Fit, X: Array, n_draws: int, target: str, rng: np.random.Generator
) -> FloatArray:
    """Normal draws of the function with the joint covariance, shape (n_draws, p, K)."""
    if target == "function":
        errors = function_errors(fit, X)
        center, covariance = errors.center, function_covariance(fit, X, errors)
    else:
        variance, covariance = joint_variance(fit, X)
        center = variance.mean
    return center + _normal(covariance, n_draws, rng)


def observation_draws(fit: Fit, X: Array, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Draws of new observations, shape (n_draws, p, K).

    Each has the predictive distribution of its point, and they are correlated by what they share:
    the error of the function.
    """
    _, covariance = joint_variance(fit, X)
    noise = fit.noise_variance(X).T
    for part, own in zip(covariance, noise, strict=True):
        part[np.diag_indices(len(own))] += own
    total = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)).T
    z = _normal(covariance, n_draws, rng)
    z = np.divide(z, total, out=np.zeros_like(z), where=total > 0)
    return predictive_distribution(fit, X).ppf(stats.norm.cdf(z))


def _normal(covariance: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Normal draws with covariances (K, p, p), shape (n_draws, p, K)."""
    each = []
    for part in covariance:
        L = root(part)
        each.append(rng.standard_normal((n_draws, L.shape[1])) @ L.T)
    return np.stack(each, axis=2)
