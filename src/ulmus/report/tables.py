"""The tables of a report."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ulmus.report.columns import ColumnSummary
from ulmus.report.contents import ReportContents
from ulmus.report.drawing import Grid
from ulmus.report.evaluation import Evaluation
from ulmus.report.numbers import fixed, number

# Inputs that are described one by one.
MOST_DESCRIBED = 60
# Rows that are listed in tables of outliers.
MOST_LISTED = 10


def columns_table(contents: ReportContents) -> Grid:
    """Every input, or the first ones."""
    return Grid(
        ("input", "type", "values", "missing"),
        tuple(_described(column) for column in contents.columns[:MOST_DESCRIBED]),
    )


def _described(column: ColumnSummary) -> tuple[str, ...]:
    return column.name, column.type_name, column.values, number(column.missing)


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
    return _rows(evaluation, np.argsort(-np.abs(evaluation.scaled), kind="stable")[:MOST_LISTED])


def leverage_table(evaluation: Evaluation) -> Grid:
    """Rows with the highest leverage."""
    return _rows(evaluation, np.argsort(-evaluation.leverage, kind="stable")[:MOST_LISTED])


def outside_table(evaluation: Evaluation) -> Grid:
    """Rows far outside the range of the training inputs."""
    return _rows(evaluation, np.flatnonzero(evaluation.outside)[:MOST_LISTED])


def _rows(evaluation: Evaluation, where: Iterable[int]) -> Grid:
    return Grid(
        ("row", "observed", "predicted", "standardised error", "leverage"),
        tuple(
            (
                evaluation.labels[i],
                number(evaluation.observed[i]),
                number(evaluation.predicted[i]),
                number(evaluation.scaled[i], 3),
                number(evaluation.leverage[i], 3),
            )
            for i in where
        ),
    )


def parameters_table(contents: ReportContents) -> Grid:
    """Parameters of the estimator."""
    return Grid(
        ("parameter", "value", ""),
        tuple(
            (name, value, "default" if is_default else "set")
            for name, value, is_default in contents.settings.parameters
        ),
    )


def estimates_table(contents: ReportContents) -> Grid:
    """Parameters that the fit selected."""
    return Grid(("fitted quantity", "value"), contents.settings.chosen)


def versions_table(contents: ReportContents) -> Grid:
    """Versions of the software."""
    return Grid(("software", "version"), contents.settings.versions)
