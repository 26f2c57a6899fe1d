"""Predictions along a feature, with confidence and prediction intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.metrics._validation import check_shape, checked_array
from ulmus.plot._axes import drawing_axes
from ulmus.plot._points import FEW_VALUES, observed_output, one_output, points_along, target_name
from ulmus.plot._style import (
    BLACK,
    GREY,
    INNER,
    ORANGE,
    OUTER,
    date_axis,
    draw_band,
    draw_centre,
    draw_legend,
    draw_values,
    make_room,
    percent,
    thinness,
)

TARGETS = {"function": "the function", "expectation": "the mean of the estimator"}


@dataclass(kw_only=True, eq=False, repr=False)
class PredictionDisplay:
    """Predictions with confidence intervals and prediction intervals.

    Parameters
    ----------
    x, mean : ndarray of shape (p,)
        Locations of the predictions on the axis, and predictions.
    confidence, prediction : ndarray of shape (p, 2), optional
        Intervals for the function, and for new observations.
    x_observed, y : ndarray of shape (n,), optional
        Observations.
    connected : bool, default=True
        Whether the predictions are points of one curve, and drawn as a line with bands; else
        each has bars of its own.
    x_categories : tuple of str, default=()
        Categories at the locations 0, 1, ...
    x_dates : bool, default=False
        Whether locations are days since 1970, which are drawn as dates.
    confidence_level : float, default=0.95
        Level of the intervals.
    target : {"function", "expectation"}, default="function"
        Target of the intervals ``confidence``.
    x_label, y_label : str
        Names of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where ``plot`` has drawn last.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.plot import PredictionDisplay
    >>> x = np.linspace(0, 3, 20)
    >>> bounds = np.stack([np.sin(x) - 0.1, np.sin(x) + 0.1], axis=1)
    >>> PredictionDisplay.from_predictions(x, np.sin(x), bounds).ax_.get_xlabel()
    'x'
    """

    x: FloatArray
    mean: FloatArray
    confidence: FloatArray | None = None
    prediction: FloatArray | None = None
    x_observed: FloatArray | None = None
    y: FloatArray | None = None
    connected: bool = True
    x_categories: tuple[str, ...] = ()
    x_dates: bool = False
    confidence_level: float = 0.95
    target: str = "function"
    x_label: str = "x"
    y_label: str = "y"
    ax_: Any = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        feature: int | str | None = None,
        others: str = "median",
        grid_resolution: int = 200,
        confidence_level: float = 0.95,
        target: str = "function",
        output: int = 0,
        y_name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw predictions along a feature or at the rows of a table, and return the display.

        Parameters
        ----------
        estimator : ELMRegressor or ELMEnsembleRegressor
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Rows that give the range of the feature and the medians of the others.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Observations at these rows.
        feature : int or str, optional
            The feature along which to draw; the only one by default. Where a table has several
            and none is chosen, predictions at its rows are drawn in their order.
        others : {"median", "observed"}, default="median"
            Whether the other features stay at their medians, or predictions are made at the rows
            as they are.
        grid_resolution : int, default=200
            Number of points of a curve. A feature with at most ten values is drawn at these.
        confidence_level : float, default=0.95
            Level of the intervals.
        target : {"function", "expectation"}, default="function"
            Target of the confidence interval, as in ``predict_interval``.
        output : int, default=0
            Which of several outputs.
        y_name : str, optional
            Name of the vertical axis; that of ``y``, if it has one, by default.
        ax, **options
            As in ``plot``.
        """
        points = points_along(estimator, X, feature, others, grid_resolution)
        mean = one_output(estimator.predict(points.table), output)
        prediction = estimator.predict_interval(points.table, confidence_level)
        confidence = estimator.predict_interval(
            points.table, confidence_level, kind="confidence", target=target
        )
        display = cls(
            x=points.x,
            mean=mean,
            confidence=one_output(confidence, output, 2),
            prediction=one_output(prediction, output, 2),
            x_observed=None if y is None else points.rows,
            y=None if y is None else observed_output(y, output, len(points.rows)),
            connected=points.connected,
            x_categories=points.labels,
            x_dates=points.dates,
            confidence_level=confidence_level,
            target=target,
            x_label=points.label,
            y_label=target_name(y, output, y_name),
        )
        return display.plot(ax, **options)

    @classmethod
    def from_predictions(
        cls,
        x: Any,
        mean: Any,
        confidence: Any = None,
        prediction: Any = None,
        y: Any = None,
        *,
        connected: bool = True,
        confidence_level: float = 0.95,
        x_name: str | None = None,
        y_name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw predictions of any model, and return the display.

        Parameters
        ----------
        x, mean : array-like of shape (p,)
            Locations of the predictions on the axis, in any order, and predictions.
        confidence, prediction : array-like of shape (p, 2), optional
            Intervals for the function, and for new observations.
        y : array-like of shape (p,), optional
            Observations at the same points.
        connected : bool, default=True
            Whether the predictions are points of one curve.
        confidence_level : float, default=0.95
            Level of the intervals.
        x_name, y_name : str, optional
            Names of the axes; those of ``x`` and ``y``, if they have any, by default.
        ax, **options
            As in ``plot``.
        """
        locations = checked_array("x", x, ndims=(1,))
        order = np.argsort(locations, kind="stable")

        def ordered(name: str, values: Any, *more: int) -> FloatArray | None:
            if values is None:
                return None
            array = checked_array(name, values, ndims=(1 + len(more),), infinite=True)
            check_shape(name, array, (len(locations), *more), "give one entry for each x")
            return array[order]

        display = cls(
            x=locations[order],
            mean=np.asarray(ordered("mean", mean)),
            confidence=ordered("confidence", confidence, 2),
            prediction=ordered("prediction", prediction, 2),
            x_observed=None if y is None else locations[order],
            y=ordered("y", y),
            connected=connected,
            confidence_level=confidence_level,
            x_label=x_name or str(getattr(x, "name", None) or "x"),
            y_label=target_name(y, 0, y_name),
        )
        return display.plot(ax, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        line_kw: dict[str, Any] | None = None,
        scatter_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        line_kw, scatter_kw : dict, optional
            Matplotlib's options of the predictions and of the observations.
        """
        ax = drawing_axes(ax)
        level = percent(self.confidence_level)
        bands = (
            (self.prediction, OUTER, f"{level} for new observations"),
            (self.confidence, INNER, f"{level} for {TARGETS[self.target]}"),
        )
        for bounds, style, label in bands:
            if bounds is not None:
                draw_band(ax, self.x, bounds, style, label, self.connected)
        self._draw_observations(ax, scatter_kw or {})
        line = {"label": "prediction"} | (line_kw or {})
        draw_centre(ax, self.x, self.mean, self.connected, **line)
        ax.set(xlabel=self.x_label, ylabel=self.y_label)
        if self.x_dates:
            date_axis(ax.xaxis)
        if self.connected:
            draw_legend(ax)
        else:
            if self.x_categories or len(self.x) <= FEW_VALUES:
                draw_values(ax, self.x, self.x_categories)
            make_room(ax)
            draw_legend(ax, loc="upper left", ncols=2)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_observations(self, ax: Any, options: dict[str, Any]) -> None:
        """Dots behind a curve, diamonds on the bars of rows, or dots beside the bars of values."""
        if self.y is None or self.x_observed is None:
            return
        look: dict[str, Any] = {"s": 14, "color": GREY, "linewidths": 0, "label": "observations"}
        locations = self.x_observed
        if not self.connected and len(self.x) == len(locations):
            look |= {"s": 18 * thinness(len(locations)), "color": ORANGE, "marker": "D"}
            look |= {"edgecolors": BLACK, "linewidths": 0.5, "zorder": 4}
        elif not self.connected and len(self.x) > 1:
            locations = locations + 0.06 * np.min(np.diff(self.x))
        ax.scatter(locations, self.y, **look | options)
