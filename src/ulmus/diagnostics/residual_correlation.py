"""Whether residuals of neighbours agree, in time and in space, and what was assumed about it."""

from __future__ import annotations

import math

from ulmus.core.fit.fit import Fit
from ulmus.core.noise_covariance.diagnostics import SerialCorrelation, Variogram, variogram
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.hac import CLUSTERS, HACEstimate
from ulmus.diagnostics.calibration_data import noiseless
from ulmus.diagnostics.finding import Finding

# A score and a correlation from which rows that were taken as independent deserve a look.
DOUBTFUL, VISIBLE = 3.0, 0.1
# A smaller share of the noise is not worth a word.
VISIBLE_NUGGET = 0.005
AXES = {"time": "along time", "space": "in space"}
# Dates count in days, and rows without times in steps from row to row.
UNITS = {"time": "units of time", "space": "units of distance"}
REMEDY = (
    "error bars are too small, above all those of averages; use noise=AR1() of ulmus.noise for "
    "rows along time, Clustered() for groups, Exponential() in space. If the table is only sorted "
    "by an input, the fit does not follow the function there: use more n_neurons."
)
TOO_LITTLE = (
    "the likelihood of this noise gains too little; rows may hang together in another way: compare "
    "with AR1() or NeweyWest() along time, or Clustered() in groups."
)


def correlation_findings(fit: Fit, k: int) -> list[Finding]:
    """Agreement of neighbours of an output, none without training rows."""
    if fit.rows is None:
        return []
    if noiseless(fit)[k]:
        return [Finding("dependence", "green", 0.0, "residuals are round-off: there is no noise.")]
    found = None if fit.noise_covariance is None else fit.noise_covariance[k]
    in_space, serial = space_variogram(fit, k), fit.serial_correlations[k]
    if found is not None and not found.independent:
        seen = in_space or serial
        says = f"{_agreement(seen)}, and error bars allow for it: {correlation_text(found)}."
        return [Finding("dependence", "green", seen.z, says)]
    seen = serial if in_space is None or serial.z > in_space.z else in_space
    light, remedy = _light(seen), REMEDY
    if found is not None:
        light, remedy = "yellow" if seen.clear else "green", TOO_LITTLE
    says = f"{_agreement(seen)}."
    return [Finding("dependence", light, seen.z, says, remedy if light != "green" else "")]


def space_variogram(fit: Fit, k: int) -> Variogram | None:
    """Variogram of left-out residuals of an output, in the units of y; None without coordinates."""
    if fit.rows is None or fit.rows.locations is None or fit.rows.locations.coords is None:
        return None
    used = fit.rows.data.used
    residual = fit.rows.weighted_residuals[k, used] * fit.ensemble.unit[k]
    return variogram(residual, fit.rows.locations.coords[used])


def correlation_text(found: CovarianceEstimate | HACEstimate) -> str:
    """What was found about noise that hangs together, in a phrase."""
    if isinstance(found, HACEstimate):
        if found.kind.kernel == CLUSTERS:
            return f"noise of any kind within {found.n_groups} groups"
        within = "" if found.n_groups is None else f" within {found.n_groups} groups"
        return f"noise of any kind that reaches {found.bandwidth:.3g}{within}"
    if found.independent:
        return "taken as independent, as the rows gain too little by more"
    J, errors = len(found.family.terms), found.standard_errors
    parts = []
    for j, term in enumerate(found.family.terms):
        share = f"{found.shares[j]:.0%}"
        if J + j < len(errors) and not math.isnan(errors[J + j]):
            share += f" (standard error {errors[J + j]:.0%})"
        scale = f"{found.scales[j]:.3g} {UNITS[term.axis]} ({_told(errors[j])})"
        parts.append(f"{share} of the noise fades {AXES[term.axis]} over {scale}")
    if found.nugget_variance > VISIBLE_NUGGET * found.variance:
        parts.append("the rest is each row's own")
    return ", ".join(parts)


def _told(error: float) -> str:
    return (
        "the longest that these rows tell" if math.isnan(error) else f"standard error {error:.2g}"
    )


def _light(seen: SerialCorrelation | Variogram) -> str:
    if seen.clear:
        return "red"
    return "yellow" if seen.z > DOUBTFUL and seen.correlation > VISIBLE else "green"


def _agreement(seen: SerialCorrelation | Variogram) -> str:
    where = "nearest neighbours" if isinstance(seen, Variogram) else "successive rows"
    return (
        f"left-out residuals of {where} have a correlation of {seen.correlation:.2f}, "
        f"{seen.z:.1f} standard errors from none"
    )
