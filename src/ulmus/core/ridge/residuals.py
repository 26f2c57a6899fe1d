"""What a fit says about its training rows: residuals, leverages, and their HC discounts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, transposed
from ulmus.core.arrays.linalg import eigh, positive_definite
from ulmus.core.data.cv_blocks import block_runs
from ulmus.core.ridge.smoother import Smoother, square_lengths

# A left-out row that the fit reproduces to round-off has no usable residual.
SMALLEST_ONE_MINUS_LEVERAGE = 1e-10


def one_minus_leverage(leverage: Array) -> Array:
    """1 - p, kept off zero: a row with leverage 1 has a residual of round-off."""
    return namespace(leverage).clip(1 - leverage, min=SMALLEST_ONE_MINUS_LEVERAGE)


@dataclass(frozen=True)
class RowFit:
    """Some training rows as the members see them, in the fit's units of y.

    Parameters
    ----------
    smoother : Smoother
        The members.
    t : array of shape (M, N', n)
        Coordinates of the rows, before their weights.
    residual : array of shape (M, K, n)
        Residuals of each member.
    root_weight : array of shape (n,) or None
        Square roots of the row weights.
    cut : ndarray of shape (n,) or None
        Labels of the blocks in which rows are left out; without them, one row at a time.
    """

    smoother: Smoother
    t: Array
    residual: Array
    root_weight: Array | None
    block_ids: np.ndarray | None = None

    @property
    def weight(self) -> Array | float:
        """Row weights, shape (n,), or 1."""
        return 1.0 if self.root_weight is None else self.root_weight**2

    @cached_property
    def square_length(self) -> Array:
        """t't of each row: its leverage if its weight were 1, shape (M, n)."""
        return square_lengths(self.t)

    @cached_property
    def square_row(self) -> Array:
        """z'z of each row: the diagonal of P^2 if its weight were 1, shape (M, n)."""
        return self.smoother.square_rows(self.t)

    @cached_property
    def _without_blocks(self) -> LeaveBlockOut | None:
        """Rows as seen without their blocks, if they have any."""
        if self.block_ids is None:
            return None
        return leave_block_out(self.t, self.residual, self.root_weight, self.block_ids)

    @property
    def loo(self) -> Array:
        """Exact residuals of each member fitted without the row or its block, (M, K, n)."""
        if self._without_blocks is not None:
            return self._without_blocks.residual
        return self.residual / one_minus_leverage(self.weight * self.square_length)[:, None, :]

    @property
    def leave_out_leverage(self) -> Array:
        r"""Squared error expected of each row's prediction without it, in units of noise, (M, n).

        A ridge regression is the mean of a Gaussian process, whose variance at h is
        :math:`\sigma^2 h'(H'H + \alpha I)^{-1}h = \sigma^2 t't`: the noise in the prediction and,
        unlike z'z, the bias that the ridge expects. Leaving a row out divides its own by 1 - p.
        Rows of blocks are predicted without their whole block.
        """
        if self._without_blocks is not None:
            return self._without_blocks.norm
        return self.square_length / one_minus_leverage(self.weight * self.square_length)

    @property
    def weighted(self) -> RowFit:
        """The same with rows scaled by their weights, where noise is the same for all.

        What is made of these, forms of the noise of single rows, knows no blocks.
        """
        root = self.root_weight
        if root is None:
            return self if self.block_ids is None else replace(self, block_ids=None)
        return RowFit(self.smoother, self.t * root, self.residual * root, None)

    def members(self, few: slice) -> RowFit:
        """The same rows as some of the members see them."""
        return replace(
            self,
            smoother=self.smoother.members(few),
            t=self.t[few, :, :],
            residual=self.residual[few, :, :],
        )


def row_fit(
    smoother: Smoother,
    h: Array,
    y: Array,
    root_weight: Array | None,
    block_ids: np.ndarray | None = None,
) -> RowFit:
    """What the members say about rows with features h (M, N', n) and outputs y (K, n)."""
    t = smoother.coordinates(h)
    return RowFit(smoother, t, y - transposed(smoother.q) @ t, root_weight, block_ids)


# ------------------------------------------------------------ heteroskedasticity-consistent
# What divides a squared residual of weighted rows, so that it estimates the row's noise.


def _hc0(rows: RowFit) -> Array:
    return namespace(rows.t).ones_like(rows.square_length)


def _hc2(rows: RowFit) -> Array:
    # Var(r_i) / sigma2 is the diagonal of (I - P)^2, which is 1 - p for a projection.
    return one_minus_leverage(2 * rows.square_length - rows.square_row)


def _hc3(rows: RowFit) -> Array:
    # MacKinnon & White (1985): the left-out residual.
    return one_minus_leverage(rows.square_length) ** 2


DISCOUNTS: dict[str, Callable[[RowFit], Array]] = {
    "HC0": _hc0,
    "HC2": _hc2,
    "HC3": _hc3,
    "HC3-exact": _hc3,
}


def member_omega(hc: str, rows: RowFit) -> Array:
    """Squared residuals over the discount that each HC variant gives them, (M, K, n)."""
    return rows.residual**2 / DISCOUNTS[hc](rows)[:, None, :]


def pooled_residual(hc: str, rows: RowFit) -> Array:
    """Mean over members of discounted residuals, shape (K, n).

    Averaging before squaring leaves out what only single members get wrong.
    """
    xp = namespace(rows.residual)
    return xp.mean(rows.residual / xp.sqrt(DISCOUNTS[hc](rows))[:, None, :], axis=0)


def pooled_omega(hc: str, rows: RowFit) -> Array:
    """Its square, shape (K, n)."""
    return pooled_residual(hc, rows) ** 2


# ------------------------------------------------------------ rows without their blocks


class LeaveBlockOut(NamedTuple):
    """Residuals (M, K, n) and expected squared errors, in units of noise, (M, n) of rows."""

    residual: Array
    norm: Array


def leave_block_out(
    t: Array, residual: Array, root_weight: Array | None, block_ids: np.ndarray
) -> LeaveBlockOut:
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
    for run in block_runs(block_ids):
        weight = run.stacked(root[None, None, :])
        moved, norm = _left_out_run(run.stacked(t), run.stacked(residual), weight)
        residuals.append(run.unstacked(moved))
        norms.append(run.unstacked(norm)[:, 0, :])
    return LeaveBlockOut(xp.concat(residuals, axis=2), xp.concat(norms, axis=1))


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


def leave_block_out_errors(t: Array, residual: Array) -> Array | None:
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
