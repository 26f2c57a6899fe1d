"""What a schema learns from the training rows: target statistics, and how to fill in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ulmus.tables.columns import CategoryColumn, Column, OrderedColumn, TargetEncodedColumn
from ulmus.tables.columns.statistics import MAX_INDICATORS
from ulmus.tables.imputation import fitted_imputation
from ulmus.tables.level_effects import EffectsByFold, OtherInputs, level_effects
from ulmus.tables.schema import Schema
from ulmus.tables.target_statistics import (
    N_FOLDS,
    CategorySums,
    TargetStatistics,
    fold_numbers,
)

# Largest numbers of rows from which missing numbers are predicted, and from which effects of
# categories beside the other columns are computed. Means by category are those of all rows.
IMPUTATION_ROWS, EFFECT_ROWS = 20_000, 100_000
# A category of up to so many levels has indicators if nine tenths of them have so many rows.
MORE_INDICATORS, ROWS_OF_LEVEL = 100, 100


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


class SampledRows(NamedTuple):
    """Training rows: their numbers (n,), codes, outputs (n, K), weights and folds (n,)."""

    numbers: np.ndarray
    codes: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    folds: np.ndarray

    def thinned(self, stride: int) -> SampledRows:
        """The rows whose numbers are multiples of the stride."""
        if stride == 1:
            return self
        kept = self.numbers % stride == 0
        return SampledRows(*(values[kept] for values in self))


@dataclass
class EncodingLearner:
    """Learns what a schema takes from the training rows, a block at a time."""

    schema: Schema
    n_outputs: int | None  # None if there is no target, and all categories have indicators
    sums: dict[int, CategorySums] = field(init=False)  # for each column of many categories
    n_rows: int = 0
    stride: int = 1  # distance of the rows of the sample
    sample: list[SampledRows] = field(default_factory=list)

    def __post_init__(self) -> None:
        n_outputs = self.n_outputs or 0
        self.sums = {
            j: CategorySums(len(column.categories) + column.indicates_missing, n_outputs)
            for j, column in enumerate(self.schema.columns)
            if n_outputs and isinstance(column, CategoryColumn) and has_many_levels(column)
        }

    def add(self, codes: np.ndarray, y: Any, weight: np.ndarray | None) -> None:
        """Add rows: codes (n, columns), outputs (n, K) or None, and weights (n,) or None."""
        w = np.ones(len(codes)) if weight is None else weight
        folds = fold_numbers(self.n_rows, len(codes))
        for j, sums in self.sums.items():
            index = self._index(j, codes)
            known = (index >= 0) & (index < sums.n_categories)
            sums.add(index[known], y[known], w[known], folds[known])
        numbers = np.arange(self.n_rows, self.n_rows + len(codes))
        outputs = y if self.sums else np.empty((len(codes), 0))
        self.sample.append(SampledRows(numbers, codes, outputs, w, folds).thinned(self.stride))
        self.n_rows += len(codes)
        if self.n_rows // self.stride > (EFFECT_ROWS if self.sums else IMPUTATION_ROWS):
            self.stride = self._stride(EFFECT_ROWS if self.sums else IMPUTATION_ROWS)
            self.sample = [part.thinned(self.stride) for part in self.sample]

    def encoding(self) -> TrainingEncoding:
        """The encoding of the training rows."""
        sample = SampledRows(*map(np.concatenate, zip(*self.sample, strict=True)))
        effects = self._effects(sample)
        parts = [self._with_statistics(f, effects) for f in range(N_FOLDS) if self.sums]
        schema = self._within_range(self._with_statistics(None, effects), parts)
        few = sample.thinned(self._stride(IMPUTATION_ROWS)).codes
        imputation = fitted_imputation(schema.raw_inputs(few)[:, schema.predictors])
        return TrainingEncoding(
            replace(schema, imputation=imputation).with_date_steps(sample.codes),
            tuple(replace(part, imputation=imputation) for part in parts),
        )

    def _within_range(self, schema: Schema, parts: list[Schema]) -> Schema:
        """The schema with statistics in the range of those that the training rows have.

        Statistics of all rows are shrunk less than those without a fold, so that the most extreme
        ones would be extrapolations.
        """
        columns = list(schema.columns)
        for j, sums in self.sums.items():
            column, present = columns[j], sums.weight > 0
            assert isinstance(column, TargetEncodedColumn)
            if present.any():
                tables = [part.columns[j].values for part in parts]  # type: ignore[attr-defined]
                own = np.array(tables)[present]
                values = np.clip(column.values, own.min(axis=0), own.max(axis=0))
                columns[j] = replace(column, values=tuple(map(tuple, values.tolist())))
        return replace(schema, columns=tuple(columns))

    def _stride(self, n_rows: int) -> int:
        """Distance of at most so many rows, a power of two, so that strides are nested."""
        stride = 1
        while self.n_rows // stride > n_rows:
            stride *= 2
        return stride

    def _index(self, j: int, codes: np.ndarray) -> np.ndarray:
        """Categories of a column; missing cells are the last."""
        n_levels = len(self.schema.columns[j].categories)  # type: ignore[attr-defined]
        return np.where(np.isnan(codes[:, j]), n_levels, codes[:, j]).astype(int)

    def _effects(self, rows: SampledRows) -> dict[int, EffectsByFold]:
        """Effects beside the other columns, for each column of many categories."""
        others = [j for j in range(len(self.schema.columns)) if j not in self.sums]
        if not self.sums or not others:
            return {}
        schema = replace(self.schema, columns=tuple(self.schema.columns[j] for j in others))
        X = schema.raw_inputs(rows.codes[:, others])
        other = OtherInputs(schema.features, X, rows.y, rows.weight, rows.folds)
        categories = {}
        for j, sums in self.sums.items():
            index, n_levels = self._index(j, rows.codes), sums.n_categories
            # Cells without a category are one more.
            known = (index >= 0) & (index < n_levels)
            categories[j] = np.where(known, index, n_levels), n_levels + 1
        return level_effects(other, categories)

    def _with_statistics(self, without: int | None, effects: dict[int, EffectsByFold]) -> Schema:
        columns = list(self.schema.columns)
        for j, sums in self.sums.items():
            found = sums.statistics(without)
            columns[j] = _target_encoded(columns[j], found, effects.get(j), without)
        return replace(self.schema, columns=tuple(columns))


def has_many_levels(column: CategoryColumn) -> bool:
    """Whether target statistics encode a category rather than indicators."""
    n_levels = len(column.categories)
    if n_levels <= MAX_INDICATORS or isinstance(column, OrderedColumn):
        return False
    if n_levels > MORE_INDICATORS or not column.counts:
        return True
    return bool(np.quantile(column.counts, 0.1) < ROWS_OF_LEVEL)


def _target_encoded(
    column: Column, found: TargetStatistics, effects: EffectsByFold | None, without: int | None
) -> TargetEncodedColumn:
    """The column with statistics of its categories."""
    assert isinstance(column, CategoryColumn)
    n_outputs = len(found.center)
    inputs = ["mean"] if n_outputs == 1 else [f"mean {k}" for k in range(n_outputs)]
    values, unknown = [found.means], [found.center]
    if effects is not None:
        inputs += effects.names
        values.append(effects.without(without).values[: len(found.means)])
        unknown.append(effects.without(without).unknown)
    table = np.column_stack([*values, found.reliability])
    return TargetEncodedColumn(
        column.name,
        column.categories,
        column.counts,
        (*inputs, "reliability"),
        tuple(map(tuple, table.tolist())),
        (*np.concatenate(unknown).tolist(), 0.0),
        n_missing=column.n_missing,
    )
