"""Variance of the prediction by ensemble size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ulmus.core.arrays.backend import FloatArray
from ulmus.plot._axes import drawing_axes
from ulmus.plot._link_scale import on_link_scale, variance_factor
from ulmus.plot._points import one_output
from ulmus.plot._style import BLUE, GREY, VERMILION, draw_legend

# Size that stands for an infinite ensemble.
INFINITE = 10**9
N_SIZES = 15


@dataclass(kw_only=True, eq=False, repr=False)
class EnsembleSizeDisplay:
    """Mean variance of the prediction against the number of members.

    Parameters
    ----------
    n_estimators : ndarray of int, shape (k,)
        Numbers of members.
    variance : ndarray of shape (k,)
        Variance of the prediction with so many members, mean over points.
    limit : float
        The variance of an infinitely large ensemble.
    fitted, suggested : int
        Members of the fit, and members that suffice.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where ``plot`` has drawn last.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.plot import EnsembleSizeDisplay
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> EnsembleSizeDisplay.from_estimator(model, X).fitted
    5
    """

    n_estimators: npt.NDArray[np.intp]
    variance: FloatArray
    limit: float
    fitted: int
    suggested: int
    ax_: Any = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        sizes: Sequence[int] | None = None,
        tolerance: float = 0.05,
        output: int = 0,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the variance for other numbers of members, and return the display.

        Parameters
        ----------
        estimator : ELMEnsembleRegressor
            A fitted ensemble of at least two members.
        X : array-like of shape (n_samples, n_features)
            Points to average over.
        sizes : sequence of int, optional
            Numbers of members to draw; by default from 2 to well beyond those of the fit and
            those suggested.
        tolerance : float, default=0.05
            As in ``suggest_n_estimators``, which considers all outputs.
        output : int, default=0
            Which of several outputs to draw.
        ax, **options
            As in ``plot``.
        """
        if not hasattr(estimator, "variance_at"):
            raise ValueError(
                f"estimator must be an ensemble, got {type(estimator).__name__}, which has one "
                "member; fit an ELMEnsembleRegressor."
            )
        suggested = estimator.suggest_n_estimators(X, tolerance)
        fitted = len(estimator.rank_)
        default = member_counts(max(4 * fitted, 2 * suggested))
        chosen = default if sizes is None else np.unique(sizes)

        link, factor = on_link_scale(estimator), variance_factor(estimator, X, output)

        def mean_variance(size: int) -> float:
            return float(np.mean(factor * one_output(link.variance_at(X, size), output)))

        display = cls(
            n_estimators=chosen,
            variance=np.array([mean_variance(int(size)) for size in chosen]),
            limit=mean_variance(INFINITE),
            fitted=fitted,
            suggested=suggested,
        )
        return display.plot(ax, **options)

    def plot(self, ax: Any = None, *, line_kw: dict[str, Any] | None = None) -> Self:
        """Draw, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        line_kw : dict, optional
            Matplotlib's options of the curve.
        """
        ax = drawing_axes(ax)
        curve = {"color": BLUE, "marker": ".", "label": "mean over the points"}
        ax.plot(self.n_estimators, self.variance, **curve | (line_kw or {}))
        ax.axhline(self.limit, color=GREY, linestyle=":", label="infinitely many members")
        ax.axvline(self.fitted, color="black", linestyle="-", label=f"fitted: {self.fitted}")
        suggested = f"suggested: {self.suggested}"
        ax.axvline(self.suggested, color=VERMILION, linestyle="--", label=suggested)
        ax.set_xscale("log")
        ax.xaxis.get_major_locator().set_params(subs=(1, 2, 5))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
        ax.set_ylim(0, 1.1 * max(self.limit, float(np.max(self.variance))) or 1.0)
        ax.set(xlabel="members of the ensemble", ylabel="variance of the prediction")
        draw_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def member_counts(largest: int) -> npt.NDArray[np.intp]:
    """Numbers from 2 to the largest, in nearly equal ratios."""
    return np.unique(np.round(np.geomspace(2, largest, N_SIZES)).astype(np.intp))
