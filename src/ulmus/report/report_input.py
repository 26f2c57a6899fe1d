"""The input of a report: a fitted model and rows of its original columns, resolved and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ulmus.core.arrays.backend import FloatArray, to_numpy
from ulmus.core.data.scaling import extrapolated_rows
from ulmus.core.fit.fit import Fit
from ulmus.diagnostics.given_rows import GivenRows
from ulmus.exceptions import collect_warnings
from ulmus.pipelines import inference
from ulmus.tables import Schema, TableEncoder
from ulmus.tables.checks import checked_positive_weight
from ulmus.tables.frames import default_feature_names

IntArray = npt.NDArray[np.intp]

# Rows that accuracy and calibration are evaluated on; ``GIVEN`` rows may be training rows or new.
LEAVE_ONE_OUT, NEW, NOTHING = "training rows, leave-one-out", "new rows", "no rows"
MIXED, GIVEN = "training rows, leave-one-out, and new rows", "rows of the report"


@dataclass(frozen=True)
class ReportInput:
    """A fitted model and the rows of the report."""

    outer: Any  # the model as it was passed: an estimator, a Pipeline, or a model around them
    pipe: Any  # the Pipeline within it; None without one
    model: Any  # the estimator itself, whose results are those of the target
    inference: Any  # its methods in terms of the original columns
    table: Any  # (n, d): the original columns of the rows
    takes_frame: bool  # whether the model takes these as a data frame rather than an array
    y: FloatArray | None  # (n,): observations of these rows
    points: Any  # (n, d'): the rows as inputs of the estimator
    given: GivenRows | None  # which of them the fit was trained on; None without observations
    # Indices of the rows within the range of the training inputs; all if there are none.
    inside: IntArray
    weight: FloatArray | None = None  # (n,): weights of new rows
    n_excluded: int = 0  # rows that were passed, but that the model excludes for missing values

    @property
    def fit(self) -> Fit:
        """The fit of the model."""
        return self.model.fitted_

    @property
    def schema(self) -> Schema | None:
        """How the estimator encodes its table; None if it takes numbers only."""
        return vars(self.model).get("columns_")

    @property
    def evaluated_on(self) -> str:
        """Rows that the model is evaluated on, one of the constants of this module."""
        if self.given is None:
            return NOTHING if self.fit.rows is None else LEAVE_ONE_OUT
        if self.given.trained is None:
            return GIVEN
        if not self.given.n_trained:
            return NEW
        return MIXED if self.given.n_new else LEAVE_ONE_OUT

    @property
    def names(self) -> list[str]:
        """Names of the original columns."""
        return [str(name) for name in self.table.columns]

    @property
    def encoded_names(self) -> list[str]:
        """Names of the inputs of the estimator."""
        if self.schema is not None:
            return list(self.schema.features)
        names = getattr(self.model, "feature_names_in_", None)
        if names is None and self.pipe is not None:
            try:
                names = self.pipe[:-1].get_feature_names_out()
            except (AttributeError, TypeError, ValueError):
                names = None  # some transformers do not name their outputs
        if names is None and self.pipe is None:
            names = self.names
        if names is None:
            return default_feature_names(int(self.model.n_features_in_))
        return [str(name) for name in names]

    @property
    def origins(self) -> list[int] | None:
        """Column of the table that each input of the estimator is derived from; None if unknown."""
        if self.schema is not None:
            return [self.names.index(name) for name in self.schema.origins]
        if self.pipe is None:
            return list(range(len(self.names)))
        transformers = [step for _, step in self.pipe.steps[:-1]]
        if len(transformers) != 1 or not isinstance(transformers[0], TableEncoder):
            return None
        return [self.names.index(name) for name in transformers[0].schema_.origins]

    def rows(self, where: IntArray) -> Any:
        """Some of the rows as the model takes them."""
        return self._for_model(self.table.iloc[where])

    def predict(self, table: Any) -> FloatArray:
        """Predictions at the rows of a data frame, shape (n,)."""
        found = self.inference.predict(self._for_model(table))
        return np.asarray(found, dtype=float).reshape(len(table))

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
    pipe = getattr(methods, "pipe", None)
    last = methods if pipe is None else methods.model
    n_outputs = last.fitted_.ensemble.n_outputs
    if n_outputs > 1:
        raise ValueError(
            f"a report describes one output, but the model has {n_outputs}; fit a model to each "
            "output and write a report for each."
        )
    table, takes_frame = _table(last if pipe is None else pipe, X, is_pipeline=pipe is not None)
    observed = None if y is None else _observed(y, len(table))
    table, observed, sample_weight, n_excluded = _complete_rows(
        last, table, observed, sample_weight
    )
    with collect_warnings():  # the report has a table of extrapolated rows
        points = methods._table_points(table if takes_frame else table.to_numpy())
    given = None if observed is None else GivenRows.of(last.fitted_, points, observed[None, :])
    outside = extrapolated_rows(points, last.fitted_.scale)
    inside = np.arange(len(table)) if np.all(outside) else np.flatnonzero(~outside)
    weight = None
    if sample_weight is not None and given is not None and given.n_new:
        weight = checked_positive_weight(sample_weight, len(table))
    return ReportInput(
        outer,
        pipe,
        last,
        methods,
        table,
        takes_frame,
        observed,
        points,
        given,
        inside,
        weight,
        n_excluded,
    )


def _complete_rows(model: Any, table: Any, *of_rows: Any) -> tuple[Any, ...]:
    """The rows without missing values, where the model excludes others, and the number of these."""
    schema = vars(model).get("columns_")
    if schema is None or schema.missing != "drop":
        return table, *of_rows, 0
    _, kept = schema.convert(table)
    n_excluded = len(table) - len(table[kept])
    taken = (None if values is None else np.asarray(values)[kept] for values in of_rows)
    return table[kept], *taken, n_excluded


def _table(model: Any, X: Any, *, is_pipeline: bool) -> tuple[Any, bool]:
    """The original columns as a data frame, and whether the model takes a data frame."""
    import pandas as pd

    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    schema = vars(model).get("columns_")
    names = getattr(model, "feature_names_in_", None) if schema is None else schema.names
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
