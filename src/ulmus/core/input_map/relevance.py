"""Relevance of the columns of the table in a learned map, and its standard deviation."""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import namespace, taken_rows, to_numpy
from ulmus.core.input_map.marginal_likelihood import ProbeNetworks
from ulmus.core.input_map.response import log_scale_root
from ulmus.core.input_map.search import for_curvature
from ulmus.core.input_map.settings import LearnedMap


def relevance(
    networks: ProbeNetworks, learned: LearnedMap, origin: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Relevance of each column of the table, (d,), and its standard deviation.

    The relevance is the total effect of variance-based sensitivity analysis (Jansen, 1999): half
    the mean squared change of the prediction when the value of a column is exchanged for that of
    another row, as a share of the sum over columns. Normal scores and indicators change with their
    column.

    The deviation is over maps drawn around the one before inputs were dropped: log scales are
    normal, with the inverse curvature of the marginal likelihood as covariance. The shares use 1024
    pairs of rows, and for each drawn map 256 and a smaller network.
    """
    rng = np.random.default_rng(seed)
    n, d = int(networks.Z.shape[0]), int(origin.max()) + 1
    pairs = tuple(_repeated_rows(rng, n, 1024) for _ in range(2))
    L = learned.matrix if learned.structure == "full" else np.diag(learned.matrix)
    best = _shares(networks, L, learned.log_alpha, origin, pairs)
    small, log_alpha, _ = for_curvature(networks, learned.log_alpha)
    few = tuple(_repeated_rows(rng, int(small.Z.shape[0]), 256) for _ in range(2))
    centre, draws = _shares(small, L, log_alpha, origin, few), []
    root = log_scale_root(networks, learned)
    # Twelve maps, or fewer with many columns: at most 600 exchanges.
    for _ in range(max(2, min(12, 600 // d))):
        step = np.exp(np.clip(root @ rng.standard_normal(root.shape[1]), -3, 3))
        L = (step * learned.undropped.T).T
        draws.append(_shares(small, L, log_alpha, origin, few))
    return best, np.sqrt(np.mean((np.array(draws) - centre) ** 2, axis=0))


def _repeated_rows(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Random row numbers, with frequencies that differ by at most one."""
    return np.concatenate([rng.permutation(n) for _ in range(-(-size // n))])[:size]


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
        xp, predicted = namespace(Z), networks.predictions(Z, L, b)
        used = L != 0 if L.ndim == 1 else np.any(L != 0, axis=1)
        for j in np.unique(origin[used]):
            exchanged = xp.where(xp.asarray(origin == j, device=Z.device), others, Z)
            change = networks.predictions(exchanged, L, b) - predicted
            effect[j] = float(to_numpy(xp.mean(change**2)))
    total = np.sum(effect)
    return effect / total if total > 0 and np.isfinite(total) else np.full(d, 1 / d)
