r"""Roots L of noise covariances, applied to coordinates of rows.

``root.applied(t)`` is t L for t (..., n), whose last axis is the rows sorted by location. Roots in
time and of groups are cumulative sums: ``root.running()`` accepts the rows in blocks, ``add``
returns the completed columns and ``last`` the remaining ones, or None. Only products of t L with
itself are used, so that a root may have more or fewer columns than rows, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace
from ulmus.core.arrays.linalg import eigh
from ulmus.core.noise_covariance.locations import group_starts
from ulmus.core.noise_covariance.recursions import Events, RunningGroups, RunningSums

# Steps of time shorter than this share of a bandwidth are round-off.
SHORTEST_STEP = 1e-12
# A Cholesky factorisation may add up to this share of the diagonal; eigenvalues down to minus this
# share of the largest are round-off.
LARGEST_JITTER, NEGATIVE_SHARE = 1e-9, 1e-6


class Root(Protocol):
    """A root L of a covariance of n rows."""

    def applied(self, t: Array) -> Array:
        """t L for t (..., n), shape (..., n')."""


class Running(Protocol):
    """A root applied to rows in blocks."""

    def add(self, t: Array) -> Array:
        """The columns that further rows t (..., b) complete, shape (..., b')."""

    def last(self) -> Array | None:
        """The remaining columns, after all rows; None if there are none."""


@runtime_checkable
class SequentialRoot(Root, Protocol):
    """A root that accepts rows in blocks."""

    def running(self) -> Running:
        """State before the first row."""


def in_one_block(root: SequentialRoot, t: Array, n: int) -> Array:
    """All columns of a root of n rows for all of them at once."""
    if t.shape[-1] != n:
        raise ValueError(f"a root of {n} rows requires all of them, got {t.shape[-1]} rows.")
    running = root.running()
    columns, rest = running.add(t), running.last()
    return columns if rest is None else namespace(t).concat([columns, rest], axis=-1)


@dataclass(frozen=True)
class IdentityRoot:
    """Independent noise of variance one; it is its own state."""

    def applied(self, t: Array) -> Array:
        """t itself."""
        return t

    add = applied

    def running(self) -> IdentityRoot:
        """The root itself."""
        return self

    def last(self) -> None:
        """None: every row completes its column."""


@dataclass(frozen=True)
class ExponentialRoot:
    r"""Correlation exp(-|dt| / scale) within a group, none between groups.

    Backwards in time, the noise of a row is :math:`\phi` times that of the next row plus an
    innovation of variance :math:`1 - \phi^2`, with :math:`\phi = \exp(-dt / \mathrm{scale})`. The
    innovation of each later row j enters row i with the coefficient
    :math:`\exp(-(t_j - t_i) / \mathrm{scale})\sqrt{1 - \phi_{j + 1}^2}`.
    """

    time: np.ndarray  # (n,): times, ascending within a group
    groups: np.ndarray  # (n,): codes; rows of a group are adjacent
    scale: float  # time over which the correlation decays to 1/e

    def __post_init__(self) -> None:
        """Raise an error for unsorted rows and for scales that are not positive."""
        require_order(self.time, self.groups)
        require_positive("scale", self.scale)

    def applied(self, t: Array) -> Array:
        """t L for t (..., n), shape (..., n)."""
        return in_one_block(self, t, len(self.time))

    def running(self) -> Running:
        """Cumulative sums with exponential decay."""
        n, time = len(self.time), self.time
        step = np.append(np.diff(time), np.inf)[:n]
        step[np.append(group_starts(self.groups)[1:], True)[:n]] = np.inf
        innovation = np.sqrt(-np.expm1(-2 * step / self.scale))
        rows = np.arange(n)
        return RunningSums(Events(rows, np.ones(n), time, self.groups, innovation, n, self.scale))


@dataclass(frozen=True)
class BartlettRoot:
    """Correlation max(0, 1 - |dt| / bandwidth) within a group, none between groups.

    It is the overlap of intervals of this length that begin at the times. The end points of all
    intervals define pieces, each of which has its length as weight and contains some of the rows.
    """

    time: np.ndarray  # (n,): times, ascending within a group, regular or not
    groups: np.ndarray  # (n,): codes; rows of a group are adjacent
    # Time beyond which the correlation is zero. For times 0, 1, 2, ... the kernel of Newey and West
    # with ``maxlags`` is that of bandwidth ``maxlags + 1``.
    bandwidth: float

    def __post_init__(self) -> None:
        """Raise an error for unsorted rows and for bandwidths that are not positive."""
        require_order(self.time, self.groups)
        require_positive("bandwidth", self.bandwidth)

    def applied(self, t: Array) -> Array:
        """t L for t (..., n), shape (..., n') with fewer than 2 n columns."""
        return in_one_block(self, t, len(self.time))

    def running(self) -> Running:
        """Cumulative sums that rows enter and leave."""
        n = len(self.time)
        begin = self.time - np.min(self.time, initial=np.inf)
        row, sign = np.tile(np.arange(n), 2), np.repeat([1.0, -1.0], n)
        end = np.concatenate([begin, begin + self.bandwidth])
        segment = np.tile(np.cumsum(group_starts(self.groups)), 2)
        order = np.lexsort((-sign, end, segment))
        row, sign, end, segment = row[order], sign[order], end[order], segment[order]
        length = np.append(np.diff(end), 0.0)[: 2 * n] / self.bandwidth
        length[np.append(np.diff(segment) > 0, True)[: 2 * n]] = 0.0
        factor = np.sqrt(np.where(length > SHORTEST_STEP, length, 0.0))
        return RunningSums(Events(row, sign, end, segment, factor, n))


@dataclass(frozen=True)
class ClusterRoot:
    """Correlation one within a group, zero between groups."""

    groups: np.ndarray  # (n,): codes, in any order

    def applied(self, t: Array) -> Array:
        """Sums over the rows of each group, shape (..., number of groups)."""
        return in_one_block(self, t, len(self.groups))

    def running(self) -> Running:
        """Sums of groups, in the order of their last rows."""
        return RunningGroups(self.groups)


@dataclass(frozen=True)
class DenseRoot:
    """Any covariance of a moderate number of rows."""

    matrix: np.ndarray  # (n, n): A covariance, positive semidefinite up to round-off

    @cached_property
    def factor(self) -> np.ndarray:
        """A Cholesky factor with the smallest sufficient jitter, shape (n, n).

        If a billionth of the diagonal is insufficient, a root by eigenvalues.
        """
        scale = np.sqrt(np.diagonal(self.matrix))
        scale = np.where(scale > 0, scale, 1.0)
        R = self.matrix / np.outer(scale, scale)
        jitters = len(R) * np.finfo(float).eps * 10.0 ** np.arange(16)
        for jitter in (0.0, *jitters[jitters <= LARGEST_JITTER]):
            try:
                return scale[:, None] * np.linalg.cholesky(R + jitter * np.eye(len(R)))
            except np.linalg.LinAlgError:
                continue
        values, vectors = eigh(R)
        if values[0] < -NEGATIVE_SHARE * values[-1]:
            raise ValueError(
                f"the covariance of {len(R)} rows has the eigenvalue {values[0]:.2g}; use a kernel "
                "that is positive semidefinite in this dimension."
            )
        return scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))

    def applied(self, t: Array) -> Array:
        """t L for t (..., n), shape (..., n)."""
        return t @ like(self.factor, t)


@dataclass(frozen=True)
class StackedRoot:
    """A weighted sum of covariances, whose roots are placed side by side."""

    roots: tuple[Root, ...]  # roots of the same rows
    weights: tuple[float, ...]  # weights of the covariances, not negative

    def __post_init__(self) -> None:
        """Raise an error unless there is a non-negative weight for each root."""
        if len(self.roots) != len(self.weights) or min(self.weights, default=-1.0) < 0:
            raise ValueError(
                f"weights={self.weights} must be {len(self.roots)} non-negative numbers, one for "
                "each root."
            )

    def applied(self, t: Array) -> Array:
        """Columns of all roots, side by side."""
        return self.side_by_side(root.applied(t) for root in self.roots)

    def running(self) -> Running:
        """State of all roots; columns are sorted by blocks of rows, then by root."""
        return _RunningStack(self)

    def side_by_side(self, columns: Iterable[Array | None]) -> Array | None:
        """Columns of each root times the roots of the weights; None if no root has any."""
        both = zip(columns, self.weights, strict=True)
        parts = [part * weight**0.5 for part, weight in both if part is not None]
        return namespace(*parts).concat(parts, axis=-1) if parts else None


class _RunningStack:
    def __init__(self, stack: StackedRoot) -> None:
        self._stack = stack
        self._running = [_sequential(root).running() for root in stack.roots]

    def add(self, t: Array) -> Array:
        return self._stack.side_by_side(running.add(t) for running in self._running)

    def last(self) -> Array | None:
        return self._stack.side_by_side(running.last() for running in self._running)


def takes_blocks(root: Root) -> TypeGuard[SequentialRoot]:
    """Whether a root accepts rows in blocks."""
    if isinstance(root, StackedRoot):
        return all(takes_blocks(part) for part in root.roots)
    return isinstance(root, SequentialRoot)


def _sequential(root: Root) -> SequentialRoot:
    if not isinstance(root, SequentialRoot):
        raise ValueError(
            f"{type(root).__name__} requires all rows at once; fit in memory, or use noise that is "
            "correlated in time or within groups."
        )
    return root


def require_order(time: np.ndarray, groups: np.ndarray) -> None:
    """Raise an error unless rows are sorted by group and by time within a group."""
    starts = group_starts(groups)
    if np.sum(starts) > len(np.unique(groups)) or np.any(np.diff(time)[~starts[1:]] < 0):
        raise ValueError(
            "rows are not in the order of their groups, and of time within a group; sort the table "
            "by these columns, or fit in memory."
        )


def require_positive(name: str, value: float) -> None:
    """Raise an error unless a scale is a positive finite number."""
    if not 0 < value < np.inf:
        raise ValueError(f"{name} must be a positive finite number, got {value}.")
