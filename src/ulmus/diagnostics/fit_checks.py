"""All other signs: the predictive distribution, misfit, extrapolation, and enough of all sizes."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ulmus.core.arrays.backend import Array, dense, taken_rows, to_numpy
from ulmus.core.data.feature_scaling import far_outside
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.residual_distribution import ResidualShape
from ulmus.core.fit.training_data import FULL_LEVERAGE
from ulmus.core.ridge.alpha import RELATIVE_GRID
from ulmus.core.variance.estimates import enough_members
from ulmus.diagnostics.calibration_data import Evidence, noiseless
from ulmus.diagnostics.coverage import RED, YELLOW
from ulmus.diagnostics.finding import Finding
from ulmus.intervals.confidence import LARGE_BIAS

# Distances of two distribution functions below these matter to nobody.
YELLOW_DISTANCE, RED_DISTANCE = 0.04, 0.08
# Agreement of neighbouring residuals in standard errors from which misfit is beyond doubt.
STRONG_MISFIT = 7.0
# A leverage this close to one leaves a residual of little use.
HIGH_LEVERAGE = 0.99
# Shares of the given points that may extrapolate.
SOME_POINTS, MANY_POINTS = 0.05, 0.25
# Members are too few if more than so many times as many are suggested, by points of this number.
MORE_MEMBERS, MEMBER_POINTS = 2, 500
# Redrawing the weights may add such a share to the variance, at this share of the points.
TOLERANCE, QUANTILE = 0.05, 0.9
# A member should have more units than so many times its degrees of freedom.
UNITS_PER_DOF = 2.0
# An alpha within this factor of the least one tried, less than a step of the grid, is that one.
GRID_END = 1.5
FEW_ROWS = 100
ROWS_PER_DOF, FEWEST_PER_DOF = 5.0, 2.0


def pit_finding(evidence: Evidence, k: int, n_judges: float, worth: float = 1.0) -> Finding:
    """Kolmogorov's distance between values of the predictive distribution and uniform ones.

    The distribution of given rows rests on residuals of its own number, as in a test of two
    samples. That of left-out rows rests on the same rows, so that few values are large. A row is
    worth so many independent ones.
    """
    name = "distribution"
    if evidence.silent[k]:
        return Finding(name, "green", 0.0, "all errors are round-off; there is no shape to judge.")
    n = evidence.n_rows
    distance = float(stats.kstest(evidence.pit[k], "uniform").statistic)
    alone = worth * n
    size = alone if evidence.left_out else alone * n_judges / (alone + n_judges)
    p = float(stats.kstwobign.sf(distance * np.sqrt(size)))
    light = "green"
    if p < YELLOW and distance > YELLOW_DISTANCE:
        light = "red" if p < RED and distance > RED_DISTANCE else "yellow"
    rows = "left-out" if evidence.left_out else "given"
    says = f"quantiles of {n} {rows} rows are up to {distance:.3f} from uniform, p = {p:.2g}."
    remedy = (
        "predict_dist is off in level, width or shape; fit with rows like these, try a transform "
        "of y, or use predict_interval, which assumes no shape."
    )
    return Finding(name, light, distance, says, remedy if light != "green" else "")


def shape_finding(fit: Fit, shape: ResidualShape | None, k: int) -> Finding:
    """Whether residuals look normal, and what is done if they do not."""
    if shape is not None and shape.shaped[k]:
        says = "not normal; predict_dist has their shape, method='gaussian' has not."
        return Finding("residuals", "green", 1.0, says)
    if fit.rows is None and fit.kept_shape is None:
        says = "none were kept to see their shape; predict_dist is Student's."
        return Finding("residuals", "green", 0.0, says)
    return Finding("residuals", "green", 0.0, "they look normal, or are too few to tell.")


def misfit_findings(fit: Fit, k: int) -> list[Finding]:
    """Residuals of neighbours that agree, and steps."""
    misfit = fit.misfit
    if misfit is None:
        return []
    if noiseless(fit)[k]:
        says = "residuals are round-off: y is constant, or without noise."
        return [Finding("misfit", "green", 0.0, says)]
    agreement, steps = float(misfit.agreement[k]), float(misfit.step_gain[k])
    light = "green"
    if misfit.clustered[k]:
        light = "red" if agreement > STRONG_MISFIT else "yellow"
    clusters = Finding(
        "misfit",
        light,
        agreement,
        f"residuals of neighbours agree by {agreement:.1f} standard errors, sums reach "
        f"{float(misfit.largest_sum[k]):.1f} sd.",
        "the hidden layers do not follow the function everywhere; use more n_neurons, another "
        "input_map, or inputs in which the function is smoother."
        if light != "green"
        else "",
    )
    stepped = bool(misfit.stepped[k])
    says = (
        f"a step would explain the steepest change as well: it saves {steps:.1f} noise variances."
    )
    step = Finding(
        "step",
        "yellow" if stepped else "green",
        steps if stepped else 0.0,
        says if stepped else "the fit has no step along any input.",
        "where the step lies the data do not say: add rows around it, or an input that tells the "
        "two sides apart."
        if stepped
        else "",
    )
    return [clusters, step]


def bias_finding(fit: Fit) -> Finding:
    """The distance between the prediction and an undersmoothed one."""
    alarm = fit.undersmoothing_gap
    if np.isnan(alarm) or np.all(noiseless(fit)):
        return Finding("bias", "green", 0.0, "there is no undersmoothed fit to compare with.")
    light = "green" if alarm <= LARGE_BIAS else "yellow" if alarm <= 2 * LARGE_BIAS else "red"
    says = f"predictions are up to {alarm:.1f} standard errors from an undersmoothed fit."
    remedy = "the prediction is biased there; use more n_neurons or another weight_scale."
    return Finding("bias", light, alarm, says, remedy if light != "green" else "")


def leverage_finding(fit: Fit) -> list[Finding]:
    """The largest leverage of a training row in any member."""
    if fit.rows is None:
        return []
    largest = float(fit.rows.largest_leverage)
    light = "green" if largest < HIGH_LEVERAGE else "yellow" if largest < FULL_LEVERAGE else "red"
    says = f"it is at most {largest:.3g} for any training row in any member."
    remedy = (
        "the fit passes through such rows whatever their value, and their left-out residuals say "
        "little; use alpha='loo' or fewer n_neurons, or look at these rows."
    )
    return [Finding("leverage", light, largest, says, remedy if light != "green" else "")]


def extrapolation_finding(fit: Fit, X: Array) -> Finding:
    """Share of the given points outside the training range, or with values never seen."""
    outside = far_outside(X, fit.scale)
    inputs = fit.ensemble.layer.inputs
    unseen = max(inputs.unseen(dense(X)).values(), default=0) if inputs.levels else 0
    share = max(outside, unseen) / X.shape[0]
    light = "green" if share <= SOME_POINTS else "yellow" if share <= MANY_POINTS else "red"
    says = f"{outside} of {X.shape[0]} given points lie outside the training range"
    says += f", {unseen} have a value of an input never seen." if unseen else "."
    remedy = "predictions there rest on extrapolation; add training rows like these."
    return Finding("extrapolation", light, share, says, remedy if light != "green" else "")


def members_finding(fit: Fit, X: Array) -> Finding:
    """Whether more members would make predictions less random, at some of the rows of X."""
    M = fit.ensemble.n_members
    if M < 2:
        says = "only one: standard errors leave out what redrawing it would change."
        return Finding("members", "green", 1.0, says)
    few = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], MEMBER_POINTS)).astype(int))
    enough = enough_members(fit.parts(taken_rows(X, few)), TOLERANCE, QUANTILE)
    light = "yellow" if enough > MORE_MEMBERS * M else "green"
    says = f"there are {M}; with {enough}, redrawing weights adds {TOLERANCE:.0%} to the variance."
    return Finding("members", light, float(enough), says, _more_members(enough, light))


def _more_members(enough: int, light: str) -> str:
    if light == "green":
        return ""
    return f"error bars hold, but another random_state predicts otherwise; n_estimators={enough}."


def units_finding(fit: Fit, k: int) -> Finding:
    """Whether members have enough hidden units to follow the function."""
    smoother = next(p.smoother for p in fit.ensemble.regressions if k in p.outputs)
    N, gamma = int(fit.ensemble.layer.W.shape[1]), float(smoother.gamma)
    chosen = bool(_deviation(fit)[k] > 0)
    at_end = chosen and smoother.alpha <= GRID_END * RELATIVE_GRID[0] * _largest_square(fit, k)
    light = "yellow" if UNITS_PER_DOF * gamma > N or at_end else "green"
    says = f"{N} units in a member for {gamma:.1f} degrees of freedom"
    says += "; alpha is the least that was tried." if at_end else "."
    remedy = "the function may need more units than there are; use more n_neurons."
    return Finding("hidden units", light, gamma / N, says, remedy if light != "green" else "")


def _largest_square(fit: Fit, k: int) -> float:
    """Largest squared singular value of the hidden features of the first member."""
    smoother = next(p.smoother for p in fit.ensemble.regressions if k in p.outputs)
    first = int(smoother.constant)
    root = to_numpy(smoother.to_t[0, first:, first:])
    least = float(np.min(np.linalg.svd(root, compute_uv=False)))
    return 1 / least**2 if least > 0 else 0.0


def _deviation(fit: Fit) -> np.ndarray:
    """Standard deviations of the logarithms of alpha; zero where it was given."""
    return fit.per_regression(lambda part: part.alpha_deviation)


def rows_finding(fit: Fit, k: int) -> Finding:
    """Whether there are enough rows for what the fit spends."""
    gamma = float(fit.gamma[k])
    n, ratio = fit.n_rows, fit.n_rows / max(gamma, 1.0)
    light = "yellow" if n < FEW_ROWS or ratio < ROWS_PER_DOF else "green"
    light = "red" if ratio < FEWEST_PER_DOF else light
    says = f"{n} rows, {ratio:.1f} for each of {gamma:.1f} degrees of freedom."
    remedy = "error bars of few rows are themselves uncertain; add rows, or use a larger alpha."
    return Finding("rows", light, ratio, says, remedy if light != "green" else "")


def choices_finding(fit: Fit) -> Finding:
    """How alpha and the map were chosen."""
    says = "alpha by cross-validation; " if np.any(_deviation(fit)) else "alpha given; "
    if fit.input_map is None:
        says += "no map of the inputs learned."
    elif fit.rows is not None and fit.rows.tuned is not None:
        says += "map by rows that make no intervals."
    elif fit.folded:
        says += "residuals by maps learned without them."
    else:
        says += "map learned from the same rows."
    return Finding("choices", "green", 0.0, says)
