r"""Increasing transformations of a target, z = T(y), and their inverses.

Each is a frozen value with four methods, all on NumPy arrays: ``forward``, ``inverse``, the
derivative ``inverse_slope`` of the inverse, and ``log_slope``, the logarithm of T'(y) that turns a
density of z into one of y. ``support`` contains the possible y, and ``domain`` the z on which the
inverse increases; beyond it the inverse is constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from ulmus.core.arrays.backend import FloatArray

# Largest exponent of an inverse: larger numbers, and their squares, overflow.
LARGEST_EXPONENT = 300.0


@dataclass(frozen=True)
class Identity:
    """No transformation."""

    name = "identity"
    domain = support = (-np.inf, np.inf)

    def forward(self, y: FloatArray) -> FloatArray:
        """Values on the link scale."""
        return y

    def inverse(self, z: FloatArray) -> FloatArray:
        """Values on the response scale."""
        return z

    def inverse_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the inverse."""
        return np.ones_like(z)

    def log_slope(self, y: FloatArray) -> FloatArray:
        """Logarithm of the derivative of the transformation."""
        return np.zeros_like(y)


@dataclass(frozen=True)
class Log:
    """The logarithm of y - low + start; ``start`` is positive where y contains ``low`` itself."""

    low: float = 0.0
    start: float = 0.0

    name = "log"

    @property
    def domain(self) -> tuple[float, float]:
        """Interval of z on which the inverse increases."""
        return (float(np.log(self.start)) if self.start else -np.inf, LARGEST_EXPONENT)

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest possible y."""
        return (self.low, np.inf)

    def forward(self, y: FloatArray) -> FloatArray:
        """Values on the link scale."""
        return np.log(y - self.low + self.start)

    def inverse(self, z: FloatArray) -> FloatArray:
        """Values on the response scale."""
        return self.low + np.exp(np.clip(z, *self.domain)) - self.start

    def inverse_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the inverse; zero outside the domain."""
        return np.where(_inside(z, self.domain), np.exp(np.clip(z, *self.domain)), 0.0)

    def log_slope(self, y: FloatArray) -> FloatArray:
        """Logarithm of the derivative of the transformation."""
        return -np.log(y - self.low + self.start)


@dataclass(frozen=True)
class Sqrt:
    """The square root of y - low."""

    low: float = 0.0

    name = "sqrt"
    domain = (0.0, np.inf)

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest possible y."""
        return (self.low, np.inf)

    def forward(self, y: FloatArray) -> FloatArray:
        """Values on the link scale."""
        return np.sqrt(y - self.low)

    def inverse(self, z: FloatArray) -> FloatArray:
        """Values on the response scale."""
        return self.low + np.maximum(z, 0.0) ** 2

    def inverse_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the inverse; zero outside the domain."""
        return 2.0 * np.maximum(z, 0.0)

    def log_slope(self, y: FloatArray) -> FloatArray:
        """Logarithm of the derivative of the transformation."""
        return -np.log(2.0 * np.sqrt(y - self.low))


@dataclass(frozen=True)
class Logit:
    """The logit of the share of y in (low, high), of which ``squeeze`` is cut at both ends.

    It is positive where y contains the bounds themselves, whose logits are infinite.
    """

    low: float = 0.0
    high: float = 1.0
    squeeze: float = 0.0

    name = "logit"

    @property
    def domain(self) -> tuple[float, float]:
        """Interval of z on which the inverse increases."""
        end = float(special.logit(1.0 - self.squeeze)) if self.squeeze else LARGEST_EXPONENT
        return (-end, end)

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest possible y."""
        return (self.low, self.high)

    def forward(self, y: FloatArray) -> FloatArray:
        """Values on the link scale."""
        share = (y - self.low) / (self.high - self.low)
        return special.logit(self.squeeze + (1.0 - 2.0 * self.squeeze) * share)

    def inverse(self, z: FloatArray) -> FloatArray:
        """Values on the response scale."""
        share = (special.expit(z) - self.squeeze) / (1.0 - 2.0 * self.squeeze)
        return self.low + (self.high - self.low) * np.clip(share, 0.0, 1.0)

    def inverse_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the inverse; zero outside the domain."""
        share = special.expit(z)
        slope = (self.high - self.low) * share * (1.0 - share) / (1.0 - 2.0 * self.squeeze)
        return np.where(_inside(z, self.domain), slope, 0.0)

    def log_slope(self, y: FloatArray) -> FloatArray:
        """Logarithm of the derivative of the transformation."""
        size = (self.high - self.low) / (1.0 - 2.0 * self.squeeze)
        share = self.squeeze + (y - self.low) / size
        return -np.log(share) - np.log1p(-share) - np.log(size)


@dataclass(frozen=True)
class YeoJohnson:
    """The power transformation of Yeo and Johnson (2000) of (y - center) / scale."""

    lmbda: float
    center: float = 0.0
    scale: float = 1.0

    name = "yeo-johnson"
    support = (-np.inf, np.inf)

    @property
    def domain(self) -> tuple[float, float]:
        """Interval of z on which the inverse increases: bounded for powers outside [0, 2]."""
        low = -1.0 / (self.lmbda - 2.0) if self.lmbda > 2.0 else -np.inf
        high = -1.0 / self.lmbda if self.lmbda < 0.0 else np.inf
        # The inverse reaches infinity at the end.
        return (low * (1.0 - 1e-9), high * (1.0 - 1e-9))

    def forward(self, y: FloatArray) -> FloatArray:
        """Values on the link scale."""
        u = (y - self.center) / self.scale
        upper, lower = np.log1p(np.maximum(u, 0.0)), np.log1p(np.maximum(-u, 0.0))
        return np.where(u >= 0, _power(upper, self.lmbda), -_power(lower, 2.0 - self.lmbda))

    def inverse(self, z: FloatArray) -> FloatArray:
        """Values on the response scale."""
        return self.center + self.scale * self._inverse(z)

    def _inverse(self, z: FloatArray) -> FloatArray:
        z = np.clip(z, *self.domain)
        upper = _log_of_power(np.maximum(z, 0.0), self.lmbda)
        lower = _log_of_power(np.maximum(-z, 0.0), 2.0 - self.lmbda)
        return np.where(z >= 0, np.expm1(upper), -np.expm1(lower))

    def inverse_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the inverse; zero outside the domain."""
        slope = self.scale * np.exp(-self._log_slope(self._inverse(z)))
        return np.where(_inside(z, self.domain), slope, 0.0)

    def log_slope(self, y: FloatArray) -> FloatArray:
        """Logarithm of the derivative of the transformation."""
        return self._log_slope((y - self.center) / self.scale) - np.log(self.scale)

    def _log_slope(self, u: FloatArray) -> FloatArray:
        return np.sign(u) * (self.lmbda - 1.0) * np.log1p(np.abs(u))


def _inside(z: FloatArray, domain: tuple[float, float]) -> npt.NDArray[np.bool_]:
    return (z >= domain[0]) & (z <= domain[1])


def _power(log: FloatArray, lmbda: float) -> FloatArray:
    """(exp(log)^lmbda - 1) / lmbda, and its limit for small lmbda."""
    return log if abs(lmbda) < 1e-8 else np.expm1(np.minimum(lmbda * log, 700.0)) / lmbda


def _log_of_power(z: FloatArray, lmbda: float) -> FloatArray:
    """Inverse of ``_power``, at most ``LARGEST_EXPONENT``."""
    if abs(lmbda) < 1e-8:
        return np.minimum(z, LARGEST_EXPONENT)
    return np.minimum(np.log1p(np.maximum(lmbda * z, -1.0 + 1e-16)) / lmbda, LARGEST_EXPONENT)
