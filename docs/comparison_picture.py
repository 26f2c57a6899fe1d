"""Draw the figure of docs/comparison.md from benchmarks/comparison.jsonl, for a phone and a page.

``python docs/comparison_picture.py [FILE]``, by default docs/_static/comparison.svg. It requires
matplotlib.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from comparison import RECORD, REFERENCE, read_lines, study, table_ratios  # noqa: E402
from uci_table import Study, ratio_axis  # noqa: E402

PANELS = {"rmse": "RMSE", "score": "interval score"}
GREEN, ORANGE, GREY = "#2f6b3a", "#b8541a", "#8a8a8a"
EDGES = (0.6, 6.0)  # ratios beyond are drawn at the edge
STYLE = {"font.size": 8.5, "svg.fonttype": "path", "svg.hashsalt": "ulmus"}


def titled(found: Study, method: str) -> str:
    """A method, with the number of its tables where it was not fitted to all."""
    count = found.ratio(method, "rmse", REFERENCE)[1]
    return method if count == len(found.splits) else f"{method}\n({count} tables)"


def draw(axes: Axes, found: Study, measure: str) -> None:
    """A row for each method: a dot for each table, a bar at the geometric mean, and its value."""
    methods = [method for method in found.models if method != REFERENCE]
    rng = np.random.default_rng(0)
    for row, method in enumerate(methods):
        ratios = table_ratios(found, method, measure)
        shown = np.clip(ratios, *EDGES)
        colours = np.where(ratios < 1, ORANGE, GREEN)
        heights = row + rng.uniform(-0.22, 0.22, len(ratios))
        axes.scatter(shown, heights, s=13, c=colours, alpha=0.75, linewidths=0)
        mean = np.exp(np.mean(np.log(ratios)))
        axes.plot([mean, mean], [row - 0.33, row + 0.33], color="black", linewidth=2)
        axes.text(1.02, row, f"{mean:.2f}", transform=axes.get_yaxis_transform(), va="center")
    axes.axvline(1, color=GREY, linewidth=1, zorder=0)
    axes.set_yticks(range(len(methods)), [titled(found, method) for method in methods])
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    ratio_axis(axes)
    axes.set_xlim(EDGES[0] * 0.95, EDGES[1] * 1.05)
    axes.set_title(f"{PANELS[measure]} over that of ulmus", loc="left", fontsize=9)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def main(target: Path) -> None:
    """Write the figure."""
    found = study(read_lines([RECORD]))
    with rc_context(STYLE):
        figure = Figure(figsize=(4.4, 6.4), layout="constrained")
        for axes, measure in zip(figure.subplots(len(PANELS)), PANELS, strict=True):
            draw(axes, found, measure)
        figure.savefig(target, metadata={"Date": None})
    print(f"wrote {target.name}, {target.stat().st_size // 1000} kB")


if __name__ == "__main__":
    default = ROOT / "docs" / "_static" / "comparison.svg"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
