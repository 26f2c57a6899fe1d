"""Rows that judge the model: what was said about each of them before its y was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from ulmus.core.arrays.backend import taken_rows
from ulmus.core.data.feature_scaling import rows_outside
from ulmus.core.fit.training_data import TrainingRows
from ulmus.core.query.leave_out import row_sd, scaled_residuals
from ulmus.diagnostics import DiagnosticReport, diagnostic_report
from ulmus.diagnostics.baselines import left_out_mean, linear_baseline
from ulmus.diagnostics.calibration_data import input_values, left_out_evidence, point_leverage
from ulmus.intervals.distribution import predictive_distribution
from ulmus.intervals.prediction import prediction_bounds
from ulmus.report.subject import LEFT_OUT, NOTHING, Subject, drawn

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

LEVEL = 0.95
# New rows that are looked at, and rows that are drawn.
MOST_NEW, MOST_DRAWN = 2000, 2000
# Multiplications that a linear model may cost: about half a minute.
MOST_WORK = 1e11

MODEL, MEAN, LINEAR = "this model", "the mean", "a linear model"
INSIDE = "this model, without rows outside the training range"


@dataclass(frozen=True)
class Score:
    """How far predictions of a model are from what was observed."""

    name: str
    rmse: float
    mae: float
    r2: float


@dataclass(frozen=True)
class Judgement:
    """What rows say that the model had not seen, or had to predict without them.

    Parameters
    ----------
    labels : tuple of str
        Names of the rows.
    observed, predicted, sd : ndarray of shape (n,)
        What was observed, what had been predicted, and the standard deviation of that error.
    scaled : ndarray of shape (n,)
        Errors in units of their standard deviations.
    pit : ndarray of shape (n,)
        Predicted distribution function at what was observed.
    leverage : ndarray of shape (n,)
        Leverage of the rows.
    outside : ndarray of bool, shape (n,)
        Rows far outside the range of the training inputs.
    drawn : ndarray of int
        Rows that are drawn.
    bounds : ndarray of shape (2, drawn)
        Their 95% prediction intervals.
    scores : tuple of Score
        The model first, then those it is compared with.
    gains : dict of str to float
        Mean of squared errors that the model saves against another one, in standard errors.
    report : DiagnosticReport
        All findings of ``check``.
    of_rows : int
        Number of rows that these were drawn from.
    """

    labels: tuple[str, ...]
    observed: FloatArray
    predicted: FloatArray
    sd: FloatArray
    scaled: FloatArray
    pit: FloatArray
    leverage: FloatArray
    outside: npt.NDArray[np.bool_]
    drawn: IntArray
    bounds: FloatArray
    scores: tuple[Score, ...]
    gains: dict[str, float]
    report: DiagnosticReport
    of_rows: int

    @property
    def inside(self) -> Score | None:
        """Score of the model without rows far outside; None if there are no such rows, or only."""
        if not np.any(self.outside) or np.all(self.outside):
            return None
        return _score(INSIDE, self.observed[~self.outside], self.predicted[~self.outside])

    @property
    def coverage(self) -> float:
        """Share of all rows that their 95% intervals hold."""
        rows = self.report.coverage
        return next(r.coverage for r in rows if r.group == "all" and r.level == LEVEL)


def judgement(subject: Subject) -> Judgement | None:
    """What the rows of a report say about its model; None where there is nothing to compare."""
    if subject.judged_by == NOTHING:
        return None
    return _left_out(subject) if subject.judged_by == LEFT_OUT else _new(subject)


def _left_out(subject: Subject) -> Judgement:
    """Training rows, each predicted without it."""
    fit, rows = subject.fit, subject.fit.rows
    assert rows is not None  # otherwise new rows judge, or nothing
    evidence = left_out_evidence(fit, rows)
    locations = np.flatnonzero(rows.judges)
    observed = rows.data.y[0, locations]
    labels = list(subject.table.index) if subject.is_training else range(rows.data.y.shape[1])
    shown = drawn(np.arange(len(locations)), MOST_DRAWN)
    others = {}
    for name, prediction in _left_out_others(rows).items():
        others[name] = prediction[np.searchsorted(np.flatnonzero(rows.data.used), locations)]
    points = taken_rows(rows.data.X, locations[shown])
    scores, gains = _compared(observed, {MODEL: evidence.mean[0]} | others)
    return Judgement(
        labels=tuple(str(labels[i]) for i in locations),
        observed=observed,
        predicted=evidence.mean[0],
        sd=row_sd(fit, rows)[0, locations],
        scaled=scaled_residuals(fit, rows)[0],
        pit=evidence.pit[0],
        leverage=evidence.leverage[0],
        outside=np.zeros(len(locations), dtype=bool),
        drawn=shown,
        bounds=prediction_bounds(fit, points, [LEVEL], "auto")[:, 0, :, 0],
        scores=scores,
        gains=gains,
        report=diagnostic_report(fit, names=subject.encoded_names),
        of_rows=len(locations),
    )


def _new(subject: Subject) -> Judgement:
    """Rows that the fit has not seen."""
    fit, locations = subject.fit, drawn(np.arange(len(subject.table)), MOST_NEW)
    assert subject.y is not None  # otherwise left-out rows judge, or nothing
    given, observed = subject.rows(locations), subject.y[locations]
    points = subject.asked._points_of(given)
    # A model of one output may have been fitted to a y with two axes.
    mean, sd = (
        np.asarray(a, dtype=float).reshape(len(locations))
        for a in subject.asked.predict(given, return_std=True)
    )
    shown = drawn(np.arange(len(locations)), MOST_DRAWN)
    scores, gains = _compared(observed, {MODEL: mean} | _others_at(fit.rows, points))
    return Judgement(
        labels=tuple(str(subject.table.index[i]) for i in locations),
        observed=observed,
        predicted=mean,
        sd=sd,
        scaled=(observed - mean) / np.where(sd > 0, sd, 1.0),
        pit=np.asarray(predictive_distribution(fit, points).cdf(observed[:, None]))[:, 0],
        leverage=point_leverage(fit, points)[0],
        outside=rows_outside(points, fit.scale),
        drawn=shown,
        bounds=prediction_bounds(fit, taken_rows(points, shown), [LEVEL], "auto")[:, 0, :, 0],
        scores=scores,
        gains=gains,
        report=diagnostic_report(fit, points, observed[None, :], names=subject.encoded_names),
        of_rows=len(subject.table),
    )


def _training(rows: TrainingRows) -> tuple[Any, FloatArray, FloatArray | None]:
    """Inputs, outputs and weights of the training rows of positive weight."""
    used, root = rows.data.used, rows.data.root_weight
    X = input_values(rows.data.X, np.arange(rows.data.X.shape[1]))[used]
    return X, rows.data.y[0, used], None if root is None else root[used] ** 2


def _linear_is_cheap(rows: TrainingRows) -> bool:
    n, d = rows.data.X.shape
    return n * d * min(n, d) <= MOST_WORK


def _left_out_others(rows: TrainingRows) -> dict[str, FloatArray]:
    """What simpler models predict for each training row without it."""
    if not _linear_is_cheap(rows):
        y, root = rows.data.y[0, rows.data.used], rows.data.root_weight
        return {MEAN: left_out_mean(y, None if root is None else root[rows.data.used] ** 2)}
    X, y, weight = _training(rows)
    return {MEAN: left_out_mean(y, weight), LINEAR: linear_baseline(X, y, weight).left_out}


def _others_at(rows: TrainingRows | None, points: Any) -> dict[str, FloatArray]:
    """What simpler models of the training rows predict for new ones."""
    if rows is None:
        return {}
    used, root = rows.data.used, rows.data.root_weight
    mean = np.average(rows.data.y[0, used], weights=None if root is None else root[used] ** 2)
    out = {MEAN: np.full(points.shape[0], mean)}
    if _linear_is_cheap(rows):
        inputs = input_values(points, np.arange(points.shape[1]))
        out[LINEAR] = linear_baseline(*_training(rows)).predict(inputs)
    return out


def _score(name: str, y: FloatArray, prediction: FloatArray) -> Score:
    r2 = float(r2_score(y, prediction)) if np.ptp(y) > 0 else float("nan")
    rmse, mae = root_mean_squared_error(y, prediction), mean_absolute_error(y, prediction)
    return Score(name, float(rmse), float(mae), r2)


def _compared(
    y: FloatArray, predictions: dict[str, FloatArray]
) -> tuple[tuple[Score, ...], dict[str, float]]:
    """Scores of all models, and what the first saves against each of the others."""
    scores = tuple(_score(name, y, prediction) for name, prediction in predictions.items())
    own, *_ = predictions.values()
    gains = {}
    for name, prediction in list(predictions.items())[1:]:
        saved = (y - prediction) ** 2 - (y - own) ** 2
        error = np.std(saved) / np.sqrt(len(saved))
        gains[name] = float(np.mean(saved) / error) if error > 0 else 0.0
    return scores, gains
