"""Tables in blocks as inputs of a model: columns that are learned from all blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ulmus.estimators._columns import (
    column_rules,
    has_schema,
    named_frame,
    observed_rows,
    output_matrix,
    require_outputs,
    rows_of,
    warn_about_targets,
)
from ulmus.progress import stage
from ulmus.tables.arrow import NamedArray
from ulmus.tables.blocks import RowColumns
from ulmus.tables.checks import checked_weight
from ulmus.tables.frames import column, column_names
from ulmus.tables.new_rows import warn_about_columns
from ulmus.tables.schema import Schema
from ulmus.tables.schema_inference import infer_schema
from ulmus.tables.training_encoding import EncodingLearner, TrainingEncoding

Blocks = Callable[[], Iterator[Any]]


class EncodedBlocks(NamedTuple):
    """A reader of blocks of inputs, and the encoding that they have."""

    read: Blocks
    first: Any  # the first table
    encoding: TrainingEncoding | None = None  # None if the blocks are matrices of inputs already
    raw: Blocks | None = None  # the tables before they are encoded

    @property
    def schema(self) -> Schema | None:
        """The columns."""
        return None if self.encoding is None else self.encoding.schema

    def row_columns(self, names: Sequence[str]) -> RowColumns:
        """Columns of the user's tables by name, for the rows that are kept."""
        assert self.raw is not None
        columns: dict[str, list[np.ndarray]] = {name: [] for name in names}
        used = []
        for part in _coded(self.schema, self.raw):
            for name in names:
                columns[name].append(column(part.table, name))
            weight = part.weight
            used.append(np.ones(len(part.codes), bool) if weight is None else weight > 0)
        joined = {name: np.concatenate(parts) for name, parts in columns.items()}
        return RowColumns(joined, np.concatenate(used))


def encoded_blocks(estimator: Any, read: Blocks, *, learn_columns: bool = False) -> EncodedBlocks:
    """Blocks of inputs of a model.

    Tables whose columns have names are read once to see whether they are complete numbers, and if
    not, twice to learn their columns.
    """
    first = next(read(), None)
    table = first[0] if isinstance(first, (tuple, list)) and len(first) else None
    if table is None or column_names(table) is None:
        return EncodedBlocks(read, table)
    return _named_blocks(estimator, read, table, learn_columns)


@stage("Reading the columns")
def _named_blocks(estimator: Any, read: Blocks, table: Any, learn_columns: bool) -> EncodedBlocks:
    """The same for blocks whose columns have names."""
    if not learn_columns and not any(has_schema(estimator, block[0]) for block in read()):
        return EncodedBlocks(read, table)
    schema = infer_schema(
        (named_frame(observed_block(block)[0]) for block in read()), **column_rules(estimator)
    )
    warn_about_columns(schema.doubts)
    learner, n_rows, n_observed, n_kept = None, 0, 0, 0
    for part in _coded(schema, read):
        y = output_matrix(part.y)
        learner = learner or EncodingLearner(schema, y.shape[1])
        learner.add(part.codes, y, part.weight)
        n_rows, n_observed = n_rows + part.n_given, part.n_read
        n_kept += len(part.codes)
    assert learner is not None  # the table has rows
    warn_about_targets(n_rows - n_observed, n_rows)
    encoding = learner.encoding()
    schema = encoding.schema.with_excluded(n_rows - n_observed, n_observed - n_kept)
    encoding = encoding._replace(schema=schema)
    return EncodedBlocks(_TrainingBlocks(encoding, read), table, encoding, read)


@dataclass(frozen=True)
class _TrainingBlocks:
    """Training inputs of the blocks, whose columns have the names of the inputs."""

    encoding: TrainingEncoding
    blocks: Blocks

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        for part in _coded(self.encoding.schema, self.blocks):
            yield part.encoded(self.encoding)


class CodedBlock(NamedTuple):
    """The rows of a block that a schema keeps."""

    codes: np.ndarray  # (n, columns)
    table: Any  # the user's table of these rows
    y: Any
    weight: np.ndarray | None
    first_row: int  # number of kept rows before these
    n_read: int  # number of rows with a target before these and in the block
    n_given: int  # number of rows of the block

    def encoded(self, encoding: TrainingEncoding) -> tuple[Any, ...]:
        """Inputs, outputs and weights of these training rows."""
        inputs = NamedArray(encoding.encode(self.codes, self.first_row), encoding.schema.features)
        return (inputs, self.y) if self.weight is None else (inputs, self.y, self.weight)


def coded_block(schema: Schema, block: Any, n_read: int, first_row: int) -> CodedBlock:
    """The rows with a target that the schema keeps, with their codes."""
    X, y, *weight = observed_block(block)
    codes, kept = schema.parse(named_frame(X), n_read)
    where = np.flatnonzero(kept)
    own = checked_weight(weight[0] if weight else None, len(kept), f"rows from {n_read}")
    table, outputs, own = (rows_of(values, where) for values in (X, y, own))
    n_given = len(block[1])
    return CodedBlock(codes, table, outputs, own, first_row, n_read + len(kept), n_given)


def _coded(schema: Schema | None, blocks: Blocks) -> Iterator[CodedBlock]:
    """Codes of the rows that the schema keeps."""
    assert schema is not None
    n_read = n_kept = 0
    for block in blocks():
        part = coded_block(schema, block, n_read, n_kept)
        yield part
        n_read, n_kept = part.n_read, n_kept + len(part.codes)


def observed_block(block: Any) -> tuple[Any, ...]:
    """A block without the rows that have no target."""
    X, y, *weight = block
    require_outputs(y)
    observed = observed_rows(y)
    if observed is None:
        return (X, y, *weight)
    where = np.flatnonzero(observed)
    return tuple(rows_of(values, where) for values in (X, y, *weight))
