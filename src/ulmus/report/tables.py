"""The tables of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ulmus.diagnostics.relevance import share_text
from ulmus.plot import Curve
from ulmus.report.answers import Answers, IntervalEstimate
from ulmus.report.columns import ColumnSummary
from ulmus.report.evaluation import Evaluation
from ulmus.report.numbers import fixed, number
from ulmus.report.relevance import RelevanceShares
from ulmus.report.settings import Settings
from ulmus.report.variance_components import MeanVarianceComponents


@dataclass(frozen=True)
class Grid:
    """A small table: names of its columns, and rows of text."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


# Inputs that are described one by one.
MOST_DESCRIBED = 60
# Rows that are listed in tables of outliers.
MOST_LISTED = 10
ENDS = ("low (95%)", "high (95%)")


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


def relevance_table(found: RelevanceShares, n: int) -> Grid:
    """Shares of the n most relevant inputs."""
    pairs = zip(found.shares[:n], found.deviations[:n], strict=True)
    texts = [(share_text(float(share)), share_text(float(sd))) for share, sd in pairs]
    rows = [(name, *each) for name, each in zip(found.names[:n], texts, strict=True)]
    return Grid(("input", "share", "standard deviation"), tuple(rows))


def variance_table(components: MeanVarianceComponents) -> Grid:
    """Shares of the variance of the prediction and of a new observation."""
    both = components.shares, components.observation_shares
    rows = [
        (name, f"{both[0][name]:.1%}" if name in both[0] else "", f"{share:.1%}")
        for name, share in both[1].items()
    ]
    return Grid(("component", "of the prediction", "of a new observation"), tuple(rows))


def contrasts_table(found: Answers) -> Grid:
    """Contrasts of the inputs."""
    rows = [
        (c.name, f"{c.second} instead of {c.first}", *_numbers(c.change)) for c in found.contrasts
    ]
    return Grid(("input", "contrast", "difference", *ENDS), tuple(rows))


def slopes_table(found: Answers) -> Grid:
    """Average slopes of the inputs."""
    rows = [(name, *_numbers(slope)) for name, slope in found.slopes]
    return Grid(("input", "slope", *ENDS), tuple(rows))


def means_table(curves: Sequence[Curve], values: Sequence[list[str]]) -> Grid:
    """Mean predictions at each value of the inputs that have few."""
    rows = [
        (curve.name, text, *map(number, (estimate, low, high)))
        for curve, texts in zip(curves, values, strict=True)
        if not curve.connected
        for text, estimate, (low, high) in zip(texts, curve.estimate, curve.bounds, strict=True)
    ]
    return Grid(("input", "value", "mean prediction", *ENDS), tuple(rows))


def _numbers(estimate: IntervalEstimate) -> tuple[str, str, str]:
    return number(estimate.value), number(estimate.low), number(estimate.high)


def parameters_table(settings: Settings) -> Grid:
    """Parameters of the estimator."""
    rows = [(name, value, "default" if own else "set") for name, value, own in settings.parameters]
    return Grid(("parameter", "value", ""), tuple(rows))
