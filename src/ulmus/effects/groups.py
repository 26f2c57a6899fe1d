"""Groups of rows to average over, as weights of the rows in each group."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import to_numpy
from ulmus.effects.columns import Table, categories, in_category_order
from ulmus.exceptions import InputError
from ulmus.messages import ANY, Message
from ulmus.tables.missing import missing_mask

# Label of the group of rows whose label is missing.
MISSING = "(missing)"


class GroupKey(NamedTuple):
    """Labels of the rows by which they are grouped, and the order of the labels, if any."""

    labels: np.ndarray
    ordered: list[Any] | None


class Groups(NamedTuple):
    """Groups of rows."""

    labels: dict[str, list[Any]]  # for each key, the labels of all groups
    weights: Any  # (n, groups): weight of each row in the average of each group; columns sum to one

    @property
    def size(self) -> int:
        """Number of groups."""
        return int(self.weights.shape[1])


def group_rows(table: Table, by: Any, weights: Any) -> Groups:
    """Groups by columns or arrays; one group of all rows for None, one per row for "row"."""
    n, weight = table.n_rows, _checked_weights(table, weights)
    if isinstance(by, str) and by == "row" and table.column("row") is None:
        eye = scipy.sparse.eye_array(n, format="csr")
        return Groups({"row": list(table.index)}, eye)
    code, labels = _group_codes(_group_keys(table, by), n)
    total = np.bincount(code, weight)
    if not np.all(total > 0):
        group = {name: values[int(np.argmin(total))] for name, values in labels.items()}
        raise _error("weights", f"sum to zero{f' in the group {group}' if group else ''}")
    entries = weight / total[code], (np.arange(n), code)
    return Groups(labels, scipy.sparse.csr_array(entries, shape=(n, len(total))))


def _error(parameter: str, text: str, value: Any = ANY, suggestion: str = "") -> InputError:
    suggestions = (suggestion,) if suggestion else ()
    return InputError(Message("groups", text, parameter, value, suggestions))


def _checked_weights(table: Table, weights: Any) -> np.ndarray:
    """Weights of the rows, all one by default."""
    if weights is None:
        return np.ones(table.n_rows)
    if isinstance(weights, str):
        values = table.column(weights)
        if values is None:
            raise _error("weights", "is not a column of X", weights, "give a column or an array")
        weights = values
    _require_same_index(table, weights, "weights")
    try:
        weight = np.asarray(to_numpy(weights), dtype=float)
    except (TypeError, ValueError) as error:
        raise _error("weights", f"must be numbers: {error}") from error
    if weight.shape != (table.n_rows,):
        text = f"must be one number for each of the {table.n_rows} rows of X"
        raise _error("weights", f"{text}, got shape {weight.shape}")
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise _error("weights", "must be finite numbers >= 0")
    # Only ratios count; a large sum would overflow.
    return weight / (np.max(weight) or 1.0)


def _group_keys(table: Table, by: Any) -> dict[str, GroupKey]:
    """Keys by which rows are grouped, with their names."""
    if by is None:
        return {}
    if isinstance(by, str):
        return {by: _column_key(table, by)}
    parts = list(by) if isinstance(by, (list, tuple)) else [by]
    names = [part for part in parts if isinstance(part, str)]
    plain = not any(np.ndim(part) for part in parts)
    if plain and (not names or len(names) < len(parts) == table.n_rows):
        parts = [by]  # a plain list of labels, one for each row
    keys: dict[str, GroupKey] = {}
    for i, part in enumerate(parts):
        own = "by" if len(parts) == 1 else f"by{i}"
        name = part if isinstance(part, str) else getattr(part, "name", None)
        name = name if isinstance(name, str) else own
        if name in keys:
            raise _error("by", f"has two keys named {name!r}", suggestion="drop or rename one")
        is_column = isinstance(part, str)
        keys[name] = _column_key(table, part) if is_column else _array_key(table, part, name)
    return keys


def _require_same_index(table: Table, values: Any, parameter: str) -> None:
    """Raise an error for a Series with another index than X, as values are taken by position."""
    own: Any = getattr(values, "index", None)
    rows = table.index
    comparable = hasattr(own, "equals") and hasattr(rows, "equals") and len(own) == len(rows)
    if comparable and not rows.equals(own):
        examples = f"{parameter}.loc[X.index] or {parameter}.to_numpy()"
        remedy = f"give values in the order of the rows of X, for example {examples}"
        raise _error(parameter, "has another index than X", suggestion=remedy)


def _column_key(table: Table, name: str) -> GroupKey:
    values = table.column(name)
    if values is None:
        remedy = "give a column, an array with one label for each row, or 'row' for single rows"
        raise _error("by", "is not a column of X", name, remedy)
    first = values[~missing_mask(values)][:1]
    shown = table.shown(name, first[0]) if len(first) else None
    if isinstance(shown, str) and values.dtype.kind == "f":  # dates
        values = np.array([table.shown(name, value) for value in values], dtype=object)
    return GroupKey(values, table.categories(name))


def _array_key(table: Table, labels: Any, name: str) -> GroupKey:
    _require_same_index(table, labels, "by")
    values = to_numpy(labels)
    if isinstance(labels, (list, tuple)) and values.dtype.kind == "U":
        values = np.array(labels, dtype=object)  # 1 and "1" are different labels
    if values.shape != (table.n_rows,):
        text = f"must be one label for each of the {table.n_rows} rows of X"
        raise _error("by", f"{text}, got shape {values.shape}")
    if np.any(missing_mask(values)):
        raise _error("by", "has missing values", name, "drop or label those rows")
    return GroupKey(values, categories(labels))


def _group_codes(keys: dict[str, GroupKey], n: int) -> tuple[np.ndarray, dict[str, list[Any]]]:
    """Number of each row's group, and the labels of the groups in order."""
    code, levels_of = np.zeros(n, dtype=np.int64), []
    for key in keys.values():
        levels, own = _sorted_levels(key)
        levels_of.append(levels)
        code = code * len(levels) + own
    present, code = np.unique(code, return_inverse=True)
    labels = {}
    for name, levels in reversed(list(zip(keys, levels_of, strict=True))):
        own_levels = levels[present % len(levels)]
        # tolist() would convert dates of nanoseconds to integers.
        labels[name] = list(own_levels) if levels.dtype.kind in "mM" else own_levels.tolist()
        present = present // len(levels)
    return code, {name: labels[name] for name in keys}


def _sorted_levels(key: GroupKey) -> tuple[np.ndarray, np.ndarray]:
    """Distinct labels in order, the missing one last, and each row's number among them."""
    missing = missing_mask(key.labels)
    if missing.any():
        present, numbers = _sorted_levels(key._replace(labels=key.labels[~missing]))
        own = np.full(len(missing), len(present))
        own[~missing] = numbers
        return np.array([*present, MISSING], dtype=object), own
    try:
        levels, own = np.unique(key.labels, return_inverse=True)
    except TypeError:  # labels of several types, such as 1 and "1"
        levels = np.empty(len(set(key.labels)), dtype=object)
        levels[:] = sorted(set(key.labels), key=lambda label: (type(label).__name__, str(label)))
        number = {level: i for i, level in enumerate(levels)}
        own = np.array([number[label] for label in key.labels])
    position = {level: i for i, level in enumerate(in_category_order(list(levels), key.ordered))}
    if len(position) < len(levels):
        return levels, own
    rank = np.array([position[level] for level in levels])
    return levels[np.argsort(rank)], rank[own]
