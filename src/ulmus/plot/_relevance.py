"""Feature relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ulmus.core.arrays.backend import FloatArray
from ulmus.diagnostics.relevance import relevance_text
from ulmus.plot._axes import FIGURE_SIZE, drawing_axes
from ulmus.plot._points import feature_names
from ulmus.plot._style import BLACK, SKY, shortened

BAR_HEIGHT, FRAME_HEIGHT = 0.28, 0.9


@dataclass(kw_only=True, eq=False, repr=False)
class RelevanceDisplay:
    """Share of each feature in the prediction, the largest on top.

    Parameters
    ----------
    names : sequence of str
        Names of the features.
    relevance : ndarray of shape (d,)
        Share of each.
    deviation : ndarray of shape (d,), optional
        Its standard deviation.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where ``plot`` has drawn last.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.plot import RelevanceDisplay
    >>> display = RelevanceDisplay(names=["age", "bmi"], relevance=np.array([0.2, 0.8])).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['bmi', 'age']
    """

    names: Sequence[str]
    relevance: FloatArray
    deviation: FloatArray | None = None
    ax_: Any = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> Self:
        """Draw the relevance of the features of a fitted estimator, and return the display.

        Parameters
        ----------
        estimator : ELMRegressor or ELMEnsembleRegressor
            A fitted estimator with a learned input map.
        ax, **options
            As in ``plot``.
        """
        check_is_fitted(estimator)
        try:
            relevance, deviation = estimator.feature_relevance_, estimator.feature_relevance_std_
        except AttributeError as error:
            raise ValueError(f"estimator has no feature_relevance_: {error}") from error
        names = feature_names(estimator)
        return cls(names=names, relevance=relevance, deviation=deviation).plot(ax, **options)

    def plot(
        self, ax: Any = None, *, max_features: int = 20, bar_kw: dict[str, Any] | None = None
    ) -> Self:
        """Draw, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        max_features : int, default=20
            How many features are shown at most.
        bar_kw : dict, optional
            Matplotlib's options of the bars.
        """
        if max_features < 1:
            raise ValueError(f"max_features must be at least 1, got {max_features}; 20 is usual.")
        shown = np.argsort(-self.relevance, kind="stable")[:max_features]
        ax = drawing_axes(ax, (FIGURE_SIZE[0], BAR_HEIGHT * len(shown) + FRAME_HEIGHT))
        share, locations = self.relevance[shown], np.arange(len(shown))
        ax.barh(locations, share, **{"color": SKY, "edgecolor": BLACK} | (bar_kw or {}))
        if self.deviation is not None:
            # A share is never negative.
            error = self.deviation[shown]
            low = np.minimum(error, share)
            ax.errorbar(share, locations, xerr=[low, error], fmt="none", color=BLACK, capsize=2.5)
        self._name_values(ax, shown)
        ax.set_yticks(locations, [shortened(self.names[j]) for j in shown])
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.xaxis.set_major_formatter("{x:.0%}")
        hidden = len(self.relevance) - len(shown)
        error_bar = "" if self.deviation is None else ", ± sd"
        note = f" ({hidden} more not shown)" if hidden else ""
        ax.set_xlabel(f"share in the prediction{error_bar}{note}")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _name_values(self, ax: Any, shown: Any) -> None:
        """Each share with its standard deviation, to the right of all bars."""
        ends = self.relevance + (0.0 if self.deviation is None else self.deviation)
        right = 1.05 * float(np.max(ends)) or 1.0
        for location, j in enumerate(shown):
            sd = None if self.deviation is None else float(self.deviation[j])
            text = relevance_text(float(self.relevance[j]), sd)
            ax.text(right, location, text, va="center", fontsize="small")
        ax.set_xlim(0, 1.6 * right)
        ax.set_xticks([tick for tick in ax.get_xticks() if 0 <= tick <= right])
