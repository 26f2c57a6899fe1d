"""What a schema learns from the training rows: target statistics, and how to fill in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ulmus.tables.columns import CategoryColumn, Column, OrderedColumn, TargetEncodedColumn
from ulmus.tables.columns.statistics import MAX_INDICATORS
from ulmus.tables.imputation import fitted_imputation
from ulmus.tables.schema import Schema
from ulmus.tables.target_statistics import (
    N_FOLDS,
    CategorySums,
    TargetStatistics,
    fold_numbers,
)

# Largest number of rows from which missing numbers are predicted.
IMPUTATION_ROWS = 20_000


class TrainingEncoding(NamedTuple):
    """A schema with what it learned, and the same learned without each fold of the rows."""

    schema: Schema
    folds: tuple[Schema, ...]  # empty if no column depends on the outputs

    def encode(self, codes: np.ndarray, first_row: int = 0) -> np.ndarray:
        """Inputs of training rows (n, columns), whose outputs their inputs do not depend on."""
        if not self.folds:
            return self.schema.encode(codes)
        numbers = fold_numbers(first_row, len(codes))
        inputs = np.empty((len(codes), len(self.schema.features)))
        for number, schema in enumerate(self.folds):
            rows = numbers == number
            inputs[rows] = schema.encode(codes[rows])
        return inputs


@dataclass
class EncodingLearner:
    """Learns what a schema takes from the training rows, a block at a time."""

    schema: Schema
    n_outputs: int | None  # None if there is no target, and all categories have indicators
    sums: dict[int, CategorySums] = field(init=False)  # for each column of many categories
    n_rows: int = 0
    stride: int = 1  # distance of the rows of the sample
    sample: list[np.ndarray] = field(default_factory=list)  # codes of rows, and their numbers

    def __post_init__(self) -> None:
        n_outputs = self.n_outputs or 0
        self.sums = {
            j: CategorySums(len(column.categories) + column.indicates_missing, n_outputs)
            for j, column in enumerate(self.schema.columns)
            if n_outputs and isinstance(column, CategoryColumn) and _has_many_levels(column)
        }

    def add(self, codes: np.ndarray, y: Any, weight: np.ndarray | None) -> None:
        """Add rows: codes (n, columns), outputs (n, K) or None, and weights (n,) or None."""
        w = np.ones(len(codes)) if weight is None else weight
        folds = fold_numbers(self.n_rows, len(codes))
        for j, sums in self.sums.items():
            n_levels = len(self.schema.columns[j].categories)  # type: ignore[attr-defined]
            index = np.where(np.isnan(codes[:, j]), n_levels, codes[:, j]).astype(int)
            known = (index >= 0) & (index < sums.n_categories)
            sums.add(index[known], y[known], w[known], folds[known])
        numbers = np.arange(self.n_rows, self.n_rows + len(codes))
        self.n_rows += len(codes)
        self.sample.append(np.column_stack([numbers, codes]))
        if self.n_rows // self.stride > IMPUTATION_ROWS:
            self.stride *= 2
        self.sample = [part[part[:, 0] % self.stride == 0] for part in self.sample]

    def encoding(self) -> TrainingEncoding:
        """The encoding of the training rows."""
        schema = self._with_statistics(None)
        sample = np.concatenate(self.sample)[:, 1:]
        predictors = schema.raw_inputs(sample)[:, schema.predictors]
        imputation = fitted_imputation(predictors)
        folds = range(N_FOLDS) if self.sums else ()
        return TrainingEncoding(
            replace(schema, imputation=imputation),
            tuple(replace(self._with_statistics(f), imputation=imputation) for f in folds),
        )

    def _with_statistics(self, without: int | None) -> Schema:
        columns = list(self.schema.columns)
        for j, sums in self.sums.items():
            columns[j] = _target_encoded(columns[j], sums.statistics(without))
        return replace(self.schema, columns=tuple(columns))


def _has_many_levels(column: CategoryColumn) -> bool:
    return len(column.categories) > MAX_INDICATORS and not isinstance(column, OrderedColumn)


def _target_encoded(column: Column, found: TargetStatistics) -> TargetEncodedColumn:
    """The column with statistics of its categories."""
    assert isinstance(column, CategoryColumn)
    return TargetEncodedColumn(
        column.name,
        column.categories,
        column.counts,
        tuple(map(tuple, found.means.tolist())),
        tuple(found.reliability.tolist()),
        tuple(found.center.tolist()),
        n_missing=column.n_missing,
    )
