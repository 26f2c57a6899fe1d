"""Evaluation of the model on rows that it was not fitted to, or leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from ulmus.core.arrays.backend import FloatArray, taken_rows
from ulmus.core.fit.fit import Fit
from ulmus.diagnostics import DiagnosticReport, diagnostic_report
from ulmus.diagnostics.leave_one_out import has_atoms
from ulmus.diagnostics.target_text import family_of, residual_name
from ulmus.plot._style import shortened
from ulmus.report.predictions import (
    LEVEL,
    Predictions,
    predictions_of_given_rows,
    predictions_of_training_rows,
)
from ulmus.report.report_input import NOTHING, ReportInput, random_rows

IntArray = npt.NDArray[np.intp]

# New rows that are evaluated, and rows that are drawn.
MOST_NEW, MOST_DRAWN = 2000, 500

MODEL = "this model"
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
    bounds: FloatArray  # (n, 2): their 95% prediction intervals
    sd: FloatArray  # (n,): standard deviations of their differences
    scaled: FloatArray  # (n,): standardised errors, or quantile residuals
    size: FloatArray  # (n,): the same without random draws, by which outliers are found
    pit: FloatArray  # (n,): probability integral transform of the observations
    leverage: FloatArray  # (n,): leverage of the rows
    outside: npt.NDArray[np.bool_]  # (n,): rows far outside the range of the training inputs
    drawn: IntArray  # rows that are drawn: a sample of those that are not far outside
    scores: tuple[Score, ...]  # of the model, followed by the baselines
    # Reduction of the mean squared error relative to a baseline, in standard errors.
    gains: dict[str, float]
    report: DiagnosticReport  # diagnostics
    of_rows: int  # number of rows that these were sampled from
    randomised: bool  # whether values of positive probability have random PIT values
    residual_name: str = "standardised error"  # what ``scaled`` is called

    @property
    def inside(self) -> Score | None:
        """Score without rows far outside; None if there are no such rows, or no others."""
        if not np.any(self.outside) or np.all(self.outside):
            return None
        return _model_score(INSIDE, self.observed[~self.outside], self.predicted[~self.outside])

    @property
    def half_width(self) -> float:
        """Half the median width of the 95% prediction intervals."""
        return float(np.median(np.diff(self.bounds, axis=1))) / 2

    @property
    def coverage(self) -> float:
        """Coverage of the 95% intervals of all rows."""
        rows = self.report.coverage
        return next(r.coverage for r in rows if r.group == "all" and r.level == LEVEL)


def evaluate(report_input: ReportInput, target_name: str) -> Evaluation | None:
    """The evaluation of the model; None without observations."""
    if report_input.evaluated_on == NOTHING:
        return None
    fit, given, names = report_input.fit, report_input.given, report_input.encoded_names
    if given is None:
        assert fit.rows is not None  # as evaluated_on is LEAVE_ONE_OUT
        index = np.flatnonzero(fit.rows.calibration_rows)
        found, of_rows = predictions_of_training_rows(fit, index, index), len(index)
        points = fit.rows.data.X
        labels: list[Any] = list(range(fit.rows.data.n_rows))
        report = diagnostic_report(fit, names=names)
    else:
        of_rows, labels = len(given.judged), list(report_input.table.index)
        if given.n_new:
            given = given._replace(judged=random_rows(given.judged, MOST_NEW))
        found, points = predictions_of_given_rows(report_input, given), report_input.points
        some = given.judged
        y = np.asarray(report_input.y)[None, some]
        weight = None if report_input.weight is None else report_input.weight[some]
        report = diagnostic_report(fit, taken_rows(points, some), y, names=names, weight=weight)
    evaluation = _evaluation(fit, found, labels, report, of_rows)
    name = residual_name(family_of(fit, 0), shortened(target_name))
    return replace(evaluation, residual_name=name)


def _evaluation(
    fit: Fit, found: Predictions, labels: list[Any], report: Any, of_rows: int
) -> Evaluation:
    """The evaluation of predictions of some rows."""
    among = np.flatnonzero(~found.outside)
    among = among if len(among) else np.arange(len(found.outside))
    scores, gains = _compared(found.observed, {MODEL: found.predicted} | found.baselines)
    return Evaluation(
        labels=tuple(str(labels[i]) for i in found.position),
        observed=found.observed,
        predicted=found.predicted,
        bounds=found.bounds,
        sd=found.sd,
        scaled=found.scaled,
        size=found.size,
        pit=found.pit,
        leverage=found.leverage,
        outside=found.outside,
        drawn=random_rows(among, MOST_DRAWN),
        scores=scores,
        gains=gains,
        report=report,
        of_rows=of_rows,
        randomised=fit.response is not None and has_atoms(fit.response[0], found.observed),
    )


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
