"""Intervals and quantiles of a new observation: normal, or conformal from left-out rows.

Everything comes as NumPy arrays in the units of y: quantiles (levels, p, K), bounds
(2, levels, p, K).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ulmus.core.arrays.backend import Array
from ulmus.core.data.scaling import n_extrapolated
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.residual_distribution import residual_shape
from ulmus.core.fit.training_data import TrainingRows
from ulmus.core.query.leave_out import (
    POINT_ELEMENTS,
    leave_one_out_shifts,
    out_of_fold_residuals,
    outside_design,
    prediction_moments,
    scaled_residuals,
)
from ulmus.exceptions import DegenerateFitWarning, ExtrapolationWarning, warn
from ulmus.intervals.bounds import (
    conformal_bounds,
    conformal_ranks,
    has_ranks,
    is_skewed,
    normal_bounds,
    order_quantiles,
    uncrossed,
)
from ulmus.intervals.distribution import observation_sd, predictive_distribution
from ulmus.intervals.shortest import (
    is_lopsided,
    shortest_ranks,
    shortest_tails,
)
from ulmus.intervals.standard_errors import PredictionVariance, prediction_variance

FloatArray = npt.NDArray[np.float64]

# With so many rows, and so many for each degree of freedom, leaving one row out moves a
# prediction by far less than the noise: "auto" then takes the prediction itself. Where rows are
# left out in blocks, there must be so many blocks for each degree of freedom.
MANY_ROWS = 5000
ROWS_PER_DOF = 20
# Of points inside the design one in a thousand lies beyond the rows; a larger share is no chance.
BEYOND_SHARE = 0.01


def gaussian_bounds(
    fit: Fit, X: Array, levels: Sequence[float], variance: PredictionVariance | None = None
) -> FloatArray:
    """Mean plus and minus a Student quantile times the sd of a new observation."""
    variance = prediction_variance(fit, X) if variance is None else variance
    sd, dof = observation_sd(fit, X, variance)
    return normal_bounds(variance.mean, sd, levels, dof)


def distribution_bounds(fit: Fit, X: Array, levels: Sequence[float], shape: str) -> FloatArray:
    """Quantiles of the predictive distribution as bounds, where no training rows are left."""
    tails = np.empty((len(levels), 1, len(fit.ensemble.unit)))
    tails[:] = (1 - np.array(levels)[:, None, None]) / 2
    residuals = fit.kept_shape
    if shape == "shortest" and residuals is not None:
        for k in np.flatnonzero(residuals.shaped):
            tails[:, 0, k] = shortest_tails(residuals.quantile(int(k)), levels)
    distribution = predictive_distribution(fit, X)
    above = 1 - np.array(levels)[:, None, None] - tails
    return np.stack([distribution.ppf(tails), distribution.isf(above)])


def prediction_bounds(
    fit: Fit,
    X: Array,
    levels: Sequence[float],
    method: str,
    variance: PredictionVariance | None = None,
    shape: str = "equal",
) -> FloatArray:
    """Intervals for new observations."""
    rows = fit.rows
    if rows is None and method not in ("auto", "gaussian"):
        raise ValueError(
            f"method={method!r} needs the training rows, which compress() dropped or a "
            "streamed fit never kept; use method='gaussian', or fit in memory."
        )
    if method == "cv+" and fit.held_out:
        return cross_bounds(fit, X, levels)
    if method == "gaussian" or (rows is None and fit.kept_shape is None):
        return gaussian_bounds(fit, X, levels, variance)
    if rows is None:
        return distribution_bounds(fit, X, levels, shape)
    if method == "cv+":
        # Without a learned map nothing is tuned but alpha, and each row is a fold of its own.
        method = "jackknife+"
    served = [level for level in levels if method != "auto" or _can_rank(rows, level)]
    if len(served) == len(levels):
        return _conformal(fit, rows, X, levels, method, shape, variance)
    warn(
        f"{int(np.sum(rows.judges))} training rows are too few for a jackknife interval of "
        f"confidence_level {max(levels):g}; it is taken from a normal distribution, or from the "
        "widest jackknife interval if that is wider.",
        DegenerateFitWarning,
    )
    bounds = gaussian_bounds(fit, X, levels, variance)
    # No level may be narrower than the largest that the rows can serve.
    largest = 1 - 1 / (int(np.sum(rows.judges)) + 1)
    conformal = _conformal(fit, rows, X, [*served, largest], method, shape, variance)
    low, high = conformal[0, -1], conformal[1, -1]
    bounds = np.stack([np.minimum(bounds[0], low), np.maximum(bounds[1], high)])
    locations = [i for i, level in enumerate(levels) if level in served]
    bounds[:, locations] = conformal[:, :-1]
    return bounds


def _can_rank(rows: TrainingRows, level: float) -> bool:
    return has_ranks(int(np.sum(rows.judges)), level, two_sided=False)


def uses_predictions(fit: Fit) -> bool:
    """Whether left-out predictions are so close to predictions that "auto" takes those."""
    gamma = max(part.smoother.gamma for part in fit.ensemble.regressions)
    rows = fit.rows
    n = fit.n_rows if rows is None or rows.data.block_ids is None else rows.data.n_blocks
    return fit.n_rows >= MANY_ROWS and n >= ROWS_PER_DOF * gamma


def _conformal(
    fit: Fit,
    rows: TrainingRows,
    X: Array,
    levels: Sequence[float],
    method: str,
    shape: str,
    variance: PredictionVariance | None,
) -> FloatArray:
    """Order statistics of left-out predictions plus and minus left-out residuals."""
    used = rows.judges
    scaled = method == "auto"
    errors = scaled_residuals(fit, rows) if scaled else out_of_fold_residuals(fit, rows)[:, used]
    plain = scaled and uses_predictions(fit)
    spread = prediction_moments(fit, X, None if variance is None else variance.norm.T)
    _warn_about_reach(fit, rows, X, spread.norm)
    sides = [level_sides(e, levels, shape if scaled else "absolute") for e in errors]
    bounds = np.empty((2, len(levels), X.shape[0], len(errors)))
    for k, points, shift in _shifted(fit, rows, X, used, plain):
        scale = spread.sd[k, points] if scaled else np.ones_like(spread.sd[k, points])
        for signed, locations, ranks in sides[k]:
            margin = errors[k] if signed else np.abs(errors[k])
            low, high = (margin if signed else -margin)[:, None], margin[:, None]
            if plain:
                ends = conformal_bounds(low, high, ranks) * scale
            else:
                values = low * scale - shift, high * scale - shift
                ends = uncrossed(conformal_bounds(*values, ranks), *values)
            bounds[..., k][:, locations, points] = spread.mean[k, points] + ends
    return bounds


def cross_bounds(fit: Fit, X: Array, levels: Sequence[float]) -> FloatArray:
    """CV+ (Barber et al., 2021): predictions without a fold, plus and minus its residuals."""
    parts = fit.held_out
    residuals = np.abs(np.concatenate([part.residuals for part in parts], axis=1))
    means = [part.mean(X) for part in parts]
    counts = [part.residuals.shape[1] for part in parts]
    K, n = residuals.shape
    ranks = [conformal_ranks(n, level, two_sided=False) for level in levels]
    bounds = np.empty((2, len(levels), X.shape[0], K))
    size = max(1, POINT_ELEMENTS // n)
    for k in range(K):
        for start in range(0, X.shape[0], size):
            points = slice(start, start + size)
            center = np.repeat([mean[k, points] for mean in means], counts, axis=0)
            low, high = center - residuals[k][:, None], center + residuals[k][:, None]
            bounds[:, :, points, k] = uncrossed(conformal_bounds(low, high, ranks), low, high)
    return bounds


def _warn_about_reach(fit: Fit, rows: TrainingRows, X: Array, norm: FloatArray) -> None:
    """Warn about points beyond the rows, unless single inputs have told already."""
    beyond = int(np.sum(outside_design(rows, norm)))
    if beyond > BEYOND_SHARE * norm.shape[1] and not n_extrapolated(X, fit.scale):
        warn(
            f"{beyond} of {norm.shape[1]} points are farther from the training rows, as the "
            "hidden layers see them, than these are from one another; intervals there are wider, "
            "and rest on extrapolation.",
            ExtrapolationWarning,
        )


class Sides(NamedTuple):
    """Levels of one kind: of signed or of absolute residuals, their places, and their ranks."""

    signed: bool
    locations: list[int]
    ranks: list[tuple[int, int]]


def level_sides(residuals: FloatArray, levels: Sequence[float], shape: str) -> list[Sides]:
    """Which levels have sides of their own, and the ranks of all of them.

    Signed residuals are for the levels whose two-sided ranks exist; absolute ones serve the
    rest. The largest of all absolute residuals reaches as far as any signed one, so levels stay
    nested.
    """
    n = len(residuals)
    shortest = shape == "shortest" and is_lopsided(residuals)
    skewed = shortest or (shape == "equal" and is_skewed(residuals))
    signed = [skewed and has_ranks(n, level, two_sided=True) for level in levels]
    sides = []
    for kind in set(signed):
        locations = [i for i, s in enumerate(signed) if s == kind]
        if kind and shortest:
            quantile = residual_shape(residuals[None], np.array([True])).quantile(0)
            wanted = [levels[i] for i in locations]
            ranks = shortest_ranks(n, wanted, quantile)
        else:
            ranks = [conformal_ranks(n, levels[i], two_sided=kind) for i in locations]
        sides.append(Sides(kind, locations, ranks))
    return sides


def _shifted(
    fit: Fit, rows: TrainingRows, X: Array, used: npt.NDArray[np.bool_], plain: bool
) -> Iterator[tuple[int, slice, FloatArray]]:
    """Output, points, and shifts of the predictions by each row used, (n, p); (1, 1) if plain."""
    K = len(rows.noise)
    if plain:
        for k in range(K):
            yield k, slice(0, X.shape[0]), np.zeros((1, 1))
        return
    for chunk in leave_one_out_shifts(fit, rows, X):
        for k in range(K):
            yield k, chunk.points, chunk.shift[k, used]


def quantiles(fit: Fit, X: Array, levels: Sequence[float]) -> FloatArray:
    """Quantiles of a new observation, shape (levels, p, K)."""
    rows = fit.rows
    if rows is None:
        return predictive_distribution(fit, X).ppf(np.array(levels)[:, None, None])
    used = rows.judges
    n = int(np.sum(used))
    beyond = [level for level in levels if not 1 <= level * (n + 1) <= n]
    if beyond:
        warn(
            f"quantiles {beyond} lie beyond what {n} training rows show; the most extreme left-out "
            "residual is used. predict_dist has smooth tails.",
            DegenerateFitWarning,
        )
    errors = scaled_residuals(fit, rows)
    spread = prediction_moments(fit, X)
    _warn_about_reach(fit, rows, X, spread.norm)
    values = np.empty((len(levels), X.shape[0], len(errors)))
    plain = uses_predictions(fit)
    for k, points, shift in _shifted(fit, rows, X, used, plain):
        scale = spread.sd[k, points]
        if plain:
            ends = order_quantiles(errors[k][:, None], levels) * scale
        else:
            ends = order_quantiles(errors[k][:, None] * scale - shift, levels)
        values[:, points, k] = spread.mean[k, points] + ends
    return values
