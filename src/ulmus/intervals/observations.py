"""Prediction intervals and quantiles of y, on the response scale.

Those of a transformed target are those of the regression, transformed back: ranks and coverage do
not change. Counts and point masses have quantiles of their predictive distributions, whose levels
are calibrated so that the share of training rows that are covered, each predicted without it, is at
least the confidence level.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ulmus.core.arrays.backend import Array, FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.response.counts import Counts
from ulmus.core.response.family import LinkPrediction
from ulmus.core.response.log_mean import LogMean
from ulmus.core.response.point_mass import PointMass
from ulmus.core.response.transformed import Transformed
from ulmus.exceptions import InputError
from ulmus.intervals.bounds import quantile_rank
from ulmus.intervals.prediction import link_bounds, link_quantiles
from ulmus.intervals.response import calibrated_families, link_predictions
from ulmus.intervals.standard_errors import PredictionVariance, prediction_variance
from ulmus.messages import Message, Setting

# Shares of the error probability that are tried below an interval of least length.
TAIL_SHARES = np.linspace(0.0, 1.0, 21)
# Smallest probability of a tail of a distribution.
SMALLEST_TAIL = 1e-4
# Probability between a bound and the next value, so that a level at a step includes the step.
ROUND_OFF = 1e-12


def prediction_bounds(
    fit: Fit,
    X: Array,
    levels: Sequence[float],
    method: str,
    variance: PredictionVariance | None = None,
    tails: str = "equal",
    weight: FloatArray | None = None,
) -> FloatArray:
    """Intervals for new observations, shape (2, levels, p, K).

    ``variance`` is that of the predictions on the scale of the regression, if known.
    """
    families = fit.response
    if families is None:
        return link_bounds(fit, X, levels, method, variance, tails, weight)
    if tails == "shortest":
        return _shortest_bounds(fit, X, levels, weight)
    out = np.empty((2, len(levels), X.shape[0], len(families)))
    if any(isinstance(one, Transformed) for one in families):
        out[...] = link_bounds(fit, X, levels, method, variance, tails, weight)
    if all(isinstance(one, Transformed) for one in families):
        return _transformed_back(fit, out)
    _require_method(method)
    variance = prediction_variance(fit, X) if variance is None else variance
    links = link_predictions(fit, X, weight, variance.mean, variance.model)
    out = _transformed_back(fit, out)
    for k, family in enumerate(calibrated_families(fit)):
        if isinstance(family, LogMean):
            out[..., k] = calibrated_quantiles(family, links[k], levels, calibrate=method == "auto")
    return out


def response_quantiles(
    fit: Fit, X: Array, levels: Sequence[float], weight: FloatArray | None = None
) -> FloatArray:
    """Quantiles of a new observation, shape (levels, p, K)."""
    families = fit.response
    if families is None:
        return link_quantiles(fit, X, levels, weight)
    out = np.empty((len(levels), X.shape[0], len(families)))
    if any(isinstance(one, Transformed) for one in families):
        out[...] = link_quantiles(fit, X, levels, weight)
    out = _transformed_back(fit, out)
    if all(isinstance(one, Transformed) for one in families):
        return out
    variance = prediction_variance(fit, X)
    links = link_predictions(fit, X, weight, variance.mean, variance.model)
    for k, family in enumerate(families):
        if not isinstance(family, Transformed):
            out[..., k] = family.ppf(np.array(levels)[:, None], links[k])
    return out


def response_medians(fit: Fit, X: Array, weight: FloatArray | None = None) -> FloatArray:
    """Medians of a new observation, shape (p, K)."""
    return response_quantiles(fit, X, [0.5], weight)[0]


def _transformed_back(fit: Fit, values: FloatArray) -> FloatArray:
    """Values (..., K) of transformed outputs on the response scale; others unchanged."""
    assert fit.response is not None
    parts = [
        one.inverse(values[..., k]) if isinstance(one, Transformed) else values[..., k]
        for k, one in enumerate(fit.response)
    ]
    return np.stack(parts, axis=-1)


def calibrated_quantiles(
    family: PointMass | Counts, link: LinkPrediction, levels: Sequence[float], *, calibrate: bool
) -> FloatArray:
    """Equal-tailed quantiles of a predictive distribution, shape (2, levels, p).

    With ``calibrate``, their levels are those that the scores of the family reach.
    """
    bounds = []
    for level in levels:
        error = 1.0 - level
        if calibrate:
            found = calibrated_error(family.scores, level)
            # Intervals between whole numbers cover at least their level, also at single points.
            error = min(error, found) if family.is_discrete else found
        low = family.ppf(np.array(0.5 * error), link)
        bounds.append((low, family.ppf(np.array(min(1.0 - 0.5 * error + ROUND_OFF, 1.0)), link)))
    return np.swapaxes(np.array(bounds), 0, 1)


def calibrated_error(scores: FloatArray, level: float) -> float:
    """Error probability of equal tails that a share ``level`` of ascending scores reaches.

    With too few scores for a level, half of the smallest one, or the nominal error if that is less.
    """
    n = len(scores)
    rank = quantile_rank(n, 1.0 - level, upper=False)
    if rank >= 1:
        return float(min(scores[rank - 1], 1.0 - ROUND_OFF))
    least = 0.5 * float(scores[0]) if n else 1.0
    return min(least, 1.0 - level)


def _require_method(method: str) -> None:
    if method in ("auto", "gaussian"):
        return
    text = "transforms residuals, and counts or point masses have predictive distributions instead"
    remedies = (Setting("method", "auto"),)
    raise InputError(Message("discrete-method", text, "method", method, remedies))


def _shortest_bounds(
    fit: Fit, X: Array, levels: Sequence[float], weight: FloatArray | None
) -> FloatArray:
    """Intervals between quantiles whose distance is least at each point, (2, levels, p, K)."""
    bounds = []
    for level in levels:
        below = (1.0 - level) * _possible_shares(fit, level)
        ends = response_quantiles(fit, X, [*below, *(below + level)], weight)
        low, high = np.split(ends, 2)
        best = np.argmin(high - low, axis=0)[None]
        bounds.append([np.take_along_axis(part, best, axis=0)[0] for part in (low, high)])
    return np.swapaxes(np.array(bounds), 0, 1)


def _possible_shares(fit: Fit, level: float) -> FloatArray:
    """Shares of the error probability whose quantiles the rows determine; equal tails if none."""
    n = np.inf if fit.rows is None else float(np.sum(fit.rows.calibration_rows))
    least = 1.0 / (n + 1.0) if np.isfinite(n) else SMALLEST_TAIL
    below = (1.0 - level) * TAIL_SHARES
    possible = (below >= least) & (1.0 - level - below >= least)
    return TAIL_SHARES[possible] if np.any(possible) else np.array([0.5])
