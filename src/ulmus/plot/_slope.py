"""The derivative of partial dependence along a feature, and where it differs from zero."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ulmus.plot._axes import drawing_axes
from ulmus.plot._curves import (
    Curve,
    draw_curve,
    draw_deciles,
    feature_deciles,
    partial_dependence_frames,
)
from ulmus.plot._style import BLACK, GREEN, VERMILION, draw_legend, make_room

RISES, FALLS = "increasing: band above zero", "decreasing: band below zero"


@dataclass(kw_only=True, eq=False, repr=False)
class SlopeDisplay:
    """The derivative of a partial dependence, emphasised where its band excludes zero.

    Parameters
    ----------
    curve : Curve
        The derivative along the feature, with its bands.
    confidence_level : float, default=0.95
        Level of the bands.
    y_label : str
        Name of the vertical axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where ``plot`` has drawn last.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.plot import Curve, SlopeDisplay
    >>> x = np.linspace(0, 3, 20)
    >>> bounds = np.stack([np.cos(x) - 0.1, np.cos(x) + 0.1], axis=1)
    >>> display = SlopeDisplay(curve=Curve("hours", x, np.cos(x), bounds)).plot()
    >>> [line.get_label() for line in display.ax_.lines[2:]]
    ['increasing: band above zero', 'decreasing: band below zero']
    """

    curve: Curve
    confidence_level: float = 0.95
    y_label: str = "slope of the mean prediction"
    ax_: Any = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        feature: int | str,
        *,
        grid_resolution: int = 50,
        simultaneous: bool = False,
        confidence_level: float = 0.95,
        output: int = 0,
        y_name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw ``partial_dependence(kind="slope")`` of an estimator, and return the display.

        Parameters
        ----------
        estimator : ELMRegressor or ELMEnsembleRegressor
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Rows over which slopes are averaged.
        feature : int or str
            The feature, by name or number.
        grid_resolution : int, default=50
            Number of values of the feature.
        simultaneous : bool, default=False
            Whether to add a simultaneous band, which then decides where zero is excluded.
        confidence_level : float, default=0.95
            Level of the bands.
        output : int, default=0
            Which of several outputs.
        y_name : str, optional
            Name of what is predicted.
        ax, **options
            As in ``plot``.
        """
        deciles = feature_deciles(estimator, X, [feature])
        frames = partial_dependence_frames(
            estimator,
            X,
            [feature],
            simultaneous=simultaneous,
            grid_resolution=grid_resolution,
            confidence_level=confidence_level,
            kind="slope",
        )
        curve = Curve.from_frame(*frames, output, deciles)
        label = "slope of the mean prediction" + ("" if y_name is None else f" of {y_name}")
        display = cls(curve=curve, confidence_level=confidence_level, y_label=label)
        return display.plot(ax, **options)

    def plot(self, ax: Any = None, *, deciles: bool = True) -> Self:
        """Draw, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        deciles : bool, default=True
            Whether short ticks at the axis show the deciles of the data.
        """
        ax, curve = drawing_axes(ax), self.curve
        draw_curve(ax, curve, self.confidence_level, linewidth=1.0)
        ax.axhline(0, color=BLACK, linewidth=1, linestyle=":")
        low, high = (curve.bounds if curve.whole is None else curve.whole).T
        _draw_part(ax, curve, low > 0, color=GREEN, linestyle="-", marker="^", label=RISES)
        _draw_part(ax, curve, high < 0, color=VERMILION, linestyle="--", marker="v", label=FALLS)
        ax.set_ylabel(self.y_label)
        make_room(ax)
        if deciles and curve.connected:
            draw_deciles(ax, curve.deciles)
        draw_legend(ax, loc="upper left", ncols=2)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _draw_part(ax: Any, curve: Curve, selected: Any, **look: Any) -> None:
    """Emphasise a part of the curve: a thick line, and marks at isolated points."""
    if not np.any(selected):
        return
    padded = np.concatenate([[False], selected, [False]])
    marked = selected & ~padded[:-2] & ~padded[2:] if curve.connected else selected
    ax.plot(
        curve.grid,
        np.where(selected, curve.estimate, np.nan),
        linewidth=3.5 if curve.connected else 0.0,
        markevery=np.flatnonzero(marked).tolist(),
        zorder=3.5,
        **look,
    )
