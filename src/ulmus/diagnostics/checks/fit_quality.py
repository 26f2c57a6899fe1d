"""Quality of the fit: misfit, steps, smoothing bias, leverage and extrapolation."""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import Array, dense
from ulmus.core.data.scaling import n_extrapolated
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import FULL_LEVERAGE
from ulmus.diagnostics.calibration_data import noiseless
from ulmus.diagnostics.checks.suggestions import ANOTHER_MAP, MORE_NEURONS, select_alpha
from ulmus.diagnostics.finding import Finding, finding
from ulmus.intervals.confidence import LARGE_BIAS
from ulmus.messages import Setting

# Agreement of neighbouring residuals in standard errors from which a misfit is an error.
STRONG_MISFIT = 7.0
# A leverage this close to one leaves an uninformative residual.
HIGH_LEVERAGE = 0.99
# Shares of new rows that extrapolate from which this is a warning, or an error.
SOME_POINTS, MANY_POINTS = 0.05, 0.25


def misfit_findings(fit: Fit, k: int) -> list[Finding]:
    """Residuals of neighbours that agree, and steps."""
    misfit = fit.misfit
    if misfit is None:
        return []
    if noiseless(fit)[k]:
        message = "residuals are at round-off level: y is constant or noiseless."
        return [finding("misfit", "ok", 0.0, message)]
    agreement, steps = float(misfit.agreement[k]), float(misfit.step_gain[k])
    severity = "ok"
    if misfit.clustered[k]:
        severity = "error" if agreement > STRONG_MISFIT else "warning"
    clusters = finding(
        "misfit",
        severity,
        agreement,
        f"agreement of neighbouring residuals z = {agreement:.1f}; their sums reach "
        f"{float(misfit.largest_sum[k]):.1f} standard deviations.",
        "The networks do not follow the function everywhere.",
        (MORE_NEURONS, ANOTHER_MAP, "transform the inputs so that the function is smoother"),
    )
    if not misfit.stepped[k]:
        return [clusters, finding("step", "ok", 0.0, "no step detected along any input.")]
    step = finding(
        "step",
        "warning",
        steps,
        "a step explains the steepest change as well as the fit: it reduces the sum of squares by "
        f"{steps:.1f} noise variances.",
        "The data do not identify the location of the step.",
        ("add rows around it", "add an input that separates its two sides"),
    )
    return [clusters, step]


def bias_finding(fit: Fit) -> Finding:
    """The distance between the prediction and an undersmoothed one."""
    gap = fit.undersmoothing_gap
    if np.isnan(gap) or np.all(noiseless(fit)):
        return finding("bias", "ok", 0.0, "not tested: there is no undersmoothed fit.")
    return finding(
        "bias",
        "ok" if gap <= LARGE_BIAS else "warning" if gap <= 2 * LARGE_BIAS else "error",
        gap,
        f"predictions are up to {gap:.1f} standard errors from an undersmoothed fit.",
        "There the smoothing bias is large compared with the standard error.",
        (MORE_NEURONS, Setting("weight_scale", phrase="use another {}")),
    )


def leverage_findings(fit: Fit) -> list[Finding]:
    """The largest leverage of a training row in any member."""
    if fit.rows is None:
        return []
    largest = float(fit.rows.largest_leverage)
    severity = "error" if largest >= FULL_LEVERAGE else "warning"
    return [
        finding(
            "leverage",
            severity if largest >= HIGH_LEVERAGE else "ok",
            largest,
            f"at most {largest:.3g}, over training rows and members.",
            "Members interpolate such rows, whose leave-one-out residuals are unreliable.",
            (*select_alpha(fit), "inspect these rows"),
        )
    ]


def extrapolation_finding(fit: Fit, X: Array) -> Finding:
    """Share of new rows outside the training range, or with unseen values."""
    outside = n_extrapolated(X, fit.scale)
    inputs = fit.ensemble.layer.inputs
    unseen = max(inputs.unknown_values(dense(X)).values(), default=0) if inputs.one_hot else 0
    share = max(outside, unseen) / X.shape[0]
    message = f"{outside} of {X.shape[0]} new rows lie outside the range of the training inputs"
    message += f", {unseen} have a value that no training row has." if unseen else "."
    return finding(
        "extrapolation",
        "ok" if share <= SOME_POINTS else "warning" if share <= MANY_POINTS else "error",
        share,
        message,
        "Predictions there are extrapolations.",
        ("add training rows like these",),
    )
