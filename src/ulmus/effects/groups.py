"""Groups of rows that an answer averages over, as weights of the rows in each group."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import to_numpy
from ulmus.effects.columns import Table, categories, in_order, missing


class Key(NamedTuple):
    """What rows are grouped by: a label of each, and perhaps the order of the labels."""

    labels: np.ndarray
    ordered: list[Any] | None


class Groups(NamedTuple):
    """Groups of rows.

    Parameters
    ----------
    labels : dict
        What tells the groups apart: for each name the labels of all groups.
    weights : csr_array of shape (n, groups)
        Weight of each row in the average of each group; they sum to one.
    """

    labels: dict[str, list[Any]]
    weights: Any

    @property
    def size(self) -> int:
        """Number of groups."""
        return int(self.weights.shape[1])


def groups(table: Table, by: Any, weights: Any) -> Groups:
    """Groups by columns or arrays; all rows together, or each by itself."""
    n, weight = table.n_rows, _checked_weights(table, weights)
    if isinstance(by, str) and by == "row" and table.column("row") is None:
        eye = scipy.sparse.eye_array(n, format="csr")
        return Groups({"row": list(table.index)}, eye)
    keys = _keys(table, by)
    code, labels = _codes(keys, n)
    total = np.bincount(code, weight)
    if not np.all(total > 0):
        where = {name: values[int(np.argmin(total))] for name, values in labels.items()}
        raise ValueError(f"weights sum to zero{f' in the group {where}' if where else ''}.")
    shares = weight / total[code]
    entries = shares, (np.arange(n), code)
    return Groups(labels, scipy.sparse.csr_array(entries, shape=(n, len(total))))


def _checked_weights(table: Table, weights: Any) -> np.ndarray:
    """Weights of the rows, all one by default."""
    if weights is None:
        return np.ones(table.n_rows)
    if isinstance(weights, str):
        values = table.column(weights)
        if values is None:
            raise ValueError(f"weights={weights!r} is no column of X; give its name or an array.")
        weights = values
    _require_same_rows(table, weights, "weights")
    try:
        weight = np.asarray(to_numpy(weights), dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must be numbers: {error}.") from error
    if weight.shape != (table.n_rows,):
        raise ValueError(
            f"weights must have one number for each of the {table.n_rows} rows of X, got shape "
            f"{weight.shape}."
        )
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise ValueError("weights must be finite numbers >= 0.")
    # Only their ratios count, and their sum shall not overflow.
    return weight / (np.max(weight) or 1.0)


def _keys(table: Table, by: Any) -> dict[str, Key]:
    """What rows are grouped by, with their names."""
    if by is None:
        return {}
    if isinstance(by, str):
        return {by: _by_name(table, by)}
    parts = list(by) if isinstance(by, (list, tuple)) else [by]
    if not any(isinstance(part, str) or np.ndim(part) for part in parts):
        parts = [by]  # a plain list of labels, one for each row
    keys: dict[str, Key] = {}
    for i, part in enumerate(parts):
        own = "by" if len(parts) == 1 else f"by{i}"
        name = part if isinstance(part, str) else getattr(part, "name", None)
        name = name if isinstance(name, str) else own
        if name in keys:
            raise ValueError(f"by has two keys called {name!r}; leave one out, or rename it.")
        keys[name] = _by_name(table, part) if isinstance(part, str) else _by_array(table, part)
    return keys


def _require_same_rows(table: Table, given: Any, parameter: str) -> None:
    """Refuse a Series whose rows are not those of X: values are taken in their order."""
    own: Any = getattr(given, "index", None)
    rows = table.index
    known = hasattr(own, "equals") and hasattr(rows, "equals") and len(own) == len(rows)
    if known and not rows.equals(own):
        raise ValueError(
            f"{parameter} has another index than X; give its values in the order of X's rows, for "
            f"example {parameter}.loc[X.index] or {parameter}.to_numpy()."
        )


def _by_name(table: Table, name: str) -> Key:
    values = table.column(name)
    if values is None:
        raise ValueError(
            f"by={name!r} is no column of X; give the name of one, an array with a label for each "
            "row, or 'row' for each row by itself."
        )
    return Key(values, table.categories(name))


def _by_array(table: Table, labels: Any) -> Key:
    _require_same_rows(table, labels, "by")
    values = to_numpy(labels)
    if values.shape != (table.n_rows,):
        raise ValueError(
            f"by must have one label for each of the {table.n_rows} rows of X, got shape "
            f"{values.shape}."
        )
    return Key(values, categories(labels))


def _codes(keys: dict[str, Key], n: int) -> tuple[np.ndarray, dict[str, list[Any]]]:
    """Number of each row's group, and the labels of the groups in their order."""
    code, combined = np.zeros(n, dtype=np.int64), []
    for name, key in keys.items():
        if np.any(missing(key.labels)):
            raise ValueError(f"by={name!r} has missing values; drop those rows or name them.")
        levels, own = _sorted_levels(key)
        combined.append(levels)
        code = code * len(levels) + own
    present, code = np.unique(code, return_inverse=True)
    labels = {}
    for name, levels in reversed(list(zip(keys, combined, strict=True))):
        own_levels = levels[present % len(levels)]
        # Dates of nanoseconds would become whole numbers.
        labels[name] = list(own_levels) if levels.dtype.kind in "mM" else own_levels.tolist()
        present = present // len(levels)
    return code, {name: labels[name] for name in keys}


def _sorted_levels(key: Key) -> tuple[np.ndarray, np.ndarray]:
    """Distinct labels in their order, and the number of each row's label among them."""
    try:
        levels, own = np.unique(key.labels, return_inverse=True)
    except TypeError:
        return np.unique(key.labels.astype(str), return_inverse=True)
    place = {level: i for i, level in enumerate(in_order(list(levels), key.ordered))}
    if len(place) < len(levels):
        return levels, own
    rank = np.array([place[level] for level in levels])
    return levels[np.argsort(rank)], rank[own]
