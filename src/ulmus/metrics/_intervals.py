"""Scores of intervals: coverage, width, interval score and calibration."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulmus.metrics._validation import (
    FloatArray,
    check_shape,
    checked_array,
    checked_bounds,
    checked_ends,
    checked_interval_levels,
    checked_target,
    checked_weights,
    weighted_mean,
    with_levels,
)


class GroupCoverage(NamedTuple):
    """Coverage in one group of rows.

    Parameters
    ----------
    coverage : float or ndarray of shape (k,)
        Share of the targets inside their intervals, for each level.
    n_samples : int
        Rows of the group.

    Examples
    --------
    >>> from ulmus.metrics import coverage_by_group
    >>> coverage_by_group([1.0, 5.0], [[0.0, 2.0], [0.0, 2.0]], ["a", "b"])["b"].coverage
    0.0
    """

    coverage: float | FloatArray
    n_samples: int


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
        Lower and upper ends, possibly infinite.
    sample_weight : array-like of shape (n,), optional
        Row weights.

    Returns
    -------
    float, or ndarray of shape (k,) for k levels

    Examples
    --------
    >>> from ulmus.metrics import coverage
    >>> coverage([1.0, 2.0, 3.0, 4.0], [[0, 2], [1, 3], [2, 4], [5, 6]])
    0.75
    """
    y = checked_target(y_true)
    lower, upper = checked_bounds(intervals, y.shape)
    y_level = with_levels(y, lower)
    return weighted_mean((lower <= y_level) & (y_level <= upper), y.ndim, sample_weight)


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
    float, or ndarray of shape (k,) for k levels

    Examples
    --------
    >>> from ulmus.metrics import mean_width
    >>> mean_width([[0.0, 2.0], [1.0, 4.0]])
    2.5
    """
    ends = checked_ends(intervals)
    shape = ends.shape[:1] if n_outputs is None else (len(ends), n_outputs)
    lower, upper = checked_bounds(ends, shape)
    return weighted_mean(upper - lower, len(shape), sample_weight)


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
    float, or ndarray of shape (k,) for k levels

    References
    ----------
    .. [1] Gneiting, T. and Raftery, A. E. (2007). JASA 102, 359-378, eq. 43.
    .. [2] Winkler, R. L. (1972). JASA 67, 187-191.

    Examples
    --------
    >>> from ulmus.metrics import interval_score
    >>> interval_score([1.0, 2.0, 6.0], [[0, 2], [1, 3], [3, 5]], confidence_level=0.5)
    3.3333333333333335
    """
    y = checked_target(y_true)
    lower, upper = checked_bounds(intervals, y.shape)
    alpha = 1.0 - checked_interval_levels(confidence_level, lower.shape[y.ndim :])
    y_level = with_levels(y, lower)
    miss = np.maximum(lower - y_level, 0.0) + np.maximum(y_level - upper, 0.0)
    return weighted_mean(upper - lower + 2.0 / alpha * miss, y.ndim, sample_weight)


def calibration_error(
    y_true: ArrayLike,
    intervals: ArrayLike,
    confidence_level: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Mean absolute gap between nominal and empirical coverage over k levels.

    .. math:: \frac{1}{k} \sum_j | \text{coverage}_j - \text{confidence\_level}_j |

    Zero is best; sampling variation alone results in about :math:`0.8 \sqrt{c (1 - c) / n}` at
    level c.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Observed targets.
    intervals : array-like of shape (n, 2, k) or (n, 2); (n, K, 2, k) or (n, K, 2)
        Lower and upper ends. Convert normal predictions by :func:`normal_intervals`, quantiles by
        :func:`quantile_intervals`, and a list of k (n, 2) arrays by
        ``np.stack(intervals, axis=-1)``.
    confidence_level : array-like of shape (k,) or float
        Level of each interval, in (0, 1).
    sample_weight : array-like of shape (n,), optional
        Row weights.

    Returns
    -------
    float in [0, 1]

    References
    ----------
    .. [1] Kuleshov, V., Fenner, N. and Ermon, S. (2018). ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.metrics import calibration_error, normal_intervals
    >>> y, levels = np.random.default_rng(0).normal(size=1000), np.linspace(0.05, 0.95, 19)
    >>> for sd in (1.0, 0.5):  # true value, and overconfident predictions
    ...     print(round(calibration_error(y, normal_intervals(0 * y, sd, levels), levels), 2))
    0.01
    0.21
    """
    share = coverage(y_true, intervals, sample_weight)
    level = checked_interval_levels(confidence_level, np.shape(share))
    return float(np.mean(np.abs(share - level)))


def coverage_by_group(
    y_true: ArrayLike,
    intervals: ArrayLike,
    groups: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> dict[Any, GroupCoverage]:
    """Coverage within each group of rows, which overall coverage may conceal.

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
        In sorted order of the labels.

    References
    ----------
    .. [1] Romano, Y., Barber, R. F., Sabatti, C. and Candes, E. (2020). HDSR 2(2).

    Examples
    --------
    >>> from ulmus.metrics import coverage_by_group
    >>> coverage_by_group([1, 2, 9], [[0, 2], [0, 3], [0, 3]], ["a", "a", "b"])["a"]
    GroupCoverage(coverage=1.0, n_samples=2)
    """
    y = checked_target(y_true)
    ends = checked_ends(intervals)
    checked_bounds(ends, y.shape)
    weight = np.ones(len(y)) if sample_weight is None else checked_weights(sample_weight, len(y))
    label = np.asarray(groups)
    check_shape("groups", label, (len(y),), "give one label per row")
    try:
        keys, code = np.unique(label, return_inverse=True)
    except TypeError as error:
        text = f"groups must contain labels of one sortable type ({error})"
        raise ValueError(f"{text}; use np.asarray(groups, dtype=str).") from error
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
    x = checked_array("values", values, ndims=(1,))
    if n_groups < 1 or n_groups != int(n_groups):
        raise ValueError(f"n_groups must be a whole number >= 1, got {n_groups}; 10 is usual.")
    # Edges that are data values result in no empty bin.
    edges = np.quantile(x, np.arange(1, n_groups) / n_groups, method="inverted_cdf")
    return np.asarray(np.searchsorted(np.unique(edges), x, side="left"), dtype=np.intp)
