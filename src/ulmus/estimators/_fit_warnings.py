"""What a fit says: sentences while it learns a map, and warnings when it is done."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_data import FULL_LEVERAGE
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.reml import FEWEST_LEFT
from ulmus.exceptions import CorrelatedErrorsWarning, DegenerateFitWarning, warn

# A series with so many of its rows at the same times as others may be several series.
MOST_TIED = 0.5


def told(sentence: str) -> None:
    """Print what has been learned of the map."""
    print(f"input map: {sentence}")


def untold(sentence: str) -> None:
    """Say nothing."""


def warn_about_fit(fit: Fit, noise: Any) -> None:
    """Warn about what a user should know of a fit that succeeded."""
    if fit.rows is not None and fit.rows.largest_leverage > FULL_LEVERAGE:
        warn(
            "some training rows have leverage 1: the fit passes through them whatever their "
            "value, and their leave-one-out residuals are not usable. Use alpha='loo' or "
            "fewer n_neurons.",
            DegenerateFitWarning,
        )
    if fit.input_map is not None and fit.input_map.trouble:
        warn(
            f"no map of the inputs could be learned ({fit.input_map.trouble}), so that all "
            "have the same scale; look for inputs with extreme values, or use input_map=None.",
            DegenerateFitWarning,
        )
    _warn_about_directions_left(fit)
    overlooked = fit.unmodelled_correlation
    if overlooked is not None:
        warn(
            f"left-out residuals of successive rows have a correlation of "
            f"{overlooked.correlation:.2f}, {overlooked.z:.1f} standard errors from none, and "
            f"noise={noise!r} takes rows as independent: error bars are too small. If "
            "rows follow one another in time, use noise=AR1() of ulmus.noise (Clustered() for "
            "groups, Exponential() in space); if the table is only sorted by an input, the "
            "fit does not follow the function there, and more n_neurons may.",
            CorrelatedErrorsWarning,
        )
    part = fit.ensemble.regressions[0].smoother
    saturated = int(np.sum(part.rank < part.to_t.shape[1]))
    if part.alpha == 0 and saturated:
        warn(
            f"{saturated} of {part.n_members} members have hidden units that are constant "
            "or repeat one another; they are dropped. Use a smaller weight_scale, "
            "standardize=True or alpha='loo'.",
            DegenerateFitWarning,
        )


def _warn_about_directions_left(fit: Fit) -> None:
    """Warn where little tells how noise hangs together."""
    left = min((one.n_left for one in fit.covariances), default=math.inf)
    if left <= FEWEST_LEFT:
        warn(
            f"the fit keeps all but {left} directions of {fit.n_rows} rows for the function, so "
            "that little tells how noise hangs together, and error bars rest on it; use more rows, "
            "a larger alpha or fewer n_neurons.",
            DegenerateFitWarning,
        )


def warn_about_series(locations: Locations) -> None:
    """Warn where several series look like one."""
    if locations.coords is not None or locations.groups is not None:
        return
    _, counts = np.unique(locations.times, return_counts=True)
    tied = int(np.sum(counts[counts > 1]))
    if tied > MOST_TIED * locations.n:
        warn(
            f"{tied} of {locations.n} rows share their time with others, and all rows are taken as "
            "one series; if they are several, give groups.",
            CorrelatedErrorsWarning,
        )
