"""Correlation functions against their definitions, and where they are positive semidefinite."""

import mpmath
import numpy as np
import pytest
from messages import mentions
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.spatial.distance import cdist

from ulmus.core.noise_covariance.kernels import KERNELS, Kernel

DISTANCES = np.array([0.0, 1e-6, 1e-3, 0.02, 0.5, 1.0, 2.3, 2.5, 7.0, 60.0])


def kernels():
    return [Kernel(name, 1.5 if name == "matern" else None) for name in KERNELS]


def textbook_matern(h, nu):
    if h == 0:
        return 1.0
    with mpmath.workdps(40):
        a = mpmath.sqrt(2 * mpmath.mpf(nu)) * mpmath.mpf(h)
        return float(2 ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu) * a**nu * mpmath.besselk(nu, a))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_in_closed_form(nu):
    expected = [textbook_matern(h / 2.3, nu) for h in DISTANCES]
    assert_allclose(Kernel("matern", nu)(DISTANCES, 2.3), expected, rtol=1e-9, atol=1e-14)


def test_kernels_of_time():
    h = DISTANCES / 2.3
    assert_allclose(Kernel("exponential")(DISTANCES, 2.3), np.exp(-h), rtol=1e-14)
    assert_allclose(Kernel("bartlett")(DISTANCES, 2.3), [max(0, 1 - x) for x in h])
    parabola = [
        quad(lambda u, x=x: 1.5 * (1 - u * u) * np.cos(1.2 * np.pi * u * x), 0, 1)[0] for x in h
    ]
    assert_allclose(Kernel("quadratic-spectral")(DISTANCES, 2.3), parabola, rtol=1e-8, atol=1e-9)


def test_spherical_is_the_overlap_of_two_balls():
    # Lens of two balls of radius 1/2 at a distance, over the volume of one.
    overlap = [
        np.pi * (2 + x / 2 * 2) * (1 - x) ** 2 / 12 / (np.pi / 6) if x < 1 else 0 for x in DISTANCES
    ]
    assert_allclose(Kernel("spherical")(DISTANCES, 1.0), overlap, atol=1e-14)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_kernels_are_positive_semidefinite_where_they_are_allowed(dimension):
    coords = np.random.default_rng(0).random((150, dimension))
    D = cdist(coords, coords)
    for kernel in kernels():
        if KERNELS[kernel.name].largest_dimension >= dimension:
            for scale in (0.05, 0.3, 2.0):
                values = np.linalg.eigvalsh(kernel(D, scale))
                assert values[0] > -1e-12 * values[-1]


def test_the_overlap_of_intervals_is_not_one_of_disks():
    # A fine grid shows the negative part of the spectrum that a few random points may hide.
    grid = np.stack(np.meshgrid(*[np.arange(24.0)] * 2), axis=-1).reshape(-1, 2)
    assert np.linalg.eigvalsh(Kernel("bartlett")(cdist(grid, grid), 6.0))[0] < -1e-3


@pytest.mark.parametrize(
    ("name", "dimension"), [("bartlett", 2), ("quadratic-spectral", 2), ("spherical", 4)]
)
def test_other_dimensions_are_refused_with_a_suggestion(name, dimension):
    Kernel(name).require_dimension(dimension - 1)
    with pytest.raises(ValueError, match=mentions(name, f"{dimension} coordinates", "use")):
        Kernel(name).require_dimension(dimension)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gauss",), ["'gauss'", "'exponential'", "'matern'"]),
        (("matern",), ["Matern", "nu=None", "1.5"]),
        (("matern", 0.0), ["nu=0", "0.5, 1.5 or 2.5"]),
        (("matern", 1.0), ["nu=1", "0.5, 1.5 or 2.5"]),
        (("exponential", 1.5), ["exponential", "nu=1.5", "unused"]),
    ],
)
def test_unknown_kernels_are_refused(arguments, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        Kernel(*arguments)


def test_kernels_have_names():
    assert str(Kernel("matern", 1.5)) == "matern (nu=1.5)"
    assert str(Kernel("exponential")) == "exponential"
