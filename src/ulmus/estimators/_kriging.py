"""Predictions that listen to the residuals of training rows nearby."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ulmus.core.fit.fit import Fit
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.query.kriging import axes_out_of_reach, fitted_covariances, training_locations
from ulmus.estimators import _parameters as check
from ulmus.estimators._points import Points
from ulmus.exceptions import ExtrapolationWarning, warn
from ulmus.intervals.kriging import kriged_mean, kriged_observations
from ulmus.noise.locations import new_locations
from ulmus.tables.frames import column

# What places may be given in by mistake, by the axis of the noise.
SAME_UNITS = {
    "time": "times of the same kind and unit as in fit, where dates are days since 1970",
    "space": "coords in the unit of those of fit",
}


class Kriging(Points):
    """Where new observations are, and what is predicted there."""

    noise: Any

    def _new_places(self, X: Any, residual_kriging: bool, **given: Any) -> Locations | None:
        """Locations of the points of a table; None if residuals are not asked for."""
        check_is_fitted(self)
        check.checked_flag("residual_kriging", residual_kriging)
        if not residual_kriging:
            unused = [axis for axis, values in given.items() if values is not None]
            if unused:
                raise ValueError(
                    f"{unused[0]} was given, and a prediction from X alone has no use for it; use "
                    "residual_kriging=True, or leave it out."
                )
            return None
        family = fitted_covariances(self.fitted_)[0].structure
        trained = training_locations(self.fitted_)
        n_points = X.shape[0] if hasattr(X, "shape") else len(X)
        at = new_locations(
            self.noise, family, trained, n_points, lambda name: column(X, name), given
        )
        warn_about_reach(self.fitted_, at)
        return at

    def _kriged(self, X: Any, at: Locations, return_std: bool) -> Any:
        """Prediction at checked points and, if asked, the sd of a new observation."""
        if not return_std:
            return self._output(kriged_mean(self.fitted_, X, at), X)
        seen = kriged_observations(self.fitted_, X, at)
        return self._output(seen.mean, X), self._output(seen.sd, X)


def warn_about_reach(fit: Fit, at: Locations) -> None:
    """Warn where residuals change nothing, as all points are far from all rows."""
    for axis in axes_out_of_reach(fit, at):
        warn(
            f"all points are farther from the training rows in {axis} than noise hangs together, "
            f"so that residuals change nothing along it; give {SAME_UNITS[axis]}, or leave "
            "residual_kriging=True out.",
            ExtrapolationWarning,
        )


def require_kriged_kind(kind: str, method: str) -> None:
    """Refuse intervals that residuals of rows nearby say nothing about."""
    if kind != "prediction":
        raise ValueError(
            f"residual_kriging=True is for the noise of new observations, and kind={kind!r} asks "
            "for the function; use kind='prediction', or residual_kriging=False."
        )
    if method not in ("auto", "gaussian"):
        raise ValueError(
            f"residual_kriging=True with method={method!r}: rows whose noise hangs together are "
            "not exchangeable; use method='auto' or 'gaussian'."
        )
