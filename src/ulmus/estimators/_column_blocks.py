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
    rows_of,
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
    """A reader of blocks of inputs, and the schema that encodes them."""

    read: Blocks
    schema: Schema | None  # None if the blocks are matrices of inputs already
    first: Any  # the first table
    raw: Blocks | None = None  # the tables before they are encoded

    def row_columns(self, names: Sequence[str]) -> RowColumns:
        """Columns of the user's tables by name, for the rows that are kept."""
        assert self.schema is not None and self.raw is not None
        columns: dict[str, list[np.ndarray]] = {name: [] for name in names}
        used, n_read = [], 0
        for X, _, *weight in self.raw():
            _, kept = self.schema.parse(named_frame(X), n_read)
            n_read += len(kept)
            for name in names:
                columns[name].append(column(X, name)[kept])
            own = checked_weight(weight[0] if weight else None, len(kept), "the table")
            used.append(np.ones(int(np.sum(kept)), bool) if own is None else own[kept] > 0)
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
        return EncodedBlocks(read, None, table)
    return _named_blocks(estimator, read, table, learn_columns)


@stage("Reading the columns")
def _named_blocks(estimator: Any, read: Blocks, table: Any, learn_columns: bool) -> EncodedBlocks:
    """The same for blocks whose columns have names."""
    if not learn_columns and not any(has_schema(estimator, block[0]) for block in read()):
        return EncodedBlocks(read, None, table)
    observed = _ObservedBlocks(read)
    frames = (named_frame(block[0]) for block in observed())
    schema = infer_schema(frames, **column_rules(estimator))
    warn_about_columns(schema.doubts)
    learner = None
    for part in _coded(schema, observed):
        y = output_matrix(part.y)
        learner = learner or EncodingLearner(schema, y.shape[1])
        learner.add(part.codes, y, part.weight)
    assert learner is not None  # the table has rows
    encoding = learner.encoding()
    return EncodedBlocks(_TrainingBlocks(encoding, observed), encoding.schema, table, observed)


@dataclass(frozen=True)
class _ObservedBlocks:
    """Blocks without the rows that have no target."""

    read: Blocks

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        for X, y, *weight in self.read():
            observed = observed_rows(y)
            if observed is None:
                yield (X, y, *weight)
                continue
            where = np.flatnonzero(observed)
            yield tuple(rows_of(values, where) for values in (X, y, *weight))


class _CodedBlock(NamedTuple):
    codes: np.ndarray
    y: Any
    weight: np.ndarray | None
    first_row: int  # number of kept rows before these


def _coded(schema: Schema, blocks: Blocks) -> Iterator[_CodedBlock]:
    """Codes of the rows that the schema keeps."""
    n_read = n_kept = 0
    for X, y, *weight in blocks():
        codes, kept = schema.parse(named_frame(X), n_read)
        where = np.flatnonzero(kept)
        own = checked_weight(weight[0] if weight else None, len(kept), f"rows from {n_read}")
        yield _CodedBlock(codes, rows_of(y, where), rows_of(own, where), n_kept)
        n_read, n_kept = n_read + len(kept), n_kept + len(where)


@dataclass(frozen=True)
class _TrainingBlocks:
    """Training inputs of the blocks, whose columns have the names of the inputs."""

    encoding: TrainingEncoding
    blocks: Blocks

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        schema = self.encoding.schema
        for part in _coded(schema, self.blocks):
            inputs = self.encoding.encode(part.codes, part.first_row)
            weight = () if part.weight is None else (part.weight,)
            yield (NamedArray(inputs, schema.features), part.y, *weight)
