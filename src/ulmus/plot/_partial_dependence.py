"""The mean prediction as a function of one or two features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ulmus.plot._axes import drawing_grid
from ulmus.plot._axis_values import AxisValues
from ulmus.plot._curves import (
    Curve,
    Surface,
    draw_curve,
    draw_deciles,
    feature_columns,
    feature_deciles,
    partial_dependence_frames,
)
from ulmus.plot._points import FEW_VALUES
from ulmus.plot._style import date_axis, draw_legend

Feature = int | str
N_CONTOURS = 12


@dataclass(kw_only=True, eq=False, repr=False)
class PartialDependenceDisplay:
    """Partial dependence: curves of single features and surfaces of pairs, with error bars.

    Parameters
    ----------
    terms : sequence of Curve and Surface
        What to draw: a panel for each curve, two for each surface.
    confidence_level : float, default=0.95
        Level of the bands.
    y_label : str
        Name of what is estimated.

    Attributes
    ----------
    axes_, figure_ : ndarray of matplotlib Axes, and Figure
        Axes of the panels, where ``plot`` has drawn last, and their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus.plot import Curve, PartialDependenceDisplay
    >>> x = np.linspace(0, 3, 20)
    >>> bounds = np.stack([np.sin(x) - 0.1, np.sin(x) + 0.1], axis=1)
    >>> display = PartialDependenceDisplay(terms=[Curve("hours", x, np.sin(x), bounds)]).plot()
    >>> display.axes_[0].get_xlabel()
    'hours'
    """

    terms: Sequence[Curve | Surface]
    confidence_level: float = 0.95
    y_label: str = "mean prediction"
    axes_: npt.NDArray[np.object_] | None = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        features: Feature | Sequence[Feature | Sequence[Feature]],
        *,
        grid_resolution: int = 50,
        centered: bool = False,
        simultaneous: bool = False,
        confidence_level: float = 0.95,
        output: int = 0,
        y_name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the ``partial_dependence`` of a fitted estimator, and return the display.

        Parameters
        ----------
        estimator : ELMRegressor or ELMEnsembleRegressor
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Rows over which predictions are averaged.
        features : int, str, or list of these and of pairs of these
            Features by name or number: ``"age"``, ``["age", "bmi"]``, ``[("age", "bmi")]``.
        grid_resolution : int, default=50
            Number of values of each feature.
        centered : bool, default=False
            Whether curves show differences, as ``partial_dependence`` makes them.
        simultaneous : bool, default=False
            Whether to add a simultaneous band to curves.
        confidence_level : float, default=0.95
            Level of the bands.
        output : int, default=0
            Which of several outputs.
        y_name : str, optional
            Name of what is predicted.
        ax, **options
            As in ``plot``.
        """
        settings = {
            "grid_resolution": grid_resolution,
            "centered": centered,
            "confidence_level": confidence_level,
        }
        terms: list[Curve | Surface] = []
        for names in _feature_lists(features):
            deciles = feature_deciles(estimator, X, names)
            together = simultaneous and len(names) == 1
            frames = partial_dependence_frames(
                estimator, X, names, simultaneous=together, **settings
            )
            terms.append(_term(*frames, output, deciles))
        what = "mean prediction" + ("" if y_name is None else f" of {y_name}")
        display = cls(
            terms=terms,
            confidence_level=confidence_level,
            y_label=f"{what}, centred" if centered else what,
        )
        return display.plot(ax, **options)

    @classmethod
    def from_frames(
        cls,
        frames: Sequence[Any],
        *,
        confidence_level: float = 0.95,
        output: int = 0,
        y_name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw frames of ``partial_dependence``, and return the display.

        Parameters
        ----------
        frames : sequence of pandas.DataFrame
            One for each feature or pair of features.
        confidence_level, output, y_name, ax, **options
            As in ``from_estimator``.
        """
        display = cls(
            terms=[_term(frame, None, output, ()) for frame in frames],
            confidence_level=confidence_level,
            y_label="mean prediction" + ("" if y_name is None else f" of {y_name}"),
        )
        return display.plot(ax, **options)

    def plot(
        self, ax: Any = None, *, deciles: bool = True, line_kw: dict[str, Any] | None = None
    ) -> Self:
        """Draw, and return the display.

        Curves in one figure share the range of their vertical axes.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, optional
            One for each curve and two for each surface; a new figure by default.
        deciles : bool, default=True
            Whether short ticks at the axes show the deciles of the data.
        line_kw : dict, optional
            Matplotlib's options of the curves.
        """
        axes = drawing_grid(ax, sum(1 if isinstance(t, Curve) else 2 for t in self.terms))
        panels, curves = iter(axes), []
        for term in self.terms:
            if isinstance(term, Curve):
                curves.append((next(panels), term))
                draw_curve(*curves[-1], self.confidence_level, **line_kw or {})
            else:
                left, right = next(panels), next(panels)
                _draw_map(left, term, term.estimate, self.y_label, "viridis")
                _draw_map(right, term, term.std_error, "standard error", "cividis")
                if deciles and term.deciles:
                    draw_deciles(left, *term.smooth_deciles)
                    draw_deciles(right, *term.smooth_deciles)
        limits = [one.get_ylim() for one, _ in curves]
        for one, curve in curves:
            one.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
            one.set_ylabel(self.y_label)
            if deciles and curve.connected:
                draw_deciles(one, curve.deciles)
        if curves:
            draw_legend(curves[0][0])
        self.axes_, self.figure_ = axes, axes[0].figure
        return self


def _feature_lists(
    features: Feature | Sequence[Feature | Sequence[Feature]],
) -> list[list[Feature]]:
    """The features of each term as a list of one or two."""
    several = [features] if isinstance(features, str | int | np.integer) else list(features)
    lists = [[f] if isinstance(f, str | int | np.integer) else list(f) for f in several]
    if not lists or any(not 1 <= len(names) <= 2 for names in lists):
        raise ValueError(
            f"features must be single features or pairs of them, got {features!r}; write "
            "['age', ('age', 'bmi')]."
        )
    return lists


def _term(frame: Any, whole: Any, output: int, deciles: Sequence[Any]) -> Curve | Surface:
    if len(feature_columns(frame)) == 1:
        return Curve.from_frame(frame, whole, output, deciles)
    return Surface.from_frame(frame, output, deciles)


def _draw_map(ax: Any, surface: Surface, values: Any, label: str, colours: str) -> None:
    """Filled contours, or fields for features with few values."""
    (x, y), smooth = surface.grids, min(map(len, surface.grids)) > FEW_VALUES
    if smooth and np.ptp(values) > 0:
        drawn = ax.contourf(x, y, values, levels=N_CONTOURS, cmap=colours)
    else:
        drawn = ax.pcolormesh(x, y, values, shading="nearest", cmap=colours)
    kinds = surface.axes or (AxisValues(x), AxisValues(y))
    for axis, grid, kind in zip((ax.xaxis, ax.yaxis), (x, y), kinds, strict=True):
        if kind.dates:
            date_axis(axis)
        elif kind.labels or len(grid) <= FEW_VALUES:
            axis.set_ticks(grid, kind.labels or [f"{value:.4g}" for value in grid])
    ax.figure.colorbar(drawn, ax=ax, label=label)
    ax.set(xlabel=surface.names[0], ylabel=surface.names[1])
