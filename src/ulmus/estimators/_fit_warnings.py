"""Progress messages of a fit, and the warnings after it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import FULL_LEVERAGE
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.reml import FEWEST_LEFT
from ulmus.exceptions import CorrelatedErrorsWarning, DegenerateFitWarning, warn
from ulmus.messages import Message, Setting, named
from ulmus.noise.suggestions import CORRELATED_NOISE

# A series with so many of its rows at the same times as others may be several series.
MOST_TIED = 0.5


def print_progress(text: str) -> None:
    """Print progress of the optimisation of the map."""
    print(f"input map: {text}")


def warn_about_fit(fit: Fit, noise: Any) -> None:
    """Warn about what a user should know of a fit that succeeded."""
    if fit.rows is not None and fit.rows.largest_leverage > FULL_LEVERAGE:
        text = (
            "some training rows have leverage 1: the fit passes through them whatever their "
            "value, and their leave-one-out residuals are not usable"
        )
        remedies = (Setting("alpha", "loo"), Setting("n_neurons", phrase="use fewer {}"))
        warn(Message("full-leverage", text, suggestions=remedies), DegenerateFitWarning)
    if fit.input_map is not None and fit.input_map.failure:
        text = (
            f"no map of the inputs could be learned ({fit.input_map.failure}), so that all have "
            "the same scale"
        )
        remedies = ("look for inputs with extreme values", Setting("input_map", None))
        warn(Message("no-input-map", text, suggestions=remedies), DegenerateFitWarning)
    _warn_about_directions_left(fit)
    overlooked = fit.unmodelled_correlation
    if overlooked is not None:
        text = (
            "leave-one-out residuals of successive rows have a correlation of "
            f"{overlooked.correlation:.2f}, {overlooked.z:.1f} standard errors from zero, and ",
            named("noise", noise),
            " assumes independent errors: error bars are too small",
        )
        message = Message("correlated-residuals", text, suggestions=CORRELATED_NOISE)
        warn(message, CorrelatedErrorsWarning)
    part = fit.ensemble.regressions[0].smoother
    saturated = int(np.sum(part.rank < part.to_t.shape[1]))
    if part.alpha == 0 and saturated:
        text = (
            f"{saturated} of {part.n_members} members have hidden units that are constant or "
            "repeat one another, which are dropped"
        )
        remedies = (
            Setting("weight_scale", phrase="use a smaller {}"),
            Setting("standardize", True),
            Setting("alpha", "loo"),
        )
        warn(Message("saturated-units", text, suggestions=remedies), DegenerateFitWarning)


def _warn_about_directions_left(fit: Fit) -> None:
    """Warn where few degrees of freedom remain to estimate the noise covariance."""
    left = min((one.n_left for one in fit.covariances), default=math.inf)
    if left <= FEWEST_LEFT:
        text = (
            f"only {left} residual degrees of freedom of {fit.n_rows} rows remain to estimate the "
            "error covariance, on which all error bars depend"
        )
        remedies = (
            "use more rows",
            Setting("alpha", phrase="a larger {}"),
            Setting("n_neurons", phrase="fewer {}"),
        )
        warn(Message("few-residual-dof", text, suggestions=remedies), DegenerateFitWarning)


def warn_about_series(locations: Locations) -> None:
    """Warn where several series look like one."""
    if locations.coords is not None or locations.groups is not None:
        return
    _, counts = np.unique(locations.times, return_counts=True)
    tied = int(np.sum(counts[counts > 1]))
    if tied > MOST_TIED * locations.n:
        text = (
            f"{tied} of {locations.n} rows share their time with others, and all rows are taken as "
            "one series"
        )
        remedy = Setting("groups", phrase="give {} if they are several")
        warn(Message("tied-times", text, suggestions=(remedy,)), CorrelatedErrorsWarning)
