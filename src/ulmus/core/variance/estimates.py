r"""The table of variance estimates.

With A the mean over members of z'Dz and U the mean over distinct pairs (``quadratic_forms``), each
estimate of the noise term of Var f(x) is a combination of the two, and

.. math:: \widehat{\operatorname{Var}} f(x) = \text{part}(A, U) + \text{spread}(x)/M,

where spread is the sample variance of the member predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.ridge.member_pairs import COMMON, CORRELATED, MODELLED, OTHERS, OWN


@dataclass(frozen=True)
class Estimate:
    """One estimate: its pairing, and the combination of the means A and U of M members.

    ``fallback`` is the estimate for fewer than ``min_members``.
    """

    pairing: str
    part: Callable[[FloatArray, FloatArray, int], FloatArray]
    min_members: int
    fallback: str = "auto"


def _same(A: FloatArray, U: FloatArray, M: int) -> FloatArray:
    return A


def _naive(A: FloatArray, U: FloatArray, M: int) -> FloatArray:
    return A / M + (M - 1) / M * U


def _distinct(A: FloatArray, U: FloatArray, M: int) -> FloatArray:
    return U


ESTIMATES: dict[str, Estimate] = {
    "NHo": Estimate(COMMON.name, _naive, 1),
    "BR": Estimate(COMMON.name, _distinct, 2),
    "NHe": Estimate(OWN.name, _naive, 1),
    "S1": Estimate(OWN.name, _same, 1),
    "S2": Estimate(OWN.name, _distinct, 2),
    "S3": Estimate(OTHERS.name, _distinct, 3, "S2"),
    "NM": Estimate(MODELLED.name, _naive, 1),
    "BM": Estimate(MODELLED.name, _distinct, 2),
    "ND": Estimate(CORRELATED.name, _naive, 1),
    "BD": Estimate(CORRELATED.name, _distinct, 2),
}


# Estimates of constant noise, which replace those of a noise model where none is found.
CONSTANT_NOISE = {"NM": "NHo", "BM": "BR"}


class PointParts(NamedTuple):
    """Terms of every estimate at p points and K outputs, each of shape (p, K).

    The leverage is the mean of t't over members.
    """

    mean: FloatArray
    spread: FloatArray
    A: FloatArray
    U: FloatArray
    leverage: FloatArray
    n_members: int

    def diagonal(self) -> PointParts:
        """Parts of single points, from those of all pairs of points."""
        spread, A, U = (np.diagonal(a).T for a in (self.spread, self.A, self.U))
        return self._replace(spread=spread, A=A, U=U)


class Shifts(NamedTuple):
    """Changes of predictions whose products are a covariance, each (s, K, p)."""

    added: FloatArray  # products of these are added
    subtracted: FloatArray  # products of these are subtracted

    @property
    def variance(self) -> FloatArray:
        """The variance, shape (K, p), non-negative."""
        return np.maximum(np.sum(self.added**2, axis=0) - np.sum(self.subtracted**2, axis=0), 0.0)


class ChoiceShifts(NamedTuple):
    """Shifts of predictions due to choosing alpha and the input map."""

    alpha: Shifts
    map: Shifts

    @property
    def variance(self) -> FloatArray:
        """Variance due to both choices, shape (p, K), non-negative."""
        return (self.alpha.variance + self.map.variance).T


def joined(portions: list[PointParts]) -> PointParts:
    """Parts of portions of points, concatenated."""
    columns = zip(*(part[:5] for part in portions), strict=True)
    mean, spread, A, U, leverage = (np.concatenate(a) for a in columns)
    return PointParts(mean, spread, A, U, leverage, portions[0].n_members)


class UndersmoothedParts(NamedTuple):
    """Predictions of the undersmoothed networks at p points and K outputs, each (p, K)."""

    mean: FloatArray  # mean of the groups' predictions
    spread: FloatArray  # sample variance of the groups' predictions
    noise: FloatArray  # variance of the mean given the hidden weights
    null_space: FloatArray  # prior variance along directions without training rows
    n_groups: int  # number of groups
    dof: FloatArray  # (K,): degrees of freedom of a group

    @property
    def variance(self) -> FloatArray:
        """Variance of the mean around the function, if bias is negligible."""
        return self.noise + self.spread / self.n_groups + self.null_space


class VarianceComponents(NamedTuple):
    """The three terms of the variance of an ensemble (paper, equation 5), which sum to it."""

    noise: FloatArray  # variance due to noise, averaged over the weights, (1/M) E[z' Sigma z]
    covariance: FloatArray  # covariance between members, (M-1)/M mu' Sigma mu
    # Variance of the members' bias over their weights, (1/M) f' C f. The estimate is unbiased and
    # can be negative.
    weights: FloatArray


class MemberCorrelation(NamedTuple):
    """Correlation between two members, and its upper bound b."""

    correlation: FloatArray
    bound: FloatArray


def model_variance(name: str, parts: PointParts) -> FloatArray:
    """The estimate of the paper, which can be negative for few members."""
    M = parts.n_members
    return ESTIMATES[name].part(parts.A, parts.U, M) + parts.spread / M


def never_negative(name: str, parts: PointParts) -> FloatArray:
    """The estimate, replaced by ``positive_part`` where it is negative."""
    variance = model_variance(name, parts)
    negative = variance < 0
    return np.where(negative, positive_part(parts), variance) if np.any(negative) else variance


def positive_part(parts: PointParts) -> FloatArray:
    """Variance given the weights, plus the positive part of the variance of the bias.

    It is non-negative, and equals the estimates over distinct pairs if the latter is positive.
    """
    M = parts.n_members
    given_weights = _naive(parts.A, parts.U, M)
    # It can be negative if members differ in omega; members are then treated as uncorrelated.
    given_weights = np.where(given_weights > 0, given_weights, parts.A / M)
    return given_weights + np.maximum(parts.spread - (parts.A - parts.U), 0) / M


def components(parts: PointParts) -> VarianceComponents:
    """The three terms of the paper's decomposition."""
    M = parts.n_members
    bias_variation = parts.spread - (parts.A - parts.U)
    return VarianceComponents(parts.A / M, (M - 1) / M * parts.U, bias_variation / M)


def correlation(parts: PointParts) -> MemberCorrelation:
    """Correlation U / (U + spread) and its bound U / A (paper, section 2.5)."""
    U = np.maximum(parts.U, 0)
    single = U + parts.spread

    def ratio(total: FloatArray) -> FloatArray:
        return np.clip(np.divide(U, total, out=np.zeros_like(U), where=total > 0), 0, 1)

    return MemberCorrelation(ratio(single), ratio(parts.A))


def variance_at(parts: PointParts, n_members: int) -> FloatArray:
    """Variance of an ensemble of ``n_members`` members."""
    return np.maximum(parts.U, 0) + parts.spread / n_members


def sufficient_members(parts: PointParts, tolerance: float, quantile: float) -> int:
    """Number of members at which the weights add at most ``tolerance`` to the variance."""
    U = np.maximum(parts.U, 0)
    never = np.where(parts.spread > 0, np.inf, 0.0)  # members that agree need no others
    needed = np.divide(parts.spread, tolerance * U, out=never, where=U > 0)
    n_members = np.quantile(needed, quantile, method="higher")
    return int(min(max(2, np.ceil(n_members)), 10_000))
