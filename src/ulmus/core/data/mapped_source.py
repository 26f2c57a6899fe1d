"""A source whose outputs, and possibly weights, are functions of the rows of another source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ulmus.core.data.source import Block, RowBlocks, RowPass, Source

# Returns a block with other outputs and weights of the same rows.
BlockMap = Callable[[Block], Block]


@dataclass(frozen=True)
class MappedSource:
    """The rows of a source, of which each block is mapped when it is read."""

    source: Any
    block_map: BlockMap

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass over all mapped blocks."""
        return self.source.reduce(_MappedPass(row_pass, self.block_map))

    def sample(self, n_rows: int) -> Block:
        """At most ``n_rows`` mapped rows of positive weight."""
        return self.block_map(self.source.sample(n_rows))

    def for_width(self, width: int) -> MappedSource:
        """The same rows in blocks sized for ``width`` hidden features."""
        return replace(self, source=self.source.for_width(width))

    def in_order(self) -> Iterable[Block]:
        """All mapped rows in order, in blocks."""
        return map(self.block_map, self.source.in_order())

    def without_blocks(self) -> MappedSource:
        """The same rows without cross-validation blocks."""
        return replace(self, source=self.source.without_blocks())


@dataclass(frozen=True)
class _MappedPass:
    """A pass over mapped blocks."""

    row_pass: RowPass
    block_map: BlockMap

    @property
    def title(self) -> str:
        return getattr(self.row_pass, "title", "Reading rows")

    def __call__(self, blocks: Iterable[Block]) -> Any:
        return self.row_pass(map(self.block_map, blocks))


def mapped_rows(source: Source, block_map: BlockMap) -> Any:
    """The rows of a source with other outputs and weights; those in memory are mapped once."""
    if not isinstance(source, RowBlocks):
        return MappedSource(source, block_map)
    block = block_map(Block(source.X, source.y, source.root_weight))
    return replace(source, y=np.asarray(block.y), root_weight=block.root_weight)
