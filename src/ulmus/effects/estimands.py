"""Questions as functionals with labels: averages, differences, slopes and curves of a table."""

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
    listed,
    moved_along,
    moved_between,
    named_column,
    numeric,
    slopes,
    values,
)
from ulmus.effects.contrasts import contrasts
from ulmus.effects.groups import Groups, groups


class Move(NamedTuple):
    """A change of a column that is asked about.

    Parameters
    ----------
    term : str
        The column.
    how : str
        What is done with it, in words.
    moved : callable
        Which inputs of the model move with it, shape (d,); found when it is needed.
    slope : bool
        Whether the change is infinitely small.
    """

    term: str
    how: str
    moved: Callable[[], np.ndarray]
    slope: bool = False


class Estimand(NamedTuple):
    """Functionals, what tells them apart, and the changes of columns that they are about."""

    asked: Functionals
    labels: dict[str, list[Any]]
    moves: tuple[Move, ...] = ()


def weighted_sums(table: Table, A: Any) -> Estimand:
    """The rows of A @ f(X)."""
    weights = scipy.sparse.csr_array(A.T)
    q = weights.shape[1]
    names = [f"row {i}" for i in range(q)]
    labels = {"term": names, "contrast": ["A @ f"] * q}
    return Estimand(Functionals((values(table, weights),)), labels)


def averages(table: Table, by: Any, weights: Any) -> Estimand:
    """Averages over groups."""
    made = groups(table, by, weights)
    return Estimand(
        Functionals((values(table, made.weights),)), _labels(made, [("average", "mean")])
    )


def comparisons(table: Table, variables: Any, by: Any, weights: Any, comparison: str) -> Estimand:
    """Averages over groups of what changes of columns change.

    A ratio needs both sides by themselves: first all numerators, then all denominators.
    """
    made, asked = groups(table, by, weights), contrasts(table, variables)
    n, pieces, moves = len(asked), [], []
    for i, contrast in enumerate(asked):
        high, low = ({contrast.term: side} for side in (contrast.high, contrast.low))
        moved = partial(moved_between, table, [low, high])
        moves.append(Move(contrast.term, contrast.label(comparison), moved))
        if comparison == "ratio":
            pieces.append(values(table, _placed(made, i, 2 * n), high))
            pieces.append(values(table, _placed(made, n + i, 2 * n), low))
        else:
            pieces.append(values(table, _placed(made, i, n), high))
            pieces.append(values(table, -_placed(made, i, n), low))
    names = [(contrast.term, contrast.label(comparison)) for contrast in asked]
    return Estimand(Functionals(tuple(pieces)), _labels(made, names), tuple(moves))


def derivatives(table: Table, variables: Any, by: Any, weights: Any) -> Estimand:
    """Averages over groups of derivatives by columns."""
    made, names = groups(table, by, weights), _numeric_columns(table, variables)
    pieces = [slopes(table, _placed(made, i, len(names)), name) for i, name in enumerate(names)]
    labels = _labels(made, [(name, "dy/dx") for name in names])
    return Estimand(Functionals(tuple(pieces)), labels, _slopes_of(table, names))


def curve(
    table: Table,
    names: Sequence[str],
    grids: Sequence[list[Any]],
    weights: Any,
    *,
    slope: bool,
) -> Estimand:
    """Averages over all rows with one or two columns set to the values of a grid."""
    made, nodes = groups(table, None, weights), list(product(*grids))
    q, pieces = len(nodes), []
    for i, node in enumerate(nodes):
        changes, weight = dict(zip(names, node, strict=True)), _placed(made, i, q)
        if slope:
            pieces.append(slopes(table, weight, names[0], changes))
        else:
            pieces.append(values(table, weight, changes))
    labels: dict[str, list[Any]] = {
        "term": [", ".join(names)] * q,
        "contrast": ["dy/dx" if slope else "mean"] * q,
    }
    for j, name in enumerate(names):
        labels[free_name(name, labels)] = [node[j] for node in nodes]
    if slope:
        return Estimand(Functionals(tuple(pieces)), labels, _slopes_of(table, names))
    along = [[{name: value} for value in grid] for name, grid in zip(names, grids, strict=True)]
    moves = [
        Move(name, "curve", partial(moved_between, table, scenarios))
        for name, scenarios in zip(names, along, strict=True)
    ]
    return Estimand(Functionals(tuple(pieces)), labels, tuple(moves))


def _slopes_of(table: Table, names: Sequence[str]) -> tuple[Move, ...]:
    return tuple(Move(n, "dy/dx", partial(moved_along, table, n), slope=True) for n in names)


def free_name(name: str, taken: Any) -> str:
    """The name of a user's column; one that is taken already gets underscores."""
    while name in taken:
        name = f"{name}_"
    return name


def _placed(made: Groups, i: int, n: int) -> Any:
    """Weights (rows, n groups) in the place of the i-th of n terms."""
    rows, G = made.weights.shape
    weights = made.weights.tocoo()
    entries = weights.data, (weights.coords[0], weights.coords[1] + i * G)
    return scipy.sparse.csr_array(entries, shape=(rows, n * G))


def _labels(made: Groups, names: list[tuple[str, str]]) -> dict[str, list[Any]]:
    """Labels of all terms and groups, the terms outside."""
    labels: dict[str, list[Any]] = {
        "term": [term for term, _ in names for _ in range(made.size)],
        "contrast": [contrast for _, contrast in names for _ in range(made.size)],
    }
    for name, each in made.labels.items():
        labels[free_name(name, labels)] = list(each) * len(names)
    return labels


def _numeric_columns(table: Table, variables: Any) -> list[str]:
    """Columns that have a slope."""
    if variables is None:
        found = [n for n in table.features if _is_numeric(table, n)]
        if not found:
            raise ValueError("X has no column of numbers, so there are no slopes; use compare.")
        for name in found:
            require_numeric(table, name, "variables")
        return found
    names = [named_column(table, key, "variables") for key in listed(variables)]
    if not names:
        raise ValueError("variables names no column; leave it out for all of them.")
    for name in names:
        require_numeric(table, name, "variables")
    return names


def require_numeric(table: Table, name: str, parameter: str) -> None:
    """Refuse a column without slopes."""
    if not _is_numeric(table, name):
        raise ValueError(
            f"{parameter} asks for the slope of column {name!r}, which holds no numbers; use "
            "compare with two of its values."
        )
    column = table.column(name)
    if column is not None and np.any(np.isnan(column.astype(float))):
        raise ValueError(
            f"{parameter} asks for the slope of column {name!r}, which has missing values; drop "
            "those rows, or use compare with two of its values."
        )


def _is_numeric(table: Table, name: str) -> bool:
    column = table.column(name)
    return column is not None and numeric(column)
