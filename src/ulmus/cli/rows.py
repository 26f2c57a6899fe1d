"""Rows of a table in a file that a model can learn from, or be asked about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ulmus.cli.console import Console, counted_rows
from ulmus.cli.loaded_model import LoadedModel
from ulmus.tables.cells import CATEGORY, DATE, NUMBER, Cells
from ulmus.tables.files import TableFile

# Larger tables are represented by so many of their rows.
MOST_ROWS = 200_000


def numeric_column(
    name: str, frame: Any, marks: tuple[str, ...], first_row: int, role: str
) -> np.ndarray:
    """A column that must hold numbers."""
    cells = Cells(name, frame[name], marks, first_row)
    if cells.kind in (CATEGORY, DATE):
        raise ValueError(
            f"{role} {name!r} holds {'dates' if cells.kind == DATE else 'texts'}, such as "
            f"{str(cells.texts[0])!r}; name a column of numbers."
        )
    return cells.numbers(NUMBER)


def observed_rows(
    known: LoadedModel, table: TableFile, target: str | None, console: Console
) -> tuple[Any, np.ndarray | None]:
    """Complete rows of a table and, where it has the target, what was observed there."""
    columns = list(known.schema.names)
    if target is not None and target in table.names:
        columns.append(target)
    else:
        console.note(f"{table.path} has no column {target!r}: nothing observed to compare with.")
        target = None
    frame = some_rows(table, columns, console)
    y = None
    if target is not None:
        y = numeric_column(target, frame, known.schema.marks, 0, "the target")
    return tidied_rows(known, frame, table.path, console, y, gaps=True)


def tidied_rows(
    known: LoadedModel,
    frame: Any,
    path: Path,
    console: Console,
    y: np.ndarray | None = None,
    *,
    gaps: bool = False,
) -> tuple[Any, np.ndarray | None]:
    """Rows that a model can be asked about and, where it was observed, their target."""
    tidy, kept = known.schema.tidied(frame, gaps=gaps)
    if y is not None:
        y = y[kept]
        tidy, y = tidy[~np.isnan(y)], y[~np.isnan(y)]
    if not len(tidy):
        raise ValueError(f"{path} has no complete rows.")
    if len(tidy) < len(frame):
        console.note(f"Left out: {counted_rows(len(frame) - len(tidy))} with missing values.")
    return tidy, y


def some_rows(table: TableFile, columns: Sequence[str], console: Console) -> Any:
    """All rows of a table, or so many of a large one, evenly spread."""
    import pandas as pd

    if not table.is_large:
        return table.frame(columns)
    step, start, n_kept, parts = 1, 0, 0, []
    for frame in table.frames(columns):
        parts.append(
            frame.set_axis(np.arange(start, start + len(frame))).iloc[-start % step :: step]
        )
        start, n_kept = start + len(frame), n_kept + len(parts[-1])
        while n_kept > MOST_ROWS:
            step *= 2
            parts = [part[part.index % step == 0] for part in parts]
            n_kept = sum(map(len, parts))
    console.note(
        f"{table.path} is large: {n_kept:,} of its {start:,} rows are used, evenly spread."
    )
    rows = pd.concat(parts)
    return rows.set_axis(rows.index + 1)
