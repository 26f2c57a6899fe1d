"""Predictions with error bars for the rows of a table, written block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ulmus.cli import options
from ulmus.cli.console import Console
from ulmus.cli.steps.streams import CsvStream
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
    method: str | None = None  # method of the prediction intervals; None for the default
    tails: str | None = None
    residual_kriging: bool = False  # whether residuals predict the noise of the rows

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
        own: dict[str, Any] = {"sample_weight": weight}
        given: dict[str, Any] = {"method": self.method, "tails": self.tails}
        given = {name: value for name, value in given.items() if value is not None}
        if self.residual_kriging:
            given["residual_kriging"] = True
            values[COLUMNS.index("estimate")] = inference.predict(
                rows, residual_kriging=True, **own
            )
        if given:
            bounds = inference.predict_interval(rows, self.confidence_level, **given, **own)
            values[COLUMNS.index("pred_low") :] = list(bounds.T)
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

    def write(self, output: Path | None) -> dict[str, Any]:
        """Predict and write block by block, to standard output without a file; the facts of it."""
        if output is None:
            return self._written(CsvStream())
        try:
            require_supported_types(output, self._copied_fields)
            with table_writer(output, self._schema) as writer:
                return self._written(writer)
        except pa.ArrowNotImplementedError as error:
            raise ValueError(f"{output} cannot store all columns of --keep: {error}.") from error

    def frame(self, limit: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Predictions as a data frame, of the first rows of the table with a limit."""
        writer = FrameWriter()
        facts = self._written(writer, limit)
        return pa.concat_tables(writer.tables).to_pandas(), facts

    @property
    def _copied_fields(self) -> list[Any]:
        return [self.table.schema.field(name) for name in self.copied]

    @property
    def _schema(self) -> Any:
        numbers = (pa.field(name, pa.float64()) for name in self.columns.names)
        return pa.schema([*self._copied_fields, *numbers])

    def _written(self, writer: Any, limit: int | None = None) -> dict[str, Any]:
        schema = self._schema
        n_written = n_excluded = 0
        total = max(1, self.table.n_cells // len(self.table.names))
        working, stages = self.console.working(PREDICTING), stage(PREDICTING)
        with working, stages as done:
            for rows, n_read in self._blocks(limit):
                n_rows = 0 if rows is None else rows.num_rows
                if rows is not None:
                    writer.write_table(rows.cast(schema))
                n_written, n_excluded = n_written + n_rows, n_excluded + n_read - n_rows
                done((n_written + n_excluded) / total)
            if n_written == 0:
                raise ValueError(f"{self.table.path} has no complete rows; nothing was written.")
        return {"rows": n_written, "rows_excluded": n_excluded, "columns": schema.names}

    def _batches(self, limit: int | None) -> Iterator[Any]:
        """Blocks of the table; the first rows of the first one with a limit."""
        schema, weight = self.model.columns.schema, self.weight
        names = [*schema.names, *self.copied, *([] if weight is None else [weight])]
        batches = self.table.batches(list(dict.fromkeys(names)))
        return batches if limit is None else (batch.slice(0, limit) for batch in islice(batches, 1))

    def _blocks(self, limit: int | None = None) -> Iterator[tuple[Any, int]]:
        """Copied columns and predictions of complete rows, and the number of rows read."""
        schema, first_row, weight = self.model.columns.schema, 0, None
        for batch in self._batches(limit):
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


class FrameWriter:
    """Keeps the tables that are written."""

    def __init__(self) -> None:
        self.tables: list[Any] = []

    def write_table(self, table: Any) -> None:
        """Keep a table."""
        self.tables.append(table)


def prediction_columns(
    confidence_level: float,
    quantiles: list[str] | None,
    threshold: list[str] | None,
    interval_target: str | None,
    residual_kriging: bool = False,
    method: str | None = None,
    tails: str | None = None,
) -> PredictionColumns:
    """The columns that the options ask for."""
    levels = _numbers("--quantiles", quantiles)
    thresholds = _numbers("--threshold", threshold)
    if residual_kriging and (levels or thresholds):
        option = "--quantiles" if levels else "--threshold"
        raise ValueError(f"--residual-kriging does not apply to {option}; omit one of them.")
    return PredictionColumns(
        confidence_level, levels, thresholds, interval_target, method, tails, residual_kriging
    )


def require_location_columns(noise: Any) -> None:
    """Raise an error if kriging lacks a column of times, coordinates or groups of new rows."""
    from ulmus.noise.structures import location_columns

    columns = location_columns(noise)
    if not columns:
        text = "--residual-kriging requires correlated errors"
        raise ValueError(f"{text}; use --time or --coords of ulmus fit, or omit it.")
    lacking = [axis for axis, name in columns.items() if name is None]
    if lacking:
        options = " and ".join(f"--{axis}" for axis in lacking)
        text = f"--residual-kriging requires the columns of {options} in the model"
        raise ValueError(f"{text}; repeat ulmus fit without --drop of these columns.")


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
