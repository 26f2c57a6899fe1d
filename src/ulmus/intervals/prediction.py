"""Intervals and quantiles of a new observation: normal, or conformal from left-out rows.

Everything comes as NumPy arrays in the units of y: quantiles (levels, p, K), bounds
(2, levels, p, K).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from ulmus.core.backend import Array
from ulmus.core.fit import Fit, TrainingRows
from ulmus.core.jackknife import left_out_shifts, point_spread, row_sd, unpulled_residuals
from ulmus.exceptions import DegenerateFitWarning, warn
from ulmus.intervals.bounds import (
    conformal_bounds,
    conformal_ranks,
    has_ranks,
    is_skewed,
    normal_bounds,
    quantile_rank,
)
from ulmus.intervals.standard_errors import Variance, prediction_variance

FloatArray = npt.NDArray[np.float64]

# With so many rows, and so many for each degree of freedom, leaving one row out moves a
# prediction by far less than the noise: "auto" then takes the prediction itself.
MANY_ROWS = 5000
ROWS_PER_DOF = 20


def gaussian_bounds(
    fit: Fit, X: Array, levels: Sequence[float], variance: Variance | None = None
) -> FloatArray:
    """Mean plus and minus a normal quantile times the sd of a new observation."""
    variance = prediction_variance(fit, X) if variance is None else variance
    sd = np.sqrt(variance.model + fit.noise_variance(X))
    return normal_bounds(variance.mean, sd, levels)


def prediction_bounds(
    fit: Fit,
    X: Array,
    levels: Sequence[float],
    method: str,
    variance: Variance | None = None,
) -> FloatArray:
    """Intervals for new observations."""
    rows = fit.rows
    if rows is None and method.startswith("jackknife"):
        raise ValueError(
            f"method={method!r} needs the training rows, which compress() dropped or a "
            "streamed fit never kept; use method='gaussian', or fit in memory."
        )
    if rows is None or method == "gaussian":
        return gaussian_bounds(fit, X, levels, variance)
    served = [level for level in levels if method != "auto" or _can_rank(rows, level)]
    if len(served) == len(levels):
        return _conformal(fit, rows, X, levels, method)
    warn(
        f"{int(np.sum(rows.data.used))} training rows are too few for a jackknife interval of "
        f"confidence_level {max(levels):g}; it is taken from a normal distribution, or from the "
        "widest jackknife interval if that is wider.",
        DegenerateFitWarning,
    )
    bounds = gaussian_bounds(fit, X, levels, variance)
    # No level may be narrower than the largest that the rows can serve.
    largest = 1 - 1 / (int(np.sum(rows.data.used)) + 1)
    conformal = _conformal(fit, rows, X, [*served, largest], method)
    low, high = conformal[0, -1], conformal[1, -1]
    bounds = np.stack([np.minimum(bounds[0], low), np.maximum(bounds[1], high)])
    places = [i for i, level in enumerate(levels) if level in served]
    bounds[:, places] = conformal[:, :-1]
    return bounds


def _can_rank(rows: TrainingRows, level: float) -> bool:
    return has_ranks(int(np.sum(rows.data.used)), level, two_sided=False)


def uses_predictions(fit: Fit) -> bool:
    """Whether left-out predictions are so close to predictions that "auto" takes those."""
    gamma = max(part.smoother.gamma for part in fit.ensemble.regressions)
    return fit.n_rows >= MANY_ROWS and fit.n_rows >= ROWS_PER_DOF * gamma


def _conformal(
    fit: Fit, rows: TrainingRows, X: Array, levels: Sequence[float], method: str
) -> FloatArray:
    """Order statistics of left-out predictions plus and minus left-out residuals."""
    used = rows.data.used
    n = int(np.sum(used))
    errors = unpulled_residuals(fit, rows)[:, used]
    spread = point_spread(fit, X)
    scaled = method == "auto"
    if scaled:
        errors = errors / row_sd(fit, rows)[:, used]
    plain = method == "jackknife" or (scaled and uses_predictions(fit))
    bounds = np.empty((2, len(levels), X.shape[0], len(errors)))
    for k, points, shift in _shifted(fit, rows, X, used, plain):
        scale = spread.sd[k, points] if scaled else np.ones_like(spread.sd[k, points])
        skewed = scaled and is_skewed(errors[k])
        signed = [skewed and has_ranks(n, level, two_sided=True) for level in levels]
        for two_sided in set(signed):
            places = [i for i, s in enumerate(signed) if s == two_sided]
            ranks = [conformal_ranks(n, levels[i], two_sided=two_sided) for i in places]
            margin = errors[k] if two_sided else np.abs(errors[k])
            low, high = (margin if two_sided else -margin)[:, None], margin[:, None]
            if plain:
                ends = conformal_bounds(low, high, ranks) * scale
            else:
                ends = conformal_bounds(low * scale - shift, high * scale - shift, ranks)
            bounds[..., k][:, places, points] = spread.mean[k, points] + _uncrossed(ends)
    return bounds


def _uncrossed(ends: FloatArray) -> FloatArray:
    """Bounds (2, k, p); at low levels those of jackknife+ may cross, and become a point."""
    low, high = ends
    middle = 0.5 * (low + high)
    return np.stack([np.where(low > high, middle, low), np.where(low > high, middle, high)])


def _shifted(
    fit: Fit, rows: TrainingRows, X: Array, used: npt.NDArray[np.bool_], plain: bool
) -> Iterator[tuple[int, slice, FloatArray]]:
    """Output, points, and shifts of the predictions by each row used, (n, p); (1, 1) if plain."""
    K = len(rows.noise)
    if plain:
        for k in range(K):
            yield k, slice(0, X.shape[0]), np.zeros((1, 1))
        return
    for chunk in left_out_shifts(fit, rows, X):
        for k in range(K):
            yield k, chunk.points, chunk.shift[k, used]


def quantiles(fit: Fit, X: Array, levels: Sequence[float]) -> FloatArray:
    """Quantiles of a new observation, shape (levels, p, K)."""
    rows = fit.rows
    if rows is None:
        variance = prediction_variance(fit, X)
        sd = np.sqrt(variance.model + fit.noise_variance(X))
        return np.stack([variance.mean + stats.norm.ppf(level) * sd for level in levels])
    used = rows.data.used
    n = int(np.sum(used))
    wanted = [quantile_rank(n, level, upper=True) for level in levels]
    ranks = [min(max(rank, 1), n) - 1 for rank in wanted]
    beyond = [level for level in levels if not 1 <= level * (n + 1) <= n]
    if beyond:
        warn(
            f"quantiles {beyond} lie beyond what {n} training rows show; the most extreme left-out "
            "residual is used. predict_dist has smooth tails.",
            DegenerateFitWarning,
        )
    errors = unpulled_residuals(fit, rows)[:, used] / row_sd(fit, rows)[:, used]
    spread = point_spread(fit, X)
    values = np.empty((len(levels), X.shape[0], len(errors)))
    plain = uses_predictions(fit)
    for k, points, shift in _shifted(fit, rows, X, used, plain):
        scale = spread.sd[k, points]
        if plain:
            ends = np.partition(errors[k], ranks)[ranks][:, None] * scale
        else:
            ends = np.partition(errors[k][:, None] * scale - shift, ranks, axis=0)[ranks]
        values[:, points, k] = spread.mean[k, points] + ends
    return values
