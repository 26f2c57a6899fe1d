"""What a comparison changes: a column, from one value to another."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ulmus.effects.columns import Table, levels, listed, named_column, numeric

SPANS = ("sd", "iqr", "minmax")


class Contrast(NamedTuple):
    """A column that goes from one value to another.

    Parameters
    ----------
    term : str
        The column.
    high, low : scalar or ndarray of shape (n,)
        Its values after and before, for all rows or for each.
    names : tuple of str
        What the two are called.
    """

    term: str
    high: Any
    low: Any
    names: tuple[str, str]

    def label(self, comparison: str) -> str:
        """The two in words."""
        high, low = self.names
        return f"{high} / {low}" if comparison == "ratio" else f"{high} - {low}"


def contrasts(table: Table, variables: Any) -> list[Contrast]:
    """Contrasts from a dict of columns and what to do with each, or from names alone."""
    if isinstance(variables, Mapping):
        pairs = list(variables.items())
    else:
        pairs = [(key, None) for key in listed(variables)]
    if not pairs:
        raise ValueError("variables names no column; give for example variables={'t': (10, 20)}.")
    return [c for key, how in pairs for c in _of_column(table, key, how)]


def _of_column(table: Table, key: Any, how: Any) -> list[Contrast]:
    term = named_column(table, key, "variables")
    column = table.column(term)
    assert column is not None  # a feature
    if how is None:
        how = 1 if numeric(column) else levels(table, term)
    if isinstance(how, (list, tuple, np.ndarray)):
        return _between(term, column, list(how))
    if not numeric(column):
        raise ValueError(
            f"variables[{term!r}]={how!r} needs a column of numbers; give the values to compare, "
            f"for example {[str(v) for v in levels(table, term)[:2]]}."
        )
    column = column.astype(float)
    if isinstance(how, str):
        return [_span(term, column, how)]
    step = float(how) if isinstance(how, numbers.Real) and not isinstance(how, bool) else 0.0
    if np.isfinite(step) and step != 0:
        _require_known(term, column, how)
        name = f"x {'+' if step > 0 else '-'} {abs(step):g}"
        return [Contrast(term, column + step, column, (name, "x"))]
    raise ValueError(
        f"variables[{term!r}] must be two or more values, a step that is not zero, or one of "
        f"{', '.join(map(repr, SPANS))}, got {how!r}."
    )


def _between(term: str, column: np.ndarray, values: list[Any]) -> list[Contrast]:
    """All values against the first."""
    if len(values) < 2:
        raise ValueError(f"variables[{term!r}] needs at least two values, got {values!r}.")
    if column.dtype.kind in "biuf":
        try:
            numbers = [float(v) for v in values]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"variables[{term!r}]={values!r} must be numbers, as the column is."
            ) from error
        if not np.all(np.isfinite(numbers)):
            raise ValueError(f"variables[{term!r}]={values!r} must be finite numbers.")
        values = numbers if numeric(column) else values
    first = values[0]
    return [Contrast(term, high, first, (_text(high), _text(first))) for high in values[1:]]


def _require_known(term: str, column: np.ndarray, how: Any) -> None:
    """Refuse to step away from values that are missing."""
    missing = int(np.sum(np.isnan(column)))
    if missing:
        raise ValueError(
            f"variables[{term!r}]={how!r} starts from each row's own value, which {missing} rows "
            "lack; drop those rows, or give the values to compare."
        )


def _span(term: str, column: np.ndarray, how: str) -> Contrast:
    known = column[~np.isnan(column)]
    if how in SPANS and len(known) == 0:
        raise ValueError(f"variables[{term!r}]={how!r} needs values, and all rows lack them.")
    if how == "sd":
        _require_known(term, column, how)
        half = np.std(column, ddof=1) / 2 if len(column) > 1 else 0.0
        made = Contrast(term, column + half, column - half, ("(x + sd/2)", "(x - sd/2)"))
    elif how == "iqr":
        low, high = np.quantile(known, [0.25, 0.75])
        made = Contrast(term, float(high), float(low), ("q75", "q25"))
    elif how == "minmax":
        made = Contrast(term, float(known.max()), float(known.min()), ("max", "min"))
    else:
        raise ValueError(
            f"variables[{term!r}] must be one of {', '.join(map(repr, SPANS))}, two or more "
            f"values, or a step, got {how!r}."
        )
    if np.all(made.high == made.low):
        raise ValueError(
            f"variables[{term!r}]={how!r} goes nowhere, as the column hardly varies in these "
            f"{len(column)} rows; give the values to compare, or a step."
        )
    return made


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
