"""A model from a table in a file, in memory or block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ulmus.cli.console import Console
from ulmus.cli.steps.files import note_excluded
from ulmus.cli.steps.roles import TrainConfig
from ulmus.diagnostics import Summary
from ulmus.estimators import ELMEnsembleRegressor
from ulmus.estimators._target import target_spec
from ulmus.estimators._threads import n_threads
from ulmus.model_file import save
from ulmus.tables import Schema


@dataclass(frozen=True)
class TrainResult:
    """A fitted model, and the rows that it was fitted to."""

    config: TrainConfig
    model: ELMEnsembleRegressor  # a fitted estimator, which accepts such tables
    n_excluded: int  # rows excluded because of missing values
    n_unobserved: int  # those of them without a target, a weight or a location
    frame: Any = None  # inputs of the rows; None if they were read in blocks
    y: np.ndarray | None = None  # (n,): their targets

    @property
    def schema(self) -> Schema:
        """The columns of the model."""
        return self.model.columns_

    def summary(self, console: Console) -> Summary:
        """Accuracy, diagnostics and settings of the fit."""
        with console.working("Computing diagnostics"):
            summary = self.model.summary()
        # Those of the columns are printed with the fit.
        notes = tuple(note for note in summary.notes if note not in self.schema.notes)
        return replace(summary, notes=notes)

    def save(self, output: Path, *, rows: bool, console: Console) -> None:
        """Write the model file."""
        config = self.config
        with console.working(f"Writing {output}"):
            save(self.model, output, rows=rows, target=config.target, sample_weight=config.weight)


def train(
    config: TrainConfig, parameters: dict[str, Any], stream: bool | None, console: Console
) -> TrainResult:
    """Fit in memory or block by block; by default, large tables are read in blocks."""
    table = config.table
    model = ELMEnsembleRegressor(
        categorical=config.categorical,
        missing=config.missing,
        na_values=config.na_values,
        unknown=config.unknown,
        **parameters,
    )
    # Parameters that contradict each other are refused before rows are read.
    target_spec(model)
    n_threads(model.n_jobs)
    if table.is_large if stream is None else stream:
        console.note(
            f"{table.path} has about {table.n_cells:,} cells and is read in blocks: training rows "
            "are not stored, so leave-one-out diagnostics are not available."
        )
        result = _train_in_blocks(config, model, console)
    else:
        result = _train_in_memory(config, model, console)
    for text in result.schema.notes:
        console.note(text)
    note_excluded(result.n_unobserved, console, config.observed_columns)
    return result


def _train_in_memory(config: TrainConfig, model: Any, console: Console) -> TrainResult:
    with console.working("Reading the table"):
        frame = config.table.frame(config.columns)
        y, weight = config.observed(frame, 0)
        locations, lacking = config.location_values(frame, 0)
        rows = np.flatnonzero(~np.isnan(y) & ~lacking)
        inputs, y = frame[list(config.inputs)].iloc[rows], y[rows]
        weight = None if weight is None else weight[rows]
        locations = {axis: values[rows] for axis, values in locations.items()}
    if len(y) < 2:
        rows_found = f"{len(y)} complete {'row' if len(y) == 1 else 'rows'}"
        raise ValueError(f"{config.table.path} has {rows_found}; a model requires at least 2.")
    model.set_params(noise=config.locations.noise(config.noise, config.inputs))
    arguments = config.locations.arguments(locations, config.inputs)
    with console.working(f"Fitting {len(y):,} rows"):
        model._fit_table(inputs, y, weight, arguments, learn_columns=True)
    # The rows that the fit kept; the report counts the cells that it filled in.
    inputs, kept = model.columns_.convert(inputs)
    n_excluded, n_unobserved = len(frame) - len(inputs), len(frame) - len(rows)
    return TrainResult(config, model, n_excluded, n_unobserved, inputs, y[kept])


def _train_in_blocks(config: TrainConfig, model: Any, console: Console) -> TrainResult:
    """Fit a table that is read several times and never stored."""
    n_read = n_observed = 0

    def pieces() -> Iterator[tuple[tuple[Any, ...], dict[str, np.ndarray]]]:
        """Blocks of rows with a target, and their locations."""
        nonlocal n_read, n_observed
        n_read = n_observed = 0
        for frame in config.table.frames(config.columns):
            y, weight = config.observed(frame, n_read)
            locations, lacking = config.location_values(frame, n_read)
            rows = np.flatnonzero(~np.isnan(y) & ~lacking)
            weights = () if weight is None else (weight[rows],)
            inputs = frame[list(config.inputs)].iloc[rows]
            n_read, n_observed = n_read + len(frame), n_observed + len(rows)
            yield (inputs, y[rows], *weights), {a: v[rows] for a, v in locations.items()}

    def blocks() -> Iterator[tuple[Any, ...]]:
        return (block for block, _ in pieces())

    model.set_params(noise=config.locations.noise(config.noise, config.inputs))
    arguments = _joined_locations(config, pieces)
    with console.working("Fitting, block by block"):
        model._fit_blocks(blocks, arguments, learn_columns=True)
    return TrainResult(config, model, n_read - model.fitted_.n_rows, n_read - n_observed)


def _joined_locations(config: TrainConfig, pieces: Any) -> dict[str, np.ndarray]:
    """Locations of all rows that noise cannot name as inputs, from a pass if there are any."""
    axes = config.locations.arguments(dict.fromkeys(config.locations.axes), config.inputs)
    if not axes:
        return {}
    parts = [locations for _, locations in pieces()]
    return {axis: np.concatenate([part[axis] for part in parts]) for axis in axes}
