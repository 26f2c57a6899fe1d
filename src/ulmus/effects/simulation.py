"""Joint draws of the function or of new observations, and exceedance probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from ulmus.core.arrays.backend import Array, FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.query.joint_covariance import root
from ulmus.core.response.family import (
    LinkPrediction,
    ResponseFamily,
    covariances,
    variances,
)
from ulmus.effects.response_scale import link_noise, possible_means
from ulmus.intervals.confidence import error_bars, function_covariance, in_standard_errors
from ulmus.intervals.distribution import predictive_distribution
from ulmus.intervals.response import errors_of_predictions, link_predictions, total_variance
from ulmus.intervals.standard_errors import joint_variance

# Where the mean equals a threshold is searched within 2^DOUBLINGS standard deviations of the noise,
# by intervals that are halved until their ends are neighbouring numbers.
DOUBLINGS, HALVINGS = 40, 100


def mean_draws(
    fit: Fit, X: Array, n_draws: int, target: str, rng: np.random.Generator
) -> FloatArray:
    """Normal draws of the function with its joint covariance, shape (n_draws, p, K).

    Means of y on another scale are those of normal draws on the link scale.
    """
    if target == "function":
        bars = error_bars(fit, X, target)
        center, covariance = bars.center, function_covariance(fit, X, bars)
    else:
        variance, covariance = joint_variance(fit, X)
        center = variance.mean
    if fit.response is None:
        return center + _normal_draws(covariance, n_draws, rng)
    pairs = list(zip(fit.response, link_predictions(fit, X, mean=center), strict=True))
    for part, pair in zip(covariance, pairs, strict=True):
        part += covariances(errors_of_predictions(*pair))
    draws = center + _normal_draws(covariance, n_draws, rng)
    each = [_means_of_draws(*pair, draws[:, :, k]) for k, pair in enumerate(pairs)]
    return np.stack(each, axis=2)


def _means_of_draws(family: ResponseFamily, link: LinkPrediction, draws: FloatArray) -> FloatArray:
    """Means of y at draws (n_draws, p) of the prediction, same shape."""
    sd = np.tile(link.noise_sd, len(draws))
    flat = LinkPrediction(draws.ravel(), sd, np.zeros_like(sd), None)
    return family.mean(flat).reshape(draws.shape)


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
    noise = link_noise(fit, X, weight).T
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
    """Confidence that the function exceeds each threshold, shape (p, K, thresholds).

    The mean of y increases with the prediction, so that it exceeds a threshold where the prediction
    exceeds that of the threshold.
    """
    bars, limits = error_bars(fit, X, target), np.asarray(thresholds, dtype=float)
    if fit.response is None:
        difference = bars.center[..., None] - limits
        variance = bars.variance
    else:
        links = link_predictions(fit, X, mean=bars.center)
        pairs = list(zip(fit.response, links, strict=True))
        added = [variances(errors_of_predictions(*pair)) for pair in pairs]
        variance = total_variance(bars.variance, np.stack(added, axis=-1))
        at_limits = [predictions_of_means(*pair, limits) for pair in pairs]
        difference = bars.center[..., None] - np.stack(at_limits, axis=1)
    # The allowance for bias is subtracted from the distance to the threshold.
    distance = np.maximum(np.abs(difference) - bars.allowance[..., None], 0.0)
    se = np.sqrt(variance)[..., None]
    statistic = in_standard_errors(np.sign(difference) * distance, se)
    return stats.t.cdf(statistic, bars.dof[..., None])


def predictions_of_means(
    family: ResponseFamily, link: LinkPrediction, means: FloatArray
) -> FloatArray:
    """Largest predictions at p points whose means do not exceed given ones (c,), shape (p, c).

    They are infinite for impossible means. The noise at the points is that of ``link``.
    """
    start, sd = (np.repeat(a, len(means)) for a in (link.mean, link.noise_sd))
    goal, (least, most) = np.tile(means, len(link.mean)), possible_means(family)
    found = np.where(goal <= least, -np.inf, np.inf)
    inside = np.flatnonzero((goal > least) & (goal < most))
    start, sd, goal = start[inside], sd[inside], goal[inside]

    def exceeds(prediction: FloatArray) -> np.ndarray:
        return family.mean(LinkPrediction(prediction, sd, np.zeros_like(sd), None)) > goal

    step = np.where(sd > 0, sd, np.maximum(np.abs(start), 1.0))
    low, high = start - step, start + step
    for _ in range(DOUBLINGS):
        too_high, too_low = exceeds(low), ~exceeds(high)
        if not np.any(too_high | too_low):
            break
        step = 2.0 * step
        low, high = np.where(too_high, low - step, low), np.where(too_low, high + step, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if np.all((middle == low) | (middle == high)):
            break
        above = exceeds(middle)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found[inside] = low
    return found.reshape(-1, len(means))


def _normal_draws(covariance: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Normal draws with covariances (K, p, p), shape (n_draws, p, K)."""
    draws = []
    for part in covariance:
        L = root(part)
        draws.append(rng.standard_normal((n_draws, L.shape[1])) @ L.T)
    return np.stack(draws, axis=2)
