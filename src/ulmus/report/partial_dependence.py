"""Partial dependence of the prediction on the most relevant columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ulmus.plot import Curve
from ulmus.plot._points import FEW_VALUES
from ulmus.report.columns import TableColumn
from ulmus.report.report_input import ReportInput

# Rows that a curve is averaged over, values of its grid, and the quantiles that it lies between.
CURVE_ROWS, CURVE_POINTS, ENDS = 300, 30, (0.02, 0.98)
# A curve along dates follows their seasons.
DATE_POINTS = 150
MOST_CATEGORIES = 20
DECILES = np.arange(1, 10) / 10


def partial_dependence(
    report_input: ReportInput, columns: npt.NDArray[np.intp]
) -> tuple[Curve, ...]:
    """Curves of some columns, averaged over a sample of rows, with pointwise 95 % bands."""
    table, curves = report_input.rows(report_input.sample(CURVE_ROWS)), []
    for j in map(int, columns):
        column = TableColumn.of(report_input, j)
        grid = _grid(column)
        if len(grid) < 2:
            continue
        frame = report_input.inference.partial_dependence(table, j, grid=grid)
        present = column.numbers
        deciles = () if present is None else (np.quantile(present, DECILES),)
        curve = Curve.from_frame(frame, deciles=deciles)
        curves.append(replace(curve, name=column.name))
    return tuple(curves)


def curve_values(curve: Curve, column: TableColumn) -> list[str]:
    """The values of the input along a curve as text."""
    if curve.labels:
        return [curve.labels[int(position)] for position in curve.grid]
    return [column.text(float(value)) for value in curve.grid]


def _grid(column: TableColumn) -> list[Any]:
    """Values of a column at which the curve is computed; dates are days."""
    present = column.numbers
    if present is None:
        return [] if column.dates else categories(column)[:MOST_CATEGORIES]
    values = np.unique(present)
    if len(values) > FEW_VALUES:
        low, high = np.quantile(present, ENDS)
        if low == high:
            low, high = values[0], values[-1]
        whole = bool(np.all(values == np.round(values)))
        n_points = DATE_POINTS if column.dates else CURVE_POINTS
        values = np.linspace(low, high, n_points)
        values = np.unique(np.round(values)) if whole else values
    return [float(v) for v in values]


def categories(column: TableColumn) -> list[Any]:
    """The most frequent categories, in their order if they have one, else sorted."""
    counts = column.cells.dropna().value_counts()
    kept = set(counts.index[:MOST_CATEGORIES])
    ordered = getattr(getattr(column.cells, "cat", None), "categories", None)
    among = sorted(kept, key=str) if ordered is None else [v for v in ordered if v in kept]
    return [value for value in among if counts[value] > 0]
