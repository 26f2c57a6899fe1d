"""Conversions between forms of prediction: normal, quantiles, central intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from ulmus.metrics._validation import (
    FloatArray,
    checked_bounds,
    checked_ends,
    checked_interval_levels,
    checked_levels,
    checked_normal,
    checked_quantiles,
    with_levels,
)


class CentralIntervals(NamedTuple):
    """Central intervals and their levels.

    Parameters
    ----------
    intervals : ndarray of shape (n, 2, k) or (n, K, 2, k)
        Lower and upper ends.
    confidence_level : ndarray of shape (k,)
        Their levels.

    Examples
    --------
    >>> from ulmus.metrics import quantile_intervals
    >>> quantile_intervals([[0.0, 1.0, 3.0]], [0.25, 0.5, 0.75]).confidence_level
    array([0.5])
    """

    intervals: FloatArray
    confidence_level: FloatArray


class QuantilePrediction(NamedTuple):
    """Predicted quantiles and their levels.

    Parameters
    ----------
    quantile_predictions : ndarray of shape (n, q) or (n, K, q)
        Quantiles, not decreasing along the last axis.
    quantiles : ndarray of shape (q,)
        Their levels, increasing.

    Examples
    --------
    >>> from ulmus.metrics import interval_quantiles
    >>> interval_quantiles([[0.0, 3.0]], 0.5).quantiles
    array([0.25, 0.75])
    """

    quantile_predictions: FloatArray
    quantiles: FloatArray


class NormalPrediction(NamedTuple):
    """Normal predictions.

    Parameters
    ----------
    mean : ndarray of shape (n,) or (n, K)
        Their means.
    std : ndarray of that shape
        Their standard deviations.

    Examples
    --------
    >>> from ulmus.metrics import quantile_normal
    >>> quantile_normal([[-1.0, 0.0, 1.0]], [0.16, 0.5, 0.84]).std.round(2)
    array([1.01])
    """

    mean: FloatArray
    std: FloatArray


def normal_intervals(
    mean: ArrayLike, std: ArrayLike, confidence_level: ArrayLike = 0.95
) -> FloatArray:
    r"""Central intervals :math:`\mu \pm \Phi^{-1}((1 + c) / 2) \, \sigma` of normal predictions.

    Parameters
    ----------
    mean : array-like of shape (n,) or (n, K)
        Predicted means.
    std : array-like of the shape of mean, or float
        Predicted standard deviations, zero or more.
    confidence_level : float or array-like of shape (k,), default=0.95
        Levels c, in (0, 1).

    Returns
    -------
    ndarray of shape (n, 2) or (n, 2, k); (n, K, 2) or (n, K, 2, k)
        Lower and upper ends; no last axis for a float level.

    Examples
    --------
    >>> from ulmus.metrics import normal_intervals
    >>> normal_intervals([0.0, 1.0], [1.0, 2.0], 0.95).round(2)
    array([[-1.96,  1.96],
           [-2.92,  4.92]])
    """
    mu, sigma = checked_normal(mean, std, None)
    level = checked_levels("confidence_level", confidence_level, ndims=(0, 1))
    half = np.multiply.outer(sigma, norm.ppf((1.0 + level) / 2.0))
    mu = with_levels(mu, half)
    return np.stack([mu - half, mu + half], axis=sigma.ndim)


def quantile_intervals(quantile_predictions: ArrayLike, quantiles: ArrayLike) -> CentralIntervals:
    r"""Central intervals :math:`[Q(\tau), Q(1 - \tau)]` of predicted quantiles.

    Parameters
    ----------
    quantile_predictions : array-like of shape (n, q) or (n, K, q)
        Predicted quantiles, not decreasing along the last axis.
    quantiles : array-like of shape (q,)
        Their levels, increasing and symmetric about 0.5; the median is ignored.

    Returns
    -------
    CentralIntervals
        ``intervals`` (n, 2, k) or (n, K, 2, k) and ``confidence_level`` (k,), increasing.

    Examples
    --------
    >>> from ulmus.metrics import calibration_error, quantile_intervals
    >>> calibration_error([2.0], *quantile_intervals([[0.0, 1.0, 3.0]], [0.25, 0.5, 0.75]))
    0.5
    """
    q, tau = checked_quantiles(quantile_predictions, quantiles, None)
    k = len(tau) // 2
    if k == 0 or not np.allclose(tau + tau[::-1], 1.0, rtol=0.0, atol=1e-9):
        text = f"quantiles must pair up as t and 1 - t for central intervals, got {tau.tolist()}"
        raise ValueError(f"{text}; predict the missing levels or drop the unpaired ones.")
    ends = np.stack([q[..., :k][..., ::-1], q[..., -k:]], axis=-2)
    return CentralIntervals(ends, tau[-k:] - tau[:k][::-1])


def interval_quantiles(intervals: ArrayLike, confidence_level: ArrayLike) -> QuantilePrediction:
    r"""Quantiles at :math:`(1 \pm c) / 2`: the ends of central intervals.

    Parameters
    ----------
    intervals : array-like of shape (n, 2) or (n, 2, k); (n, K, 2) or (n, K, 2, k)
        Lower and upper ends of central (equal-tailed) intervals.
    confidence_level : float or array-like of shape (k,)
        Level of each, distinct, in (0, 1); a float if ``intervals`` has no axis of levels.

    Returns
    -------
    QuantilePrediction
        ``quantile_predictions`` (n, 2k) or (n, K, 2k) and ``quantiles`` (2k,), increasing.

    Examples
    --------
    >>> from ulmus.metrics import interval_quantiles, pit_quantiles
    >>> pit_quantiles([1.0], *interval_quantiles([[0.0, 2.0]], 0.5))
    array([0.5])
    """
    level = checked_levels("confidence_level", confidence_level, ndims=(0, 1))
    checked = checked_ends(intervals)
    n_axes = max(checked.ndim - 1 - level.ndim, 1)
    lower, upper = checked_bounds(checked, checked.shape[:n_axes])
    checked_interval_levels(level, lower.shape[n_axes:])
    flat = level.ravel()
    tau = np.concatenate([(1.0 - flat) / 2.0, (1.0 + flat) / 2.0])
    ends = np.stack([lower, upper], axis=n_axes).reshape(*lower.shape[:n_axes], -1)
    order = np.argsort(tau)
    return QuantilePrediction(*checked_quantiles(ends[..., order], tau[order], None))


def quantile_normal(quantile_predictions: ArrayLike, quantiles: ArrayLike) -> NormalPrediction:
    r"""Mean and sd of the normal nearest to predicted quantiles, by least squares.

    .. math:: \min_{\mu, \sigma} \sum_j (Q_j - \mu - \sigma \Phi^{-1}(\tau_j))^2

    Exact for the quantiles of a normal distribution, an approximation for any other.

    Parameters
    ----------
    quantile_predictions : array-like of shape (n, q) or (n, K, q)
        Predicted quantiles, not decreasing along the last axis.
    quantiles : array-like of shape (q,), q at least 2
        Their levels, strictly increasing in (0, 1).

    Returns
    -------
    NormalPrediction
        ``mean`` and ``std``, each (n,) or (n, K).

    Examples
    --------
    >>> from ulmus.metrics import interval_quantiles, quantile_normal
    >>> normal = quantile_normal(*interval_quantiles([[-1.96, 1.96]], 0.95))
    >>> normal.mean, normal.std.round(3)
    (array([0.]), array([1.]))
    """
    q, tau = checked_quantiles(quantile_predictions, quantiles, None)
    if len(tau) < 2:
        raise ValueError(f"quantiles must contain at least 2 levels, got {tau.tolist()}; add one.")
    score = norm.ppf(tau)
    centred = score - score.mean()
    std = np.maximum(q @ centred / np.sum(centred**2), 0.0)  # below 0 by round-off only
    return NormalPrediction(q.mean(axis=-1) - std * score.mean(), std)
