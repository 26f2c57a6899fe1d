r"""Running sums over rows, in blocks: what roots of covariances in time and in groups are made of.

A root of this kind is a list of events. Each event adds a row, or takes it away again, and between
events the sum so far fades,

.. math:: s_e = \phi_e s_{e - 1} \pm t_{\mathrm{row}(e)}, \qquad \text{column } e = c_e s_e,

with :math:`\phi_e = \exp(-(\mathrm{time}_e - \mathrm{time}_{e - 1}) / \mathrm{scale})` within a
segment and zero at its start. A block of events is one product with a triangular matrix and a
carry from the block before it, so that the sums run at the speed of matrix products, and rows may
come in any blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, row_major
from ulmus.core.noise_covariance.locations import group_starts

# Events of a block: enough for matrix products at full speed, few enough that a triangle, which
# costs as many products as it has rows, is cheap beside the products of pairs of members.
EVENTS = 128


@dataclass(frozen=True)
class Events:
    """Events in their order, E of them, for n rows.

    Parameters
    ----------
    row : ndarray of shape (E,)
        The row that an event adds or takes away.
    sign : ndarray of shape (E,)
        1 if it adds the row, -1 if it takes it away.
    time : ndarray of shape (E,)
        Times of the events.
    segment : ndarray of shape (E,)
        Sums start anew where this changes.
    factor : ndarray of shape (E,)
        Factors c of the columns; a column whose factor is zero is left out.
    n : int
        Number of rows.
    scale : float, optional
        Time over which sums fade to 1/e; by default they do not.
    """

    row: np.ndarray
    sign: np.ndarray
    time: np.ndarray
    segment: np.ndarray
    factor: np.ndarray
    n: int
    scale: float = np.inf

    @cached_property
    def _latest(self) -> np.ndarray:
        """The last row that an event or one before it needs, shape (E,)."""
        return np.maximum.accumulate(self.row)

    @cached_property
    def _earliest(self) -> np.ndarray:
        """The first row that an event or one after it needs, and n at the end, shape (E + 1,)."""
        return np.minimum.accumulate(np.append(self.row, self.n)[::-1])[::-1]

    def ready(self, seen: int) -> int:
        """Number of events that need no row after the first ``seen``."""
        return int(np.searchsorted(self._latest, seen))

    def first_needed(self, done: int) -> int:
        """The first row that an event after the first ``done`` needs."""
        return int(self._earliest[done])

    def blocks(self, start: int, stop: int) -> Iterator[slice]:
        """Slices of at most ``EVENTS`` events."""
        for first in range(start, stop, EVENTS):
            yield slice(first, min(first + EVENTS, stop))

    def triangle(self, e: slice) -> np.ndarray:
        """From the rows of a block of events to its columns, and last the sum at its end."""
        lag = self.time[None, e] - self.time[e, None]
        within = np.triu(self.segment[None, e] == self.segment[e, None])
        sums = self._faded(lag, within) * self.sign[e, None]
        return self._with_end(sums, e)

    def fading(self, e: slice) -> np.ndarray:
        """What is left, in the same columns, of the sum before a block of events."""
        lag = self.time[e] - self.time[e.start - 1]
        within = self.segment[e] == self.segment[e.start - 1]
        return self._with_end(self._faded(lag, within)[None, :], e)

    def _faded(self, lag: np.ndarray, within: np.ndarray) -> np.ndarray:
        """What is left of a sum after a time, within a segment."""
        return np.where(within, np.exp(-np.where(within, lag, 0.0) / self.scale), 0.0)

    def _with_end(self, sums: np.ndarray, e: slice) -> np.ndarray:
        kept = self.factor[e] > 0
        return np.column_stack([sums[:, kept] * self.factor[e][kept], sums[:, -1]])


class RunningSums:
    """Columns of events, from blocks of rows in their order."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._seen, self._done = 0, 0
        self._kept: Array | None = None
        self._carry: Array | None = None

    def add(self, t: Array) -> Array:
        """The columns that further rows t (..., b) complete, shape (..., b')."""
        xp, lead = namespace(t), t.shape[:-1]
        rows = xp.reshape(t, (math.prod(lead), t.shape[-1]))
        self._seen += rows.shape[1]
        require_rows(self._seen, self._events.n)
        if self._kept is not None:
            rows = xp.concat([self._kept, rows], axis=1)
        first, ready = self._seen - rows.shape[1], self._events.ready(self._seen)
        parts = [self._columns(rows, first, e) for e in self._events.blocks(self._done, ready)]
        self._done = ready
        needed = self._events.first_needed(ready)
        self._kept = row_major(rows[:, needed - first :]) if needed < self._seen else None
        columns = xp.concat(parts, axis=1) if parts else rows[:, :0]
        return xp.reshape(columns, (*lead, columns.shape[1]))

    def last(self) -> Array | None:
        """Nothing: an event needs no row after the last."""
        return None

    def _columns(self, rows: Array, first: int, e: slice) -> Array:
        index = self._events.row[e] - first
        sums = _taken(rows, index) @ like(self._events.triangle(e), rows)
        if self._carry is not None:
            sums = sums + self._carry * like(self._events.fading(e), rows)
        self._carry = sums[:, -1:]
        return sums[:, :-1]


class RunningGroups:
    """Sums over the rows of each group, which come when the group is complete."""

    def __init__(self, groups: np.ndarray) -> None:
        codes = np.unique(groups, return_inverse=True)[1]
        # A group is named by its last row, so that sums come in one order whatever the blocks.
        self._ends = np.zeros(len(groups), dtype=int)
        np.maximum.at(self._ends, codes, np.arange(len(groups)))
        self._ends = self._ends[codes]
        self._seen = 0
        self._pending = np.empty(0, dtype=int)
        self._sums: Array | None = None

    def add(self, t: Array) -> Array:
        """Sums (..., g) of the groups that further rows t (..., b) complete."""
        xp, start = namespace(t), self._seen
        self._seen += t.shape[-1]
        require_rows(self._seen, len(self._ends))
        ends = np.concatenate([self._pending, self._ends[start : self._seen]])
        parts = t if self._sums is None else xp.concat([self._sums, t], axis=-1)
        ends, sums = _sums_by(ends, parts)
        complete = int(np.searchsorted(ends, self._seen))
        self._pending, self._sums = ends[complete:], sums[..., complete:]
        return sums[..., :complete]

    def last(self) -> Array | None:
        """Nothing: every group is complete with its last row."""
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
    """Columns by index, without a copy where they follow one another."""
    if np.array_equal(index, np.arange(index[0], index[0] + len(index))):
        return rows[:, int(index[0]) : int(index[0]) + len(index)]
    xp = namespace(rows)
    return xp.take(rows, xp.asarray(index, device=rows.device), axis=1)


def require_rows(n_given: int, n: int) -> None:
    """Refuse more rows than the root has."""
    if n_given > n:
        raise ValueError(f"{n_given} rows were given to a root of {n}; give each row once.")
