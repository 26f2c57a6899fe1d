"""Displays of ``ulmus.plot`` as inline SVG, whose colours are variables of the page's style sheet.

Matplotlib draws on a figure of its own, without pyplot, a display or global state. Text stays text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

from ulmus.plot import _style as plot_style

# Width in inches, at which text is readable on a phone (390 px) as on a desktop (up to 600 px).
WIDTH, HEIGHT = 4.7, 3.1
SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ulmus",
    "text.parse_math": False,  # names of columns may contain dollar signs
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.formatter.limits": (-4, 6),
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
}
# Variables of the page, by the colours of the displays.
VARIABLES = {
    plot_style.BLACK: "ink",
    plot_style.GREY: "muted",
    plot_style.PALE: "pale",
    plot_style.BLUE: "blue",
    plot_style.SKY: "sky",
    plot_style.GREEN: "green",
    plot_style.ORANGE: "orange",
    plot_style.YELLOW: "yellow",
    plot_style.VERMILION: "vermilion",
    "#ffffff": "paper",
    "#b0b0b0": "line",
}
COLOURS = {colour.lower(): f"var(--{name})" for colour, name in VARIABLES.items()}
HEX, DECIMALS, REFERENCE = re.compile("#[0-9a-f]{6}"), re.compile(r"-?\d+\.\d+"), re.compile("#")
FONT = re.compile(r"font-family: [^;]*;? ?")


def svg_figure(
    name: str, draw: Callable[[Any], Any], height: float = HEIGHT, width: float = WIDTH
) -> str:
    """What ``draw(ax)`` draws on axes, as the text of an ``svg`` element without a description.

    ``name`` distinguishes the identifiers of the figures of a page.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        figure, stream = Figure(figsize=(width, height), layout="constrained"), io.BytesIO()
        axes = figure.add_subplot()
        draw(axes)
        for background in (figure.patch, axes.patch):
            background.set_visible(False)
        # ``savefig`` would draw twice.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(stream, metadata={"Date": None})
    return _inline(name, stream.getvalue())


def _inline(name: str, document: bytes) -> str:
    """An SVG document as an element of an HTML page."""
    root = ElementTree.fromstring(document)
    box = root.get("viewBox", "")
    used = set(re.findall(rb'url\(#([^)]*)\)|href="#([^"]*)"', document))
    referenced = {(a or b).decode() for a, b in used}
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        attributes = {_local(key): value for key, value in element.attrib.items()}
        element.attrib.clear()
        for key, value in attributes.items():
            if key != "id" or value in referenced:
                element.set(key, _attribute(name, key, value))
        element.text, element.tail = (
            text if text and text.strip() else None for text in (element.text, element.tail)
        )
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "aria-hidden": "true", "focusable": "false"})
    return ElementTree.tostring(root, encoding="unicode")


def _attribute(name: str, key: str, value: str) -> str:
    """An attribute with colours of the page, identifiers of the figure and few decimals."""
    if key == "id":
        return f"{name}-{value}"
    if key in ("href", "clip-path"):
        return REFERENCE.sub(f"#{name}-", value)
    if key in ("style", "fill", "stroke"):
        value = re.sub(r"url\(#", f"url(#{name}-", value)
        return FONT.sub("", HEX.sub(lambda found: COLOURS.get(found[0], found[0]), value))
    if key in ("d", "x", "y", "transform"):
        return DECIMALS.sub(lambda found: f"{float(found[0]):.1f}", value).replace("\n", "")
    return value


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
