r"""Scores of uncertain predictions: coverage, width, proper scores and calibration.

A prediction comes in one of three forms, and a function's arguments say which one it reads.
For a target of shape (n,), or (n, K) with K outputs:

=========  =====================================  ============================================
form       arguments                              shapes
=========  =====================================  ============================================
intervals  ``intervals, confidence_level``        (n, 2) and a float, or (n, 2, k) and (k,);
                                                  (n, K, 2) or (n, K, 2, k) with K outputs
quantiles  ``quantile_predictions, quantiles``    (n, q) or (n, K, q), and (q,)
normal     ``mean, std``                          (n,) or (n, K) each; ``std`` may be a float
=========  =====================================  ============================================

:func:`normal_intervals`, :func:`quantile_intervals`, :func:`interval_quantiles` and
:func:`quantile_normal` turn one form into another, so every score is open to all three, as in
``crps_quantiles(y, *interval_quantiles(intervals, levels))``. Scores are averages over rows,
weighted by ``sample_weight`` of shape (n,) where given, and then plainly over outputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.metrics import mean_pinball_loss

__all__ = [
    "CentralIntervals",
    "GroupCoverage",
    "NormalPrediction",
    "QuantilePrediction",
    "calibration_error",
    "coverage",
    "coverage_by_group",
    "crps_normal",
    "crps_quantiles",
    "interval_quantiles",
    "interval_score",
    "log_score",
    "mean_width",
    "normal_intervals",
    "pit_normal",
    "pit_quantiles",
    "quantile_groups",
    "quantile_intervals",
    "quantile_normal",
]

FloatArray = NDArray[np.float64]


class CentralIntervals(NamedTuple):
    """Central intervals (..., 2, k) and their levels (k,)."""

    intervals: FloatArray
    confidence_level: FloatArray


class QuantilePrediction(NamedTuple):
    """Predicted quantiles (..., q) and their increasing levels (q,)."""

    quantile_predictions: FloatArray
    quantiles: FloatArray


class NormalPrediction(NamedTuple):
    """Mean and standard deviation of normal predictions, both (n,) or (n, K)."""

    mean: FloatArray
    std: FloatArray


class GroupCoverage(NamedTuple):
    """Coverage in one group, a float or one per level (k,), and its number of rows."""

    coverage: float | FloatArray
    n_samples: int


# --- scores of intervals ---------------------------------------------------------------------


def coverage(
    y_true: ArrayLike, intervals: ArrayLike, sample_weight: ArrayLike | None = None
) -> float | FloatArray:
    r"""Share of targets inside their intervals, both ends included.

    .. math:: \frac{1}{n} \sum_i 1\{l_i \le y_i \le u_i\}

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Observed targets.
    intervals : array-like of shape (n, 2) or (n, 2, k); (n, K, 2) or (n, K, 2, k)
        Lower and upper ends, possibly infinite, for one level or for k levels.
    sample_weight : array-like of shape (n,), optional
        Row weights.

    Returns
    -------
    float or ndarray of shape (k,)
        A float for one level, else one value per level.

    Examples
    --------
    >>> from ulmus.metrics import coverage
    >>> coverage([1.0, 2.0, 3.0, 4.0], [[0, 2], [1, 3], [2, 4], [5, 6]])
    0.75
    """
    y = _target(y_true)
    lower, upper = _bounds(intervals, y.shape)
    y_level = _with_levels(y, lower)
    return _mean((lower <= y_level) & (y_level <= upper), y.ndim, sample_weight)


def mean_width(
    intervals: ArrayLike, sample_weight: ArrayLike | None = None, *, n_outputs: int | None = None
) -> float | FloatArray:
    r"""Mean width of intervals, :math:`\frac{1}{n} \sum_i (u_i - l_i)`.

    Parameters
    ----------
    intervals : array-like of shape (n, 2) or (n, 2, k); (n, K, 2) or (n, K, 2, k)
        Lower and upper ends; an infinite end makes the mean infinite.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    n_outputs : int, optional
        K, for intervals of a two-dimensional target. Without the targets at hand (n, 2, 2)
        could be two outputs or two levels; None means a target of shape (n,).

    Returns
    -------
    float or ndarray of shape (k,)
        A float for one level, else one value per level.

    Examples
    --------
    >>> from ulmus.metrics import mean_width
    >>> mean_width([[0.0, 2.0], [1.0, 4.0]])
    2.5
    """
    ends = _ends(intervals)
    shape = ends.shape[:1] if n_outputs is None else (len(ends), n_outputs)
    lower, upper = _bounds(ends, shape)
    return _mean(upper - lower, len(shape), sample_weight)


def interval_score(
    y_true: ArrayLike,
    intervals: ArrayLike,
    confidence_level: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float | FloatArray:
    r"""Mean interval score of central intervals: width plus a penalty for each miss.

    .. math:: (u - l) + \frac{2}{\alpha} (l - y)_+ + \frac{2}{\alpha} (y - u)_+,
              \qquad \alpha = 1 - \text{confidence\_level}

    Lower is better. The score is proper: the expectation is least when l and u are the
    :math:`\alpha/2` and :math:`1 - \alpha/2` quantiles of the target.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Observed targets.
    intervals : array-like of shape (n, 2) or (n, 2, k); (n, K, 2) or (n, K, 2, k)
        Lower and upper ends.
    confidence_level : float or array-like of shape (k,)
        Level of each interval, in (0, 1).
    sample_weight : array-like of shape (n,), optional
        Row weights.

    Returns
    -------
    float or ndarray of shape (k,)
        A float for one level, else one value per level.

    References
    ----------
    .. [1] Gneiting, T. and Raftery, A. E. (2007). Strictly proper scoring rules, prediction, and
       estimation. JASA 102, 359-378, eq. 43.
    .. [2] Winkler, R. L. (1972). A decision-theoretic approach to interval estimation. JASA 67,
       187-191.

    Examples
    --------
    >>> from ulmus.metrics import interval_score
    >>> interval_score([1.0, 2.0, 6.0], [[0, 2], [1, 3], [3, 5]], confidence_level=0.5)
    3.3333333333333335
    """
    y = _target(y_true)
    lower, upper = _bounds(intervals, y.shape)
    alpha = 1.0 - _interval_levels(confidence_level, lower.shape[y.ndim :])
    y_level = _with_levels(y, lower)
    miss = np.maximum(lower - y_level, 0.0) + np.maximum(y_level - upper, 0.0)
    return _mean(upper - lower + 2.0 / alpha * miss, y.ndim, sample_weight)


def calibration_error(
    y_true: ArrayLike,
    intervals: ArrayLike,
    confidence_level: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Mean absolute gap between nominal and empirical coverage over k levels.

    .. math:: \frac{1}{k} \sum_j | \text{coverage}_j - \text{confidence\_level}_j |

    Zero is best; sampling alone gives about :math:`0.8 \sqrt{c (1 - c) / n}` at level c.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Observed targets.
    intervals : array-like of shape (n, 2, k) or (n, 2); (n, K, 2, k) or (n, K, 2)
        Lower and upper ends. Normal predictions come through :func:`normal_intervals`, quantiles
        through :func:`quantile_intervals`, a list of k (n, 2) arrays through
        ``np.stack(intervals, axis=-1)``.
    confidence_level : array-like of shape (k,) or float
        Level of each interval, in (0, 1).
    sample_weight : array-like of shape (n,), optional
        Row weights.

    Returns
    -------
    float
        The error, in [0, 1].

    References
    ----------
    .. [1] Kuleshov, V., Fenner, N. and Ermon, S. (2018). Accurate uncertainties for deep learning
       using calibrated regression. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.metrics import calibration_error, normal_intervals
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> levels = np.linspace(0.05, 0.95, 19)
    >>> honest = calibration_error(y, normal_intervals(0 * y, 1.0, levels), levels)
    >>> proud = calibration_error(y, normal_intervals(0 * y, 0.5, levels), levels)
    >>> honest < 0.03 < proud
    True
    """
    share = coverage(y_true, intervals, sample_weight)
    return float(np.mean(np.abs(share - _interval_levels(confidence_level, np.shape(share)))))


def coverage_by_group(
    y_true: ArrayLike,
    intervals: ArrayLike,
    groups: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> dict[Any, GroupCoverage]:
    """Coverage within each group of rows: good coverage overall can hide bad coverage in a part.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Observed targets.
    intervals : array-like of shape (n, 2) or (n, 2, k); (n, K, 2) or (n, K, 2, k)
        Lower and upper ends.
    groups : array-like of shape (n,)
        A label for each row; for a numeric variable see :func:`quantile_groups`.
    sample_weight : array-like of shape (n,), optional
        Row weights; each group with rows needs a positive total.

    Returns
    -------
    dict of label to GroupCoverage
        In sorted order of the labels; each value holds ``coverage`` and ``n_samples``.

    References
    ----------
    .. [1] Romano, Y., Barber, R. F., Sabatti, C. and Candes, E. (2020). With malice toward none:
       assessing uncertainty via equalized coverage. Harvard Data Science Review 2(2).

    Examples
    --------
    >>> from ulmus.metrics import coverage_by_group
    >>> by_site = coverage_by_group([1, 2, 9], [[0, 2], [0, 3], [0, 3]], ["a", "a", "b"])
    >>> by_site["a"]
    GroupCoverage(coverage=1.0, n_samples=2)
    >>> by_site["b"].coverage
    0.0
    """
    y = _target(y_true)
    ends = _ends(intervals)
    _bounds(ends, y.shape)
    weight = np.ones(len(y)) if sample_weight is None else _weights(sample_weight, len(y))
    label = np.asarray(groups)
    _check_shape("groups", label, (len(y),), "give one label per row")
    try:
        keys, code = np.unique(label, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"groups must hold labels of one sortable type, got dtype {label.dtype} ({error}); "
            "use np.asarray(groups, dtype=str)."
        ) from error
    if np.any(keys != keys):
        raise ValueError("groups contains NaN; give those rows a label of their own or drop them.")
    rows = [np.flatnonzero(code == g) for g in range(len(keys))]
    return {
        key: GroupCoverage(coverage(y[i], ends[i], weight[i]), len(i))
        for key, i in zip(keys.tolist(), rows, strict=True)
    }


def quantile_groups(values: ArrayLike, n_groups: int = 10) -> NDArray[np.intp]:
    """Group rows by quantile bins of a numeric variable, for :func:`coverage_by_group`.

    Parameters
    ----------
    values : array-like of shape (n,)
        A feature, a predicted standard deviation, a prediction.
    n_groups : int, default=10
        Number of bins of nearly equal counts. Equal values share a bin, so ties make fewer bins.

    Returns
    -------
    ndarray of shape (n,)
        Bin numbers 0, 1, ... in increasing order of ``values``.

    Examples
    --------
    >>> from ulmus.metrics import quantile_groups
    >>> quantile_groups([0.1, 5.0, 2.0, 3.0], n_groups=2)
    array([0, 1, 0, 1])
    """
    x = _finite("values", values, ndims=(1,))
    if n_groups < 1 or n_groups != int(n_groups):
        raise ValueError(f"n_groups must be a whole number >= 1, got {n_groups}; 10 is usual.")
    # Edges that are data values leave no bin empty.
    edges = np.quantile(x, np.arange(1, n_groups) / n_groups, method="inverted_cdf")
    return np.asarray(np.searchsorted(np.unique(edges), x, side="left"), dtype=np.intp)


# --- scores of distributions -----------------------------------------------------------------


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
        The mean score.

    References
    ----------
    .. [1] Gneiting, T. and Raftery, A. E. (2007). Strictly proper scoring rules, prediction, and
       estimation. JASA 102, 359-378, section 4.2.

    Examples
    --------
    >>> from ulmus.metrics import crps_normal
    >>> round(crps_normal([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]), 4)
    0.4181
    """
    y = _target(y_true)
    mu, sigma = _normal(mean, std, y.shape)
    error = y - mu
    with np.errstate(over="ignore"):  # a tiny sigma is the limit z = +-inf
        z = np.divide(error, sigma, out=np.copysign(np.inf, error), where=sigma > 0)
        peak = 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi)
    return float(_mean(error * (2.0 * norm.cdf(z) - 1.0) + sigma * peak, y.ndim, sample_weight))


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
        The mean score.

    Notes
    -----
    This is the trapezoid rule on [0, 1] with a loss of zero at levels 0 and 1: its limit there
    for a prediction with a finite mean whose support holds the target. What is approximated at
    the ends is thus the loss below the first and above the last level, taken to fall linearly
    to zero; targets far outside the outer quantiles are charged too little. The weights do not
    depend on the data, so at any grid the expectation is least at the true quantiles. Compare
    models on the same grid only; a coarse one, such as a single interval, scores too low.

    References
    ----------
    .. [1] Gneiting, T. and Ranjan, R. (2011). Comparing density forecasts using threshold- and
       quantile-weighted scoring rules. Journal of Business & Economic Statistics 29, 411-422.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from ulmus.metrics import crps_quantiles
    >>> levels = np.linspace(0.01, 0.99, 99)
    >>> round(crps_quantiles([0.0, 1.0], np.tile(norm.ppf(levels), (2, 1)), levels), 2)
    0.42
    """
    y = _target(y_true)
    q, tau = _quantiles(quantile_predictions, quantiles, y.shape)
    weight = None if sample_weight is None else _weights(sample_weight, len(y))
    padded = np.concatenate([[0.0], tau, [1.0]])
    loss = [
        mean_pinball_loss(y, q[..., j], alpha=float(t), sample_weight=weight)
        for j, t in enumerate(tau)
    ]
    return float(np.dot(padded[2:] - padded[:-2], loss))


def log_score(
    y_true: ArrayLike, mean: ArrayLike, std: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    r"""Mean log-likelihood of normal predictions: higher is better.

    .. math:: \frac{1}{n} \sum_i \log \varphi(y_i; \mu_i, \sigma_i^2)

    The sign is that of the "test log-likelihood" tables on the UCI data sets [1]_; negate it for
    a loss. It depends on the units of the target. Quantiles and intervals have no density: take
    the normal of :func:`quantile_normal` and say so.

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
    .. [1] Hernandez-Lobato, J. M. and Adams, R. P. (2015). Probabilistic backpropagation for
       scalable learning of Bayesian neural networks. ICML.

    Examples
    --------
    >>> from ulmus.metrics import log_score
    >>> round(log_score([0.0, 1.0], [0.0, 0.0], 1.0), 4)
    -1.1689
    """
    y = _target(y_true)
    mu, sigma = _normal(mean, std, y.shape, positive=True)
    with np.errstate(over="ignore"):  # a miss by more than 1e154 sigma scores -inf
        log_density = norm.logpdf(y, mu, sigma)
    return float(_mean(log_density, y.ndim, sample_weight))


def pit_normal(y_true: ArrayLike, mean: ArrayLike, std: ArrayLike) -> FloatArray:
    r"""Probability integral transform :math:`\Phi((y - \mu) / \sigma)` of normal predictions.

    The values are uniform on [0, 1] for a calibrated forecaster; a U-shaped histogram says the
    predictions are too narrow, a hump too wide, a slope biased.

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
    .. [1] Gneiting, T., Balabdaoui, F. and Raftery, A. E. (2007). Probabilistic forecasts,
       calibration and sharpness. JRSS B 69, 243-268.

    Examples
    --------
    >>> from ulmus.metrics import pit_normal
    >>> pit_normal([0.0, 5.0], [0.0, 5.0], [1.0, 2.0])
    array([0.5, 0.5])
    """
    y = _target(y_true)
    mu, sigma = _normal(mean, std, y.shape, positive=True)
    return np.asarray(norm.cdf(y, mu, sigma), dtype=np.float64)


def pit_quantiles(
    y_true: ArrayLike, quantile_predictions: ArrayLike, quantiles: ArrayLike
) -> FloatArray:
    r"""Probability integral transform by a distribution function linear between quantiles.

    .. math:: \tau_j + (\tau_{j+1} - \tau_j) \frac{y - Q_j}{Q_{j+1} - Q_j},
              \qquad Q_j \le y \le Q_{j+1}

    Where the quantiles leave a range of values open, its middle is returned: :math:`\tau_1 / 2`
    below the first quantile, :math:`(\tau_q + 1) / 2` above the last, and the mean of the outer
    levels on tied quantiles. Histograms should have no bins narrower than the end ranges.

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
    y = _target(y_true)
    q, tau = _quantiles(quantile_predictions, quantiles, y.shape)
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


# --- from one form to another ----------------------------------------------------------------


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
    mu, sigma = _normal(mean, std, None)
    level = _levels("confidence_level", confidence_level, ndims=(0, 1))
    half = np.multiply.outer(sigma, norm.ppf((1.0 + level) / 2.0))
    mu = _with_levels(mu, half)
    return np.stack([mu - half, mu + half], axis=sigma.ndim)


def quantile_intervals(quantile_predictions: ArrayLike, quantiles: ArrayLike) -> CentralIntervals:
    r"""Central intervals :math:`[Q(\tau), Q(1 - \tau)]` of predicted quantiles.

    Parameters
    ----------
    quantile_predictions : array-like of shape (n, q) or (n, K, q)
        Predicted quantiles, not decreasing along the last axis.
    quantiles : array-like of shape (q,)
        Their levels, increasing and symmetric about 0.5; the median, if there, is left out.

    Returns
    -------
    CentralIntervals
        ``intervals`` (n, 2, k) or (n, K, 2, k) and ``confidence_level`` (k,), increasing.

    Examples
    --------
    >>> from ulmus.metrics import calibration_error, quantile_intervals
    >>> central = quantile_intervals([[0.0, 1.0, 3.0]], [0.25, 0.5, 0.75])
    >>> central.intervals[0, :, 0], central.confidence_level
    (array([0., 3.]), array([0.5]))
    >>> calibration_error([2.0], *central)
    0.5
    """
    q, tau = _quantiles(quantile_predictions, quantiles, None)
    k = len(tau) // 2
    if k == 0 or not np.allclose(tau + tau[::-1], 1.0, rtol=0.0, atol=1e-9):
        raise ValueError(
            f"quantiles must pair up as t and 1 - t for central intervals, got {tau.tolist()}; "
            "predict the missing levels or drop the unpaired ones."
        )
    ends = np.stack([q[..., :k][..., ::-1], q[..., -k:]], axis=-2)
    return CentralIntervals(ends, tau[-k:] - tau[:k][::-1])


def interval_quantiles(intervals: ArrayLike, confidence_level: ArrayLike) -> QuantilePrediction:
    r"""Quantiles at :math:`(1 \pm c) / 2`: the ends of central intervals.

    Parameters
    ----------
    intervals : array-like of shape (n, 2) or (n, 2, k); (n, K, 2) or (n, K, 2, k)
        Lower and upper ends of central (equal-tailed) intervals.
    confidence_level : float or array-like of shape (k,)
        Level of each, distinct, in (0, 1). A float says there is no last axis in ``intervals``.

    Returns
    -------
    QuantilePrediction
        ``quantile_predictions`` (n, 2k) or (n, K, 2k) and ``quantiles`` (2k,), increasing.

    Examples
    --------
    >>> from ulmus.metrics import interval_quantiles, pit_quantiles
    >>> interval_quantiles([[0.0, 2.0]], 0.5).quantiles
    array([0.25, 0.75])
    >>> pit_quantiles([1.0], *interval_quantiles([[0.0, 2.0]], 0.5))
    array([0.5])
    """
    level = _levels("confidence_level", confidence_level, ndims=(0, 1))
    given = _ends(intervals)
    n_axes = max(given.ndim - 1 - level.ndim, 1)
    lower, upper = _bounds(given, given.shape[:n_axes])
    _interval_levels(level, lower.shape[n_axes:])
    flat = level.ravel()
    tau = np.concatenate([(1.0 - flat) / 2.0, (1.0 + flat) / 2.0])
    ends = np.stack([lower, upper], axis=n_axes).reshape(*lower.shape[:n_axes], -1)
    order = np.argsort(tau)
    return QuantilePrediction(*_quantiles(ends[..., order], tau[order], None))


def quantile_normal(quantile_predictions: ArrayLike, quantiles: ArrayLike) -> NormalPrediction:
    r"""Mean and sd of the normal nearest to predicted quantiles, by least squares.

    .. math:: \min_{\mu, \sigma} \sum_j (Q_j - \mu - \sigma \Phi^{-1}(\tau_j))^2

    Exact for the quantiles of a normal distribution; a stand-in for any other.

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
    q, tau = _quantiles(quantile_predictions, quantiles, None)
    if len(tau) < 2:
        raise ValueError(f"quantiles must hold 2 or more levels, got {tau.tolist()}; add one.")
    score = norm.ppf(tau)
    centred = score - score.mean()
    std = np.maximum(q @ centred / np.sum(centred**2), 0.0)  # rounding alone can go below 0
    return NormalPrediction(q.mean(axis=-1) - std * score.mean(), std)


# --- input checks and averaging --------------------------------------------------------------


def _mean(
    values: NDArray[Any], target_ndim: int, sample_weight: ArrayLike | None
) -> float | FloatArray:
    """Average over rows (weighted) and outputs; keep a trailing axis of levels."""
    if sample_weight is None:
        mean = np.mean(values, axis=tuple(range(target_ndim)))
    else:
        weight = _weights(sample_weight, len(values))
        used = weight > 0  # 0 * inf would be NaN
        mean = np.average(values[used], axis=0, weights=weight[used])
        mean = np.mean(mean, axis=0) if target_ndim == 2 else mean
    return float(mean) if np.ndim(mean) == 0 else np.asarray(mean, dtype=np.float64)


def _with_levels(target: FloatArray, like: FloatArray) -> FloatArray:
    """Add a last axis to ``target`` where ``like`` has one for levels."""
    return target[..., None] if like.ndim > target.ndim else target


def _finite(
    name: str, value: ArrayLike, ndims: tuple[int, ...], *, infinite: bool = False
) -> FloatArray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array of numbers, got {type(value).__name__} ({error}); "
            "convert it to a float array."
        ) from error
    if array.ndim not in ndims or array.size == 0:
        wanted = " or ".join(str(d) for d in ndims)
        raise ValueError(
            f"{name} must be non-empty with {wanted} dimensions, got shape {array.shape}; "
            "reshape it (np.ravel for a single output)."
        )
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if np.any(bad):
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} contains {array[where]} at index {where}; drop or impute such rows first."
        )
    return array


def _check_shape(name: str, array: NDArray[Any], shape: tuple[int, ...], remedy: str) -> None:
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}; {remedy}.")


def _target(y_true: ArrayLike) -> FloatArray:
    return _finite("y_true", y_true, ndims=(1, 2))


def _weights(sample_weight: ArrayLike, n: int) -> FloatArray:
    weight = _finite("sample_weight", sample_weight, ndims=(1,))
    _check_shape("sample_weight", weight, (n,), "give one weight per row")
    if np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError(
            f"sample_weight must be >= 0 with a positive sum, got minimum {weight.min()} and "
            f"sum {weight.sum()}; leave it out for equal weights."
        )
    return weight


def _normal(
    mean: ArrayLike, std: ArrayLike, shape: tuple[int, ...] | None, *, positive: bool = False
) -> tuple[FloatArray, FloatArray]:
    mu = _finite("mean", mean, ndims=(1, 2))
    sigma = _finite("std", std, ndims=(0, 1, 2))
    if shape is not None:
        _check_shape("mean", mu, shape, "it must match y_true (np.ravel for a single output)")
    if sigma.ndim == 0:
        sigma = np.full(mu.shape, sigma)
    _check_shape("std", sigma, mu.shape, "it must match mean, or be a float")
    if np.any(sigma < 0):
        raise ValueError(f"std must be >= 0, got {sigma.min()}; pass the root of a variance.")
    if positive and np.any(sigma == 0):
        raise ValueError(
            "std must be > 0 here, got 0.0: a point mass has no density; use crps_normal, or add "
            "the noise variance to the model variance."
        )
    return mu, sigma


def _ends(intervals: ArrayLike) -> FloatArray:
    return _finite("intervals", intervals, ndims=(2, 3, 4), infinite=True)


def _bounds(intervals: ArrayLike, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends, each of the target's ``shape``, with k levels last if given."""
    n_axes = len(shape)
    ends = _ends(intervals)
    if ends.shape[: n_axes + 1] != (*shape, 2) or ends.ndim > n_axes + 2:
        raise ValueError(
            f"intervals must have shape {(*shape, 2)} or {(*shape, 2, 'k')} for a target of shape "
            f"{shape}, got {ends.shape}; np.stack(list_of_intervals, axis=-1) puts levels last, "
            "mean_width takes n_outputs for a target of two dimensions."
        )
    lower, upper = np.take(ends, 0, axis=n_axes), np.take(ends, 1, axis=n_axes)
    bad = (lower > upper) | np.isposinf(lower) | np.isneginf(upper)
    if np.any(bad):
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"intervals must have lower <= upper, got lower={lower[where]}, upper={upper[where]} "
            f"at index {where}; np.sort(intervals, axis={n_axes}) orders the ends."
        )
    return lower, upper


def _levels(name: str, value: ArrayLike, ndims: tuple[int, ...]) -> FloatArray:
    level = _finite(name, value, ndims)
    if np.any((level <= 0) | (level >= 1)):
        raise ValueError(
            f"{name} must lie strictly between 0 and 1, got {level.tolist()}; write 95 % as 0.95."
        )
    return level


def _interval_levels(confidence_level: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    level = _levels("confidence_level", confidence_level, ndims=(0, 1))
    remedy = "give one level per entry of the last axis of intervals, a float where there is none"
    _check_shape("confidence_level", level, shape, remedy)
    return level


def _quantiles(
    quantile_predictions: ArrayLike, quantiles: ArrayLike, shape: tuple[int, ...] | None
) -> tuple[FloatArray, FloatArray]:
    q = _finite("quantile_predictions", quantile_predictions, ndims=(2, 3))
    tau = _levels("quantiles", quantiles, ndims=(1,))
    shape = q.shape[:-1] if shape is None else shape
    _check_shape("quantile_predictions", q, (*shape, len(tau)), "one per target and level, last")
    if np.any(np.diff(tau) <= 0):
        raise ValueError(
            f"quantiles must be strictly increasing, got {tau.tolist()}; sort them, and "
            "quantile_predictions with them."
        )
    if np.any(np.diff(q, axis=-1) < 0):
        where = tuple(int(i) for i in np.argwhere(np.diff(q, axis=-1) < 0)[0])
        raise ValueError(
            f"quantile_predictions cross at index {where}: {q[where]} is above the next; "
            "np.sort(quantile_predictions, axis=-1) is the usual repair."
        )
    return q, tau
