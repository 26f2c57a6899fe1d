"""Inference for a Pipeline, in terms of the columns that the Pipeline was fitted to."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from ulmus.core.arrays.backend import Array, dense, to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals, Rows
from ulmus.effects.columns import Changes, Table, frame_categories, frame_column
from ulmus.estimators._base import BaseELM
from ulmus.estimators._effects import Effects
from ulmus.estimators._inference_source import point_blocks
from ulmus.estimators._joint_inference import JointInference
from ulmus.exceptions import ExtrapolationWarning
from ulmus.model_file import save
from ulmus.progress import Progress
from ulmus.tables import Schema, TableEncoder
from ulmus.tables.frames import default_feature_names

if TYPE_CHECKING:
    from ulmus.diagnostics import Summary

# Methods of the last step that only require transformed points.
POINT_METHODS = (
    "check",
    "member_correlation",
    "predict",
    "predict_dist",
    "predict_interval",
    "predict_quantiles",
    "predict_var",
    "suggest_n_estimators",
    "summary_frame",
    "variance_at",
    "variance_components",
)
# Step of central differences of the transformers, relative to the spread of a column, for results
# in double and in single precision; and its least size relative to a value.
STEPS, ROUND_OFF = {"float64": 1e-5, "float32": 5e-3}, 1e-10


def inference(model: Any) -> Any:
    """Inference for a fitted model, also for one that is the last step of a Pipeline.

    Parameters
    ----------
    model : Pipeline, search over one, ELMEnsembleRegressor or ELMRegressor
        A fitted model. Of a search (``GridSearchCV``), the best estimator is used.

    Returns
    -------
    inference : object
        The estimator itself, or an object with its methods for a Pipeline: ``predict_interval``,
        ``predict_var``, ``predict_dist``, ``average``, ``compare``, ``slope``,
        ``partial_dependence``, ``exceedance``, ``simulate``, ``summary``, ``save`` and others.
        They accept tables of the original columns and refer to these by name; changed columns are
        passed through the transformers.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> import ulmus
    >>> from ulmus.tables import TableEncoder
    >>> X = pd.DataFrame({"t": range(60), "kind": ["a", "b", "c"] * 20})
    >>> y = 0.1 * X.t + 2.0 * (X.kind == "b")
    >>> model = ulmus.ELMEnsembleRegressor(n_neurons=20, input_map=None, random_state=0)
    >>> pipe = make_pipeline(TableEncoder(), model).fit(X, y)
    >>> frame = ulmus.inference(pipe).compare(X, {"kind": ["a", "b"]})
    >>> frame.contrast[0], round(frame.estimate[0])
    ('b - a', 2)
    """
    model = getattr(model, "best_estimator_", model)
    if isinstance(model, BaseELM):
        check_is_fitted(model)
        return model
    steps = getattr(model, "steps", None)
    if not steps or not isinstance(steps[-1][1], BaseELM):
        classes = "ELMEnsembleRegressor or ELMRegressor, or a Pipeline whose last step is one"
        raise ValueError(f"model must be a fitted {classes}, got {type(model).__name__}.")
    check_is_fitted(steps[-1][1])
    return PipelineInference(model)


class PipelineInference(Effects, JointInference):
    """Inference for the last step of a Pipeline, returned by ``ulmus.inference``."""

    def __init__(self, pipe: Any) -> None:
        self.pipe = pipe

    def __repr__(self) -> str:
        return f"ulmus.inference({self.pipe!r})"

    def __getattr__(self, name: str) -> Any:
        if name not in POINT_METHODS or not hasattr(self._model, name):
            raise AttributeError(f"inference for a Pipeline has no attribute {name!r}")
        method: Callable[..., Any] = getattr(self._model, name)

        @wraps(method)
        def transformed(X: Any = None, *args: Any, **options: Any) -> Any:
            return method(None if X is None else self._transformed(X), *args, **options)

        return transformed

    def summary(self, *, columns: Sequence[str] | None = None) -> Summary:
        """Summary of the last step.

        Parameters
        ----------
        columns : sequence of str, optional
            For each feature of the last step, the column of the table that it was encoded from, so
            that the relevances of one-hot encoded columns are added. By default, the feature names
            of the transformers.

        Returns
        -------
        summary : Summary
            Its ``n_features`` are those of the last step.
        """
        if columns is None and len(self.pipe.steps) > 1:
            with suppress(AttributeError, ValueError):  # transformers may have no feature names
                columns = list(self.pipe[:-1].get_feature_names_out())
        return self._model.summary(columns=columns)

    def save(
        self,
        path: Any,
        *,
        rows: bool = True,
        target: str | None = None,
        sample_weight: str | None = None,
    ) -> None:
        """Save the Pipeline to a file of arrays and JSON; ``ulmus.load`` reads it.

        Parameters
        ----------
        path : str or path-like
            The file, usually ``*.ulmus``.
        rows : bool, default=True
            Whether the training rows are saved, as in ``ELMEnsembleRegressor.save``.
        target : str, default=None
            Name of the response.
        sample_weight : str, default=None
            Name of the column of row weights, which ``ulmus predict`` reads from new tables.
        """
        steps = [step for _, step in self.pipe.steps]
        if len(steps) != 2 or not isinstance(steps[0], TableEncoder):
            raise ValueError(
                "a model file contains no code, and the only transformer it supports is "
                "ulmus.tables.TableEncoder; save the last step, or use skops for the Pipeline."
            )
        columns = steps[0].schema_.describe()
        names = {"target": target, "sample_weight": sample_weight}
        save(self._model, path, rows=rows, columns=columns, **names)

    @property
    def _model(self) -> Any:
        return self.pipe.steps[-1][1]

    def _transformed(self, X: Any) -> Any:
        """A table after the transformers."""
        return self.pipe[:-1].transform(X) if len(self.pipe.steps) > 1 else X

    @property
    def _n_threads(self) -> int:
        return self._model._n_threads

    @property
    def _progress(self) -> Progress | None:
        return self._model._progress

    def _inference_fit(self) -> Fit:
        return self._model.fitted_

    def _table_points(self, X: Any) -> Any:
        return self._model._checked_points(self._transformed(X))

    def _table(self, X: Any) -> Table:
        data = X.to_pandas() if hasattr(X, "to_pandas") else X
        names = getattr(self.pipe, "feature_names_in_", None)
        if names is None:
            inputs = data if hasattr(data, "iloc") else _checked_array(data)
            names = getattr(data, "columns", default_feature_names(inputs.shape[1]))
        else:
            if not hasattr(data, "columns"):
                text = "X has no column names, but the Pipeline was fitted to a data frame"
                raise ValueError(f"{text}; pass a data frame with the same columns.")
            missing = [name for name in names if name not in data.columns]
            if missing:
                raise ValueError(f"X lacks the column {missing[0]!r} of the Pipeline.")
            inputs = data[list(names)]
        first = self.pipe.steps[0][1]
        schema = first.schema_ if isinstance(first, TableEncoder) else None
        table = PipelineTable(data, inputs, tuple(map(str, names)), self._valid, schema)
        if schema is None:
            table.points(slice(0, 1), {})  # raises an error if the table cannot be transformed
        else:
            first.transform(inputs)  # also warns once of unknown categories in all rows
        return table

    def _valid(self, X: Any) -> Array:
        return self._model._valid_points(self._transformed(X))

    def _warn_about_points(self, functionals: Functionals) -> None:
        self._model._warn_about_extrapolation(point_blocks(functionals, self._inference_fit()))


def _checked_array(X: Any) -> np.ndarray:
    """An array of rows and columns; integers become floats, which can be differentiated."""
    if scipy.sparse.issparse(X):
        text = "X is sparse, but inference for a Pipeline changes columns of a dense table"
        raise ValueError(f"{text}; pass X.toarray(), or use the last step with transformed rows.")
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got {X.ndim} axes.")
    return X.astype(float) if X.dtype.kind in "biu" else X


@dataclass(frozen=True)
class PipelineTable:
    """A table whose rows are converted to points by the transformers of a Pipeline."""

    data: Any  # the table, possibly with further columns
    inputs: Any  # the columns that the Pipeline was fitted to
    features: tuple[str, ...]  # their names
    valid: Callable[[Any], Array]  # transforms and validates such a table, with result (b, d)
    schema: Schema | None = None  # the columns, if a TableEncoder is the first transformer

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.inputs)

    @property
    def index(self) -> Any:
        """Labels of the rows."""
        return self.data.index if hasattr(self.data, "iloc") else np.arange(self.n_rows)

    def column(self, name: str) -> np.ndarray | None:
        """Values of a column of the table, a feature or not; None if there is none."""
        if name not in self.features:
            return frame_column(self.data, name)
        if hasattr(self.inputs, "iloc"):
            values = frame_column(self.inputs, self._label(name))
            # Labels of categories may be numbers.
            is_label = self.schema is not None and name in self.schema.categorical
            return values.astype(object) if values is not None and is_label else values
        column = self.inputs[:, self.features.index(name)]
        try:
            return column.astype(float)
        except (TypeError, ValueError):
            return column

    def categories(self, name: str) -> list[Any] | None:
        """Categories of a categorical column in their order; None for other columns."""
        if name in self.features and hasattr(self.inputs, "iloc"):
            return frame_categories(self.inputs, self._label(name))
        return frame_categories(self.data, name)

    def points(self, rows: Rows, changes: Changes) -> Array:
        """Points (b, d) of some rows after changes."""
        if self.schema is not None:
            self.schema.require_categories(changes)
        return self._points_of(self._changed(rows, changes))

    @cached_property
    def single_precision(self) -> bool:
        """Whether the transformers return single precision, whatever they are given."""
        block = self._changed(slice(0, 1), {})
        if not hasattr(block, "iloc"):
            return "float32" in str(self._points_of(block).dtype)
        single = {name: float for name, dtype in block.dtypes.items() if dtype == np.float32}
        return "float32" in str(self._points_of(block.astype(single)).dtype)

    def directions(self, rows: Rows, changes: Changes, name: str) -> Array:
        """Derivatives of these points by a column, shape (b, d).

        Transformers are differentiated by central differences, exactly if they are linear.
        """
        x = changes.get(name, self.column(name))
        x = np.broadcast_to(np.asarray(x, dtype=float), self.n_rows)
        # The spread of the column, as an offset such as that of a northing has no influence; and
        # more than its round-off.
        spread = np.std(np.asarray(self.column(name), dtype=float))
        share = STEPS["float32" if self.single_precision else "float64"]
        step = np.maximum(share * (spread if spread > 0 else np.abs(x)), ROUND_OFF * np.abs(x))
        if np.all(x > 0):
            # Positive values stay positive, because transformers may take logarithms.
            step = np.minimum(step, np.maximum(1e-3 * x, 1e-10 * spread))
        step = np.where(step > 0, step, share)
        above, below = x + step, x - step
        high, low = (
            to_numpy(dense(self.points(rows, {**changes, name: values})))
            for values in (above, below)
        )
        return (high - low) / (above - below)[rows, None]

    def _points_of(self, block: Any) -> Array:
        """Points (b, d) of rows; unknown categories were reported for the whole table."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            return self.valid(block)

    def _changed(self, rows: Rows, changes: Changes) -> Any:
        is_frame = hasattr(self.inputs, "iloc")
        block = (self.inputs.iloc if is_frame else self.inputs)[rows].copy()
        if not is_frame and block.dtype.kind == "f":
            block = block.astype(float)  # single precision cannot represent small steps
        for name, value in changes.items():
            values = value if np.ndim(value) == 0 else value[rows]
            if is_frame:
                block[self._label(name)] = values
            else:
                block[:, self.features.index(name)] = values
        return block

    def _label(self, name: str) -> Any:
        """Label of a feature in the data frame, possibly a number."""
        return self.inputs.columns[self.features.index(name)]
