"""Observations whose transformed values are predictions plus noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.response.family import LinkPrediction, Nodes
from ulmus.core.response.transformer import AnyTransform


@dataclass(frozen=True)
class Transformed:
    """T(y) is normal or has the distribution of the residuals; y lies between two bounds.

    Means are computed by smearing (Duan, 1983): over the residuals instead of by assuming a
    distribution. Probability beyond a bound is a point mass at the bound.
    """

    transform: AnyTransform
    nodes: Nodes  # leave-one-out residuals in units of their standard deviations
    low: float = -np.inf
    high: float = np.inf

    is_monotone = True
    is_discrete = False

    @property
    def name(self) -> str:
        """What a summary calls it."""
        return self.transform.name

    def inverse(self, z: FloatArray) -> FloatArray:
        """Values on the response scale, within the bounds."""
        return np.clip(self.transform.inverse(z), self.low, self.high)

    def inverse_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the inverse; zero beyond the bounds."""
        y = self.transform.inverse(z)
        return np.where((y >= self.low) & (y <= self.high), self.transform.inverse_slope(z), 0.0)

    def mean(self, link: LinkPrediction) -> FloatArray:
        """Mean of an observation."""
        return self.nodes.expectation(self.inverse, link.mean, link.noise_sd)

    def mean_slope(self, link: LinkPrediction) -> FloatArray:
        """Derivative of the mean by the prediction."""
        return self.nodes.expectation(self.inverse_slope, link.mean, link.noise_sd)

    def noise_variance(self, link: LinkPrediction) -> FloatArray:
        """Variance of an observation around its mean, given the function."""
        return self.nodes.variance(self.inverse, link.mean, link.noise_sd)

    def influence(self, link: LinkPrediction) -> FloatArray:
        """Errors (r, p) of the mean by estimating the residuals' distribution."""
        return self.nodes.influence(self.inverse, self.inverse_slope, link.mean, link.noise_sd)

    def cdf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of an observation of at most y."""
        below, above = y < self.least, y >= self.most
        value = link.distribution.cdf(self._forward(y))
        return np.where(below, 0.0, np.where(above, 1.0, value))

    def sf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of an observation of more than y, with all digits of small ones."""
        value = link.distribution.sf(self._forward(y))
        return np.where(y < self.least, 1.0, np.where(y >= self.most, 0.0, value))

    def ppf(self, q: FloatArray, link: LinkPrediction) -> FloatArray:
        """Smallest y whose probability is at least q."""
        return self.inverse(link.distribution.ppf(q))

    def isf(self, q: FloatArray, link: LinkPrediction) -> FloatArray:
        """Quantile of level 1 - q."""
        return self.inverse(link.distribution.isf(q))

    def point_mass(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of the value y itself, at a bound that the transformation reaches."""
        z, L = self._forward(y), link.distribution
        mass = np.where(y == self.least, L.cdf(z), np.where(y == self.most, L.sf(z), 0.0))
        return np.where(np.isfinite(y), mass, 0.0)

    def logpdf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Logarithm of the density."""
        inside = (y > self.least) & (y < self.most)
        safe = self._inner(y)
        density = link.distribution.logpdf(self.transform.forward(safe))
        return np.where(inside, density + self.transform.log_slope(safe), -np.inf)

    @property
    def least(self) -> float:
        """Smallest possible value."""
        return max(self.transform.support[0], self.low)

    @property
    def most(self) -> float:
        """Largest possible value."""
        return min(self.transform.support[1], self.high)

    def _inner(self, y: FloatArray) -> FloatArray:
        """Values inside the support: others are replaced by one that is."""
        inner = self.inverse(np.ones(1))[0]
        if not self.least < inner < self.most:
            inner = np.mean(np.clip([self.least, self.most], -1e300, 1e300))
        return np.where((y > self.least) & (y < self.most), y, inner)

    def _forward(self, y: FloatArray) -> FloatArray:
        """Values on the link scale, for values at or beyond the ends those of the ends."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.transform.forward(np.clip(y, self.least, self.most))
