"""Curves and surfaces over features, read from the frames of ``partial_dependence``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.plot._axis_values import AxisValues, axis_values
from ulmus.plot._points import FEW_VALUES, check_output, feature_values
from ulmus.plot._style import (
    BLACK,
    INNER,
    OUTER,
    date_axis,
    draw_band,
    draw_centre,
    draw_values,
    percent,
    shortened,
)

# Columns of an effects frame that are not features.
ESTIMATES = {"estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"}
EFFECT_COLUMNS = {"term", "contrast", "output"} | ESTIMATES


def partial_dependence_frames(
    estimator: Any, X: Any, names: Sequence[Any], *, simultaneous: bool, **settings: Any
) -> tuple[Any, Any]:
    """A frame of partial dependence, and one with simultaneous bounds, or None."""
    frame = estimator.partial_dependence(X, names, **settings)
    if not simultaneous:
        return frame, None
    return frame, estimator.partial_dependence(X, names, simultaneous=True, **settings)


@dataclass(frozen=True, eq=False)
class Curve:
    """An estimate along one feature.

    Parameters
    ----------
    name : str
        Name of the feature.
    grid, estimate : ndarray of shape (p,)
        Values of the feature, increasing, and the estimate there.
    bounds : ndarray of shape (p, 2)
        Interval at each point.
    whole : ndarray of shape (p, 2), optional
        Simultaneous band.
    deciles : ndarray of shape (9,), optional
        Deciles of the feature among the rows.
    labels : tuple of str, optional
        Categories of the feature, whose grid is 0, 1, ...
    dates : bool, default=False
        Whether the grid is days since 1970.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> from ulmus.plot import Curve
    >>> curve = Curve.from_frame(model.partial_dependence(X, 0, grid_resolution=30))
    >>> curve.name, curve.grid.shape, curve.bounds.shape
    ('x0', (30,), (30, 2))
    """

    name: str
    grid: FloatArray
    estimate: FloatArray
    bounds: FloatArray
    whole: FloatArray | None = None
    deciles: FloatArray | None = None
    labels: tuple[str, ...] = ()
    dates: bool = False

    @classmethod
    def from_frame(
        cls, frame: Any, whole: Any = None, output: int = 0, deciles: Sequence[FloatArray] = ()
    ) -> Self:
        """Read a frame with one feature, and one with simultaneous bounds."""
        rows = frame_of_output(frame, output)
        (name,) = feature_columns(frame)
        grid, labels, dates = axis_values(rows[name])
        order = np.argsort(grid, kind="stable")
        return cls(
            str(name),
            grid[order],
            numeric_column(rows, "estimate")[order],
            _confidence_bounds(rows)[order],
            None if whole is None else _confidence_bounds(frame_of_output(whole, output))[order],
            deciles[0] if deciles else None,
            labels,
            dates,
        )

    @property
    def connected(self) -> bool:
        """Whether the feature has more than a few values, and is drawn as a line."""
        return len(self.grid) > FEW_VALUES and not self.labels


@dataclass(frozen=True, eq=False)
class Surface:
    """An estimate over the grid of two features.

    Parameters
    ----------
    names : tuple of two str
        Names of the features.
    grids : tuple of two ndarrays of shapes (p,) and (q,)
        Values of the features, increasing.
    estimate, std_error : ndarray of shape (q, p)
        The estimate and its standard error; the first feature runs along the last axis.
    deciles : sequence of two ndarrays of shape (9,), or empty
        Deciles of the features among the rows.
    axes : tuple of two AxisValues, optional
        Which features are categories or dates.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_friedman
    >>> from ulmus.plot import Surface
    >>> X, y, *_ = make_friedman(100, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> surface = Surface.from_frame(model.partial_dependence(X, [0, 1], grid_resolution=4))
    >>> surface.names, surface.estimate.shape
    (('x0', 'x1'), (4, 4))
    """

    names: tuple[str, str]
    grids: tuple[FloatArray, FloatArray]
    estimate: FloatArray
    std_error: FloatArray
    deciles: Sequence[FloatArray] = ()
    axes: tuple[AxisValues, ...] = ()

    @classmethod
    def from_frame(cls, frame: Any, output: int = 0, deciles: Sequence[FloatArray] = ()) -> Self:
        """Read a frame with two features, whose rows may come in any order."""
        rows = frame_of_output(frame, output)
        first, second = feature_columns(frame)
        axes = axis_values(rows[first]), axis_values(rows[second])
        x, i = np.unique(axes[0].positions, return_inverse=True)
        y, j = np.unique(axes[1].positions, return_inverse=True)
        estimate, std_error = (np.full((len(y), len(x)), np.nan) for _ in range(2))
        estimate[j, i] = numeric_column(rows, "estimate")
        std_error[j, i] = numeric_column(rows, "std_error")
        return cls((str(first), str(second)), (x, y), estimate, std_error, deciles, axes)

    @property
    def smooth_deciles(self) -> list[FloatArray | None]:
        """Deciles of the features that are drawn as a line."""
        pairs = zip(self.grids, self.deciles, strict=True)
        return [deciles if len(grid) > FEW_VALUES else None for grid, deciles in pairs]


def feature_columns(frame: Any) -> list[Any]:
    """Columns with values of features."""
    found = [name for name in frame.columns if name not in EFFECT_COLUMNS]
    if not 1 <= len(found) <= 2:
        raise ValueError(
            f"a frame must have the columns of one or two features, got {found}; give one frame "
            "for each feature or pair of features."
        )
    return found


def frame_of_output(frame: Any, output: int) -> Any:
    """Rows of one output; a frame of one output has no column ``output``."""
    several = "output" in frame.columns
    outputs = list(dict.fromkeys(frame["output"])) if several else [0]
    check_output(output, len(outputs))
    return frame[frame["output"] == outputs[output]] if several else frame


def numeric_column(frame: Any, name: Any) -> FloatArray:
    """A column as an array of numbers."""
    return np.asarray(frame[name], dtype=float)


def _confidence_bounds(frame: Any) -> FloatArray:
    return np.stack([numeric_column(frame, "conf_low"), numeric_column(frame, "conf_high")], axis=1)


def feature_deciles(estimator: Any, X: Any, features: Sequence[int | str]) -> list[FloatArray]:
    """Deciles of each of the features among the rows of a table."""
    shares = np.arange(1, 10) / 10
    return [np.nanquantile(feature_values(estimator, X, each), shares) for each in features]


def draw_curve(ax: Any, curve: Curve, confidence_level: float, **line: Any) -> None:
    """Draw the bands and the curve, or bars and marks for a feature with few values."""
    level, connected = percent(confidence_level), curve.connected
    if curve.whole is not None:
        words = "for the whole curve" if connected else "for all values at once"
        draw_band(ax, curve.grid, curve.whole, OUTER, f"{level} {words}", connected)
    words = "at each point" if connected else "at each value"
    draw_band(ax, curve.grid, curve.bounds, INNER, f"{level} {words}", connected)
    draw_centre(ax, curve.grid, curve.estimate, connected, **line)
    ax.set_xlabel(shortened(curve.name))
    if curve.dates:
        date_axis(ax.xaxis)
    elif connected and np.all(curve.grid == np.round(curve.grid)):
        ax.xaxis.get_major_locator().set_params(integer=True)  # years, and other whole numbers
    elif not connected:
        draw_values(ax, curve.grid, curve.labels)


def draw_deciles(ax: Any, x: FloatArray | None, y: FloatArray | None = None) -> None:
    """Short ticks inside the axes at the deciles of the data."""
    height, look = 0.03, {"color": BLACK, "linewidth": 1.0}
    if x is not None:
        ax.vlines(x, 0, height, transform=ax.get_xaxis_transform(), **look)
    if y is not None:
        ax.hlines(y, 0, height, transform=ax.get_yaxis_transform(), **look)
