r"""Bands that cover several answers together.

Intervals of level c each miss one of many answers far more often than 1 - c. The band of answers
with correlation R needs the quantile of :math:`\max_i |Z_i|` for Z normal with covariance R, which
draws of Z give. It is turned into a level for each single interval, at which every answer uses
Student quantiles with degrees of freedom of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from ulmus.core.query.joint_covariance import root

FloatArray = npt.NDArray[np.float64]

N_DRAWS = 20_000
SEED = 20_210_907
# Largest array of draws, in elements.
DRAW_ELEMENTS = 2**23
# Levels that fewer draws than this lie beyond are not simulated.
FEWEST_BEYOND = 5


class Band(NamedTuple):
    """Level of single intervals that cover together as asked, and the error of simulating it.

    Parameters
    ----------
    pointwise_level : float
        Level of each interval.
    critical_value : float
        Normal quantile at that level: half the width in standard errors.
    monte_carlo_error : float
        Standard deviation of the critical value over other draws.
    """

    pointwise_level: float
    critical_value: float
    monte_carlo_error: float


def band(covariance: FloatArray, level: float) -> Band:
    """The band of answers with a joint covariance (q, q)."""
    sd = np.sqrt(np.diag(covariance))
    moving = sd > 0
    least, most = (float(stats.norm.isf((1 - level) / (2 * m))) for m in (1, max(sum(moving), 1)))
    if sum(moving) < 2:
        return Band(level, least, 0.0)
    if (1 - level) * N_DRAWS < FEWEST_BEYOND:
        # By Bonferroni's inequality, and at most what is told apart from certainty.
        return Band(min(1 - (1 - level) / sum(moving), np.nextafter(1, 0)), most, 0.0)
    L = root(covariance[np.ix_(moving, moving)]) / sd[moving, None]
    largest = _largest(L)
    # Between answers that are all the same and answers that have nothing to do with each other.
    critical = float(np.clip(np.quantile(largest, level), least, most))
    # Order statistics one standard deviation of their number to either side.
    spread = np.sqrt(level * (1 - level) / N_DRAWS)
    low, high = np.quantile(largest, np.clip([level - spread, level + spread], 0, 1))
    return Band(float(1 - 2 * stats.norm.sf(critical)), critical, float(high - low) / 2)


def _largest(L: FloatArray) -> FloatArray:
    """Largest absolute value of each draw of a normal vector with root L (q, r)."""
    rng, (q, r) = np.random.default_rng(SEED), L.shape
    size = max(1, DRAW_ELEMENTS // max(q, r))
    parts = []
    for start in range(0, N_DRAWS, size):
        z = rng.standard_normal((min(size, N_DRAWS - start), r))
        parts.append(np.max(np.abs(z @ L.T), axis=1))
    return np.concatenate(parts)
