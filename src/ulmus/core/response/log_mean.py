"""What families share whose regression is that of the logarithm of the mean."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.response.family import LARGEST_SCORE, LinkPrediction

# Distance of the logarithm of a mean beyond the largest standardised prediction.
LARGEST_DEVIATION = 8.0


class LogMean(ABC):
    """A family whose distribution depends on the standardised logarithm of the mean."""

    center: float  # mean and standard deviation of the predictions that it was estimated with
    spread: float

    is_monotone = False

    @property
    def log_limits(self) -> tuple[float, float]:
        """Limits of the logarithm of the mean, far from those of the rows.

        A prediction beyond them is an extrapolation whose exponential means nothing.
        """
        reach = LARGEST_DEVIATION + LARGEST_SCORE * self.spread
        return self.center - reach, self.center + reach

    def standardised(self, link: LinkPrediction) -> FloatArray:
        """Predictions in standard deviations of those of the rows."""
        return np.clip((link.mean - self.center) / self.spread, -LARGEST_SCORE, LARGEST_SCORE)

    def influence(self, link: LinkPrediction) -> FloatArray:
        """Errors (1, p) of the mean, zero: it does not depend on the distribution."""
        return np.zeros((1, len(link.mean)))

    @abstractmethod
    def cdf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of an observation of at most y."""

    @abstractmethod
    def ppf(self, q: FloatArray, link: LinkPrediction) -> FloatArray:
        """Smallest y whose probability is at least q."""

    def sf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of an observation of more than y."""
        return np.clip(1.0 - self.cdf(y, link), 0.0, 1.0)

    def isf(self, q: FloatArray, link: LinkPrediction) -> FloatArray:
        """Quantile of level 1 - q."""
        return self.ppf(1.0 - np.asarray(q, dtype=float), link)
