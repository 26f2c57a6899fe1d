"""What a fit says about its training rows: residuals, leverages, and their HC discounts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, transposed
from ulmus.core.ridge.leave_out import LeftOutRows, left_out_rows, one_minus_leverage
from ulmus.core.ridge.smoother import Smoother, square_lengths


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
    cut: np.ndarray | None = None

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
    def _without_blocks(self) -> LeftOutRows | None:
        """Rows as seen without their blocks, if they have any."""
        if self.cut is None:
            return None
        return left_out_rows(self.t, self.residual, self.root_weight, self.cut)

    @property
    def loo(self) -> Array:
        """Exact residuals of each member fitted without the row or its block, (M, K, n)."""
        if self._without_blocks is not None:
            return self._without_blocks.residual
        return self.residual / one_minus_leverage(self.weight * self.square_length)[:, None, :]

    @property
    def left_out_norm(self) -> Array:
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
            return self if self.cut is None else replace(self, cut=None)
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
    cut: np.ndarray | None = None,
) -> RowFit:
    """What the members say about rows with features h (M, N', n) and outputs y (K, n)."""
    t = smoother.coordinates(h)
    return RowFit(smoother, t, y - transposed(smoother.q) @ t, root_weight, cut)


# ------------------------------------------------------------ heteroskedasticity-consistent
# What divides a squared residual of weighted rows, so that it estimates the row's noise.


def _hc0(rows: RowFit) -> Array:
    return namespace(rows.t).ones_like(rows.square_length)


def _hc1(rows: RowFit) -> Array:
    share = rows.smoother.dof / rows.smoother.n_rows
    return namespace(rows.t).broadcast_to(
        one_minus_leverage(share)[:, None], rows.square_length.shape
    )


def _hc2(rows: RowFit) -> Array:
    # Var(r_i) / sigma2 is the diagonal of (I - P)^2, which is 1 - p for a projection.
    return one_minus_leverage(2 * rows.square_length - rows.square_row)


def _hc3(rows: RowFit) -> Array:
    # MacKinnon & White (1985): the left-out residual.
    return one_minus_leverage(rows.square_length) ** 2


def _hc4(rows: RowFit) -> Array:
    # Cribari-Neto (2004): more discount for rows of more than average leverage.
    n, trace = rows.smoother.n_rows, rows.smoother.trace[:, None]
    delta = namespace(rows.t).clip(n * rows.square_length / trace, max=4.0)
    return one_minus_leverage(rows.square_length) ** delta


DISCOUNTS: dict[str, Callable[[RowFit], Array]] = {
    "HC0": _hc0,
    "HC1": _hc1,
    "HC2": _hc2,
    "HC3": _hc3,
    "HC4": _hc4,
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


def ensemble_omega(rows: RowFit, smoother_square: Array) -> Array:
    """Squared residuals of the ensemble over their variance factor, shape (K, n).

    ``smoother_square`` is the diagonal of the squared mean smoother, shape (n,).
    """
    xp = namespace(rows.residual)
    factor = one_minus_leverage(2 * xp.mean(rows.square_length, axis=0) - smoother_square)
    return xp.mean(rows.residual, axis=0) ** 2 / factor
