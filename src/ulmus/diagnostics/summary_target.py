"""Fields of a summary that describe the target, on the response scale, and its distribution."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import special

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.query.leave_out import Accuracy, leave_one_out_accuracy
from ulmus.core.response import Counts, LogMean, PointMass
from ulmus.core.response.counts import LEAST_DISPERSION
from ulmus.diagnostics.leave_one_out import FamilyOfOutput, LeaveOneOutRows
from ulmus.diagnostics.noise_estimate import noise_sd
from ulmus.diagnostics.target_text import chosen_score, family_of, fitted_target, noise_scale
from ulmus.intervals.response import observed_outputs


def user_weight(fit: Fit, rows: TrainingRows) -> FloatArray | None:
    """Weights of the rows (n,); None if all are one.

    Where the weights of the regression follow from the means, these are ones and zeros.
    """
    root = rows.data.root_weight
    if root is None:
        return None
    return np.where(root > 0, 1.0, 0.0) if fit.has_working_weights else np.asarray(root**2)


def link_moments(fit: Fit) -> tuple[FloatArray, FloatArray] | tuple[None, None]:
    """Mean and standard deviation (K,) on the scale of the regression.

    They are computed from the rows or from the intercept of a stream, else None.
    """
    if fit.rows is not None:
        return _moments(fit, fit.rows, fit.rows.data.y)
    ensemble, unit = fit.ensemble, fit.ensemble.unit
    if not ensemble.layer.constant:
        return None, None
    mass = ensemble.regressions[0].smoother.mass
    first = fit.per_regression(lambda part: part.smoother.constants)
    square = np.maximum(fit.per_regression(lambda part: part.y_square), 0.0)
    return ensemble.shift + unit * first / np.sqrt(mass), unit * np.sqrt(square / mass)


def target_moments(fit: Fit) -> tuple[FloatArray, FloatArray] | tuple[None, None]:
    """The same of y; None for a stream whose target is transformed."""
    if fit.response is None:
        return link_moments(fit)
    return (None, None) if fit.rows is None else _moments(fit, fit.rows, observed_outputs(fit))


def _moments(fit: Fit, rows: TrainingRows, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted mean and standard deviation of outputs (K, n)."""
    used, unit, own = rows.data.used, fit.ensemble.unit, user_weight(fit, rows)
    if fit.response is not None:
        # Units whose squares do not overflow.
        unit = np.max(np.abs(values[:, used]), axis=1)
        unit = np.where(unit > 0, unit, 1.0)
    y = values[:, used] / unit[:, None]
    weight = np.ones(y.shape[1]) if own is None else own[used]
    mean = np.average(y, axis=1, weights=weight)
    sd = np.sqrt(np.average((y - mean[:, None]) ** 2, axis=1, weights=weight))
    return unit * mean, unit * np.where(np.ptp(y, axis=1) > 0, sd, 0.0)


def response_accuracy(fit: Fit, rows: TrainingRows, found: LeaveOneOutRows) -> Accuracy:
    """Accuracy of the leave-one-out means of y, as ``leave_one_out_accuracy``."""
    if fit.response is None:
        return leave_one_out_accuracy(fit, rows)
    own, used = user_weight(fit, rows), rows.calibration_rows
    weight = np.ones(int(np.sum(used))) if own is None else own[used]
    y = found.observed
    unit = np.maximum(np.max(np.abs(y), axis=1), np.finfo(float).tiny)[:, None]
    error = np.average(((y - found.mean) / unit) ** 2, axis=1, weights=weight)
    center = np.average(y / unit, axis=1, weights=weight)
    variance = np.average((y / unit - center[:, None]) ** 2, axis=1, weights=weight)
    r2 = 1 - error / np.where(np.ptp(y, axis=1) > 0, variance, np.nan)
    return Accuracy(unit[:, 0] * np.sqrt(error), unit[:, 0] * np.sqrt(variance), r2)


def family_fields(fit: Fit) -> dict[str, list[Any]]:
    """What is fitted for each output, and the parameters of its distribution."""
    K = fit.ensemble.n_outputs
    families = [family_of(fit, k) for k in range(K)]
    if fit.response is None:
        return {"target_transform": ["identity"] * K}
    used = None if fit.rows is None else fit.rows.data.used
    scores = [chosen_score(fit, k) for k in range(K)]
    gains = [None if one is None else one.margin for one in scores]
    observed = [None] * K if used is None else list(observed_outputs(fit)[:, used])
    described = [
        None if family is None else fitted_target(family, y)
        for family, y in zip(families, observed, strict=True)
    ]
    return {
        "target_transform": [family.name for family in fit.response],
        "fitted_target": described,
        "target_gain": gains,
        "noise_scale": [noise_scale(family) for family in families],
        "dispersion": [_dispersion(one) if isinstance(one, Counts) else None for one in families],
        "point_mass": [_share(one, y) for one, y in zip(families, observed, strict=True)],
        "extra_zeros": [_extra_zeros(one) if isinstance(one, Counts) else None for one in families],
    }


def _share(family: FamilyOfOutput | None, y: FloatArray | None) -> float | None:
    """Share of observations (n,) at a point mass; without them, that at the mean prediction."""
    if not isinstance(family, PointMass):
        return None
    if y is None:
        return float(special.expit(-family.odds[0]))
    return float(np.mean(y == family.above.least))


def _dispersion(family: Counts) -> float:
    """Dispersion, zero for a Poisson distribution."""
    return family.dispersion if family.dispersion >= LEAST_DISPERSION else 0.0


def _extra_zeros(family: Counts) -> float:
    """Probability of an extra zero at the mean prediction."""
    return float(special.expit(family.odds[0])) if len(family.odds) else 0.0


def of_regression(fit: Fit, values: Iterable[Any]) -> list[Any]:
    """Values of the noise of each output, None where the mean implies the variance."""
    families = fit.response or (None,) * fit.ensemble.n_outputs
    pairs = zip(values, families, strict=True)
    return [None if isinstance(family, LogMean) else value for value, family in pairs]


def response_noise_sd(fit: Fit) -> list[float | None]:
    """Standard deviation of the noise of each output.

    For a point mass that of the observations above it, at the mean prediction.
    """
    sds = of_regression(fit, map(float, noise_sd(fit)))
    return [
        float(np.exp(family.log_scale[0])) if isinstance(family, PointMass) else sd
        for sd, family in zip(sds, fit.response or (None,) * len(sds), strict=True)
    ]
