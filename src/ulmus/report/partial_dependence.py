"""Partial dependence of the prediction on the most relevant columns, and its figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ulmus.core.arrays.backend import FloatArray
from ulmus.plot._curves import feature_columns
from ulmus.plot._points import FEW_VALUES
from ulmus.plot._relevance import shortened
from ulmus.report.columns import column_class
from ulmus.report.drawing import Figure, Grid, axes, band, numbers, plain
from ulmus.report.numbers import number
from ulmus.report.report_input import ReportInput
from ulmus.tables import DateColumn

# Rows that a curve is averaged over, values of its grid, and the quantiles that it lies between.
CURVE_ROWS, CURVE_POINTS, ENDS = 300, 30, (0.02, 0.98)
MOST_CATEGORIES = 20


@dataclass(frozen=True)
class PartialDependenceCurve:
    """The mean prediction as a function of one input."""

    name: str  # the input
    values: tuple[Any, ...]  # its values, numbers or categories
    # estimate, low, high: (p,): mean prediction there, with its 95% band.
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    connected: bool  # whether the curve is drawn as a line


def partial_dependence(
    report_input: ReportInput, columns: npt.NDArray[np.intp]
) -> tuple[PartialDependenceCurve, ...]:
    """Curves of some columns, averaged over a sample of rows."""
    table, curves = report_input.rows(report_input.sample(CURVE_ROWS)), []
    for j in map(int, columns):
        grid = _grid(report_input, j)
        if len(grid) < 2:
            continue
        frame = report_input.inference.partial_dependence(table, j, grid=grid)
        (name,) = feature_columns(frame)
        bounds = ("estimate", "conf_low", "conf_high")
        estimate, low, high = (np.asarray(frame[each], dtype=float) for each in bounds)
        connected = isinstance(grid[0], float) and len(grid) > FEW_VALUES
        values = tuple(frame[name])
        curves.append(
            PartialDependenceCurve(report_input.names[j], values, estimate, low, high, connected)
        )
    return tuple(curves)


def _grid(report_input: ReportInput, j: int) -> list[Any]:
    """Values of a column at which the curve is computed; dates are days."""
    column, schema = report_input.table.iloc[:, j], report_input.schema
    found, name = column_class(column), report_input.names[j]
    if schema is not None:
        found = type(schema.column(name))
        if found.continuous:
            column = type(column)(schema.numbers(name, column))
    elif found is DateColumn:
        return []
    present = column.dropna()
    if not found.continuous:
        counts = present.value_counts()
        kept = set(counts.index[:MOST_CATEGORIES])
        ordered = getattr(getattr(column, "cat", None), "categories", None)
        among = sorted(kept, key=str) if ordered is None else [v for v in ordered if v in kept]
        return [value for value in among if counts[value] > 0]
    values = np.unique(present.to_numpy(dtype=float))
    if len(values) > FEW_VALUES:
        low, high = np.quantile(present.to_numpy(dtype=float), ENDS)
        if low == high:
            low, high = values[0], values[-1]
        values = np.linspace(low, high, CURVE_POINTS)
    return [float(v) for v in values]


def partial_dependence_figure(curve: PartialDependenceCurve, target_name: str) -> Figure:
    """Mean prediction as a function of one input, with its band."""
    locations = range(len(curve.values))
    dates = curve.connected and isinstance(curve.values[0], str)
    x = np.array(locations if dates or not curve.connected else curve.values, dtype=float)
    line: dict[str, Any] = {
        "x": numbers(x),
        "y": numbers(curve.estimate),
        "hovertemplate": "%{y:.4g}<extra></extra>",
    }
    if curve.connected:
        line |= {"mode": "lines", "line": {"color": "--blue", "width": 2.5}}
        line |= {"name": "mean prediction"}
        traces = [*band(x, curve.low, curve.high, "95% band", "--band"), line]
    else:
        error = {
            "array": numbers(curve.high - curve.estimate),
            "arrayminus": numbers(curve.estimate - curve.low),
            "color": "--blue",
        }
        line |= {"mode": "markers", "marker": {"color": "--blue", "size": 9}, "error_y": error}
        traces = [line | {"name": "mean prediction, 95% interval"}]
    layout = axes(shortened(curve.name), f"mean prediction of {shortened(target_name)}")
    texts = [number(v) if isinstance(v, float) else str(v) for v in curve.values]
    if dates:
        marks = x[:: max(1, len(x) // 4)]
        ticks = [plain(texts[int(mark)]) for mark in marks]
        layout["xaxis"] |= {"tickvals": numbers(marks), "ticktext": ticks}
    if not curve.connected:
        layout["xaxis"] |= {"tickvals": numbers(x), "ticktext": [plain(t) for t in texts]}
        layout["xaxis"]["range"] = [-0.5, len(x) - 0.5]
    least, most = int(np.argmin(curve.estimate)), int(np.argmax(curve.estimate))
    each = zip(texts, curve.estimate, curve.low, curve.high, strict=True)
    rows = [(text, *map(number, values)) for text, *values in each]
    return Figure(
        f"Partial dependence of {target_name} on {curve.name}: minimum "
        f"{number(curve.estimate[least])} at {texts[least]}, maximum "
        f"{number(curve.estimate[most])} at {texts[most]}, with 95% bands.",
        traces,
        layout,
        Grid((curve.name, "mean prediction", "low", "high"), tuple(rows)),
        curve.name,
    )
