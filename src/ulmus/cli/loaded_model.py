"""A model file, and the rows of a table file that the model can use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ulmus.cli.console import Console, counted_rows
from ulmus.cli.options import Missing, ReadingOptions
from ulmus.model_file import load, model_document
from ulmus.pipelines import inference
from ulmus.tables import BooleanColumn, NumberColumn, Schema, TableEncoder
from ulmus.tables.cells import Cells
from ulmus.tables.columns import column_type
from ulmus.tables.files import TableFile, table_file
from ulmus.tables.formats import CsvDialect

# Tables with more cells than fit into memory are represented by at most so many rows.
MAX_ROWS = 200_000


@dataclass(frozen=True)
class LoadedModel:
    """A model, the columns it requires, and the name of its target."""

    pipeline: Pipeline  # an encoder of tables, and a fitted estimator
    schema: Schema  # the columns
    target: str | None  # name of the target, if the file contains it
    weight: str | None = None  # name of the column of row weights, if there was one

    @property
    def inference(self) -> Any:
        """All methods of the estimator, for tables."""
        return inference(self.pipeline)

    @property
    def estimator(self) -> Any:
        """The fitted estimator behind the encoder."""
        return self.pipeline.steps[-1][1]

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
        *,
        keep_missing: bool = False,
    ) -> tuple[Any, np.ndarray | None]:
        """Rows without missing values, and their target if it was observed."""
        rows, kept = self.schema.convert(frame, keep_missing=keep_missing)
        if y is not None:
            y = y[kept]
            rows, y = rows[~np.isnan(y)], y[~np.isnan(y)]
        if not len(rows):
            raise ValueError(f"{path} has no complete rows.")
        note_excluded(len(frame) - len(rows), console)
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
        if self.schema.missing == "drop":
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
            rows, y = self.complete_rows(frame, table.path, console, y, keep_missing=True)
            return rows, y, None
        names = [*columns, target, *([] if weight is None else [weight])]
        frame = sample_rows(table, list(dict.fromkeys(names)), console)
        y = numeric_column(target, frame, self.schema.na_values, 0, "the target")
        if weight is not None:
            weights = self.weights(weight, frame)
            y = np.where(np.isnan(weights), np.nan, y)
        rows, y = self.complete_rows(frame, table.path, console, y, keep_missing=True)
        if weights is not None:
            weights = weights[frame.index.get_indexer(rows.index)]
        return rows, y, weights


def load_model(path: Path, missing: Missing | None = None) -> LoadedModel:
    """The model of a file, with another rule for missing values if one is given."""
    model = load(path)
    schema = _schema(model, path).with_missing(missing and missing.value)
    estimator = model.steps[-1][1] if isinstance(model, Pipeline) else model
    pipe = Pipeline([("columns", TableEncoder.from_schema(schema)), ("model", estimator)])
    document = model_document(path)
    return LoadedModel(pipe, schema, document.get("target"), document.get("sample_weight"))


def _schema(model: Any, path: Path) -> Schema:
    if isinstance(model, Pipeline):
        return replace(model.steps[0][1].schema_, unknown="error")
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        text = f"{path} was fitted to an array without column names"
        raise ValueError(f"{text}; fit it to a data frame, or with `ulmus fit`.")
    return Schema(tuple(NumberColumn(str(name)) for name in names))


def open_table(path: Path, reading: ReadingOptions, console: Console) -> TableFile:
    """A table file; what was detected in a CSV file is noted."""
    dialect = CsvDialect(reading.delimiter, reading.decimal, reading.encoding)
    table, notes = table_file(path, dialect)
    for text in notes:
        console.note(text)
    return table


def numeric_column(
    name: str, frame: Any, na_values: tuple[str, ...], first_row: int, role: str
) -> np.ndarray:
    """A column that must contain numbers."""
    cells = Cells(name, frame[name], na_values, first_row)
    found = column_type(cells)
    if found not in (None, NumberColumn, BooleanColumn):
        content = f"{found.plural}, such as {str(cells.texts[0])!r}"
        raise ValueError(f"{role} {name!r} contains {content}; name a column of numbers.")
    return cells.numbers()


def note_excluded(n_rows: int, console: Console) -> None:
    """Note the number of rows excluded because of missing values."""
    if n_rows:
        console.note(f"Excluded: {counted_rows(n_rows)} with missing values.")


def sample_rows(table: TableFile, columns: Sequence[Any], console: Console) -> Any:
    """All rows of a table, or evenly spaced ones of a large table."""
    import pandas as pd

    if not table.is_large:
        return table.frame(columns)
    step, start, n_kept, parts = 1, 0, 0, []
    for frame in table.frames(columns):
        numbered = frame.set_axis(np.arange(start, start + len(frame)))
        parts.append(numbered.iloc[-start % step :: step])
        start, n_kept = start + len(frame), n_kept + len(parts[-1])
        while n_kept > MAX_ROWS:
            step *= 2
            parts = [part[part.index % step == 0] for part in parts]
            n_kept = sum(map(len, parts))
    console.note(f"{table.path} is large: {n_kept:,} evenly spaced rows of {start:,} are used.")
    rows = pd.concat(parts)
    return rows.set_axis(rows.index + 1)
