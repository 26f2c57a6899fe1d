"""A model from a table in a file, in memory or block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ulmus.cli.console import Console
from ulmus.cli.steps.files import note_excluded
from ulmus.cli.steps.roles import TrainConfig
from ulmus.diagnostics import Summary
from ulmus.estimators import ELMEnsembleRegressor
from ulmus.pipelines import inference
from ulmus.tables import Schema, TableEncoder, infer_schema
from ulmus.tables.arrow import NamedArray


@dataclass(frozen=True)
class TrainResult:
    """A fitted model, and the rows that it was fitted to."""

    config: TrainConfig
    model: Pipeline  # an encoder of tables, and a fitted estimator
    n_excluded: int  # rows excluded because of missing values
    frame: Any = None  # inputs of the rows; None if they were read in blocks
    y: np.ndarray | None = None  # (n,): their targets

    @property
    def schema(self) -> Schema:
        """The columns of the model."""
        return self.model.steps[0][1].schema_

    def summary(self, console: Console) -> Summary:
        """Accuracy, diagnostics and settings of the fit."""
        with console.working("Computing diagnostics"):
            return inference(self.model).summary(columns=self.schema.origins)

    def save(self, output: Path, *, rows: bool, console: Console) -> None:
        """Write the model file."""
        names = {"target": self.config.target, "sample_weight": self.config.weight}
        with console.working(f"Writing {output}"):
            inference(self.model).save(output, rows=rows, **names)


def train(
    config: TrainConfig, parameters: dict[str, Any], stream: bool | None, console: Console
) -> TrainResult:
    """Fit in memory or block by block; by default, large tables are read in blocks."""
    table, model = config.table, ELMEnsembleRegressor(n_jobs=-1, **parameters)
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
    return TrainResult(config, pipe, len(frame) - len(y), inputs, y)


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
    model.set_params(noise=noise)
    arguments = _joined_locations(config, schema, pieces)
    with console.working("Fitting, block by block"):
        model.fit_blocks(blocks, **arguments)
    pipe = Pipeline([("columns", TableEncoder.from_schema(schema)), ("model", model)])
    return TrainResult(config, pipe, n_read - n_kept)


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
