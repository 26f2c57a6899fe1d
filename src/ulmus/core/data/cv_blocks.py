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

# With fewer blocks, each would contain more than a fifth of the rows.
FEWEST_BLOCKS = 5
# Length of a block in correlation scales: a row in its middle has a correlation of
# exp(-2.5) = .08 with the nearest row outside.
SCALES = 5.0


def default_rows(n_rows: int) -> int:
    """Rows of a block if the correlation scale is unknown: 3 n^(1/3), at most a fifth of all.

    With decaying correlation, blocks must grow with n, and more slowly than their number.
    """
    return max(1, min(math.ceil(3.0 * n_rows ** (1 / 3)), n_rows // FEWEST_BLOCKS))


def group_blocks(groups: np.ndarray) -> np.ndarray:
    """Block ids (n,) of rows by their groups, in any order."""
    return _require_blocks(_codes(groups), "groups")


def time_blocks(
    time: np.ndarray,
    groups: np.ndarray | None = None,
    *,
    rows: int | None = None,
    span: float | None = None,
    scale: float | None = None,
) -> np.ndarray:
    """Block ids of segments of time, within groups.

    Parameters
    ----------
    time : ndarray of shape (n,)
        Times of the rows, in any order. Rows of equal time are in the same block.
    groups : ndarray of shape (n,) or None
        Series of each row; a segment contains rows of one series.
    rows : int or None
        Maximum number of rows of a segment; numbers are about equal within a group.
    span : float or None
        Minimum length of a segment in units of time; lengths are equal within a group.
    scale : float or None
        Time over which the correlation of the noise decays to 1/e: segments are five times as
        long, and at most a fifth of all rows. Without any of the three, they have
        ``default_rows``.

    Returns
    -------
    block_ids : ndarray of shape (n,)
        Ids, increasing along groups and time.
    """
    time = _finite("time", time)
    codes = np.zeros(len(time), int) if groups is None else _codes(groups)
    if len(codes) != len(time):
        raise ValueError(f"groups has {len(codes)} rows and time {len(time)}; give one of each.")
    size = _block_size("time", rows=rows, span=span, scale=scale)
    if rows is not None:
        return _require_blocks(_segments_of_rows(time, codes, int(rows)), size)
    if span is not None:
        return _require_blocks(_segments_of_time(time, codes, span), size)
    if scale is not None:
        block_ids = _segments_of_time(time, codes, SCALES * scale)
        if not _too_large(block_ids):
            return block_ids
    limit = default_rows(len(time)) if scale is None else max(1, len(time) // FEWEST_BLOCKS)
    return _require_blocks(_segments_of_rows(time, codes, limit), size)


def spatial_blocks(
    coords: np.ndarray,
    *,
    rows: int | None = None,
    extent: float | None = None,
    scale: float | None = None,
) -> np.ndarray:
    """Block ids of cells in space, from recursive splits of the longest side.

    Parameters
    ----------
    coords : ndarray of shape (n, c)
        Locations of the rows. Rows of equal location are in the same block.
    rows : int or None
        Approximate number of rows of a cell.
    extent : float or None
        Minimum side of a cell: cells are split in halves of about equal numbers of rows while
        both are this wide.
    scale : float or None
        Distance over which the correlation of the noise decays to 1/e: cells are five times as
        wide, and at most a fifth of all rows. Without any of the three, they have
        ``default_rows``.

    Returns
    -------
    block_ids : ndarray of shape (n,)
        Ids.
    """
    coords = _finite("coords", coords)
    n = len(coords)
    coords = coords.reshape(n, -1)
    size = _block_size("coords", rows=rows, extent=extent, scale=scale)
    if rows is not None:
        return _require_blocks(_cell_ids(coords, -(-n // int(rows)), 0.0), size)
    if extent is not None:
        return _require_blocks(_cell_ids(coords, n, extent), size)
    if scale is not None:
        block_ids = _cell_ids(coords, n, SCALES * scale)
        if not _too_large(block_ids):
            return block_ids
    limit = default_rows(n) if scale is None else max(1, n // FEWEST_BLOCKS)
    return _require_blocks(_cell_ids(coords, -(-n // limit), 0.0), size)


# ------------------------------------------------------------ segments of time


def _segments_of_rows(time: np.ndarray, codes: np.ndarray, rows: int) -> np.ndarray:
    order = np.lexsort((time, codes))
    starts, sizes = _equal_runs(codes[order])
    position = np.arange(len(order)) - np.repeat(starts, sizes)
    n_segments = np.repeat(-(-sizes // rows), sizes)
    # Rows of equal time are in the segment of the first of them.
    codes, time = codes[order], time[order]
    tied = np.append(False, (time[1:] == time[:-1]) & (codes[1:] == codes[:-1]))
    first = np.maximum.accumulate(np.where(tied, 0, np.arange(len(order))))
    return _segment_ids(order, codes, position[first] * n_segments // np.repeat(sizes, sizes))


def _segments_of_time(time: np.ndarray, codes: np.ndarray, span: float) -> np.ndarray:
    order = np.lexsort((time, codes))
    codes, time = codes[order], time[order]
    starts, sizes = _equal_runs(codes)
    length = time[starts + sizes - 1] - time[starts]
    n_segments = np.maximum(np.floor(length / span), 1)
    width = np.where(length > 0, length, 1.0) / n_segments
    since = (time - np.repeat(time[starts], sizes)) / np.repeat(width, sizes)
    segment = np.minimum(np.floor(since), np.repeat(n_segments - 1, sizes))
    return _segment_ids(order, codes, segment)


def _equal_runs(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and lengths of runs of equal codes."""
    starts = block_starts(codes)
    return starts, np.diff(starts, append=len(codes))


def _segment_ids(order: np.ndarray, codes: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Block ids of the rows from the groups and segments of the sorted rows."""
    new = (codes[1:] != codes[:-1]) | (segment[1:] != segment[:-1])
    block_ids = np.empty(len(order), int)
    block_ids[order] = np.cumsum(np.append(0, new))
    return block_ids


# ------------------------------------------------------------ cells in space


def _cell_ids(coords: np.ndarray, n_cells: int, extent: float) -> np.ndarray:
    block_ids = np.empty(len(coords), int)
    for cell, rows in enumerate(_cells(coords, np.arange(len(coords)), n_cells, extent)):
        block_ids[rows] = cell
    return block_ids


def _cells(coords: np.ndarray, rows: np.ndarray, n_cells: int, extent: float) -> list[np.ndarray]:
    """Rows of each cell, by recursive splits in proportion to the numbers of cells.

    The longest side is split whose parts both have the extent, between two distinct values.
    """
    if n_cells < 2:
        return [rows]
    half = n_cells // 2
    for axis in np.argsort(-np.ptp(coords[rows], axis=0), kind="stable"):
        values = coords[rows, axis]
        border = _border(np.sort(values), half / n_cells)
        if border is None or min(border - values.min(), values.max() - border) < extent:
            continue
        below = values < border
        low = _cells(coords, rows[below], half, extent)
        return low + _cells(coords, rows[~below], n_cells - half, extent)
    return [rows]


def _border(values: np.ndarray, share: float) -> float | None:
    """Split value with about a share of the sorted values below it; None if all are equal."""
    steps = np.flatnonzero(values[1:] > values[:-1]) + 1
    if not len(steps):
        return None
    return float(values[steps[np.argmin(np.abs(steps - share * len(values)))]])


# ------------------------------------------------------------ checks


def _codes(groups: np.ndarray) -> np.ndarray:
    return np.unique(np.asarray(groups), return_inverse=True)[1]


def _finite(name: str, values: np.ndarray) -> np.ndarray:
    numbers = np.asarray(values, dtype=float)
    if not np.all(np.isfinite(numbers)):
        row = int(np.argwhere(~np.isfinite(numbers))[0][0])
        raise ValueError(f"{name} of row {row} is not a number; drop such rows or fill them in.")
    return numbers


def _block_size(axis: str, **sizes: float | None) -> str:
    """The size that determines the blocks, as ``name=value``; the axis if there is none."""
    given = {name: size for name, size in sizes.items() if size is not None}
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} both set the size of a block; give one of them.")
    for name, size in given.items():
        if not 0 < size < math.inf or (name == "rows" and size != int(size)):
            requirement = "an integer above 0" if name == "rows" else "a number above 0"
            raise ValueError(f"{name}={size!r} must be {requirement}.")
        return f"{name}={size!r}"
    return axis


def _too_large(block_ids: np.ndarray) -> bool:
    """Whether a block has more than a fifth of all rows."""
    return bool(np.bincount(block_ids).max() * FEWEST_BLOCKS > len(block_ids))


def _require_blocks(block_ids: np.ndarray, size: str) -> np.ndarray:
    """The ids, if there are enough blocks for cross-validation."""
    n_blocks = len(np.unique(block_ids))
    if n_blocks < FEWEST_BLOCKS:
        suggestion = "use smaller blocks, or leave-one-out."
        if size in ("time", "coords", "groups"):
            suggestion = (
                f"give rows of more different {size}, or noise='auto' for independent rows."
            )
        raise ValueError(
            f"{size} gives {n_blocks} blocks of {len(block_ids)} rows, and leave-block-out needs "
            f"at least {FEWEST_BLOCKS}; {suggestion}"
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
