"""The figures of a report."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from ulmus.plot._calibration import LEVELS, chance_band
from ulmus.plot._relevance import shortened
from ulmus.plot._variance import CHOICE, MODEL, OBSERVATION, OWN, SHARED, WEIGHTS
from ulmus.report.columns import ObservedTarget
from ulmus.report.drawing import (
    Figure,
    FloatArray,
    Grid,
    axes,
    band,
    dashes,
    dots,
    numbers,
    plain,
)
from ulmus.report.evaluation import Evaluation
from ulmus.report.numbers import number, share
from ulmus.report.partial_dependence import PartialDependenceCurve
from ulmus.report.relevance import MOST_INPUTS, RelevanceShares
from ulmus.report.variance_components import EnsembleSizeCurve, VarianceComponents

BINS, PIT_BINS = 30, 10
BAND_LABEL = "95% band if calibrated"
PATTERN = {"size": 6, "solidity": 0.25}
# Adjacent components differ in lightness and in their pattern.
LOOKS = {
    SHARED: ("--blue", ""),
    OWN: ("--sky", "/"),
    WEIGHTS: ("--vermilion", "x"),
    CHOICE: ("--yellow", "."),
    MODEL: ("--blue", ""),
    OBSERVATION: ("--pale", ""),
}


def histogram(target: ObservedTarget) -> Figure:
    """Histogram of the target."""
    counts, edges = np.histogram(target.values, min(BINS, max(5, len(target.values) // 10)))
    low, middle, high = np.quantile(target.values, [0, 0.5, 1])
    ranges = [f"{number(a)} to {number(b)}" for a, b in pairwise(edges)]
    bars = {
        "type": "bar",
        "x": numbers((edges[:-1] + edges[1:]) / 2),
        "y": numbers(counts),
        "width": numbers(np.diff(edges)),
        "customdata": ranges,
        "hovertemplate": "%{customdata}: %{y} rows<extra></extra>",
        "marker": {"color": "--sky", "line": {"color": "--ground", "width": 1}},
    }
    return Figure(
        f"Histogram of {target.name}: {len(target.values)} values from {number(low)} to "
        f"{number(high)}, with median {number(middle)}.",
        [bars],
        axes(shortened(target.name), "rows"),
        Grid(("range", "rows"), tuple(zip(ranges, map(str, counts), strict=True))),
    )


def against_observed(evaluation: Evaluation, target_name: str) -> Figure:
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


def coverage(evaluation: Evaluation) -> Figure:
    """Coverage of central predictive intervals against their level."""
    inside = np.abs(2 * evaluation.pit - 1)
    covered = np.array([np.mean(inside <= level) for level in LEVELS])
    low, high = chance_band(len(evaluation.pit), LEVELS)
    largest = int(np.argmax(np.abs(covered - LEVELS)))
    marks = {
        "x": numbers(LEVELS),
        "y": numbers(covered),
        "mode": "lines+markers",
        "line": {"color": "--blue", "width": 2},
        "name": "observed",
        "hovertemplate": "%{x:.0%} intervals cover %{y:.1%}<extra></extra>",
    }
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


def pit(evaluation: Evaluation) -> Figure:
    """Histogram of the probability integral transform."""
    counts, edges = np.histogram(evaluation.pit, np.linspace(0, 1, PIT_BINS + 1))
    heights = counts / len(evaluation.pit)
    low, high = chance_band(len(evaluation.pit), 1 / PIT_BINS)
    bars = {
        "type": "bar",
        "x": numbers((edges[:-1] + edges[1:]) / 2),
        "y": numbers(heights),
        "width": numbers(np.diff(edges)),
        "marker": {"color": "--sky", "line": {"color": "--ground", "width": 1}},
        "hovertemplate": "%{y:.1%} of the rows<extra></extra>",
        "name": "rows",
    }
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


def relevance(found: RelevanceShares) -> Figure:
    """Shares of the most relevant inputs in the prediction."""
    n = min(MOST_INPUTS, len(found.names))
    names, shares = found.names[:n], found.shares[:n]
    bars: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "x": numbers(shares),
        "y": list(range(n)),
        "marker": {"color": "--sky", "line": {"color": "--ink", "width": 0.5}},
        "hovertemplate": "%{x:.1%}<extra></extra>",
    }
    if found.deviations is not None:
        error = found.deviations[:n]
        bars["error_x"] = {
            "array": numbers(error),
            # A share is never negative.
            "arrayminus": numbers(np.minimum(error, shares)),
            "color": "--ink",
            "thickness": 1.2,
        }
    ticks = {
        "tickvals": list(range(n)),
        "ticktext": [plain(name) for name in names],
        "range": [n - 0.4, -0.6],
        "title": {"text": ""},
    }
    layout = axes(
        "share", "", {"tickformat": ".0%", "rangemode": "tozero", "nticks": 4, "tickangle": 0}
    )
    layout["yaxis"] |= ticks
    layout["height"] = 110 + 26 * n
    listed = ", ".join(f"{name} {share(s)}" for name, s in zip(names[:5], shares, strict=False))
    sd = found.deviations
    rows = [
        (name, f"{s:.1%}", "" if sd is None else f"{sd[i]:.1%}")
        for i, (name, s) in enumerate(zip(names, shares, strict=True))
    ]
    return Figure(
        f"Bars of the share of each input in the prediction: {listed}.",
        [bars],
        layout,
        Grid(("input", "share", "standard deviation"), tuple(rows)),
    )


def partial_dependence(curve: PartialDependenceCurve, target_name: str) -> Figure:
    """Mean prediction as a function of one input, with its band."""
    locations = range(len(curve.values))
    x = np.array(curve.values if curve.connected else locations, dtype=float)
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


def variance_components(components: VarianceComponents) -> Figure:
    """Stacked bars of the variance of a new observation and of the prediction."""
    shares = components.observation_shares, components.shares
    bars = dict(zip(("a new observation", "the prediction"), shares, strict=True))
    traces = []
    for name in components.observation_shares:
        color, pattern = LOOKS[name]
        heights = [each.get(name, 0.0) for each in bars.values()]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": numbers(heights),
                "y": [0, 1],
                "name": name,
                "marker": {
                    "color": color,
                    "line": {"color": "--ink", "width": 0.5},
                    "pattern": {"shape": pattern, "fgcolor": "--ink", "fillmode": "overlay"}
                    | PATTERN,
                },
                "hovertemplate": f"{name}: %{{x:.1%}}<extra></extra>",
            }
        )
    layout = axes(
        "share of the variance",
        "",
        {"tickformat": ".0%", "range": [0, 1.02], "nticks": 6, "tickangle": 0},
    )
    layout["yaxis"] |= {"tickvals": [0, 1], "ticktext": list(bars), "title": {"text": ""}}
    layout |= {"barmode": "stack", "height": 300}
    listed = ", ".join(f"{share(v)} {name}" for name, v in components.shares.items())
    rows = [
        (name, *(f"{each[name]:.1%}" if name in each else "" for each in bars.values()))
        for name in components.observation_shares
    ]
    return Figure(
        f"Stacked bars of variance components. The prediction: {listed}. A new observation: "
        f"{share(components.observation_shares[OBSERVATION])} is its own noise.",
        traces,
        layout,
        Grid(("component", *(f"of {name}" for name in bars)), tuple(rows)),
    )


def ensemble_size(sizes: EnsembleSizeCurve) -> Figure:
    """Variance of the prediction against the number of members."""
    x = np.array(sizes.counts, dtype=float)
    top = 1.15 * max(float(np.max(sizes.variance)), sizes.limit)
    curve = {
        "x": numbers(x),
        "y": numbers(sizes.variance),
        "mode": "lines+markers",
        "line": {"color": "--blue", "width": 2},
        "name": "variance",
        "hovertemplate": "%{x} members: %{y:.4g}<extra></extra>",
    }
    limit = dashes([x[0], x[-1]], [sizes.limit] * 2, "infinitely many members")
    fitted = {
        "x": [sizes.fitted] * 2,
        "y": [0, top],
        "mode": "lines",
        "line": {"color": "--vermilion", "width": 2},
        "name": f"fitted: {sizes.fitted}",
        "hoverinfo": "skip",
    }
    ticks = [k * 10**e for e in range(6) for k in (1, 2, 5) if x[0] <= k * 10**e <= x[-1]]
    axis = {"type": "log", "tickvals": ticks, "ticktext": [number(v) for v in ticks]}
    rows = [(str(n), number(v)) for n, v in zip(sizes.counts, sizes.variance, strict=True)]
    here = float(np.interp(sizes.fitted, x, sizes.variance))
    return Figure(
        f"Mean variance of the prediction against the number of members: {number(here)} with the "
        f"{sizes.fitted} fitted ones, and {number(sizes.limit)} with infinitely many.",
        [curve, limit, fitted],
        axes("members", "variance of the prediction", axis, {"range": [0, top or 1]}),
        Grid(("members", "variance"), tuple(rows)),
    )


def residuals(evaluation: Evaluation, target_name: str) -> Figure:
    """Standardised errors against predictions."""
    x, y = evaluation.predicted[evaluation.drawn], evaluation.scaled[evaluation.drawn]
    labels = [escape(evaluation.labels[i], quote=False) for i in evaluation.drawn]
    rows = dots(x, y) | {
        "customdata": labels,
        "hovertemplate": "row %{customdata}<br>predicted %{x:.4g}<br>standardised error "
        "%{y:.2f}<extra></extra>",
        "name": "rows",
    }
    ends = [float(np.min(x)), float(np.max(x))]
    lines = [dashes(ends, [v, v], "±2") for v in (2, -2)]
    lines[1]["showlegend"] = False
    beyond = float(np.mean(np.abs(evaluation.scaled) > 2))
    return Figure(
        f"Standardised errors against predictions for {len(x)} rows: {beyond:.1%} exceed 2 in "
        f"absolute value, the largest is {np.max(np.abs(evaluation.scaled)):.1f}.",
        [rows, *lines],
        axes(
            f"predicted {shortened(target_name)}",
            "standardised error",
            _range(evaluation, x),
        ),
    )


def _range(evaluation: Evaluation, values: FloatArray) -> dict[str, Any]:
    """An axis limited to rows inside the training range, if there are others."""
    outside = evaluation.outside[evaluation.drawn]
    if not np.any(outside) or np.all(outside):
        return {}
    low, high = float(np.min(values[~outside])), float(np.max(values[~outside]))
    margin = 0.05 * (high - low) or 1.0
    return {"range": [low - margin, high + margin]}
