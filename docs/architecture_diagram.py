"""Draw how a fit is built and how effects are computed.

``python docs/architecture_diagram.py`` writes ``_static/architecture.svg``.
"""

from html import escape
from itertools import pairwise
from pathlib import Path

DARK, PALE, INK, GREY = "#2f6b3a", "#e9f4eb", "#1c1c1c", "#5a5a5a"
WIDTH, BOX, HEIGHT, STEP, TOP = 760, 232, 46, 62, 44  # of the picture, of boxes and their rows
COLUMNS = (8, 264, 520)
FIT_ROW = 6
FILE = Path(__file__).parent / "_static" / "architecture.svg"

# For each column what stands above it, and its boxes: row, words, module.
FITTING = (
    "fitting",
    (
        (0, "rows, in blocks", "core/data/source.py"),
        (1, "scaling and expansion", "core/data/scaling.py"),
        (2, "input map by marginal likelihood", "core/input_map/optimisation.py"),
        (3, "random hidden units h(x)", "core/layer/hidden_layer.py"),
        (4, "first pass: R of each member, alpha", "core/ridge/factor.py, alpha.py"),
        (5, "second pass: residuals, noise, forms", "core/ridge/residuals.py"),
    ),
)
ESTIMANDS = (
    "estimand",
    (
        (1, "model.average(table, by=...)", "estimators/_effects.py"),
        (2, "columns and points", "effects/columns.py"),
        (3, "groups, contrasts, grids", "effects/estimands.py"),
        (4, "linear functionals", "core/layer/functionals.py"),
        (5, "hidden features h", "core/layer/hidden_layer.py"),
    ),
)
INFERENCE = (
    "inference",
    (
        (5, "estimate q't, variance t'Kt + spread/M", "core/ensemble/components.py"),
        (4, "standard errors", "intervals/standard_errors.py"),
        (3, "intervals, degrees of freedom", "intervals/confidence.py"),
        (2, "bands, tests, covariances", "effects/bands.py"),
        (1, "data frame", "effects/frames.py"),
    ),
)


def text(x: float, y: float, words: str, look: str) -> str:
    """Words in the middle of a place."""
    return f'<text x="{x}" y="{y}" {look}>{escape(words)}</text>'


def box(x: float, row: int, words: str, module: str, width: float = BOX) -> str:
    """A box with words, and below them where they live."""
    y, middle = TOP + row * STEP, x + width / 2
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" rx="6" fill="{PALE}" '
        f'stroke="{DARK}"/>'
        + text(middle, y + 20, words, f'font-size="12.5" fill="{INK}"')
        + text(middle, y + 37, module, f'font-size="11" font-family="monospace" fill="{GREY}"')
    )


def arrow(x: float, start: int, end: int) -> str:
    """An arrow from a row to the next one, down or up."""
    down = end > start
    y0, y1 = TOP + start * STEP + HEIGHT * down, TOP + end * STEP + HEIGHT * (not down)
    tip = y1 - 4 if down else y1 + 4
    return f'<path d="M{x} {y0}V{tip}" stroke="{DARK}" stroke-width="1.4" marker-end="url(#tip)"/>'


def column(x: float, title: str, boxes: tuple[tuple[int, str, str], ...], down: bool) -> list[str]:
    """A column of boxes that leads to the fit, or away from it."""
    rows = [row for row, _, _ in boxes]
    steps = [*rows, FIT_ROW] if down else [FIT_ROW, *rows]
    middle = x + BOX / 2
    heading = text(middle, TOP + min(rows) * STEP - 16, title, f'font-weight="bold" fill="{DARK}"')
    arrows = [arrow(middle, a, b) for a, b in pairwise(steps)]
    return [heading, *arrows, *(box(x, *each) for each in boxes)]


def diagram() -> str:
    """SVG text of the whole picture."""
    height = TOP + (FIT_ROW + 1) * STEP
    whole = COLUMNS[-1] + BOX - COLUMNS[0]
    parts = [box(COLUMNS[0], FIT_ROW, "Fit: one immutable value", "core/fit/fit.py", whole)]
    for x, (title, boxes), down in zip(
        COLUMNS, (FITTING, ESTIMANDS, INFERENCE), (True, True, False), strict=True
    ):
        parts += column(x, title, boxes, down)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="sans-serif" font-size="13" text-anchor="middle">'
        "<title>How a fit is built and how effects are computed</title>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8Z" fill="{DARK}"/></marker></defs>'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    FILE.write_text(diagram())
