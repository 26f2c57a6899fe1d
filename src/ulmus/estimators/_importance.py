"""Importances of inputs by boosted trees, a start of the search of an input map.

Inputs that matter only through their interactions have no gradient on average: a search that starts
from gradients may find none of them, where trees do.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from ulmus.core.arrays.threads import mapped
from ulmus.core.fit.layer import Importances

TREES, LEARNING_RATE = 30, 0.3
# A fifth of the rows is held out: each once where rows are few, at least this many in all.
PARTS, HELD_OUT_ROWS = 5, 400
# Fewest rows that trees are fitted to.
FEWEST_ROWS = 100


def tree_importances(X: np.ndarray, Y: np.ndarray, origin: np.ndarray) -> Importances | None:
    """Permutation importances (d,) of inputs (n, d) for outputs (n, K), on held-out rows.

    The increase of the squared error in units of the error of a constant, summed over outputs; None
    where no input increases it. Where rows are few, inputs that matter rank first even if the trees
    predict no better than a constant.
    """
    if len(X) < FEWEST_ROWS:
        return None
    # An order that does not depend on that of the table.
    order = np.lexsort(X.T)
    X, Y = X[order], Y[order]
    part = np.arange(len(X)) % PARTS
    n_parts = min(PARTS, -(-PARTS * HELD_OUT_ROWS // len(X)))
    tests = [part == one for one in range(n_parts)]
    total, explained = np.zeros(X.shape[1]), 0.0
    for y in Y.T:
        held_out = mapped(partial(_held_out, X, y), tests)
        errors = np.sum([(one.error, one.constant) for one in held_out], axis=0)
        total += sum(one.increases / one.constant for one in held_out if one.constant > 0)
        if errors[1] > 0:
            explained = max(explained, float(1 - errors[0] / errors[1]))
    return Importances(total, explained) if np.any(total > 0) else None


class _HeldOut(NamedTuple):
    """Mean squared errors on rows that trees were not fitted to."""

    error: float
    constant: float  # that of the mean of the other rows
    increases: np.ndarray  # (d,): increase of the error if the values of an input are permuted


def _held_out(X: np.ndarray, y: np.ndarray, test: np.ndarray) -> _HeldOut:
    """Errors of trees that are fitted without the rows ``test``, boolean (n,)."""
    model = HistGradientBoostingRegressor(
        max_iter=TREES, learning_rate=LEARNING_RATE, early_stopping=False, random_state=0
    )
    # The threads of OpenMP share each node of a tree, which is too little for them.
    with threadpool_limits(1, user_api="openmp"):
        model.fit(X[~test], y[~test])
        error = _error(model.predict(X[test]), y[test])
        increases = _increases(model, X[test], y[test], error)
    return _HeldOut(error, _error(np.mean(y[~test]), y[test]), increases)


def _error(prediction: np.ndarray, y: np.ndarray) -> float:
    """Mean squared error."""
    return float(np.mean((y - prediction) ** 2))


def _increases(
    model: HistGradientBoostingRegressor, X: np.ndarray, y: np.ndarray, error: float
) -> np.ndarray:
    """Increase of the squared error if the values of an input are permuted, at least 0, (d,)."""
    order, out = np.random.default_rng(0).permutation(len(X)), np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        changed = X.copy()
        changed[:, j] = X[order, j]
        out[j] = max(_error(model.predict(changed), y) - error, 0.0)
    return out
