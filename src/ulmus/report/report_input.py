"""The input of a report: a fitted model and rows of its original columns, resolved and checked."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ulmus.core.arrays.backend import FloatArray, to_numpy
from ulmus.core.data.scaling import extrapolated_rows
from ulmus.core.fit.fit import Fit
from ulmus.exceptions import ExtrapolationWarning
from ulmus.pipelines import inference
from ulmus.tables.checks import checked_positive_weight
from ulmus.tables.frames import default_feature_names

IntArray = npt.NDArray[np.intp]

# Rows that accuracy and calibration are evaluated on.
LEAVE_ONE_OUT, NEW, NOTHING = "training rows, leave-one-out", "new rows", "no rows"


@dataclass(frozen=True)
class ReportInput:
    """A fitted model and the rows of the report."""

    outer: Any  # the model as it was passed: an estimator or a Pipeline
    model: Any  # the estimator itself, the last step of a Pipeline
    inference: Any  # its methods in terms of the original columns
    table: Any  # (n, d): the original columns of the rows
    takes_frame: bool  # whether the model takes these as a data frame rather than an array
    y: FloatArray | None  # (n,): observations of these rows
    # Rows that the model is evaluated on: ``LEAVE_ONE_OUT``, ``NEW`` or ``NOTHING``.
    evaluated_on: str
    is_training: bool  # whether the rows are those of the fit
    # Indices of the rows within the range of the training inputs; all if there are none.
    inside: IntArray
    weight: FloatArray | None = None  # (n,): weights of new rows

    @property
    def fit(self) -> Fit:
        """The fit of the model."""
        return self.model.fitted_

    @property
    def names(self) -> list[str]:
        """Names of the original columns."""
        return [str(name) for name in self.table.columns]

    @property
    def encoded_names(self) -> list[str]:
        """Names of the inputs of the estimator."""
        names = getattr(self.model, "feature_names_in_", None)
        if names is None and self.model is not self.outer:
            try:
                names = self.outer[:-1].get_feature_names_out()
            except (AttributeError, ValueError):
                names = None  # some transformers do not name their outputs
        if names is None and self.model is self.outer:
            names = self.names
        if names is None:
            return default_feature_names(int(self.model.n_features_in_))
        return [str(name) for name in names]

    def rows(self, where: IntArray) -> Any:
        """Some of the rows as the model takes them."""
        return self._for_model(self.table.iloc[where])

    def predict(self, table: Any) -> FloatArray:
        """Predictions at the rows of a data frame, shape (n,)."""
        return np.asarray(self.inference.predict(self._for_model(table)), dtype=float)

    def _for_model(self, table: Any) -> Any:
        return table if self.takes_frame else table.to_numpy()

    def sample(self, most: int) -> IntArray:
        """Indices of at most so many rows inside, drawn at random with a fixed seed.

        Rows far outside are excluded, as a single one would dominate all averages.
        """
        return random_rows(self.inside, most)


def random_rows(rows: IntArray, most: int) -> IntArray:
    """At most so many of the rows, drawn at random with a fixed seed, in their order."""
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def prepare_input(model: Any, X: Any, y: Any, sample_weight: Any = None) -> ReportInput:
    """The input of a report, checked; the arguments are those of ``write_report``."""
    methods = inference(model)
    outer = getattr(model, "best_estimator_", model)
    last = outer if methods is outer else outer.steps[-1][1]
    n_outputs = last.fitted_.ensemble.n_outputs
    if n_outputs > 1:
        raise ValueError(
            f"a report describes one output, but the model has {n_outputs}; fit a model to each "
            "output and write a report for each."
        )
    table, takes_frame = _table(outer, X, is_pipeline=last is not outer)
    observed = None if y is None else _observed(y, len(table))
    rows = last.fitted_.rows
    is_training = (
        rows is not None and observed is not None and _same_observations(observed, rows.data.y[0])
    )
    if is_training or (observed is None and rows is not None):
        evaluated_on = LEAVE_ONE_OUT
    else:
        evaluated_on = NOTHING if observed is None else NEW
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)  # the report has a table of them
        points = methods._table_points(table if takes_frame else table.to_numpy())
    outside = extrapolated_rows(points, last.fitted_.scale)
    inside = np.arange(len(table)) if np.all(outside) else np.flatnonzero(~outside)
    weight = None
    if sample_weight is not None and evaluated_on == NEW:
        weight = checked_positive_weight(sample_weight, len(table))
    return ReportInput(
        outer,
        last,
        methods,
        table,
        takes_frame,
        observed,
        evaluated_on,
        is_training,
        inside,
        weight,
    )


def _table(model: Any, X: Any, *, is_pipeline: bool) -> tuple[Any, bool]:
    """The original columns as a data frame, and whether the model takes a data frame."""
    import pandas as pd

    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    names = getattr(model, "feature_names_in_", None)
    if hasattr(frame, "iloc"):
        if names is None:
            return frame, is_pipeline
        missing = [name for name in names if name not in frame.columns]
        if missing:
            raise ValueError(
                f"X lacks the column {missing[0]!r} of the model; pass a table with the columns of "
                "the fit."
            )
        return frame[list(names)], True
    values = frame.toarray() if scipy.sparse.issparse(frame) else np.asarray(to_numpy(frame))
    if values.ndim != 2 or len(values) == 0:
        raise ValueError(
            f"X must be a table with rows and columns, got shape {values.shape}; reshape one "
            "column with X.reshape(-1, 1)."
        )
    if names is not None and len(names) != values.shape[1]:
        raise ValueError(
            f"X has {values.shape[1]} columns, but the model was fitted to {len(names)}; give a "
            "table with these columns."
        )
    columns = default_feature_names(values.shape[1]) if names is None else list(names)
    return pd.DataFrame(values, columns=columns).infer_objects(), names is not None


def _observed(y: Any, n_rows: int) -> FloatArray:
    """One number for each row."""
    values = np.asarray(to_numpy(y.to_numpy() if hasattr(y, "to_numpy") else y), dtype=float)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.shape != (n_rows,):
        raise ValueError(
            f"y has shape {values.shape}, but X has {n_rows} rows; pass one observation for each."
        )
    if not np.all(np.isfinite(values)):
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"y contains NaN or infinity, first in row {row}; drop those rows.")
    return values


def _same_observations(y: FloatArray, training: FloatArray) -> bool:
    """Whether observations are those of the fit, up to rounding."""
    if y.shape != training.shape:
        return False
    precision = 1e-6  # single
    return bool(np.allclose(y, training, rtol=precision, atol=precision * np.std(training)))
