"""Figures of the target and of the evaluation."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.plot._calibration import LEVELS, chance_band
from ulmus.plot._relevance import shortened
from ulmus.report.drawing import (
    Figure,
    Grid,
    axes,
    band,
    bins,
    dashes,
    dots,
    marked_line,
)
from ulmus.report.evaluation import Evaluation
from ulmus.report.numbers import capitalised, number, plural, share

BINS, PIT_BINS = 30, 10
BAND_LABEL = "95% band if calibrated"


def target_figure(observed: FloatArray, name: str) -> Figure:
    """Histogram of the target."""
    counts, edges = np.histogram(observed, min(BINS, max(5, len(observed) // 10)))
    low, middle, high = np.quantile(observed, [0, 0.5, 1])
    ranges = [f"{number(a)} to {number(b)}" for a, b in pairwise(edges)]
    bars = bins(edges, counts, "%{customdata}: %{y} rows") | {"customdata": ranges}
    return Figure(
        f"Histogram of {name}: {len(observed)} values from {number(low)} to "
        f"{number(high)}, with median {number(middle)}.",
        [bars],
        axes(shortened(name), "rows"),
        Grid(("range", "rows"), tuple(zip(ranges, map(str, counts), strict=True))),
    )


def observed_figure(evaluation: Evaluation, target_name: str) -> Figure:
    """Observed against predicted values."""
    x, y = evaluation.predicted[evaluation.drawn], evaluation.observed[evaluation.drawn]
    low, high = evaluation.bounds
    ends = [min(np.min(x), np.min(y)), max(np.max(x), np.max(y))]
    labels = [escape(evaluation.labels[i], quote=False) for i in evaluation.drawn]
    rows = dots(x, y) | {
        "customdata": [
            [label, number(a), number(b)] for label, a, b in zip(labels, low, high, strict=True)
        ],
        "hovertemplate": "row %{customdata[0]}<br>observed %{y:.4g}<br>predicted %{x:.4g}"
        "<br>95% interval %{customdata[1]} to %{customdata[2]}<extra></extra>",
        "name": "rows",
    }
    correlation = np.corrcoef(x, y)[0, 1] if np.ptp(x) > 0 and np.ptp(y) > 0 else float("nan")
    return Figure(
        f"Observed against predicted values of {target_name} for {len(x)} rows that "
        f"their predictions do not use; the correlation is {number(correlation, 2)}. The dashed "
        "line is the identity.",
        [rows, dashes(ends, ends, "identity")],
        axes(
            f"predicted {shortened(target_name)}",
            f"observed {shortened(target_name)}",
            _range(evaluation, x),
            _range(evaluation, y),
        ),
    )


def coverage_figure(evaluation: Evaluation) -> Figure:
    """Coverage of central predictive intervals against their level."""
    inside = np.abs(2 * evaluation.pit - 1)
    covered = np.array([np.mean(inside <= level) for level in LEVELS])
    low, high = chance_band(len(evaluation.pit), LEVELS)
    largest = int(np.argmax(np.abs(covered - LEVELS)))
    marks = marked_line(LEVELS, covered, "observed", "%{x:.0%} intervals cover %{y:.1%}")
    axis = {"range": [0, 1.02], "tickformat": ".0%", "dtick": 0.2}
    rows = [(share(a), f"{b:.1%}") for a, b in zip(LEVELS, covered, strict=True)]
    return Figure(
        "Empirical coverage of central predictive intervals against their nominal level. The "
        f"largest difference is {100 * abs(covered[largest] - LEVELS[largest]):.1f} percentage "
        f"points: {covered[largest]:.1%} at {share(LEVELS[largest])}. The grey band contains 95% "
        "of samples of calibrated intervals.",
        [*band(LEVELS, low, high, BAND_LABEL), dashes([0, 1], [0, 1], "nominal"), marks],
        axes("nominal level", "empirical coverage", axis, axis),
        Grid(("level", "coverage"), tuple(rows)),
    )


def pit_figure(evaluation: Evaluation) -> Figure:
    """Histogram of the probability integral transform."""
    counts, edges = np.histogram(evaluation.pit, np.linspace(0, 1, PIT_BINS + 1))
    heights = counts / len(evaluation.pit)
    low, high = chance_band(len(evaluation.pit), 1 / PIT_BINS)
    bars = bins(edges, heights, "%{y:.1%} of the rows") | {"name": "rows"}
    rows = [
        (f"{a:.1f} to {b:.1f}", f"{h:.1%}")
        for a, b, h in zip(edges[:-1], edges[1:], heights, strict=True)
    ]
    ends = np.array([0.0, 1.0])
    uniform = dashes([0, 1], [1 / PIT_BINS] * 2, "uniform")
    return Figure(
        "Histogram of the probability integral transform (PIT) of the observations, which is "
        f"uniform for calibrated distributions: each of {PIT_BINS} bins contains "
        f"{np.min(heights):.1%} to {np.max(heights):.1%} of the rows; 95% of samples of uniform "
        f"values lie between {low:.1%} and {high:.1%}.",
        [bars, *band(ends, np.full(2, low), np.full(2, high), BAND_LABEL), uniform],
        axes("PIT", "share of rows", y={"tickformat": ".0%"}),
        Grid(("PIT", "rows"), tuple(rows)),
    )


def residuals_figure(evaluation: Evaluation, target_name: str) -> Figure:
    """Standardised errors, or quantile residuals, against predictions."""
    name = evaluation.residual_name
    x, y = evaluation.predicted[evaluation.drawn], evaluation.scaled[evaluation.drawn]
    labels = [escape(evaluation.labels[i], quote=False) for i in evaluation.drawn]
    rows = dots(x, y) | {
        "customdata": labels,
        "hovertemplate": "row %{customdata}<br>predicted %{x:.4g}<br>"
        f"{name.partition(' of ')[0]} %{{y:.2f}}<extra></extra>",
        "name": "rows",
    }
    ends = [float(np.min(x)), float(np.max(x))]
    lines = [dashes(ends, [v, v], "±2") for v in (2, -2)]
    lines[1]["showlegend"] = False
    beyond = float(np.mean(np.abs(evaluation.scaled) > 2))
    return Figure(
        f"{capitalised(plural(name))} against predictions for {len(x)} rows: {beyond:.1%} exceed 2 "
        f"in absolute value, the largest is {np.max(np.abs(evaluation.scaled)):.1f}.",
        [rows, *lines],
        axes(f"predicted {shortened(target_name)}", name, _range(evaluation, x)),
    )


def _range(evaluation: Evaluation, values: FloatArray) -> dict[str, Any]:
    """An axis limited to rows inside the training range, if there are others."""
    outside = evaluation.outside[evaluation.drawn]
    if not np.any(outside) or np.all(outside):
        return {}
    low, high = float(np.min(values[~outside])), float(np.max(values[~outside]))
    margin = 0.05 * (high - low) or 1.0
    return {"range": [low - margin, high + margin]}
