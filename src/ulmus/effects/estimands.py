"""Estimands: averages, contrasts, slopes and curves over a table as labelled functionals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ulmus.core.layer.functionals import Functionals
from ulmus.effects.columns import (
    Table,
    as_list,
    changed_inputs,
    column_name,
    differentiated_inputs,
    is_numeric,
    value_functionals,
)
from ulmus.effects.contrasts import contrasts, no_variables
from ulmus.effects.groups import Groups, group_rows
from ulmus.effects.inference import Estimates, centered, ratios
from ulmus.exceptions import InputError
from ulmus.messages import Message


class ColumnChange(NamedTuple):
    """A change of a column that an estimand measures."""

    term: str  # the column
    contrast: str  # label of the change
    # Computes which inputs of the model change with it, shape (d,).
    affected_inputs: Callable[[], np.ndarray]
    slope: bool = False  # whether the change is infinitesimal


class Estimand(NamedTuple):
    """Labelled functionals of the function."""

    functionals: Functionals  # the functionals
    labels: dict[str, list[Any]]  # for each label column, the labels of the rows of the result
    changes: tuple[ColumnChange, ...] = ()  # changes of columns that they measure
    # Function of the estimates of the functionals, where the estimand is not linear.
    transform: Callable[[Estimates], Estimates] | None = None


def weighted_sums(table: Table, A: Any) -> Estimand:
    """The rows of A @ f(X)."""
    weights = scipy.sparse.csr_array(A.T)
    q = weights.shape[1]
    labels = {"term": [f"row {i}" for i in range(q)], "contrast": ["A @ f"] * q}
    return Estimand(Functionals((value_functionals(table, weights),)), labels)


def averages(table: Table, by: Any, weights: Any) -> Estimand:
    """Averages over groups."""
    groups = group_rows(table, by, weights)
    labels = _labels(groups, [("average", "mean")])
    return Estimand(Functionals((value_functionals(table, groups.weights),)), labels)


def comparisons(table: Table, variables: Any, by: Any, weights: Any, comparison: str) -> Estimand:
    """Differences or ratios of averages over groups between two values of a column."""
    groups, pairs = group_rows(table, by, weights), contrasts(table, variables)
    is_ratio, n = comparison == "ratio", len(pairs)
    pieces, changes = [], []
    for i, pair in enumerate(pairs):
        high, low = ({pair.term: side} for side in (pair.high, pair.low))
        affected = partial(changed_inputs, table, [low, high])
        changes.append(ColumnChange(pair.term, pair.label(comparison), affected))
        if is_ratio:  # first all numerators, then all denominators
            plus, minus = (_term_weights(groups, j, 2 * n) for j in (i, n + i))
        else:
            plus = _term_weights(groups, i, n)
            minus = -plus
        pieces += [value_functionals(table, plus, high), value_functionals(table, minus, low)]
    labels = _labels(groups, [(pair.term, pair.label(comparison)) for pair in pairs])
    transform = ratios if is_ratio else None
    return Estimand(Functionals(tuple(pieces)), labels, tuple(changes), transform)


def derivatives(table: Table, variables: Any, by: Any, weights: Any) -> Estimand:
    """Averages over groups of partial derivatives."""
    groups, names = group_rows(table, by, weights), _numeric_columns(table, variables)
    pieces = [
        value_functionals(table, _term_weights(groups, i, len(names)), derivative=name)
        for i, name in enumerate(names)
    ]
    labels = _labels(groups, [(name, "dy/dx") for name in names])
    return Estimand(Functionals(tuple(pieces)), labels, _slope_changes(table, names))


def curve(
    table: Table,
    names: Sequence[str],
    grids: Sequence[list[Any]],
    weights: Any,
    *,
    slope: bool,
    subtract_mean: bool,
) -> Estimand:
    """Averages over all rows with one or two columns set to the values of a grid."""
    if slope:
        require_numeric(table, names[0], "features")
    groups, nodes = group_rows(table, None, weights), list(product(*grids))
    q, derivative, pieces = len(nodes), names[0] if slope else None, []
    for i, node in enumerate(nodes):
        changed, weight = dict(zip(names, node, strict=True)), _term_weights(groups, i, q)
        pieces.append(value_functionals(table, weight, changed, derivative))
    labels: dict[str, list[Any]] = {
        "term": [", ".join(names)] * q,
        "contrast": ["dy/dx" if slope else "mean"] * q,
    }
    for j, name in enumerate(names):
        labels[unused_name(name, labels)] = [table.shown(name, node[j]) for node in nodes]
    changes = _slope_changes(table, names) if slope else _curve_changes(table, names, grids)
    transform = centered if subtract_mean else None
    return Estimand(Functionals(tuple(pieces)), labels, changes, transform)


def _slope_changes(table: Table, names: Sequence[str]) -> tuple[ColumnChange, ...]:
    return tuple(
        ColumnChange(name, "dy/dx", partial(differentiated_inputs, table, name), slope=True)
        for name in names
    )


def _curve_changes(
    table: Table, names: Sequence[str], grids: Sequence[list[Any]]
) -> tuple[ColumnChange, ...]:
    changes = []
    for name, grid in zip(names, grids, strict=True):
        affected = partial(changed_inputs, table, [{name: value} for value in grid])
        changes.append(ColumnChange(name, "curve", affected))
    return tuple(changes)


def unused_name(name: str, used: Any) -> str:
    """A name for a user's column, with underscores appended while it is in use."""
    while name in used:
        name = f"{name}_"
    return name


def _term_weights(groups: Groups, i: int, n: int) -> Any:
    """Weights (rows, n * groups), nonzero for the i-th of n terms only."""
    rows, G = groups.weights.shape
    weights = groups.weights.tocoo()
    entries = weights.data, (weights.coords[0], weights.coords[1] + i * G)
    return scipy.sparse.csr_array(entries, shape=(rows, n * G))


def _labels(groups: Groups, terms: list[tuple[str, str]]) -> dict[str, list[Any]]:
    """Labels of all terms and groups; groups vary fastest."""
    labels: dict[str, list[Any]] = {
        "term": [term for term, _ in terms for _ in range(groups.size)],
        "contrast": [contrast for _, contrast in terms for _ in range(groups.size)],
    }
    for name, each in groups.labels.items():
        labels[unused_name(name, labels)] = list(each) * len(terms)
    return labels


def _numeric_columns(table: Table, variables: Any) -> list[str]:
    """Columns to differentiate by."""
    if variables is None:
        names = [name for name in table.features if _is_numeric_column(table, name)]
        if not names:
            raise ValueError("X has no numeric column and thus no slopes; use compare.")
    else:
        names = [column_name(table, key, "variables") for key in as_list(variables)]
        if not names:
            raise no_variables("omit it to differentiate by all numeric columns")
    for name in names:
        require_numeric(table, name, "variables")
    return names


def require_numeric(table: Table, name: str, parameter: str) -> None:
    """Raise an error for a column by which the function cannot be differentiated."""
    if not _is_numeric_column(table, name):
        cause, remedy = "is not numeric and has no slope", "use compare with two of its values"
    elif not table.fills(name) and np.isnan(np.asarray(table.column(name), float)).any():
        cause = "has missing values, where the slope is undefined"
        remedy = "drop those rows, or use compare with two values of the column"
    else:
        return
    raise InputError(Message("not-differentiable", cause, parameter, name, (remedy,)))


def _is_numeric_column(table: Table, name: str) -> bool:
    column = table.column(name)
    return column is not None and is_numeric(column)
