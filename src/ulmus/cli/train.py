"""A model from a table in a file, in memory or block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from ulmus.cli.console import Console
from ulmus.cli.noise_options import LocationColumns, missing_locations
from ulmus.cli.rows import numeric_column
from ulmus.tables import Schema, TableEncoder, learned_schema
from ulmus.tables.arrow import Columns
from ulmus.tables.files import TableFile


@dataclass(frozen=True)
class TrainConfig:
    """What is to be learned from a table.

    Parameters
    ----------
    table : TableFile
        The table.
    target : str
        Column to predict.
    inputs : tuple of str
        Columns that may serve as inputs.
    weight : str or None
        Column of row weights.
    categorical : tuple of str
        Columns of numbers that are names of categories.
    missing : {"error", "drop", "impute"}
        What rows with missing values get.
    marks : tuple of str
        What stands for a missing value.
    places : LocationColumns
        Columns of times, coordinates and groups.
    noise : str or None
        Name of the noise, or None for what the places mean.
    """

    table: TableFile
    target: str
    inputs: tuple[str, ...]
    weight: str | None = None
    categorical: tuple[str, ...] = ()
    missing: str = "error"
    marks: tuple[str, ...] = ()
    locations: LocationColumns = field(default_factory=LocationColumns)
    noise: str | None = None

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        weight = [] if self.weight is None else [self.weight]
        return list(dict.fromkeys([*self.inputs, self.target, *weight, *self.locations.names]))

    def placed(self, frame: Any, first_row: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Locations of some rows by axis, and which rows lack one."""
        values = self.locations.values(frame, self.marks, first_row)
        lacking = missing_locations(values, len(frame))
        if self.missing == "error" and lacking.any():
            row = first_row + int(np.argmax(lacking)) + 1
            raise ValueError(
                f"data row {row} has no value of {', '.join(self.locations.names)}; fill it, or "
                "choose missing='drop' to leave such rows out."
            )
        return values, lacking

    def observed(self, frame: Any, first_row: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Target and weights of some rows; NaN where either is missing."""
        y = self._numbers(self.target, frame, first_row, "the target")
        if self.weight is None:
            return y, None
        weight = self._numbers(self.weight, frame, first_row, "the weight")
        if np.any(weight < 0):
            row = first_row + int(np.argmax(weight < 0)) + 1
            raise ValueError(
                f"the weight {self.weight!r} is negative in data row {row}; weights are inverse "
                "noise variances, 0 or more."
            )
        return np.where(np.isnan(weight), np.nan, y), weight

    def _numbers(self, name: str, frame: Any, first_row: int, role: str) -> np.ndarray:
        values = numeric_column(name, frame, self.marks, first_row, role)
        if self.missing == "error" and np.isnan(values).any():
            row = first_row + int(np.argmax(np.isnan(values))) + 1
            raise ValueError(
                f"{role} {name!r} has no value in data row {row}; fill it, or choose "
                "missing='drop' to leave such rows out."
            )
        return values


class TrainResult(NamedTuple):
    """A fitted model, the table as it saw it, and how many rows were left out."""

    model: Pipeline
    n_left_out: int
    frame: Any
    y: np.ndarray | None


def train_config(
    table: TableFile,
    target: str,
    *,
    columns: Sequence[str],
    drop: Sequence[str],
    weight: str | None,
    locations: LocationColumns,
    noise: str | None,
    **rules: Any,
) -> TrainConfig:
    """A plan whose columns are all in the table."""
    locations.require_use(noise)
    given = [target, *columns, *drop, *([] if weight is None else [weight]), *locations.names]
    table.require(given)
    if target in locations.names:
        raise ValueError(f"{target} is the target; name other columns for times and places.")
    if weight == target:
        raise ValueError(f"--weight {weight} is the target; name a column of row weights.")
    left_out = {target, weight, *drop}
    wanted = dict.fromkeys(columns) or table.named
    inputs = tuple(name for name in wanted if name not in left_out)
    if not inputs:
        raise ValueError(f"{table.path} has no inputs besides the target {target!r}; add columns.")
    rules |= {"locations": locations, "noise": noise}
    return TrainConfig(table.with_texts(rules["categorical"]), target, inputs, weight, **rules)


def train_in_memory(plan: TrainConfig, model: Any, console: Console) -> TrainResult:
    """Fit a table that fits into memory."""
    with console.working("Reading the table"):
        frame = plan.table.frame(plan.columns)
        n_read = len(frame)
        y, weight = plan.observed(frame, 0)
        locations, lacking = plan.placed(frame, 0)
        schema = _learned(plan, [frame[list(plan.inputs)]], console)
        known = np.flatnonzero(~np.isnan(y) & ~lacking)
        # The encoder fills gaps, the report counts them.
        tidy, complete = schema.tidied(frame.iloc[known], gaps=True)
        known = known[complete]
        y, weight = y[known], None if weight is None else weight[known]
        locations = {axis: values[known] for axis, values in locations.items()}
    if len(y) < 2:
        raise ValueError(f"{plan.table.path} has {len(y)} complete rows; a model needs more.")
    encoder = TableEncoder.of(schema)
    model.set_params(noise=plan.locations.noise(plan.noise, schema.features))
    given = plan.locations.given(locations, schema.features)
    with console.working(f"Fitting {len(y):,} rows"):
        model.fit(encoder.transform(tidy), y, sample_weight=weight, **given)
    pipe = Pipeline([("columns", encoder), ("model", model)])
    return TrainResult(pipe, n_read - len(y), tidy, y)


def train_in_blocks(plan: TrainConfig, model: Any, console: Console) -> TrainResult:
    """Fit a table that is read several times and never kept."""
    with console.working("Looking at the columns"):
        schema = _learned(plan, plan.table.frames(plan.inputs), console)
    counts = {"rows": 0, "kept": 0}

    def pieces() -> Iterator[tuple[tuple[Any, ...], dict[str, np.ndarray]]]:
        """Blocks of complete rows, and their places."""
        counts.update(rows=0, kept=0)
        for frame in plan.table.frames(plan.columns):
            y, weight = plan.observed(frame, counts["rows"])
            locations, lacking = plan.placed(frame, counts["rows"])
            codes, kept = schema.coded(frame, counts["rows"])
            complete = ~np.isnan(y) & ~lacking
            X = Columns(schema.expanded(codes[complete[kept]]), schema.features)
            known = kept & complete
            counts["rows"] += len(frame)
            counts["kept"] += len(X)
            weights = () if weight is None else (weight[known],)
            yield (X, y[known], *weights), {axis: v[known] for axis, v in locations.items()}

    def blocks() -> Iterator[tuple[Any, ...]]:
        return (block for block, _ in pieces())

    model.set_params(noise=plan.locations.noise(plan.noise, schema.features))
    given = _joined_places(plan, schema, pieces)
    with console.working("Fitting, block by block"):
        model.fit_blocks(blocks, **given)
    pipe = Pipeline([("columns", TableEncoder.of(schema)), ("model", model)])
    return TrainResult(pipe, counts["rows"] - counts["kept"], None, None)


def _joined_places(plan: TrainConfig, schema: Schema, pieces: Any) -> dict[str, np.ndarray]:
    """Locations of all rows that noise cannot name as inputs, from a reading if there are any."""
    unnamed = plan.locations.given(dict.fromkeys(plan.locations.axes), schema.features)
    if not unnamed:
        return {}
    parts = [locations for _, locations in pieces()]
    return {axis: np.concatenate([part[axis] for part in parts]) for axis in unnamed}


def _learned(plan: TrainConfig, frames: Any, console: Console) -> Schema:
    learned = learned_schema(
        frames, categorical=plan.categorical, missing=plan.missing, marks=plan.marks
    )
    for text in learned.notes:
        console.note(text)
    return learned.schema
