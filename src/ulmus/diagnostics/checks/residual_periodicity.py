"""Periods of residuals in the order of time: a season that the model does not have."""

from __future__ import annotations

import math

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.periodicity import (
    Period,
    Series,
    lag_correlation,
    residual_series,
    strongest_period,
)
from ulmus.core.noise_covariance.whitening import noise_whitening
from ulmus.core.query.leave_out import noiseless
from ulmus.diagnostics.checks.calibration import NO_NOISE
from ulmus.diagnostics.finding import Finding, finding

# Both tests together exceed this p-value once in 200 calibrated fits.
SIGNIFICANT_P = 0.005
# Correlations at a lag from which a period is a warning, or an error; and the same shares of the
# variance that a sine explains.
WARNING_SIZE, ERROR_SIZE = 0.1, 0.3
LIMIT = f"adjusted p below {SIGNIFICANT_P:g} and a correlation or share above {WARNING_SIZE:g}"
MISSING_SEASON = "The model has no inputs for what repeats, and error bars do not account for it."
OTHER_COVARIANCE = "The assumed noise covariance does not account for it."
ADD_INPUTS = (
    "add inputs for the season, such as the month, or sine and cosine of 2 pi time / period",
)
ADD_LAGS = ("add inputs that explain it", "use another noise covariance")


def periodicity_findings(fit: Fit, k: int) -> list[Finding]:
    """The strongest period of an output; none without training rows in the order of time."""
    code, rows = "residual-periodicity", fit.rows
    if rows is None:
        return []
    if (
        rows.locations is not None
        and rows.locations.time is None
        and rows.locations.coords is not None
    ):
        return []
    if noiseless(fit)[k]:
        return [finding(code, "ok", 0.0, NO_NOISE)]
    locations = (rows.locations or Locations(n=rows.data.n_rows)).taken(rows.data.used).ordered
    own = residual_series(_leave_one_out(rows, k), locations.times)
    white = _decorrelated(fit, rows, k, locations)
    period = strongest_period(own if white is None else residual_series(white, locations.times))
    if period is None:
        message = f"not tested: {locations.n} rows are too few, or their residuals are equal."
        return [finding(code, "ok", 0.0, message)]
    if period.p_value >= SIGNIFICANT_P:
        name = "leave-one-out residuals" if white is None else "decorrelated residuals"
        message = f"no period of {name} detected; adjusted p = {period.p_value:.2g}."
        return [finding(code, "ok", period.size, message, limit=LIMIT)]
    # Rows of the same time are one step.
    unit = "rows" if np.sum(own.observed) == locations.n else "steps of time"
    text = _period_text(period, unit, None if white is None else own)
    if period.size < WARNING_SIZE:
        message = f"significant but small: {text}, adjusted p = {period.p_value:.2g}."
        return [finding(code, "ok", period.size, message, limit=LIMIT)]
    severity = "error" if period.size > ERROR_SIZE else "warning"
    advice = (MISSING_SEASON, ADD_INPUTS) if period.repeats else (OTHER_COVARIANCE, ADD_LAGS)
    message = f"{text}, p = {period.p_value:.2g}."
    return [finding(code, severity, period.size, message, *advice)._replace(limit=LIMIT)]


def _leave_one_out(rows: TrainingRows, k: int) -> FloatArray:
    """Leave-one-out residuals of an output in the order of time, (n,)."""
    used = rows.data.used
    residuals = rows.weighted_residuals[k, used]
    return residuals if rows.locations is None else residuals[rows.locations.taken(used).order]


def _decorrelated(fit: Fit, rows: TrainingRows, k: int, locations: Locations) -> FloatArray | None:
    """Residuals of an output, decorrelated by the estimated noise covariance, (n,).

    None where there is no such estimate. They are the residuals of the fit to all rows, as those of
    a fit without the block of a row have a common error within a block.
    """
    estimate = None if fit.noise_covariance is None else fit.noise_covariance[k]
    if not isinstance(estimate, CovarianceEstimate) or estimate.independent:
        return None
    used, root = rows.data.used, rows.data.root_weight
    residuals = rows.data.y[k] - fit.mean(rows.data.X)[k]
    residuals = (residuals if root is None else residuals * root)[used]
    if rows.locations is not None:
        residuals = residuals[rows.locations.taken(used).order]
    whitening = noise_whitening(estimate.structure, locations)
    return whitening(estimate.scales, estimate.shares, residuals[:, None])[0][:, 0]


def _period_text(period: Period, unit: str, own: Series | None) -> str:
    """A period in words, with the correlation of the residuals before they were decorrelated."""
    duration = f"{period.duration:.3g} units of time"
    length = duration
    if not math.isnan(period.length):
        several = "" if period.length == period.duration else f" ({duration})"
        length = f"{period.length:.3g} {unit}{several}"
    after = "" if own is None else ", decorrelated by the estimated noise covariance"
    if not period.is_lag:
        sine = f"a sine with a period of {length} explains {period.size:.0%} of"
        return f"{sine} the variance of the residuals{after}"
    at = f"at lag {period.length:.3g}"
    correlation = f"correlation {period.size:.2f} {at}"
    if own is not None:
        before = lag_correlation(own, int(period.length))
        correlation = f"correlation {before:.2f} {at}, {period.size:.2f}{after[1:]}"
    verb = "repeat every" if period.repeats else "are correlated with those at a distance of"
    return f"leave-one-out residuals {verb} {length} ({correlation})"
