"""How rows are cut into blocks that are left out together: along time, in space, by groups.

A cut is an array of labels 0, 1, ...: rows of a block have the same. A row's neighbours carry its
noise, and leaving them out with it works where a block is longer than noise hangs together: the
rows inside it are then predicted from rows that know nothing of their noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, namespace

# Fewer blocks say little about new rows, and each would be too large a part of all rows.
FEWEST_BLOCKS = 5
# Blocks are so many correlation scales long: a row in the middle has a correlation of
# exp(-2.5) = .08 with the nearest row outside.
SCALES = 5.0
# Where the scale is not known, they have so many times the cube root of n rows: dependence that
# dies out needs blocks that grow with n, and more slowly than their number.
ROOT_FACTOR = 3.0


def default_rows(n_rows: int) -> int:
    """Rows of a block where nothing is known: 3 n^(1/3), but no more than a fifth of all."""
    return max(1, min(math.ceil(ROOT_FACTOR * n_rows ** (1 / 3)), n_rows // FEWEST_BLOCKS))


def group_blocks(groups: np.ndarray) -> np.ndarray:
    """Labels (n,) of rows by their groups, which are in any order."""
    return _enough(_codes(groups), "groups")


def time_blocks(
    time: np.ndarray,
    groups: np.ndarray | None = None,
    *,
    rows: int | None = None,
    span: float | None = None,
    scale: float | None = None,
) -> np.ndarray:
    """Labels of segments of time, within groups.

    Parameters
    ----------
    time : ndarray of shape (n,)
        Times of the rows, in any order. Rows of the same time stay together.
    groups : ndarray of shape (n,) or None
        Series that the rows belong to; no segment has rows of two.
    rows : int or None
        Rows of a segment: as many or fewer, about equal within a group.
    span : float or None
        Length of a segment in units of time: as long or longer, equal within a group.
    scale : float or None
        Time over which the correlation of the noise falls to 1/e: segments are five times as
        long, but no larger than a fifth of all rows. Without any of the three, they have
        ``default_rows``.

    Returns
    -------
    cut : ndarray of shape (n,)
        Labels, rising along groups and time.
    """
    time = _numbers("time", time)
    codes = np.zeros(len(time), int) if groups is None else _codes(groups)
    if len(codes) != len(time):
        raise ValueError(f"groups has {len(codes)} rows and time {len(time)}; give one of each.")
    asked = _asked("time", rows=rows, span=span, scale=scale)
    if rows is not None:
        return _enough(_segments_of_rows(time, codes, int(rows)), asked)
    if span is not None:
        return _enough(_segments_of_time(time, codes, span), asked)
    if scale is not None:
        block_ids = _segments_of_time(time, codes, SCALES * scale)
        if not _too_large(block_ids):
            return block_ids
    limit = default_rows(len(time)) if scale is None else max(1, len(time) // FEWEST_BLOCKS)
    return _enough(_segments_of_rows(time, codes, limit), asked)


def spatial_blocks(
    coords: np.ndarray,
    *,
    rows: int | None = None,
    extent: float | None = None,
    scale: float | None = None,
) -> np.ndarray:
    """Labels of cells in space, made by cutting the widest side again and again.

    Parameters
    ----------
    coords : ndarray of shape (n, c)
        Locations of the rows. Rows of the same place stay together.
    rows : int or None
        Rows of a cell: about so many, in as many cells as that makes.
    extent : float or None
        Shortest side of a cell: cells with about equal numbers of rows are cut in two while both
        parts are so wide.
    scale : float or None
        Distance over which the correlation of the noise falls to 1/e: cells are five times as
        wide, but no larger than a fifth of all rows. Without any of the three, they have
        ``default_rows``.

    Returns
    -------
    cut : ndarray of shape (n,)
        Labels.
    """
    coords = _numbers("coords", coords)
    n = len(coords)
    coords = coords.reshape(n, -1)
    asked = _asked("coords", rows=rows, extent=extent, scale=scale)
    if rows is not None:
        return _enough(_cell_labels(coords, -(-n // int(rows)), 0.0), asked)
    if extent is not None:
        return _enough(_cell_labels(coords, n, extent), asked)
    if scale is not None:
        block_ids = _cell_labels(coords, n, SCALES * scale)
        if not _too_large(block_ids):
            return block_ids
    limit = default_rows(n) if scale is None else max(1, n // FEWEST_BLOCKS)
    return _enough(_cell_labels(coords, -(-n // limit), 0.0), asked)


# ------------------------------------------------------------ segments of time


def _segments_of_rows(time: np.ndarray, codes: np.ndarray, rows: int) -> np.ndarray:
    order = np.lexsort((time, codes))
    starts, sizes = _stretches(codes[order])
    place = np.arange(len(order)) - np.repeat(starts, sizes)
    n_segments = np.repeat(-(-sizes // rows), sizes)
    # Rows of the same time go where the first of them goes.
    codes, time = codes[order], time[order]
    tied = np.append(False, (time[1:] == time[:-1]) & (codes[1:] == codes[:-1]))
    first = np.maximum.accumulate(np.where(tied, 0, np.arange(len(order))))
    return _labels(order, codes, place[first] * n_segments // np.repeat(sizes, sizes))


def _segments_of_time(time: np.ndarray, codes: np.ndarray, span: float) -> np.ndarray:
    order = np.lexsort((time, codes))
    codes, time = codes[order], time[order]
    starts, sizes = _stretches(codes)
    length = time[starts + sizes - 1] - time[starts]
    n_segments = np.maximum(np.floor(length / span), 1)
    width = np.where(length > 0, length, 1.0) / n_segments
    since = (time - np.repeat(time[starts], sizes)) / np.repeat(width, sizes)
    segment = np.minimum(np.floor(since), np.repeat(n_segments - 1, sizes))
    return _labels(order, codes, segment)


def _stretches(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First places and lengths of stretches of equal codes."""
    starts = block_starts(codes)
    return starts, np.diff(starts, append=len(codes))


def _labels(order: np.ndarray, codes: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Labels of the rows from the groups and segments of the rows in order."""
    new = (codes[1:] != codes[:-1]) | (segment[1:] != segment[:-1])
    block_ids = np.empty(len(order), int)
    block_ids[order] = np.cumsum(np.append(0, new))
    return block_ids


# ------------------------------------------------------------ cells in space


def _cell_labels(coords: np.ndarray, n_cells: int, extent: float) -> np.ndarray:
    block_ids = np.empty(len(coords), int)
    for label, rows in enumerate(_cells(coords, np.arange(len(coords)), n_cells, extent)):
        block_ids[rows] = label
    return block_ids


def _cells(coords: np.ndarray, rows: np.ndarray, n_cells: int, extent: float) -> list[np.ndarray]:
    """Rows of each cell: two parts in proportion to the cells they are to make, cut further.

    The widest side that leaves both parts the extent is cut, between two different values.
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
    """The value at which about a share of the sorted values lies below, if there is any."""
    locations = np.flatnonzero(values[1:] > values[:-1]) + 1
    if not len(locations):
        return None
    return float(values[locations[np.argmin(np.abs(locations - share * len(values)))]])


# ------------------------------------------------------------ checks


def _codes(groups: np.ndarray) -> np.ndarray:
    return np.unique(np.asarray(groups), return_inverse=True)[1]


def _numbers(name: str, values: np.ndarray) -> np.ndarray:
    numbers = np.asarray(values, dtype=float)
    if not np.all(np.isfinite(numbers)):
        place = int(np.argwhere(~np.isfinite(numbers))[0][0])
        raise ValueError(f"{name} of row {place} is not a number; drop such rows or fill them in.")
    return numbers


def _asked(axis: str, **sizes: float | None) -> str:
    """What makes the blocks, in words, after a check that it can be meant."""
    given = {name: size for name, size in sizes.items() if size is not None}
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} both say how long a block is; give one of them.")
    for name, size in given.items():
        if not 0 < size < math.inf or (name == "rows" and size != int(size)):
            kind = "an integer above 0" if name == "rows" else "a number above 0"
            raise ValueError(f"{name}={size!r} must be {kind}.")
        return f"{name}={size!r}"
    return axis


def _too_large(block_ids: np.ndarray) -> bool:
    """Whether a block has more than a fifth of all rows."""
    return bool(np.bincount(block_ids).max() * FEWEST_BLOCKS > len(block_ids))


def _enough(block_ids: np.ndarray, asked: str) -> np.ndarray:
    n_blocks = len(np.unique(block_ids))
    if n_blocks < FEWEST_BLOCKS:
        remedy = "use smaller blocks, or leave single rows out."
        if asked in ("time", "coords", "groups"):
            remedy = f"give more rows of different {asked}, or noise='auto' for independent rows."
        raise ValueError(
            f"{asked} makes {n_blocks} blocks of {len(cut)} rows, and leaving whole blocks out "
            f"needs at least {FEWEST_BLOCKS}; {remedy}"
        )
    return block_ids


# ------------------------------------------------------------ rows in the order of their blocks


class BlockRun(NamedTuple):
    """Neighbouring blocks of equal size: their rows, how many blocks, how many rows in each."""

    rows: slice
    n_blocks: int
    size: int

    def stacked(self, values: Array) -> Array:
        """Values (m, a, n) of all rows as those of each block, shape (m, B, a, size)."""
        xp, (m, a, _) = namespace(values), values.shape
        block_ids = xp.reshape(values[:, :, self.rows], (m, a, self.n_blocks, self.size))
        return xp.permute_dims(block_ids, (0, 2, 1, 3))

    def unstacked(self, values: Array) -> Array:
        """The way back, (m, B, a, size) to (m, a, B x size)."""
        xp, (m, _, a, _) = namespace(values), values.shape
        return xp.reshape(xp.permute_dims(values, (0, 2, 1, 3)), (m, a, self.n_blocks * self.size))


def block_starts(block_ids: np.ndarray) -> np.ndarray:
    """Locations of the first row of each block, from the labels (n,) of rows."""
    return np.flatnonzero(np.append(True, block_ids[1:] != block_ids[:-1])[: len(block_ids)])


def block_runs(block_ids: np.ndarray) -> Iterator[BlockRun]:
    """Blocks in their order, those of equal size that follow one another together."""
    starts = block_starts(block_ids)
    sizes = np.diff(starts, append=len(block_ids))
    firsts = block_starts(sizes)
    for first, last in zip(firsts, [*firsts[1:], len(sizes)], strict=True):
        size, n_blocks = int(sizes[first]), int(last - first)
        start = int(starts[first])
        yield BlockRun(slice(start, start + n_blocks * size), n_blocks, size)
