"""Axes to draw on: the user's, or those of a new figure."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FIGURE_SIZE = (6.4, 4.4)
PANEL_SIZE = (4.2, 3.5)


def pyplot() -> Any:
    """The module ``matplotlib.pyplot``, or an error with the command that installs it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "ulmus.plot draws with matplotlib, which is not installed; run "
            "`pip install 'ulmus[plot]'`."
        ) from error
    return plt


def drawing_axes(ax: Any, size: tuple[float, float] = FIGURE_SIZE) -> Any:
    """The axes passed, or those of a new figure of a size in inches."""
    if ax is None:
        return pyplot().subplots(figsize=size, layout="constrained")[1]
    if not hasattr(ax, "plot"):
        raise ValueError(
            f"ax must be one matplotlib Axes, got {type(ax).__name__}; give one element of it."
        )
    return ax


def drawing_grid(ax: Any, n_panels: int, least_height: float = 0.0) -> npt.NDArray[np.object_]:
    """As many axes as there are panels: those passed, or those of a new figure."""
    if ax is not None:
        axes = np.array(ax, dtype=object).ravel()
        if len(axes) != n_panels:
            raise ValueError(
                f"ax has {len(axes)} axes, but there are {n_panels} panels to draw; give one Axes "
                "for each, or leave ax out for a new figure."
            )
        return np.array([drawing_axes(one) for one in axes], dtype=object)
    n_columns = min(n_panels, 3) if n_panels != 4 else 2
    n_rows = -(-n_panels // n_columns)
    width, height = PANEL_SIZE[0], max(PANEL_SIZE[1], least_height)
    figure = pyplot().figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    panels = [figure.add_subplot(n_rows, n_columns, i + 1) for i in range(n_panels)]
    return np.array(panels, dtype=object)
