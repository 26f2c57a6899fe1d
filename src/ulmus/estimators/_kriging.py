"""Predictions with kriged residuals: locations of the points, and checks."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ulmus.core.fit.fit import Fit
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.query.kriging import axes_out_of_reach, fitted_covariances, training_locations
from ulmus.estimators import _parameters as check
from ulmus.estimators._points import PointConversion
from ulmus.estimators._weights import observation_weight
from ulmus.exceptions import ExtrapolationWarning, InputError, warn
from ulmus.intervals.kriging import kriged_mean, kriged_observations
from ulmus.messages import ANY, Message, Setting
from ulmus.noise.locations import new_locations
from ulmus.tables.frames import column

# Topic of the errors in a report.
TOPIC = "noise covariance"
# Units in which locations are required, by the axis of the noise.
SAME_UNITS = {
    "time": "times in the unit of those of fit (dates are days since 1970)",
    "space": "coords in the unit of those of fit",
}


class Kriging(PointConversion):
    """Locations of new observations, and predictions there."""

    noise: Any

    def _new_locations(
        self, X: Any, residual_kriging: bool, time: Any, coords: Any, groups: Any
    ) -> Locations | None:
        """Locations of the points of a table; None without kriging of residuals."""
        arrays = {"time": time, "coords": coords, "groups": groups}
        check_is_fitted(self)
        check.checked_flag("residual_kriging", residual_kriging)
        if not residual_kriging:
            unused = [axis for axis, values in arrays.items() if values is not None]
            if unused:
                text = "is used by predictions with kriged residuals only"
                remedies = Setting("residual_kriging", True), f"omit {unused[0]}"
                raise InputError(Message("unused-locations", text, unused[0], ANY, remedies, TOPIC))
            return None
        structure = fitted_covariances(self.fitted_)[0].structure
        rows = training_locations(self.fitted_)
        n_points = X.shape[0] if hasattr(X, "shape") else len(X)
        locations = new_locations(
            self.noise, structure, rows, n_points, lambda name: column(X, name), arrays
        )
        warn_about_distance(self.fitted_, locations)
        return locations

    def _kriged(self, X: Any, locations: Locations, sample_weight: Any, return_std: bool) -> Any:
        """Prediction at checked points and, optionally, the sd of a new observation."""
        weight = observation_weight(self.fitted_, X.shape[0], sample_weight)
        if not return_std:
            return self._output(kriged_mean(self.fitted_, X, locations, weight), X)
        predicted = kriged_observations(self.fitted_, X, locations, weight)
        return self._output(predicted.mean, X), self._output(predicted.sd, X)


def warn_about_distance(fit: Fit, locations: Locations) -> None:
    """Warn if all points are too far from all rows for residuals to change a prediction."""
    for axis in axes_out_of_reach(fit, locations):
        text = (
            f"all points are farther from the training rows in {axis} than the noise is "
            "correlated, so kriged residuals do not change predictions"
        )
        remedies = f"give {SAME_UNITS[axis]}", Setting("residual_kriging", True, "omit {}")
        message = Message("no-correlated-rows", text, None, ANY, remedies, "extrapolation")
        warn(message, ExtrapolationWarning)


def require_kriged_kind(kind: str, method: str) -> None:
    """Raise an error for intervals that kriged residuals do not apply to."""
    if kind != "prediction":
        text = f"predicts the noise of new observations, which kind={kind!r} excludes"
        remedies = Setting("kind", "prediction"), Setting("residual_kriging", False)
    elif method not in ("auto", "gaussian"):
        text = (
            f"does not combine with method={method!r}, which assumes exchangeable rows: rows with "
            "correlated noise are not"
        )
        remedies = Setting("method", "auto"), Setting("method", "gaussian")
    else:
        return
    raise InputError(Message("kriged-interval", text, "residual_kriging", True, remedies, TOPIC))
