"""Tables written block by block; a file is replaced only after all blocks are written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from ulmus.atomic_write import atomic_write, writable_target
from ulmus.tables.formats import CSV, PARQUET, file_format


def require_output_path(
    path: Path, suffixes: Sequence[str] = (), *, inputs: Sequence[Path] = ()
) -> None:
    """Refuse an output path before any work is done for it."""
    writable_target(path)
    if suffixes and path.suffix.lower() not in suffixes:
        raise ValueError(f"{path}: the output must end in {' or '.join(suffixes)}.")
    for other in inputs:
        same = path.exists() and other.exists() and path.samefile(other)
        if same or os.path.realpath(path) == os.path.realpath(other):
            raise ValueError(f"{path} is an input; give the output another name.")


def require_supported_types(path: Path, fields: Sequence[Any]) -> None:
    """Refuse columns that the format of a file does not support."""
    nested = next((field.name for field in fields if pa.types.is_nested(field.type)), None)
    if nested is not None and file_format(path) == CSV:
        raise ValueError(f"{path}: column {nested!r} contains nested values; write .parquet.")


@contextmanager
def table_writer(path: Path, schema: Any) -> Iterator[Any]:
    """A writer of Arrow tables, in the format of the ending of a file."""
    format = file_format(path)
    with atomic_write(path) as temporary, _writer(temporary, format, schema) as writer:
        yield writer


@contextmanager
def _writer(path: Path, format: str, schema: Any) -> Iterator[Any]:
    if format == PARQUET:
        with pa.parquet.ParquetWriter(path, schema, write_page_checksum=True) as writer:
            yield writer
        return
    with pa.output_stream(str(path), compression="detect") as sink:
        construct = pa.csv.CSVWriter if format == CSV else pa.ipc.new_file
        with construct(sink, schema) as writer:
            yield writer


def write_frame(path: Path, frame: Any) -> None:
    """Write a data frame as a table."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    with table_writer(path, table.schema) as writer:
        writer.write_table(table)
