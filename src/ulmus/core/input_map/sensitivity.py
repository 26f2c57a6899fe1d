"""How much each input of the table matters to a learned map, with an uncertainty.

An input matters as much as the prediction changes when its value is exchanged for that of another
row, all other inputs kept: half the mean squared change, the total effect of variance-based
sensitivity analysis (Jansen, 1999). Scores and levels of an input change with it. Relevance is the
share of an input in the sum over inputs.
"""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import namespace, taken_rows, to_numpy
from ulmus.core.input_map.marginal_likelihood import ProbeNetworks
from ulmus.core.input_map.optimisation import LearnedMap

# Pairs of rows that exchange values: for the learned map, and for each map drawn around it.
PAIRS, PAIRS_OF_DRAWS = 1024, 256
# Maps drawn around the learned one, and fewer for many inputs.
MAPS_DRAWN, EXCHANGES_DRAWN = 12, 600


def relevance(
    networks: ProbeNetworks, found: LearnedMap, origin: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Share of each input of the table, (d,), and its standard deviation.

    The deviation is over maps drawn around that before inputs were left out, from the normal
    distribution whose covariance is the inverse Hessian.
    """
    rng = np.random.default_rng(seed)
    n, d = int(networks.Z.shape[0]), int(origin.max()) + 1
    pairs = tuple(_repeated(rng, n) for _ in range(2))
    L = found.matrix if found.kind == "full" else np.diag(found.matrix)
    best = _shares(networks, L, found.log_alpha, origin, pairs)
    few = tuple(rows[:PAIRS_OF_DRAWS] for rows in pairs)
    centre, draws = _shares(networks, L, found.log_alpha, origin, few), []
    for _ in range(max(2, min(MAPS_DRAWN, EXCHANGES_DRAWN // d))):
        step = np.exp(np.clip(found.spread @ rng.standard_normal(found.spread.shape[1]), -3, 3))
        L = (step * found.around.T).T
        draws.append(_shares(networks, L, found.log_alpha, origin, few))
    return best, np.sqrt(np.mean((np.array(draws) - centre) ** 2, axis=0))


def _repeated(rng: np.random.Generator, n: int) -> np.ndarray:
    """Numbers of rows, each as often as the others but for one."""
    return np.concatenate([rng.permutation(n) for _ in range(-(-PAIRS // n))])[:PAIRS]


def _shares(
    networks: ProbeNetworks,
    L: np.ndarray,
    log_alpha: float,
    origin: np.ndarray,
    pairs: tuple[np.ndarray, ...],
) -> np.ndarray:
    d = int(origin.max()) + 1
    effect = np.zeros(d)
    b = networks.coefficients(L, log_alpha)
    if b is not None:
        Z, others = (taken_rows(networks.Z, rows) for rows in pairs)
        xp, at_rows = namespace(Z), networks.predictions(Z, L, b)
        used = L != 0 if L.ndim == 1 else np.any(L != 0, axis=1)
        for j in np.unique(origin[used]):
            changed = xp.where(xp.asarray(origin == j, device=Z.device), others, Z)
            change = networks.predictions(changed, L, b) - at_rows
            effect[j] = float(to_numpy(xp.mean(change**2)))
    total = np.sum(effect)
    return effect / total if total > 0 and np.isfinite(total) else np.full(d, 1 / d)
