r"""Simultaneous confidence bands for several estimates.

Pointwise intervals of level c cover q estimates jointly with a probability below c. The critical
value of a simultaneous band is the quantile of :math:`\max_i |Z_i|` for normal Z with the
correlation of the estimates, which is computed by simulation. It is converted to a pointwise level,
so that each estimate uses Student quantiles with its own degrees of freedom.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.query.joint_covariance import root

N_DRAWS, SEED = 20_000, 20_210_907


class SimultaneousBand(NamedTuple):
    """Pointwise level at which intervals cover jointly, and its simulation error."""

    pointwise_level: float  # level of each interval
    critical_value: float  # normal quantile at that level: half the width in standard errors
    monte_carlo_error: float  # standard deviation of the critical value over other draws


def simultaneous_band(covariance: FloatArray, level: float) -> SimultaneousBand:
    """The band of estimates with a joint covariance (q, q)."""
    sd = np.sqrt(np.diag(covariance))
    uncertain = sd > 0
    q = int(np.sum(uncertain))
    pointwise, bonferroni = (float(stats.norm.isf((1 - level) / (2 * m))) for m in (1, max(q, 1)))
    if q < 2:
        return SimultaneousBand(level, pointwise, 0.0)
    if (1 - level) * N_DRAWS < 5:  # too few draws in the tail to determine a quantile
        return SimultaneousBand(min(1 - (1 - level) / q, np.nextafter(1, 0)), bonferroni, 0.0)
    L = root(covariance[np.ix_(uncertain, uncertain)]) / sd[uncertain, None]
    maxima = _simulated_maxima(L)
    # Perfectly correlated estimates are the lower limit, Bonferroni's inequality is the upper one.
    critical = float(np.clip(np.quantile(maxima, level), pointwise, bonferroni))
    # Order statistics one standard deviation of their rank to either side.
    sd_of_share = np.sqrt(level * (1 - level) / N_DRAWS)
    low, high = np.quantile(maxima, np.clip([level - sd_of_share, level + sd_of_share], 0, 1))
    return SimultaneousBand(float(1 - 2 * stats.norm.sf(critical)), critical, float(high - low) / 2)


def _simulated_maxima(L: FloatArray) -> FloatArray:
    """Largest absolute value of each draw of a normal vector with covariance root L (q, r)."""
    rng, (q, r) = np.random.default_rng(SEED), L.shape
    size = max(1, 2**23 // max(q, r))  # arrays of at most 64 MB
    parts = []
    for start in range(0, N_DRAWS, size):
        z = rng.standard_normal((min(size, N_DRAWS - start), r))
        parts.append(np.max(np.abs(z @ L.T), axis=1))
    return np.concatenate(parts)
