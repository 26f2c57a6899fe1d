"""The tables of a report."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ulmus.report.columns import Column
from ulmus.report.drawing import Grid
from ulmus.report.facts import Facts
from ulmus.report.judgement import Judgement
from ulmus.report.numbers import fixed, number

# Inputs that are described one by one.
MOST_DESCRIBED = 60
# Rows that are listed because they stand out.
MOST_LISTED = 10


def columns(facts: Facts) -> Grid:
    """Every input, or the first ones."""
    return Grid(
        ("input", "kind", "values", "missing"),
        tuple(_described(column) for column in facts.columns[:MOST_DESCRIBED]),
    )


def _described(column: Column) -> tuple[str, ...]:
    return column.name, column.kind, column.values, number(column.missing)


def scores(judged: Judgement) -> Grid:
    """How far models are from what was observed."""
    listed = [*judged.scores, *([judged.inside] if judged.inside else [])]
    return Grid(
        ("model", "R²", "RMSE", "mean absolute error"),
        tuple((s.name, fixed(s.r2), number(s.rmse), number(s.mae)) for s in listed),
    )


def coverage(judged: Judgement) -> tuple[Grid, Grid]:
    """Coverage of all rows by level, and of groups at one level."""
    everything = [row for row in judged.report.coverage if row.group == "all"]
    groups = [row for row in judged.report.coverage if row.group != "all"]
    by_level = [(f"{r.level:.0%}", f"{r.coverage:.1%}", number(r.n)) for r in everything]
    by_group = [(r.group, f"{r.level:.0%}", f"{r.coverage:.1%}", number(r.n)) for r in groups]
    return (
        Grid(("level", "rows inside", "rows"), tuple(by_level)),
        Grid(("group", "level", "rows inside", "rows"), tuple(by_group)),
    )


def largest_errors(judged: Judgement) -> Grid:
    """Rows that were predicted worst, in their own standard deviations."""
    return _rows(judged, np.argsort(-np.abs(judged.scaled), kind="stable")[:MOST_LISTED])


def highest_leverage(judged: Judgement) -> Grid:
    """Rows that weigh most in their own predictions."""
    return _rows(judged, np.argsort(-judged.leverage, kind="stable")[:MOST_LISTED])


def outside(judged: Judgement) -> Grid:
    """Rows far outside the range of the training inputs."""
    return _rows(judged, np.flatnonzero(judged.outside)[:MOST_LISTED])


def _rows(judged: Judgement, where: Iterable[int]) -> Grid:
    return Grid(
        ("row", "observed", "predicted", "error / sd", "leverage"),
        tuple(
            (
                judged.labels[i],
                number(judged.observed[i]),
                number(judged.predicted[i]),
                number(judged.scaled[i], 3),
                number(judged.leverage[i], 3),
            )
            for i in where
        ),
    )


def parameters(facts: Facts) -> Grid:
    """Parameters of the estimator."""
    return Grid(
        ("parameter", "value", ""),
        tuple(
            (name, value, "default" if is_default else "set")
            for name, value, is_default in facts.settings.parameters
        ),
    )


def chosen(facts: Facts) -> Grid:
    """What the fit chose by itself."""
    return Grid(("chosen by the fit", "value"), facts.settings.chosen)


def versions(facts: Facts) -> Grid:
    """Programs and their versions."""
    return Grid(("program", "version"), facts.settings.versions)
