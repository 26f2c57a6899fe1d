"""Correlation of residuals of neighbouring rows in time and space, and the assumed covariance."""

from __future__ import annotations

import math

from ulmus.core.fit.fit import Fit
from ulmus.core.noise_covariance.diagnostics import NeighbourCorrelation, Variogram, variogram
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.hac import CLUSTERS, HACEstimate
from ulmus.core.query.leave_out import noiseless
from ulmus.diagnostics.checks.calibration import NO_NOISE
from ulmus.diagnostics.finding import Finding, finding
from ulmus.noise.suggestions import CORRELATED_NOISE

# A score and a correlation from which rows treated as independent are a warning.
DOUBTFUL, VISIBLE = 3.0, 0.1
AXES = {"time": "along time", "space": "in space"}
# Dates are counted in days, and rows without times in steps from row to row.
UNITS = {"time": "units of time", "space": "units of distance"}
TOO_SMALL = "Error bars for independent errors are too small, above all those of averages."
NO_GAIN = (
    "The likelihood gain of the specified noise covariance is too small to estimate it; errors may "
    "be correlated otherwise."
)


def correlation_findings(fit: Fit, k: int) -> list[Finding]:
    """Correlation of neighbours of an output; none without training rows."""
    if fit.rows is None:
        return []
    code = "residual-correlation"
    if noiseless(fit)[k]:
        return [finding(code, "ok", 0.0, NO_NOISE)]
    estimate = None if fit.noise_covariance is None else fit.noise_covariance[k]
    spatial, serial = space_variogram(fit, k), fit.serial_correlations[k]
    if estimate is not None and not estimate.independent:
        tested = spatial or serial
        message = f"{_test_text(tested)}; error bars account for it: {correlation_text(estimate)}."
        return [finding(code, "ok", tested.z, message, limit="error bars of independent errors")]
    tested = serial if spatial is None or serial.z > spatial.z else spatial
    if estimate is None:
        severity, implication = _correlation_severity(tested), TOO_SMALL
    else:
        severity, implication = "warning" if tested.significant else "ok", NO_GAIN
    message = f"{_test_text(tested)}."
    limit = f"z above {DOUBTFUL:g} and a correlation above {VISIBLE:g}"
    return [finding(code, severity, tested.z, message, implication, CORRELATED_NOISE, limit)]


def space_variogram(fit: Fit, k: int) -> Variogram | None:
    """Variogram of leave-one-out residuals in the units of y; None without coordinates."""
    if fit.rows is None or fit.rows.locations is None or fit.rows.locations.coords is None:
        return None
    used = fit.rows.data.used
    residual = fit.rows.weighted_residuals[k, used] * fit.ensemble.unit[k]
    return variogram(residual, fit.rows.locations.coords[used])


def correlation_text(estimate: CovarianceEstimate | HACEstimate) -> str:
    """An estimated noise covariance in a phrase."""
    if isinstance(estimate, HACEstimate):
        if estimate.spec.kernel == CLUSTERS:
            return f"any correlation within {estimate.n_groups} groups"
        within = "" if estimate.n_groups is None else f" within {estimate.n_groups} groups"
        return f"any correlation up to a distance of {estimate.bandwidth:.3g}{within}"
    if estimate.independent:
        return "independent errors, as the likelihood gain of correlated ones is too small"
    J, errors = len(estimate.structure.terms), estimate.standard_errors
    parts = []
    for j, term in enumerate(estimate.structure.terms):
        share = f"{estimate.shares[j]:.0%}"
        if J + j < len(errors) and not math.isnan(errors[J + j]):
            share += f" (standard error {errors[J + j]:.0%})"
        at_bound = math.isnan(errors[j])
        error = "the upper bound for these rows" if at_bound else f"standard error {errors[j]:.2g}"
        scale = f"{estimate.scales[j]:.3g} {UNITS[term.axis]} ({error})"
        parts.append(f"{share} of the noise variance decays {AXES[term.axis]} over {scale}")
    if estimate.nugget_variance > 0.005 * estimate.variance:  # not zero in whole percents
        parts.append("the remainder is uncorrelated")
    return ", ".join(parts)


def _correlation_severity(tested: NeighbourCorrelation) -> str:
    if tested.significant:
        return "error"
    return "warning" if tested.z > DOUBTFUL and tested.correlation > VISIBLE else "ok"


def _test_text(tested: NeighbourCorrelation) -> str:
    where = "nearest neighbours" if isinstance(tested, Variogram) else "successive rows"
    return (
        f"leave-one-out residuals of {where} have correlation {tested.correlation:.2f} "
        f"(z = {tested.z:.1f})"
    )
