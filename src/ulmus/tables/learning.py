"""What the columns of a table are, found in its rows, a part of them at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ulmus.tables.cells import CATEGORY, DATE, DATE_TEXT, OTHER_DATE_TEXT, Cells, some
from ulmus.tables.schema import MISSING, Column, Schema

# A column of more texts than this is no category but a name or a remark.
MOST_CATEGORIES = 100
# Medians come from so many values.
MEDIAN_VALUES = 100_000


class Learned(NamedTuple):
    """Columns of a table, what was noticed about them, and the number of rows."""

    schema: Schema
    notes: tuple[str, ...]
    n_rows: int


def learned_schema(
    frames: Iterable[Any],
    *,
    categorical: Sequence[str] = (),
    missing: str = "error",
    marks: Sequence[str] = (),
) -> Learned:
    """The columns of a table that comes in parts, with notes about what is done to them.

    Parameters
    ----------
    frames : iterable of pandas.DataFrame
        The rows, with the columns that may serve as inputs.
    categorical : list of str, default=()
        Columns of numbers that are names of categories.
    missing : {"error", "drop", "impute"}, default="error"
        What rows with missing values get.
    marks : list of str, default=()
        Texts and numbers that stand for a missing value.

    Returns
    -------
    learned : tuple of (Schema, tuple of str, int)
        Named tuple of ``schema``, the columns; ``notes``, sentences about what was left out or
        changed; and ``n_rows``, the number of rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from ulmus.tables import learned_schema
    >>> parts = [
    ...     pd.DataFrame({"t": [1, 2], "ok": [True, False]}),
    ...     pd.DataFrame({"t": [3], "ok": [True]}),
    ... ]
    >>> schema, notes, n_rows = learned_schema(parts)
    >>> [(column.name, column.kind) for column in schema.columns], n_rows
    ([('t', 'number'), ('ok', 'truth value')], 3)
    """
    if missing not in MISSING:
        raise ValueError(f"missing must be one of {', '.join(MISSING)}, got {missing!r}.")
    categorical = _several("categorical", categorical)
    marks = tuple(map(str, _several("marks", marks)))
    tallies: dict[str, Tally] = {}
    n_rows = 0
    for frame in frames:
        names = list(frame.columns)
        _require_names(names, categorical)
        for name in names:
            tally = tallies.setdefault(name, Tally(name, name in categorical))
            tally.add(Cells(name, frame[name], marks, n_rows))
        n_rows += len(frame)
    if n_rows == 0:
        raise ValueError("the table has no rows; a model needs some.")
    columns, notes = _chosen(list(tallies.values()))
    if not columns:
        raise ValueError(
            "no column of the table can serve as an input: "
            + (" ".join(notes) or "there is none besides the target.")
        )
    schema = Schema(tuple(columns), missing, marks)
    _require_distinct(schema)
    return Learned(schema, tuple(notes), n_rows)


def _several(parameter: str, given: Any) -> tuple[Any, ...]:
    """What was given as a list; a text is no list of its letters."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"{parameter} must be a list, got {given!r}; use [{given!r}].")
    return tuple(given)


def _require_names(names: list[Any], categorical: Sequence[str]) -> None:
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise ValueError(
            f"the table has a column called {odd!r}, and a model keeps names that are texts; "
            "rename it, for example by X.columns = [str(name) for name in X.columns]."
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the table has several columns called {twice!r}; rename all but one.")
    absent = next((name for name in categorical if name not in names), None)
    if absent is not None:
        raise ValueError(
            f"categorical names the column {absent!r}, which is no input; there are "
            f"{some(names, 20)}."
        )


def _require_distinct(schema: Schema) -> None:
    """Refuse a category that has the name of another column, or of another category."""
    origins: dict[str, str] = {}
    for feature, origin in zip(schema.features, schema.origins, strict=True):
        if feature in origins:
            raise ValueError(
                f"columns {origins[feature]!r} and {origin!r} would both give an input called "
                f"{feature!r}; rename one of them."
            )
        origins[feature] = origin


def _chosen(tallies: list[Tally]) -> tuple[list[Column], list[str]]:
    """Columns that say something, and notes about the others and about dates."""
    empty = [t.name for t in tallies if t.kind is None]
    named = [t for t in tallies if t.too_many]
    constant = [t.name for t in tallies if t.kind is not None and t.constant]
    dates = [t.name for t in tallies if t.kind == DATE and not t.constant]
    left_out = {*empty, *constant, *(t.name for t in named)}
    kinds = [t for t in tallies if t.kind == CATEGORY and t.name not in left_out]
    notes = []
    if empty:
        notes.append(f"Left out, without any value: {some(empty, 20)}.")
    if constant:
        notes.append(f"Left out, the same in all rows: {some(constant, 20)}.")
    for tally in named:
        like = "dates; write them as 2023-12-31" if tally.dated else "a name or a remark"
        notes.append(
            f"Left out: {tally.name}, with more than {MOST_CATEGORIES} different texts, looks like "
            f"{like}."
        )
    if dates:
        notes.append(f"Dates became days since 1970 (times, parts of a day): {some(dates, 20)}.")
    if kinds:
        counted = [f"{tally.name} ({len(tally.counts)})" for tally in kinds]
        notes.append(f"Became categories, so many of each: {some(counted, 20)}.")
    for tally in kinds:
        if tally.dated and not tally.forced:
            notes.append(f"{tally.name} looks like dates; write them as 2023-12-31 to have days.")
    return [t.column() for t in tallies if t.name not in left_out], notes


class Tally:
    """What is known so far about one column; it grows with every part of the table."""

    def __init__(self, name: str, categorical: bool) -> None:
        self.name = name
        self.kind = CATEGORY if categorical else None
        self.order: tuple[str, ...] = ()
        self.counts: Counter[str] = Counter()
        self.values: list[np.ndarray] = []
        self.n_values = 0
        self.low, self.high = np.inf, -np.inf
        self.forced = categorical

    def add(self, cells: Cells) -> None:
        """Count some more cells."""
        self.kind = self.kind or cells.kind
        if self.kind is None or self.too_many:
            return
        if self.kind == CATEGORY:
            self._count(cells)
            return
        values = cells.numbers(self.kind)
        values = values[~np.isnan(values)]
        if len(values):
            self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        if self.n_values < MEDIAN_VALUES:
            self.values.append(values[: MEDIAN_VALUES - self.n_values].copy())
        self.n_values += len(values)

    def _count(self, cells: Cells) -> None:
        self.counts.update(cells.texts)
        self.order = self.order or cells.declared
        if self.forced and self.too_many:
            raise ValueError(
                f"column {self.name!r} has more than {MOST_CATEGORIES} categories; join some of "
                "them, or use it as a number."
            )

    @property
    def too_many(self) -> bool:
        """Whether there are more texts than categories can be."""
        return len(self.counts) > MOST_CATEGORIES

    @property
    def constant(self) -> bool:
        """Whether all cells say the same."""
        return len(self.counts) <= 1 if self.kind == CATEGORY else not self.low < self.high

    @property
    def dated(self) -> bool:
        """Whether most texts are meant as dates, in whatever form."""
        dates = (DATE_TEXT, OTHER_DATE_TEXT)
        found = (n for text, n in self.counts.items() if any(d.fullmatch(text) for d in dates))
        return 2 * sum(found) > self.counts.total()

    def column(self) -> Column:
        """The column, of which everything is known now."""
        if self.kind != CATEGORY:
            fill = float(np.median(np.concatenate(self.values)))
            return Column(self.name, str(self.kind), (), fill)
        known = [category for category in dict.fromkeys(self.order) if category in self.counts]
        rest = sorted(set(self.counts).difference(known), key=_by_number)
        categories = tuple(map(str, [*known, *rest]))
        return Column(self.name, CATEGORY, categories, str(self.counts.most_common(1)[0][0]))


def _by_number(text: str) -> tuple[float, str]:
    """Order of categories: numbers by their size, then texts."""
    try:
        return float(text), text
    except ValueError:
        return float("inf"), text
