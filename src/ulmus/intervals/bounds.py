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
    """Mean plus and minus a quantile times the standard deviation, shape (2, k, ...).

    The quantile is Student's with ``dof`` degrees of freedom, or normal if they are infinite.
    """
    half = np.stack([stats.t.isf((1 - level) / 2, dof) * sd for level in levels])
    return np.stack([mean - half, mean + half])


def satterthwaite_dof(
    noise: FloatArray, weights: FloatArray, residual_dof: FloatArray | float, weights_dof: int
) -> FloatArray:
    """Degrees of freedom of a sum of two independent variance estimates.

    ``noise`` rests on the residuals, ``weights`` on the differences between members
    (Satterthwaite, 1946).
    """
    total = noise + weights
    # Shares, as squares of variances in extreme units are no numbers.
    share = np.divide(weights, total, out=np.zeros_like(total), where=total > 0)
    spent = (1 - share) ** 2 / np.maximum(residual_dof, 1.0) + share**2 / max(weights_dof, 1)
    return np.where(total > 0, np.maximum(1 / spent, 1.0), np.inf)


def conformal_ranks(n: int, level: float, *, two_sided: bool) -> tuple[int, int]:
    """Zero-based ranks of the lower and upper bound among n sorted values.

    One-sided ranks are for bounds made of absolute residuals, where each side already holds
    the whole error; two-sided ones leave half the error on either side.
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
    """Order statistics of (n, p) values as bounds, shape (2, k, p)."""
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
    places = first, np.arange(len(columns))
    middle[columns] = 0.5 * (down[places] + up[places])
    return np.where(crossed, middle, bounds)


def is_skewed(residuals: FloatArray) -> bool:
    """Whether residuals are clearly asymmetric."""
    n = len(residuals)
    if n < 20 or np.ptp(residuals) == 0:
        return False
    # Clipped, so that one wild residual of a symmetric heavy-tailed noise decides nothing.
    low, high = np.quantile(residuals, [0.01, 0.99])
    c = np.clip(residuals, low, high)
    c = (c - c.mean()) / c.std()
    error2 = np.mean(c**6) - 6 * np.mean(c**4) + 9
    return bool(np.mean(c**3) ** 2 > SKEWNESS_ERRORS**2 * error2 / n)
