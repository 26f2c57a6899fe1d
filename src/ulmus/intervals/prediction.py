"""Prediction intervals and quantiles of a new observation: conformal, Student, or empirical.

Arrays are NumPy arrays in the units of y: quantiles (levels, p, K), bounds (2, levels, p, K).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, FloatArray
from ulmus.core.data.scaling import n_extrapolated
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.query.leave_out import (
    POINT_ELEMENTS,
    PredictionMoments,
    leave_one_out_shifts,
    out_of_fold_residuals,
    outside_design,
    prediction_moments,
    scaled_residuals,
)
from ulmus.core.response.residual_distribution import residual_shape
from ulmus.exceptions import DegenerateFitWarning, ExtrapolationWarning, InputError, warn
from ulmus.intervals.bounds import (
    conformal_bounds,
    conformal_ranks,
    has_ranks,
    is_asymmetric,
    is_skewed,
    normal_bounds,
    order_quantiles,
    shortest_ranks,
    shortest_tails,
    uncrossed,
)
from ulmus.intervals.distribution import link_distribution, observation_sd
from ulmus.intervals.standard_errors import PredictionVariance, prediction_variance
from ulmus.messages import Message, Setting

# With so many rows, and so many rows (or blocks of rows) for each degree of freedom, leaving one
# out shifts a prediction by far less than the noise, and "auto" ignores the shift. Here the ends of
# intervals move by at most 1 to 2 % of the width (root mean square), also outside the range of the
# rows; the shifts would cost more than all the rest.
MANY_ROWS = 1000
ROWS_PER_DOF = 5
# About 0.1 % of the points inside the design have more leverage than the rows; more is
# extrapolation.
BEYOND_SHARE = 0.01
# Shares of the error probability below and above an interval.
TAILS = ("equal", "shortest")


class IntervalRequest(NamedTuple):
    """Arguments of a method of prediction intervals."""

    fit: Fit
    X: Array  # (p, d): points
    levels: Sequence[float]  # confidence levels
    variance: PredictionVariance | None = None  # variance of the predictions, if known already
    tails: str = "equal"  # one of TAILS
    # (p,): weights of the new observations; None for the mean weight of the training rows.
    weight: FloatArray | None = None


def gaussian_bounds(request: IntervalRequest) -> FloatArray:
    """Mean plus and minus a Student quantile times the sd of a new observation."""
    fit, X, levels, variance, _, weight = request
    variance = prediction_variance(fit, X) if variance is None else variance
    sd, dof = observation_sd(fit, X, variance, weight)
    return normal_bounds(variance.mean, sd, levels, dof)


def jackknife_plus_bounds(request: IntervalRequest) -> FloatArray:
    """Jackknife+ (Barber et al., 2021), from absolute leave-one-out residuals."""
    fit, X, levels, variance, _, weight = request
    rows = _require_rows(fit, "jackknife+")
    used = rows.calibration_rows
    residuals = np.abs(out_of_fold_residuals(fit, rows)[:, used])
    ranks = [conformal_ranks(residuals.shape[1], level, two_sided=False) for level in levels]
    moments = _moments(fit, rows, X, variance)
    bounds = np.empty((2, len(levels), X.shape[0], len(residuals)))
    for k, points, shift in _shifts(fit, rows, X):
        margin = _margin(residuals[k], rows, used, weight, points)
        values = -margin - shift, margin - shift
        ends = uncrossed(conformal_bounds(*values, ranks), *values)
        bounds[:, :, points, k] = moments.mean[k, points] + ends
    return bounds


def cv_plus_bounds(request: IntervalRequest) -> FloatArray:
    """CV+ (Barber et al., 2021), from refits without each fold; jackknife+ without a learned map.

    Without a learned map only alpha is selected, and each row is a fold of its own.
    """
    fit, X, levels, *_, weight = request
    rows = _require_rows(fit, "cv+")
    parts = fit.held_out
    if not parts:
        return jackknife_plus_bounds(request)
    residuals = np.abs(np.concatenate([part.residuals for part in parts], axis=1))
    means = [part.mean(X) for part in parts]
    counts = [part.residuals.shape[1] for part in parts]
    index = np.concatenate([part.rows for part in parts])
    K, n = residuals.shape
    ranks = [conformal_ranks(n, level, two_sided=False) for level in levels]
    bounds = np.empty((2, len(levels), X.shape[0], K))
    size = max(1, POINT_ELEMENTS // n)
    for k in range(K):
        for start in range(0, X.shape[0], size):
            points = slice(start, start + size)
            center = np.repeat([mean[k, points] for mean in means], counts, axis=0)
            margin = _margin(residuals[k], rows, index, weight, points)
            low, high = center - margin, center + margin
            bounds[:, :, points, k] = uncrossed(conformal_bounds(low, high, ranks), low, high)
    return bounds


def auto_bounds(request: IntervalRequest) -> FloatArray:
    """Scaled jackknife+ where the rows allow it, else Student or empirical quantiles."""
    fit, levels, rows = request.fit, request.levels, request.fit.rows
    if rows is None:
        simple = fit.residual_shape is None
        return gaussian_bounds(request) if simple else _distribution_bounds(request)
    n = int(np.sum(rows.calibration_rows))
    possible = [level for level in levels if has_ranks(n, level, two_sided=False)]
    if len(possible) == len(levels):
        return _scaled_bounds(request, rows)
    text = (
        f"{n} training rows are too few for a jackknife+ interval of confidence level "
        f"{max(levels):g}; the wider one of the Student interval and the widest jackknife+ "
        "interval is returned"
    )
    warn(Message("too-few-rows", text), DegenerateFitWarning)
    bounds = gaussian_bounds(request)
    # No interval is narrower than that of the largest possible level.
    conformal = _scaled_bounds(request._replace(levels=[*possible, 1 - 1 / (n + 1)]), rows)
    low, high = conformal[0, -1], conformal[1, -1]
    bounds = np.stack([np.minimum(bounds[0], low), np.maximum(bounds[1], high)])
    bounds[:, [i for i, level in enumerate(levels) if level in possible]] = conformal[:, :-1]
    return bounds


METHODS: dict[str, Callable[[IntervalRequest], FloatArray]] = {
    "auto": auto_bounds,
    "jackknife+": jackknife_plus_bounds,
    "cv+": cv_plus_bounds,
    "gaussian": gaussian_bounds,
}


def link_bounds(
    fit: Fit,
    X: Array,
    levels: Sequence[float],
    method: str,
    variance: PredictionVariance | None = None,
    tails: str = "equal",
    weight: FloatArray | None = None,
) -> FloatArray:
    """Intervals for new observations by one of METHODS, on the scale of the regression."""
    return METHODS[method](IntervalRequest(fit, X, levels, variance, tails, weight))


def _require_rows(fit: Fit, method: str) -> TrainingRows:
    """The training rows of a fit, or an error."""
    if fit.rows is None:
        text = "requires the training rows, which compress() and streamed fits do not keep"
        remedies = Setting("method", "gaussian"), "fit in memory"
        raise InputError(Message("no-training-rows", text, "method", method, remedies))
    return fit.rows


def _margin(
    residuals: FloatArray,
    rows: TrainingRows,
    index: np.ndarray,
    weight: FloatArray | None,
    points: slice,
) -> FloatArray:
    """Absolute residuals (n, 1) of some rows, or rescaled to the weights of new ones, (n, p).

    Without weights of the new rows, these have the distribution of the weights of the training
    rows, and residuals are exchangeable as they are.
    """
    if weight is None:
        return residuals[:, None]
    root = rows.data.root_weight
    own = residuals if root is None else residuals * root[index]
    return own[:, None] / np.sqrt(weight[points])


def neglects_shifts(fit: Fit) -> bool:
    """Whether "auto" ignores the shift of the predictions by single rows."""
    gamma = max(regression.smoother.gamma for regression in fit.ensemble.regressions)
    rows = fit.rows
    n = fit.n_rows if rows is None or rows.data.block_ids is None else rows.data.n_blocks
    return fit.n_rows >= MANY_ROWS and n >= ROWS_PER_DOF * gamma


def _distribution_bounds(request: IntervalRequest) -> FloatArray:
    """Quantiles of the predictive distribution, for a fit without training rows."""
    fit, X, levels, _, tails, weight = request
    below = np.empty((len(levels), 1, len(fit.ensemble.unit)))
    below[:] = (1 - np.array(levels)[:, None, None]) / 2
    residuals = fit.residual_shape
    if tails == "shortest" and residuals is not None:
        for k in np.flatnonzero(residuals.shaped):
            below[:, 0, k] = shortest_tails(residuals.quantile(int(k)), levels)
    distribution = link_distribution(fit, X, weight)
    above = 1 - np.array(levels)[:, None, None] - below
    return np.stack([distribution.ppf(below), distribution.isf(above)])


def _scaled_bounds(request: IntervalRequest, rows: TrainingRows) -> FloatArray:
    """Jackknife+ with residuals in units of their standard deviations."""
    fit, X, levels, variance, tails, weight = request
    ranks_of = [tail_ranks(e, levels, tails) for e in scaled_residuals(fit, rows)]
    moments = _moments(fit, rows, X, variance, weight)
    bounds = np.empty((2, len(levels), X.shape[0], len(ranks_of)))
    for k, points, shift in _auto_shifts(fit, rows, X):
        scale = moments.sd[k, points]
        for low, high, positions, ranks in ranks_of[k]:
            if shift is None:
                ends = conformal_bounds(low, high, ranks) * scale
            else:
                values = low * scale - shift, high * scale - shift
                ends = uncrossed(conformal_bounds(*values, ranks), *values)
            bounds[..., k][:, positions, points] = moments.mean[k, points] + ends
    return bounds


class TailRanks(NamedTuple):
    """Ranks of the bounds among signed or absolute residuals, for some of the levels."""

    low: FloatArray  # (n, 1): candidates for the lower bound, residuals or minus their size
    high: FloatArray  # (n, 1): candidates for the upper bound, residuals or their size
    positions: list[int]  # positions of the levels
    ranks: list[tuple[int, int]]  # ranks of their lower and upper bounds


def tail_ranks(residuals: FloatArray, levels: Sequence[float], tails: str) -> list[TailRanks]:
    """Ranks of all levels, among signed residuals if these are skewed.

    Levels whose two-sided ranks do not exist use absolute residuals. The largest absolute residual
    is at least as large as any signed one, so intervals stay nested.
    """
    n = len(residuals)
    shortest = tails == "shortest" and is_asymmetric(residuals)
    skewed = shortest or (tails == "equal" and is_skewed(residuals))
    is_signed = [skewed and has_ranks(n, level, two_sided=True) for level in levels]
    parts = []
    for signed in set(is_signed):
        positions = [i for i, s in enumerate(is_signed) if s == signed]
        own = [levels[i] for i in positions]
        if signed and shortest:
            quantile = residual_shape(residuals[None], np.array([True])).quantile(0)
            ranks = shortest_ranks(n, own, quantile)
        else:
            ranks = [conformal_ranks(n, level, two_sided=signed) for level in own]
        size = np.abs(residuals)
        low, high = (residuals, residuals) if signed else (-size, size)
        parts.append(TailRanks(low[:, None], high[:, None], positions, ranks))
    return parts


def _moments(
    fit: Fit,
    rows: TrainingRows,
    X: Array,
    variance: PredictionVariance | None = None,
    weight: FloatArray | None = None,
) -> PredictionMoments:
    """Means and standard deviations at points, with a warning about extrapolation."""
    leverage = None if variance is None else variance.leverage.T
    moments = prediction_moments(fit, X, leverage, weight)
    beyond, n = int(np.sum(outside_design(rows, moments.leverage))), moments.leverage.shape[1]
    # Points outside the range of single inputs have warned already.
    if beyond > BEYOND_SHARE * n and not n_extrapolated(X, fit.scale):
        text = (
            f"{beyond} of {n} points are farther from the training rows, in the space of the "
            "hidden features, than these are from one another; intervals there are wider, and "
            "depend on extrapolation"
        )
        warn(Message("outside-design", text, topic="extrapolation"), ExtrapolationWarning)
    return moments


def _shifts(fit: Fit, rows: TrainingRows, X: Array) -> Iterator[tuple[int, slice, FloatArray]]:
    """Output, points, and shifts of the predictions by leaving out each row, (n, p)."""
    for block in leave_one_out_shifts(fit, rows, X):
        for k in range(len(rows.noise)):
            yield k, block.points, block.shift[k, rows.calibration_rows]


def _auto_shifts(
    fit: Fit, rows: TrainingRows, X: Array
) -> Iterable[tuple[int, slice, FloatArray | None]]:
    """The same, with None for shifts that are negligible."""
    if neglects_shifts(fit):
        return [(k, slice(0, X.shape[0]), None) for k in range(len(rows.noise))]
    return _shifts(fit, rows, X)


def link_quantiles(
    fit: Fit, X: Array, levels: Sequence[float], weight: FloatArray | None = None
) -> FloatArray:
    """Quantiles of a new observation on the scale of the regression, shape (levels, p, K)."""
    rows = fit.rows
    if rows is None:
        distribution = link_distribution(fit, X, weight)
        return distribution.ppf(np.array(levels)[:, None, None])
    n = int(np.sum(rows.calibration_rows))
    beyond = [level for level in levels if not 1 <= level * (n + 1) <= n]
    if beyond:
        text = (
            f"quantiles {beyond} are beyond the resolution of {n} training rows; the most extreme "
            "leave-one-out residual is used"
        )
        remedy = "use predict_dist, whose tails are smooth"
        warn(Message("extreme-quantiles", text, suggestions=(remedy,)), DegenerateFitWarning)
    residuals = scaled_residuals(fit, rows)
    moments = _moments(fit, rows, X, weight=weight)
    values = np.empty((len(levels), X.shape[0], len(residuals)))
    for k, points, shift in _auto_shifts(fit, rows, X):
        scale = moments.sd[k, points]
        if shift is None:
            ends = order_quantiles(residuals[k][:, None], levels) * scale
        else:
            ends = order_quantiles(residuals[k][:, None] * scale - shift, levels)
        values[:, points, k] = moments.mean[k, points] + ends
    return values
