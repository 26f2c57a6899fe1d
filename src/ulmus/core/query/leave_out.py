r"""Predictions with each training row left out, in closed form.

Dropping row i from member m moves its prediction at x by
:math:`z_{mi}(x) \, r_{mi} / (1 - p_{mi})`, so that the ensemble without row i predicts

.. math:: f_{-i}(x) = f(x) - \frac{1}{M} \sum_m z_{mi}(x) L_{mi},

with the leave-one-out residuals L. No refit is needed, and no weight matrix is inverted twice.
Rows that are left out in blocks have the residuals L without their block, and the shift of each
is the sum over its block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, taken_rows, to_numpy
from ulmus.core.data.cv_blocks import block_starts
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.refits import out_of_fold
from ulmus.core.fit.training_data import TrainingRows
from ulmus.core.layer.functionals import features
from ulmus.core.variance.estimates import never_negative

# Largest array of training rows times points, in elements: the features of a training row are
# made again for every so many points.
POINT_ELEMENTS = 2**25
# Points are beyond the rows where their leverage exceeds so many times this quantile of the rows'
# own, and the largest of these.
FAR, FAR_QUANTILE = 2.0, 0.98


class PredictionMoments(NamedTuple):
    """Points as the whole ensemble sees them, in the units of y.

    Parameters
    ----------
    mean : ndarray of shape (K, p)
        Prediction.
    sd : ndarray of shape (K, p)
        Standard deviation of a new observation around it, given the hidden weights.
    norm : ndarray of shape (K, p)
        Squared error expected of the prediction, in units of the noise: its leverage.
    """

    mean: np.ndarray
    sd: np.ndarray
    norm: np.ndarray


class LeaveOneOut(NamedTuple):
    """A chunk of points, and the shift f(x) - f_{-i}(x) for each training row i, (K, n, p).

    Where rows are left out in blocks, it is the same for all rows of a block.
    """

    points: slice
    shift: np.ndarray


class Accuracy(NamedTuple):
    """How close left-out predictions come to the rows, each of shape (K,).

    Parameters
    ----------
    rmse : ndarray
        Root of the mean squared error.
    rmse_of_mean : ndarray
        The same of the mean of y.
    r2 : ndarray
        Share of the variance of y around its mean that they explain; not a number where y does
        not vary.
    """

    rmse: np.ndarray
    rmse_of_mean: np.ndarray
    r2: np.ndarray


def row_sd(fit: Fit, rows: TrainingRows) -> np.ndarray:
    """Standard deviation of each leave-one-out residual in the units of y, shape (K, n)."""
    root = rows.data.root_weight
    weight = 1.0 if root is None else np.where(root > 0, root, 1.0) ** 2
    model = smoothed_noise(fit, rows.noise) * rows.norm
    variance = (rows.noise / weight + model) * fit.ensemble.unit[:, None] ** 2
    return _positive_root(variance + fit.map_variance(rows.data.X))


def smoothed_noise(fit: Fit, noise: np.ndarray) -> np.ndarray:
    """Noise variance in a prediction where the noise of an observation is so much, both (K, p).

    A prediction averages the noise of the rows around it. Where noise is large they are about as
    noisy; a quiet point borrows from noisier rows, and gets the geometric mean of its own noise
    and that of all rows. The first keeps coverage where noise is large, the second in quiet
    corners of the design. With constant noise it is ``sigma2``.
    """
    sigma2 = fit.per_regression(lambda part: part.variance.sigma2)[:, None]
    mean = fit.per_regression(lambda part: part.variance.residual)[:, None]
    ratio = noise / np.where(mean > 0, mean, 1.0)
    return sigma2 * np.maximum(ratio, np.sqrt(ratio))


def prediction_moments(fit: Fit, X: Array, norm: np.ndarray | None = None) -> PredictionMoments:
    """Mean and conditional standard deviation at the rows of X; their leverage may be known."""
    ensemble = fit.ensemble
    if norm is None:
        blocks = [ensemble.leverage_of(h) for h in features(ensemble.layer, X)]
        norm = np.concatenate(blocks, axis=1)
    noise = fit.unit_noise(X)
    model = smoothed_noise(fit, noise) * norm * ensemble.unit[:, None] ** 2
    if np.any(fit.has_covariance):
        together = never_negative(fit.estimates[0], fit.parts(X)).T
        model = np.where(fit.has_covariance[:, None], together, model)
    variance = noise / fit.mean_weight * ensemble.unit[:, None] ** 2 + model
    sd = _positive_root(variance + fit.map_variance(X))
    return PredictionMoments(ensemble.mean(X), sd, norm)


def outside_design(rows: TrainingRows, norm: np.ndarray) -> np.ndarray:
    """Which points are farther from the rows than these from one another, shape (p,).

    Distance is leverage: the error expected of a prediction there, against those of left-out rows.
    Of points inside the design one in a thousand is beyond; of those with every input a few
    percent outside its range, most are.
    """
    of_rows = rows.norm[:, rows.data.used]
    limit = np.maximum(of_rows.max(axis=1), FAR * np.quantile(of_rows, FAR_QUANTILE, axis=1))
    return np.any(norm > limit[:, None], axis=0)


def _positive_root(variance: np.ndarray) -> np.ndarray:
    """Square root; data without any noise get a scale of one."""
    return np.sqrt(np.where(variance > 0, variance, 1.0))


def loo_residuals(fit: Fit, rows: TrainingRows) -> np.ndarray:
    """Leave-one-out residuals of the ensemble in the units of y, shape (K, n)."""
    return rows.residuals(fit.ensemble.unit)


def out_of_fold_residuals(fit: Fit, rows: TrainingRows) -> np.ndarray:
    """The same behind maps that have not seen the row, where rows are few, shape (K, n)."""
    own = loo_residuals(fit, rows)
    return out_of_fold(fit.folds, own) if fit.folded else own


def scaled_residuals(fit: Fit, rows: TrainingRows) -> np.ndarray:
    """Leave-one-out residuals in units of their own standard deviations, of the rows used."""
    used = rows.judges
    return out_of_fold_residuals(fit, rows)[:, used] / row_sd(fit, rows)[:, used]


def leave_one_out_accuracy(fit: Fit, rows: TrainingRows) -> Accuracy:
    r"""Error of the left-out predictions of the rows that make intervals.

    .. math:: \text{RMSE}^2 = \frac{\sum_i w_i (y_i - f_{-i}(x_i))^2}{\sum_i w_i}, \qquad
              R^2 = 1 - \frac{\sum_i w_i (y_i - f_{-i}(x_i))^2}{\sum_i w_i (y_i - \bar y)^2}.

    The mean is that of all of these rows, as in scikit-learn's ``r2_score``: a constant that knows
    each row scores 0, and a fit that is no better than a left-out mean a little less.
    """
    used, root, unit = rows.judges, rows.data.root_weight, fit.ensemble.unit
    weight = np.ones(int(np.sum(used))) if root is None else root[used] ** 2
    # In the fit's units of y, whose squares neither overflow nor vanish.
    y = rows.data.y[:, used] / unit[:, None]
    residuals = out_of_fold_residuals(fit, rows)[:, used] / unit[:, None]
    error = np.average(residuals**2, axis=1, weights=weight)
    center = np.average(y, axis=1, weights=weight)
    spread = np.average((y - center[:, None]) ** 2, axis=1, weights=weight)
    r2 = 1 - error / np.where(np.ptp(y, axis=1) > 0, spread, np.nan)
    return Accuracy(unit * np.sqrt(error), unit * np.sqrt(spread), r2)


def leave_one_out_shifts(fit: Fit, rows: TrainingRows, X: Array) -> Iterator[LeaveOneOut]:
    """Shifts by each training row, in chunks of points so that memory stays bounded.

    The features of a training row are made once for each chunk.
    """
    K, n = rows.noise.shape
    size = max(1, POINT_ELEMENTS // (n * K))
    for start in range(0, X.shape[0], size):
        points = slice(start, min(start + size, X.shape[0]))
        yield LeaveOneOut(points, _shifts(fit, rows, taken_rows(X, points)))


def _shifts(fit: Fit, rows: TrainingRows, X: Array) -> np.ndarray:
    """f(x) - f_{-i}(x) in the units of y, shape (K, n, p)."""
    ensemble = fit.ensemble
    M, K = ensemble.n_members, len(rows.noise)
    h = fit.features(X)
    coordinates = [part.smoother.coordinates(h) for part in ensemble.regressions]
    block_index = rows.data.block_index
    out = np.zeros((K, rows.data.n_blocks, X.shape[0]))
    for block in rows.data:
        here, features = block.rows, fit.features(block.X)
        starts = block_starts(block_index[here])
        together = block_index[here][starts]
        for part, t in zip(ensemble.regressions, coordinates, strict=True):
            xp, Q = namespace(t), part.smoother.coordinates(features)
            flat = xp.reshape(t, (-1, t.shape[2]))
            for k in part.outputs:
                L = like(rows.loo[:, k, here] * (ensemble.unit[k] / M), Q)
                if block.root_weight is not None:
                    L = L * block.root_weight**2
                pulled = xp.reshape(Q * L[:, None, :], (-1, Q.shape[2]))
                out[k, together, :] += np.add.reduceat(to_numpy(pulled.T @ flat), starts, axis=0)
    return out if rows.data.block_ids is None else out[:, block_index, :]
