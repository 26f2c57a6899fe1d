"""Sources of rows: how passes over blocks are carried out, and how a sample is taken.

A fit knows its data only as a ``Source``. A pass is a function of blocks whose results merge
with ``+``; the source says how it is run: one block after another, on threads, on a cluster.
"""

from __future__ import annotations

import itertools
import operator
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from ulmus.core.backend import Array, like, namespace, row_blocks, taken_rows, to_numpy


class Block(NamedTuple):
    """Rows of data: X (n, d), y (K, n), and the square roots of the row weights (n,) or None.

    ``start`` is the number of the first row in an in-memory table.
    """

    X: Array
    y: Array
    root_weight: Array | None
    start: int = 0

    @property
    def target(self) -> Array:
        """The outputs, scaled by the square roots of the row weights, shape (K, n)."""
        return self.y if self.root_weight is None else self.y * self.root_weight

    def taken(self, rows: np.ndarray) -> Block:
        """Some of the rows, by index."""
        xp = namespace(self.y)
        where = xp.asarray(rows, device=self.y.device)
        weight = None if self.root_weight is None else xp.take(self.root_weight, where)
        return Block(taken_rows(self.X, rows), xp.take(self.y, where, axis=1), weight)

    @property
    def n_observed(self) -> int:
        """Rows that count: those of positive weight."""
        if self.root_weight is None:
            return int(self.y.shape[1])
        xp = namespace(self.root_weight)
        return int(xp.sum(xp.astype(self.root_weight > 0, xp.int64)))


RowPass = Callable[[Iterable[Block]], Any]


class Source(Protocol):
    """Blocks of rows, a way to run a pass over them, and a sample of them."""

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass over all blocks and merge its results with ``+``."""

    def sample(self, n_rows: int) -> Block:
        """Some rows of positive weight: ``n_rows`` of them, or all if there are fewer."""

    def for_width(self, width: int) -> Self:
        """The same rows in blocks of a size that suits so many hidden features."""


def reduced(row_pass: RowPass, blocks: Iterable[Block], n_threads: int = 1) -> Any:
    """Run a pass over blocks, on several threads if asked, and merge what they return.

    Threads take blocks from one queue, and each leaves the matrix products single-threaded.
    """
    if n_threads == 1:
        return row_pass(blocks)
    queue = _Queue(iter(blocks))

    def share(_: int) -> Any:
        first = next(queue, None)
        return None if first is None else row_pass(itertools.chain([first], queue))

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        parts = [part for part in pool.map(share, range(n_threads)) if part is not None]
    return reduce(operator.add, parts) if parts else row_pass(())


class _Queue:
    """An iterator that several threads may read."""

    def __init__(self, iterator: Iterator[Block]) -> None:
        self._iterator = iterator
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Block]:
        return self

    def __next__(self) -> Block:
        with self._lock:
            return next(self._iterator)


@dataclass(frozen=True)
class RowBlocks:
    """In-memory rows X (n, d), y (K, n) and root weights (n,) or None, as a source of blocks.

    Parameters
    ----------
    X, y, root_weight : arrays
        The rows.
    reference : array
        An array of the kind to compute with; blocks are brought to it.
    width : int
        Hidden features of a row, which decide how many rows make a block.
    n_threads : int
        Threads that share the blocks of a pass.
    """

    X: Any
    y: Array
    root_weight: Array | None
    reference: Array
    width: int = 1
    n_threads: int = 1

    @property
    def n_rows(self) -> int:
        """Number of rows, those of weight zero included."""
        return int(self.y.shape[1])

    @property
    def used(self) -> np.ndarray:
        """Which rows have a positive weight, shape (n,)."""
        return np.ones(self.n_rows, bool) if self.root_weight is None else self.root_weight > 0

    def __iter__(self) -> Iterator[Block]:
        for rows in row_blocks(self.n_rows, self.width, self.reference):
            yield self.block(rows)._replace(start=rows.start)

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass over all blocks."""
        return reduced(row_pass, self, self.n_threads)

    def for_width(self, width: int) -> RowBlocks:
        """The same rows in blocks of a size that suits so many hidden features."""
        return replace(self, width=width)

    def own_copy(self) -> RowBlocks:
        """The same rows in memory of their own, so that a caller may change his arrays."""
        return replace(self, X=_copied(self.X), y=self.y.copy())

    def block(self, rows: Any) -> Block:
        """Rows by slice or index."""
        weight = self.root_weight
        root_weight = None if weight is None else like(weight[rows], self.reference)
        return Block(taken_rows(self.X, rows), like(self.y[:, rows], self.reference), root_weight)

    def sample(self, n_rows: int) -> Block:
        """Evenly spaced rows of positive weight."""
        return self.block(self.spread_out(n_rows))

    def spread_out(self, n_rows: int) -> np.ndarray:
        """Numbers of evenly spaced rows of positive weight: ``n_rows``, or all if fewer."""
        used = np.flatnonzero(self.used)
        if len(used) <= n_rows:
            return used
        return used[np.linspace(0, len(used) - 1, n_rows).astype(int)]

    def taken(self, rows: np.ndarray) -> RowBlocks:
        """Some of the rows, by index, as a source of their own."""
        weight = None if self.root_weight is None else self.root_weight[rows]
        return replace(self, X=taken_rows(self.X, rows), y=self.y[:, rows], root_weight=weight)


def _copied(X: Any) -> Any:
    if isinstance(X, np.ndarray):
        return X.copy() if X.flags.writeable else X
    return X.copy() if scipy.sparse.issparse(X) else namespace(X).asarray(X, copy=True)


def first_rows(blocks: Iterable[Block], n_rows: int) -> Block:
    """The first rows of positive weight as one block: ``n_rows`` of them, if there are."""
    taken: list[Block] = []
    for block in map(_used_rows, blocks):
        taken.append(block)
        if sum(b.y.shape[1] for b in taken) >= n_rows:
            break
    taken = [block for block in taken if block.y.shape[1] > 0]
    if not taken:
        raise ValueError(
            "blocks gave no rows when read again; a function must return a fresh iterator each "
            "time it is called."
        )
    xp = namespace(taken[0].y)
    X = [block.X for block in taken]
    sparse = scipy.sparse.issparse(X[0])
    rows = scipy.sparse.vstack(X).tocsr() if sparse else namespace(X[0]).concat(X)
    root_weight = None
    if any(block.root_weight is not None for block in taken):
        root_weight = xp.concat(
            [xp.ones_like(b.y[0, :]) if b.root_weight is None else b.root_weight for b in taken]
        )
    return Block(rows, xp.concat([block.y for block in taken], axis=1), root_weight)


def _used_rows(block: Block) -> Block:
    if block.root_weight is None or bool(np.all(to_numpy(block.root_weight) > 0)):
        return block
    return block.taken(np.flatnonzero(to_numpy(block.root_weight)))
