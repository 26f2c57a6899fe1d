"""Tables that effects are computed over: their columns, and the points of their rows.

An estimand may set columns to other values. Rows are changed and converted to points one block at a
time, so that counterfactuals of a long table need no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import (
    Array,
    dense,
    is_foreign,
    like,
    namespace,
    taken_rows,
    to_numpy,
)
from ulmus.core.layer.functionals import Piece, Rows
from ulmus.exceptions import InputError
from ulmus.messages import Message
from ulmus.tables.missing import missing_mask

# Columns that are set to other values: one for all rows, or one for each.
Changes = Mapping[str, Any]
NO_CHANGES: Changes = {}
# Rows that determine which inputs change with a column.
FIRST_ROWS = slice(0, 100)


class Table(Protocol):
    """Rows that an effect is computed over."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns that the model uses."""

    @property
    def index(self) -> Any:
        """Labels of the rows."""

    @property
    def inputs(self) -> Any:
        """The columns that the model uses, as they were given."""

    def column(self, name: str) -> np.ndarray | None:
        """Values of a column of the table, a feature or not; None if there is none."""

    def fills(self, name: str) -> bool:
        """Whether missing values of a column are filled in."""

    def value(self, name: str, given: Any) -> Any:
        """A value that the user gave for a column, as the column contains it."""

    def shown(self, name: str, value: Any) -> Any:
        """A value of a column as results show it."""

    def categories(self, name: str) -> list[Any] | None:
        """Categories of a categorical column in their order; None for other columns."""

    def points(self, rows: Rows, changes: Changes) -> Array:
        """Points (b, d) of some rows after changes."""

    def directions(self, rows: Rows, changes: Changes, name: str) -> Array:
        """Derivatives of these points by a column, shape (b, d)."""


@dataclass(frozen=True)
class InputTable:
    """A table whose columns are the inputs of the model."""

    data: Any  # the table, possibly with further columns
    inputs: Any  # its columns that are inputs, in the order of the fit
    X: Array  # (n, d): the inputs, validated
    features: tuple[str, ...]  # their names

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def index(self) -> Any:
        """Labels of the rows."""
        return self.data.index if hasattr(self.data, "iloc") else np.arange(self.n_rows)

    def column(self, name: str) -> np.ndarray | None:
        """Values of a column of the table, a feature or not; None if there is none."""
        if name not in self.features:
            return frame_column(self.data, name)
        j = self.features.index(name)
        if hasattr(self.inputs, "columns"):
            column = frame_column(self.inputs, self.inputs.columns[j])
            # Booleans and integers keep their type as labels.
            if column is not None and column.dtype.kind in "biuf":
                return column
        column = self.X[:, j : j + 1]
        return to_numpy(column.toarray() if scipy.sparse.issparse(column) else column)[:, 0]

    def fills(self, name: str) -> bool:
        """Whether missing values of a column are filled in."""
        return False

    def value(self, name: str, given: Any) -> Any:
        """A value that the user gave for a column, unchanged."""
        return given

    def shown(self, name: str, value: Any) -> Any:
        """A value of a column, unchanged."""
        return value

    def categories(self, name: str) -> list[Any] | None:
        """Categories of a categorical column in their order; None for other columns."""
        return None if name in self.features else frame_categories(self.data, name)

    def points(self, rows: Rows, changes: Changes) -> Array:
        """Points (b, d) of some rows after changes."""
        block = taken_rows(self.X, rows)
        for name, value in changes.items():
            values = value if np.ndim(value) == 0 else value[rows]
            block = _with_column(block, self.features.index(name), values)
        return block

    def directions(self, rows: Rows, changes: Changes, name: str) -> Array:
        """Derivatives of these points by a column, shape (b, d)."""
        b, d = np.arange(self.n_rows)[rows].shape[0], len(self.features)
        j = self.features.index(name)
        if scipy.sparse.issparse(self.X):
            ones = np.ones(b), (np.arange(b), np.full(b, j))
            return scipy.sparse.csr_array(ones, shape=(b, d))
        return np.broadcast_to(np.eye(d)[j], (b, d))


def frame_column(frame: Any, name: Any) -> np.ndarray | None:
    """Values of a column of a data frame; None if there is none."""
    if not hasattr(frame, "columns") or name not in frame.columns:
        return None
    column = frame[name]
    values = np.asarray(column)
    if values.ndim != 1:
        raise ValueError(f"X has several columns named {name!r}; rename all but one.")
    if values.dtype.kind == "O" and getattr(column.dtype, "kind", "O") in "iuf":
        # Nullable numbers of pandas.
        return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
    return values


def frame_categories(frame: Any, name: Any) -> list[Any] | None:
    """Categories of a categorical column of a data frame in their order."""
    exists = hasattr(frame, "columns") and name in frame.columns
    return categories(frame[name]) if exists else None


def categories(labels: Any) -> list[Any] | None:
    """Categories of labels of a categorical dtype, in their order."""
    values = getattr(getattr(labels, "dtype", None), "categories", None)
    return list(values) if isinstance(values, Iterable) else None


def distinct_values(table: Table, name: str) -> list[Any]:
    """Distinct values of a column without missing ones, in the order of its categories."""
    column = table.column(name)
    assert column is not None  # a feature
    present = column[~missing_mask(column)]
    try:
        distinct = list(np.unique(present))
    except TypeError:
        distinct = sorted(set(present), key=str)
    return in_category_order(distinct, table.categories(name))


def in_category_order(distinct: list[Any], ordered: list[Any] | None) -> list[Any]:
    """Distinct values in the order of their categories, if any."""
    if ordered is None:
        return distinct
    present = set(distinct)
    return [value for value in ordered if value in present]


def _with_column(X: Array, j: int, values: Any) -> Array:
    """A copy of X with other values in column j."""
    if scipy.sparse.issparse(X):
        column = np.broadcast_to(np.asarray(values, dtype=float), X.shape[0])[:, None]
        parts = [X[:, :j], scipy.sparse.csr_array(column), X[:, j + 1 :]]
        return scipy.sparse.hstack(parts, format="csr")
    # In double precision: 5e7 + 1 would be 5e7 in single.
    X = namespace(X).astype(X, namespace(X).float64, copy=True)
    X[:, j] = like(np.asarray(values), X) if is_foreign(X) else values
    return X


def as_list(value: Any) -> list[Any]:
    """A list of one or several values."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return list(value) if several else [value]


def column_name(table: Table, key: Any, parameter: str) -> str:
    """Name of a feature that is given by name or by position."""
    features, labels = table.features, list(getattr(table.inputs, "columns", []))
    numbers = [label for label in labels if isinstance(label, (int, np.integer))]
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if key in numbers:  # the column of this label, not the one at this position
            return features[labels.index(key)]
        if numbers not in ([], list(range(len(features)))):
            text = f"names column {key}, and the labels of the columns are {numbers[:10]}"
        elif -len(features) <= key < len(features):
            return features[key]
        else:
            text = f"names column {key}, but columns are numbered from 0 to {len(features) - 1}"
    elif key in features:
        return str(key)
    else:
        shown = ", ".join(map(repr, features[:10])) + (", ..." if len(features) > 10 else "")
        text = f"names {key!r}, which is not a column of the model: {shown}"
    raise InputError(Message("unknown-column", text, parameter))


def is_numeric(values: np.ndarray) -> bool:
    """Whether a column contains numbers; booleans do not count."""
    return values.dtype.kind in "iuf"


def value_functionals(
    table: Table, weights: Any, changes: Changes = NO_CHANGES, derivative: str | None = None
) -> Piece:
    """Weighted sums over the rows of a table after changes, weights (n, q).

    The sums are of the function, or of its derivative by a column.
    """
    points = partial(table.points, changes=changes)
    if derivative is None:
        return Piece(points, weights)
    return Piece(points, weights, partial(table.directions, changes=changes, name=derivative))


def changed_inputs(table: Table, alternatives: Sequence[Changes]) -> np.ndarray:
    """Inputs of the model that differ between alternatives, in the first rows, shape (d,)."""
    points = [to_numpy(dense(table.points(FIRST_ROWS, changes))) for changes in alternatives]
    differ = [np.any(other != points[0], axis=0) for other in points[1:]]
    return np.any([np.zeros(points[0].shape[1], dtype=bool), *differ], axis=0)


def differentiated_inputs(table: Table, name: str) -> np.ndarray:
    """Inputs of the model with a derivative by a column, in the first rows, shape (d,)."""
    return np.any(to_numpy(dense(table.directions(FIRST_ROWS, {}, name))) != 0, axis=0)
