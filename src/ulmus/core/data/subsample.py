"""A random sample of the rows of any source, the same however often it is taken.

Every row gets a random key, and the rows of smallest keys are the sample; those of two sources
merge with ``+``. The key of a row follows from the seed and its number in the table, so that no
cut into blocks and no thread changes the sample. Partitions of a cluster do not know these numbers:
there, keys follow from what is in a block (the order of its outputs by size, and its first row).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import taken_rows, to_numpy
from ulmus.core.data.source import Block, first_rows

# Outputs that tell a block from others.
KEY_ROWS = 256


@dataclass(frozen=True)
class RowSample:
    """Rows with their keys, at most ``size`` of them."""

    size: int
    keys: np.ndarray
    block: Block | None

    def __add__(self, other: RowSample) -> RowSample:
        """The sample of the rows of both."""
        if self.block is None or other.block is None:
            return other if self.block is None else self
        both = first_rows([self.block, other.block], len(self.keys) + len(other.keys))
        return _smallest(self.size, np.concatenate([self.keys, other.keys]), both)


@dataclass(frozen=True)
class SamplePass:
    """Takes a sample of rows of positive weight."""

    title: ClassVar[str] = "sample of rows"

    size: int
    seed: int

    def __call__(self, blocks: Iterable[Block]) -> RowSample:
        """Sample of the blocks."""
        sample = RowSample(self.size, np.empty(0), None)
        for block in blocks:
            used = first_rows([block], block.y.shape[1]) if block.n_observed else None
            if used is not None:
                sample = sample + _smallest(self.size, self._keys(used), used)
        return sample

    def _keys(self, block: Block) -> np.ndarray:
        n = block.y.shape[1]
        if block.rows is not None:
            return _scrambled(block.rows, self.seed)
        some = to_numpy(block.y[0, :: max(1, n // KEY_ROWS)])
        content = zlib.crc32(np.argsort(some, kind="stable").astype(np.int64).tobytes())
        # Mantissas of one row tell blocks apart whose outputs are in the same order.
        row = taken_rows(block.X, slice(0, 1))
        row = row.toarray() if scipy.sparse.issparse(row) else to_numpy(row)
        content = zlib.crc32(np.frexp(row.astype(float))[0].tobytes(), content)
        return np.random.default_rng([self.seed, content, n]).random(n)


def _scrambled(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Random numbers in [0, 1) for whole numbers, each by itself: SplitMix64 (Steele et al., 2014).

    The key of a row is then the same however the table is cut into blocks.
    """
    step = np.uint64(0x9E3779B97F4A7C15)
    z = (numbers.astype(np.uint64) + np.uint64(1 + (seed % 2**31) * 2**32)) * step
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def _smallest(size: int, keys: np.ndarray, block: Block) -> RowSample:
    """The rows of smallest keys, in the order of their keys."""
    kept = np.argsort(keys)[:size]
    return RowSample(size, keys[kept], block.taken(kept))
