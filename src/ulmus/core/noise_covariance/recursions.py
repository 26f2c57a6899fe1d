r"""Cumulative sums over blocks of rows, from which roots in time and of groups are computed.

Such a root is a list of events. Each event adds or subtracts a row, and between events the sum
decays,

.. math:: s_e = \phi_e s_{e - 1} \pm t_{\mathrm{row}(e)}, \qquad \text{column } e = c_e s_e,

with :math:`\phi_e = \exp(-(\mathrm{time}_e - \mathrm{time}_{e - 1}) / \mathrm{scale})` within a
segment and zero at its start. A block of events is one product with a triangular matrix and a
carry from the preceding block, so that the sums run at the speed of matrix products, and rows may
be split into blocks arbitrarily.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, row_major
from ulmus.core.noise_covariance.locations import group_starts

# Events of a block: enough for efficient matrix products, few enough that the triangular product
# is cheap relative to the products of pairs of members.
EVENTS = 128


@dataclass(frozen=True)
class Events:
    """Events in their order, E of them, for n rows."""

    row: np.ndarray  # (E,): row that an event adds or subtracts
    sign: np.ndarray  # (E,): 1 if it adds the row, -1 if it subtracts it
    time: np.ndarray  # (E,): times of the events
    segment: np.ndarray  # (E,): sums are reset where this changes
    factor: np.ndarray  # (E,): factors c of the columns; columns of factor zero are omitted
    n: int  # number of rows
    scale: float = np.inf  # time over which sums decay to 1/e; by default they do not

    @cached_property
    def _latest(self) -> np.ndarray:
        """The last row required by an event or an earlier one, shape (E,)."""
        return np.maximum.accumulate(self.row)

    @cached_property
    def _earliest(self) -> np.ndarray:
        """The first row required by an event or a later one, and n at the end, shape (E + 1,)."""
        return np.minimum.accumulate(np.append(self.row, self.n)[::-1])[::-1]

    def ready(self, n_rows: int) -> int:
        """Number of events that require only the first ``n_rows`` rows."""
        return int(np.searchsorted(self._latest, n_rows))

    def first_needed(self, done: int) -> int:
        """The first row required after the first ``done`` events."""
        return int(self._earliest[done])

    def blocks(self, start: int, stop: int) -> Iterator[slice]:
        """Slices of at most ``EVENTS`` events."""
        for first in range(start, stop, EVENTS):
            yield slice(first, min(first + EVENTS, stop))

    def triangle(self, e: slice) -> np.ndarray:
        """Matrix from the rows of a block of events to its columns and the sum at its end."""
        lag = self.time[None, e] - self.time[e, None]
        within = np.triu(self.segment[None, e] == self.segment[e, None])
        sums = self._decayed(lag, within) * self.sign[e, None]
        return self._with_end(sums, e)

    def decay(self, e: slice) -> np.ndarray:
        """Coefficients of the sum before a block of events, in the same columns."""
        lag = self.time[e] - self.time[e.start - 1]
        within = self.segment[e] == self.segment[e.start - 1]
        return self._with_end(self._decayed(lag, within)[None, :], e)

    def _decayed(self, lag: np.ndarray, within: np.ndarray) -> np.ndarray:
        """Remaining share of a sum after a time lag, within a segment."""
        return np.where(within, np.exp(-np.where(within, lag, 0.0) / self.scale), 0.0)

    def _with_end(self, sums: np.ndarray, e: slice) -> np.ndarray:
        kept = self.factor[e] > 0
        return np.column_stack([sums[:, kept] * self.factor[e][kept], sums[:, -1]])


class RunningSums:
    """Columns of events, from blocks of rows in their order."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._n_rows, self._done = 0, 0
        self._pending: Array | None = None  # rows that further events require
        self._carry: Array | None = None  # the sum after the last event

    def add(self, t: Array) -> Array:
        """The columns that further rows t (..., b) complete, shape (..., b')."""
        xp, lead = namespace(t), t.shape[:-1]
        rows = xp.reshape(t, (math.prod(lead), t.shape[-1]))
        self._n_rows += rows.shape[1]
        require_rows(self._n_rows, self._events.n)
        if self._pending is not None:
            rows = xp.concat([self._pending, rows], axis=1)
        first, ready = self._n_rows - rows.shape[1], self._events.ready(self._n_rows)
        parts = [self._columns(rows, first, e) for e in self._events.blocks(self._done, ready)]
        self._done = ready
        needed = self._events.first_needed(ready)
        self._pending = row_major(rows[:, needed - first :]) if needed < self._n_rows else None
        columns = xp.concat(parts, axis=1) if parts else rows[:, :0]
        return xp.reshape(columns, (*lead, columns.shape[1]))

    def last(self) -> Array | None:
        """None: no event requires further rows."""
        return None

    def _columns(self, rows: Array, first: int, e: slice) -> Array:
        index = self._events.row[e] - first
        sums = _taken(rows, index) @ like(self._events.triangle(e), rows)
        if self._carry is not None:
            sums = sums + self._carry * like(self._events.decay(e), rows)
        self._carry = sums[:, -1:]
        return sums[:, :-1]


class RunningGroups:
    """Sums over the rows of each group, returned when the group is complete."""

    def __init__(self, groups: np.ndarray) -> None:
        codes = np.unique(groups, return_inverse=True)[1]
        # Groups are identified by their last rows: the order of sums does not depend on blocks.
        self._ends = np.zeros(len(groups), dtype=int)
        np.maximum.at(self._ends, codes, np.arange(len(groups)))
        self._ends = self._ends[codes]
        self._n_rows = 0
        self._pending = np.empty(0, dtype=int)
        self._sums: Array | None = None

    def add(self, t: Array) -> Array:
        """Sums (..., g) of the groups that further rows t (..., b) complete."""
        xp, start = namespace(t), self._n_rows
        self._n_rows += t.shape[-1]
        require_rows(self._n_rows, len(self._ends))
        ends = np.concatenate([self._pending, self._ends[start : self._n_rows]])
        parts = t if self._sums is None else xp.concat([self._sums, t], axis=-1)
        ends, sums = _sums_by(ends, parts)
        complete = int(np.searchsorted(ends, self._n_rows))
        self._pending, self._sums = ends[complete:], sums[..., complete:]
        return sums[..., :complete]

    def last(self) -> Array | None:
        """None: every group is complete with its last row."""
        return None


def _sums_by(codes: np.ndarray, t: Array) -> tuple[np.ndarray, Array]:
    """Codes in ascending order, and the sums of the columns of t (..., b) of each, (..., g)."""
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    starts = group_starts(codes)
    ends = np.append(starts[1:], True)[: len(codes)]
    zero = np.zeros(len(codes))
    events = Events(order, zero + 1, zero, np.cumsum(starts), ends.astype(float), len(codes))
    return codes[ends], RunningSums(events).add(t)


def _taken(rows: Array, index: np.ndarray) -> Array:
    """Columns by index, without a copy if they are consecutive."""
    if np.array_equal(index, np.arange(index[0], index[0] + len(index))):
        return rows[:, int(index[0]) : int(index[0]) + len(index)]
    xp = namespace(rows)
    return xp.take(rows, xp.asarray(index, device=rows.device), axis=1)


def require_rows(n_given: int, n: int) -> None:
    """Raise an error for more rows than the root has."""
    if n_given > n:
        raise ValueError(f"a root of {n} rows accepts each row once, got {n_given} rows.")
