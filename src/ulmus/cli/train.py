"""A model from a table in a file, in memory or block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from sklearn.pipeline import Pipeline

from ulmus.cli.console import Console
from ulmus.cli.loaded_model import note_excluded, numeric_column
from ulmus.cli.noise_options import LocationColumns, NoiseOptions, missing_locations
from ulmus.cli.options import Missing, column_names, columns_option
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting
from ulmus.tables import Schema, TableEncoder, infer_schema
from ulmus.tables.arrow import NamedArray
from ulmus.tables.files import TableFile

EXCLUDE_ROWS = ("fill it", Setting("missing", "drop", "use {} to exclude such rows"))


@dataclass(frozen=True)
class ColumnOptions:
    """Roles of the columns, and missing values."""

    columns: Annotated[
        list[str] | None, columns_option(help="Inputs (default: all other columns).")
    ] = None
    drop: Annotated[list[str] | None, columns_option(help="Columns that are not inputs.")] = None
    categorical: Annotated[
        list[str] | None, columns_option(help="Columns of numbers that are labels of categories.")
    ] = None
    sample_weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of row weights: inverse noise variances."),
    ] = None
    missing: Annotated[
        Missing,
        typer.Option(help="Rows with missing values: refuse, exclude, or fill in medians."),
    ] = Missing.error
    na_values: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A code for missing values, such as -999."),
    ] = None


@dataclass(frozen=True)
class TrainConfig:
    """The roles of the columns of a table."""

    table: TableFile
    target: str  # column to predict
    inputs: tuple[str, ...]  # columns that may serve as inputs
    weight: str | None  # column of row weights
    categorical: tuple[str, ...]  # columns of numbers that are labels of categories
    missing: str  # rule for rows with missing values: "error", "drop" or "impute"
    na_values: tuple[str, ...]  # codes for missing values
    locations: LocationColumns  # columns of times, coordinates and groups
    noise: str | None  # name of the noise model; None for the default of the locations

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        weight = [] if self.weight is None else [self.weight]
        return list(dict.fromkeys([*self.inputs, self.target, *weight, *self.locations.names]))

    def location_values(
        self, frame: Any, first_row: int
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Locations of some rows by axis, and whether each row lacks one."""
        values = self.locations.values(frame, self.na_values, first_row)
        lacking = missing_locations(values, len(frame))
        names = ", ".join(self.locations.names)
        self._refuse_missing(lacking, first_row, lambda row: f"{row} has no value of {names}")
        return values, lacking

    def observed(self, frame: Any, first_row: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Target and weights of some rows; NaN where either is missing."""
        y = self._numbers(self.target, frame, first_row, "the target")
        if self.weight is None:
            return y, None
        weight = self._numbers(self.weight, frame, first_row, "the weight")
        if np.any(weight < 0):
            row = first_row + int(np.argmax(weight < 0)) + 1
            text = f"the weight {self.weight!r} is negative in data row {row}"
            raise ValueError(f"{text}; weights are inverse noise variances, 0 or more.")
        return np.where(np.isnan(weight), np.nan, y), weight

    def _numbers(self, name: str, frame: Any, first_row: int, role: str) -> np.ndarray:
        values = numeric_column(name, frame, self.na_values, first_row, role)
        text = f"{role} {name!r} has no value in "
        self._refuse_missing(np.isnan(values), first_row, lambda row: text + row)
        return values

    def _refuse_missing(self, missing: np.ndarray, first_row: int, text: Any) -> None:
        """Refuse the first row with a missing value, if these are errors."""
        if self.missing == "error" and missing.any():
            row = f"data row {first_row + int(np.argmax(missing)) + 1}"
            raise InputError(Message("missing-value", text(row), suggestions=EXCLUDE_ROWS))


class TrainResult(NamedTuple):
    """A fitted model, the rows that it was fitted to, and the number of rows excluded."""

    model: Pipeline
    n_excluded: int
    frame: Any
    y: np.ndarray | None


def train_config(
    table: TableFile, target: str, options: ColumnOptions, errors: NoiseOptions
) -> TrainConfig:
    """The roles of columns that are all in the table."""
    inputs, drop, categorical = (
        column_names(names, table.names)
        for names in (options.columns, options.drop, options.categorical)
    )
    weight, locations = options.sample_weight, errors.locations(table.names)
    table.require([target, *inputs, *drop, *([] if weight is None else [weight]), *locations.names])
    if target in locations.names:
        raise ValueError(f"{target} is the target; name other columns for times and locations.")
    if weight == target:
        raise ValueError(f"--sample-weight {weight} is the target; name a column of row weights.")
    candidates = dict.fromkeys(inputs) or table.named_columns
    inputs = tuple(name for name in candidates if name not in {target, weight, *drop})
    if not inputs:
        raise ValueError(f"{table.path} has no inputs besides the target {target!r}; add columns.")
    return TrainConfig(
        table=table.with_text_columns(categorical),
        target=target,
        inputs=inputs,
        weight=weight,
        categorical=categorical,
        missing=options.missing.value,
        na_values=tuple(options.na_values or ()),
        locations=locations,
        noise=errors.noise,
    )


def train(config: TrainConfig, model: Any, stream: bool | None, console: Console) -> TrainResult:
    """Fit in memory or block by block; by default, large tables are read in blocks."""
    table = config.table
    if table.is_large if stream is None else stream:
        console.note(
            f"{table.path} has about {table.n_cells:,} cells and is read in blocks: training rows "
            "are not stored, so leave-one-out diagnostics are not available."
        )
        result = _train_in_blocks(config, model, console)
    else:
        result = _train_in_memory(config, model, console)
    note_excluded(result.n_excluded, console)
    return result


def _train_in_memory(config: TrainConfig, model: Any, console: Console) -> TrainResult:
    with console.working("Reading the table"):
        frame = config.table.frame(config.columns)
        y, weight = config.observed(frame, 0)
        locations, lacking = config.location_values(frame, 0)
        schema = _inferred_schema(config, [frame[list(config.inputs)]], console)
        rows = np.flatnonzero(~np.isnan(y) & ~lacking)
        # The encoder imputes missing values, the report counts them.
        inputs, complete = schema.convert(frame.iloc[rows], keep_missing=True)
        rows = rows[complete]
        y, weight = y[rows], None if weight is None else weight[rows]
        locations = {axis: values[rows] for axis, values in locations.items()}
    if len(y) < 2:
        rows_found = f"{len(y)} complete {'row' if len(y) == 1 else 'rows'}"
        raise ValueError(f"{config.table.path} has {rows_found}; a model requires at least 2.")
    encoder = TableEncoder.from_schema(schema)
    model.set_params(noise=config.locations.noise(config.noise, schema.features))
    arguments = config.locations.arguments(locations, schema.features)
    with console.working(f"Fitting {len(y):,} rows"):
        model.fit(encoder.transform(inputs), y, sample_weight=weight, **arguments)
    pipe = Pipeline([("columns", encoder), ("model", model)])
    return TrainResult(pipe, len(frame) - len(y), inputs, y)


def _train_in_blocks(config: TrainConfig, model: Any, console: Console) -> TrainResult:
    """Fit a table that is read several times and never stored."""
    with console.working("Reading the columns"):
        schema = _inferred_schema(config, config.table.frames(config.inputs), console)
    n_read = n_kept = 0

    def pieces() -> Iterator[tuple[tuple[Any, ...], dict[str, np.ndarray]]]:
        """Blocks of complete rows, and their locations."""
        nonlocal n_read, n_kept
        n_read = n_kept = 0
        for frame in config.table.frames(config.columns):
            y, weight = config.observed(frame, n_read)
            locations, lacking = config.location_values(frame, n_read)
            codes, kept = schema.parse(frame, n_read)
            complete = ~np.isnan(y) & ~lacking
            X = NamedArray(schema.encode(codes[complete[kept]]), schema.features)
            rows = kept & complete
            n_read, n_kept = n_read + len(frame), n_kept + len(X)
            weights = () if weight is None else (weight[rows],)
            yield (X, y[rows], *weights), {axis: v[rows] for axis, v in locations.items()}

    def blocks() -> Iterator[tuple[Any, ...]]:
        return (block for block, _ in pieces())

    noise = config.locations.noise(config.noise, schema.features)
    # Blocks in parallel use more cores than the products of one block.
    model.set_params(noise=noise, n_jobs=-1)
    arguments = _joined_locations(config, schema, pieces)
    with console.working("Fitting, block by block"):
        model.fit_blocks(blocks, **arguments)
    pipe = Pipeline([("columns", TableEncoder.from_schema(schema)), ("model", model)])
    return TrainResult(pipe, n_read - n_kept, None, None)


def _joined_locations(config: TrainConfig, schema: Schema, pieces: Any) -> dict[str, np.ndarray]:
    """Locations of all rows that noise cannot name as inputs, from a pass if there are any."""
    axes = config.locations.arguments(dict.fromkeys(config.locations.axes), schema.features)
    if not axes:
        return {}
    parts = [locations for _, locations in pieces()]
    return {axis: np.concatenate([part[axis] for part in parts]) for axis in axes}


def _inferred_schema(config: TrainConfig, frames: Any, console: Console) -> Schema:
    how: dict[str, Any] = {"missing": config.missing, "na_values": config.na_values}
    inferred = infer_schema(frames, categorical=config.categorical, **how)
    for text in inferred.notes:
        console.note(text)
    return inferred.schema
