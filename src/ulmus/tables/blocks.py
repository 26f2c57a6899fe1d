"""Tables in blocks of rows: checks, and the source of rows of a fit.

A table in blocks is an iterable of ``(X, y)`` or ``(X, y, sample_weight)`` that can be read more
than once: a list of arrays, a function that returns a fresh iterator, or the files of
:func:`ulmus.tables.from_arrow`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import Array, like, namespace, row_blocks, taken_rows
from ulmus.core.data.source import Block, RowPass, first_rows, reduced
from ulmus.progress import stage
from ulmus.tables.checks import checked_inputs, checked_outputs, checked_weight
from ulmus.tables.frames import column_index, column_names


@dataclass(frozen=True)
class CheckedBlock:
    """One checked block: X (n, d), y (K, n), weights (n,) or None."""

    X: Any
    y: Any
    weight: np.ndarray | None
    one_output: bool
    names: tuple[str, ...] | None


def block_reader(blocks: Any) -> Callable[[], Iterator[Any]]:
    """Return a function that starts reading the blocks from the beginning."""
    if callable(blocks):
        return lambda: iter(blocks())
    if not hasattr(blocks, "__iter__"):
        text = "blocks must be a list of (X, y) or a function that returns an iterator over them"
        raise ValueError(f"{text}, got {type(blocks).__name__}; use fit for a single table.")
    if iter(blocks) is blocks:
        text = (
            "blocks is an iterator, which can be read only once, and a fit reads it several times"
        )
        raise ValueError(f"{text}; give a list, or a function that returns a fresh iterator.")
    return lambda: iter(blocks)


def checked_blocks(
    read: Callable[[], Iterator[Any]], pattern: CheckedBlock | None = None
) -> Iterator[CheckedBlock]:
    """Checked blocks without empty ones.

    Every block must have the columns of ``pattern``, or of the first block.
    """
    for index, raw in enumerate(read()):
        block = checked_block(raw, f"block {index}")
        if block.X.shape[0] == 0:
            continue
        if pattern is not None:
            require_same_columns(block, pattern, f"block {index}")
        pattern = block if pattern is None else pattern
        yield block


def require_same_columns(block: CheckedBlock, pattern: CheckedBlock, where: str) -> None:
    """Refuse a block whose columns differ from those of a pattern."""
    for found, expected in zip(_shared_properties(block), _shared_properties(pattern), strict=True):
        if found != expected:
            raise ValueError(
                f"{where} has {found}, the blocks before it have {expected}; give every block the "
                "same columns in the same order, as arrays of one library."
            )


def _shared_properties(block: CheckedBlock) -> tuple[str, ...]:
    """What all blocks must share, in words."""
    sparse = scipy.sparse.issparse(block.X)
    library = type(block.X).__module__.split(".")[0]
    return (
        f"{block.X.shape[1]} features",
        f"{block.y.shape[0]} outputs",
        "sparse inputs" if sparse else f"inputs of {library}",
        "no column names" if block.names is None else f"the columns {list(block.names)!r}",
    )


def checked_block(raw: Any, where: str) -> CheckedBlock:
    """One checked block; ``where`` names it in messages."""
    if not isinstance(raw, (tuple, list)) or len(raw) not in (2, 3):
        found = "None" if raw is None else type(raw).__name__
        raise ValueError(f"{where} must be (X, y) or (X, y, sample_weight), got {found}.")
    names = column_names(raw[0])
    X, y = checked_inputs(raw[0], where), checked_outputs(raw[1], where)
    if y.shape[0] != X.shape[0]:
        lengths = f"{X.shape[0]} rows of X, {y.shape[0]} of y"
        raise ValueError(f"{where} has {lengths}; give one of each per row.")
    weight = checked_weight(raw[2] if len(raw) == 3 else None, X.shape[0], where)
    columns = y[None, :] if y.ndim == 1 else y.T
    return CheckedBlock(X, columns, weight, y.ndim == 1, names)


def split_block(
    block: CheckedBlock,
    width: int,
    reference: Array,
    numbers: np.ndarray | None = None,
    block_ids: np.ndarray | None = None,
) -> Iterator[Block]:
    """The rows of a block in parts whose hidden features fit into the cache.

    ``numbers`` are the row numbers in the whole table, and ``block_ids`` the cross-validation
    blocks of the rows, each (n,) or None.
    """
    weight = None if block.weight is None else np.sqrt(block.weight)
    for rows in row_blocks(block.X.shape[0], width, reference):
        yield Block(
            taken_rows(block.X, rows),
            like(block.y[:, rows], reference),
            None if weight is None else like(weight[rows], reference),
            None if numbers is None else numbers[rows],
            None if block_ids is None else block_ids[rows],
        )


class Fingerprint(NamedTuple):
    """Number of rows, and sums of inputs and outputs, by which two passes are compared."""

    n_rows: int = 0
    inputs: float = 0.0
    outputs: float = 0.0
    size: float = 0.0

    def and_block(self, block: CheckedBlock) -> Fingerprint:
        """The fingerprint with one more block."""
        X = block.X.data if scipy.sparse.issparse(block.X) else block.X
        xp, yp = namespace(X), namespace(block.y)
        size = float(xp.sum(xp.abs(X))) + float(yp.sum(yp.abs(block.y)))
        sums = block.X.shape[0], float(xp.sum(X)), float(yp.sum(block.y)), size
        return Fingerprint(*map(operator.add, self, sums))

    def agrees(self, other: Fingerprint) -> bool:
        """Whether two passes read the same rows, in any order."""
        change = max(abs(self.inputs - other.inputs), abs(self.outputs - other.outputs))
        return self.n_rows == other.n_rows and not change > 1e-6 * max(self.size, other.size)


class RowColumns(NamedTuple):
    """Columns of all rows by name, each (n,), and which rows have a positive weight, (n,)."""

    columns: dict[str, np.ndarray]
    used: np.ndarray


@dataclass(frozen=True)
class BlockSource:
    """A table in blocks as a source of rows."""

    read: Callable[[], Iterator[Any]]  # returns an iterator over all blocks
    first: CheckedBlock  # the first block, whose columns every block must have
    reference: Array  # an array of the library, dtype and device of the computation
    width: int = 1  # hidden features of a row, which determine the number of rows of a block
    fingerprints: list[Fingerprint] = field(default_factory=list)  # that of the first complete pass
    # (n,): cross-validation block of each row, in the order of reading; None for leave-one-out.
    block_ids: np.ndarray | None = None

    def blocks(self) -> Iterator[Block]:
        """All rows, in blocks whose hidden features fit into the cache."""
        start = 0
        for block in self._pass():
            n_rows = block.X.shape[0]
            numbers = np.arange(start, start + n_rows)
            block_ids = None if self.block_ids is None else self.block_ids[numbers]
            yield from split_block(block, self.width, self.reference, numbers, block_ids)
            start += n_rows

    def without_blocks(self) -> BlockSource:
        """The same rows without cross-validation blocks."""
        return replace(self, block_ids=None)

    @stage("Reading locations of the rows")
    def row_columns(self, names: Iterable[str]) -> RowColumns:
        """Columns of all rows by name, from one pass."""
        positions = {name: column_index(self.first.names, name) for name in names}
        columns: dict[str, list[np.ndarray]] = {name: [] for name in positions}
        used = []
        for block in self._pass():
            for name, j in positions.items():
                columns[name].append(np.array(block.X[:, j]))
            n_rows = block.X.shape[0]
            used.append(np.ones(n_rows, bool) if block.weight is None else block.weight > 0)
        joined = {name: np.concatenate(parts) for name, parts in columns.items()}
        return RowColumns(joined, np.concatenate(used))

    def _pass(self) -> Iterator[CheckedBlock]:
        """All blocks of a pass; every pass must read the rows of the first one."""
        fingerprint = Fingerprint()
        for block in checked_blocks(self.read, self.first):
            fingerprint = fingerprint.and_block(block)
            if self.fingerprints and fingerprint.n_rows > self.fingerprints[0].n_rows:
                break
            yield block
        if not self.fingerprints:
            self.fingerprints.append(fingerprint)
        elif not fingerprint.agrees(self.fingerprints[0]):
            counts = f"{fingerprint.n_rows} rows, {self.fingerprints[0].n_rows} before"
            raise ValueError(
                f"blocks contain other rows when read again ({counts}), and a fit requires the "
                "same rows each time; store random or live data first."
            )

    def in_order(self) -> Iterator[Block]:
        """All rows in the order in which they are read."""
        return self.blocks()

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass over all blocks."""
        n_rows = self.fingerprints[0].n_rows if self.fingerprints else None
        return reduced(row_pass, self.blocks(), n_rows)

    def sample(self, n_rows: int) -> Block:
        """The first rows of positive weight."""
        return first_rows(self.blocks(), n_rows)

    def for_width(self, width: int) -> BlockSource:
        """The same rows in blocks of a size that suits so many hidden features."""
        return replace(self, width=width)
