"""Scores of normal predictions, given by mean and standard deviation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from ulmus.metrics._validation import FloatArray, checked_normal, checked_target, weighted_mean


def crps_normal(
    y_true: ArrayLike, mean: ArrayLike, std: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    r"""Mean continuous ranked probability score of normal predictions, in closed form.

    .. math:: \int (F(t) - 1\{y \le t\})^2 dt
              = \sigma \left[ z (2 \Phi(z) - 1) + 2 \varphi(z) - \pi^{-1/2} \right],
              \qquad z = (y - \mu) / \sigma

    Lower is better, in the units of the target. At ``std`` 0 it is the absolute error, its limit.

    Parameters
    ----------
    y_true, mean : array-like of shape (n,) or (n, K)
        Observed targets and predicted means.
    std : array-like of the shape of mean, or float
        Predicted standard deviations, zero or more.
    sample_weight : array-like of shape (n,), optional
        Row weights.

    Returns
    -------
    float

    References
    ----------
    .. [1] Gneiting, T. and Raftery, A. E. (2007). JASA 102, 359-378, section 4.2.

    Examples
    --------
    >>> from ulmus.metrics import crps_normal
    >>> round(crps_normal([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]), 4)
    0.4181
    """
    y = checked_target(y_true)
    mu, sigma = checked_normal(mean, std, y.shape)
    error = y - mu
    with np.errstate(over="ignore"):  # a tiny sigma is the limit z = +-inf
        z = np.divide(error, sigma, out=np.copysign(np.inf, error), where=sigma > 0)
        peak = 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi)
    score = error * (2.0 * norm.cdf(z) - 1.0) + sigma * peak
    return float(weighted_mean(score, y.ndim, sample_weight))


def log_score(
    y_true: ArrayLike, mean: ArrayLike, std: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    r"""Mean log-likelihood of normal predictions: higher is better.

    .. math:: \frac{1}{n} \sum_i \log \varphi(y_i; \mu_i, \sigma_i^2)

    The sign is that of the "test log-likelihood" tables on the UCI data sets [1]_; negate it for
    a loss. It depends on the units of the target. Quantiles and intervals have no density: take
    the normal approximation of :func:`quantile_normal`.

    Parameters
    ----------
    y_true, mean : array-like of shape (n,) or (n, K)
        Observed targets and predicted means.
    std : array-like of the shape of mean, or float
        Predicted standard deviations, above zero.
    sample_weight : array-like of shape (n,), optional
        Row weights.

    Returns
    -------
    float
        The mean log density, over outputs too (not their joint density).

    References
    ----------
    .. [1] Hernandez-Lobato, J. M. and Adams, R. P. (2015). ICML.

    Examples
    --------
    >>> from ulmus.metrics import log_score
    >>> round(log_score([0.0, 1.0], [0.0, 0.0], 1.0), 4)
    -1.1689
    """
    y = checked_target(y_true)
    mu, sigma = checked_normal(mean, std, y.shape, positive=True)
    with np.errstate(over="ignore"):  # a miss by more than 1e154 sigma scores -inf
        log_density = norm.logpdf(y, mu, sigma)
    return float(weighted_mean(log_density, y.ndim, sample_weight))


def pit_normal(y_true: ArrayLike, mean: ArrayLike, std: ArrayLike) -> FloatArray:
    r"""Probability integral transform :math:`\Phi((y - \mu) / \sigma)` of normal predictions.

    The values of calibrated predictions are uniform on [0, 1]. A U-shaped histogram indicates
    predictions that are too narrow, a hump-shaped one too wide, and a slope bias.

    Parameters
    ----------
    y_true, mean : array-like of shape (n,) or (n, K)
        Observed targets and predicted means.
    std : array-like of the shape of mean, or float
        Predicted standard deviations, above zero.

    Returns
    -------
    ndarray of the shape of y_true
        The predictive distribution function at the targets.

    References
    ----------
    .. [1] Gneiting, T., Balabdaoui, F. and Raftery, A. E. (2007). JRSS B 69, 243-268.

    Examples
    --------
    >>> from ulmus.metrics import pit_normal
    >>> pit_normal([0.0, 5.0], [0.0, 5.0], [1.0, 2.0])
    array([0.5, 0.5])
    """
    y = checked_target(y_true)
    mu, sigma = checked_normal(mean, std, y.shape, positive=True)
    return np.asarray(norm.cdf(y, mu, sigma), dtype=np.float64)
