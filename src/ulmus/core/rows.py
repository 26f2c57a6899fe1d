"""In-memory rows, cut into blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ulmus.core.backend import Array, row_blocks
from ulmus.core.moments import Block


@dataclass(frozen=True)
class RowBlocks:
    """Rows of X (n, d), y (K, n) and root weights (n,) or None, as a source of blocks.

    Parameters
    ----------
    X, y, root_weight : arrays
        The rows.
    features : int
        Hidden features of a row, which decide how many rows make a block.
    """

    X: Any
    y: Array
    root_weight: Array | None
    features: int

    def __iter__(self) -> Iterator[Block]:
        for rows in row_blocks(self.y.shape[1], self.features):
            yield self.block(rows)

    def reduce(self, row_pass: Callable[[Iterable[Block]], Any]) -> Any:
        """Run a pass over all blocks, one after another."""
        return row_pass(self)

    def block(self, rows: Any) -> Block:
        """Rows by slice or index."""
        root_weight = None if self.root_weight is None else self.root_weight[rows]
        return Block(self.X[rows], self.y[:, rows], root_weight)

    def sample(self, n_rows: int) -> Block:
        """Evenly spaced rows of positive weight."""
        used = np.arange(self.y.shape[1])
        if self.root_weight is not None:
            used = used[self.root_weight > 0]
        if len(used) <= n_rows:
            return self.block(used)
        return self.block(used[np.linspace(0, len(used) - 1, n_rows).astype(int)])

    def relabelled(self, y: Array) -> RowBlocks:
        """The same rows with other outputs."""
        return replace(self, y=y)
