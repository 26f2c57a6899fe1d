"""Correlation of leave-one-out residuals by lag, and by distance in space."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ulmus.core.noise_covariance.diagnostics import Correlogram, Variogram
from ulmus.diagnostics.correlogram import residual_correlation
from ulmus.plot._axes import drawing_grid
from ulmus.plot._points import check_output, no_training_rows
from ulmus.plot._style import BLACK, BLUE, draw_legend

# The 97.5 % quantile of the normal distribution.
TWO_SIDED = 1.96


@dataclass(kw_only=True, eq=False, repr=False)
class CorrelogramDisplay:
    """Autocorrelation of residuals by lag, and their variogram where coordinates are known.

    Parameters
    ----------
    correlogram : object with arrays ``lags``, ``correlations`` and ``deviations`` of shape (h,)
        Lags in rows, autocorrelations, and their standard deviations for independent rows.
    variogram : object with arrays ``distances`` and ``semivariances``, and ``variance``, optional
        Semivariances by distance, and the variance of all rows.

    Attributes
    ----------
    axes_, figure_ : ndarray of matplotlib Axes, and Figure
        Axes of the panels, where ``plot`` has drawn last, and their figure.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.plot import CorrelogramDisplay
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> CorrelogramDisplay.from_estimator(model).correlogram.lags[:3]
    array([1, 2, 3])
    """

    correlogram: Correlogram
    variogram: Variogram | None = None
    axes_: npt.NDArray[np.object_] | None = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, output: int = 0, ax: Any = None, **options: Any
    ) -> Self:
        """Draw the residual correlation of the training rows, and return the display.

        Rows are in the order of their times where the fit knows these, otherwise of the table.

        Parameters
        ----------
        estimator : ELMRegressor or ELMEnsembleRegressor
            An estimator fitted in memory, with its training rows.
        output : int, default=0
            Which of several outputs.
        ax, **options
            As in ``plot``.
        """
        check_is_fitted(estimator)
        fit = estimator.fitted_
        check_output(output, fit.ensemble.n_outputs)
        found = residual_correlation(fit, output)
        if found is None:
            raise no_training_rows(
                "draw residuals before compress(), or fit in memory with fit(X, y)"
            )
        return cls(correlogram=found.serial, variogram=found.spatial).plot(ax, **options)

    def plot(self, ax: Any = None) -> Self:
        """Draw, and return the display.

        The band contains 95 % of the autocorrelations of independent rows at each lag.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, optional
            One for the correlogram and one for the variogram, if there is one; a new figure by
            default.
        """
        axes = drawing_grid(ax, 1 if self.variogram is None else 2)
        self._draw_correlogram(axes[0])
        if self.variogram is not None:
            self.draw_variogram(axes[1], self.variogram)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _draw_correlogram(self, ax: Any) -> None:
        """Bars and the band of independent rows."""
        lags, reach = self.correlogram.lags, TWO_SIDED * self.correlogram.deviations
        look = {"color": BLACK, "alpha": 0.15, "linewidth": 0}
        ax.fill_between(lags, -reach, reach, label="95% band if independent", **look)
        ax.bar(lags, self.correlogram.correlations, 0.4, color=BLUE, label="autocorrelation")
        ax.axhline(0, color=BLACK, linewidth=0.8)
        ax.set(xlabel="lag (rows)", ylabel="autocorrelation")
        ax.set_xlim(0, float(np.max(lags, initial=1)) + 0.8)
        draw_legend(ax)

    def draw_variogram(self, ax: Any, found: Variogram) -> None:
        """Semivariances, and the variance of all rows."""
        ax.plot(found.distances, found.semivariances, color=BLUE, marker="o", label="semivariance")
        line = {"color": BLACK, "linestyle": "--", "linewidth": 1}
        ax.axhline(found.variance, label="variance of all rows", **line)
        ax.set(xlabel="distance", ylabel="semivariance")
        ax.set_xlim(left=0)
        ax.set_ylim(bottom=0)
        draw_legend(ax)
