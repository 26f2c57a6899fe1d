"""The predictive distribution of a new observation, as a frozen distribution of scipy.stats.

It is Student's unless a test rejects normality of the residuals; then it is a smoothed empirical
distribution of the leave-one-out residuals in units of their standard deviations.
"""

# SciPy has no type information: its base class is Any.
# mypy: disallow-subclassing-any=False

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from ulmus.core.arrays.backend import Array, FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.query.leave_out import (
    ROUND_OFF,
    noiseless,
    prediction_moments,
    scaled_residuals,
)
from ulmus.core.response.residual_distribution import ResidualShape, residual_shape
from ulmus.intervals.bounds import MIN_RESIDUALS, satterthwaite_dof
from ulmus.intervals.response import calibrated_families, link_predictions, predicted_response
from ulmus.intervals.response_distribution import ResponseDistribution
from ulmus.intervals.standard_errors import PredictionVariance, prediction_variance

# Degrees of freedom at which Student's distribution is normal to double precision.
NORMAL_DOF = 1e6
# Fewest degrees of freedom: the variance of Student's distribution is finite.
LEAST_DOF = 3.0
# Scale of a distribution without noise, relative to its mean: between two neighbouring floating
# point numbers, the distribution function rises by less than 1e-8.
NOISELESS_SCALE = 2.0**-26


class ShapedDistribution(stats.rv_continuous):
    """Scaled residuals of several outputs, each Student's or empirical.

    Besides ``loc`` and ``scale`` there are two parameters: the number of the output, and the
    degrees of freedom of Student's distribution, which empirical outputs ignore.
    """

    def __init__(self, residuals: ResidualShape, **parameters: Any) -> None:
        self.residuals = residuals
        super().__init__(**({"name": "shaped", "shapes": "output, dof"} | parameters))

    def _updated_ctor_param(self) -> dict[str, Any]:
        """Arguments with which scipy copies the distribution when it is frozen."""
        return super()._updated_ctor_param() | {"residuals": self.residuals}

    def _argcheck(self, output: FloatArray, dof: FloatArray) -> Any:
        return (output >= 0) & (output < len(self.residuals.shaped)) & (dof > 0)

    def _scores(
        self, e: FloatArray, output: FloatArray, dof: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, their derivatives, and the degrees of freedom of the scores."""
        score, output, dof = (np.array(a, dtype=float) for a in np.broadcast_arrays(e, output, dof))
        slope = np.ones_like(score)
        for k in np.flatnonzero(self.residuals.shaped):
            here = output == k
            score[here], slope[here] = self.residuals.scores(score[here], int(k))
            dof[here] = NORMAL_DOF
        return score, slope, dof

    def _residuals(self, function: Any, q: FloatArray, output: Any, dof: Any) -> FloatArray:
        """Residuals at the scores of a quantile function of Student's distribution."""
        q, output, dof = (np.array(a, dtype=float) for a in np.broadcast_arrays(q, output, dof))
        for k in np.flatnonzero(self.residuals.shaped):
            dof[output == k] = NORMAL_DOF
        e = np.asarray(function(q, dof))
        for k in np.flatnonzero(self.residuals.shaped):
            here = output == k
            e[here] = self.residuals.residuals(e[here], int(k))
        return e

    def _pdf(self, x: FloatArray, output: FloatArray, dof: FloatArray) -> FloatArray:
        return np.exp(self._logpdf(x, output, dof))

    def _logpdf(self, x: FloatArray, output: FloatArray, dof: FloatArray) -> FloatArray:
        score, slope, dof = self._scores(x, output, dof)
        return stats.t.logpdf(score, dof) + np.log(slope)

    def _cdf(self, x: FloatArray, output: FloatArray, dof: FloatArray) -> FloatArray:
        score, _, dof = self._scores(x, output, dof)
        return stats.t.cdf(score, dof)

    def _sf(self, x: FloatArray, output: FloatArray, dof: FloatArray) -> FloatArray:
        score, _, dof = self._scores(x, output, dof)
        return stats.t.sf(score, dof)

    def _ppf(self, q: FloatArray, output: FloatArray, dof: FloatArray) -> FloatArray:
        return self._residuals(stats.t.ppf, q, output, dof)

    def _isf(self, q: FloatArray, output: FloatArray, dof: FloatArray) -> FloatArray:
        return self._residuals(stats.t.isf, q, output, dof)

    def _stats(self, output: FloatArray, dof: FloatArray) -> tuple[FloatArray, ...]:
        """Mean, variance, skewness and excess kurtosis."""
        output, dof = np.broadcast_arrays(output, dof)
        moments = np.stack([np.array(a) for a in stats.t.stats(dof, moments="mvsk")])
        for k in np.flatnonzero(self.residuals.shaped):
            moments[:, output == k] = np.array(_moments(self.residuals, int(k)))[:, None]
        return tuple(moments)


def _moments(shape: ResidualShape, k: int) -> tuple[float, float, float, float]:
    """Mean, variance, skewness and excess kurtosis of an output's scaled residuals."""
    score = np.linspace(-12.0, 12.0, 4801)
    weight = np.exp(-0.5 * score**2)
    weight /= weight.sum()
    e = shape.residuals(score, k)
    mean = float(weight @ e)
    centred = e - mean
    second, third, fourth = (float(weight @ centred**power) for power in (2, 3, 4))
    return mean, second, third / second**1.5, fourth / second**2 - 3


def departs_from_normal(residuals: FloatArray) -> bool:
    """Whether a test of skewness and kurtosis rejects normality of the residuals."""
    sd = np.std(residuals)
    # Residuals smaller than 1e-6 of their standard deviations are round-off.
    if len(residuals) < MIN_RESIDUALS or not sd > 1e-6:
        return False
    # A false rejection costs 7 % of the log score with 100 residuals.
    return bool(stats.normaltest(residuals / sd).pvalue < 0.02)


def fit_shape(fit: Fit) -> ResidualShape | None:
    """Distribution of leave-one-out residuals; None without rows or if all outputs are normal."""
    if fit.rows is None:
        return fit.residual_shape
    errors = scaled_residuals(fit, fit.rows)
    shaped = np.array([departs_from_normal(e) for e in errors]) & ~noiseless(fit)
    return residual_shape(errors, shaped) if np.any(shaped) else None


def without_rows(fit: Fit) -> Fit:
    """The same fit without its training rows, but with the distribution of their residuals."""
    families = None if fit.response is None else calibrated_families(fit)
    return replace(fit.compress(fit_shape(fit)), response=families)


def observation_sd(
    fit: Fit, X: Array, variance: PredictionVariance, weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Standard deviation of a new observation, and its degrees of freedom, each (p, K).

    New observations have the weights (p,), or the mean weight of the training rows.
    """
    total = variance.model + fit.noise_variance(X, weight)
    dof = observation_dof(fit, total, variance.from_weights, fit.noise_dof)
    return np.sqrt(total), dof


def observation_dof(
    fit: Fit, total: FloatArray, weights: FloatArray, noise_dof: FloatArray
) -> FloatArray:
    """Degrees of freedom of the variance of a new observation, each (p, K).

    ``weights`` is the part estimated from the differences between members; the rest has the degrees
    of freedom of the noise variance.
    """
    dof = satterthwaite_dof(total - weights, weights, noise_dof, fit.ensemble.n_members - 1)
    return np.clip(dof, LEAST_DOF, NORMAL_DOF)


def predictive_distribution(
    fit: Fit, X: Array, weight: FloatArray | None = None, *, drop_output: bool = False
) -> Any:
    """Distribution of new observations, with arrays (p, K), or (p,) of the only output.

    New observations have the weights (p,), or the mean weight of the training rows. It is a frozen
    distribution of SciPy if the regression is that of y, else a ``ResponseDistribution``.
    """
    variance = prediction_variance(fit, X)
    if fit.response is None:
        arrays = _link_arrays(fit, X, variance, weight)
        return _frozen(fit, *(a[:, 0] if drop_output else a for a in arrays))
    links = link_predictions(fit, X, weight, variance.mean, variance.model)
    moments = predicted_response(fit.response, links, variance)
    if any(one.is_monotone for one in fit.response):
        arrays = _link_arrays(fit, X, variance, weight)
        frozen = (_frozen(fit, *(a[:, k] for a in arrays)) for k in range(len(links)))
        links = [link._replace(distribution=one) for link, one in zip(links, frozen, strict=True)]
    return ResponseDistribution(fit.response, links, moments, drop_output=drop_output)


def link_distribution(fit: Fit, X: Array, weight: FloatArray | None = None) -> Any:
    """Frozen distribution of new observations on the scale of the regression, (p, K)."""
    return _frozen(fit, *_link_arrays(fit, X, prediction_variance(fit, X), weight))


def _link_arrays(
    fit: Fit, X: Array, variance: PredictionVariance, weight: FloatArray | None
) -> tuple[FloatArray, ...]:
    """Output, degrees of freedom, location and scale on the scale of the regression, (p, K)."""
    scale, dof = observation_sd(fit, X, variance, weight)
    shape = fit_shape(fit)
    if shape is not None:
        scale = np.where(shape.shaped, prediction_moments(fit, X, weight=weight).sd.T, scale)
    # Without noise, a scale that the precision of the mean resolves.
    size = np.maximum(np.abs(variance.mean), np.finfo(float).tiny / 1e-16)
    scale = np.where(scale > ROUND_OFF * size, scale, NOISELESS_SCALE * size)
    output = np.broadcast_to(np.arange(dof.shape[1], dtype=float), dof.shape)
    return output, dof, variance.mean, scale


def _frozen(
    fit: Fit, output: FloatArray, dof: FloatArray, mean: FloatArray, scale: FloatArray
) -> Any:
    shape = fit_shape(fit)
    if shape is None:
        return stats.t(dof, loc=mean, scale=scale)
    return ShapedDistribution(shape)(output, dof, loc=mean, scale=scale)
