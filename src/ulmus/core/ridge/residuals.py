r"""Residuals of training rows: leave-one-out, leave-block-out, and HC estimates of their variance.

Let T be the coordinates of the rows of a block, each multiplied by the square root of its weight,
and r their residuals. A fit without the block has the residuals

.. math:: (I - P)^{-1} r = r + T'(I - TT')^{-1} T r, \qquad P = T'T,

at its rows, and the squared length t't of a row becomes :math:`t'(I - TT')^{-1}t`. For a block of
one row with leverage p these are :math:`r / (1 - p)` and :math:`t't / (1 - p)`.
"""

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

# Residuals of rows with less than this are round-off.
SMALLEST_ONE_MINUS_LEVERAGE = 1e-10


def one_minus_leverage(leverage: Array) -> Array:
    """1 - p, bounded away from zero."""
    return namespace(leverage).clip(1 - leverage, min=SMALLEST_ONE_MINUS_LEVERAGE)


@dataclass(frozen=True)
class RowFit:
    """Coordinates and residuals of some training rows, in the fit's units of y."""

    smoother: Smoother  # the members
    t: Array  # (M, N', n): coordinates of the rows, without their weights
    residual: Array  # (M, K, n): residuals of each member
    root_weight: Array | None  # (n,): square roots of the row weights
    # (n,): cross-validation block of each row, sorted; None for leave-one-out.
    block_ids: np.ndarray | None = None

    @property
    def weight(self) -> Array | float:
        """Row weights, shape (n,), or 1."""
        return 1.0 if self.root_weight is None else self.root_weight**2

    @cached_property
    def square_length(self) -> Array:
        """t't of each row: its leverage for weight 1, shape (M, n)."""
        return square_lengths(self.t)

    @cached_property
    def square_row(self) -> Array:
        """z'z of each row: the diagonal of P^2 for weight 1, shape (M, n)."""
        return self.smoother.square_rows(self.t)

    @cached_property
    def _leave_block_out(self) -> LeaveBlockOut | None:
        if self.block_ids is None:
            return None
        return leave_block_out(self.t, self.residual, self.root_weight, self.block_ids)

    @property
    def loo(self) -> Array:
        """Exact residuals of each member fitted without the row or its block, (M, K, n)."""
        if self._leave_block_out is not None:
            return self._leave_block_out.residual
        return self.residual / one_minus_leverage(self.weight * self.square_length)[:, None, :]

    @property
    def leave_out_leverage(self) -> Array:
        r"""Expected squared error of the leave-one-out prediction in units of the noise, (M, n).

        A ridge regression is the mean of a Gaussian process, whose variance at h is
        :math:`\sigma^2 h'(H'H + \alpha I)^{-1}h = \sigma^2 t't`. It includes the variance of the
        prediction and, unlike z'z, the expected squared bias. For the fit without the row it is
        divided by 1 - p; with block ids, it is that of the fit without the block.
        """
        if self._leave_block_out is not None:
            return self._leave_block_out.leverage
        return self.square_length / one_minus_leverage(self.weight * self.square_length)

    @property
    def weighted(self) -> RowFit:
        """The rows times the square roots of their weights, whose noise is homoskedastic.

        Block ids are dropped: noise forms are of single rows.
        """
        root = self.root_weight
        if root is None:
            return self if self.block_ids is None else replace(self, block_ids=None)
        return RowFit(self.smoother, self.t * root, self.residual * root, None)


def row_fit(
    smoother: Smoother,
    h: Array,
    y: Array,
    root_weight: Array | None,
    block_ids: np.ndarray | None = None,
) -> RowFit:
    """Coordinates and residuals of rows with features h (M, N', n) and outputs y (K, n)."""
    t = smoother.coordinates(h)
    return RowFit(smoother, t, y - transposed(smoother.q) @ t, root_weight, block_ids)


# ------------------------------------------------------------ heteroskedasticity-consistent
# Divisors of squared residuals of weighted rows; the quotients estimate the noise variances.


def _hc0(rows: RowFit) -> Array:
    return namespace(rows.t).ones_like(rows.square_length)


def _hc2(rows: RowFit) -> Array:
    # Var(r_i) / sigma2 is the diagonal of (I - P)^2, which is 1 - p for a projection.
    return one_minus_leverage(2 * rows.square_length - rows.square_row)


def _hc3(rows: RowFit) -> Array:
    # MacKinnon & White (1985): the leave-one-out residual.
    return one_minus_leverage(rows.square_length) ** 2


HC_DIVISORS: dict[str, Callable[[RowFit], Array]] = {
    "HC0": _hc0,
    "HC2": _hc2,
    "HC3": _hc3,
    "HC3-exact": _hc3,
}


def member_omega(hc: str, rows: RowFit) -> Array:
    """HC estimate of the noise variance of each row by each member, (M, K, n)."""
    return rows.residual**2 / HC_DIVISORS[hc](rows)[:, None, :]


def pooled_residual(hc: str, rows: RowFit) -> Array:
    """Mean over members of residuals over the roots of their divisors, shape (K, n).

    Averaging before squaring reduces the bias variation of single members.
    """
    xp = namespace(rows.residual)
    return xp.mean(rows.residual / xp.sqrt(HC_DIVISORS[hc](rows))[:, None, :], axis=0)


def pooled_omega(hc: str, rows: RowFit) -> Array:
    """Squared pooled residuals, shape (K, n)."""
    return pooled_residual(hc, rows) ** 2


# ------------------------------------------------------------ leave-block-out


class LeaveBlockOut(NamedTuple):
    """Residuals (M, K, n) of fits without the block of a row, and leverages t't (M, n) in them."""

    residual: Array
    leverage: Array


def leave_block_out(
    t: Array, residual: Array, root_weight: Array | None, block_ids: np.ndarray
) -> LeaveBlockOut:
    """Residuals and leverages of the rows in fits without their blocks.

    ``t`` (M, N', n) are coordinates without weights, ``residual`` (M, K, n) the residuals of the
    members, and ``block_ids`` (n,) are sorted.
    """
    xp = namespace(t)
    root = xp.ones_like(t[0, 0, :]) if root_weight is None else root_weight
    residuals, leverages = [], []
    for run in block_runs(block_ids):
        weight = run.stacked(root[None, None, :])
        without, leverage = _leave_run_out(run.stacked(t), run.stacked(residual), weight)
        residuals.append(run.unstacked(without))
        leverages.append(run.unstacked(leverage)[:, 0, :])
    return LeaveBlockOut(xp.concat(residuals, axis=2), xp.concat(leverages, axis=1))


def _leave_run_out(t: Array, residual: Array, root: Array) -> tuple[Array, Array]:
    """Residuals (M, B, K, b) and leverages (M, B, 1, b) for stacks of B blocks of b rows."""
    xp, (N, b) = namespace(t), t.shape[2:]
    weighted = t * root
    if b <= N:
        # (I - TT')^-1 is I + T (I - P)^-1 T', with a matrix of the size of the block.
        products = transposed(t) @ weighted
        value, V = eigh(transposed(root) * products)
        rotated, right = transposed(products @ V), residual * root @ V
        leverage = xp.sum(t**2, axis=2, keepdims=True)
    else:
        value, V = eigh(weighted @ transposed(weighted))
        rotated = transposed(V) @ t
        right = (residual * root) @ transposed(weighted) @ V
        leverage = xp.zeros_like(t[:, :, :1, :])
    inverse = 1 / one_minus_leverage(value)[:, :, None, :]
    return residual + (right * inverse) @ rotated, leverage + inverse @ rotated**2


def leave_block_out_errors(t: Array, residual: Array) -> Array | None:
    """Residuals of weighted rows in fits without their blocks, (m, B, K, b).

    Arguments are stacks (m, B, N', b) and (m, B, K, b). None if a fit interpolates a block up to
    round-off.
    """
    xp, (N, b) = namespace(t), t.shape[2:]
    small = transposed(t) @ t if b <= N else t @ transposed(t)
    complement = xp.eye(min(N, b), dtype=t.dtype, device=t.device) - small
    if not positive_definite(complement, SMALLEST_ONE_MINUS_LEVERAGE):
        return None
    if b <= N:
        return transposed(xp.linalg.solve(complement, transposed(residual)))
    shift = xp.linalg.solve(complement, t @ transposed(residual))
    return residual + transposed(shift) @ t
