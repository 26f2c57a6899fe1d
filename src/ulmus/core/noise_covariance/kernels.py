"""Correlation as a function of distance, by name, and where each is positive semidefinite."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.ndimage import map_coordinates, spline_filter1d
from scipy.special import gamma, kv

# A Matern kernel this smooth cannot be told from a Gaussian one, and its Bessel function overflows.
LARGEST_NU = 50.0
# Matern kernels are tabulated by the logarithm of distance, in steps that leave errors below 1e-12,
# from where correlations are one, or closer than any two rows, to where they are zero.
TABLE_STEP, TABLE_END, LEAST_LOG = 0.001, 6.6, -100.0


def exponential(h: np.ndarray) -> np.ndarray:
    """exp(-h): a process that is continuous and nowhere smooth."""
    return np.exp(-h)


def spherical(h: np.ndarray) -> np.ndarray:
    """Overlap of two balls of diameter 1; zero from there on."""
    h = np.minimum(h, 1.0)
    return 1 - 1.5 * h + 0.5 * h**3


def bartlett(h: np.ndarray) -> np.ndarray:
    """Overlap of two intervals of length 1; zero from there on."""
    return np.maximum(1 - h, 0.0)


def quadratic_spectral(h: np.ndarray) -> np.ndarray:
    """The kernel of Andrews (1991), whose spectral density is a parabola."""
    angle = 6 * np.pi / 5 * h
    small = angle < 0.01
    a = np.where(small, 1.0, angle)
    return np.where(small, 1 - angle**2 / 10, 3 * (np.sin(a) / a - np.cos(a)) / a**2)


def matern(h: np.ndarray, nu: float) -> np.ndarray:
    """The Matern kernel of smoothness nu, in the units in which nu = 1/2 is exponential."""
    a = math.sqrt(2 * nu) * h
    if nu == 0.5:
        return np.exp(-a)
    if nu == 1.5:
        return (1 + a) * np.exp(-a)
    if nu == 2.5:
        return (1 + a + a**2 / 3) * np.exp(-a)
    start, coefficients = _matern_table(nu)
    log_a = np.log(np.clip(a, math.exp(start), math.exp(TABLE_END)))
    steps = ((log_a - start) / TABLE_STEP).reshape(1, -1)
    values = map_coordinates(coefficients, steps, mode="mirror", prefilter=False)
    return np.where(a > 0, np.clip(values, 0.0, 1.0).reshape(a.shape), 1.0)


@lru_cache
def _matern_table(nu: float) -> tuple[float, np.ndarray]:
    """Start and coefficients of a cubic spline: correlation by log(sqrt(2 nu) h).

    A search for parameters asks for it at millions of distances.
    """
    # Correlations differ from one by about the power min(2 nu, 2) of distance.
    start = max(-30 / min(2 * nu, 2.0), LEAST_LOG)
    a = np.exp(start + TABLE_STEP * np.arange(math.ceil((TABLE_END - start) / TABLE_STEP) + 1))
    with np.errstate(over="ignore", invalid="ignore"):
        values = a**nu * kv(nu, a) * 2 ** (1 - nu) / gamma(nu)
    # The Bessel function overflows only where correlations are one to twelve digits.
    return start, spline_filter1d(np.where(np.isfinite(values), values, 1.0))


@dataclass(frozen=True)
class Shape:
    """A correlation function of distance over scale.

    Parameters
    ----------
    function : callable
        From distance over scale to correlation.
    largest_dimension : float
        Dimension of space up to which it is positive semidefinite.
    instead : str
        What to use in a higher one.
    """

    function: Callable[..., np.ndarray]
    largest_dimension: float = math.inf
    instead: str = ""


SHAPES = {
    "exponential": Shape(exponential),
    "matern": Shape(matern),
    "spherical": Shape(spherical, 3, "'exponential' or 'matern'"),
    "bartlett": Shape(bartlett, 1, "'spherical' (up to three dimensions) or 'exponential'"),
    "quadratic-spectral": Shape(
        quadratic_spectral, 1, "'spherical' (up to three dimensions) or 'matern'"
    ),
}


@dataclass(frozen=True)
class Kernel:
    """A correlation function by name.

    Parameters
    ----------
    name : {"exponential", "matern", "spherical", "bartlett", "quadratic-spectral"}
        The function.
    nu : float, optional
        Smoothness, of the Matern kernel only.
    """

    name: str
    nu: float | None = None

    def __post_init__(self) -> None:
        """Refuse unknown names, and a smoothness that is missing or belongs to no kernel."""
        if self.name not in SHAPES:
            known = ", ".join(repr(name) for name in SHAPES)
            raise ValueError(f"kernel={self.name!r} is unknown; use one of {known}.")
        if self.name != "matern" and self.nu is not None:
            raise ValueError(f"kernel={self.name!r} has no nu, got nu={self.nu}; leave it out.")
        if self.name == "matern" and not (self.nu is not None and 0 < self.nu <= LARGEST_NU):
            raise ValueError(
                f"kernel='matern' with nu={self.nu}; give a smoothness above 0 and at most "
                f"{LARGEST_NU:g}, for example 1.5."
            )

    def __call__(self, distance: np.ndarray, scale: float) -> np.ndarray:
        """Correlation at distances of any shape."""
        function = SHAPES[self.name].function
        h = np.asarray(distance, dtype=float) / scale
        return function(h) if self.nu is None else function(h, self.nu)

    def __str__(self) -> str:
        return self.name if self.nu is None else f"{self.name} (nu={self.nu:g})"

    def require_dimension(self, dimension: int) -> None:
        """Refuse a dimension of space in which the kernel is not positive semidefinite."""
        shape = SHAPES[self.name]
        if dimension > shape.largest_dimension:
            raise ValueError(
                f"kernel={self.name!r} is positive semidefinite up to dimension "
                f"{shape.largest_dimension:g}, and there are {dimension} coordinates: variances "
                f"could be negative; use {shape.instead}."
            )
