"""Joint draws of the function or of new observations, and exceedance probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from ulmus.core.arrays.backend import Array, FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.query.joint_covariance import root
from ulmus.intervals.confidence import error_bars, function_covariance, in_standard_errors
from ulmus.intervals.distribution import predictive_distribution
from ulmus.intervals.standard_errors import joint_variance


def mean_draws(
    fit: Fit, X: Array, n_draws: int, target: str, rng: np.random.Generator
) -> FloatArray:
    """Normal draws of the function with its joint covariance, shape (n_draws, p, K)."""
    if target == "function":
        bars = error_bars(fit, X, target)
        center, covariance = bars.center, function_covariance(fit, X, bars)
    else:
        variance, covariance = joint_variance(fit, X)
        center = variance.mean
    return center + _normal_draws(covariance, n_draws, rng)


def observation_draws(
    fit: Fit,
    X: Array,
    n_draws: int,
    rng: np.random.Generator,
    weight: FloatArray | None = None,
) -> FloatArray:
    """Draws of new observations, of weights (p,) or of mean weight, shape (n_draws, p, K).

    A Gaussian copula joins the predictive distributions of the points; its correlation comes from
    the error of the function.
    """
    _, covariance = joint_variance(fit, X)
    noise = fit.noise_variance(X, weight).T
    for part, own in zip(covariance, noise, strict=True):
        part[np.diag_indices(len(own))] += own
    total = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)).T
    z = _normal_draws(covariance, n_draws, rng)
    z = np.divide(z, total, out=np.zeros_like(z), where=total > 0)
    return predictive_distribution(fit, X, weight).ppf(stats.norm.cdf(z))


def observation_exceedance(
    fit: Fit, X: Array, thresholds: Sequence[float], weight: FloatArray | None = None
) -> FloatArray:
    """Probability that a new observation exceeds each threshold, shape (p, K, thresholds)."""
    distribution = predictive_distribution(fit, X, weight)
    return np.stack([distribution.sf(c) for c in thresholds], axis=-1)


def mean_exceedance(fit: Fit, X: Array, thresholds: Sequence[float], target: str) -> FloatArray:
    """Confidence that the function exceeds each threshold, shape (p, K, thresholds)."""
    bars = error_bars(fit, X, target)
    difference = bars.center[..., None] - np.asarray(thresholds)
    # The allowance for bias is subtracted from the distance to the threshold.
    distance = np.maximum(np.abs(difference) - bars.allowance[..., None], 0.0)
    se = np.sqrt(bars.variance)[..., None]
    statistic = in_standard_errors(np.sign(difference) * distance, se)
    return stats.t.cdf(statistic, bars.dof[..., None])


def _normal_draws(covariance: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Normal draws with covariances (K, p, p), shape (n_draws, p, K)."""
    draws = []
    for part in covariance:
        L = root(part)
        draws.append(rng.standard_normal((n_draws, L.shape[1])) @ L.T)
    return np.stack(draws, axis=2)
