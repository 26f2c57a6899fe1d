"""Importances of inputs by boosted trees, a start of the search of an input map.

Inputs that matter only through their interactions have no gradient on average: a search that starts
from gradients may find none of them, where trees do.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from ulmus.core.fit.layer import Importances

TREES, REPEATS = 100, 3
# Every third row is held out to measure importances.
EVERY = 3
# Fewest rows that trees are fitted to.
FEWEST_ROWS = 100


def tree_importances(X: np.ndarray, Y: np.ndarray, origin: np.ndarray) -> Importances | None:
    """Permutation importances (d,) of inputs (n, d) for outputs (n, K), on held-out rows.

    The increase of the squared error in units of the error of a constant, summed over outputs; None
    where trees predict no better than a constant.
    """
    if len(X) < FEWEST_ROWS:
        return None
    # An order that does not depend on that of the table.
    order = np.lexsort(X.T)
    X, Y = X[order], Y[order]
    test = np.arange(len(X)) % EVERY == EVERY - 1
    total, explained = np.zeros(X.shape[1]), 0.0
    for y in Y.T:
        model = HistGradientBoostingRegressor(max_iter=TREES, early_stopping=False, random_state=0)
        model.fit(X[~test], y[~test])
        error = _errors(model.predict(X[test]), y[test])
        constant = _errors(np.mean(y[~test]), y[test])
        if error < constant:
            total += _increases(model, X[test], y[test], error) / constant
            explained = max(explained, 1 - error / constant)
    return Importances(total, explained) if np.any(total > 0) else None


def _errors(prediction: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((y - prediction) ** 2))


def _increases(
    model: HistGradientBoostingRegressor, X: np.ndarray, y: np.ndarray, error: float
) -> np.ndarray:
    """Increase of the squared error if the values of an input are permuted, at least 0, (d,)."""
    rng, out = np.random.default_rng(0), np.zeros(X.shape[1])
    permutations = [rng.permutation(len(X)) for _ in range(REPEATS)]
    for j in range(X.shape[1]):
        changed = np.tile(X, (REPEATS, 1))
        changed[:, j] = np.concatenate([X[order, j] for order in permutations])
        out[j] = max(_errors(model.predict(changed), np.tile(y, REPEATS)) - error, 0.0)
    return out
