"""A figure as a value that plotly.js draws, with its description and its data.

A colour is the name of a variable in the page's style sheet (``--ink``), which the page replaces
by its value, so that one figure serves light, dark and print.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.plot._relevance import shortened

BAND = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}


@dataclass(frozen=True)
class Grid:
    """A small table: names of its columns, and rows of text."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Figure:
    """One figure."""

    alt: str  # description with numbers, for readers who do not see it
    traces: list[dict[str, Any]]  # traces of plotly
    layout: dict[str, Any] = field(default_factory=dict)  # layout of plotly
    data: Grid | None = None  # the same as a table, where it is small
    label: str = ""  # name among several of which one is chosen


def axes(
    x_title: str, y_title: str, x: dict[str, Any] | None = None, y: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A layout with named axes."""
    return {
        "xaxis": {"title": {"text": escape(x_title, quote=False)}} | (x or {}),
        "yaxis": {"title": {"text": escape(y_title, quote=False)}} | (y or {}),
    }


def plain(name: str) -> str:
    """A shortened name, escaped because plotly interprets mark-up."""
    return escape(shortened(name), quote=False)


def dots(x: FloatArray, y: FloatArray) -> dict[str, Any]:
    """A mark for each row."""
    look = {"color": "--dot", "size": 6, "line": {"color": "--blue", "width": 0.8}}
    return {"x": numbers(x), "y": numbers(y), "mode": "markers", "marker": look}


def bins(edges: FloatArray, heights: FloatArray, hover: str) -> dict[str, Any]:
    """Bars of a histogram, with the text that each shows on hovering."""
    return {
        "type": "bar",
        "x": numbers((edges[:-1] + edges[1:]) / 2),
        "y": numbers(heights),
        "width": numbers(np.diff(edges)),
        "hovertemplate": f"{hover}<extra></extra>",
        "marker": {"color": "--sky", "line": {"color": "--ground", "width": 1}},
    }


def marked_line(x: Any, y: Any, name: str, hover: str) -> dict[str, Any]:
    """A line with a mark at each point, and the text that each shows on hovering."""
    look = {"mode": "lines+markers", "line": {"color": "--blue", "width": 2}}
    points = {"x": numbers(x), "y": numbers(y), "name": name}
    return points | look | {"hovertemplate": f"{hover}<extra></extra>"}


def dashes(x: Sequence[float], y: Sequence[float], name: str) -> dict[str, Any]:
    """A dashed reference line."""
    look = {"color": "--ink", "width": 1.5, "dash": "dash"}
    ends = {"x": numbers(x), "y": numbers(y)}
    return ends | {"mode": "lines", "line": look, "name": name, "hoverinfo": "skip"}


def band(
    x: FloatArray, low: FloatArray, high: FloatArray, name: str, color: str = "--chance"
) -> list[dict[str, Any]]:
    """The area between two curves."""
    bottom = BAND | {"x": numbers(x), "y": numbers(low), "showlegend": False}
    top = BAND | {"x": numbers(x), "y": numbers(high), "name": name}
    return [bottom, top | {"fill": "tonexty", "fillcolor": color}]


def numbers(values: Any) -> list[float | None]:
    """Numbers of ten digits as JSON has them; others than finite ones are gaps."""
    array = np.asarray(values, dtype=float)
    return [float(f"{v:.10g}") if np.isfinite(v) else None for v in array]
