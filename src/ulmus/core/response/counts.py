r"""Counts: Poisson or negative binomial observations, with or without extra zeros.

The regression is of the logarithm of the mean, :math:`\mu = \exp(\eta)`. With dispersion
:math:`\phi` the variance is :math:`\mu + \phi \mu^2`; extra zeros of probability :math:`\pi` leave
the mean as it is. The error of :math:`\eta`, of variance v, multiplies the mean by a factor of
variance v, which is a larger dispersion: :math:`\phi + v (1 + \phi)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, special, stats

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.response.family import LinkPrediction, tail_scores
from ulmus.core.response.log_mean import LogMean

# Dispersions below this are those of a Poisson distribution, and the largest one.
LEAST_DISPERSION, MOST_DISPERSION = 1e-6, 1e3
# Variance of the coefficients of the odds of an extra zero.
PRIOR_VARIANCE = 25.0


@dataclass(frozen=True)
class Counts(LogMean):
    """Counts whose mean is the exponential of the prediction."""

    dispersion: float
    # Coefficients of the logarithmic odds of an extra zero, by the standardised prediction; empty
    # without extra zeros.
    odds: np.ndarray
    center: float  # mean and standard deviation of the predictions that they were estimated with
    spread: float
    # Ascending tail probabilities of training rows, each predicted without it; ``tail_scores``.
    scores: np.ndarray

    is_discrete = True

    @property
    def name(self) -> str:
        """What a summary calls it."""
        family = "Poisson" if self.dispersion < LEAST_DISPERSION else "negative binomial"
        return f"count, {'zero-inflated ' if len(self.odds) else ''}{family}"

    def mean(self, link: LinkPrediction) -> FloatArray:
        """Mean of an observation."""
        return np.exp(np.clip(link.mean, *self.log_limits))

    def mean_slope(self, link: LinkPrediction) -> FloatArray:
        """Derivative of the mean by the prediction."""
        return self.mean(link)

    def noise_variance(self, link: LinkPrediction) -> FloatArray:
        """Variance of an observation around its mean, given the function."""
        mean, extra = self.mean(link), self.extra_zeros(link)
        return mean + mean**2 * (self.dispersion + extra) / (1.0 - extra)

    def extra_zeros(self, link: LinkPrediction) -> FloatArray:
        """Probability of an extra zero."""
        if not len(self.odds):
            return np.zeros_like(link.mean)
        return special.expit(self.odds[0] + self.odds[1] * self.standardised(link))

    def cdf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of an observation of at most y."""
        extra = self.extra_zeros(link)
        inner = self._positive(link).cdf(np.floor(y))
        return np.where(np.asarray(y) < 0, 0.0, extra + (1.0 - extra) * inner)

    def ppf(self, q: FloatArray, link: LinkPrediction) -> FloatArray:
        """Smallest y whose probability is at least q."""
        extra = self.extra_zeros(link)
        inner = np.clip((q - extra) / (1.0 - extra), 0.0, 1.0)
        return np.maximum(np.where(q <= extra, 0.0, self._positive(link).ppf(inner)), 0.0)

    def point_mass(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of the value y itself."""
        return np.exp(self.logpdf(y, link))

    def logpdf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Logarithm of the probability of y."""
        finite = np.where(np.isfinite(y), y, -1.0)  # impossible, as an infinite count
        extra, inner = self.extra_zeros(link), self._positive(link).logpmf(finite)
        with np.errstate(divide="ignore"):
            at_zero = np.where(np.asarray(y) == 0, np.log(extra), -np.inf)
            return np.logaddexp(np.log1p(-extra) + inner, at_zero)

    def _positive(self, link: LinkPrediction) -> _Overdispersed:
        """Distribution of the counts that are no extra zeros."""
        v = link.model_sd**2
        total = self.dispersion + v * (1.0 + self.dispersion)
        return _Overdispersed(self.mean(link) / (1.0 - self.extra_zeros(link)), total)


@dataclass(frozen=True)
class _Overdispersed:
    """Negative binomial distributions of some means and dispersions, Poisson where these vanish."""

    mean: FloatArray
    dispersion: FloatArray

    def cdf(self, y: FloatArray) -> FloatArray:
        return self._either("cdf", y)

    def ppf(self, q: FloatArray) -> FloatArray:
        return self._either("ppf", q)

    def logpmf(self, y: FloatArray) -> FloatArray:
        return self._either("logpmf", y)

    def _either(self, method: str, x: FloatArray) -> FloatArray:
        is_poisson = self.dispersion < LEAST_DISPERSION
        poisson = getattr(stats.poisson(self.mean), method)(x)
        if np.all(is_poisson):
            return poisson
        size = 1.0 / np.clip(self.dispersion, LEAST_DISPERSION, MOST_DISPERSION)
        binomial = stats.nbinom(size, size / (size + self.mean))
        return np.where(is_poisson, poisson, getattr(binomial, method)(x))


def count_family(y: FloatArray, prediction: FloatArray, variance: FloatArray) -> Counts:
    """Estimate the distribution of counts (n,) by maximum likelihood.

    ``prediction`` are leave-one-out predictions of the logarithm of the mean, with the variances of
    their errors. Dispersion and extra zeros are added where the Bayesian information criterion
    favours them.
    """
    center, spread = float(np.mean(prediction)), float(np.std(prediction)) or 1.0
    link = LinkPrediction(prediction, np.zeros_like(variance), np.sqrt(variance), None)

    def family(parameters: FloatArray) -> Counts:
        dispersion = float(np.exp(parameters[0])) if len(parameters) else 0.0
        odds = np.append(parameters[1:], np.zeros(max(0, 3 - len(parameters))))
        return Counts(dispersion, odds[: 2 * (len(parameters) > 1)], center, spread, np.empty(0))

    def loss(parameters: FloatArray) -> float:
        one = family(parameters)
        value = -float(np.sum(np.maximum(one.logpdf(y, link), -1e4)))
        return value + 0.5 * float(one.odds @ one.odds) / PRIOR_VARIANCE

    none = float(np.log(LEAST_DISPERSION / 10))
    starts: list[Sequence[float]] = [[], [np.log(0.3)]]
    if np.any(y == 0):
        starts += [[none, -2.0], [np.log(0.3), -2.0], [np.log(0.3), -2.0, 0.0]]
    best, least = family(np.array([])), np.inf
    for start in starts:
        found = _minimum(loss, np.array(start, dtype=float), none)
        criterion = loss(found) + 0.5 * np.log(len(y)) * len(found)
        if criterion < least:
            best, least = family(found), criterion
    return replace(best, scores=tail_scores(best, y, link))


def _minimum(loss: Callable[[FloatArray], float], start: FloatArray, none: float) -> FloatArray:
    """Parameters of the smallest loss near a start."""
    if not len(start):
        return start
    bounds = [(none, np.log(MOST_DISPERSION)), (-8.0, 8.0), (-8.0, 8.0)][: len(start)]
    return optimize.minimize(loss, start, method="L-BFGS-B", bounds=bounds).x


def dispersion_by_moments(y: FloatArray, mean: FloatArray) -> float:
    """Dispersion of counts around their means, from squared errors."""
    square = float(np.sum((y - mean) ** 2 - mean) / np.sum(mean**2))
    return float(np.clip(square, 0.0, MOST_DISPERSION))
