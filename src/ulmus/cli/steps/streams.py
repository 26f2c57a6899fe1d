"""Standard input and output as tables of CSV."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.csv

from ulmus.cli.console import Console


def is_standard(path: Path | None) -> bool:
    """Whether a path stands for standard input or output."""
    return str(path) == "-"


def writes_to_pipe(output: Path | None) -> bool:
    """Whether a table is written to standard output: for ``-``, or if it is no terminal."""
    return is_standard(output) or (output is None and not _is_terminal(sys.stdout))


def spooled_input(console: Console) -> Path:
    """Standard input as a CSV file, which is read several times and removed at the end."""
    if sys.stdin is None:
        raise ValueError("standard input is closed; give the name of a table.")
    if _is_terminal(sys.stdin):
        console.note("Reading CSV from standard input; end it with Ctrl-D.")
    folder = console.resources.enter_context(TemporaryDirectory(prefix="ulmus-"))
    path = Path(folder) / "standard-input.csv"
    console.titles[str(path)] = "standard input"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


class CsvStream:
    """Writes tables as CSV to standard output, with one line of column names."""

    def __init__(self) -> None:
        if sys.stdout is None:
            raise ValueError("standard output is closed; write a file with --output.")
        self._has_header = False

    def write_table(self, table: Any) -> None:
        """Write the rows of a table."""
        memory = io.BytesIO()
        options = pa.csv.WriteOptions(include_header=not self._has_header)
        pa.csv.write_csv(table, memory, options)
        sys.stdout.flush()
        sys.stdout.buffer.write(memory.getvalue())
        sys.stdout.buffer.flush()
        self._has_header = True


def _is_terminal(stream: Any) -> bool:
    return stream is not None and bool(stream.isatty())
