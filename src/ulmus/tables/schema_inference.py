"""The schema of a table from its rows, a part of them at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ulmus.exceptions import InputError
from ulmus.messages import Message
from ulmus.tables.cells import Cells, some
from ulmus.tables.columns import COLUMN_TYPES, CategoryColumn, Column, NumberColumn, column_type
from ulmus.tables.columns.statistics import ColumnStatistics, ColumnUse, DigitTexts
from ulmus.tables.schema import MISSING_RULES, UNKNOWN_RULES, Schema, require_distinct


def infer_schema(
    frames: Iterable[Any],
    *,
    categorical: Sequence[str] = (),
    missing: str = "impute",
    na_values: Sequence[str] = (),
    unknown: str = "average",
) -> Schema:
    """The schema of a table that comes in parts.

    Parameters
    ----------
    frames : iterable of pandas.DataFrame
        The rows, with the columns that may serve as inputs.
    categorical : list of str, default=()
        Columns of numbers that are labels of categories.
    missing : {"impute", "drop", "error"}, default="impute"
        The rule for missing values.
    na_values : list of str, default=()
        Texts and numbers that stand for a missing value.
    unknown : {"average", "error"}, default="average"
        The rule for categories that are in no training row.

    Returns
    -------
    schema : Schema
        The columns, with notes about excluded and encoded ones. What depends on the target, and
        how missing numbers are predicted, is learned by a fit.

    Examples
    --------
    >>> import pandas as pd
    >>> from ulmus.tables import infer_schema
    >>> table = pd.DataFrame({"t": [1, 2, 3], "ok": [True, False, True]})
    >>> schema = infer_schema([table[:2], table[2:]])
    >>> [(column.name, column.type_name) for column in schema.columns]
    [('t', 'number'), ('ok', 'boolean')]
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
    for scan in scans.values():
        scan.decide()
    used = [scan for scan in scans.values() if scan.use is ColumnUse.INPUT]
    columns = [scan.column(missing == "impute") for scan in used]
    doubts = tuple(_excluded(list(scans.values())) + _doubts(used))
    if not columns:
        reason = " ".join(doubts) or "there is none besides the target."
        raise ValueError(f"no column of the table can serve as an input: {reason}")
    remarks = [f"{scan.name!r} {one}." for scan in used for one in scan.remarks()]
    notes = (*doubts, *remarks, *_encodings(columns), *_gaps(columns))
    schema = Schema(tuple(columns), missing, na_values, unknown, None, notes, doubts)
    _require_distinct_features(schema)
    return schema


@dataclass
class ColumnScan:
    """Type and statistics of one column, updated with every part of the table."""

    name: str
    declared_categorical: bool = False
    column_class: type[Column] | None = None
    statistics: ColumnStatistics | None = None
    digits: DigitTexts | None = None  # if all values so far are texts of digits
    n_empty: int = 0  # cells before the first value

    def add(self, cells: Cells) -> None:
        """Update by further cells."""
        declared = CategoryColumn if self.declared_categorical else None
        if self.column_class is None:
            self.column_class = declared or column_type(cells)
            self.digits = DigitTexts() if self.column_class is NumberColumn else None
        if self.column_class is None:
            self.n_empty += len(cells.present)
            return
        if self.statistics is None:
            self.statistics = self.column_class.statistics()
            self.statistics.n_missing = self.n_empty
        self.statistics.add(cells)
        if self.digits is not None and not self.digits.add(cells):
            self.digits = None

    def decide(self) -> None:
        """Decide whether texts of digits are names."""
        if self.digits is not None and self.digits.are_names:
            self.column_class, self.statistics = CategoryColumn, self.digits.counts

    @property
    def use(self) -> ColumnUse:
        """Whether the column is an input, or why it is excluded."""
        use = ColumnUse.EMPTY if self.statistics is None else self.statistics.use
        named = use is ColumnUse.IDENTIFIER and self.declared_categorical
        return ColumnUse.INPUT if named else use

    def remarks(self) -> list[str]:
        """What a user may want to know about the column."""
        if self.statistics is None or self.declared_categorical:
            return []
        return self.statistics.remarks()

    def column(self, indicates_missing: bool) -> Column:
        """The column of the schema, perhaps with an indicator of its missing cells."""
        assert self.column_class is not None
        column = self.column_class.from_statistics(self.name, self.statistics)
        return column if indicates_missing else replace(column, n_missing=0)


def _excluded(scans: list[ColumnScan]) -> list[str]:
    """Sentences about excluded columns."""
    sentences = []
    for use in ColumnUse:
        names = [scan.name for scan in scans if scan.use is use]
        if names and use is not ColumnUse.INPUT:
            sentences.append(f"Excluded ({use.value}): {some(names, 20)}.")
    excluded = [scan for scan in scans if scan.use is ColumnUse.IDENTIFIER]
    return sentences + _doubts(excluded)


def _doubts(scans: list[ColumnScan]) -> list[str]:
    """Sentences about columns that may not be meant as they are read."""
    return [
        f"{scan.name!r} {doubt}."
        for scan in scans
        if scan.statistics is not None and not scan.declared_categorical
        for doubt in scan.statistics.doubts()
    ]


def _encodings(columns: list[Column]) -> list[str]:
    """Sentences about how columns are encoded."""
    sentences = []
    for one in COLUMN_TYPES.values():
        labels = [column.label for column in columns if type(column) is one]
        if one.note and labels:
            sentences.append(one.note.format(some(labels, 20)))
    return sentences


def _gaps(columns: list[Column]) -> list[str]:
    """A sentence about missing cells."""
    gaps = [f"{column.name} ({column.n_missing})" for column in columns if column.n_missing]
    return [f"Missing values filled in (number of rows): {some(gaps, 20)}."] if gaps else []


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
