"""Simulated data of the paper: a sine of one input and Friedman's function of five.

References
----------
Guignard, Amato & Kanevski (2021), "Uncertainty Quantification in Extreme Learning Machine",
Neurocomputing 456, sections 4.1 and 4.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Dataset", "friedman", "heteroskedastic_variance", "make_friedman", "make_sine", "sine"]

FloatArray = npt.NDArray[np.float64]
Seed = int | np.random.Generator | None

SINE_NOISE_VARIANCE = 0.1
FRIEDMAN_NOISE_VARIANCE = 0.5


class Dataset(NamedTuple):
    """Simulated rows, with their true means and noise variances.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Inputs.
    y : ndarray of shape (n,)
        Observations.
    f : ndarray of shape (n,)
        Means of the observations.
    noise_variance : ndarray of shape (n,)
        Noise variance of each row.

    Examples
    --------
    >>> from ulmus.datasets import make_sine
    >>> X, y, f, noise_variance = make_sine(60, random_state=0)
    >>> bool(abs((y - f).var() / noise_variance[0] - 1) < 0.3)
    True
    """

    X: FloatArray
    y: FloatArray
    f: FloatArray
    noise_variance: FloatArray


def trapezoidal_inputs(rng: np.random.Generator, n: int) -> FloatArray:
    r"""Draw n inputs with density :math:`3/(4\pi) - x/(4\pi^2)` on :math:`[0, 2\pi]`, (n, 1)."""
    # u = x / 2 pi has density 3/2 - u and distribution function u (3 - u) / 2.
    u = 1.5 - np.sqrt(2.25 - 2 * rng.random((n, 1)))
    return 2 * np.pi * u


def sine(X: FloatArray) -> FloatArray:
    """Sine of one input.

    Parameters
    ----------
    X : ndarray of shape (n, 1)
        Points, in radians.

    Returns
    -------
    f : ndarray of shape (n,)
        Values of the function.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.datasets import sine
    >>> sine(np.array([[0.0], [np.pi / 2]]))
    array([0., 1.])
    """
    return np.sin(X[:, 0])


def friedman(X: FloatArray) -> FloatArray:
    r"""Friedman's function of five inputs.

    .. math:: f(x) = 10 \sin(\pi x_1 x_2) + 20 (x_3 - 0.5)^2 + 10 x_4 + 5 x_5

    Parameters
    ----------
    X : ndarray of shape (n, 5)
        Points, usually in the unit cube.

    Returns
    -------
    f : ndarray of shape (n,)
        Values of the function.

    References
    ----------
    J. H. Friedman (1991). Multivariate adaptive regression splines. Annals of Statistics 19, 1-67.
    Guignard, Amato & Kanevski (2021), equation 25.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.datasets import friedman
    >>> friedman(np.array([[0.5, 1.0, 0.5, 0.0, 0.0]]))
    array([10.])
    """
    waves = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return waves + 10 * X[:, 3] + 5 * X[:, 4]


def heteroskedastic_variance(X: FloatArray) -> FloatArray:
    r"""Noise variance that depends on the largest input.

    .. math:: \sigma^2(x) = 0.5 + 2 \sin^2(\pi \|x\|_\infty)

    Parameters
    ----------
    X : ndarray of shape (n, 5)
        Points.

    Returns
    -------
    variance : ndarray of shape (n,)
        Noise variance of ``make_friedman(heteroskedastic=True)``.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.datasets import heteroskedastic_variance
    >>> heteroskedastic_variance(np.array([[0.5, 0.0, 0.0, 0.0, 0.0]]))
    array([2.5])
    """
    return FRIEDMAN_NOISE_VARIANCE + 2 * np.sin(np.pi * np.max(np.abs(X), axis=1)) ** 2


def uniform_noise(rng: np.random.Generator, n: int) -> FloatArray:
    """Uniform noise of mean zero and variance one, (n,)."""
    return rng.uniform(-np.sqrt(3), np.sqrt(3), n)


def normal_noise(rng: np.random.Generator, n: int) -> FloatArray:
    """Gaussian noise of mean zero and variance one, (n,)."""
    return rng.standard_normal(n)


def make_sine(n_samples: int = 60, *, random_state: Seed = None) -> Dataset:
    """Sine with trapezoidal inputs and uniform noise of variance 0.1 (paper, section 4.1).

    Parameters
    ----------
    n_samples : int
        Number of rows.
    random_state : int, numpy Generator or None
        Source of random numbers.

    Returns
    -------
    Dataset
        X is of shape (n_samples, 1), in radians.

    Examples
    --------
    >>> from ulmus.datasets import make_sine
    >>> make_sine(60, random_state=0).X.shape
    (60, 1)
    """
    rng = np.random.default_rng(random_state)
    X = trapezoidal_inputs(rng, n_samples)
    variance = np.full(n_samples, SINE_NOISE_VARIANCE)
    f = sine(X)
    return Dataset(X, f + np.sqrt(variance) * uniform_noise(rng, n_samples), f, variance)


def make_friedman(
    n_samples: int = 500, *, heteroskedastic: bool = False, random_state: Seed = None
) -> Dataset:
    """Friedman's function in five dimensions with Gaussian noise (paper, section 4.2).

    Parameters
    ----------
    n_samples : int
        Number of rows.
    heteroskedastic : bool
        Whether the noise variance depends on the largest input; it is 0.5 otherwise.
    random_state : int, numpy Generator or None
        Source of random numbers.

    Returns
    -------
    Dataset
        X is of shape (n_samples, 5), uniform on the unit cube.

    Examples
    --------
    >>> from ulmus.datasets import make_friedman
    >>> data = make_friedman(1000, heteroskedastic=True, random_state=0)
    >>> bool(data.noise_variance.max() <= 2.5)
    True
    """
    rng = np.random.default_rng(random_state)
    X = rng.random((n_samples, 5))
    constant = np.full(n_samples, FRIEDMAN_NOISE_VARIANCE)
    variance = heteroskedastic_variance(X) if heteroskedastic else constant
    f = friedman(X)
    return Dataset(X, f + np.sqrt(variance) * normal_noise(rng, n_samples), f, variance)
