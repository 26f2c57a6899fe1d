"""The tables of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ulmus.report.columns import ColumnSummary
from ulmus.report.drawing import Grid
from ulmus.report.evaluation import Evaluation
from ulmus.report.numbers import fixed, number
from ulmus.report.settings import Settings

# Inputs that are described one by one.
MOST_DESCRIBED = 60
# Rows that are listed in tables of outliers.
MOST_LISTED = 10


def columns_table(columns: Sequence[ColumnSummary]) -> Grid:
    """Every input, or the first ones."""
    rows = [(c.name, c.type_name, c.values, number(c.missing)) for c in columns[:MOST_DESCRIBED]]
    return Grid(("input", "type", "values", "missing"), tuple(rows))


def scores_table(evaluation: Evaluation) -> Grid:
    """Accuracy of the model and the baselines."""
    listed = [*evaluation.scores, *([evaluation.inside] if evaluation.inside else [])]
    return Grid(
        ("model", "R²", "RMSE", "mean absolute error"),
        tuple((s.name, fixed(s.r2), number(s.rmse), number(s.mae)) for s in listed),
    )


def coverage_tables(evaluation: Evaluation) -> tuple[Grid, Grid]:
    """Coverage of all rows by level, and of groups at one level."""
    everything = [row for row in evaluation.report.coverage if row.group == "all"]
    groups = [row for row in evaluation.report.coverage if row.group != "all"]
    by_level = [(f"{r.level:.0%}", f"{r.coverage:.1%}", number(r.n)) for r in everything]
    by_group = [(r.group, f"{r.level:.0%}", f"{r.coverage:.1%}", number(r.n)) for r in groups]
    return (
        Grid(("level", "coverage", "rows"), tuple(by_level)),
        Grid(("group", "level", "coverage", "rows"), tuple(by_group)),
    )


def largest_errors_table(evaluation: Evaluation) -> Grid:
    """Rows with the largest standardised errors."""
    return _rows(evaluation, np.argsort(-np.abs(evaluation.size), kind="stable")[:MOST_LISTED])


def leverage_table(evaluation: Evaluation) -> Grid:
    """Rows with the highest leverage."""
    return _rows(evaluation, np.argsort(-evaluation.leverage, kind="stable")[:MOST_LISTED])


def outside_table(evaluation: Evaluation) -> Grid:
    """Rows far outside the range of the training inputs."""
    return _rows(evaluation, np.flatnonzero(evaluation.outside)[:MOST_LISTED])


def _rows(evaluation: Evaluation, where: Iterable[int]) -> Grid:
    rows = [
        (
            evaluation.labels[i],
            number(evaluation.observed[i]),
            number(evaluation.predicted[i]),
            number(evaluation.size[i], 3),
            number(evaluation.leverage[i], 3),
        )
        for i in where
    ]
    name = evaluation.residual_name
    return Grid(("row", "observed", "predicted", name, "leverage"), tuple(rows))


def parameters_table(settings: Settings) -> Grid:
    """Parameters of the estimator."""
    rows = [(name, value, "default" if own else "set") for name, value, own in settings.parameters]
    return Grid(("parameter", "value", ""), tuple(rows))
