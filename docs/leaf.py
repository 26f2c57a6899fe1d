"""Draw the logo, an elm leaf: toothed edge, straight veins, and a base that is lower on one side.

``python docs/leaf.py`` writes ``_static/logo.svg`` and ``_static/favicon.svg``.
"""

from pathlib import Path

import numpy as np

LIGHT, DARK = "#5aa469", "#2f6b3a"
BLADE = 84.0  # length of the blade; the picture is 100 units high


def edge(side: float, base: float, teeth: int) -> np.ndarray:
    """Points of one edge from the base to the tip, (k, 2), with teeth that point forward."""
    along = np.linspace(0, 1, 8 * teeth + 1)
    width = 30 * np.sin(np.pi * along**0.82) ** 0.9 * (1 - 0.18 * along)
    tooth = 2.1 * (along * teeth % 1) * np.sin(np.pi * along) ** 0.5
    height = base + (BLADE - base) * along
    return np.column_stack([side * (width + tooth), height])


def path(points: np.ndarray) -> str:
    """SVG path through points, with the tip of the leaf up and its axis in the middle."""
    return "M" + "L".join(f"{50 + x:.1f} {92 - y:.1f}" for x, y in points)


def leaf(teeth: int, veins: int, stroke: float) -> str:
    """SVG text of a leaf."""
    right, left = edge(1.0, 7.0, teeth), edge(-1.0, 0.0, teeth)  # elm: an uneven base
    outline = path(np.concatenate([right, left[::-1]])) + "Z"
    lines = [path(np.array([[0, -8], [0, BLADE - 4]]))]
    for share in np.linspace(0.12, 0.8, veins):
        for points in (right, left):
            start = points[0, 1] + (BLADE - points[0, 1]) * (share - 0.09)
            end = points[round(min(share + 0.1, 0.97) * (len(points) - 1))] * [0.86, 1.0]
            lines.append(path(np.array([[0, start], end])))
    veined = "".join(f'<path d="{line}"/>' for line in lines)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100" role="img">'
        f"<title>ulmus</title><g transform='rotate(28 50 50)'>"
        f'<path d="{outline}" fill="{LIGHT}" stroke="{DARK}" stroke-width="{stroke}" '
        f'stroke-linejoin="round"/><g fill="none" stroke="{DARK}" stroke-width="{stroke}" '
        f'stroke-linecap="round">{veined}</g></g></svg>\n'
    )


if __name__ == "__main__":
    static = Path(__file__).parent / "_static"
    (static / "logo.svg").write_text(leaf(teeth=17, veins=8, stroke=1.6))
    (static / "favicon.svg").write_text(leaf(teeth=9, veins=4, stroke=3.5))
