"""Sources of rows: passes over blocks of rows, and samples.

A fit accesses its data only through a ``Source``. A pass is a function of blocks whose results
merge with ``+``; the source runs it sequentially, on threads or on a cluster.
"""

from __future__ import annotations

import itertools
import operator
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import Array, like, namespace, row_blocks, taken_rows, to_numpy
from ulmus.core.arrays.threads import available_threads, mapped
from ulmus.core.data.row_hashes import STEP, scattered
from ulmus.progress import stage


class Block(NamedTuple):
    """Rows of data: X (n, d), y (K, n), and the square roots of the row weights (n,) or None.

    ``rows`` are the row numbers in an in-memory table, and ``block_ids`` the cross-validation
    blocks of the rows, each an array (n,) or None.
    """

    X: Array
    y: Array
    root_weight: Array | None
    rows: np.ndarray | None = None
    block_ids: np.ndarray | None = None

    @property
    def weighted_y(self) -> Array:
        """The outputs, scaled by the square roots of the row weights, shape (K, n)."""
        return self.y if self.root_weight is None else self.y * self.root_weight

    def taken(self, rows: np.ndarray) -> Block:
        """Some of the rows, by index."""
        xp = namespace(self.y)
        index = xp.asarray(rows, device=self.y.device)
        weight = None if self.root_weight is None else xp.take(self.root_weight, index)
        ids = (None if a is None else a[rows] for a in (self.rows, self.block_ids))
        return Block(taken_rows(self.X, rows), xp.take(self.y, index, axis=1), weight, *ids)

    @property
    def n_observed(self) -> int:
        """Number of rows of positive weight."""
        if self.root_weight is None:
            return int(self.y.shape[1])
        xp = namespace(self.root_weight)
        return int(xp.sum(xp.astype(self.root_weight > 0, xp.int64)))


RowPass = Callable[[Iterable[Block]], Any]


class Source(Protocol):
    """Blocks of rows: runs passes over them and takes samples."""

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass over all blocks and merge its results with ``+``.

        Rows of the same cross-validation block are passed together.
        """

    def sample(self, n_rows: int) -> Block:
        """At most ``n_rows`` rows of positive weight."""

    def for_width(self, width: int) -> Self:
        """The same rows in blocks sized for ``width`` hidden features."""


@runtime_checkable
class OrderedSource(Source, Protocol):
    """A source whose rows have a fixed order."""

    def in_order(self) -> Iterable[Block]:
        """All rows in order, in blocks."""

    def without_blocks(self) -> Self:
        """The same rows without cross-validation blocks."""


def reduced(row_pass: RowPass, blocks: Iterable[Block], n_rows: int | None = None) -> Any:
    """Run a pass over blocks, on the available threads, and merge the results.

    Threads take blocks from one queue. Rows of the same cross-validation block are passed together.
    The share of the rows that are read is reported if their number is given.
    """
    with stage(getattr(row_pass, "title", "Reading rows")) as done:
        return _reduced(row_pass, regroup_blocks(_counted(blocks, n_rows, done)))


def _counted(
    blocks: Iterable[Block], n_rows: int | None, done: Callable[[float], None]
) -> Iterator[Block]:
    """The blocks, while the share of the rows that were passed on is reported."""
    n_read = 0
    for block in blocks:
        yield block
        n_read += block.y.shape[1]
        if n_rows:
            done(n_read / n_rows)


def _reduced(row_pass: RowPass, blocks: Iterable[Block]) -> Any:
    n_threads = available_threads()
    if n_threads == 1:
        return row_pass(blocks)
    queue = _Queue(iter(blocks))

    def share(_: int) -> Any:
        first = next(queue, None)
        return None if first is None else row_pass(itertools.chain([first], queue))

    parts = [part for part in mapped(share, range(n_threads)) if part is not None]
    return reduce(operator.add, parts) if parts else row_pass(())


class _Queue:
    """An iterator for several threads."""

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
    """In-memory rows X (n, d), y (K, n) and root weights (n,) or None, as a source of blocks."""

    X: Any
    y: Array
    root_weight: Array | None
    reference: Array  # an array of the library, dtype and device of the computation
    width: int = 1  # hidden features of a row, which determine the number of rows of a block
    # (n,): cross-validation block of each row; None for leave-one-out.
    block_ids: np.ndarray | None = None
    # (n,): for each row the row that it is a copy of, itself if none; None without copies.
    copy_of: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows, including those of weight zero."""
        return int(self.y.shape[1])

    @property
    def used(self) -> np.ndarray:
        """Rows of positive weight, boolean of shape (n,)."""
        return np.ones(self.n_rows, bool) if self.root_weight is None else self.root_weight > 0

    @cached_property
    def block_index(self) -> np.ndarray:
        """Index of each row's cross-validation block, 0 to n_blocks - 1, shape (n,)."""
        if self.block_ids is None:
            return np.arange(self.n_rows)
        return np.unique(self.block_ids, return_inverse=True)[1]

    @property
    def n_blocks(self) -> int:
        """Number of cross-validation blocks; without block ids, of rows."""
        return self.n_rows if self.block_ids is None else int(self.block_index.max()) + 1

    def __iter__(self) -> Iterator[Block]:
        slices = row_blocks(self.n_rows, self.width, self.reference)
        if self.block_ids is None:
            for few in slices:
                yield self.block(few)._replace(rows=np.arange(few.start, few.stop))
            return
        order = np.argsort(self.block_ids, kind="stable")
        for rows in (order[few] for few in slices):
            yield self.block(rows)._replace(rows=rows, block_ids=self.block_ids[rows])

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass over all blocks."""
        return reduced(row_pass, self, self.n_rows)

    def for_width(self, width: int) -> RowBlocks:
        """The same rows in blocks sized for ``width`` hidden features."""
        return replace(self, width=width)

    def without_blocks(self) -> RowBlocks:
        """The same rows without cross-validation blocks."""
        return replace(self, block_ids=None)

    def counted_once(self, copy_of: np.ndarray | None) -> RowBlocks:
        """The same rows, of which copies of others have weight zero."""
        if copy_of is None:
            return self
        weight = np.ones(self.n_rows) if self.root_weight is None else self.root_weight
        kept = copy_of == np.arange(self.n_rows)
        return replace(self, root_weight=np.where(kept, weight, 0.0), copy_of=copy_of)

    @property
    def n_copies(self) -> int:
        """Number of rows that are copies of others."""
        return 0 if self.copy_of is None else int(np.sum(self.copy_of != np.arange(self.n_rows)))

    def own_copy(self) -> RowBlocks:
        """The same rows, copied, so that the caller may modify the arrays."""
        X = self.X
        if isinstance(X, np.ndarray):
            X = X.copy() if X.flags.writeable else X
        else:
            X = X.copy() if scipy.sparse.issparse(X) else namespace(X).asarray(X, copy=True)
        return replace(self, X=X, y=self.y.copy())

    def block(self, rows: Any) -> Block:
        """Rows by slice or index."""
        weight = self.root_weight
        root_weight = None if weight is None else like(weight[rows], self.reference)
        return Block(taken_rows(self.X, rows), like(self.y[:, rows], self.reference), root_weight)

    def sample(self, n_rows: int) -> Block:
        """Evenly spaced rows of positive weight."""
        return self.block(self.evenly_spaced(n_rows))

    def evenly_spaced(self, n_rows: int) -> np.ndarray:
        """Indices of at most ``n_rows`` evenly spaced rows of positive weight."""
        used = np.flatnonzero(self.used)
        if len(used) <= n_rows:
            return used
        return used[np.linspace(0, len(used) - 1, n_rows).astype(int)]

    def taken(self, rows: np.ndarray) -> RowBlocks:
        """Some of the rows, by index, as a source."""
        weight = None if self.root_weight is None else self.root_weight[rows]
        block_ids = None if self.block_ids is None else self.block_ids[rows]
        X, y = taken_rows(self.X, rows), self.y[:, rows]
        return replace(self, X=X, y=y, root_weight=weight, block_ids=block_ids, copy_of=None)


def first_rows(blocks: Iterable[Block], n_rows: int) -> Block:
    """The first blocks of rows of positive weight, joined until they have ``n_rows`` rows."""
    taken: list[Block] = []
    for block in map(used_rows, blocks):
        taken.append(block)
        if sum(b.y.shape[1] for b in taken) >= n_rows:
            break
    taken = [block for block in taken if block.y.shape[1] > 0]
    if not taken:
        raise ValueError(
            "blocks gave no rows when read again; a function must return a new iterator each time "
            "it is called."
        )
    return joined_block(taken)


def joined_block(blocks: list[Block]) -> Block:
    """The rows of several blocks as one."""
    xp = namespace(blocks[0].y)
    X = [block.X for block in blocks]
    sparse = scipy.sparse.issparse(X[0])
    inputs = scipy.sparse.vstack(X).tocsr() if sparse else namespace(X[0]).concat(X)
    root_weight = None
    if any(block.root_weight is not None for block in blocks):
        root_weight = xp.concat(
            [xp.ones_like(b.y[0, :]) if b.root_weight is None else b.root_weight for b in blocks]
        )
    ids = (_joined([getattr(b, name) for b in blocks]) for name in ("rows", "block_ids"))
    return Block(inputs, xp.concat([block.y for block in blocks], axis=1), root_weight, *ids)


def _joined(arrays: list[np.ndarray | None]) -> np.ndarray | None:
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None


def regroup_blocks(blocks: Iterable[Block]) -> Iterator[Block]:
    """The same rows in blocks that do not split a cross-validation block.

    Block ids must be non-decreasing; an id may not reappear later. Rows of the last id of a block
    are held back until the next id. Blocks without ids are returned unchanged.
    """
    pending: list[Block] = []
    last_id: Any = None
    for block in blocks:
        ids = block.block_ids
        if ids is None or not len(ids):
            yield block
            continue
        if np.any(np.diff(ids) < 0) or (pending and ids[0] < last_id):
            raise ValueError("block ids decrease from row to row; sort the rows by block.")
        n, first = len(ids), int(np.searchsorted(ids, ids[-1]))
        if pending and ids[-1] > last_id:
            yield joined_block([*pending, block.taken(np.arange(first))])
            pending = []
        elif first:
            yield block.taken(np.arange(first))
        last_id = ids[-1]
        pending.append(block.taken(np.arange(first, n)))
    if pending:
        yield joined_block(pending)


def used_rows(block: Block) -> Block:
    """The rows of positive weight."""
    if block.root_weight is None or bool(np.all(to_numpy(block.root_weight) > 0)):
        return block
    return block.taken(np.flatnonzero(to_numpy(block.root_weight)))


# ------------------------------------------------------------ random samples

# Each row has a random key, and a sample consists of the rows of smallest keys. Keys are computed
# from the seed and the row number, so that the sample depends neither on the blocks nor on threads.
# Partitions of a cluster have no row numbers: there, the keys are seeded by the content of a block
# (the ranks of its outputs, and its first row).


@dataclass(frozen=True)
class RowSample:
    """At most ``size`` rows with their keys."""

    size: int
    keys: np.ndarray
    block: Block | None

    def __add__(self, other: RowSample) -> RowSample:
        """Sample of the rows of both."""
        if self.block is None or other.block is None:
            return other if self.block is None else self
        both = first_rows([self.block, other.block], len(self.keys) + len(other.keys))
        return _smallest(self.size, np.concatenate([self.keys, other.keys]), both)


@dataclass(frozen=True)
class SamplePass:
    """Samples rows of positive weight."""

    title: ClassVar[str] = "Sampling rows"

    size: int
    seed: int

    def __call__(self, blocks: Iterable[Block]) -> RowSample:
        """Sample of the blocks."""
        sample = RowSample(self.size, np.empty(0), None)
        for block in blocks:
            used = first_rows([block], block.y.shape[1]) if block.n_observed else None
            if used is not None:
                sample = sample + _smallest(self.size, row_keys(used, self.seed), used)
        return sample


def row_keys(block: Block, seed: int) -> np.ndarray:
    """Random keys of the rows of a block in [0, 1), shape (n,)."""
    n = block.y.shape[1]
    if block.rows is not None:
        return _row_keys(block.rows, seed)
    some = to_numpy(block.y[0, :: max(1, n // 256)])
    content = zlib.crc32(np.argsort(some, kind="stable").astype(np.int64).tobytes())
    # The first row distinguishes blocks whose outputs have the same ranks.
    row = taken_rows(block.X, slice(0, 1))
    row = row.toarray() if scipy.sparse.issparse(row) else to_numpy(row)
    content = zlib.crc32(np.frexp(row.astype(float))[0].tobytes(), content)
    return np.random.default_rng([seed, content, n]).random(n)


def _row_keys(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Hashes of row numbers in [0, 1)."""
    start = np.uint64((seed % 2**31) * 2**32)
    return (scattered((numbers.astype(np.uint64) + start) * STEP) >> np.uint64(11)) * 2.0**-53


def _smallest(size: int, keys: np.ndarray, block: Block) -> RowSample:
    """The rows of smallest keys, sorted by key."""
    kept = np.argsort(keys)[:size]
    return RowSample(size, keys[kept], block.taken(kept))
