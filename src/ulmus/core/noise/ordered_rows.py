"""Rows in the order of their locations, which the covariance of correlated noise requires."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, row_blocks, to_numpy
from ulmus.core.data.source import Block, RowBlocks, used_rows
from ulmus.core.noise_covariance.errors import covariance_error
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.ridge.residuals import RowFit
from ulmus.messages import Setting

# The restricted likelihood uses at most this many rows, in so many segments of consecutive rows.
# From 20,000 rows a correlation over ten rows is estimated to 5 %, standard errors to half of that.
LIKELIHOOD_ROWS, SEGMENTS = 20_000, 4


@dataclass(frozen=True)
class OrderedRows:
    """Rows of positive weight in the order of their locations."""

    blocks: Callable[[], Iterable[Block]]  # returns a fresh iterable of the blocks
    locations: Locations  # locations of the rows, in the same order

    def part(self, rows: np.ndarray) -> OrderedRows:
        """A subset of the rows, by ascending indices."""

        def blocks() -> Iterator[Block]:
            n = 0
            for block in self.blocks():
                first, last = np.searchsorted(rows, [n, n + block.y.shape[1]])
                if last > first:
                    yield block.taken(rows[first:last] - n)
                n += block.y.shape[1]

        return OrderedRows(blocks, self.locations.taken(rows))


@dataclass(frozen=True)
class OrderedFits:
    """Weighted rows of one regression in the order of their locations."""

    rows: OrderedRows  # the rows
    # Maps blocks of rows to their ``RowFit`` in the regression.
    fits: Callable[[Iterable[Block]], Iterable[RowFit]]

    @property
    def locations(self) -> Locations:
        """Locations of the rows."""
        return self.rows.locations

    def __iter__(self) -> Iterator[RowFit]:
        for fit in self.fits(self.rows.blocks()):
            yield fit.weighted

    def part(self, rows: np.ndarray) -> OrderedFits:
        """A subset of the rows, by ascending indices."""
        return replace(self, rows=self.rows.part(rows))

    def stacked(self) -> Iterator[Array]:
        """Coordinates of all members, stacked, shape (M N', b) for each block."""
        for rows in self:
            yield namespace(rows.t).reshape(rows.t, (-1, rows.t.shape[2]))

    def outputs(self) -> np.ndarray:
        """Weighted outputs in the units of the fit, shape (K, n)."""
        blocks = [
            rows.residual[0, :, :] + rows.smoother.q[0, :, :].T @ rows.t[0, :, :] for rows in self
        ]
        return np.concatenate([to_numpy(block) for block in blocks], axis=1)


def likelihood_rows(n: int) -> np.ndarray:
    """Indices of the rows of the likelihood: all of them, or evenly spaced segments."""
    if n <= LIKELIHOOD_ROWS:
        return np.arange(n)
    length = LIKELIHOOD_ROWS // SEGMENTS
    starts = np.linspace(0, n - length, SEGMENTS).astype(int)
    return (starts[:, None] + np.arange(length)).ravel()


def ordered_rows(rows: RowBlocks, locations: Locations) -> OrderedRows:
    """Rows in memory in the order of their locations."""
    order = locations.order[rows.used[locations.order]]
    plain = rows.without_blocks()

    def blocks() -> Iterator[Block]:
        for few in row_blocks(len(order), rows.width, rows.reference):
            yield plain.block(order[few])

    return OrderedRows(blocks, locations.taken(order))


def ordered_stream(read: Callable[[], Iterable[Block]], locations: Locations) -> OrderedRows:
    """Rows of a stream that is sorted by location; ``locations`` are those of positive weight."""

    def blocks() -> Iterator[Block]:
        for block in map(used_rows, read()):
            if block.y.shape[1]:
                yield block

    return OrderedRows(blocks, locations)


def require_reading_order(locations: Locations) -> None:
    """Raise an error if the rows of a stream are not sorted by group and time."""
    back = np.flatnonzero(np.diff(locations.order) < 0)
    if len(back):
        row = int(np.max(locations.order[back[0] : back[0] + 2]))
        raise covariance_error(
            "unsorted-rows",
            f"correlated noise requires the rows of a stream sorted by group and by time within a "
            f"group, and row {row} is out of order",
            "sort the table by these columns",
            Setting("in_memory", python="fit the rows in memory"),
        )
