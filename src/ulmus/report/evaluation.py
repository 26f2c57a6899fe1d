"""Evaluation of the model on rows that it was not fitted to, or leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from ulmus.core.arrays.backend import FloatArray, taken_rows
from ulmus.core.data.scaling import extrapolated_rows
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.query.leave_out import row_sd, scaled_residuals
from ulmus.diagnostics import DiagnosticReport, diagnostic_report
from ulmus.diagnostics.baselines import LinearBaseline, leave_one_out_mean, linear_baseline
from ulmus.diagnostics.calibration_data import input_values, leave_one_out_data, point_leverage
from ulmus.intervals.distribution import predictive_distribution
from ulmus.intervals.prediction import prediction_bounds
from ulmus.report.report_input import LEAVE_ONE_OUT, NOTHING, ReportInput, random_rows

IntArray = npt.NDArray[np.intp]

LEVEL = 0.95
# New rows that are evaluated, and rows that are drawn.
MOST_NEW, MOST_DRAWN = 2000, 2000
# Multiplications that a linear model may cost: about half a minute.
MOST_WORK = 1e11

MODEL, MEAN, LINEAR = "this model", "the mean", "a linear model"
INSIDE = "this model, without rows outside the training range"


@dataclass(frozen=True)
class Score:
    """Accuracy of a model."""

    name: str
    rmse: float
    mae: float
    r2: float


@dataclass(frozen=True)
class Evaluation:
    """Predictions, errors, scores and diagnostics on the rows of an evaluation."""

    labels: tuple[str, ...]  # names of the rows
    observed: FloatArray  # (n,): observations
    predicted: FloatArray  # (n,): predictions
    sd: FloatArray  # (n,): standard deviations of their differences
    scaled: FloatArray  # (n,): standardised errors
    pit: FloatArray  # (n,): probability integral transform of the observations
    leverage: FloatArray  # (n,): leverage of the rows
    outside: npt.NDArray[np.bool_]  # (n,): rows far outside the range of the training inputs
    drawn: IntArray  # rows that are drawn
    bounds: FloatArray  # (2, drawn): their 95% prediction intervals
    scores: tuple[Score, ...]  # of the model, followed by the baselines
    # Reduction of the mean squared error relative to a baseline, in standard errors.
    gains: dict[str, float]
    report: DiagnosticReport  # diagnostics
    of_rows: int  # number of rows that these were sampled from

    @property
    def inside(self) -> Score | None:
        """Score without rows far outside; None if there are no such rows, or no others."""
        if not np.any(self.outside) or np.all(self.outside):
            return None
        return _model_score(INSIDE, self.observed[~self.outside], self.predicted[~self.outside])

    @property
    def coverage(self) -> float:
        """Coverage of the 95% intervals of all rows."""
        rows = self.report.coverage
        return next(r.coverage for r in rows if r.group == "all" and r.level == LEVEL)


def evaluate(report_input: ReportInput) -> Evaluation | None:
    """The evaluation of the model; None without observations."""
    if report_input.evaluated_on == NOTHING:
        return None
    if report_input.evaluated_on == LEAVE_ONE_OUT:
        return _leave_one_out_evaluation(report_input)
    return _new_rows_evaluation(report_input)


def _leave_one_out_evaluation(report_input: ReportInput) -> Evaluation:
    """The calibration rows of the fit, each predicted without it."""
    fit, rows = report_input.fit, report_input.fit.rows
    assert rows is not None  # as evaluated_on is LEAVE_ONE_OUT
    data = leave_one_out_data(fit, rows)
    index = np.flatnonzero(rows.calibration_rows)
    observed = rows.data.y[0, index]
    labels = (
        list(report_input.table.index) if report_input.is_training else range(rows.data.y.shape[1])
    )
    shown = random_rows(np.arange(len(index)), MOST_DRAWN)
    baselines = {}
    for name, prediction in _leave_one_out_baselines(rows).items():
        baselines[name] = prediction[np.searchsorted(np.flatnonzero(rows.data.used), index)]
    points, weight = taken_rows(rows.data.X, index[shown]), rows.data.root_weight
    weight = None if weight is None else weight[index[shown]] ** 2
    scores, gains = _compared(observed, {MODEL: data.mean[0]} | baselines)
    return Evaluation(
        labels=tuple(str(labels[i]) for i in index),
        observed=observed,
        predicted=data.mean[0],
        sd=row_sd(fit, rows)[0, index],
        scaled=scaled_residuals(fit, rows)[0],
        pit=data.pit[0],
        leverage=data.leverage[0],
        outside=np.zeros(len(index), dtype=bool),
        drawn=shown,
        bounds=prediction_bounds(fit, points, [LEVEL], "auto", weight=weight)[:, 0, :, 0],
        scores=scores,
        gains=gains,
        report=diagnostic_report(fit, names=report_input.encoded_names),
        of_rows=len(index),
    )


def _new_rows_evaluation(report_input: ReportInput) -> Evaluation:
    """Rows that are not part of the fit."""
    fit, index = report_input.fit, random_rows(np.arange(len(report_input.table)), MOST_NEW)
    assert report_input.y is not None  # as evaluated_on is NEW
    table, observed = report_input.rows(index), report_input.y[index]
    weight = None if report_input.weight is None else report_input.weight[index]
    points = report_input.inference._table_points(table)
    # A model of one output may have been fitted to a y with two axes.
    mean, sd = (
        np.asarray(a, dtype=float).reshape(len(index))
        for a in report_input.inference.predict(table, return_std=True, sample_weight=weight)
    )
    shown = random_rows(np.arange(len(index)), MOST_DRAWN)
    own = None if weight is None else weight[shown]
    drawn = taken_rows(points, shown)
    scores, gains = _compared(observed, {MODEL: mean} | _baselines_at(fit.rows, points))
    return Evaluation(
        labels=tuple(str(report_input.table.index[i]) for i in index),
        observed=observed,
        predicted=mean,
        sd=sd,
        scaled=(observed - mean) / np.where(sd > 0, sd, 1.0),
        pit=np.asarray(predictive_distribution(fit, points, weight).cdf(observed[:, None]))[:, 0],
        leverage=point_leverage(fit, points)[0],
        outside=extrapolated_rows(points, fit.scale),
        drawn=shown,
        bounds=prediction_bounds(fit, drawn, [LEVEL], "auto", weight=own)[:, 0, :, 0],
        scores=scores,
        gains=gains,
        report=diagnostic_report(
            fit, points, observed[None, :], names=report_input.encoded_names, weight=weight
        ),
        of_rows=len(report_input.table),
    )


def _row_weights(rows: TrainingRows) -> FloatArray | None:
    """Weights of the training rows of positive weight; None if all are one."""
    root = rows.data.root_weight
    return None if root is None else root[rows.data.used] ** 2


def _linear_model(rows: TrainingRows) -> LinearBaseline | None:
    """A linear model of the training rows; None if it takes too long."""
    (n, d), used = rows.data.X.shape, rows.data.used
    if n * d * min(n, d) > MOST_WORK:
        return None
    X = input_values(rows.data.X, np.arange(d))[used]
    return linear_baseline(X, rows.data.y[0, used], _row_weights(rows))


def _leave_one_out_baselines(rows: TrainingRows) -> dict[str, FloatArray]:
    """Leave-one-out predictions of the baselines."""
    out = {MEAN: leave_one_out_mean(rows.data.y[0, rows.data.used], _row_weights(rows))}
    linear = _linear_model(rows)
    return out if linear is None else out | {LINEAR: linear.loo_predictions}


def _baselines_at(rows: TrainingRows | None, points: Any) -> dict[str, FloatArray]:
    """Predictions of baselines of the training rows at new points."""
    if rows is None:
        return {}
    mean = np.average(rows.data.y[0, rows.data.used], weights=_row_weights(rows))
    out, linear = {MEAN: np.full(points.shape[0], mean)}, _linear_model(rows)
    if linear is not None:
        out[LINEAR] = linear.predict(input_values(points, np.arange(points.shape[1])))
    return out


def _model_score(name: str, y: FloatArray, prediction: FloatArray) -> Score:
    r2 = float(r2_score(y, prediction)) if np.ptp(y) > 0 else float("nan")
    rmse, mae = root_mean_squared_error(y, prediction), mean_absolute_error(y, prediction)
    return Score(name, float(rmse), float(mae), r2)


def _compared(
    y: FloatArray, predictions: dict[str, FloatArray]
) -> tuple[tuple[Score, ...], dict[str, float]]:
    """Scores of all models, and the gain of the first over each of the others."""
    scores = tuple(_model_score(name, y, prediction) for name, prediction in predictions.items())
    own, *_ = predictions.values()
    gains = {}
    for name, prediction in list(predictions.items())[1:]:
        gain_per_row = (y - prediction) ** 2 - (y - own) ** 2
        error = np.std(gain_per_row) / np.sqrt(len(gain_per_row))
        gains[name] = float(np.mean(gain_per_row) / error) if error > 0 else 0.0
    return scores, gains
