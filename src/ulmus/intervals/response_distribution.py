"""The predictive distribution of y where it leads back from a link scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.response.family import LinkPrediction, ResponseFamily
from ulmus.intervals.response import ResponsePrediction


class ResponseDistribution:
    """Distribution of new observations at p points, with the methods of frozen SciPy distributions.

    ``mean`` and ``std`` are those of ``predict``, which average over leave-one-out residuals: a
    mean over the distribution itself may be infinite, as that of a logarithm with Student's
    distribution is. Where a value has a positive probability, such as zero rain, ``pmf`` is that
    probability, and ``pdf`` the density of the other values. For counts, ``logpmf`` exists too, and
    ``pdf`` is ``pmf``.

    Parameters
    ----------
    families : sequence of K response families
        Family of each output.
    links : sequence of K predictions
        Predictions of each output on the link scale, with their distributions.
    moments : ResponsePrediction
        Mean and variance of y.
    drop_output : bool, default=False
        Whether results have no axis of outputs.
    """

    def __init__(
        self,
        families: Sequence[ResponseFamily],
        links: Sequence[LinkPrediction],
        moments: ResponsePrediction,
        *,
        drop_output: bool = False,
    ) -> None:
        self._families, self._links = tuple(families), tuple(links)
        self._moments, self._drop_output = moments, drop_output

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the distributions, (p,) or (p, K)."""
        return self._shaped(self._moments.mean).shape

    def mean(self) -> FloatArray:
        """Mean of each distribution."""
        return self._shaped(self._moments.mean)

    def var(self) -> FloatArray:
        """Variance of an observation around its prediction."""
        return self._shaped(self._moments.model + self._moments.noise)

    def std(self) -> FloatArray:
        """Standard deviation of an observation around its prediction."""
        return np.sqrt(self.var())

    def median(self) -> FloatArray:
        """Median of each distribution."""
        return self.ppf(0.5)

    def cdf(self, x: Any) -> FloatArray:
        """Probability of at most x."""
        return self._each("cdf", x)

    def sf(self, x: Any) -> FloatArray:
        """Probability of more than x."""
        return self._each("sf", x)

    def ppf(self, q: Any) -> FloatArray:
        """Quantiles of levels q."""
        return self._each("ppf", q)

    def isf(self, q: Any) -> FloatArray:
        """Quantiles of levels 1 - q."""
        return self._each("isf", q)

    def interval(self, confidence: Any) -> tuple[FloatArray, FloatArray]:
        """Bounds with equal tails around the median."""
        tail = 0.5 * (1.0 - np.asarray(confidence, dtype=float))
        return self.ppf(tail), self.ppf(1.0 - tail)

    def pmf(self, x: Any) -> FloatArray:
        """Probability of x itself."""
        return self._each("point_mass", x)

    def logpdf(self, x: Any) -> FloatArray:
        """Logarithm of the density at x; of the probability, for counts."""
        return self._each("logpdf", x)

    def pdf(self, x: Any) -> FloatArray:
        """Density at x; the probability, for counts."""
        return np.exp(self.logpdf(x))

    def logpmf(self, x: Any) -> FloatArray:
        """Logarithm of the probability of x itself."""
        with np.errstate(divide="ignore"):
            return np.log(self.pmf(x))

    def rvs(self, size: Any = None, random_state: Any = None) -> FloatArray:
        """Random draws, of the shape of the distributions or of ``size``."""
        if isinstance(random_state, np.random.RandomState):
            random_state = np.random.default_rng(random_state.randint(2**31))
        shape = self.shape if size is None else size
        return self.ppf(np.random.default_rng(random_state).uniform(size=shape))

    def _each(self, method: str, x: Any) -> FloatArray:
        x = np.asarray(x, dtype=float)
        if self._drop_output:
            return getattr(self._families[0], method)(x, self._links[0])
        x = np.broadcast_to(x, np.broadcast_shapes(x.shape, self.shape))
        pairs = enumerate(zip(self._families, self._links, strict=True))
        return np.stack([getattr(one, method)(x[..., k], link) for k, (one, link) in pairs], -1)

    def _shaped(self, values: FloatArray) -> FloatArray:
        return values[:, 0] if self._drop_output else values
