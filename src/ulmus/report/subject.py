"""What a report is about: a model, a table of its original columns, and how far rows are new."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.data.feature_scaling import rows_outside
from ulmus.core.fit.fit import Fit
from ulmus.exceptions import ExtrapolationWarning
from ulmus.pipelines import inference

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

# What the accuracy and the error bars are judged by.
LEFT_OUT, NEW, NOTHING = "left-out training rows", "new rows", "nothing"
# Rows of training data in the units of y, equal up to single precision.
SAME = 1e-6


@dataclass(frozen=True)
class Subject:
    """A fitted model and the rows that it is asked about.

    Parameters
    ----------
    outer : object
        The model as it was given: an estimator or a Pipeline.
    model : ELMEnsembleRegressor or ELMRegressor
        The estimator itself, the last step of a Pipeline.
    asked : object
        What answers questions about the original columns.
    table : pandas.DataFrame of shape (n, d)
        The original columns of the rows.
    framed : bool
        Whether the model wants these as a data frame rather than an array.
    y : ndarray of shape (n,) or None
        What was observed in these rows.
    judged_by : {"left-out training rows", "new rows", "nothing"}
        What tells how good the model is.
    is_training : bool
        Whether the rows are those of the fit.
    inside : ndarray of int
        Numbers of the rows within the range of the training inputs; all if there are none.
    """

    outer: Any
    model: Any
    asked: Any
    table: Any
    framed: bool
    y: FloatArray | None
    judged_by: str
    is_training: bool
    inside: IntArray

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
        """Names of the inputs as the estimator sees them."""
        known = getattr(self.model, "feature_names_in_", None)
        if known is None and self.model is not self.outer:
            try:
                known = self.outer[:-1].get_feature_names_out()
            except (AttributeError, ValueError):
                known = None  # some transformers have no names to give
        if known is None and self.model is self.outer:
            known = self.names
        d = int(self.model.n_features_in_)
        return [str(name) for name in known] if known is not None else [f"x{j}" for j in range(d)]

    def rows(self, where: IntArray | None = None) -> Any:
        """Some of the rows as the model takes them, all by default."""
        table = self.table if where is None else self.table.iloc[where]
        return table if self.framed else table.to_numpy()

    def sample(self, most: int) -> IntArray:
        """Numbers of at most so many rows inside, drawn at random with a fixed seed.

        A single row far outside would rule all averages.
        """
        return drawn(self.inside, most)


def drawn(rows: IntArray, most: int) -> IntArray:
    """At most so many of the rows, drawn at random with a fixed seed, in their order."""
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def subject(model: Any, X: Any, y: Any) -> Subject:
    """The subject of a report, checked.

    Parameters
    ----------
    model : Pipeline, search over one, ELMEnsembleRegressor or ELMRegressor
        A fitted model of one output.
    X : data frame or array of shape (n, d)
        Original columns.
    y : array-like of shape (n,) or None
        What was observed there.
    """
    asked = inference(model)
    outer = getattr(model, "best_estimator_", model)
    last = outer if asked is outer else outer.steps[-1][1]
    if last.fitted_.ensemble.n_outputs > 1:
        raise ValueError(
            f"a report is about one output, and the model has {last.fitted_.ensemble.n_outputs}; "
            "fit a model to each output and report on them one at a time."
        )
    table, framed = _table(outer, X, is_pipeline=last is not outer)
    observed = None if y is None else _observed(y, len(table))
    rows = last.fitted_.rows
    is_training = rows is not None and observed is not None and _same(observed, rows.data.y[0])
    if is_training or (observed is None and rows is not None):
        judged_by = LEFT_OUT
    else:
        judged_by = NOTHING if observed is None else NEW
    given = table if framed else table.to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)  # the report has a table of them
        outside = rows_outside(asked._points_of(given), last.fitted_.scale)
    inside = np.arange(len(table)) if np.all(outside) else np.flatnonzero(~outside)
    return Subject(outer, last, asked, table, framed, observed, judged_by, is_training, inside)


def _table(model: Any, X: Any, *, is_pipeline: bool) -> tuple[Any, bool]:
    """The original columns as a data frame, and whether the model takes it as one."""
    import pandas as pd

    given = X.to_pandas() if hasattr(X, "to_pandas") else X
    names = getattr(model, "feature_names_in_", None)
    if hasattr(given, "iloc"):
        if names is None:
            return given, is_pipeline
        missing = [name for name in names if name not in given.columns]
        if missing:
            raise ValueError(
                f"X lacks the column {missing[0]!r} of the model; give a table with the columns "
                "that it was fitted to."
            )
        return given[list(names)], True
    values = given.toarray() if scipy.sparse.issparse(given) else np.asarray(to_numpy(given))
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
    columns = [f"x{j}" for j in range(values.shape[1])] if names is None else list(names)
    return pd.DataFrame(values, columns=columns).infer_objects(), names is not None


def _observed(y: Any, n_rows: int) -> FloatArray:
    """One number for each row."""
    values = np.asarray(to_numpy(y.to_numpy() if hasattr(y, "to_numpy") else y), dtype=float)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.shape != (n_rows,):
        raise ValueError(
            f"y has shape {values.shape}, but X has {n_rows} rows; give one observation for each."
        )
    if not np.all(np.isfinite(values)):
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"y holds NaN or infinity, first in row {row}; drop those rows.")
    return values


def _same(y: FloatArray, known: FloatArray) -> bool:
    """Whether observations are those of the fit, up to rounding."""
    if y.shape != known.shape:
        return False
    return bool(np.allclose(y, known, rtol=SAME, atol=SAME * float(np.std(known))))
