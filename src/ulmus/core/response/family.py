"""What all response families share: predictions on the link scale, and sums over residuals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import special

from ulmus.core.arrays.backend import FloatArray

# Largest array of points times residuals.
ELEMENTS = 2**21
# Residuals that are kept at either end, and groups of the others.
END_NODES, INNER_NODES = 64, 128
# Largest standardised prediction.
LARGEST_SCORE = 4.0
# Covariances of errors below this share of their product are round-off.
ROUND_OFF = 1e-9
# Fewer residuals than this do not determine a distribution, which is normal then.
FEWEST_RESIDUALS = 20


class LinkPrediction(NamedTuple):
    """Predictions of one output at p points on the link scale, each array (p,)."""

    mean: FloatArray
    noise_sd: FloatArray  # standard deviation of an observation around the function
    model_sd: FloatArray  # standard error of the prediction
    distribution: Any  # frozen distribution of an observation, with methods cdf, ppf, ...


class ResponseFamily(Protocol):
    """The distribution of an observation given a prediction on the link scale.

    All results are on the response scale; arrays have the shape (p,) of the points, or that of the
    argument broadcast against it, with the points on the last axis.
    """

    @property
    def name(self) -> str:
        """What a summary calls it."""

    @property
    def is_monotone(self) -> bool:
        """Whether quantiles of an observation are those of the link scale, transformed back."""

    @property
    def is_discrete(self) -> bool:
        """Whether observations are whole numbers."""

    def mean(self, link: LinkPrediction) -> FloatArray:
        """Mean of an observation."""

    def mean_slope(self, link: LinkPrediction) -> FloatArray:
        """Derivative of the mean by the prediction."""

    def noise_variance(self, link: LinkPrediction) -> FloatArray:
        """Variance of an observation around its mean, given the function."""

    def influence(self, link: LinkPrediction) -> FloatArray:
        """Errors (r, p) of the mean by estimating the family, see ``covariances``."""

    def cdf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of an observation of at most y."""

    def sf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of an observation of more than y."""

    def ppf(self, q: FloatArray, link: LinkPrediction) -> FloatArray:
        """Smallest y whose probability is at least q."""

    def isf(self, q: FloatArray, link: LinkPrediction) -> FloatArray:
        """Quantile of level 1 - q."""

    def point_mass(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Probability of the value y itself."""

    def logpdf(self, y: FloatArray, link: LinkPrediction) -> FloatArray:
        """Logarithm of the density, or of the probability of whole numbers."""


@dataclass(frozen=True)
class Nodes:
    """A distribution of scaled residuals by weighted values, of mean zero and variance one."""

    value: np.ndarray  # (J,): ascending residuals in units of the noise's standard deviation
    weight: np.ndarray  # (J,): their probabilities
    dof: float  # residual degrees of freedom that they are estimated with

    def expectation(
        self, function: Callable[[FloatArray], FloatArray], m: FloatArray, s: FloatArray
    ) -> FloatArray:
        """Mean of a function of m + s e over the residuals e, shape (p,)."""
        out = np.empty(len(m))
        for rows, z in self._values(m, s):
            out[rows] = self.weight @ function(z)
        return out

    def variance(
        self, function: Callable[[FloatArray], FloatArray], m: FloatArray, s: FloatArray
    ) -> FloatArray:
        """Variance of a function of m + s e over the residuals e, shape (p,)."""
        out = np.empty(len(m))
        for rows, z in self._values(m, s):
            values = function(z)
            out[rows] = self.weight @ (values - self.weight @ values) ** 2
        return out

    def influence(
        self,
        function: Callable[[FloatArray], FloatArray],
        slope: Callable[[FloatArray], FloatArray],
        m: FloatArray,
        s: FloatArray,
    ) -> FloatArray:
        r"""Errors of the expectation by estimating it from residuals, shape (J + 2, p).

        The influence function of the mean of :math:`h(e - \bar e)` at a residual is
        :math:`\psi_j = h(e_j) - \bar h - e_j \overline{h'}`; its variance over n is that of the
        mean. The prediction itself has the error :math:`s \sum_i z_i e_i` with smoother weights
        that sum to one, so that both have the covariance :math:`b s / n` with
        :math:`b = \overline{e \psi}`, which is zero for normal residuals. The last two rows
        contribute it twice: :math:`ab + ba = \frac12 [(a + b)^2 - (a - b)^2]`.
        """
        J = len(self.value)
        out = np.empty((J + 2, len(m)))
        root = np.sqrt(self.weight / self.dof)
        for rows, z in self._values(m, s):
            values, steep = function(z), s[rows] * (self.weight @ slope(z))
            psi = values - self.weight @ values - self.value[:, None] * steep
            a, b = steep / np.sqrt(self.dof), (root * self.weight**0.5 * self.value) @ psi
            a = np.where(np.abs(b) > ROUND_OFF * np.abs(a), a, 0.0)  # no covariance
            out[:J, rows] = root[:, None] * psi
            out[J, rows], out[J + 1, rows] = (a + b) / np.sqrt(2.0), (a - b) / np.sqrt(2.0)
        return out

    def _values(self, m: FloatArray, s: FloatArray) -> Any:
        size = max(1, ELEMENTS // len(self.value))
        for start in range(0, len(m), size):
            rows = slice(start, start + size)
            yield rows, m[rows] + s[rows] * self.value[:, None]


def residual_nodes(residuals: FloatArray, dof: float) -> Nodes:
    """The distribution of scaled residuals (n,); normal where these are few."""
    n = len(residuals)
    if n < FEWEST_RESIDUALS:
        value = special.ndtri((np.arange(INNER_NODES) + 0.5) / INNER_NODES)
        return _standardised(value, np.full(INNER_NODES, 1.0 / INNER_NODES), dof)
    e = np.sort(residuals - np.mean(residuals))
    if n <= 2 * END_NODES + INNER_NODES:
        return _standardised(e, np.full(n, 1.0 / n), dof)
    # The ends matter most to means of steep functions; others are averaged in groups.
    inner = np.array_split(e[END_NODES:-END_NODES], INNER_NODES)
    value = np.concatenate([e[:END_NODES], [np.mean(g) for g in inner], e[-END_NODES:]])
    single = np.ones(END_NODES)
    weight = np.concatenate([single, [len(g) for g in inner], single]) / n
    return _standardised(value, weight, dof)


def _standardised(value: FloatArray, weight: FloatArray, dof: float) -> Nodes:
    """Nodes of variance one, so that the noise variance is that of the fit."""
    sd = float(np.sqrt(weight @ value**2))
    return Nodes(value / sd if sd > 0 else value, weight, max(dof, 1.0))


def covariances(errors: FloatArray, other: FloatArray | None = None) -> FloatArray:
    """Covariances (p, p') of means by the errors (r, p) of ``influence``: sums of products over r.

    The last product is subtracted: it belongs to a covariance with the error of the prediction.
    """
    other = errors if other is None else other
    return errors[:-1].T @ other[:-1] - np.outer(errors[-1], other[-1])


def variances(errors: FloatArray) -> FloatArray:
    """The diagonal of ``covariances``, shape (p,); it may be negative."""
    return np.sum(errors[:-1] ** 2, axis=0) - errors[-1] ** 2


def tail_scores(family: ResponseFamily, y: FloatArray, link: LinkPrediction) -> FloatArray:
    """Twice the smaller tail probability of observations, at most 1, ascending.

    An interval between equal tails contains y if its error probability is at most this score.
    """
    below = family.cdf(y, link)
    above = 1.0 - below + family.point_mass(y, link)
    return np.sort(np.clip(2.0 * np.minimum(below, above), 0.0, 1.0))
