"""Contrasts: the two values of a column that a comparison is between."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ulmus.effects.columns import Table, as_list, column_name, distinct_values, is_numeric
from ulmus.exceptions import InputError
from ulmus.messages import ANY, Message

SPANS = ("sd", "iqr", "minmax")


class Contrast(NamedTuple):
    """Two values of a column."""

    term: str  # the column
    high: Any  # value after the change, for all rows or (n,) for each
    low: Any  # value before the change
    names: tuple[str, str]  # names of the two values

    def label(self, comparison: str) -> str:
        """Difference or ratio of the two names."""
        high, low = self.names
        return f"{high} / {low}" if comparison == "ratio" else f"{high} - {low}"


def contrasts(table: Table, variables: Any) -> list[Contrast]:
    """Contrasts from a dict of columns and specifications, or from column names."""
    if isinstance(variables, Mapping):
        pairs = list(variables.items())
    else:
        pairs = [(key, None) for key in as_list(variables)]
    if not pairs:
        raise no_variables("give the values to compare, for example {'t': (10, 20)}")
    return [contrast for key, spec in pairs for contrast in _column_contrasts(table, key, spec)]


def no_variables(suggestion: str) -> InputError:
    """Error of an empty list of columns."""
    message = Message("no-variables", "names no column", "variables", ANY, (suggestion,))
    return InputError(message)


def _error(term: str, spec: Any, text: str, suggestion: str = "") -> InputError:
    suggestions = (suggestion,) if suggestion else ()
    return InputError(Message("contrast", text, "variables", spec, suggestions, item=term))


def _column_contrasts(table: Table, key: Any, spec: Any) -> list[Contrast]:
    term = column_name(table, key, "variables")
    column = table.column(term)
    assert column is not None  # a feature
    if spec is None:
        spec = 1 if is_numeric(column) else distinct_values(table, term)
    if isinstance(spec, (list, tuple, np.ndarray)):
        return _between(table, term, column, [table.value(term, value) for value in spec])
    if not is_numeric(column):
        example = [str(value) for value in distinct_values(table, term)[:2]]
        remedy = f"give the values to compare, for example {example}"
        raise _error(term, spec, "requires a column of numbers", remedy)
    column = column.astype(float)
    if isinstance(spec, str):
        return [_span(term, column, spec)]
    step = float(spec) if isinstance(spec, numbers.Real) and not isinstance(spec, bool) else 0.0
    if not np.isfinite(step) or step == 0:
        spans = ", ".join(map(repr, SPANS))
        raise _error(term, spec, f"must be two or more values, a nonzero step, or one of {spans}")
    _require_no_missing(term, column, spec)
    name = f"x {'+' if step > 0 else '-'} {abs(step):g}"
    return [Contrast(term, column + step, column, (name, "x"))]


def _between(table: Table, term: str, column: np.ndarray, values: list[Any]) -> list[Contrast]:
    """Contrasts of all values with the first."""
    if len(values) < 2:
        raise _error(term, values, "requires at least two values")
    if column.dtype.kind in "biuf":
        try:
            numbers = [float(v) for v in values]
        except (TypeError, ValueError) as error:
            raise _error(term, values, "must be numbers, as the column is") from error
        if not np.all(np.isfinite(numbers)):
            raise _error(term, values, "must be finite numbers")
        values = numbers if is_numeric(column) else values
    first = values[0]
    texts = [_text(table.shown(term, value)) for value in values]
    pairs = zip(values[1:], texts[1:], strict=True)
    return [Contrast(term, high, first, (text, texts[0])) for high, text in pairs]


def _require_no_missing(term: str, column: np.ndarray, spec: Any) -> None:
    n_missing = int(np.sum(np.isnan(column)))
    if n_missing:
        text = f"is a change from each row's own value, which is missing in {n_missing} rows"
        raise _error(term, spec, text, "drop those rows, or give the values to compare")


def _span(term: str, column: np.ndarray, spec: str) -> Contrast:
    if spec not in SPANS:
        spans = ", ".join(map(repr, SPANS))
        raise _error(term, spec, f"must be one of {spans}, two or more values, or a step")
    present = column[~np.isnan(column)]
    if len(present) == 0:
        raise _error(term, spec, "requires values, but the column is missing in all rows")
    if spec == "sd":
        _require_no_missing(term, column, spec)
        half = np.std(column, ddof=1) / 2 if len(column) > 1 else 0.0
        contrast = Contrast(term, column + half, column - half, ("(x + sd/2)", "(x - sd/2)"))
    elif spec == "iqr":
        low, high = np.quantile(present, [0.25, 0.75])
        contrast = Contrast(term, float(high), float(low), ("q75", "q25"))
    else:
        contrast = Contrast(term, float(present.max()), float(present.min()), ("max", "min"))
    if np.all(contrast.high == contrast.low):
        text = f"compares equal values: the column hardly varies in these {len(column)} rows"
        raise _error(term, spec, text, "give the values to compare, or a step")
    return contrast


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
