"""Blocks of rows for cross-validation with correlated errors: along time, in space, by groups.

Block ids are integers 0, 1, ..., equal for the rows of a block. Errors of neighbouring rows are
correlated; a prediction is independent of a row's own error only if correlated neighbours are
excluded with it, which requires blocks longer than the range of the correlation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, namespace
from ulmus.core.arrays.linalg import eigh

# With fewer blocks, each would contain more than a fifth of the rows.
FEWEST_BLOCKS = 5
# Principal axes whose variances differ by less than this share have no order.
SAME_LENGTH = 1e-6
# Positions in space relative to the size of a cell: round-off of their third moment, and digits of
# distinct positions.
ROUND_OFF, DIGITS = 1e-9, 10


def default_rows(n_rows: int) -> int:
    """Rows of a block: 3 n^(1/3), at most a fifth of all.

    With decaying correlation, blocks must grow with n, and more slowly than their number.
    """
    return max(1, min(math.ceil(3.0 * n_rows ** (1 / 3)), n_rows // FEWEST_BLOCKS))


def group_blocks(groups: np.ndarray) -> np.ndarray:
    """Block ids (n,) of rows by their groups, in any order."""
    return _require_blocks(np.unique(groups, return_inverse=True)[1], "groups")


def time_blocks(
    time: np.ndarray, groups: np.ndarray | None = None, rows: int | None = None
) -> np.ndarray:
    """Block ids (n,) of segments of time within groups, increasing along groups and time.

    Segments of a group have about equal numbers of rows, at most ``rows`` (``default_rows`` if
    omitted). Rows of equal time are in the same block.
    """
    codes = np.zeros(len(time), int)
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1]
    order = np.lexsort((time, codes))
    codes, time = codes[order], time[order]
    starts = block_starts(codes)
    sizes = np.diff(starts, append=len(codes))
    n_segments = np.repeat(-(-sizes // (rows or default_rows(len(time)))), sizes)
    # Rows of equal time are in the segment of the first of them.
    tied = np.append(False, (time[1:] == time[:-1]) & (codes[1:] == codes[:-1]))
    first = np.maximum.accumulate(np.where(tied, 0, np.arange(len(order))))
    segment = (first - np.repeat(starts, sizes)) * n_segments // np.repeat(sizes, sizes)
    new = (codes[1:] != codes[:-1]) | (segment[1:] != segment[:-1])
    block_ids = np.empty(len(order), int)
    block_ids[order] = np.cumsum(np.append(0, new))
    return _require_blocks(block_ids, "time")


def spatial_blocks(coords: np.ndarray, rows: int | None = None) -> np.ndarray:
    """Block ids (n,) of cells in space, from recursive splits across the principal axes.

    Cells have about ``rows`` rows (``default_rows`` if omitted), and do not depend on origin and
    rotation of the coordinates (n, c), nor on the order of the rows. Rows of equal coordinates are
    in the same block.
    """
    n = len(coords)
    n_cells = -(-n // (rows or default_rows(n)))
    block_ids = np.empty(n, int)
    for cell, index in enumerate(_cells(coords, np.arange(n), n_cells)):
        block_ids[index] = cell
    return _require_blocks(block_ids, "coords")


def _cells(coords: np.ndarray, rows: np.ndarray, n_cells: int) -> list[np.ndarray]:
    """Rows of each cell; cells are split between two distinct positions along an axis."""
    if n_cells < 2:
        return [rows]
    half = n_cells // 2
    for values in _positions(coords[rows]):
        border = _border(np.sort(values), half / n_cells)
        if border is not None:
            below = values < border
            low = _cells(coords, rows[below], half)
            return low + _cells(coords, rows[~below], n_cells - half)
    return [rows]


def _positions(coords: np.ndarray) -> Iterator[np.ndarray]:
    """Positions (n,) of rows along the principal axes of their coordinates, the longest first.

    Without a longest axis, as on a square lattice, they are the axes of the coordinates. Values are
    rounded, so that round-off does not separate the rows of a lattice.
    """
    coords = coords - coords.mean(axis=0)
    size = np.max(np.abs(coords), initial=0.0)
    if size == 0:
        return
    coords = coords / size
    spread, axes = eigh(coords.T @ coords / len(coords))
    if len(spread) > 1 and spread[-1] - spread[-2] <= SAME_LENGTH * spread[-1]:
        axes = np.eye(len(spread))[:, np.argsort(np.ptp(coords, axis=0), kind="stable")]
    for axis in axes.T[::-1]:
        # Not a matrix product, whose round-off differs between rows of equal coordinates.
        values = np.sum(coords * axis, axis=1)
        skewness = float(np.mean(values**3))
        # The longer tail defines the direction of an axis.
        backwards = skewness < 0 if abs(skewness) > ROUND_OFF else axis[np.argmax(abs(axis))] < 0
        yield np.round(-values if backwards else values, DIGITS)


def _border(values: np.ndarray, share: float) -> float | None:
    """Split value with about a share of the sorted values below it; None if all are equal."""
    steps = np.flatnonzero(values[1:] > values[:-1]) + 1
    if not len(steps):
        return None
    return float(values[steps[np.argmin(np.abs(steps - share * len(values)))]])


def _require_blocks(block_ids: np.ndarray, axis: str) -> np.ndarray:
    """The ids, if there are enough blocks for cross-validation."""
    n_blocks = len(np.unique(block_ids))
    if n_blocks < FEWEST_BLOCKS:
        raise ValueError(
            f"{axis} gives {n_blocks} blocks of {len(block_ids)} rows, and leave-block-out needs "
            f"at least {FEWEST_BLOCKS}; give rows of more different {axis}, or noise='auto' for "
            "independent rows."
        )
    return block_ids


# ------------------------------------------------------------ runs of blocks


class BlockRun(NamedTuple):
    """Consecutive blocks of equal size: their rows, number of blocks, and rows of a block."""

    rows: slice
    n_blocks: int
    size: int

    def stacked(self, values: Array) -> Array:
        """Values (m, a, n) of all rows as a stack of the blocks, shape (m, B, a, size)."""
        xp, (m, a, _) = namespace(values), values.shape
        blocks = xp.reshape(values[:, :, self.rows], (m, a, self.n_blocks, self.size))
        return xp.permute_dims(blocks, (0, 2, 1, 3))

    def unstacked(self, values: Array) -> Array:
        """Inverse of ``stacked``, (m, B, a, size) to (m, a, B x size)."""
        xp, (m, _, a, _) = namespace(values), values.shape
        return xp.reshape(xp.permute_dims(values, (0, 2, 1, 3)), (m, a, self.n_blocks * self.size))


def block_starts(block_ids: np.ndarray) -> np.ndarray:
    """Index of the first row of each block, from block ids (n,) of sorted rows."""
    return np.flatnonzero(np.append(True, block_ids[1:] != block_ids[:-1])[: len(block_ids)])


def block_runs(block_ids: np.ndarray) -> Iterator[BlockRun]:
    """Runs of consecutive blocks of equal size, in order."""
    starts = block_starts(block_ids)
    sizes = np.diff(starts, append=len(block_ids))
    firsts = block_starts(sizes)
    for first, last in zip(firsts, [*firsts[1:], len(sizes)], strict=True):
        size, n_blocks = int(sizes[first]), int(last - first)
        start = int(starts[first])
        yield BlockRun(slice(start, start + n_blocks * size), n_blocks, size)
