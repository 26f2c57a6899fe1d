"""A model from a table in a file, in memory or block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from ulmus.arrow import Columns
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
    """

    table: TableFile
    target: str
    inputs: tuple[str, ...]
    weight: str | None = None
    categorical: tuple[str, ...] = ()
    missing: str = "error"
    marks: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return [*self.inputs, self.target, *([] if self.weight is None else [self.weight])]

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
    **rules: Any,
) -> Plan:
    """A plan whose columns are all in the table."""
    given = [target, *columns, *drop, *([] if weight is None else [weight])]
    table.require(given)
    if weight == target:
        raise ValueError(f"--weight {weight} is the target; name a column of row weights.")
    left_out = {target, weight, *drop}
    wanted = dict.fromkeys(columns) or table.named
    inputs = tuple(name for name in wanted if name not in left_out)
    if not inputs:
        raise ValueError(f"{table.path} has no inputs besides the target {target!r}; add columns.")
    return Plan(table.with_texts(rules["categorical"]), target, inputs, weight, **rules)


def trained_in_memory(plan: Plan, model: Any, talk: Talk) -> Trained:
    """Fit a table that fits into memory."""
    with talk.working("Reading the table"):
        frame = plan.table.frame(plan.columns)
        n_read = len(frame)
        y, weight = plan.observed(frame, 0)
        schema = _learned(plan, [frame[list(plan.inputs)]], talk)
        frame, y, weight = frame[~np.isnan(y)], y[~np.isnan(y)], _known(weight, ~np.isnan(y))
        tidy, kept = schema.tidied(frame, gaps=True)  # the encoder fills them, the report counts
        y, weight = y[kept], _known(weight, kept)
    if len(y) < 2:
        raise ValueError(f"{plan.table.path} has {len(y)} complete rows; a model needs more.")
    encoder = TableEncoder.of(schema)
    with talk.working(f"Fitting {len(y):,} rows"):
        model.fit(encoder.transform(tidy), y, sample_weight=weight)
    pipe = Pipeline([("columns", encoder), ("model", model)])
    return Trained(pipe, n_read - len(y), tidy, y)


def trained_in_blocks(plan: Plan, model: Any, talk: Talk) -> Trained:
    """Fit a table that is read several times and never kept."""
    with talk.working("Looking at the columns"):
        schema = _learned(plan, plan.table.frames(plan.inputs), talk)
    counts = {"rows": 0, "kept": 0}

    def blocks() -> Iterator[tuple[Any, ...]]:
        counts.update(rows=0, kept=0)
        for frame in plan.table.frames(plan.columns):
            y, weight = plan.observed(frame, counts["rows"])
            codes, kept = schema.coded(frame, counts["rows"])
            known = ~np.isnan(y[kept])
            X = Columns(schema.expanded(codes[known]), schema.features)
            weights = () if weight is None else (weight[kept][known],)
            counts["rows"] += len(frame)
            counts["kept"] += len(X)
            yield (X, y[kept][known], *weights)

    with talk.working("Fitting, block by block"):
        model.fit_blocks(blocks)
    pipe = Pipeline([("columns", TableEncoder.of(schema)), ("model", model)])
    return Trained(pipe, counts["rows"] - counts["kept"], None, None)


def _known(values: np.ndarray | None, kept: np.ndarray) -> np.ndarray | None:
    return None if values is None else values[kept]


def _learned(plan: Plan, frames: Any, talk: Talk) -> Schema:
    learned = learned_schema(
        frames, categorical=plan.categorical, missing=plan.missing, marks=plan.marks
    )
    for text in learned.notes:
        talk.note(text)
    return learned.schema
