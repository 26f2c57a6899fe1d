"""Draw the decision tree of the page "Which error bar do I need?", narrow enough for a phone.

``python docs/decision_tree.py [FILE]``, by default docs/_static/decision_tree.svg. The page has the
same tree as a list.
"""

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

WIDTH, MARGIN, INDENT = 360, 8, 22
TITLE_HEIGHT, LEAF_HEIGHT, GAP = 50, 40, 8
GREEN, PALE, INK, GREY = "#2f6b3a", "#e3f0e5", "#1c1c1c", "#8a8a8a"
ROOT = "What is the estimand?"

# Estimands as (title, subtitle), and for each the quantities and the calls.
TREE = {
    ("a new observation", "prediction interval (PI)"): [
        ("interval", "predict_interval(X)"),
        ("… guaranteed, with a learned map", 'predict_interval(X, method="cv+")'),
        ("… guaranteed, without a map", "the same, with fixed alpha"),
        ("… shortest, for skewed errors", 'predict_interval(X, tails="shortest")'),
        ("exceedance probability", "exceedance(X, threshold)"),
        ("quantiles", "predict_quantiles(X, [0.1, 0.9])"),
        ("standard deviation", "predict(X, return_std=True)"),
    ],
    ("a later time, a new place or group", "PI: name the correlation in the fit"): [
        ("a future time, a few steps ahead", "noise=AR1(), residual_kriging=True"),
        ("a new location", "the same, noise=Exponential()"),
        ("a future time, far ahead", "noise=AR1(), predict_interval(X)"),
        ("the next patient, any new group", "noise=Clustered(), predict_interval(X)"),
    ],
    ("the mean at a point", "confidence interval (CI)"): [
        ("the regression function", 'predict_interval(X, kind="confidence")'),
        ("the expectation of the estimator", 'the same, target="expectation"'),
        ("the variance of the prediction", 'predict_var(X, component="model")'),
    ],
    ("functionals of the function", "effects"): [
        ("marginal means of groups", 'average(X, by="region")'),
        ("the mean over a region", "average(X_region)"),
        ("… by area, errors correlated in space", "the same, weights=area"),
        ("a contrast in t", 'compare(X, {"t": (10, 20)})'),
        ("the slope", 'slope(X, "t")'),
        ("partial dependence", 'partial_dependence(X, "t")'),
        ("… simultaneous intervals", "any of these, simultaneous=True"),
        ("… for the regression function", 'any of these, target="function"'),
    ],
    ("the model itself", ""): [
        ("diagnostics", "check(X_new, y_new)"),
        ("variance components", "variance_components(X)"),
        ("sequential design", "next_points(candidates)"),
    ],
}


class Row(NamedTuple):
    """A box of the figure: its level, its height and its two lines."""

    depth: int
    height: int
    title: str
    subtitle: str


def rows() -> Iterator[Row]:
    """The boxes from top to bottom."""
    yield Row(0, LEAF_HEIGHT, ROOT, "")
    for (title, subtitle), leaves in TREE.items():
        yield Row(1, TITLE_HEIGHT if subtitle else LEAF_HEIGHT, title, subtitle)
        for quantity, call in leaves:
            yield Row(2, LEAF_HEIGHT, quantity, call)


def box(row: Row, y: float) -> str:
    """SVG text of a box and its lines."""
    x = MARGIN + INDENT * row.depth
    leaf = row.depth == 2
    look = f'fill="white" stroke="{GREY}"' if leaf else f'fill="{PALE}" stroke="{GREEN}"'
    middle = y + row.height / 2
    two = bool(row.subtitle)
    weight = "" if leaf else ' font-weight="bold"'
    lines = [
        f'<rect x="{x}" y="{y}" width="{WIDTH - MARGIN - x}" height="{row.height}" rx="5" {look}/>',
        f'<text x="{x + 9}" y="{middle + (-4 if two else 5)}" font-size="14"{weight}>'
        f"{escape(row.title)}</text>",
    ]
    if two:
        style = ' font-family="monospace" font-size="12"' if leaf else ' font-size="13"'
        lines.append(
            f'<text x="{x + 9}" y="{middle + 13}" fill="{GREEN}"{style}>'
            f"{escape(row.subtitle)}</text>"
        )
    return "".join(lines)


def branches(placed: list[tuple[Row, float]]) -> str:
    """SVG text of the lines between boxes."""
    path = ""
    for row, y in placed:
        if row.depth:
            parent = max(top for other, top in placed if other.depth < row.depth and top < y)
            height = next(other.height for other, top in placed if top == parent)
            x = MARGIN + INDENT * (row.depth - 1) + INDENT / 2
            path += f"M{x} {parent + height}V{y + row.height / 2}H{x + INDENT / 2}"
    return f'<path d="{path}" fill="none" stroke="{GREEN}" stroke-width="1.2"/>'


def picture() -> str:
    """SVG text of the tree."""
    placed: list[tuple[Row, float]] = []
    y = float(MARGIN)
    for row in rows():
        placed.append((row, y))
        y += row.height + GAP
    boxes = "".join(box(row, top) for row, top in placed)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:g}" width="{WIDTH}" '
        f'height="{y:g}" role="img" font-family="sans-serif" fill="{INK}">'
        f'<title>{ROOT}</title><rect width="{WIDTH}" height="{y:g}" fill="white"/>'
        f"{branches(placed)}{boxes}</svg>\n"
    )


if __name__ == "__main__":
    default = Path(__file__).parent / "_static" / "decision_tree.svg"
    Path(sys.argv[1] if len(sys.argv) > 1 else default).write_text(picture())
