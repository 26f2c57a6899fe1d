"""Reproducible random samples of the rows of any source.

Each row has a random key, and the sample consists of the rows of smallest keys; samples of two
sources merge with ``+``. A key is computed from the seed and the row number, so that the sample
depends neither on the blocks nor on threads. Partitions of a cluster have no row numbers: there,
the keys are seeded by the content of a block (the ranks of its outputs, and its first row).
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
            return _row_keys(block.rows, self.seed)
        some = to_numpy(block.y[0, :: max(1, n // 256)])
        content = zlib.crc32(np.argsort(some, kind="stable").astype(np.int64).tobytes())
        # The first row distinguishes blocks whose outputs have the same ranks.
        row = taken_rows(block.X, slice(0, 1))
        row = row.toarray() if scipy.sparse.issparse(row) else to_numpy(row)
        content = zlib.crc32(np.frexp(row.astype(float))[0].tobytes(), content)
        return np.random.default_rng([self.seed, content, n]).random(n)


def _row_keys(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Hashes of row numbers in [0, 1): SplitMix64 (Steele et al., 2014)."""
    step = np.uint64(0x9E3779B97F4A7C15)
    z = (numbers.astype(np.uint64) + np.uint64(1 + (seed % 2**31) * 2**32)) * step
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def _smallest(size: int, keys: np.ndarray, block: Block) -> RowSample:
    """The rows of smallest keys, sorted by key."""
    kept = np.argsort(keys)[:size]
    return RowSample(size, keys[kept], block.taken(kept))
