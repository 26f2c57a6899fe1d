"""The columns of a fitted model, and the rows of a table file that it can use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ulmus.cli.console import Console
from ulmus.cli.options import Missing, ReadingOptions
from ulmus.cli.steps.files import note_excluded, numeric_column, open_table, sample_rows
from ulmus.model_file.container import read_document, refusals
from ulmus.tables import NumberColumn, Schema
from ulmus.tables.files import TableFile


@dataclass(frozen=True)
class ModelColumns:
    """The columns that a model requires, and the names of its target and weights."""

    schema: Schema  # the columns
    target: str | None  # name of the target, if the file contains it
    weight: str | None = None  # name of the column of weights, if new rows have them, too
    n_outputs: int = 1  # number of targets

    def table(self, path: Path, reading: ReadingOptions, console: Console) -> TableFile:
        """A table file whose columns are read with the types of this model."""
        table = open_table(path, reading, console)
        return table.with_text_columns(self.schema.categorical)

    def complete_rows(
        self,
        frame: Any,
        path: Path,
        console: Console,
        y: np.ndarray | None = None,
    ) -> tuple[Any, np.ndarray | None]:
        """Rows without missing values, and their target if it was observed."""
        rows, kept = self.schema.convert(frame)
        n_complete = len(rows)
        if y is not None:
            y = y[kept]
            rows, y = rows[~np.isnan(y)], y[~np.isnan(y)]
        if not len(rows):
            raise ValueError(f"{path} has no complete rows.")
        note_excluded(len(frame) - n_complete, console)
        note_excluded(n_complete - len(rows), console, "the target")
        return rows, y

    def weight_column(self, name: str | None, table: TableFile, console: Console) -> str | None:
        """Column of the weights of new rows: the one given, or that of the fit if there is one."""
        if name is not None:
            table.require([name])
            return name
        if self.weight not in table.names:
            return None
        console.note(f"Weights of the rows are those of the column {self.weight!r}, as in the fit.")
        return self.weight

    def weights(self, name: str, frame: Any, first_row: int = 0) -> np.ndarray:
        """Positive weights of some rows; NaN where they are missing and such rows are excluded."""
        weight = numeric_column(name, frame, self.schema.na_values, first_row, "the weight")
        bad = ~(weight > 0)
        if self.schema.missing != "error":
            bad &= ~np.isnan(weight)
        if bad.any():
            i = int(np.argmax(bad))
            value = "missing" if np.isnan(weight[i]) else f"{weight[i]:g}"
            text = f"the weight {name!r} is {value} in data row {first_row + i + 1}"
            raise ValueError(f"{text}; weights of new rows are inverse noise variances, above 0.")
        return weight

    def observed_rows(
        self, table: TableFile, target: str | None, weight: str | None, console: Console
    ) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
        """Complete rows of a table, their target if the table contains it, and their weights."""
        columns, y, weights = list(self.schema.names), None, None
        if target is None or target not in table.names:
            console.note(f"{table.path} has no column {target!r}: there are no observations.")
            frame = sample_rows(table, columns, console)
            rows, y = self.complete_rows(frame, table.path, console, y)
            return rows, y, None
        names = [*columns, target, *([] if weight is None else [weight])]
        frame = sample_rows(table, list(dict.fromkeys(names)), console)
        y = numeric_column(target, frame, self.schema.na_values, 0, "the target")
        if weight is not None:
            weights = self.weights(weight, frame)
            y = np.where(np.isnan(weights), np.nan, y)
        rows, y = self.complete_rows(frame, table.path, console, y)
        if weights is not None:
            weights = weights[frame.index.get_indexer(rows.index)]
        return rows, y, weights


def model_columns(path: Path, missing: Missing | None = None) -> ModelColumns:
    """The columns of the model in a file, with another rule for missing values if one is given."""
    document = read_document(path)
    with refusals(path):
        schema = _saved_schema(document)
        n_outputs = int(document["training"]["outputs"])
        unweighted = document["training"].get("weights_of_means", False)
    if schema is None:
        text = f"{path} was fitted to an array without column names"
        raise ValueError(f"{text}; fit it to a data frame, or with `ulmus fit`.")
    schema = schema.with_missing(missing and missing.value)
    weight = None if unweighted else document.get("sample_weight")
    return ModelColumns(schema, document.get("target"), weight, n_outputs)


def _saved_schema(document: Mapping[str, Any]) -> Schema | None:
    """The schema of a model file; numbers of these names if it was fitted to a frame of them."""
    columns = document["columns"]
    if columns["schema"] is not None:
        return Schema.from_description(columns["schema"])
    names = columns["names"]
    if names is None:
        return None
    return Schema(tuple(NumberColumn(str(name)) for name in names), missing="error")
