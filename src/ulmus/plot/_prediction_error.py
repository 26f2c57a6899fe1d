"""Observations against predictions that do not use them, with prediction intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ulmus.core.arrays.backend import FloatArray
from ulmus.diagnostics.leave_one_out import LeaveOneOutRows
from ulmus.metrics._validation import check_shape, checked_array
from ulmus.plot._axes import drawing_axes
from ulmus.plot._points import no_training_rows, observed_output, one_output, target_name
from ulmus.plot._style import BLACK, BLUE, PALE, VERMILION, draw_legend, percent, shortened

# Intervals wider than this share of the others do not determine the vertical axis.
WIDEST = 0.98


@dataclass(kw_only=True, eq=False, repr=False)
class PredictionErrorDisplay:
    """Observations against predictions, with prediction intervals and the line of identity.

    Parameters
    ----------
    predictions, observed : ndarray of shape (n,)
        Predictions, and the observations that they do not use.
    bounds : ndarray of shape (n, 2), optional
        Prediction intervals.
    confidence_level : float, default=0.95
        Level of the intervals.
    y_name : str, default="y"
        Name of what is predicted.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where ``plot`` has drawn last.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.plot import PredictionErrorDisplay
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> display = PredictionErrorDisplay.from_estimator(model)
    >>> display.bounds.shape, bool(0.9 < display.inside.mean() <= 1)
    ((60, 2), True)
    """

    predictions: FloatArray
    observed: FloatArray
    bounds: FloatArray | None = None
    confidence_level: float = 0.95
    y_name: str = "y"
    ax_: Any = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        confidence_level: float = 0.95,
        output: int = 0,
        y_name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the training rows, each predicted without it, or new rows; return the display.

        Parameters
        ----------
        estimator : ELMRegressor or ELMEnsembleRegressor
            A fitted estimator.
        X, y : array-like of shapes (n_samples, n_features) and (n_samples,), optional
            New rows. By default the training rows, whose predictions and intervals are
            leave-one-out.
        confidence_level : float, default=0.95
            Level of the intervals.
        output : int, default=0
            Which of several outputs.
        y_name : str, optional
            Name of what is predicted; that of ``y``, if it has one, by default.
        ax, **options
            As in ``plot``.
        """
        check_is_fitted(estimator)
        name = target_name(y, output, y_name)
        if X is None:
            fit = estimator.fitted_
            if fit.rows is None:
                raise no_training_rows("give X and y of new rows")
            rows = LeaveOneOutRows.of(fit, fit.rows)
            mean, observed = one_output(rows.mean.T, output, 1), rows.observed[output]
            bounds = rows.bounds(output, confidence_level).T
        else:
            mean = one_output(estimator.predict(X), output)
            observed = observed_output(y, output, len(mean))
            bounds = one_output(estimator.predict_interval(X, confidence_level), output, 2)
        return cls.from_predictions(
            mean,
            observed,
            bounds,
            confidence_level=confidence_level,
            y_name=name,
            ax=ax,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        predictions: Any,
        observed: Any,
        bounds: Any = None,
        *,
        confidence_level: float = 0.95,
        y_name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw predictions of any model, and return the display.

        Parameters
        ----------
        predictions, observed : array-like of shape (n,)
            Predictions and observations.
        bounds : array-like of shape (n, 2), optional
            Prediction intervals.
        confidence_level : float, default=0.95
            Level of the intervals.
        y_name : str, optional
            Name of what is predicted; that of ``observed``, if it has one, by default.
        ax, **options
            As in ``plot``.
        """
        mean = checked_array("predictions", predictions, ndims=(1,))
        values = checked_array("observed", observed, ndims=(1,))
        check_shape("observed", values, mean.shape, "give one for each prediction")
        ends = None if bounds is None else checked_array("bounds", bounds, (2,), infinite=True)
        if ends is not None:
            check_shape("bounds", ends, (len(mean), 2), "give two for each prediction")
        display = cls(
            predictions=mean,
            observed=values,
            bounds=ends,
            confidence_level=confidence_level,
            y_name=target_name(observed, 0, y_name),
        )
        return display.plot(ax, **options)

    @property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Whether each observation is in its interval, shape (n,); all without intervals."""
        if self.bounds is None:
            return np.ones(len(self.observed), dtype=bool)
        low, high = self.bounds.T
        return (low <= self.observed) & (self.observed <= high)

    def plot(
        self,
        ax: Any = None,
        *,
        interval_kw: dict[str, Any] | None = None,
        scatter_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw, and return the display.

        The range of the axes is that of the data, also where this cuts off the line of identity.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        interval_kw, scatter_kw : dict, optional
            Matplotlib's options of the intervals and of the observations.
        """
        ax, x = drawing_axes(ax), self.predictions
        horizontal, vertical = _limits([x]), _limits([self.observed, *self._typical_ends()])
        if self.bounds is not None:
            low, high = np.clip(self.bounds.T, *vertical)
            bars = np.stack([low, high, np.full(len(x), np.nan)]).T.ravel()
            look = {"color": PALE, "linewidth": 1.5, "zorder": 1} | (interval_kw or {})
            label = f"{percent(self.confidence_level)} prediction interval"
            ax.plot(np.repeat(x, 3), bars, label=label, **look)
        low, high = max(horizontal[0], vertical[0]), min(horizontal[1], vertical[1])
        ends = [low, high] if low < high else []
        line = {"color": BLACK, "linestyle": "--", "linewidth": 1, "zorder": 2}
        ax.plot(ends, ends, label="identity", **line)
        looks: Sequence[tuple[Any, dict[str, Any]]] = [(self.inside, {"label": "observed"})]
        if self.bounds is not None:
            n_in, n_out = int(np.sum(self.inside)), int(np.sum(~self.inside))
            beyond = {"marker": "D", "color": VERMILION, "label": f"outside: {n_out} rows"}
            within = {"label": f"observed, inside: {n_in} rows"}
            looks = [(self.inside, within), (~self.inside, beyond)]
        for here, look in looks:
            shape = {"linestyle": "", "marker": "o", "markersize": 3, "color": BLUE, "alpha": 0.7}
            if np.any(here):
                ax.plot(x[here], self.observed[here], **shape | look | (scatter_kw or {}))
        name = shortened(self.y_name)
        ax.set(xlabel=f"predicted {name}", ylabel=f"observed {name}")
        ax.set(xlim=horizontal, ylim=vertical)
        draw_legend(ax, loc="upper left")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _typical_ends(self) -> list[FloatArray]:
        """Bounds without infinite ones and the widest few."""
        if self.bounds is None:
            return []
        low, high = (ends[np.isfinite(ends)] for ends in self.bounds.T)
        levels = (1 - WIDEST, WIDEST)
        parts = zip((low, high), levels, strict=True)
        return [np.quantile(ends, [level]) for ends, level in parts if len(ends)]


def _limits(values: Sequence[FloatArray]) -> tuple[float, float]:
    """The range of some values with a margin."""
    low, high = (float(end([end(v) for v in values])) for end in (np.min, np.max))
    margin = 0.03 * (high - low) or 1.0
    return low - margin, high + margin
