"""The table that a question is about: its columns, and what its rows are to the fit.

A question may change columns ("what if t were 20?"). Rows are changed and turned into points when
they are needed, a block at a time, so that scenarios of a long table cost no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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

# Columns that a scenario changes: a value for all rows, or one for each.
Changes = Mapping[str, Any]
# Rows that show which inputs move with a column.
FEW_ROWS = slice(0, 100)


class Table(Protocol):
    """Rows that a question is about."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns that the model uses."""

    @property
    def index(self) -> Any:
        """Labels of the rows."""

    def column(self, name: str) -> np.ndarray | None:
        """Values of a column, whether the model uses it or not; None if there is none."""

    def categories(self, name: str) -> list[Any] | None:
        """Categories of a categorical column in their order; None for other columns."""

    def points(self, rows: Rows, changes: Changes) -> Array:
        """Points (b, d) of some rows after changes."""

    def directions(self, rows: Rows, changes: Changes, name: str) -> Array:
        """How these points move with a column, shape (b, d)."""


@dataclass(frozen=True)
class PlainTable:
    """A table whose columns are the inputs of the model.

    Parameters
    ----------
    given : array-like
        The table as it was given, perhaps with further columns.
    inputs : array-like
        Its columns that are inputs, in the order of the fit.
    X : array of shape (n, d)
        The same, checked.
    features : tuple of str
        Their names.
    """

    given: Any
    inputs: Any
    X: Array
    features: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def index(self) -> Any:
        """Labels of the rows."""
        return self.given.index if hasattr(self.given, "iloc") else np.arange(self.n_rows)

    def column(self, name: str) -> np.ndarray | None:
        """Values of a column, whether the model uses it or not; None if there is none."""
        if name not in self.features:
            return frame_column(self.given, name)
        j = self.features.index(name)
        if hasattr(self.inputs, "columns"):
            column = frame_column(self.inputs, self.inputs.columns[j])
            # Truth values and whole numbers are labels as they are.
            if column is not None and column.dtype.kind in "biuf":
                return column
        column = self.X[:, j : j + 1]
        return to_numpy(column.toarray() if scipy.sparse.issparse(column) else column)[:, 0]

    def categories(self, name: str) -> list[Any] | None:
        """Categories of a categorical column in their order; None for other columns."""
        return None if name in self.features else frame_categories(self.given, name)

    def points(self, rows: Rows, changes: Changes) -> Array:
        """Points (b, d) of some rows after changes."""
        block = taken_rows(self.X, rows)
        for name, value in changes.items():
            values = value if np.ndim(value) == 0 else value[rows]
            block = _replaced(block, self.features.index(name), values)
        return block

    def directions(self, rows: Rows, changes: Changes, name: str) -> Array:
        """How these points move with a column, shape (b, d)."""
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
        raise ValueError(f"X has several columns called {name!r}; rename all but one.")
    if values.dtype.kind == "O" and getattr(column.dtype, "kind", "O") in "iuf":
        # Numbers of pandas that may be missing.
        return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
    return values


def frame_categories(frame: Any, name: Any) -> list[Any] | None:
    """Categories of a categorical column of a data frame in their order."""
    if not hasattr(frame, "columns") or name not in frame.columns:
        return None
    return categories(frame[name])


def categories(labels: Any) -> list[Any] | None:
    """Categories of labels that know them, as those of pandas do, in their order."""
    found = getattr(getattr(labels, "dtype", None), "categories", None)
    return list(found) if isinstance(found, Iterable) else None


def levels(table: Table, name: str) -> list[Any]:
    """Distinct values of a column without missing ones, in the order of its categories."""
    column = table.column(name)
    assert column is not None  # a feature
    known = column[~missing(column)]
    try:
        found = list(np.unique(known))
    except TypeError:
        found = sorted(set(known), key=str)
    return in_order(found, table.categories(name))


def in_order(found: list[Any], ordered: list[Any] | None) -> list[Any]:
    """Distinct values in the order of their categories, if they have some."""
    if ordered is None:
        return found
    present = set(found)
    return [value for value in ordered if value in present]


def missing(values: np.ndarray) -> np.ndarray:
    """Which of the values are NaN, NaT, None or NA."""
    if values.dtype.kind != "O":
        return np.asarray(values != values)
    return np.array([_is_missing(value) for value in values], dtype=bool)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True  # NA of pandas is neither equal to itself nor different


def _replaced(X: Array, j: int, values: Any) -> Array:
    """A copy of X with another column j."""
    if scipy.sparse.issparse(X):
        column = np.broadcast_to(np.asarray(values, dtype=float), X.shape[0])[:, None]
        parts = [X[:, :j], scipy.sparse.csr_array(column), X[:, j + 1 :]]
        return scipy.sparse.hstack(parts, format="csr")
    # In double precision: 5e7 + 1 would be 5e7 in single.
    X = namespace(X).astype(X, namespace(X).float64, copy=True)
    X[:, j] = like(np.asarray(values), X) if is_foreign(X) else values
    return X


def listed(given: Any) -> list[Any]:
    """What is asked for as a list; one may come by itself."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    return list(given) if several else [given]


def named_column(table: Table, key: Any, parameter: str) -> str:
    """Name of a feature that is given by name or by number."""
    features = table.features
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if not -len(features) <= key < len(features):
            raise ValueError(
                f"{parameter} asks for column {key}, but there are {len(features)}; count them "
                f"from 0 to {len(features) - 1}."
            )
        return features[key]
    if key not in features:
        shown = ", ".join(map(repr, features[:10])) + (", ..." if len(features) > 10 else "")
        raise ValueError(f"{parameter} asks for column {key!r}, but the model has {shown}.")
    return str(key)


def numeric(values: np.ndarray) -> bool:
    """Whether a column holds numbers, and no truth values."""
    return values.dtype.kind in "iuf"


def values(table: Table, weights: Any, changes: Changes | None = None) -> Piece:
    """Values of the function at the rows of a table after changes, with weights (n, q)."""
    changed = {} if changes is None else changes
    return Piece(lambda rows: table.points(rows, changed), weights)


def slopes(table: Table, weights: Any, name: str, changes: Changes | None = None) -> Piece:
    """Derivatives of the function by a column at the same rows."""
    changed = {} if changes is None else changes
    return Piece(
        lambda rows: table.points(rows, changed),
        weights,
        lambda rows: table.directions(rows, changed, name),
    )


def moved_between(table: Table, scenarios: Sequence[Changes]) -> np.ndarray:
    """Which inputs of the model differ between scenarios, in the first rows, shape (d,)."""
    first, *others = (to_numpy(dense(table.points(FEW_ROWS, changes))) for changes in scenarios)
    differ = [np.any(points != first, axis=0) for points in others]
    return np.any([np.zeros(first.shape[1], dtype=bool), *differ], axis=0)


def moved_along(table: Table, name: str) -> np.ndarray:
    """Which inputs of the model have a derivative by a column, in the first rows, shape (d,)."""
    return np.any(to_numpy(dense(table.directions(FEW_ROWS, {}, name))) != 0, axis=0)
