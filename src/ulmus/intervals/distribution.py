"""The predictive distribution of a new observation, as a frozen distribution of scipy.stats.

It is Student's where residuals give no reason to leave the normal distribution, and otherwise has
the shape of the left-out residuals in units of their own standard deviations.
"""

# SciPy has no type information, so its base class looks like Any.
# mypy: disallow-subclassing-any=False

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from ulmus.core.arrays.backend import Array
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.residual_distribution import ResidualShape, residual_shape
from ulmus.core.query.leave_out import prediction_moments, scaled_residuals
from ulmus.intervals.bounds import satterthwaite_dof
from ulmus.intervals.standard_errors import Variance, prediction_variance

FloatArray = npt.NDArray[np.float64]

# Residuals count as normal unless a test of skewness and kurtosis has a p-value below this. A false
# alarm costs 7 % of the log score with 100 residuals, so that one in fifty costs little.
NORMAL_P_VALUE = 0.02
FEWEST_RESIDUALS = 20
# Residuals this much smaller than their standard deviations are round-off.
SMALLEST_RESIDUALS = 1e-6
# Degrees of freedom from which on Student's distribution is the normal one.
NORMAL_DOF = 1e6
# With fewer Student's distribution has no variance.
LEAST_DOF = 3.0
# Scores over which moments are summed.
SCORES = np.linspace(-12.0, 12.0, 4801)


class ShapedDistribution(stats.rv_continuous):
    """Residuals of several outputs, each normal (Student) or of a shape of its own.

    Parameters
    ----------
    residuals : ResidualShape
        The shapes.

    Notes
    -----
    It has two shape parameters besides ``loc`` and ``scale``: the number of the output, and the
    degrees of freedom of Student's distribution, of which outputs of their own shape take no
    notice.
    """

    def __init__(self, residuals: ResidualShape, **parameters: Any) -> None:
        self.residuals = residuals
        parameters = {"name": "shaped", "shapes": "output, dof"} | parameters
        super().__init__(**parameters)

    def _updated_ctor_param(self) -> dict[str, Any]:
        """What scipy makes a copy from when it freezes a distribution."""
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
        """Residuals at scores that a quantile function of Student's distribution gives."""
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
    weight = np.exp(-0.5 * SCORES**2)
    weight /= weight.sum()
    e = shape.residuals(SCORES, k)
    mean = float(weight @ e)
    centred = e - mean
    second, third, fourth = (float(weight @ centred**power) for power in (2, 3, 4))
    return mean, second, third / second**1.5, fourth / second**2 - 3


def departs_from_normal(residuals: FloatArray) -> bool:
    """Whether residuals are clearly not normal, by their skewness and kurtosis."""
    spread = np.std(residuals)
    if len(residuals) < FEWEST_RESIDUALS or not spread > SMALLEST_RESIDUALS:
        return False
    return bool(stats.normaltest(residuals / spread).pvalue < NORMAL_P_VALUE)


def fit_shape(fit: Fit) -> ResidualShape | None:
    """The shape of a fit's left-out residuals; None without rows, or if all outputs are normal."""
    if fit.rows is None:
        return fit.kept_shape
    errors = scaled_residuals(fit, fit.rows)
    shaped = np.array([departs_from_normal(e) for e in errors])
    return residual_shape(errors, shaped) if np.any(shaped) else None


def without_rows(fit: Fit) -> Fit:
    """The same fit without its training rows, but with the shape of their residuals."""
    return replace(fit.compressed(), kept_shape=fit_shape(fit))


def observation_sd(fit: Fit, X: Array, variance: Variance) -> tuple[FloatArray, FloatArray]:
    """Standard deviation of a new observation, and its degrees of freedom, each (p, K).

    All of its variance rests on the residuals, but for what the members differ by.
    """
    total = variance.model + fit.noise_variance(X)
    dof = observation_dof(fit, total, variance.from_weights, fit.noise_dof)
    return np.sqrt(total), dof


def observation_dof(
    fit: Fit, total: FloatArray, weights: FloatArray, noise_dof: FloatArray
) -> FloatArray:
    """Degrees of freedom of the variance of a new observation, each (p, K).

    ``weights`` is what the members differ by, and the rest has the degrees of freedom of noise.
    """
    members = fit.ensemble.n_members
    dof = satterthwaite_dof(total - weights, weights, noise_dof, members - 1)
    return np.clip(dof, LEAST_DOF, NORMAL_DOF)


def predictive_distribution(fit: Fit, X: Array, *, drop_output: bool = False) -> Any:
    """Frozen distribution of new observations, with arrays (p, K), or (p,) of the only output."""
    variance = prediction_variance(fit, X)
    scale, dof = observation_sd(fit, X, variance)
    shape = fit_shape(fit)
    if shape is not None:
        scale = np.where(shape.shaped, prediction_moments(fit, X).sd.T, scale)
    # Where there is no noise at all, the smallest spread that the mean can resolve.
    resolved = np.maximum(np.abs(variance.mean), np.finfo(float).tiny / 1e-16)
    scale = np.maximum(scale, np.finfo(float).eps * resolved)
    output = np.broadcast_to(np.arange(dof.shape[1], dtype=float), dof.shape)
    arrays = output, dof, variance.mean, scale
    output, dof, mean, scale = (a[:, 0] if drop_output else a for a in arrays)
    if shape is None:
        return stats.t(dof, loc=mean, scale=scale)
    return ShapedDistribution(shape)(output, dof, loc=mean, scale=scale)
