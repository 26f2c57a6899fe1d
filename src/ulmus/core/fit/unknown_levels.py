"""Variance of new observations whose level of a category is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ulmus.core.arrays.backend import Array, dense, like, to_numpy
from ulmus.core.layer.levels import LevelBlock

if TYPE_CHECKING:
    from ulmus.core.ensemble.ensemble import Ensemble


def unknown_level_variance(
    ensemble: Ensemble, levels: tuple[LevelBlock, ...], X: Array
) -> np.ndarray:
    r"""Variance of the function over levels that are drawn at random, shape (p, K).

    .. math:: \sum_l s_l \, (\hat f(x_l) - \hat f(x))^2

    over the levels l of shares :math:`s_l`, where :math:`x_l` is the row with level l and x has
    the shares as its indicators; summed over the categories whose level is unknown in a row, zero
    for other rows.
    """
    variance = np.zeros((X.shape[0], ensemble.n_outputs))
    if not levels:
        return variance
    inputs = to_numpy(dense(X)).astype(float)
    for block in levels:
        unknown = np.flatnonzero(block.unknown(inputs))
        if not len(unknown):
            continue
        mean = ensemble.mean(like(inputs[unknown], ensemble.layer.W))
        for rows, share in block.drawn(inputs[unknown]):
            change = ensemble.mean(like(rows, ensemble.layer.W)) - mean
            variance[unknown] += share * change.T**2
    return variance
