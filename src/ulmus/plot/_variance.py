"""Components of the variance of a new observation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.plot._axes import drawing_axes
from ulmus.plot._link_scale import on_link_scale, variance_factor
from ulmus.plot._points import FEW_VALUES, one_output, points_along
from ulmus.plot._style import (
    BLACK,
    BLUE,
    ORANGE,
    PALE,
    SKY,
    VERMILION,
    YELLOW,
    date_axis,
    draw_legend,
    draw_values,
)

OBSERVATION = "noise of a new observation"
SHARED = "training noise, common to members"
OWN = "training noise, specific to members"
WEIGHTS = "random hidden weights"
CHOICE = "selection of alpha and input map"
MODEL = "the fit, given its hidden weights"

# Adjacent components differ in lightness, the others in their hatch.
LOOKS: dict[str, dict[str, Any]] = {
    SHARED: {"facecolor": BLUE},
    OWN: {"facecolor": SKY, "hatch": "///"},
    WEIGHTS: {"facecolor": VERMILION},
    CHOICE: {"facecolor": YELLOW, "hatch": "..."},
    MODEL: {"facecolor": BLUE},
    OBSERVATION: {"facecolor": PALE},
}


@dataclass(kw_only=True, eq=False, repr=False)
class VarianceDisplay:
    """Stacked variance components, along a feature or for each row.

    Parameters
    ----------
    x : ndarray of shape (p,)
        Locations of the points on the axis.
    parts : mapping of str to ndarray of shape (p,)
        Components of the variance of the prediction, by their source. Negative estimates are
        drawn as zero, and the others scaled to the same sum.
    noise : ndarray of shape (p,)
        Noise variance of a new observation.
    connected : bool, default=True
        Whether the points follow each other along a curve and are drawn as areas; else as bars.
    x_categories : tuple of str, default=()
        Categories at the locations 0, 1, ...
    x_dates : bool, default=False
        Whether locations are days since 1970, which are drawn as dates.
    x_label : str
        Name of the horizontal axis.
    y_label : str, optional
        Name of the vertical axis; by default, what the variance is that of.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where ``plot`` has drawn last.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.plot import VarianceDisplay
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> VarianceDisplay.from_estimator(model, X).ax_.get_ylabel()
    'variance of a new observation'
    """

    x: FloatArray
    parts: Mapping[str, FloatArray]
    noise: FloatArray
    connected: bool = True
    x_categories: tuple[str, ...] = ()
    x_dates: bool = False
    x_label: str = "x"
    y_label: str | None = None
    ax_: Any = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        feature: int | str | None = None,
        grid_resolution: int = 200,
        output: int = 0,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the components along a feature or at the rows of a table, and return the display.

        Parameters
        ----------
        estimator : ELMRegressor or ELMEnsembleRegressor
            A fitted estimator. The variance of a single ELM has one component besides the noise.
        X : array-like of shape (n_samples, n_features)
            Rows that give the range of the feature and the medians of the others.
        feature : int or str, optional
            The feature along which to draw; the only one by default. Where a table has several
            and none is chosen, each of its rows gets a bar.
        grid_resolution : int, default=200
            Number of points of a curve.
        output : int, default=0
            Which of several outputs.
        ax, **options
            As in ``plot``.
        """
        points = points_along(estimator, X, feature, "median", grid_resolution)
        noise = estimator.predict_var(points.table, component="noise")
        display = cls(
            x=points.x,
            parts=model_components(estimator, points.table, output),
            noise=one_output(noise, output),
            connected=points.connected,
            x_categories=points.labels,
            x_dates=points.dates,
            x_label=points.label,
        )
        return display.plot(ax, **options)

    def plot(self, ax: Any = None, *, noise: bool = True) -> Self:
        """Draw, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        noise : bool, default=True
            Whether the noise of a new observation is drawn on top. It is often far larger than
            the variance of the prediction, whose components are easier to see without it.
        """
        ax = drawing_axes(ax)
        stack = positive_stack(self.parts)
        if noise:
            stack[OBSERVATION] = self.noise
        below = np.zeros(len(self.x))
        # Bars stand beside each other.
        width = 0.7 * float(np.min(np.diff(self.x))) if len(self.x) > 1 else 0.7
        for name, height in stack.items():
            look = {"edgecolor": BLACK, "linewidth": 0.4} | LOOKS.get(name, {"facecolor": ORANGE})
            if self.connected:
                ax.fill_between(self.x, below, below + height, label=name, **look)
            else:
                ax.bar(self.x, height, width, bottom=below, label=name, **look)
            below = below + height
        what = "a new observation" if noise else "the prediction"
        ax.set(xlabel=self.x_label, ylabel=self.y_label or f"variance of {what}")
        if self.x_dates:
            date_axis(ax.xaxis)
        if self.connected or (len(self.x) > FEW_VALUES and not self.x_categories):
            ax.margins(x=0.01)
        else:
            draw_values(ax, self.x, self.x_categories)
        # Room for the legend above the stack.
        ax.set_ylim(0, max(1.35 * float(np.max(below)), np.finfo(float).tiny))
        draw_legend(ax, loc="upper left", ncols=2, reverse=True)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def model_components(estimator: Any, table: Any, output: int) -> dict[str, FloatArray]:
    """Components of the variance of the prediction, from the bottom of the stack to its top.

    Their shares are those of the regression, also where its target is transformed.
    """
    if not hasattr(estimator, "variance_components"):
        return {MODEL: one_output(estimator.predict_var(table, component="model"), output)}
    link, factor = on_link_scale(estimator), variance_factor(estimator, table, output)
    model = one_output(link.predict_var(table, component="model"), output)
    components = link.variance_components(table)
    own, shared, weights = (one_output(part, output) for part in components)
    rest = model - (own + shared + weights)
    parts = {SHARED: shared, OWN: own, WEIGHTS: weights, CHOICE: rest}
    return {name: factor * values for name, values in parts.items()}


def positive_stack(parts: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Components without negative ones, scaled to the same sum."""
    positive = {name: np.maximum(values, 0) for name, values in parts.items()}
    before, total = sum(parts.values()), sum(positive.values())
    share = np.divide(before, total, out=np.zeros_like(before), where=np.asarray(total) > 0)
    return {name: values * share for name, values in positive.items()}
