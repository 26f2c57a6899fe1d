"""Evaluation of the model on rows that it was not fitted to, or leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from ulmus.core.arrays.backend import FloatArray, taken_rows
from ulmus.core.data.scaling import extrapolated_rows
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.query.leave_out import row_sd, scaled_residuals
from ulmus.diagnostics import DiagnosticReport, diagnostic_report
from ulmus.diagnostics.baselines import LinearBaseline, leave_one_out_mean, linear_baseline
from ulmus.diagnostics.calibration_data import (
    calibration_index,
    input_values,
    leave_one_out_data,
    point_leverage,
)
from ulmus.diagnostics.given_rows import GivenRows
from ulmus.intervals.distribution import predictive_distribution
from ulmus.intervals.prediction import prediction_bounds
from ulmus.report.report_input import NOTHING, ReportInput, random_rows

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


class Predictions(NamedTuple):
    """Rows with their observations and predictions that do not depend on these."""

    position: IntArray  # (n,): position in the table of the report, else in that of the fit
    observed: FloatArray  # (n,): observations
    predicted: FloatArray  # (n,): predictions
    sd: FloatArray  # (n,): standard deviations of their differences
    scaled: FloatArray  # (n,): standardised errors
    pit: FloatArray  # (n,): probability integral transform of the observations
    leverage: FloatArray  # (n,): leverage
    outside: npt.NDArray[np.bool_]  # (n,): rows far outside the range of the training inputs
    weight: FloatArray  # (n,): weights
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


def evaluate(report_input: ReportInput) -> Evaluation | None:
    """The evaluation of the model; None without observations."""
    if report_input.evaluated_on == NOTHING:
        return None
    fit, given, names = report_input.fit, report_input.given, report_input.encoded_names
    if given is None:
        assert fit.rows is not None  # as evaluated_on is LEAVE_ONE_OUT
        index = np.flatnonzero(fit.rows.calibration_rows)
        found, points, of_rows = _of_training_rows(fit, index, index), fit.rows.data.X, len(index)
        labels: list[Any] = list(range(fit.rows.data.n_rows))
        report = diagnostic_report(fit, names=names)
    else:
        of_rows, labels = len(given.judged), list(report_input.table.index)
        if given.n_new:
            given = given._replace(judged=random_rows(given.judged, MOST_NEW))
        found, points = _of_given_rows(report_input, given), report_input.points
        some = given.judged
        y = np.asarray(report_input.y)[None, some]
        weight = None if report_input.weight is None else report_input.weight[some]
        report = diagnostic_report(fit, taken_rows(points, some), y, names=names, weight=weight)
    return _evaluation(fit, found, points, labels, report, of_rows)


def _evaluation(
    fit: Fit, found: Predictions, points: Any, labels: list[Any], report: Any, of_rows: int
) -> Evaluation:
    """The evaluation of predictions for some of the points."""
    shown = random_rows(np.arange(len(found.position)), MOST_DRAWN)
    drawn = taken_rows(points, found.position[shown])
    weight = found.weight[shown] if fit.weights_differ else None
    scores, gains = _compared(found.observed, {MODEL: found.predicted} | found.baselines)
    return Evaluation(
        labels=tuple(str(labels[i]) for i in found.position),
        observed=found.observed,
        predicted=found.predicted,
        sd=found.sd,
        scaled=found.scaled,
        pit=found.pit,
        leverage=found.leverage,
        outside=found.outside,
        drawn=shown,
        bounds=prediction_bounds(fit, drawn, [LEVEL], "auto", weight=weight)[:, 0, :, 0],
        scores=scores,
        gains=gains,
        report=report,
        of_rows=of_rows,
    )


def _of_given_rows(report_input: ReportInput, given: GivenRows) -> Predictions:
    """The judged rows of the report: those of the fit leave-one-out, the others as new rows."""
    is_trained, parts = given.judged_as_trained, []
    if np.any(is_trained) and given.trained is not None:
        judged = given.judged[is_trained]
        parts.append(_of_training_rows(report_input.fit, given.trained[judged], judged))
    if not np.all(is_trained):
        parts.append(_of_new_rows(report_input, given.judged[~is_trained]))
    return parts[0] if len(parts) == 1 else parts[0].joined(parts[1])


def _of_training_rows(fit: Fit, index: IntArray, position: IntArray) -> Predictions:
    """Some calibration rows of the fit, each predicted without it."""
    rows = fit.rows
    assert rows is not None  # as training rows were found
    data, at = leave_one_out_data(fit, rows), calibration_index(rows, index)
    root = rows.data.root_weight
    of_used = np.searchsorted(np.flatnonzero(rows.data.used), index)
    return Predictions(
        position=position,
        observed=rows.data.y[0, index],
        predicted=data.mean[0, at],
        sd=row_sd(fit, rows)[0, index],
        scaled=scaled_residuals(fit, rows)[0, at],
        pit=data.pit[0, at],
        leverage=data.leverage[0, at],
        outside=np.zeros(len(index), dtype=bool),
        weight=np.ones(len(index)) if root is None else root[index] ** 2,
        baselines={name: v[of_used] for name, v in _leave_one_out_baselines(rows).items()},
    )


def _of_new_rows(report_input: ReportInput, position: IntArray) -> Predictions:
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
    return Predictions(
        position=position,
        observed=observed,
        predicted=mean,
        sd=sd,
        scaled=(observed - mean) / np.where(sd > 0, sd, 1.0),
        pit=np.asarray(predictive_distribution(fit, points, weight).cdf(observed[:, None]))[:, 0],
        leverage=point_leverage(fit, points)[0],
        outside=extrapolated_rows(points, fit.scale),
        weight=np.full(len(position), fit.mean_weight) if weight is None else weight,
        baselines=_baselines_at(fit.rows, points),
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
