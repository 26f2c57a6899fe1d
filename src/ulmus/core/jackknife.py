r"""Predictions with each training row left out, in closed form.

Dropping row i from member m moves its prediction at x by
:math:`z_{mi}(x) \, r_{mi} / (1 - p_{mi})`, so that the ensemble without row i predicts

.. math:: f_{-i}(x) = f(x) - \frac{1}{M} \sum_m z_{mi}(x) L_{mi},

with the leave-one-out residuals L. No refit is needed, and no weight matrix is inverted twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ulmus.core.backend import Array, column_sums, like, namespace, taken_rows, to_numpy
from ulmus.core.model import Model, row_fits
from ulmus.core.moments import Block
from ulmus.core.rows import RowBlocks

# Largest array of training rows times points, and of training rows times features, in elements.
POINT_ELEMENTS = 2**22
ROW_ELEMENTS = 2**25


@dataclass(frozen=True)
class TrainingRows:
    """What jackknife intervals need of the training rows.

    Parameters
    ----------
    data : RowBlocks
        The rows.
    loo : ndarray of shape (M, K, n)
        Leave-one-out residuals of each member.
    norm2 : ndarray of shape (n,)
        Variance of each left-out prediction in units of the noise.
    noise : ndarray of shape (K, n)
        Noise variance of each row, by a model fitted without it.
    """

    data: RowBlocks
    loo: np.ndarray
    norm2: np.ndarray
    noise: np.ndarray

    @property
    def used(self) -> np.ndarray:
        """Rows of positive weight."""
        weight = self.data.root_weight
        return np.ones(self.loo.shape[2], bool) if weight is None else weight > 0


class LeftOut(NamedTuple):
    """A chunk of p points.

    Parameters
    ----------
    points : slice
        Which points.
    mean : array of shape (K, p)
        Prediction of the whole ensemble.
    shift : array of shape (K, n, p)
        f(x) - f_{-i}(x) for each training row i.
    norm2 : array of shape (p,)
        Mean over members of z(x)'z(x).
    """

    points: slice
    mean: np.ndarray
    shift: np.ndarray
    norm2: np.ndarray


def left_out_predictions(
    model: Model, blocks: Iterable[Block], loo: Array, X: Array
) -> Iterator[LeftOut]:
    """Predictions without each row, in chunks of points so that memory stays bounded.

    Parameters
    ----------
    model : Model
        Fitted ensemble.
    blocks : re-iterable of Block
        Its training rows.
    loo : array of shape (M, K, n)
        Leave-one-out residuals of each member.
    X : array of shape (points, d)
        Points.
    """
    xp, M, n = namespace(model.q), model.n_members, loo.shape[2]
    to_t, q_t = model.to_t, xp.permute_dims(model.q, (0, 2, 1))
    kept = None
    if n * model.whitening.layer.size * loo.shape[1] <= ROW_ELEMENTS:
        kept = list(_row_weights(model, blocks, loo))
    size = max(1, POINT_ELEMENTS // (n * loo.shape[1]))
    for start in range(0, X.shape[0], size):
        points = slice(start, min(start + size, X.shape[0]))
        t = to_t @ model.whitening.layer(taken_rows(X, points))
        stacked = xp.reshape(t, (-1, t.shape[2]))
        rows = kept if kept is not None else _row_weights(model, blocks, loo)
        shift = np.concatenate([to_numpy(w @ stacked) for w in rows], axis=1)
        mean = xp.mean(q_t @ t, axis=0) + model.y_shift[:, None]
        yield LeftOut(points, to_numpy(mean), shift, to_numpy(column_sums(t, t)) / M)


def _row_weights(model: Model, blocks: Iterable[Block], loo: np.ndarray) -> Iterator[Array]:
    """Blocks of L Q / M, shape (K, b, MN): times t they give the shifts."""
    xp, (M, K, _) = namespace(model.q), loo.shape
    start = 0
    for block, rows in row_fits(model, blocks):
        b = rows.Q.shape[2]
        L = like(loo[:, :, start : start + b] / M, rows.Q)
        if block.root_weight is not None:
            L = L * block.root_weight**2
        start += b
        weighted = [xp.reshape(rows.Q * L[:, None, k, :], (-1, b)).T for k in range(K)]
        yield xp.stack(weighted)
