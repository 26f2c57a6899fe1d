"""Tables of the command line: opening them, and refusing outputs before any work."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ulmus.cli.console import Console, counted_rows
from ulmus.cli.options import ReadingOptions
from ulmus.cli.steps.streams import is_standard, spooled_input
from ulmus.tables.cells import Cells
from ulmus.tables.columns import BooleanColumn, NumberColumn, column_type
from ulmus.tables.files import TableFile, table_file
from ulmus.tables.formats import CsvDialect, file_format
from ulmus.tables.writers import require_output_path, write_frame

__all__ = [
    "note_excluded",
    "numeric_column",
    "open_table",
    "require_output_file",
    "require_table_output",
    "sample_rows",
    "write_frame",
]

# Tables with more cells than fit into memory are represented by at most so many rows.
MAX_ROWS = 200_000


def open_table(path: Path, reading: ReadingOptions, console: Console) -> TableFile:
    """A table in a file or on standard input; what was detected in CSV is noted."""
    if is_standard(path):
        path = spooled_input(console)
    dialect = CsvDialect(reading.delimiter, reading.decimal, reading.encoding)
    table, notes = table_file(path, dialect)
    for text in notes:
        console.note(text)
    return table


def require_output_file(
    path: Path, suffixes: Sequence[str] = (), *, inputs: Sequence[Path | None] = ()
) -> None:
    """Refuse an output before any work is done for it, if it cannot be written as a file."""
    if is_standard(path):
        raise ValueError(f"the output {path} is standard output; give the name of a file.")
    files = [one for one in inputs if one is not None and not is_standard(one)]
    require_output_path(path, suffixes, inputs=files)
    folder = path.resolve().parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(
            errno.EACCES, "the folder cannot be written to; choose another", str(path.parent)
        )


def require_table_output(
    path: Path | None, inputs: Sequence[Path | None], console: Console
) -> None:
    """Refuse an output that is neither a table nor standard output."""
    if path is not None and is_standard(path):
        if console.json:
            raise ValueError("--json prints one document, not CSV; use either -o - or --json.")
    elif path is not None:
        require_output_file(path, inputs=inputs)
        file_format(path)


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


def note_excluded(n_rows: int, console: Console, without: str | None = None) -> None:
    """Note the number of rows excluded because they lack a value, of given columns or of any."""
    if n_rows:
        reason = "with missing values" if without is None else f"without a value of {without}"
        console.note(f"Excluded: {counted_rows(n_rows)} {reason}.")
