"""Averages, contrasts and slopes of the most relevant inputs, each with its 95 % interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ulmus.report.columns import TableColumn
from ulmus.report.partial_dependence import CURVE_ROWS, categories
from ulmus.report.relevance import RelevanceShares
from ulmus.report.report_input import ReportInput

# Inputs that are described, and categories of each.
MOST_ANSWERS, MOST_COMPARED = 5, 3
QUARTILES = (0.25, 0.75)


@dataclass(frozen=True)
class IntervalEstimate:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes zero."""
        return not self.low <= 0 <= self.high


@dataclass(frozen=True)
class InputContrast:
    """The mean change of the prediction when one input changes."""

    name: str  # the input
    # first, second: its values, as text
    first: str
    second: str
    quartiles: bool  # whether these are the quartiles of the input
    change: IntervalEstimate


@dataclass(frozen=True)
class Answers:
    """What the model says about the target."""

    average: IntervalEstimate  # of the predictions over the rows
    contrasts: tuple[InputContrast, ...]  # of the most relevant inputs, in that order
    slopes: tuple[tuple[str, IntervalEstimate], ...]  # average derivatives, by input
    n_rows: int  # rows that they are averages over


def answers(report_input: ReportInput, shares: RelevanceShares) -> Answers:
    """Averages over a sample of rows."""
    where = report_input.sample(CURVE_ROWS)
    table, inference = report_input.rows(where), report_input.inference
    contrasts: list[InputContrast] = []
    slopes: list[tuple[str, IntervalEstimate]] = []
    for j in map(int, shares.relevant[:MOST_ANSWERS]):
        column = TableColumn.of(report_input, j)
        key = column.name if report_input.takes_frame else j
        contrasts += _contrasts(inference, table, key, column)
        present = column.numbers
        if present is not None and not column.dates and len(np.unique(present)) > 2:
            complete = where[column.cells.iloc[where].notna().to_numpy()]
            slope = inference.slope(report_input.rows(complete), [key])
            slopes.append((column.name, _estimates(slope)[0]))
    average = _estimates(inference.average(table))[0]
    return Answers(average, tuple(contrasts), tuple(slopes), len(where))


def _contrasts(inference: Any, table: Any, key: Any, column: TableColumn) -> list[InputContrast]:
    """The third quartile of a number compared with the first, or other categories with one."""
    values, quartiles = _compared_values(column)
    if len(values) < 2:
        return []
    frame = inference.compare(table, {key: values})
    first, *others = map(column.text, values)
    return [
        InputContrast(column.name, first, second, quartiles, change)
        for second, change in zip(others, _estimates(frame), strict=True)
    ]


def _compared_values(column: TableColumn) -> tuple[list[Any], bool]:
    """Values of a column, the reference first, and whether these are quartiles."""
    present = column.numbers
    if present is None:
        if column.dates:
            return [], False
        counts = column.cells.dropna().value_counts()
        among = [value for value in counts.index if value in set(categories(column))]
        return among[: 1 + MOST_COMPARED], False
    distinct = np.unique(present)
    low, high = np.quantile(present, QUARTILES, method="nearest") if len(present) else (0.0, 0.0)
    if len(distinct) > 2 and low < high:
        return [float(low), float(high)], True
    return [float(v) for v in distinct[[0, -1]]] if len(distinct) > 1 else [], False


def _estimates(frame: Any) -> list[IntervalEstimate]:
    columns = (frame[name] for name in ("estimate", "conf_low", "conf_high"))
    return [IntervalEstimate(*map(float, row)) for row in zip(*columns, strict=True)]
