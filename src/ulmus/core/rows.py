"""Sources of rows: how passes over blocks are carried out on one machine."""

from __future__ import annotations

import itertools
import operator
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ulmus.core.backend import Array, like, row_blocks, taken_rows
from ulmus.core.moments import Block

RowPass = Callable[[Iterable[Block]], Any]


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
    features : int
        Hidden features of a row, which decide how many rows make a block.
    reference : array
        An array of the kind to compute with; blocks are brought to it.
    n_threads : int
        Threads that share the blocks of a pass.
    """

    X: Any
    y: Array
    root_weight: Array | None
    features: int
    reference: Array
    n_threads: int = 1

    def __iter__(self) -> Iterator[Block]:
        for rows in row_blocks(self.y.shape[1], self.features, self.reference):
            yield self.block(rows)._replace(start=rows.start)

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass over all blocks."""
        return reduced(row_pass, self, self.n_threads)

    def block(self, rows: Any) -> Block:
        """Rows by slice or index."""
        weight = self.root_weight
        root_weight = None if weight is None else like(weight[rows], self.reference)
        return Block(taken_rows(self.X, rows), like(self.y[:, rows], self.reference), root_weight)

    def sample(self, n_rows: int) -> Block:
        """Evenly spaced rows of positive weight."""
        used = np.arange(self.y.shape[1])
        if self.root_weight is not None:
            used = used[self.root_weight > 0]
        if len(used) <= n_rows:
            return self.block(used)
        return self.block(used[np.linspace(0, len(used) - 1, n_rows).astype(int)])
