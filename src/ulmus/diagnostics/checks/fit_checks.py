"""Checks of the fit itself: misfit, bias, leverage, and the numbers of rows, units and members."""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import Array, dense, taken_rows
from ulmus.core.data.copies import copies_message
from ulmus.core.data.scaling import n_extrapolated
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import FULL_LEVERAGE
from ulmus.core.query.leave_out import noiseless
from ulmus.core.response import Counts
from ulmus.core.ridge.alpha import RELATIVE_GRID
from ulmus.core.variance.estimates import sufficient_members
from ulmus.diagnostics.finding import Finding, finding
from ulmus.diagnostics.noise_estimate import noise_sd, noise_sd_interval
from ulmus.diagnostics.target_text import family_of
from ulmus.intervals.confidence import LARGE_BIAS
from ulmus.intervals.response import observed_outputs
from ulmus.messages import Setting

MORE_NEURONS = Setting("n_neurons", phrase="use a larger {}")
ANOTHER_MAP = Setting("input_map", phrase="use another {}")


def alpha_deviation(fit: Fit) -> np.ndarray:
    """Standard deviations of the logarithms of alpha, zero where it was given, shape (K,)."""
    return fit.per_regression(lambda part: part.alpha_deviation)


def select_alpha(fit: Fit) -> tuple[Setting, ...]:
    """To select alpha, where it was given."""
    return () if np.all(alpha_deviation(fit)) else (Setting("alpha", "loo"),)


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
        misfit.clustered_limit,
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
        f"more than {LARGE_BIAS:g} standard errors",
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
            f"{HIGH_LEVERAGE:g} or more",
        )
    ]


def copy_findings(fit: Fit) -> list[Finding]:
    """Rows that are copies of others."""
    if fit.rows is None or not fit.rows.data.n_copies:
        return []
    data = fit.rows.data
    message, share = copies_message(data), data.n_copies / data.n_rows
    text = f"{message.cause()}."
    return [finding("duplicate-rows", "warning", share, text, "", message.suggestions)]


def weight_findings(fit: Fit, *, known: bool) -> list[Finding]:
    """Row weights that differ, so that intervals of new rows depend on the weights of these.

    ``known``: whether the rows that the diagnostics are computed from have weights of their own.
    """
    if not fit.weights_differ:
        return []
    low, high = fit.scale.weight_range
    message = (
        f"those of the training rows range from {low:.3g} to {high:.3g}: the standard deviation "
        f"of the noise differs by a factor of {np.sqrt(high / low):.3g}."
    )
    if known:
        message += " Intervals of new rows require their weights, sample_weight."
    return [
        finding(
            "sample-weight",
            "ok" if known else "warning",
            high / low,
            message,
            f"All new rows are assumed to have the mean weight, {fit.mean_weight:.3g}.",
            (Setting("sample_weight", phrase="give the weights of the new rows as {}"),),
            "unknown weights of the rows",
        )
    ]


def extrapolation_finding(fit: Fit, X: Array, rows: str) -> Finding:
    """Share of new rows, called ``rows``, outside the training range, or with unseen values."""
    outside = n_extrapolated(X, fit.scale)
    inputs = fit.ensemble.layer.inputs
    unseen = max(inputs.unknown_values(dense(X)).values(), default=0) if inputs.one_hot else 0
    share = max(outside, unseen) / X.shape[0]
    message = f"{outside} of {X.shape[0]} {rows} lie outside the range of the training inputs"
    message += f", {unseen} have a value that no training row has." if unseen else "."
    return finding(
        "extrapolation",
        "ok" if share <= SOME_POINTS else "warning" if share <= MANY_POINTS else "error",
        share,
        message,
        "Predictions there are extrapolations.",
        ("add training rows like these",),
        f"more than {SOME_POINTS:.0%} of the rows",
    )


# Members are few if more than so many times as many are suggested, at most at so many points.
MORE_MEMBERS, MEMBER_POINTS = 2, 500
# Redrawing the weights may add such a share to the variance, at this share of the points.
TOLERANCE, QUANTILE = 0.05, 0.9
# A member should have more units than so many times its degrees of freedom.
UNITS_PER_DOF = 2.0
# An alpha within this factor of the least one tried, less than a step of the grid, is that one.
GRID_END = 1.5
FEW_ROWS = 100
ROWS_PER_DOF, FEWEST_PER_DOF = 5.0, 2.0
# With fewer residual degrees of freedom, the 95 % interval of the noise standard deviation extends
# to one and a half times the estimate.
FEW_LEFT = 20


def rows_finding(fit: Fit, k: int) -> Finding:
    """Whether there are enough rows for the degrees of freedom of the fit."""
    if constant_outputs(fit)[k]:
        return finding("rows", "ok", float(fit.n_rows), "not applicable: y is constant.")
    gamma, left = float(fit.gamma[k]), float(fit.noise_dof[k])
    n, ratio = fit.n_rows, fit.n_rows / max(gamma, 1.0)
    interval = None if isinstance(family_of(fit, k), Counts) else noise_sd_interval(fit)
    few = n < FEW_ROWS or ratio < ROWS_PER_DOF or (left < FEW_LEFT and interval is not None)
    message = f"{n} rows for {gamma:.1f} effective degrees of freedom, {ratio:.1f} per degree"
    if few and interval is not None:
        low, high = interval[:, k] / noise_sd(fit)[k] if noise_sd(fit)[k] > 0 else (1.0, 1.0)
        message += (
            f"; {max(left, 0.0):.1f} remain to estimate the noise: its standard deviation is "
            f"{low:.2f} to {high:.3g} times the estimate (95% interval)"
        )
    return finding(
        "rows",
        "error" if ratio < FEWEST_PER_DOF else "warning" if few else "ok",
        ratio,
        f"{message}.",
        "Standard errors estimated from few rows are themselves uncertain.",
        ("add rows", *select_alpha(fit)),
        f"fewer than {FEW_ROWS} rows, or {ROWS_PER_DOF:g} per degree of freedom",
    )


def constant_outputs(fit: Fit) -> np.ndarray:
    """Whether all rows of positive weight have the same value of each output, shape (K,)."""
    if fit.rows is None:
        return np.zeros(fit.ensemble.n_outputs, dtype=bool)
    return np.ptp(observed_outputs(fit)[:, fit.rows.data.used], axis=1) == 0


def members_finding(fit: Fit, X: Array) -> Finding:
    """Whether more members would make predictions less random, at some of the rows of X."""
    M = fit.ensemble.n_members
    if M < 2:
        message = "one network: standard errors exclude the variance of its random weights."
        return finding("members", "ok", 1.0, message)
    few = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], MEMBER_POINTS)).astype(int))
    enough = sufficient_members(fit.parts(taken_rows(X, few)), TOLERANCE, QUANTILE)
    return finding(
        "members",
        "warning" if enough > MORE_MEMBERS * M else "ok",
        float(enough),
        f"{M} members; with {enough}, random weights add {TOLERANCE:.0%} to the variance.",
        "Error bars include it, but predictions depend visibly on the seed.",
        (Setting("n_estimators", enough),),
        f"more than {MORE_MEMBERS * M} members for that",
    )


def units_finding(fit: Fit, k: int) -> Finding:
    """Whether members have enough hidden units to follow the function."""
    smoother = next(p.smoother for p in fit.ensemble.regressions if k in p.outputs)
    N, gamma = int(fit.ensemble.layer.W.shape[1]), float(smoother.gamma)
    chosen = bool(alpha_deviation(fit)[k] > 0)
    at_end = chosen and smoother.alpha <= GRID_END * RELATIVE_GRID[0] * smoother.largest_square
    message = f"{N} hidden units per member for {gamma:.1f} effective degrees of freedom"
    return finding(
        "hidden-units",
        "warning" if UNITS_PER_DOF * gamma > N or at_end else "ok",
        gamma / N,
        message + ("; alpha is the smallest value tried." if at_end else "."),
        "The function may require more hidden units.",
        (MORE_NEURONS,),
        f"fewer than {UNITS_PER_DOF:g} units per degree of freedom",
    )


def selection_finding(fit: Fit) -> Finding:
    """How alpha and the input map were selected."""
    message = "alpha given; " if not np.any(alpha_deviation(fit)) else "alpha cross-validated; "
    if fit.input_map is None:
        message += "no input map."
    elif fit.rows is not None and fit.rows.map_rows is not None:
        message += "input map learned on rows that are not used for calibration."
    elif fit.folded:
        message += "input map learned without the fold of each residual."
    elif fit.map_uncertainty is not None:
        message += "input map learned on the same rows; error bars include its choice."
    else:
        message += "input map learned on the same rows."
    return finding("selection", "ok", 0.0, message)
