"""Points along a feature at which an estimator predicts, and names of features and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import FloatArray, to_numpy
from ulmus.tables.columns import CategoryColumn, DateColumn
from ulmus.tables.frames import default_feature_names, pandas_frame
from ulmus.tables.schema import Schema

# A feature with at most so many values is drawn at these values, and nothing between them.
FEW_VALUES = 10


class PlotPoints(NamedTuple):
    """Points of a curve, and their positions on the axis."""

    table: Any  # (p, d): the points, in the form of the user's table
    x: FloatArray  # (p,): their positions on the axis
    label: str  # name of the axis
    connected: bool  # whether the points follow each other along a curve
    rows: FloatArray  # (n,): positions of the user's own rows on the axis
    labels: tuple[str, ...] = ()  # categories at the positions 0, 1, ...
    dates: bool = False  # whether positions are days since 1970


def no_training_rows(remedy: str) -> ValueError:
    """The error of a display of training rows that an estimator does not keep."""
    return ValueError(
        f"the estimator keeps no training rows (streamed fit, or compress()); {remedy}."
    )


def points_along(
    estimator: Any, X: Any, feature: int | str | None, others: str, grid_resolution: int
) -> PlotPoints:
    """Points along a feature, or the rows themselves where several features have none chosen.

    With ``others="median"`` the other features stay at their median (an observed value), with
    ``"observed"`` the points are the rows as they are.
    """
    choices = ("median", "observed")
    if others not in choices:
        text = f"others must be one of {choices}, got {others!r}; 'median' draws a curve."
        raise ValueError(text)
    n_rows, n_features = X.shape if hasattr(X, "columns") else dense_table(X).shape
    if feature is None and n_features > 1:
        locations = np.arange(n_rows, dtype=float)
        return PlotPoints(X, locations, "row", False, locations)
    schema = vars(estimator).get("columns_")
    if schema is not None and hasattr(X, "columns"):
        name = feature_names(estimator, X)[
            feature_number(estimator, X, 0 if feature is None else feature)
        ]
        return _points_of_columns(schema, X, name, others, grid_resolution)
    values = dense_table(X)
    j = feature_number(estimator, X, 0 if feature is None else feature)
    name, column = feature_names(estimator, X)[j], values[:, j]
    if others == "observed":
        return PlotPoints(X, column, name, False, column)
    x = np.unique(column)
    if len(x) > FEW_VALUES:
        x = np.linspace(x[0], x[-1], grid_resolution)
    middle = np.quantile(values, 0.5, axis=0, method="inverted_cdf")
    table = np.tile(middle, (len(x), 1))
    table[:, j] = x
    label = name if n_features == 1 else f"{name} (other features at their median)"
    points: Any = table
    if hasattr(X, "columns"):
        points = type(X)(dict(zip(X.columns, table.T, strict=True)))
    return PlotPoints(points, x, label, len(x) > FEW_VALUES, column)


def _points_of_columns(
    schema: Schema, X: Any, name: str, others: str, grid_resolution: int
) -> PlotPoints:
    """The same for a table whose columns have a schema; categories are at their most frequent."""
    frame, _ = schema.with_missing("impute").convert(pandas_frame(X))
    frame = frame[list(schema.names)]
    column, rows = schema.column(name), schema.numbers(name, frame[name])
    labels = column.categories if isinstance(column, CategoryColumn) else ()
    axis = labels, isinstance(column, DateColumn)
    if others == "observed":
        return PlotPoints(X, rows, name, False, rows, *axis)
    x = np.unique(rows[~np.isnan(rows) & (rows >= 0 if column.categorical else True)])
    connected = len(x) > FEW_VALUES and column.continuous
    if connected:
        x = np.linspace(x[0], x[-1], grid_resolution)
    table = frame.iloc[:1].reset_index(drop=True).reindex([0] * len(x)).reset_index(drop=True)
    for one in schema.columns:
        present = frame[one.name].dropna()
        middle = present.quantile(0.5, "lower") if one.continuous else present.mode().iloc[0]
        table[one.name] = middle
    table[name] = column.to_pandas(x)
    label = name if len(schema.names) == 1 else f"{name} (other features at their median)"
    return PlotPoints(table, x, label, connected, rows, *axis)


def dense_table(X: Any) -> FloatArray:
    """A table as a NumPy array of numbers, shape (n, d)."""
    values = X.toarray() if scipy.sparse.issparse(X) else to_numpy(X)
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or len(values) == 0:
        raise ValueError(
            f"X must be a table with rows and columns, got shape {values.shape}; reshape one "
            "feature with X.reshape(-1, 1)."
        )
    return values


def feature_values(estimator: Any, X: Any, feature: int | str) -> FloatArray:
    """Values of one feature among the rows of a table, whose other columns may be anything."""
    j = feature_number(estimator, X, feature)
    if not hasattr(X, "columns"):
        return dense_table(X)[:, j]
    name = feature_names(estimator, X)[j]
    label = next((label for label in X.columns if str(label) == name), X.columns[j])
    schema = vars(estimator).get("columns_")
    if schema is not None and name in schema.names:
        return np.asarray(schema.numbers(name, pandas_frame(X)[label]), dtype=float)
    try:
        return np.asarray(X[label], dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"feature={feature!r} is not numeric; draw the frame of "
            "estimator.partial_dependence(X, feature) as bars."
        ) from error


def feature_names(estimator: Any, X: Any = None) -> list[str]:
    """Names of the features: those of the fit, else of the frame, else x0, x1 and so on."""
    names: Sequence[Any] | None = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = getattr(X, "columns", None)
    if names is None:
        n_features = X.shape[1] if hasattr(X, "shape") else estimator.n_features_in_
        return default_feature_names(n_features)
    return [str(name) for name in names]


def feature_number(estimator: Any, X: Any, feature: int | str) -> int:
    """Column of a feature given by its name or number."""
    names = feature_names(estimator, X)
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and 0 <= feature < len(names):
        return int(feature)
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    raise ValueError(
        f"feature={feature!r} is not in the table; use one of its names ({shown}) or a number "
        f"from 0 to {len(names) - 1}."
    )


def one_output(values: Any, output: int, ndim: int = 1) -> FloatArray:
    """The part of one output; a result for one output has ``ndim`` axes, one less than others."""
    array = np.asarray(to_numpy(values), dtype=float)
    several = array.ndim > ndim
    check_output(output, array.shape[1] if several else 1)
    return array[:, output] if several else array


def check_output(output: int, n_outputs: int) -> None:
    """Raise an error if there is no such output."""
    if not 0 <= output < n_outputs:
        raise ValueError(
            f"output={output} does not exist; the model has {n_outputs}, use a number from 0 to "
            f"{n_outputs - 1}."
        )


def observed_output(y: Any, output: int, n_rows: int) -> FloatArray:
    """Observations of one output, one for each row."""
    values = one_output(y, output)
    if len(values) != n_rows:
        raise ValueError(
            f"y has {len(values)} rows, but X has {n_rows}; give one observation for each row."
        )
    return values


def target_name(y: Any, output: int, name: str | None) -> str:
    """Name of the target: as passed, or that of a series or a column of a frame, or y."""
    if name is not None:
        return name
    if getattr(y, "columns", None) is not None:
        return str(y.columns[output])
    name = getattr(y, "name", None)
    return "y" if name is None else str(name)
