"""Scores of predicted quantiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import mean_pinball_loss

from ulmus.metrics._validation import (
    FloatArray,
    checked_quantiles,
    checked_target,
    checked_weights,
)


def crps_quantiles(
    y_true: ArrayLike,
    quantile_predictions: ArrayLike,
    quantiles: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Mean continuous ranked probability score, approximated from predicted quantiles.

    .. math:: 2 \int_0^1 \rho_\tau(y - Q(\tau)) d\tau
              \approx \sum_{j=1}^q (\tau_{j+1} - \tau_{j-1}) \rho_{\tau_j}(y - Q_j),
              \qquad \tau_0 = 0, \; \tau_{q+1} = 1

    with :math:`\rho_\tau(r) = \max(\tau r, (\tau - 1) r)` the pinball loss. Lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Observed targets.
    quantile_predictions : array-like of shape (n, q) or (n, K, q)
        Predicted quantiles, not decreasing along the last axis.
    quantiles : array-like of shape (q,)
        Their levels, strictly increasing in (0, 1).
    sample_weight : array-like of shape (n,), optional
        Row weights.

    Returns
    -------
    float

    Notes
    -----
    This is the trapezoidal rule on [0, 1] with a loss of zero at levels 0 and 1, its limit for a
    prediction with a finite mean whose support contains the target. The loss of targets far
    outside the extreme quantiles is therefore underestimated. The weights do not depend on the
    data, so for any grid the expectation is least at the true quantiles. Compare models on the
    same grid only; a coarse grid, such as a single interval, underestimates the score.

    References
    ----------
    .. [1] Gneiting, T. and Ranjan, R. (2011). JBES 29, 411-422.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from ulmus.metrics import crps_quantiles
    >>> levels = np.linspace(0.01, 0.99, 99)
    >>> round(crps_quantiles([0.0, 1.0], np.tile(norm.ppf(levels), (2, 1)), levels), 2)
    0.42
    """
    y = checked_target(y_true)
    q, tau = checked_quantiles(quantile_predictions, quantiles, y.shape)
    weight = None if sample_weight is None else checked_weights(sample_weight, len(y))
    padded = np.concatenate([[0.0], tau, [1.0]])
    loss = [
        mean_pinball_loss(y, q[..., j], alpha=float(t), sample_weight=weight)
        for j, t in enumerate(tau)
    ]
    return float(np.dot(padded[2:] - padded[:-2], loss))


def pit_quantiles(
    y_true: ArrayLike, quantile_predictions: ArrayLike, quantiles: ArrayLike
) -> FloatArray:
    r"""Probability integral transform by a distribution function linear between quantiles.

    .. math:: \tau_j + (\tau_{j+1} - \tau_j) \frac{y - Q_j}{Q_{j+1} - Q_j},
              \qquad Q_j \le y \le Q_{j+1}

    Where the value is not determined, the middle of its range is returned: :math:`\tau_1 / 2`
    below the first quantile, :math:`(\tau_q + 1) / 2` above the last, and the mean of the outer
    levels on tied quantiles. Bins of a histogram should not be narrower than the end ranges.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Observed targets.
    quantile_predictions : array-like of shape (n, q) or (n, K, q)
        Predicted quantiles, not decreasing along the last axis.
    quantiles : array-like of shape (q,)
        Their levels, strictly increasing in (0, 1).

    Returns
    -------
    ndarray of the shape of y_true
        The predictive distribution function at the targets.

    Examples
    --------
    >>> from ulmus.metrics import pit_quantiles
    >>> pit_quantiles([1.0, 9.0], [[0.0, 2.0], [0.0, 2.0]], [0.2, 0.8])
    array([0.5, 0.9])
    """
    y = checked_target(y_true)
    q, tau = checked_quantiles(quantile_predictions, quantiles, y.shape)
    padded = np.concatenate([[0.0], tau, [1.0]])
    n_below = np.sum(q < y[..., None], axis=-1)
    n_to = np.sum(q <= y[..., None], axis=-1)
    left = np.take_along_axis(q, np.maximum(n_below - 1, 0)[..., None], axis=-1)[..., 0]
    right = np.take_along_axis(q, np.minimum(n_below, len(tau) - 1)[..., None], axis=-1)[..., 0]
    inside = (n_below > 0) & (n_below < len(tau))
    share = np.divide(y - left, right - left, out=np.full(y.shape, 0.5), where=inside)
    between = padded[n_below] + share * (padded[n_below + 1] - padded[n_below])
    tied = (padded[np.minimum(n_below + 1, n_to)] + padded[n_to]) / 2.0
    return np.asarray(np.where(n_to > n_below, tied, between), dtype=np.float64)
