r"""Observations that equal their lower bound with positive probability: rain, biomass, costs.

The regression is that of the logarithm :math:`\eta` of the mean above the bound. Given it, an
observation is above the bound with probability :math:`p = 1 / (1 + \exp(-a - b \eta))`, where its
mean is :math:`e^\eta / p` above the bound. The transformed value there has a mean that is linear in
the transformation of this mean, a logarithmic standard deviation that is linear in :math:`\eta`,
and the distribution of the residuals. These parameters are estimated from leave-one-out
predictions, so that they allow for the error of the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, special

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.response.family import (
    LARGEST_SCORE,
    LinkPrediction,
    residual_nodes,
    tail_scores,
)
from ulmus.core.response.log_mean import LogMean
from ulmus.core.response.residual_distribution import ResidualShape, residual_shape
from ulmus.core.response.transformed import Transformed
from ulmus.core.response.transformer import AnyTransform

# Variance of a coefficient in the logistic regression, in standard deviations of the predictor: it
# keeps the coefficients finite where the bound is predicted without error.
PRIOR_VARIANCE = 25.0
# Smallest standard deviation above the bound, relative to that of all values.
LEAST_SCALE = 1e-3
# Values above the bound that differ by less than this share of their size are equal.
ROUND_OFF = 1e-9
# Largest exponent.
LARGEST_LOG_MEAN = 350.0


@dataclass(frozen=True)
class PointMass(LogMean):
    """A point mass at the lower bound, and a transformed distribution above it."""

    above: Transformed  # observations above the bound
    shape: ResidualShape  # distribution of their scaled residuals
    center: float  # mean and standard deviation of the predictions that it was estimated with
    spread: float
    odds: np.ndarray  # (2,): coefficients of the logarithmic odds of being above the bound
    location: np.ndarray  # (2,): coefficients of the mean of transformed values above the bound
    log_scale: np.ndarray  # (2,): coefficients of the logarithm of their standard deviation
    # Ascending tail probabilities of training rows, each predicted without it; ``tail_scores``.
    scores: np.ndarray
    unit: float = 1.0  # mean above the bound, in units of which the rows were weighted

    is_discrete = False

    @property
    def name(self) -> str:
        """What a summary calls it."""
        return f"{self.above.name} with a point mass at {self.above.least:g}"

    @property
    def transform(self) -> AnyTransform:
        """The transformation of observations."""
        return self.above.transform

    def probability_above(self, link: LinkPrediction) -> FloatArray:
        """Probability of an observation above the bound."""
        return special.expit(self.odds[0] + self.odds[1] * self.standardised(link))

    def _above(self, link: LinkPrediction) -> LinkPrediction:
        """Predictions of transformed observations above the bound."""
        eta = self._bounded(link.mean) - np.log(self.probability_above(link))
        mean = _bounded_mean(eta, self.above.least, self.above.most)
        location = self.location[0] + self.location[1] * self.transform.forward(mean)
        scale = np.exp(self.log_scale[0] + self.log_scale[1] * self.standardised(link))
        return LinkPrediction(location, scale, np.zeros_like(scale), None)

    def mean(self, link: LinkPrediction) -> FloatArray:
        """Mean of an observation."""
        return _bounded_mean(self._bounded(link.mean), self.above.least, self.above.most)

    def _bounded(self, eta: FloatArray) -> FloatArray:
        return np.clip(eta, *self.log_limits)

    def mean_slope(self, link: LinkPrediction) -> FloatArray:
        """Derivative of the mean by the prediction."""
        mean = self.mean(link)
        return np.where(mean < self.above.most, mean - self.above.least, 0.0)

    def noise_variance(self, link: LinkPrediction) -> FloatArray:
        """Variance of an observation around its mean, given the function."""
        probability, above = self.probability_above(link), self._above(link)
        mean = self.above.mean(above) - self.above.least
        second = self.above.noise_variance(above) + mean**2
        return np.maximum(probability * second - (probability * mean) ** 2, 0.0)

    def cdf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of an observation of at most y."""
        probability = self.probability_above(link)
        above = np.where(y >= self.above.most, 1.0, self._cdf_above(y, link))
        return np.where(y < self.above.least, 0.0, 1.0 - probability + probability * above)

    def _cdf_above(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of less than y, of an observation above the bound."""
        lowest, value = self._bound_score(link), self._score(y, link)
        above = (special.ndtr(value) - special.ndtr(lowest)) / special.ndtr(-lowest)
        return np.clip(above, 0.0, 1.0)

    def ppf(self, q: FloatArray, link: LinkPrediction) -> FloatArray:
        """Smallest y whose probability is at least q."""
        probability, lowest = self.probability_above(link), self._bound_score(link)
        beyond = np.maximum(1.0 - q, 0.0) / np.where(probability > 0, probability, 1.0)
        at_bound = (q <= 1.0 - probability) | (probability <= 0)
        score = -special.ndtri(np.clip(beyond, 0.0, 1.0) * special.ndtr(-lowest))
        location, scale = self._residual_scale(link)
        finite = np.clip(score, -38.0, 38.0)
        z = location + scale * self.shape.residuals(finite, 0)
        z = np.where(np.isposinf(score), np.inf, z)
        return np.where(at_bound, self.above.least, self.above.inverse(z))

    def point_mass(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of the value y itself."""
        probability, most = self.probability_above(link), self.above.most
        at_most = np.zeros_like(probability)
        if np.isfinite(most):
            at_most = probability * (1.0 - self._cdf_above(np.array(most), link))
        return np.where(y == self.above.least, 1.0 - probability, np.where(y == most, at_most, 0.0))

    def logpdf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Logarithm of the density above the bound."""
        probability, lowest = self.probability_above(link), self._bound_score(link)
        location, scale = self._residual_scale(link)
        inside = (y > self.above.least) & (y < self.above.most)
        safe = np.where(inside, y, self.above.inverse(location))
        safe = np.where(safe > self.above.least, safe, self.above.inverse(location + scale))
        with np.errstate(divide="ignore", invalid="ignore"):
            z = self.above.transform.forward(safe)
            score, slope = self.shape.scores((z - location) / scale, 0)
            density = -0.5 * score**2 - 0.5 * np.log(2 * np.pi) + np.log(slope / scale)
            density += np.log(probability) - special.log_ndtr(-lowest)
            return np.where(inside, density + self.above.transform.log_slope(safe), -np.inf)

    def _residual_scale(self, link: LinkPrediction) -> tuple[FloatArray, FloatArray]:
        above = self._above(link)
        return above.mean, above.noise_sd

    def _score(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Normal score of the residual of a value above the bound."""
        location, scale = self._residual_scale(link)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = self.above.transform.forward(np.clip(y, self.above.least, self.above.most))
            e = (z - location) / scale
        score = self.shape.scores(np.clip(e, -1e6, 1e6), 0)[0]
        return np.clip(score, -38.0, 38.0)

    def _bound_score(self, link: LinkPrediction) -> FloatArray:
        """Normal score of the bound, below which there are no residuals."""
        return np.minimum(self._score(np.array(self.above.least), link), 8.0)


def point_mass(
    y: FloatArray,
    prediction: FloatArray,
    transform: AnyTransform,
    bounds: tuple[float, float],
    dof: float,
) -> PointMass:
    """Estimate the distribution of observations (n,).

    ``prediction`` are leave-one-out predictions (n,) of the logarithm of the mean above the bound.
    """
    is_above = y > bounds[0]
    center, spread = float(np.mean(prediction)), float(np.std(prediction)) or 1.0
    u = np.clip((prediction - center) / spread, -LARGEST_SCORE, LARGEST_SCORE)
    odds = _logistic(u, is_above)
    eta = prediction - special.log_expit(odds[0] + odds[1] * u)
    predictor = transform.forward(_bounded_mean(eta, *bounds))[is_above]
    z = transform.forward(y[is_above])
    location = _line(predictor, z)
    residuals = z - location[0] - location[1] * predictor
    least = max(float(np.std(z)), 1e-3 * float(np.max(np.abs(z))), np.finfo(float).tiny)
    equal = np.ptp(z) <= ROUND_OFF * np.max(np.abs(z))
    residuals = np.zeros_like(z) if equal else residuals
    size = max(float(np.std(residuals)), LEAST_SCALE * least)
    log_scale = np.array([np.log(size), 0.0])
    if not equal:
        log_scale += _log_scale(u[is_above], residuals / size)
    e = residuals / np.exp(log_scale[0] + log_scale[1] * u[is_above])
    nodes = residual_nodes(e, dof * float(np.mean(is_above)))
    above = Transformed(transform, nodes, *bounds)
    shape = residual_shape(e[None, :] - np.mean(e), np.array([True]))
    parameters = shape, center, spread, odds, location, log_scale
    family = PointMass(above, *parameters, scores=np.empty(0))
    still = np.zeros_like(prediction)
    link = LinkPrediction(prediction, still, still, None)
    return replace(family, scores=tail_scores(family, y, link))


def _bounded_mean(eta: FloatArray, low: float, high: float) -> FloatArray:
    """The mean above a bound, whose logarithm is eta, at most the other bound."""
    return np.minimum(low + np.exp(np.clip(eta, -LARGEST_LOG_MEAN, LARGEST_LOG_MEAN)), high)


def _logistic(u: FloatArray, success: np.ndarray) -> FloatArray:
    """Coefficients of a logistic regression on one predictor."""
    design = np.stack([np.ones_like(u), u], axis=1)
    target = success.astype(float)

    def objective(b: FloatArray) -> tuple[float, FloatArray]:
        eta = design @ b
        loss = np.sum(np.logaddexp(0.0, eta) - target * eta) + 0.5 * b @ b / PRIOR_VARIANCE
        return float(loss), design.T @ (special.expit(eta) - target) + b / PRIOR_VARIANCE

    share = np.clip(np.mean(target), 0.01, 0.99)
    start = np.array([special.logit(share), 0.0])
    return optimize.minimize(objective, start, jac=True, method="L-BFGS-B").x


def _line(u: FloatArray, z: FloatArray) -> FloatArray:
    """Intercept and slope of a least-squares line; no slope for a single value of u."""
    center = np.mean(u)
    square = np.sum((u - center) ** 2)
    slope = np.sum((u - center) * (z - np.mean(z))) / square if square > 0 else 0.0
    return np.array([np.mean(z) - slope * center, slope])


def _log_scale(u: FloatArray, e: FloatArray) -> FloatArray:
    """Coefficients of the logarithm of the standard deviation, by normal likelihood."""

    def objective(c: FloatArray) -> tuple[float, FloatArray]:
        log_sd = c[0] + c[1] * u
        square = e**2 * np.exp(-2.0 * np.clip(log_sd, -30.0, 30.0))
        gradient = 1.0 - square
        loss = np.sum(log_sd + 0.5 * square) + 0.5 * c[1] ** 2
        return float(loss), np.array([np.sum(gradient), np.sum(gradient * u) + c[1]])

    return optimize.minimize(objective, np.zeros(2), jac=True, method="L-BFGS-B").x
