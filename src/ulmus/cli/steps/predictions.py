"""Predictions with error bars for the rows of a table, written block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ulmus.cli import options
from ulmus.cli.console import Console
from ulmus.exceptions import NoUndersmoothedFitError
from ulmus.progress import stage
from ulmus.tables.cells import number_of
from ulmus.tables.files import TableFile
from ulmus.tables.writers import require_supported_types, table_writer

if TYPE_CHECKING:
    from ulmus.cli.steps.models import TableModel

PREDICTING = "Predicting rows"
COLUMNS = ("estimate", "std_error", "conf_low", "conf_high", "pred_low", "pred_high")


@dataclass(frozen=True)
class PredictionColumns:
    """The columns of predictions, and what their intervals cover."""

    confidence_level: float
    quantiles: tuple[float, ...]
    thresholds: tuple[float, ...]
    interval_target: str | None

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        quantiles = (f"q{level:.15g}" for level in self.quantiles)
        return [*COLUMNS, *quantiles, *(f"exceeds_{value:.15g}" for value in self.thresholds)]

    def values(
        self, inference: Any, rows: Any, weight: np.ndarray | None, console: Console
    ) -> dict[str, np.ndarray]:
        """Predictions of some rows and their weights, by column."""
        frame = self._frame(inference, rows, weight, console)
        values = [frame[name].to_numpy() for name in COLUMNS]
        own = {"sample_weight": weight}
        if self.quantiles:
            values += list(inference.predict_quantiles(rows, list(self.quantiles), **own).T)
        values += [inference.exceedance(rows, threshold, **own) for threshold in self.thresholds]
        return dict(zip(self.names, values, strict=True))

    def _frame(self, inference: Any, rows: Any, weight: np.ndarray | None, console: Console) -> Any:
        """Estimates and intervals; for the expectation where the default is not available."""
        target = self.interval_target
        arguments = {"confidence_level": self.confidence_level, "sample_weight": weight}
        try:
            return inference.summary_frame(rows, target=target or "function", **arguments)
        except NoUndersmoothedFitError as error:
            if target is not None:
                raise
            console.note(
                f"{error.message.cause(console.option)}; conf_low and conf_high cover the "
                "expectation of the prediction and exclude its bias."
            )
            return inference.summary_frame(rows, target="expectation", **arguments)


@dataclass(frozen=True)
class PredictedTable:
    """A model, a table, the columns to compute, those to copy, and that of the weights."""

    model: TableModel
    table: TableFile
    columns: PredictionColumns
    copied: list[str]
    weight: str | None
    console: Console

    def write(self, output: Path) -> dict[str, Any]:
        """Predict and write block by block; returns the numbers of rows written and excluded."""
        try:
            return self._written(output)
        except pa.ArrowNotImplementedError as error:
            raise ValueError(f"{output} cannot store all columns of --keep: {error}.") from error

    def _written(self, output: Path) -> dict[str, Any]:
        fields = [self.table.schema.field(name) for name in self.copied]
        schema = pa.schema([*fields, *(pa.field(n, pa.float64()) for n in self.columns.names)])
        require_supported_types(output, fields)
        n_written = n_excluded = 0
        total = max(1, self.table.n_cells // len(self.table.names))
        working, stages = self.console.working(PREDICTING), stage(PREDICTING)
        with table_writer(output, schema) as writer, working, stages as done:
            for rows, n_read in self._blocks():
                n_rows = 0 if rows is None else rows.num_rows
                if rows is not None:
                    writer.write_table(rows.cast(schema))
                n_written, n_excluded = n_written + n_rows, n_excluded + n_read - n_rows
                done((n_written + n_excluded) / total)
            if n_written == 0:
                raise ValueError(f"{self.table.path} has no complete rows; nothing was written.")
        return {"rows": n_written, "rows_excluded": n_excluded, "columns": schema.names}

    def _blocks(self) -> Iterator[tuple[Any, int]]:
        """Copied columns and predictions of complete rows, and the number of rows read."""
        schema, first_row, weight = self.model.columns.schema, 0, None
        names = [*schema.names, *self.copied, *([] if self.weight is None else [self.weight])]
        for batch in self.table.batches(list(dict.fromkeys(names))):
            frame = self.table.data_frame(batch)
            _, complete = schema.parse(frame, first_row)
            rows = frame[complete]
            if self.weight is not None:
                weight = self.model.columns.weights(self.weight, frame, first_row)
                rows = rows[~np.isnan(weight[complete])]
                complete &= ~np.isnan(weight)
                weight = weight[complete]
            first_row += batch.num_rows
            if not len(rows):
                yield None, batch.num_rows
                continue
            kept = batch.filter(pa.array(complete))
            columns = {name: kept.column(name) for name in self.copied}
            columns |= self.columns.values(self.model.estimator, rows, weight, self.console)
            yield pa.table(columns), batch.num_rows


def prediction_columns(
    confidence_level: float,
    quantiles: list[str] | None,
    threshold: list[str] | None,
    interval_target: str | None,
) -> PredictionColumns:
    """The columns that the options ask for."""
    levels = _numbers("--quantiles", quantiles)
    thresholds = _numbers("--threshold", threshold)
    return PredictionColumns(confidence_level, levels, thresholds, interval_target)


def _numbers(option: str, arguments: list[str] | None) -> tuple[float, ...]:
    texts = options.column_names(arguments)
    numbers = [number for number in map(number_of, texts) if number is not None]
    if len(numbers) < len(texts) or any(map(math.isnan, numbers)):
        raise ValueError(f"{option} takes numbers, got {', '.join(texts)!r}.")
    return tuple(dict.fromkeys(numbers))


def copied_columns(
    keep: list[str] | None, table: TableFile, columns: PredictionColumns
) -> list[str]:
    """The columns of the table to copy; none may have the name of a column of predictions."""
    names = options.column_names(keep, table.names)
    copied = table.names if keep == ["all"] else [*dict.fromkeys(names)]
    table.require(copied)
    twice = next((name for name in copied if name in columns.names), None)
    if twice is not None:
        text = f"--keep {twice} is also the name of a column of predictions"
        raise ValueError(f"{text}; rename the column of the table, or do not keep it.")
    return copied
