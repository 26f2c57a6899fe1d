"""Calibration of predictive distributions and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import stats

from ulmus.core.arrays.backend import FloatArray
from ulmus.diagnostics.leave_one_out import ATOM_SHARE
from ulmus.intervals.randomised_pit import randomised_pit
from ulmus.metrics import (
    GroupCoverage,
    coverage,
    coverage_by_group,
    pit_quantiles,
    quantile_intervals,
)
from ulmus.metrics._validation import check_shape, checked_target
from ulmus.plot._axes import drawing_grid
from ulmus.plot._points import observed_output, one_output
from ulmus.plot._style import BLACK, BLUE, PALE, SKY, VERMILION, draw_legend, percent

LEVELS = np.arange(1, 20) / 20
BAND_LABEL = "95% band if calibrated"


@dataclass(kw_only=True, eq=False, repr=False)
class CalibrationDisplay:
    """Probability integral transform (PIT) of observations, and coverage by nominal level.

    Parameters
    ----------
    pit : ndarray of shape (n,)
        Predictive distribution function at each observation: uniform if calibrated. Where the
        observation has a positive probability, such as that of a count, the value is drawn at
        random from the jump there, with a fixed seed.
    levels, coverage : ndarray of shape (k,)
        Nominal levels of intervals, and their empirical coverage.
    groups : mapping of label to GroupCoverage, optional
        Coverage at ``group_level`` in groups of rows.
    group_level : float, default=0.9
        Level at which groups are compared.

    Attributes
    ----------
    axes_, figure_ : ndarray of matplotlib Axes, and Figure
        Axes of the panels, where ``plot`` has drawn last, and their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from ulmus.plot import CalibrationDisplay
    >>> y = np.random.default_rng(0).standard_normal(200)
    >>> display = CalibrationDisplay.from_predictions(y, stats.norm(np.zeros(200)))
    >>> len(display.axes_)
    2
    """

    pit: FloatArray
    levels: FloatArray
    coverage: FloatArray
    groups: Mapping[Any, GroupCoverage] | None = None
    group_level: float = 0.9
    axes_: npt.NDArray[np.object_] | None = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        group_level: float = 0.9,
        output: int = 0,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the calibration of a fitted estimator on new rows, and return the display.

        PIT values are those of ``predict_dist``, and coverage that of ``predict_interval``. The
        intervals of counts and of amounts with a point mass cover more than their level, so that
        their coverage is that of central intervals of the randomised PIT.

        Parameters
        ----------
        estimator : ELMRegressor or ELMEnsembleRegressor
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            New rows. Training rows would be optimistic; ``check`` evaluates them leave-one-out.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Observations.
        groups : array-like of shape (n_samples,), optional
            A label for each row; for a numeric variable see
            :func:`ulmus.metrics.quantile_groups`.
        group_level : float, default=0.9
            Level at which groups are compared.
        output : int, default=0
            Which of several outputs.
        ax, **options
            As in ``plot``.
        """
        intervals = estimator.predict_interval(X, [*LEVELS, group_level])
        ends = one_output(intervals, output, 3)
        observed = observed_output(y, output, len(ends))
        several = np.ndim(intervals) > 3
        each, distribution = observed[:, None] if several else observed, estimator.predict_dist(X)
        pit = one_output(randomised_pit(distribution, each), output)
        if _has_atoms(distribution, each, output):
            observed, ends = pit, _central_intervals([*LEVELS, group_level], len(pit))
        display = cls(
            pit=pit,
            levels=LEVELS,
            coverage=np.asarray(coverage(observed, ends[..., :-1])),
            groups=_group_coverage(observed, ends[..., -1], groups),
            group_level=group_level,
        )
        return display.plot(ax, **options)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        distribution: Any = None,
        *,
        quantile_predictions: Any = None,
        quantiles: Any = None,
        groups: Any = None,
        group_level: float = 0.9,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the calibration of predictions of any model, and return the display.

        Parameters
        ----------
        y : array-like of shape (n,)
            Observations.
        distribution : object with methods ``cdf`` and ``ppf``, optional
            Predicted distributions, as a frozen distribution of ``scipy.stats`` with arrays of
            shape (n,). Where single values have a probability ``pmf``, the PIT is randomised, and
            coverage is that of its central intervals.
        quantile_predictions, quantiles : array-like of shape (n, q) and (q,), optional
            Instead of distributions: predicted quantiles and their levels, which must pair up as
            t and 1 - t. Groups are then compared at the level nearest to ``group_level``.
        groups, group_level, ax, **options
            As in ``from_estimator``.
        """
        observed = checked_target(y)
        check_shape("y", observed, (len(observed),), "give the observations of one output")
        if (distribution is None) == (quantile_predictions is None):
            raise ValueError(
                "from_predictions needs either distribution or quantile_predictions, got "
                f"{'neither' if distribution is None else 'both'}; give one of them."
            )
        if distribution is not None:
            tails = np.concatenate([LEVELS, [group_level]])
            quantiles = np.unique(np.round([(1 - tails) / 2, (1 + tails) / 2], 12))
            quantile_predictions = np.stack([distribution.ppf(q) for q in quantiles], axis=-1)
            pit = randomised_pit(distribution, observed)
        else:
            pit = pit_quantiles(observed, quantile_predictions, quantiles)
        ends, levels = quantile_intervals(quantile_predictions, quantiles)
        if distribution is not None and _has_atoms(distribution, observed, 0):
            observed, ends = pit, _central_intervals(levels, len(pit))
        nearest = int(np.argmin(np.abs(levels - group_level)))
        display = cls(
            pit=pit,
            levels=levels,
            coverage=np.atleast_1d(coverage(observed, ends)),
            groups=_group_coverage(observed, ends[..., nearest], groups),
            group_level=float(levels[nearest]),
        )
        return display.plot(ax, **options)

    def plot(
        self, ax: Any = None, *, panels: Sequence[str] | None = None, n_bins: int = 10
    ) -> Self:
        """Draw, and return the display.

        Bands contain 95 % of samples of calibrated predictions.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, optional
            One for each panel; a new figure by default.
        panels : list of "pit", "coverage" and "groups", optional
            Panels to draw; all by default.
        n_bins : int, default=10
            Bins of the histogram.
        """
        panels_by_name = {"pit": self._draw_pit, "coverage": self._draw_coverage}
        if self.groups is not None:
            panels_by_name["groups"] = self._draw_groups
        chosen = list(panels_by_name) if panels is None else list(panels)
        unknown = [name for name in chosen if name not in panels_by_name]
        if unknown:
            raise ValueError(
                f"panels contains {unknown[0]!r}, not one of {list(panels_by_name)}; 'groups' "
                "requires labels of groups."
            )
        n_groups = len(self.groups or ()) if "groups" in chosen else 0
        axes = drawing_grid(ax, len(chosen), least_height=0.3 * n_groups)
        for one, name in zip(axes, chosen, strict=True):
            panels_by_name[name](one, n_bins)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _draw_pit(self, ax: Any, n_bins: int) -> None:
        """Histogram of the PIT values."""
        n = len(self.pit)
        low, high = chance_band(n, 1 / n_bins) * n_bins
        ax.hist(
            self.pit,
            np.linspace(0, 1, n_bins + 1),
            weights=np.full(n, n_bins / n),
            facecolor=SKY,
            edgecolor=BLACK,
            linewidth=0.6,
        )
        ax.axhspan(low, high, color=BLACK, alpha=0.15, linewidth=0, label=BAND_LABEL)
        ax.axhline(1, color=BLACK, linestyle="--", linewidth=1, label="uniform")
        ax.set(xlabel="PIT", ylabel="density", xlim=(0, 1))
        ax.set_ylim(top=1.3 * max(ax.dataLim.y1, high))
        draw_legend(ax, loc="upper center")

    def _draw_coverage(self, ax: Any, n_bins: int) -> None:
        """Coverage against level."""
        levels = np.linspace(0, 1, 201)[1:-1]
        low, high = chance_band(len(self.pit), levels)
        ax.fill_between(levels, low, high, color=BLACK, alpha=0.15, linewidth=0, label=BAND_LABEL)
        ax.plot([0, 1], [0, 1], color=BLACK, linestyle="--", linewidth=1, label="nominal")
        ax.plot(self.levels, self.coverage, color=BLUE, marker="o", markersize=4, label="observed")
        ax.set(xlabel="nominal level", ylabel="empirical coverage", xlim=(0, 1), ylim=(0, 1))
        draw_legend(ax, loc="upper left")

    def _draw_groups(self, ax: Any, n_bins: int) -> None:
        """Coverage of each group at one level, the groups below each other."""
        groups = dict(self.groups or {})
        locations = np.arange(len(groups))
        counts = np.array([group.n_samples for group in groups.values()])
        share = np.array([group.coverage for group in groups.values()], dtype=float)
        low, high = chance_band(counts, self.group_level)
        ax.hlines(locations, low, high, color=PALE, linewidth=9, label=BAND_LABEL)
        ax.axvline(self.group_level, color=BLACK, linestyle="--", linewidth=1, label="nominal")
        outside = (share < low) | (share > high)
        looks = ((~outside, "o", BLUE, "observed"), (outside, "D", VERMILION, "outside the band"))
        for here, marker, colour, label in looks:
            if np.any(here):
                ax.plot(share[here], locations[here], marker, color=colour, label=label)
        ax.set_yticks(locations, [f"{k} (n = {n})" for k, n in zip(groups, counts, strict=True)])
        # The first group is on top, under the legend.
        ax.set_ylim(len(groups) - 0.4, -0.6 - 0.5 * min(len(groups), 8))
        ax.margins(x=0.08)
        ax.set_xlabel(f"coverage of {percent(self.group_level)} intervals")
        draw_legend(ax, loc="upper left")


def chance_band(n: Any, level: Any) -> FloatArray:
    """Central 95 % interval of the share of n rows that calibrated intervals cover, (2, ...)."""
    law = stats.binom(n, level)
    return np.stack([law.ppf(0.025) / n, law.ppf(0.975) / n])


def _has_atoms(distribution: Any, y: FloatArray, output: int) -> bool:
    """Whether many observations have a positive probability."""
    if not hasattr(distribution, "pmf"):
        return False
    return bool(np.mean(one_output(distribution.pmf(y), output) > 0) >= ATOM_SHARE)


def _central_intervals(levels: Any, n: int) -> FloatArray:
    """Intervals of PIT values, (n, 2, levels)."""
    tail = 0.5 * (1.0 - np.asarray(levels, dtype=float))
    return np.broadcast_to(np.stack([tail, 1.0 - tail]), (n, 2, len(tail)))


def _group_coverage(y: FloatArray, ends: FloatArray, groups: Any) -> Any:
    return None if groups is None else coverage_by_group(y, ends, groups)
