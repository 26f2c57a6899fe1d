r"""Leave-one-out predictions, in closed form, and moments of predictions.

Without row i, the prediction of member m at x changes by
:math:`z_{mi}(x) \, r_{mi} / (1 - p_{mi})`, and that of the ensemble is

.. math:: f_{-i}(x) = f(x) - \frac{1}{M} \sum_m z_{mi}(x) L_{mi},

with the leave-one-out residuals L. With cross-validation blocks, L are the leave-block-out
residuals, and the shift is the sum over the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, taken_rows
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.refits import out_of_fold
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.variance.estimates import Shifts, never_negative

# Largest array of training rows times points; training features are recomputed for each chunk.
POINT_ELEMENTS = 2**25
# Errors smaller than this share of y are round-off.
ROUND_OFF = 1e-11


class PredictionMoments(NamedTuple):
    """Moments of new observations, in the units of y."""

    mean: np.ndarray  # (K, p): prediction
    # (K, p): standard deviation of a new observation around it, given the hidden weights.
    sd: np.ndarray
    # (K, p): expected squared error of the prediction, in units of the noise variance.
    leverage: np.ndarray


class LeaveOneOut(NamedTuple):
    """A chunk of points, and the shift f(x) - f_{-i}(x) for each training row i, (K, n, p).

    With cross-validation blocks, it is the same for all rows of a block.
    """

    points: slice
    shift: np.ndarray


class Accuracy(NamedTuple):
    """Accuracy of leave-one-out predictions, each of shape (K,)."""

    rmse: np.ndarray  # root mean squared error
    rmse_of_mean: np.ndarray  # root mean squared error of the mean of y
    r2: np.ndarray  # coefficient of determination; NaN for constant y


def row_sd(fit: Fit, rows: TrainingRows) -> np.ndarray:
    """Standard deviation of each leave-one-out residual in the units of y, shape (K, n)."""
    root = rows.data.root_weight
    weight = 1.0 if root is None else np.where(root > 0, root, 1.0) ** 2
    model = smoothed_noise(fit, rows.noise) * rows.loo_leverage
    # In the fit's units of y, whose squares do not overflow.
    unit = fit.ensemble.unit[:, None]
    shifts = Shifts(*(shift / unit for shift in fit.map_shifts(rows.data.X)))
    return unit * _positive_root(rows.noise / weight + model + shifts.variance)


def smoothed_noise(fit: Fit, noise: np.ndarray) -> np.ndarray:
    """Noise variance for predictions, from the noise variance of observations, both (K, p).

    A prediction averages the noise of nearby rows. Where the noise variance exceeds its mean, that
    of nearby rows is about equal; where it is smaller, they are noisier, and the mean is multiplied
    by the fourth root of the ratio. This maintains coverage in regions of large and of small noise.
    For homoskedastic noise it is ``sigma2``.
    """
    sigma2 = fit.per_regression(lambda part: part.noise_variance.sigma2)[:, None]
    mean = fit.per_regression(lambda part: part.noise_variance.residual)[:, None]
    ratio = noise / np.where(mean > 0, mean, 1.0)
    return sigma2 * np.maximum(ratio, ratio**0.25)


def prediction_moments(
    fit: Fit, X: Array, leverage: np.ndarray | None = None, weight: np.ndarray | None = None
) -> PredictionMoments:
    """Mean and conditional standard deviation at the rows of X; a given leverage is reused.

    New observations have the weights (p,), or the mean weight of the training rows.
    """
    ensemble = fit.ensemble
    if leverage is None:
        leverage = fit.leverage(X)
    model = smoothed_noise(fit, fit.unit_noise(X)) * leverage * ensemble.unit[:, None] ** 2
    if np.any(fit.has_covariance):
        correlated = never_negative(fit.estimates[0], fit.parts(X)).T
        model = np.where(fit.has_covariance[:, None], correlated, model)
    sd = _positive_root(fit.noise_variance(X, weight).T + model + fit.map_variance(X))
    return PredictionMoments(ensemble.mean(X), sd, leverage)


def outside_design(rows: TrainingRows, leverage: np.ndarray) -> np.ndarray:
    """Points whose leverage (K, p) exceeds the limit of an output, boolean (p,)."""
    return np.any(leverage > leverage_limit(rows)[:, None], axis=0)


def leverage_limit(rows: TrainingRows) -> np.ndarray:
    """Leverage beyond which a point is outside the design of the leave-one-out rows, shape (K,).

    It is the larger of their maximum and twice their 98 percent quantile. About one point in a
    thousand inside the design exceeds it, and most with all inputs a few percent outside their
    ranges.
    """
    of_rows = rows.loo_leverage[:, rows.data.used]
    return np.maximum(of_rows.max(axis=1), 2.0 * np.quantile(of_rows, 0.98, axis=1))


def _positive_root(variance: np.ndarray) -> np.ndarray:
    """Square root, and one for a variance of zero."""
    return np.sqrt(np.where(variance > 0, variance, 1.0))


def loo_residuals(fit: Fit, rows: TrainingRows) -> np.ndarray:
    """Leave-one-out residuals of the ensemble in the units of y, shape (K, n)."""
    return rows.residuals(fit.ensemble.unit)


def out_of_fold_residuals(fit: Fit, rows: TrainingRows) -> np.ndarray:
    """Leave-one-out residuals with maps fitted without the row, if there are folds, (K, n)."""
    own = loo_residuals(fit, rows)
    return out_of_fold(fit.folds, own) if fit.folded else own


def scaled_residuals(fit: Fit, rows: TrainingRows) -> np.ndarray:
    """Leave-one-out residuals of the calibration rows over their standard deviations."""
    used = rows.calibration_rows
    return out_of_fold_residuals(fit, rows)[:, used] / row_sd(fit, rows)[:, used]


def leave_one_out_accuracy(fit: Fit, rows: TrainingRows) -> Accuracy:
    r"""Accuracy of the leave-one-out predictions of the calibration rows.

    .. math:: \text{RMSE}^2 = \frac{\sum_i w_i (y_i - f_{-i}(x_i))^2}{\sum_i w_i}, \qquad
              R^2 = 1 - \frac{\sum_i w_i (y_i - f_{-i}(x_i))^2}{\sum_i w_i (y_i - \bar y)^2}.

    :math:`\bar y` is the mean of all of these rows, as in scikit-learn's ``r2_score``; the
    leave-one-out mean has a slightly negative score.
    """
    used, root, unit = rows.calibration_rows, rows.data.root_weight, fit.ensemble.unit
    weight = np.ones(int(np.sum(used))) if root is None else root[used] ** 2
    # In the fit's units of y, whose squares do not overflow.
    y = rows.data.y[:, used] / unit[:, None]
    residuals = out_of_fold_residuals(fit, rows)[:, used] / unit[:, None]
    error = np.average(residuals**2, axis=1, weights=weight)
    center = np.average(y, axis=1, weights=weight)
    variance = np.average((y - center[:, None]) ** 2, axis=1, weights=weight)
    r2 = 1 - error / np.where(np.ptp(y, axis=1) > 0, variance, np.nan)
    return Accuracy(unit * np.sqrt(error), unit * np.sqrt(variance), r2)


def leave_one_out_shifts(fit: Fit, rows: TrainingRows, X: Array) -> Iterator[LeaveOneOut]:
    """Leave-one-out shifts of predictions at the rows of X, in chunks that bound memory.

    The features of the training rows are recomputed for each chunk.
    """
    K, n = rows.noise.shape
    size = max(1, POINT_ELEMENTS // (n * K))
    for start in range(0, X.shape[0], size):
        points = slice(start, min(start + size, X.shape[0]))
        yield LeaveOneOut(points, _shifts(fit, rows, taken_rows(X, points)))


def _shifts(fit: Fit, rows: TrainingRows, X: Array) -> np.ndarray:
    """f(x) - f_{-i}(x) in the units of y, shape (K, n, p)."""
    h, low_rank = fit.features(X), fit.low_rank_shifts
    if low_rank is not None:
        ensemble, parts = fit.ensemble, [shifts.of(h) for shifts in low_rank]
    else:
        ensemble, parts = fit.exact_ensemble, []
        for part in ensemble.regressions:
            t = part.exact.coordinates(h)
            parts.append(rows.shifts(part.exact, part.outputs, ensemble.layer, t))
    out = ensemble.ordered(parts) * ensemble.unit[:, None, None]
    return out if rows.data.block_ids is None else out[:, rows.data.block_index, :]


def noiseless(fit: Fit) -> np.ndarray:
    """Whether leave-one-out residuals of the training rows are all round-off, shape (K,)."""
    if fit.rows is None:
        return np.zeros(fit.ensemble.n_outputs, dtype=bool)
    used = fit.rows.data.used
    return round_off(loo_residuals(fit, fit.rows)[:, used], fit.rows.data.y[:, used])


def round_off(errors: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether the errors of an output are all round-off, shape (K,)."""
    largest = np.max(np.abs(y), axis=1)
    return np.asarray(np.max(np.abs(errors), axis=1) <= ROUND_OFF * largest)
