r"""What a member says about rows that it was fitted without, one at a time or in blocks.

With the coordinates T of the rows of a block, each times the root of its weight, and their
residuals r, leaving the whole block out changes the residuals to

.. math:: (I - P)^{-1} r = r + T'(I - TT')^{-1} T r, \qquad P = T'T,

and the squared length t't of a row to :math:`t'(I - TT')^{-1}t`. A block of one row has
:math:`r / (1 - p)` and :math:`t't / (1 - p)`.

Blocks are told by labels: rows of a block have the same, and follow one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, transposed
from ulmus.core.arrays.linalg import eigh, positive_definite

# A left-out row that the fit reproduces to round-off has no usable residual.
SMALLEST_ONE_MINUS_LEVERAGE = 1e-10


def one_minus_leverage(leverage: Array) -> Array:
    """1 - p, kept off zero: a row with leverage 1 has a residual of round-off."""
    return namespace(leverage).clip(1 - leverage, min=SMALLEST_ONE_MINUS_LEVERAGE)


class Run(NamedTuple):
    """Neighbouring blocks of equal size: their rows, how many blocks, how many rows in each."""

    rows: slice
    n_blocks: int
    size: int

    def stacked(self, values: Array) -> Array:
        """Values (m, a, n) of all rows as those of each block, shape (m, B, a, size)."""
        xp, (m, a, _) = namespace(values), values.shape
        cut = xp.reshape(values[:, :, self.rows], (m, a, self.n_blocks, self.size))
        return xp.permute_dims(cut, (0, 2, 1, 3))

    def in_a_row(self, values: Array) -> Array:
        """The way back, (m, B, a, size) to (m, a, B x size)."""
        xp, (m, _, a, _) = namespace(values), values.shape
        return xp.reshape(xp.permute_dims(values, (0, 2, 1, 3)), (m, a, self.n_blocks * self.size))


def block_starts(cut: np.ndarray) -> np.ndarray:
    """Locations of the first row of each block, from the labels (n,) of rows."""
    return np.flatnonzero(np.append(True, cut[1:] != cut[:-1])[: len(cut)])


def runs(cut: np.ndarray) -> Iterator[Run]:
    """Blocks in their order, those of equal size that follow one another together."""
    starts = block_starts(cut)
    sizes = np.diff(starts, append=len(cut))
    firsts = block_starts(sizes)
    for first, last in zip(firsts, [*firsts[1:], len(sizes)], strict=True):
        size, n_blocks = int(sizes[first]), int(last - first)
        start = int(starts[first])
        yield Run(slice(start, start + n_blocks * size), n_blocks, size)


class LeftOutRows(NamedTuple):
    """Residuals (M, K, n) and expected squared errors, in units of noise, (M, n) of rows."""

    residual: Array
    norm: Array


def left_out_rows(
    t: Array, residual: Array, root_weight: Array | None, cut: np.ndarray
) -> LeftOutRows:
    """Rows as seen by members that were fitted without their blocks.

    Parameters
    ----------
    t : array of shape (M, N', n)
        Coordinates of the rows, before their weights.
    residual : array of shape (M, K, n)
        Residuals of the members.
    root_weight : array of shape (n,) or None
        Square roots of the row weights.
    cut : ndarray of shape (n,)
        Labels of the blocks.
    """
    xp = namespace(t)
    root = xp.ones_like(t[0, 0, :]) if root_weight is None else root_weight
    residuals, norms = [], []
    for run in runs(cut):
        weight = run.stacked(root[None, None, :])
        moved, norm = _left_out_run(run.stacked(t), run.stacked(residual), weight)
        residuals.append(run.in_a_row(moved))
        norms.append(run.in_a_row(norm)[:, 0, :])
    return LeftOutRows(xp.concat(residuals, axis=2), xp.concat(norms, axis=1))


def _left_out_run(t: Array, residual: Array, root: Array) -> tuple[Array, Array]:
    """The same for stacks of blocks, (M, B, K, b) and (M, B, 1, b)."""
    xp, (N, b) = namespace(t), t.shape[2:]
    weighted = t * root
    if b <= N:
        # (I - TT')^-1 is I + T (I - P)^-1 T', with a matrix of the size of the block.
        products = transposed(t) @ weighted
        value, V = eigh(transposed(root) * products)
        spread, right = transposed(products @ V), residual * root @ V
        norm = xp.sum(t**2, axis=2, keepdims=True)
    else:
        value, V = eigh(weighted @ transposed(weighted))
        spread = transposed(V) @ t
        right = (residual * root) @ transposed(weighted) @ V
        norm = xp.zeros_like(t[:, :, :1, :])
    inverse = 1 / one_minus_leverage(value)[:, :, None, :]
    moved = residual + (right * inverse) @ spread
    return moved, norm + inverse @ spread**2


def left_out_errors(t: Array, residual: Array) -> Array | None:
    """Residuals of weighted rows without their blocks, for stacks (m, B, N', b) and (m, B, K, b).

    There are none where a block is reproduced to round-off.
    """
    xp, (N, b) = namespace(t), t.shape[2:]
    small = transposed(t) @ t if b <= N else t @ transposed(t)
    left = xp.eye(min(N, b), dtype=t.dtype, device=t.device) - small
    if not positive_definite(left, SMALLEST_ONE_MINUS_LEVERAGE):
        return None
    if b <= N:
        return transposed(xp.linalg.solve(left, transposed(residual)))
    pulled = xp.linalg.solve(left, t @ transposed(residual))
    return residual + transposed(pulled) @ t
