"""Means, variances and intervals on the response scale, that of y.

Where the regression is that of y itself, they are those of the fit. Else a response family leads
from the link scale to y (:mod:`ulmus.core.response`). Results are NumPy arrays (p, K) at p points
for K outputs, and bounds (2, levels, p, K).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.query.leave_out import out_of_fold_residuals, row_sd
from ulmus.core.response import LogMean, ResponseFamilies
from ulmus.core.response.family import LinkPrediction, ResponseFamily, tail_scores, variances
from ulmus.core.response.transformed import Transformed
from ulmus.intervals.confidence import ErrorBars
from ulmus.intervals.standard_errors import PredictionVariance, prediction_variance

# Slopes whose square is smaller than this share of the family's variance are zero.
SMALLEST_SLOPE = 1e-12
# Smallest variance of a mean, relative to the part of the prediction.
LEAST_SHARE = 0.1


class ResponsePrediction(NamedTuple):
    """Predictions of y and the components of their variance, each (p, K)."""

    mean: FloatArray  # predictions
    model: FloatArray  # their variance
    noise: FloatArray  # variance of an observation around its mean
    from_weights: FloatArray  # the part of ``model`` due to the random hidden weights


def link_predictions(
    fit: Fit,
    X: Array,
    weight: FloatArray | None = None,
    mean: FloatArray | None = None,
    model: FloatArray | None = None,
) -> list[LinkPrediction]:
    """Predictions of each output on the link scale, without their distributions.

    Given means and variances (p, K) are used; without variances the standard error is zero.
    """
    mean = fit.mean(X).T if mean is None else mean
    se = np.zeros_like(mean) if model is None else np.sqrt(model)
    sd = np.sqrt(fit.noise_variance(X, weight)) if needs_noise(fit) else np.zeros_like(mean)
    return [LinkPrediction(mean[:, k], sd[:, k], se[:, k], None) for k in range(mean.shape[1])]


def needs_noise(fit: Fit) -> bool:
    """Whether the mean of y depends on the noise of the link scale."""
    return any(isinstance(one, Transformed) for one in fit.response or ())


def response_mean(fit: Fit, X: Array, weight: FloatArray | None = None) -> FloatArray:
    """Predicted mean of y."""
    if fit.response is None:
        return fit.mean(X).T
    links = link_predictions(fit, X, weight)
    return by_output(fit.response, links, lambda family, link: family.mean(link))


def response_prediction(
    fit: Fit,
    X: Array,
    estimate: str | None = None,
    weight: FloatArray | None = None,
    variance: PredictionVariance | None = None,
) -> ResponsePrediction:
    """Predicted mean of y, and the components of its variance.

    ``variance`` is that on the scale of the regression, if known.
    """
    variance = prediction_variance(fit, X, estimate) if variance is None else variance
    if fit.response is None:
        noise = fit.noise_variance(X, weight)
        return ResponsePrediction(variance.mean, variance.model, noise, variance.redrawing)
    links = link_predictions(fit, X, weight, variance.mean, variance.model)
    return predicted_response(fit.response, links, variance)


def predicted_response(
    families: Sequence[ResponseFamily],
    links: Sequence[LinkPrediction],
    variance: PredictionVariance,
) -> ResponsePrediction:
    """The same from predictions on the link scale: variances by the delta method."""
    mean = by_output(families, links, lambda family, link: family.mean(link))
    slope = by_output(families, links, lambda family, link: family.mean_slope(link))
    noise = by_output(families, links, lambda family, link: family.noise_variance(link))
    square = slope**2
    model = total_variance(square * variance.model, family_variance(families, links))
    return ResponsePrediction(mean, model, noise, square * variance.redrawing)


def total_variance(of_prediction: FloatArray, of_family: FloatArray) -> FloatArray:
    """Sum of the variances by the prediction and by the family, which may be negative.

    It is at least a share of the first, as both are estimates.
    """
    return np.maximum(of_prediction + of_family, LEAST_SHARE * of_prediction)


def family_variance(
    families: Sequence[ResponseFamily], links: Sequence[LinkPrediction]
) -> FloatArray:
    """Variance of the means that comes from estimating the families."""
    return by_output(families, links, lambda one, link: variances(one.influence(link)))


def errors_of_predictions(family: ResponseFamily, link: LinkPrediction) -> FloatArray:
    """Errors (r, p) of predictions that change the mean as errors of the family do."""
    error, slope = family.influence(link), family.mean_slope(link)
    steep = slope**2 > SMALLEST_SLOPE * np.sum(error**2, axis=0)
    return np.divide(error, slope, out=np.zeros_like(error), where=steep)


def by_output(
    families: Sequence[ResponseFamily],
    links: Sequence[LinkPrediction],
    function: Callable[[Any, LinkPrediction], FloatArray],
) -> FloatArray:
    """Results of a function of the family and the predictions of each output, (p, K)."""
    pairs = zip(families, links, strict=True)
    return np.stack([function(family, link) for family, link in pairs], axis=-1)


# ------------------------------------------------------------ leave-one-out


def leave_one_out_links(fit: Fit) -> list[LinkPrediction]:
    """Predictions of the calibration rows of a fit in memory, each without the row.

    Rows whose map was optimised on few rows are predicted by maps without their fold.
    """
    rows = _rows(fit)
    used, residual = rows.calibration_rows, out_of_fold_residuals(fit, rows)
    variance = row_sd(fit, rows)[:, used] ** 2
    links = _without_rows(fit, residual[:, used], used)
    return [
        link._replace(model_sd=np.sqrt(np.maximum(variance[k] - link.noise_sd**2, 0.0)))
        for k, link in enumerate(links)
    ]


def leave_one_out_means(fit: Fit) -> FloatArray:
    """Predicted means of all rows of a fit in memory, each without the row, (K, n)."""
    rows = _rows(fit)
    links = _without_rows(fit, rows.residuals(fit.ensemble.unit), np.ones(rows.data.n_rows, bool))
    assert fit.response is not None
    return by_output(fit.response, links, lambda family, link: family.mean(link)).T


def _rows(fit: Fit) -> TrainingRows:
    assert fit.rows is not None  # the caller's condition
    return fit.rows


def _without_rows(fit: Fit, residual: FloatArray, used: np.ndarray) -> list[LinkPrediction]:
    """Predictions of some rows from their leave-one-out residuals (K, n)."""
    rows = _rows(fit)
    root = rows.data.root_weight
    weight = 1.0 if root is None else np.where(root > 0, root, 1.0)[used] ** 2
    noise = np.sqrt(rows.noise[:, used] / weight) * fit.ensemble.unit[:, None]
    mean, none = rows.data.y[:, used] - residual, np.zeros(residual.shape[1])
    return [LinkPrediction(mean[k], noise[k], none, None) for k in range(len(mean))]


def calibrated_families(fit: Fit) -> ResponseFamilies:
    """The families, with scores of rows that are predicted by maps without their fold."""
    assert fit.response is not None
    if fit.rows is None or not fit.folded:
        return fit.response
    y, links = observed_outputs(fit)[:, fit.rows.calibration_rows], leave_one_out_links(fit)
    return tuple(
        replace(family, scores=tail_scores(family, y[k], links[k]))
        if isinstance(family, LogMean)
        else family
        for k, family in enumerate(fit.response)
    )


def observed_outputs(fit: Fit) -> FloatArray:
    """Outputs of the rows of a fit in memory as the user gave them, (K, n)."""
    rows = _rows(fit)
    return rows.data.y if rows.observed is None else rows.observed


# ------------------------------------------------------------ confidence intervals


def response_bounds(
    fit: Fit, X: Array, bars: ErrorBars, levels: Sequence[float], method: str = "auto"
) -> FloatArray:
    """Confidence intervals for the mean of y, from error bars on the link scale.

    The mean increases with the prediction, so that its bounds are those of the prediction, widened
    by the errors of the family.
    """
    if fit.response is None:
        return bars.bounds(levels, method)
    families, links = fit.response, link_predictions(fit, X, mean=bars.center)
    added = by_output(families, links, lambda *pair: variances(errors_of_predictions(*pair)))
    wider = bars._replace(variance=total_variance(bars.variance, added))
    bounds = wider.bounds(levels, method)
    out = np.empty_like(bounds)
    for k, (family, link) in enumerate(zip(families, links, strict=True)):
        for end in np.ndindex(bounds.shape[:2]):
            out[(*end, slice(None), k)] = family.mean(
                link._replace(mean=bounds[(*end, slice(None), k)])
            )
    return np.sort(out, axis=0)
