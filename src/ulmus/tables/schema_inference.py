"""The schema of a table from its rows, a part of them at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ulmus.exceptions import InputError
from ulmus.messages import Message
from ulmus.tables.cells import Cells, some
from ulmus.tables.columns import COLUMN_TYPES, CategoryColumn, Column, column_type
from ulmus.tables.columns.base import MAX_CATEGORIES, ColumnStatistics, ColumnUse
from ulmus.tables.schema import MISSING_RULES, UNKNOWN_RULES, Schema, require_distinct


class InferredSchema(NamedTuple):
    """The schema of a table, notes about its columns, and the number of rows."""

    schema: Schema
    notes: tuple[str, ...]
    n_rows: int


def infer_schema(
    frames: Iterable[Any],
    *,
    categorical: Sequence[str] = (),
    missing: str = "error",
    na_values: Sequence[str] = (),
    unknown: str = "error",
) -> InferredSchema:
    """The schema of a table that comes in parts.

    Parameters
    ----------
    frames : iterable of pandas.DataFrame
        The rows, with the columns that may serve as inputs.
    categorical : list of str, default=()
        Columns of numbers that are labels of categories.
    missing : {"error", "drop", "impute"}, default="error"
        The rule for rows with missing values.
    na_values : list of str, default=()
        Texts and numbers that stand for a missing value.
    unknown : {"error", "ignore"}, default="error"
        The rule for categories that are in no training row.

    Returns
    -------
    inferred : InferredSchema
        Named tuple of ``schema``; ``notes``, sentences about excluded and encoded columns; and
        ``n_rows``, the number of rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from ulmus.tables import infer_schema
    >>> table = pd.DataFrame({"t": [1, 2, 3], "ok": [True, False, True]})
    >>> schema, notes, n_rows = infer_schema([table[:2], table[2:]])
    >>> [(column.name, column.type_name) for column in schema.columns], n_rows
    ([('t', 'number'), ('ok', 'boolean')], 3)
    """
    if missing not in MISSING_RULES:
        text = f"must be one of {', '.join(MISSING_RULES)}"
        raise InputError(Message("missing-rule", text, "missing", missing))
    if unknown not in UNKNOWN_RULES:
        text = f"must be one of {', '.join(UNKNOWN_RULES)}"
        raise InputError(Message("unknown-rule", text, "unknown", unknown))
    categorical = _as_tuple("categorical", categorical)
    na_values = tuple(map(str, _as_tuple("na_values", na_values)))
    scans: dict[str, ColumnScan] = {}
    n_rows = 0
    for frame in frames:
        names = list(frame.columns)
        _require_names(names, categorical)
        for name in names:
            scan = scans.setdefault(name, ColumnScan(name, name in categorical))
            scan.add(Cells(name, frame[name], na_values, n_rows))
        n_rows += len(frame)
    if n_rows == 0:
        raise ValueError("the table has no rows; a model requires some.")
    columns = [scan.column() for scan in scans.values() if scan.use is ColumnUse.INPUT]
    notes = _notes(list(scans.values()))
    if not columns:
        reason = " ".join(notes) or "there is none besides the target."
        raise ValueError(f"no column of the table can serve as an input: {reason}")
    schema = Schema(tuple(columns), missing, na_values, unknown)
    _require_distinct_features(schema)
    return InferredSchema(schema, tuple(notes), n_rows)


@dataclass
class ColumnScan:
    """Type and statistics of one column, updated with every part of the table."""

    name: str
    declared_categorical: bool = False
    column_class: type[Column] | None = None
    statistics: ColumnStatistics | None = None

    def add(self, cells: Cells) -> None:
        """Update by further cells."""
        declared = CategoryColumn if self.declared_categorical else None
        self.column_class = self.column_class or declared or column_type(cells)
        if self.column_class is None:
            return
        self.statistics = self.statistics or self.column_class.statistics()
        self.statistics.add(cells)
        if self.declared_categorical and self.use is ColumnUse.IDENTIFIER:
            text = f"column {self.name!r} has more than {MAX_CATEGORIES} categories"
            raise ValueError(f"{text}; join some of them, or use it as a number.")

    @property
    def use(self) -> ColumnUse:
        """Whether the column is an input, or why it is excluded."""
        return ColumnUse.EMPTY if self.statistics is None else self.statistics.use

    @property
    def resembles_dates(self) -> bool:
        """Whether it contains dates as texts, and was not declared categorical."""
        dates = self.statistics is not None and self.statistics.resembles_dates
        return dates and not self.declared_categorical

    def column(self) -> Column:
        """The column of the schema."""
        assert self.column_class is not None
        return self.column_class.from_statistics(self.name, self.statistics)


def _notes(scans: list[ColumnScan]) -> list[str]:
    """Sentences about excluded columns, about encodings, and about dates in other forms."""
    notes = []
    for use in (ColumnUse.EMPTY, ColumnUse.CONSTANT):
        names = [scan.name for scan in scans if scan.use is use]
        if names:
            notes.append(f"Excluded ({use.value}): {some(names, 20)}.")
    for scan in scans:
        if scan.use is ColumnUse.IDENTIFIER:
            dates = "dates; write them as 2023-12-31"
            content = dates if scan.resembles_dates else "identifiers or free text"
            many = f"{scan.name} has more than {MAX_CATEGORIES} distinct texts"
            notes.append(f"Excluded: {many}, probably {content}.")
    inputs = [scan for scan in scans if scan.use is ColumnUse.INPUT]
    for one in COLUMN_TYPES.values():
        labels = [scan.column().label for scan in inputs if scan.column_class is one]
        if one.note and labels:
            notes.append(one.note.format(some(labels, 20)))
    for scan in inputs:
        if scan.resembles_dates:
            form = "write them as 2023-12-31 to encode them as days"
            notes.append(f"{scan.name} probably contains dates; {form}.")
    return notes


def _as_tuple(parameter: str, values: Any) -> tuple[Any, ...]:
    """A list as a tuple; a text is not a list of its letters."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        suggestions = (f"use [{values!r}]",)
        raise InputError(Message("not-a-list", "must be a list", parameter, values, suggestions))
    return tuple(values)


def _require_names(names: list[Any], categorical: Sequence[str]) -> None:
    other = next((name for name in names if not isinstance(name, str)), None)
    if other is not None:
        text = f"the table has a column called {other!r}, and names must be texts"
        raise ValueError(f"{text}; rename it, as by X.columns = [str(name) for name in X.columns].")
    require_distinct(names)
    absent = next((name for name in categorical if name not in names), None)
    if absent is not None:
        text = f"names the column {absent!r}, which is not an input"
        inputs = f"the inputs are {some(names, 20)}"
        raise InputError(Message("no-such-column", text, "categorical", suggestions=(inputs,)))


def _require_distinct_features(schema: Schema) -> None:
    """Refuse a category whose input has the name of another input."""
    origins: dict[str, str] = {}
    for feature, origin in zip(schema.features, schema.origins, strict=True):
        if feature in origins:
            both = f"columns {origins[feature]!r} and {origin!r}"
            raise ValueError(f"{both} would both have an input {feature!r}; rename one of them.")
        origins[feature] = origin
