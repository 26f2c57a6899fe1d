"""The table that a question is about: its columns, and what its rows are to the fit.

A question may change columns ("what if t were 20?"). Rows are changed and turned into points when
they are needed, a block at a time, so that scenarios of a long table cost no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from ulmus.core.backend import Array, is_foreign, like, namespace, taken_rows, to_numpy
from ulmus.core.functionals import Piece, Rows

# Columns that a scenario changes: a value for all rows, or one for each.
Changes = Mapping[str, Any]


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
    X : array of shape (n, d)
        Its checked inputs.
    features : tuple of str
        Their names.
    """

    given: Any
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
        if name in self.features:
            j = self.features.index(name)
            column = self.X[:, j : j + 1]
            return to_numpy(column.toarray() if scipy.sparse.issparse(column) else column)[:, 0]
        if hasattr(self.given, "columns") and name in self.given.columns:
            return np.asarray(self.given[name])
        return None

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


def _replaced(X: Array, j: int, values: Any) -> Array:
    """A copy of X with another column j."""
    if scipy.sparse.issparse(X):
        column = np.broadcast_to(np.asarray(values, dtype=X.dtype), X.shape[0])[:, None]
        parts = [X[:, :j], scipy.sparse.csr_array(column), X[:, j + 1 :]]
        return scipy.sparse.hstack(parts, format="csr")
    X = namespace(X).asarray(X, copy=True)
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
