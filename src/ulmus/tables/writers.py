"""Tables that are written block by block, and appear whole or not at all."""

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

from ulmus.model_file.atomic_write import replaced
from ulmus.tables.files import file_format


def require_place(path: Path, suffixes: Sequence[str] = (), *, inputs: Sequence[Path] = ()) -> None:
    """Refuse a place for an output before any work is done for it."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file in it.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path} lies in a folder that does not exist; make it first.")
    if suffixes and path.suffix.lower() not in suffixes:
        raise ValueError(f"{path}: the output must end in {' or '.join(suffixes)}.")
    for other in inputs:
        if os.path.realpath(path) == os.path.realpath(other) or _same_file(path, other):
            raise ValueError(f"{path} is used already; give the output another name.")


def _same_file(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def require_types(path: Path, fields: Sequence[Any]) -> None:
    """Refuse columns that a file of this kind cannot hold."""
    nested = next((field.name for field in fields if pa.types.is_nested(field.type)), None)
    if nested is not None and file_format(path) == "csv":
        raise ValueError(f"{path}: column {nested!r} holds lists or the like; write .parquet.")


@contextmanager
def table_writer(path: Path, schema: Any) -> Iterator[Any]:
    """A writer of Arrow's tables, for a file of the kind that its ending tells."""
    kind = file_format(path)
    with replaced(path) as temporary, _writer(temporary, kind, schema) as writer:
        yield writer


@contextmanager
def _writer(path: Path, kind: str, schema: Any) -> Iterator[Any]:
    if kind == "parquet":
        with pa.parquet.ParquetWriter(path, schema, write_page_checksum=True) as writer:
            yield writer
        return
    with pa.output_stream(str(path), compression="detect") as sink:
        make = pa.csv.CSVWriter if kind == "csv" else pa.ipc.new_file
        with make(sink, schema) as writer:
            yield writer


def write_frame(path: Path, frame: Any) -> None:
    """Write a data frame as a table."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    with table_writer(path, table.schema) as writer:
        writer.write_table(table)
