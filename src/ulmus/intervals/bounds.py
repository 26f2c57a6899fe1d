"""Interval bounds from predictions: normal, Student t, conformal, and shortest.

Arrays are NumPy arrays; bounds have shape (2, k, ...) for k levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy import stats

from ulmus.core.arrays.backend import FloatArray
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

# Fewer residuals than this are treated as symmetric.
MIN_RESIDUALS = 20
# Steps of probability in which the ends of shortest intervals move inwards.
STEPS = 1000


def normal_bounds(
    mean: FloatArray, sd: FloatArray, levels: Sequence[float], dof: FloatArray | float = np.inf
) -> FloatArray:
    r"""Mean plus and minus a quantile times the standard deviation.

    The quantile is Student's, or normal if the degrees of freedom are infinite:

    .. math:: \mu \pm t_{(1 + c) / 2}(\nu) \, \sigma.

    Parameters
    ----------
    mean, sd : ndarray of one shape
        Centres, and standard deviations.
    levels : sequence of k floats
        Levels c, between 0 and 1.
    dof : float or ndarray of that shape, default=inf
        Degrees of freedom.

    Returns
    -------
    bounds : ndarray of shape (2, k, ...)
        Lower and upper bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.intervals import normal_bounds
    >>> normal_bounds(np.zeros(1), np.ones(1), [0.95], dof=10.0).round(2).ravel()
    array([-2.23,  2.23])
    """
    half = np.stack([stats.t.isf((1 - level) / 2, dof) * sd for level in levels])
    return np.stack([mean - half, mean + half])


def satterthwaite_dof(
    noise: FloatArray, weights: FloatArray, residual_dof: FloatArray | float, weights_dof: int
) -> FloatArray:
    r"""Degrees of freedom of a sum of two independent variance estimates.

    .. math:: \nu = \frac{(v_1 + v_2)^2}{v_1^2 / \nu_1 + v_2^2 / \nu_2}

    Parameters
    ----------
    noise, weights : ndarray of one shape
        The estimates: from the residuals, and from the differences between members.
    residual_dof : float or ndarray of that shape
        Degrees of freedom of the first.
    weights_dof : int
        Degrees of freedom of the second.

    Returns
    -------
    dof : ndarray of that shape
        At least 1; infinite where both estimates are zero.

    References
    ----------
    F. E. Satterthwaite (1946). Biometrics Bulletin 2, 110-114.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.intervals import satterthwaite_dof
    >>> satterthwaite_dof(np.array([1.0, 1.0]), np.array([0.0, 1.0]), 50.0, 10).round(1)
    array([50. , 33.3])
    """
    total = noise + weights
    # Shares, because squares of variances in extreme units overflow.
    share = np.divide(weights, total, out=np.zeros_like(total), where=total > 0)
    inverse = (1 - share) ** 2 / np.maximum(residual_dof, 1.0) + share**2 / max(weights_dof, 1)
    return np.where(total > 0, np.maximum(1 / inverse, 1.0), np.inf)


def conformal_ranks(n: int, level: float, *, two_sided: bool) -> tuple[int, int]:
    """Ranks of the lower and upper bound among n sorted values.

    Parameters
    ----------
    n : int
        Number of residuals.
    level : float
        Level, between 0 and 1.
    two_sided : bool
        Whether each tail has half of the error probability, as for signed residuals. False for
        absolute residuals.

    Returns
    -------
    low, high : int
        Ranks, counted from 0.

    Raises
    ------
    ValueError
        If n rows are too few for the level.

    Examples
    --------
    >>> from ulmus.intervals import conformal_ranks
    >>> conformal_ranks(99, 0.9, two_sided=True)
    (4, 94)
    """
    low, high = _outer_ranks(n, level, two_sided)
    if low < 1 or high > n:
        required = int(np.ceil(np.round((2 if two_sided else 1) / (1 - level) - 1, 9)))
        text = f"requires at least {required} training rows for a conformal interval, got {n}"
        remedies = "use a lower level", Setting("method", "gaussian")
        shown = float(f"{level:g}")
        raise InputError(Message("too-few-rows", text, "confidence_level", shown, remedies))
    return min(low, n) - 1, max(high, 1) - 1


def has_ranks(n: int, level: float, *, two_sided: bool) -> bool:
    """Whether the conformal ranks of a level exist among n values."""
    low, high = _outer_ranks(n, level, two_sided)
    return low >= 1 and high <= n


def _outer_ranks(n: int, level: float, two_sided: bool) -> tuple[int, int]:
    """Ranks of the two bounds among n values, from 1; 0 and n + 1 do not exist."""
    tail = (1 - level) / (2 if two_sided else 1)
    return quantile_rank(n, tail, upper=False), quantile_rank(n, 1 - tail, upper=True)


def quantile_rank(n: int, level: float, *, upper: bool) -> int:
    """Rank of a conformal quantile among n sorted values, from 1, rounded down or up."""
    # Rounded first, because (n + 1) * level may miss an integer by round-off.
    rank = np.round(level * (n + 1), 9)
    return int(np.ceil(rank) if upper else np.floor(rank))


def order_quantiles(values: FloatArray, levels: Sequence[float]) -> FloatArray:
    """Quantiles of the columns of (n, p) values, shape (levels, p).

    The quantile of level q interpolates linearly at rank q (n + 1): of n + 1 exchangeable values,
    the last lies below the k-th smallest of the others with probability k / (n + 1). Levels beyond
    the extreme ranks get the extreme values.
    """
    n = len(values)
    rank = np.clip(np.round(np.array(levels) * (n + 1), 9) - 1, 0, n - 1)
    low = np.floor(rank).astype(int)
    high = np.minimum(low + 1, n - 1)
    ordered = np.partition(values, np.unique([low, high]), axis=0)
    share = (rank - low)[:, None]
    return (1 - share) * ordered[low] + share * ordered[high]


def conformal_bounds(
    low: FloatArray, high: FloatArray, ranks: Iterable[tuple[int, int]]
) -> FloatArray:
    """Order statistics of values at points as bounds.

    Parameters
    ----------
    low, high : ndarray of shape (n, p)
        For each point, the candidates for the lower and the upper bound: leave-one-out predictions
        minus and plus leave-one-out residuals.
    ranks : iterable of k pairs of int
        For each level the ranks of :func:`conformal_ranks`.

    Returns
    -------
    bounds : ndarray of shape (2, k, p)
        Lower and upper bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.intervals import conformal_bounds, conformal_ranks
    >>> values = 10 + np.arange(-49.0, 50.0)[:, None]  # prediction plus residuals of 99 rows
    >>> conformal_bounds(values, values, [conformal_ranks(99, 0.9, two_sided=True)]).ravel()
    array([-35.,  55.])
    """
    ranks = list(ranks)
    lower, upper = [rank for rank, _ in ranks], [rank for _, rank in ranks]
    low, high = np.partition(low, lower, axis=0), np.partition(high, upper, axis=0)
    return np.stack([low[lower], high[upper]])


def uncrossed(bounds: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Bounds (2, k, p) of (n, p) values; those of jackknife+ may cross at low levels.

    Crossed bounds are replaced by the midpoint of the shortest interval of any level that does not
    cross, which lies inside all wider ones.
    """
    crossed = bounds[0] > bounds[1]
    columns = np.flatnonzero(np.any(crossed, axis=0))
    if not len(columns):
        return bounds
    down, up = np.sort(low[:, columns], axis=0)[::-1], np.sort(high[:, columns], axis=0)
    first = np.argmax(down <= up, axis=0)
    middle = np.zeros(bounds.shape[2])
    position = first, np.arange(len(columns))
    middle[columns] = 0.5 * (down[position] + up[position])
    return np.where(crossed, middle, bounds)


def is_skewed(residuals: FloatArray) -> bool:
    """Whether residuals are clearly asymmetric.

    Parameters
    ----------
    residuals : ndarray of shape (n,)
        Leave-one-out residuals.

    Returns
    -------
    skewed : bool
        Whether their skewness, after clipping at the 1 % and 99 % quantiles, differs from zero by
        more than three standard errors. False for fewer than 20 residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.intervals import is_skewed
    >>> noise = np.random.default_rng(0).standard_normal(500)
    >>> is_skewed(noise), is_skewed(np.exp(noise))
    (False, True)
    """
    n = len(residuals)
    if n < MIN_RESIDUALS or np.ptp(residuals) == 0:
        return False
    # Clipped, so that a single outlier of symmetric heavy-tailed noise is not decisive.
    low, high = np.quantile(residuals, [0.01, 0.99])
    c = np.clip(residuals, low, high)
    c = (c - c.mean()) / c.std()
    error2 = np.mean(c**6) - 6 * np.mean(c**4) + 9
    return bool(np.mean(c**3) ** 2 > 3.0**2 * error2 / n)


def is_asymmetric(residuals: FloatArray) -> bool:
    """Whether residuals are skewed; unlike for ``is_skewed``, a single outlier may be decisive."""
    if len(residuals) < MIN_RESIDUALS or np.ptp(residuals) == 0:
        return False
    scaled = residuals / np.max(np.abs(residuals))
    return is_skewed(residuals) or bool(stats.skewtest(scaled).pvalue < 0.005)


def shortest_tails(
    quantile: Callable[[FloatArray], FloatArray], levels: Sequence[float] | FloatArray
) -> FloatArray:
    """Probability below the shortest interval of each level, shape (levels,).

    Starting from the widest interval, the end with the lower density moves inwards. Intervals are
    therefore nested, and do not depend on the other levels.
    """
    value = np.asarray(quantile((np.arange(STEPS) + 0.5) / STEPS))
    low, high = 0, STEPS - 1
    tails = np.empty(STEPS)
    for k in range(STEPS - 1, -1, -1):
        tails[k] = (low + 0.5) / STEPS
        if k and value[low + 1] - value[low] > value[high] - value[high - 1]:
            low += 1
        else:
            high -= 1
    grid = np.append(np.arange(STEPS) / STEPS, 1.0)
    return np.interp(levels, grid, np.append(tails, 0.0))


def shortest_ranks(
    n: int, levels: Sequence[float], quantile: Callable[[FloatArray], FloatArray]
) -> list[tuple[int, int]]:
    """Zero-based ranks of the ends of the shortest intervals among n sorted values.

    The interval between ranks i and i + k covers a new value with probability k / (n + 1). Each
    level gets the smallest sufficient k, and i from the shortest interval of that probability, so
    that increasing k by one moves one end by one rank.
    """
    # Rounded first, because (n + 1) * level may miss an integer by round-off.
    between = np.ceil(np.round(np.array(levels) * (n + 1), 9)).astype(int)
    tails = shortest_tails(quantile, between / (n + 1))
    low = np.floor(np.round(tails * (n + 1), 9) + 0.5).astype(int)
    low = np.minimum(np.maximum(low, 1), n - between)
    return [(int(i) - 1, int(i + k) - 1) for i, k in zip(low, between, strict=True)]
