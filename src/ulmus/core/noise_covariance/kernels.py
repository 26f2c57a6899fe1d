"""Correlation as a function of distance, by name, and where each is positive semidefinite."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ulmus.core.noise_covariance.errors import covariance_error
from ulmus.exceptions import InputError


def exponential(h: np.ndarray) -> np.ndarray:
    """exp(-h): a process that is continuous and nowhere differentiable."""
    return np.exp(-h)


def spherical(h: np.ndarray) -> np.ndarray:
    """Overlap of two balls of diameter 1; zero beyond."""
    h = np.minimum(h, 1.0)
    return 1 - 1.5 * h + 0.5 * h**3


def bartlett(h: np.ndarray) -> np.ndarray:
    """Overlap of two intervals of length 1; zero beyond."""
    return np.maximum(1 - h, 0.0)


def quadratic_spectral(h: np.ndarray) -> np.ndarray:
    """The kernel of Andrews (1991), whose spectral density is a parabola."""
    angle = 6 * np.pi / 5 * h
    small = angle < 0.01
    a = np.where(small, 1.0, angle)
    return np.where(small, 1 - angle**2 / 10, 3 * (np.sin(a) / a - np.cos(a)) / a**2)


def matern(h: np.ndarray, nu: float) -> np.ndarray:
    """The Matern kernel of smoothness 1/2, 3/2 or 5/2; 1/2 is the exponential kernel."""
    a = math.sqrt(2 * nu) * h
    polynomial = {0.5: 1.0, 1.5: 1 + a, 2.5: 1 + a + a**2 / 3}[nu]
    return polynomial * np.exp(-a)


@dataclass(frozen=True)
class CorrelationFunction:
    """A correlation function of distance over scale."""

    function: Callable[..., np.ndarray]  # from distance over scale to correlation
    # Dimension of space up to which it is positive semidefinite.
    largest_dimension: float = math.inf
    instead: str = ""  # kernels for higher dimensions


KERNELS = {
    "exponential": CorrelationFunction(exponential),
    "matern": CorrelationFunction(matern),
    "spherical": CorrelationFunction(spherical, 3, "'exponential' or 'matern'"),
    "bartlett": CorrelationFunction(
        bartlett, 1, "'spherical' (up to three dimensions) or 'exponential'"
    ),
    "quadratic-spectral": CorrelationFunction(
        quadratic_spectral, 1, "'spherical' (up to three dimensions) or 'matern'"
    ),
}


@dataclass(frozen=True)
class Kernel:
    """A correlation function by name."""

    # {"exponential", "matern", "spherical", "bartlett", "quadratic-spectral"}; The function.
    name: str
    # {0.5, 1.5, 2.5}, optional; Smoothness of the Matern kernel, and of no other.
    nu: float | None = None

    def __post_init__(self) -> None:
        """Raise an error for unknown names and for a smoothness that is missing or unused."""
        if self.name not in KERNELS:
            known = ", ".join(repr(name) for name in KERNELS)
            raise _error("kernel", self.name, "is unknown", f"use one of {known}")
        if self.name != "matern" and self.nu is not None:
            raise _error("nu", self.nu, f"is unused by kernel={self.name!r}", "omit nu")
        if self.name == "matern" and self.nu not in (0.5, 1.5, 2.5):
            text = "is no smoothness of a Matern kernel in closed form"
            raise _error("nu", self.nu, text, "use nu=0.5, 1.5 or 2.5")

    def __call__(self, distance: np.ndarray, scale: float) -> np.ndarray:
        """Correlation at distances of any shape."""
        function = KERNELS[self.name].function
        h = np.asarray(distance, dtype=float) / scale
        return function(h) if self.nu is None else function(h, self.nu)

    def __str__(self) -> str:
        return self.name if self.nu is None else f"{self.name} (nu={self.nu:g})"

    def require_dimension(self, dimension: int) -> None:
        """Raise an error for a dimension in which the kernel is not positive semidefinite."""
        known = KERNELS[self.name]
        if dimension > known.largest_dimension:
            text = (
                f"is positive semidefinite up to dimension {known.largest_dimension:g}, and there "
                f"are {dimension} coordinates: variances could be negative"
            )
            raise _error("kernel", self.name, text, f"use {known.instead}")


def _error(parameter: str, value: object, text: str, suggestion: str) -> InputError:
    code = f"invalid-{parameter}"
    return covariance_error(code, text, suggestion, parameter=parameter, value=value)
