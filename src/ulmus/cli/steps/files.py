"""Tables of the command line: opening them, and refusing outputs before any work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ulmus.cli.console import Console, counted_rows
from ulmus.cli.options import ReadingOptions
from ulmus.tables.cells import Cells
from ulmus.tables.columns import BooleanColumn, NumberColumn, column_type
from ulmus.tables.files import TableFile, table_file
from ulmus.tables.formats import CsvDialect, file_format
from ulmus.tables.writers import require_output_path, write_frame

__all__ = [
    "file_format",
    "note_excluded",
    "numeric_column",
    "open_table",
    "require_output_path",
    "sample_rows",
    "write_frame",
]

# Tables with more cells than fit into memory are represented by at most so many rows.
MAX_ROWS = 200_000


def open_table(path: Path, reading: ReadingOptions, console: Console) -> TableFile:
    """A table file; what was detected in a CSV file is noted."""
    dialect = CsvDialect(reading.delimiter, reading.decimal, reading.encoding)
    table, notes = table_file(path, dialect)
    for text in notes:
        console.note(text)
    return table


def numeric_column(
    name: str, frame: Any, na_values: tuple[str, ...], first_row: int, role: str
) -> np.ndarray:
    """A column that must contain numbers."""
    cells = Cells(name, frame[name], na_values, first_row)
    found = column_type(cells)
    if found not in (None, NumberColumn, BooleanColumn):
        content = f"{found.plural}, such as {str(cells.texts[0])!r}"
        raise ValueError(f"{role} {name!r} contains {content}; name a column of numbers.")
    return cells.numbers()


def sample_rows(table: TableFile, columns: Sequence[Any], console: Console) -> Any:
    """All rows of a table, or evenly spaced ones of a large table."""
    import pandas as pd

    if not table.is_large:
        return table.frame(columns)
    step, start, n_kept, parts = 1, 0, 0, []
    for frame in table.frames(columns):
        numbered = frame.set_axis(np.arange(start, start + len(frame)))
        parts.append(numbered.iloc[-start % step :: step])
        start, n_kept = start + len(frame), n_kept + len(parts[-1])
        while n_kept > MAX_ROWS:
            step *= 2
            parts = [part[part.index % step == 0] for part in parts]
            n_kept = sum(map(len, parts))
    console.note(f"{table.path} is large: {n_kept:,} evenly spaced rows of {start:,} are used.")
    rows = pd.concat(parts)
    return rows.set_axis(rows.index + 1)


def note_excluded(n_rows: int, console: Console) -> None:
    """Note the number of rows excluded because of missing values."""
    if n_rows:
        console.note(f"Excluded: {counted_rows(n_rows)} with missing values.")
