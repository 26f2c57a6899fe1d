"""Predictions of the rows of an evaluation, and those of baselines, that do not use their y."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ulmus.core.arrays.backend import FloatArray, taken_rows
from ulmus.core.data.scaling import extrapolated_rows
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.query.leave_out import prediction_moments, row_sd, scaled_residuals
from ulmus.core.response import LogMean, Transformed
from ulmus.core.response.family import LinkPrediction
from ulmus.diagnostics.baselines import LinearBaseline, leave_one_out_mean, linear_baseline
from ulmus.diagnostics.calibration_data import (
    calibration_index,
    input_values,
    leave_one_out_data,
    point_leverage,
)
from ulmus.diagnostics.given_rows import GivenRows
from ulmus.diagnostics.leave_one_out import FamilyOfOutput, LeaveOneOutRows
from ulmus.diagnostics.summary_target import user_weight
from ulmus.diagnostics.target_text import family_of
from ulmus.intervals.distribution import predictive_distribution
from ulmus.intervals.observations import prediction_bounds
from ulmus.intervals.randomised_pit import middle_pit, quantile_residuals, randomised_pit
from ulmus.intervals.response import leave_one_out_links, observed_outputs
from ulmus.report.report_input import ReportInput

IntArray = npt.NDArray[np.intp]

# Multiplications that a linear model may cost: about half a minute.
MOST_WORK = 1e11

# Level of the prediction intervals.
LEVEL = 0.95
MEAN, LINEAR = "the mean", "a linear model"


class Predictions(NamedTuple):
    """Rows with their observations and predictions that do not depend on these."""

    position: IntArray  # (n,): position in the table of the report, else in that of the fit
    observed: FloatArray  # (n,): observations
    predicted: FloatArray  # (n,): predictions
    bounds: FloatArray  # (n, 2): their 95% prediction intervals
    sd: FloatArray  # (n,): standard deviations of their differences
    scaled: FloatArray  # (n,): standardised errors on the link scale, or quantile residuals
    size: FloatArray  # (n,): the same without random draws, by which outliers are found
    pit: FloatArray  # (n,): probability integral transform of the observations
    leverage: FloatArray  # (n,): leverage
    outside: npt.NDArray[np.bool_]  # (n,): rows far outside the range of the training inputs
    baselines: dict[str, FloatArray]  # (n,): predictions of simpler models

    def joined(self, other: Predictions) -> Predictions:
        """The rows of both, in the order of the table."""
        order = np.argsort(np.concatenate([self.position, other.position]), kind="stable")
        ours, others = ({**each._asdict(), **each.baselines} for each in (self, other))
        both = {
            name: np.concatenate([values, others[name]])[order]
            for name, values in ours.items()
            if name != "baselines"
        }
        baselines = {name: both.pop(name) for name in self.baselines}
        return Predictions(**both, baselines=baselines)


def predictions_of_given_rows(report_input: ReportInput, given: GivenRows) -> Predictions:
    """The judged rows of the report: those of the fit leave-one-out, the others as new rows."""
    is_trained, parts = given.judged_as_trained, []
    if np.any(is_trained) and given.trained is not None:
        judged = given.judged[is_trained]
        parts.append(predictions_of_training_rows(report_input.fit, given.trained[judged], judged))
    if not np.all(is_trained):
        parts.append(predictions_of_new_rows(report_input, given.judged[~is_trained]))
    return parts[0] if len(parts) == 1 else parts[0].joined(parts[1])


def predictions_of_training_rows(fit: Fit, index: IntArray, position: IntArray) -> Predictions:
    """Some calibration rows of the fit, each predicted without it."""
    rows = fit.rows
    assert rows is not None  # as training rows were found
    data, at = leave_one_out_data(fit, rows), calibration_index(rows, index)
    left_out = LeaveOneOutRows.of(fit, rows)
    of_used = np.searchsorted(np.flatnonzero(rows.data.used), index)
    pit, sd = data.pit[0, at], row_sd(fit, rows)[0, index]
    if fit.response is not None:
        sd = _response_sd(fit.response[0], leave_one_out_links(fit)[0])[at]
    scaled = size = scaled_residuals(fit, rows)[0, at]
    if isinstance(family_of(fit, 0), LogMean):
        middle = left_out.middle_pit[0, at]
        scaled, size = quantile_residuals(pit), quantile_residuals(middle)
    baselines = _leave_one_out_baselines(fit, rows)
    return Predictions(
        position=position,
        observed=observed_outputs(fit)[0, index],
        predicted=data.mean[0, at],
        bounds=left_out.bounds(0, LEVEL)[:, at].T,
        sd=sd,
        scaled=scaled,
        size=size,
        pit=pit,
        leverage=data.leverage[0, at],
        outside=np.zeros(len(index), dtype=bool),
        baselines={name: values[of_used] for name, values in baselines.items()},
    )


def _response_sd(family: FamilyOfOutput, link: LinkPrediction) -> FloatArray:
    """Standard deviations of observations around their leave-one-out predictions."""
    model = family.mean_slope(link) * link.model_sd
    return np.sqrt(family.noise_variance(link) + model**2)


def predictions_of_new_rows(report_input: ReportInput, position: IntArray) -> Predictions:
    """Rows of the report that are not part of the fit, as far as is known."""
    fit = report_input.fit
    assert report_input.y is not None  # as there are given rows
    table, observed = report_input.rows(position), report_input.y[position]
    points = taken_rows(report_input.points, position)
    weight = None if report_input.weight is None else report_input.weight[position]
    # A model of one output may have been fitted to a y with two axes.
    mean, sd = (
        np.asarray(a, dtype=float).reshape(len(position))
        for a in report_input.inference.predict(table, return_std=True, sample_weight=weight)
    )
    distribution = predictive_distribution(fit, points, weight)
    pit = randomised_pit(distribution, observed[:, None])[:, 0]
    scaled = size = (observed - mean) / np.where(sd > 0, sd, 1.0)
    if fit.response is not None:
        middle = middle_pit(distribution, observed[:, None])[:, 0]
        scaled, size = (
            _scaled_on_link(fit, points, observed, one, weight) for one in (pit, middle)
        )
    return Predictions(
        position=position,
        observed=observed,
        predicted=mean,
        bounds=prediction_bounds(fit, points, [LEVEL], "auto", weight=weight)[:, 0, :, 0].T,
        sd=sd,
        scaled=scaled,
        size=size,
        pit=pit,
        leverage=point_leverage(fit, points)[0],
        outside=extrapolated_rows(points, fit.scale),
        baselines=_baselines_at(fit, points),
    )


def _scaled_on_link(
    fit: Fit, points: Any, y: FloatArray, pit: FloatArray, weight: FloatArray | None
) -> FloatArray:
    """Standardised errors of transformed observations (n,); quantile residuals elsewhere."""
    family, quantiles = family_of(fit, 0), quantile_residuals(pit)
    if not isinstance(family, Transformed):
        return quantiles
    inside = (y >= family.least) & (y <= family.most)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = family.transform.forward(np.clip(y, family.least, family.most))
    moments = prediction_moments(fit, points, weight=weight)
    scaled = (z - moments.mean[0]) / moments.sd[0]
    return np.where(inside & np.isfinite(scaled), scaled, quantiles)


def _row_weights(fit: Fit, rows: TrainingRows) -> FloatArray | None:
    """Weights of the training rows of positive weight; None if all are one."""
    weight = user_weight(fit, rows)
    return None if weight is None else weight[rows.data.used]


def _linear_model(fit: Fit, rows: TrainingRows) -> LinearBaseline | None:
    """A linear model of the training rows; None if it takes too long."""
    (n, d), used = rows.data.X.shape, rows.data.used
    if n * d * min(n, d) > MOST_WORK:
        return None
    X = input_values(rows.data.X, np.arange(d))[used]
    return linear_baseline(X, observed_outputs(fit)[0, used], _row_weights(fit, rows))


def _leave_one_out_baselines(fit: Fit, rows: TrainingRows) -> dict[str, FloatArray]:
    """Leave-one-out predictions of the baselines."""
    observed = observed_outputs(fit)[0, rows.data.used]
    out = {MEAN: leave_one_out_mean(observed, _row_weights(fit, rows))}
    linear = _linear_model(fit, rows)
    return out if linear is None else out | {LINEAR: linear.loo_predictions}


def _baselines_at(fit: Fit, points: Any) -> dict[str, FloatArray]:
    """Predictions of baselines of the training rows at new points."""
    rows = fit.rows
    if rows is None:
        return {}
    observed = observed_outputs(fit)[0, rows.data.used]
    mean = np.average(observed, weights=_row_weights(fit, rows))
    out, linear = {MEAN: np.full(points.shape[0], mean)}, _linear_model(fit, rows)
    if linear is not None:
        out[LINEAR] = linear.predict(input_values(points, np.arange(points.shape[1])))
    return out
