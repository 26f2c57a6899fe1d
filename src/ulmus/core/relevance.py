"""How much each input of the table matters to a learned map, with an uncertainty.

An input matters as much as the prediction changes when its value is exchanged for that of another
row, all other inputs kept: half the mean squared change, the total effect of variance-based
sensitivity analysis (Jansen, 1999). Scores and levels of an input change with it. Relevance is the
share of an input in the sum over inputs.
"""

from __future__ import annotations

import numpy as np

from ulmus.core.backend import Array, like, namespace, to_numpy
from ulmus.core.evidence import Networks
from ulmus.core.tuning import LearnedMap

# Rows whose values are exchanged, and maps drawn around the learned one.
EXCHANGED_ROWS, MAPS_DRAWN = 256, 12


def relevance(
    networks: Networks, found: LearnedMap, origin: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Share of each input of the table, (d,), and its standard deviation.

    The deviation is over maps drawn from the normal distribution whose covariance is the inverse
    Hessian at the learned map.
    """
    rng = np.random.default_rng(seed)
    n = int(networks.Z.shape[0])
    rows = rng.permutation(n)[:EXCHANGED_ROWS]
    others = rng.permutation(n)[: len(rows)]
    best = _shares(networks, found.matrix, found.log_alpha, origin, rows, others)
    draws = []
    for _ in range(MAPS_DRAWN if found.spread.shape[1] else 0):
        step = found.spread @ rng.standard_normal(found.spread.shape[1])
        L = np.exp(np.clip(step, -3, 3))[:, None] * found.matrix
        draws.append(_shares(networks, L, found.log_alpha, origin, rows, others))
    deviation = np.sqrt(np.mean((np.array(draws) - best) ** 2, axis=0)) if draws else 0 * best
    return best, deviation


def _shares(
    networks: Networks,
    L: np.ndarray,
    log_alpha: float,
    origin: np.ndarray,
    rows: np.ndarray,
    others: np.ndarray,
) -> np.ndarray:
    d = int(origin.max()) + 1
    even = np.full(d, 1 / d)
    b = networks.coefficients(L, log_alpha)
    if b is None:
        return even
    Z, Z_other = _taken(networks.Z, rows), _taken(networks.Z, others)
    xp = namespace(Z)
    at_rows = networks.predictions(Z, L, b)
    effect = np.empty(d)
    for j in range(d):
        changed = xp.where(like(origin == j, Z)[None, :] > 0, Z_other, Z)
        change = networks.predictions(changed, L, b) - at_rows
        effect[j] = float(to_numpy(xp.mean(change**2)))
    total = np.sum(effect)
    return effect / total if total > 0 and np.isfinite(total) else even


def _taken(Z: Array, rows: np.ndarray) -> Array:
    xp = namespace(Z)
    return xp.take(Z, xp.asarray(rows, device=Z.device), axis=0)
