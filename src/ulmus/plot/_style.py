"""Colours, bands and legends of all displays.

The colours are those of Okabe and Ito (2008), safe for colour-blind readers. Bands and lines differ
in line style and lightness too, for greyscale prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import FloatArray

BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREY = "#666666"
PALE = "#DDDDDD"
LONGEST_NAME = 30


class BandStyle(NamedTuple):
    """Style of a band: as an area between two curves, or as a bar at each point."""

    color: str
    opacity: float
    edge: str
    bar_width: float


INNER = BandStyle(BLUE, 0.4, "-", 4.0)
OUTER = BandStyle(SKY, 0.25, "--", 1.4)


def draw_band(
    ax: Any, x: FloatArray, bounds: FloatArray, style: BandStyle, label: str, connected: bool
) -> None:
    """Draw bounds (p, 2): an area where points are connected, else a bar at each point."""
    low, high = bounds.T
    if connected:
        look = {"facecolor": (style.color, style.opacity), "edgecolor": style.color}
        ax.fill_between(x, low, high, linestyle=style.edge, linewidth=0.8, label=label, **look)
    else:
        width = style.bar_width * thinness(len(x))
        ax.vlines(x, low, high, color=style.color, linewidth=width, label=label)


def draw_centre(ax: Any, x: FloatArray, values: FloatArray, connected: bool, **style: Any) -> None:
    """Draw a curve where points are connected, else a mark at each point."""
    shape: dict[str, Any] = {"linewidth": 1.8} if connected else {"linestyle": "", "marker": "o"}
    if not connected:
        size = 5.0 * np.sqrt(thinness(len(x)))
        shape |= {"markersize": size, "markerfacecolor": "white", "zorder": 3}
    ax.plot(x, values, **{"color": BLACK} | shape | style)


def draw_values(ax: Any, values: FloatArray, labels: Sequence[str] = ()) -> None:
    """Ticks at the values of a feature that has few, and a margin at their sides."""
    ax.set_xticks(values, labels or [f"{value:.4g}" for value in values])
    ax.margins(x=0.15)


def thinness(n: int) -> float:
    """Relative width of n bars beside each other: thinner where there are more than 70."""
    return max(0.3, min(1.0, 70 / n))


def make_room(ax: Any) -> None:
    """Leave the upper quarter of the axes free for a legend."""
    low, high = ax.dataLim.intervaly
    if high > low:
        ax.set_ylim(low - 0.05 * (high - low), high + 0.28 * (high - low))


def draw_legend(ax: Any, **options: Any) -> None:
    """A legend with every label once, also where two displays share the axes."""
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    if unique:
        ax.legend(unique.values(), unique.keys(), **{"fontsize": "small"} | options)


def shortened(name: str) -> str:
    """A name that fits beside an axis."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def percent(level: float) -> str:
    """A level as text: 95% for 0.95."""
    return f"{100 * level:.4g}%"


def date_axis(axis: Any) -> None:
    """Show days since 1970 as dates, with few short labels."""
    dates: Any = import_module("matplotlib.dates")
    locator = dates.AutoDateLocator(minticks=3, maxticks=6)
    axis.axis_date()
    axis.set_major_locator(locator)
    axis.set_major_formatter(dates.ConciseDateFormatter(locator))
