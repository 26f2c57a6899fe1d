"""The shortest intervals of a distribution: which share of the error lies below them.

Shares are nested: of two levels, the higher one has the smaller share below and above. They depend
on the distribution alone, never on the other levels that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from ulmus.intervals.bounds import is_skewed

FloatArray = npt.NDArray[np.float64]

# Steps of probability in which the ends move inwards.
STEPS = 1000
# Residuals are taken as symmetric unless a test of their skewness has a p-value below this.
SYMMETRIC_P_VALUE = 0.005


def shortest_tails(
    quantile: Callable[[FloatArray], FloatArray], levels: Sequence[float] | FloatArray
) -> FloatArray:
    """Probability below the shortest interval of each level, shape (levels,).

    From the widest interval inwards, the end at which the density is lower gives way.
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
    known = np.append(np.arange(STEPS) / STEPS, 1.0)
    return np.interp(levels, known, np.append(tails, 0.0))


def shortest_ranks(
    n: int, levels: Sequence[float], quantile: Callable[[FloatArray], FloatArray]
) -> list[tuple[int, int]]:
    """Zero-based ranks of the ends of the shortest intervals among n sorted values.

    The interval between ranks i and i + k holds a new value with probability k / (n + 1). Each
    level gets the smallest k that serves it, and i from the shortest interval of just that
    probability, so that one more k moves one end by one rank.
    """
    # Rounding guards against (n + 1) * level being an integer but for the last digit.
    between = np.ceil(np.round(np.array(levels) * (n + 1), 9)).astype(int)
    tails = shortest_tails(quantile, between / (n + 1))
    low = np.floor(np.round(tails * (n + 1), 9) + 0.5).astype(int)
    low = np.minimum(np.maximum(low, 1), n - between)
    return [(int(i) - 1, int(i + k) - 1) for i, k in zip(low, between, strict=True)]


def is_lopsided(residuals: FloatArray) -> bool:
    """Whether residuals are skewed; one wild residual is enough, unlike for ``is_skewed``."""
    if len(residuals) < 20 or np.ptp(residuals) == 0:
        return False
    scaled = residuals / np.max(np.abs(residuals))
    return is_skewed(residuals) or bool(stats.skewtest(scaled).pvalue < SYMMETRIC_P_VALUE)
