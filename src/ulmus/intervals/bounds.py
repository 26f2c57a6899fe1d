"""Interval bounds from predictions: normal, Student t, and conformal.

Arrays are NumPy; levels are a list, and bounds come as (2, k, ...) with the k levels second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

FloatArray = npt.NDArray[np.float64]

# A sample skewness this many standard errors from zero asks for intervals with unequal sides.
SKEWNESS_ERRORS = 3.0


def normal_bounds(
    mean: FloatArray,
    sd: FloatArray,
    levels: Sequence[float],
    dof: FloatArray | float = np.inf,
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
        The estimates: one rests on the residuals, the other on the differences between members.
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
    F. E. Satterthwaite (1946). An approximate distribution of estimates of variance components.
    Biometrics Bulletin 2, 110-114.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.intervals import satterthwaite_dof
    >>> satterthwaite_dof(np.array([1.0, 1.0]), np.array([0.0, 1.0]), 50.0, 10).round(1)
    array([50. , 33.3])
    """
    total = noise + weights
    # Shares, as squares of variances in extreme units are no numbers.
    share = np.divide(weights, total, out=np.zeros_like(total), where=total > 0)
    spent = (1 - share) ** 2 / np.maximum(residual_dof, 1.0) + share**2 / max(weights_dof, 1)
    return np.where(total > 0, np.maximum(1 / spent, 1.0), np.inf)


def conformal_ranks(n: int, level: float, *, two_sided: bool) -> tuple[int, int]:
    """Ranks of the lower and upper bound among n sorted values.

    Parameters
    ----------
    n : int
        Number of left-out rows.
    level : float
        Level, between 0 and 1.
    two_sided : bool
        Whether half the error is left on either side. Bounds made of absolute residuals have the
        whole error on each side already, and take False.

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
    >>> conformal_ranks(99, 0.9, two_sided=False)
    (9, 89)
    """
    tail = (1 - level) / (2 if two_sided else 1)
    low, high = quantile_rank(n, tail, upper=False), quantile_rank(n, 1 - tail, upper=True)
    if not has_ranks(n, level, two_sided=two_sided):
        needed = int(np.ceil(np.round(1 / tail - 1, 9)))
        raise ValueError(
            f"confidence_level={level:g} needs at least {needed} training rows for a jackknife "
            f"interval, got {n}; lower the level, or use method='gaussian'."
        )
    return min(low, n) - 1, max(high, 1) - 1


def has_ranks(n: int, level: float, *, two_sided: bool) -> bool:
    """Whether n values are enough for the ranks of a level."""
    tail = (1 - level) / (2 if two_sided else 1)
    return quantile_rank(n, tail, upper=False) >= 1 and quantile_rank(n, 1 - tail, upper=True) <= n


def quantile_rank(n: int, level: float, *, upper: bool) -> int:
    """Rank among n sorted values, counted from 1, of a conformal quantile from below or above."""
    # Rounding guards against (n + 1) * level being an integer but for the last digit.
    place = np.round(level * (n + 1), 9)
    return int(np.ceil(place) if upper else np.floor(place))


def order_quantiles(values: FloatArray, levels: Sequence[float]) -> FloatArray:
    """Quantiles of the columns of (n, p) values, shape (levels, p).

    A level q has the plotting position q (n + 1) among the sorted values, between which quantiles
    are linear: of n + 1 exchangeable values, the last lies below the k-th of the others with
    probability k / (n + 1). Both tails are alike, and levels beyond the outermost value get it.
    """
    n = len(values)
    place = np.clip(np.round(np.array(levels) * (n + 1), 9) - 1, 0, n - 1)
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, n - 1)
    ordered = np.partition(values, np.unique([low, high]), axis=0)
    share = (place - low)[:, None]
    return (1 - share) * ordered[low] + share * ordered[high]


def conformal_bounds(
    low: FloatArray, high: FloatArray, ranks: Iterable[tuple[int, int]]
) -> FloatArray:
    """Order statistics of values at points as bounds.

    Parameters
    ----------
    low, high : ndarray of shape (n, p)
        For each point, the n values of which one becomes the lower or the upper bound: left-out
        predictions less, and plus, left-out residuals.
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
    >>> residuals = np.arange(-49.0, 50.0)[:, None]  # of 99 rows, at one point
    >>> ranks = conformal_ranks(99, 0.9, two_sided=True)
    >>> conformal_bounds(10 + residuals, 10 + residuals, [ranks]).ravel()
    array([-35.,  55.])
    """
    ranks = list(ranks)
    lower = np.partition(low, [r[0] for r in ranks], axis=0)[[r[0] for r in ranks]]
    upper = np.partition(high, [r[1] for r in ranks], axis=0)[[r[1] for r in ranks]]
    return np.stack([lower, upper])


def uncrossed(bounds: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Bounds (2, k, p) of (n, p) values; at low levels those of jackknife+ may cross.

    They become the middle of the shortest interval of any level whose ends do not cross, which
    lies inside all wider ones.
    """
    crossed = bounds[0] > bounds[1]
    columns = np.flatnonzero(np.any(crossed, axis=0))
    if not len(columns):
        return bounds
    down, up = np.sort(low[:, columns], axis=0)[::-1], np.sort(high[:, columns], axis=0)
    first = np.argmax(down <= up, axis=0)
    middle = np.zeros(bounds.shape[2])
    locations = first, np.arange(len(columns))
    middle[columns] = 0.5 * (down[locations] + up[locations])
    return np.where(crossed, middle, bounds)


def is_skewed(residuals: FloatArray) -> bool:
    """Whether residuals are clearly asymmetric.

    Parameters
    ----------
    residuals : ndarray of shape (n,)
        Left-out residuals.

    Returns
    -------
    skewed : bool
        Whether their skewness, with the outermost percent on either side clipped, is more than
        three standard errors from zero. Never with fewer than 20 residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.intervals import is_skewed
    >>> noise = np.random.default_rng(0).standard_normal(500)
    >>> is_skewed(noise), is_skewed(np.exp(noise))
    (False, True)
    """
    n = len(residuals)
    if n < 20 or np.ptp(residuals) == 0:
        return False
    # Clipped, so that one wild residual of a symmetric heavy-tailed noise decides nothing.
    low, high = np.quantile(residuals, [0.01, 0.99])
    c = np.clip(residuals, low, high)
    c = (c - c.mean()) / c.std()
    error2 = np.mean(c**6) - 6 * np.mean(c**4) + 9
    return bool(np.mean(c**3) ** 2 > SKEWNESS_ERRORS**2 * error2 / n)
