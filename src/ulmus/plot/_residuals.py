"""Leave-one-out residuals and leverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.response import LogMean
from ulmus.diagnostics.leave_one_out import training_quantile_residuals
from ulmus.diagnostics.target_text import QUANTILE_RESIDUAL, family_of, link_name, scale_name
from ulmus.metrics._validation import check_shape, checked_array
from ulmus.plot._axes import drawing_axes
from ulmus.plot._link_scale import on_link_scale
from ulmus.plot._points import no_training_rows, one_output
from ulmus.plot._style import BLUE, draw_legend, shortened

SMALLEST_DOT, LARGEST_DOT = 6.0, 110.0


@dataclass(kw_only=True, eq=False, repr=False)
class ResidualsDisplay:
    """Leave-one-out residuals against predictions, with dots that grow with the leverage.

    Parameters
    ----------
    predictions, residuals : ndarray of shape (n,)
        Leave-one-out predictions, and observations minus these. Residuals of a transformed target
        are those of the transformed values. Those of counts and point masses are quantile
        residuals, normal scores of the randomised probability integral transform.
    leverage : ndarray of shape (n,), optional
        Weight of each row in its own prediction, from 0 to 1.
    labels : sequence of length n, optional
        Names of the rows; their numbers by default.
    y_name : str, default="y"
        Name of what is predicted.
    residual_name : str, default="leave-one-out residual"
        Name of the residuals, with their scale.
    prediction_name : str, default="leave-one-out prediction"
        Name of the predictions.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where ``plot`` has drawn last.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.plot import ResidualsDisplay
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> ResidualsDisplay.from_estimator(model).residuals.shape
    (60,)
    """

    predictions: FloatArray
    residuals: FloatArray
    leverage: FloatArray | None = None
    labels: Sequence[Any] | None = None
    y_name: str = "y"
    residual_name: str = "leave-one-out residual"
    prediction_name: str = "leave-one-out prediction"
    ax_: Any = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        labels: Sequence[Any] | None = None,
        output: int = 0,
        y_name: str = "y",
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the residuals of a fitted estimator, and return the display.

        Parameters
        ----------
        estimator : ELMRegressor or ELMEnsembleRegressor
            An estimator fitted in memory, with its training rows.
        labels : sequence of length n_samples, optional
            Names of the training rows; their numbers, from 0, by default.
        output : int, default=0
            Which of several outputs.
        y_name, ax, **options
            As in ``from_predictions``.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "loo_residuals_"):
            raise no_training_rows(
                "draw residuals before compress(), or fit in memory with fit(X, y)"
            )
        residuals, name = _named_residuals(estimator, output, y_name)
        return cls.from_predictions(
            one_output(estimator.loo_predictions_, output),
            residuals,
            one_output(estimator.leverage_, output),
            labels=labels,
            y_name=y_name,
            residual_name=name,
            ax=ax,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        predictions: Any,
        residuals: Any,
        leverage: Any = None,
        *,
        labels: Sequence[Any] | None = None,
        y_name: str = "y",
        residual_name: str = "leave-one-out residual",
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw residuals of any model, and return the display.

        Parameters
        ----------
        predictions, residuals : array-like of shape (n,)
            Predictions, preferably out-of-sample, and observations minus these.
        leverage : array-like of shape (n,), optional
            Leverage of the rows.
        labels : sequence of length n, optional
            Names of the rows; their numbers, from 0, by default.
        y_name : str, default="y"
            Name of what is predicted.
        residual_name : str, default="leave-one-out residual"
            Name of the residuals.
        ax, **options
            As in ``plot``.
        """
        mean = checked_array("predictions", predictions, ndims=(1,))
        errors = checked_array("residuals", residuals, ndims=(1,))
        check_shape("residuals", errors, mean.shape, "give one for each prediction")
        weight = None if leverage is None else checked_array("leverage", leverage, ndims=(1,))
        if weight is not None:
            check_shape("leverage", weight, mean.shape, "give one for each prediction")
        if labels is not None and len(labels) != len(mean):
            raise ValueError(
                f"labels has {len(labels)} entries for {len(mean)} rows; give one for each row."
            )
        display = cls(
            predictions=mean,
            residuals=errors,
            leverage=weight,
            labels=labels,
            y_name=y_name,
            residual_name=residual_name,
        )
        return display.plot(ax, **options)

    def plot(
        self, ax: Any = None, *, n_labels: int = 5, scatter_kw: dict[str, Any] | None = None
    ) -> Self:
        """Draw, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        n_labels : int, default=5
            How many of the largest residuals are named.
        scatter_kw : dict, optional
            Matplotlib's options of the dots.
        """
        ax = drawing_axes(ax)
        sizes = _dot_sizes(self.leverage, len(self.residuals))
        look = {"facecolor": (BLUE, 0.35), "edgecolor": BLUE, "linewidths": 0.5}
        dots = ax.scatter(self.predictions, self.residuals, sizes, **look | (scatter_kw or {}))
        ax.axhline(0, color="black", linewidth=1)
        middle = np.median(self.predictions)
        for i in np.argsort(-np.abs(self.residuals), kind="stable")[:n_labels]:
            left = self.predictions[i] > middle
            ax.annotate(
                str(i if self.labels is None else self.labels[i]),
                (self.predictions[i], self.residuals[i]),
                xytext=(-7 if left else 7, 0),
                textcoords="offset points",
                ha="right" if left else "left",
                va="center",
                fontsize="small",
            )
        x_label = f"{self.prediction_name} of {shortened(self.y_name)}"
        ax.set(xlabel=x_label, ylabel=self.residual_name)
        self._explain_sizes(ax, dots)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _explain_sizes(self, ax: Any, dots: Any) -> None:
        """A legend with the leverage of the smallest, a middle and the largest dot."""
        if self.leverage is None or not np.ptp(self.leverage) > 0:
            return
        for value in np.linspace(np.min(self.leverage), np.max(self.leverage), 3):
            size = _dot_sizes(np.append(self.leverage, value), len(self.leverage) + 1)[-1]
            look = {"facecolor": dots.get_facecolor(), "edgecolor": dots.get_edgecolor()}
            ax.scatter([], [], size, label=f"{value:.2g}", **look)
        draw_legend(ax, title="leverage", title_fontsize="small")


def _named_residuals(estimator: Any, output: int, y_name: str) -> tuple[FloatArray, str]:
    """Residuals on the scale where they are comparable between rows, and their name."""
    fit = estimator.fitted_
    link = one_output(on_link_scale(estimator).loo_residuals_, output)
    family = family_of(fit, output)
    if isinstance(family, LogMean):
        own = training_quantile_residuals(fit, fit.rows, output)
        return fit.rows.with_copies(own[None])[0], QUANTILE_RESIDUAL
    scale = "" if scale_name(family) is None else f" of {link_name(family, y_name)}"
    return link, f"leave-one-out residual{scale}"


def _dot_sizes(leverage: FloatArray | None, n: int) -> FloatArray:
    """Areas of the dots, which grow with the leverage."""
    if leverage is None or not np.ptp(leverage) > 0:
        return np.full(n, 16.0)
    share = leverage / np.max(leverage)
    return SMALLEST_DOT + (LARGEST_DOT - SMALLEST_DOT) * np.maximum(share, 0)
