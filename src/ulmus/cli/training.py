"""A model from a table in a file, in memory or block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from ulmus.arrow import Columns
from ulmus.cli.places import PlaceColumns, missing_places
from ulmus.cli.rows import numeric_column
from ulmus.cli.tables import TableFile
from ulmus.cli.talk import Talk
from ulmus.columns import Schema, TableEncoder, learned_schema


@dataclass(frozen=True)
class Plan:
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
    places : PlaceColumns
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
    places: PlaceColumns = field(default_factory=PlaceColumns)
    noise: str | None = None

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        weight = [] if self.weight is None else [self.weight]
        return list(dict.fromkeys([*self.inputs, self.target, *weight, *self.places.names]))

    def placed(self, frame: Any, first_row: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Places of some rows by axis, and which rows lack one."""
        values = self.places.values(frame, self.marks, first_row)
        lacking = missing_places(values, len(frame))
        if self.missing == "error" and lacking.any():
            row = first_row + int(np.argmax(lacking)) + 1
            raise ValueError(
                f"data row {row} has no value of {', '.join(self.places.names)}; fill it, or "
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


class Trained(NamedTuple):
    """A fitted model, the table as it saw it, and how many rows were left out."""

    model: Pipeline
    n_left_out: int
    frame: Any
    y: np.ndarray | None


def plan_of(
    table: TableFile,
    target: str,
    *,
    columns: Sequence[str],
    drop: Sequence[str],
    weight: str | None,
    places: PlaceColumns,
    noise: str | None,
    **rules: Any,
) -> Plan:
    """A plan whose columns are all in the table."""
    places.require_use(noise)
    given = [target, *columns, *drop, *([] if weight is None else [weight]), *places.names]
    table.require(given)
    if target in places.names:
        raise ValueError(f"{target} is the target; name other columns for times and places.")
    if weight == target:
        raise ValueError(f"--weight {weight} is the target; name a column of row weights.")
    left_out = {target, weight, *drop}
    wanted = dict.fromkeys(columns) or table.named
    inputs = tuple(name for name in wanted if name not in left_out)
    if not inputs:
        raise ValueError(f"{table.path} has no inputs besides the target {target!r}; add columns.")
    rules |= {"places": places, "noise": noise}
    return Plan(table.with_texts(rules["categorical"]), target, inputs, weight, **rules)


def trained_in_memory(plan: Plan, model: Any, talk: Talk) -> Trained:
    """Fit a table that fits into memory."""
    with talk.working("Reading the table"):
        frame = plan.table.frame(plan.columns)
        n_read = len(frame)
        y, weight = plan.observed(frame, 0)
        places, lacking = plan.placed(frame, 0)
        schema = _learned(plan, [frame[list(plan.inputs)]], talk)
        known = np.flatnonzero(~np.isnan(y) & ~lacking)
        # The encoder fills gaps, the report counts them.
        tidy, complete = schema.tidied(frame.iloc[known], gaps=True)
        known = known[complete]
        y, weight = y[known], None if weight is None else weight[known]
        places = {axis: values[known] for axis, values in places.items()}
    if len(y) < 2:
        raise ValueError(f"{plan.table.path} has {len(y)} complete rows; a model needs more.")
    encoder = TableEncoder.of(schema)
    model.set_params(noise=plan.places.noise(plan.noise, schema.features))
    given = plan.places.given(places, schema.features)
    with talk.working(f"Fitting {len(y):,} rows"):
        model.fit(encoder.transform(tidy), y, sample_weight=weight, **given)
    pipe = Pipeline([("columns", encoder), ("model", model)])
    return Trained(pipe, n_read - len(y), tidy, y)


def trained_in_blocks(plan: Plan, model: Any, talk: Talk) -> Trained:
    """Fit a table that is read several times and never kept."""
    with talk.working("Looking at the columns"):
        schema = _learned(plan, plan.table.frames(plan.inputs), talk)
    counts = {"rows": 0, "kept": 0}

    def pieces() -> Iterator[tuple[tuple[Any, ...], dict[str, np.ndarray]]]:
        """Blocks of complete rows, and their places."""
        counts.update(rows=0, kept=0)
        for frame in plan.table.frames(plan.columns):
            y, weight = plan.observed(frame, counts["rows"])
            places, lacking = plan.placed(frame, counts["rows"])
            codes, kept = schema.coded(frame, counts["rows"])
            complete = ~np.isnan(y) & ~lacking
            X = Columns(schema.expanded(codes[complete[kept]]), schema.features)
            known = kept & complete
            counts["rows"] += len(frame)
            counts["kept"] += len(X)
            weights = () if weight is None else (weight[known],)
            yield (X, y[known], *weights), {axis: v[known] for axis, v in places.items()}

    def blocks() -> Iterator[tuple[Any, ...]]:
        return (block for block, _ in pieces())

    model.set_params(noise=plan.places.noise(plan.noise, schema.features))
    given = _joined_places(plan, schema, pieces)
    with talk.working("Fitting, block by block"):
        model.fit_blocks(blocks, **given)
    pipe = Pipeline([("columns", TableEncoder.of(schema)), ("model", model)])
    return Trained(pipe, counts["rows"] - counts["kept"], None, None)


def _joined_places(plan: Plan, schema: Schema, pieces: Any) -> dict[str, np.ndarray]:
    """Places of all rows that noise cannot name as inputs, from a reading if there are any."""
    unnamed = plan.places.given(dict.fromkeys(plan.places.axes), schema.features)
    if not unnamed:
        return {}
    parts = [places for _, places in pieces()]
    return {axis: np.concatenate([part[axis] for part in parts]) for axis in unnamed}


def _learned(plan: Plan, frames: Any, talk: Talk) -> Schema:
    learned = learned_schema(
        frames, categorical=plan.categorical, missing=plan.missing, marks=plan.marks
    )
    for text in learned.notes:
        talk.note(text)
    return learned.schema
