"""Tables in files: CSV, Parquet and Arrow, read a block of rows at a time."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from ulmus.tables.arrow import COMPRESSIONS, FORMATS

BATCH_ROWS, PAGE_BYTES = 65_536, 2**20
# A table of more cells than this is read in blocks and not kept.
MOST_CELLS_IN_MEMORY = 10_000_000
# What a cell of a CSV file takes, in bytes, and how far compression shrinks it.
CELL_BYTES, COMPRESSION = 6, 4
DELIMITERS = (",", ";", "\t", "|")
# What pandas calls an index without a name, in CSV and in Parquet.
NAMELESS = re.compile(r"(__index_level_\d+__)?")
# Numbers with decimal commas, and with decimal points.
FRACTIONS = (r"-?\d*,\d+([eE][+-]?\d+)?", r"-?\d*\.\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Reading:
    """How a CSV file is to be read; None is found out from its first lines."""

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str = "utf-8"


@dataclass(frozen=True)
class TableFile:
    """A table in a file.

    Parameters
    ----------
    path : Path
        The file.
    format : {"csv", "parquet", "arrow"}
        What it is.
    reading : Reading
        How to read CSV.
    texts : tuple of str
        Columns of a CSV file that hold text, whatever it looks like.
    copied : tuple of str
        Columns of a CSV file of which whole numbers stay whole numbers, however large.
    """

    path: Path
    format: str
    reading: Reading = Reading()
    texts: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()

    CSV: ClassVar[str] = "csv"

    @cached_property
    def schema(self) -> Any:
        """Names and types of the columns."""
        with self._understood():
            if self.format == "parquet":
                return _with_plain_texts(pa.parquet.read_schema(self.path))
            if self.format == self.CSV:
                with self._csv_reader() as reader:
                    return self._legible(reader.schema)
            with self._arrow_reader() as reader:
                return _with_plain_texts(reader.schema)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    @property
    def named(self) -> list[str]:
        """Names without those of columns that have none, such as the row numbers of pandas."""
        return [name for name in self.names if not NAMELESS.fullmatch(name)]

    @cached_property
    def n_cells(self) -> int:
        """Number of cells; about, for CSV."""
        with self._understood():
            if self.format == "parquet":
                metadata = pa.parquet.read_metadata(self.path)
                return int(metadata.num_rows * metadata.num_columns)
            size = self.path.stat().st_size
            if self.format == self.CSV:
                packed = self.path.suffix.lower() in COMPRESSIONS
                return size // CELL_BYTES * (COMPRESSION if packed else 1)
            return size // 8

    @property
    def is_large(self) -> bool:
        """Whether it is better not kept in memory."""
        return self.n_cells > MOST_CELLS_IN_MEMORY

    def with_texts(self, names: Sequence[str]) -> TableFile:
        """The same file, of which some columns are text."""
        return replace(self, texts=tuple(name for name in names if name in self.names))

    def with_copies(self, names: Iterable[str]) -> TableFile:
        """The same file, of which some columns are only copied."""
        return replace(self, copied=tuple(names))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Blocks of rows with some columns, as record batches."""
        self.require(columns)
        with self._understood():
            if self.format == "parquet":
                yield from self._parquet_batches(list(columns))
            elif self.format == self.CSV:
                with self._csv_reader(columns) as reader:
                    yield from reader
            else:
                with self._arrow_reader() as reader:
                    for i in range(reader.num_record_batches):
                        batch = reader.get_batch(i).select(list(columns))
                        batch.validate(full=True)
                        yield from _cut(self._plain(batch))

    def _parquet_batches(self, columns: list[str]) -> Iterator[Any]:
        """Pages are read one by one, as a group of rows may be as large as the table.

        What was read of a group is given back when it is done.
        """
        file = pa.parquet.ParquetFile(
            self.path, buffer_size=PAGE_BYTES, page_checksum_verification=True
        )
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(BATCH_ROWS, columns=columns, row_groups=[group]):
                yield self._plain(batch.select(columns))

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """The same as data frames."""
        return map(self.data_frame, self.batches(columns))

    def data_frame(self, rows: Any) -> Any:
        """Rows of Arrow as a data frame, in which also what was an index in pandas is a column."""
        with self._understood():
            return rows.replace_schema_metadata().to_pandas()

    def frame(self, columns: Sequence[str]) -> Any:
        """All rows at once, numbered from 1 as in messages."""
        self.require(columns)
        with self._understood():
            if self.format == self.CSV:
                # Types come from all rows here, not from the first of them.
                table = pa.csv.read_csv(self.path, **self._csv_options(columns))
                self._legible(table.schema)
            else:
                table = pa.Table.from_batches(
                    list(self.batches(columns)),
                    pa.schema([self.schema.field(name) for name in columns]),
                )
            return self.data_frame(table).set_axis(range(1, table.num_rows + 1))

    def require(self, columns: Sequence[str]) -> None:
        """Refuse names that are not in the table, or in it twice."""
        for name in columns:
            if self.names.count(name) > 1:
                raise ValueError(f"{self.path} has several columns called {name!r}; rename them.")
            if name not in self.names:
                near = difflib.get_close_matches(name, self.names, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                listed = ", ".join(self.names[:20]) + (", ..." if len(self.names) > 20 else "")
                raise ValueError(f"{self.path} has no column {name!r}{hint} It has {listed}.")

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Say in one sentence why a file cannot be read."""
        try:
            yield
        except (pa.ArrowException, UnicodeError, OSError, EOFError) as error:
            if isinstance(error, OSError) and error.filename is not None:
                raise
            reason = f"{self.path} cannot be read as {self.format}: {_why(error)}"
            raise ValueError(reason) from error

    def _plain(self, batch: Any) -> Any:
        """A batch of the types that ``schema`` has."""
        schema = pa.schema([self.schema.field(name) for name in batch.schema.names])
        return batch if batch.schema.types == schema.types else batch.cast(schema)

    def _legible(self, schema: Any) -> Any:
        """A schema of which all names and columns of text are in the encoding of the file."""
        odd = [field.name for field in schema if pa.types.is_binary(field.type)]
        if odd:
            raise pa.ArrowInvalid(f"column {odd[0]!r} is not in {self.reading.encoding}")
        return schema

    @contextmanager
    def _csv_reader(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Reads blocks, with types by the first of them; whole numbers may become others later."""
        options = self._csv_options(columns)
        with pa.csv.open_csv(self.path, **options) as first:
            types = {
                field.name: field.type if field.name in self.copied else _lasting(field.type)
                for field in first.schema
                if field.name not in self.texts
            }
        options["convert_options"].column_types = {
            **types,
            **dict.fromkeys(self.texts, pa.string()),
        }
        with pa.csv.open_csv(self.path, **options) as reader:
            yield reader

    def _csv_options(self, columns: Sequence[str] | None) -> dict[str, Any]:
        reading = self.reading
        return {
            "read_options": pa.csv.ReadOptions(encoding=reading.encoding, block_size=2**22),
            "parse_options": pa.csv.ParseOptions(
                delimiter=reading.delimiter or ",", newlines_in_values=True
            ),
            "convert_options": pa.csv.ConvertOptions(
                include_columns=list(columns or ()),
                column_types=dict.fromkeys(self.texts, pa.string()),
                strings_can_be_null=True,
                decimal_point=reading.decimal or ".",
            ),
        }

    @contextmanager
    def _arrow_reader(self) -> Iterator[Any]:
        with pa.memory_map(str(self.path)) as source, pa.ipc.open_file(source) as reader:
            yield reader


def opened(path: Path, reading: Reading = Reading()) -> tuple[TableFile, list[str]]:  # noqa: B008
    """A table in a file, and notes about how it is read."""
    kind = file_format(path)
    for option, sign in (("--delimiter", reading.delimiter), ("--decimal", reading.decimal)):
        if sign is not None and len(sign) != 1:
            raise ValueError(f"{option} must be one character, got {sign!r}.")
    if not path.exists():
        raise ValueError(f"{path} does not exist; check the name.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty; give a table with a line of column names.")
    if kind != TableFile.CSV:
        return TableFile(path, kind), []
    found = _guessed(path, reading)
    notes = []
    if found.delimiter != "," and reading.delimiter is None:
        sign = {"\t": "tabs", ";": "semicolons", "|": "bars"}[str(found.delimiter)]
        notes.append(f"Columns of {path} are parted by {sign}.")
    if found.decimal == "," and reading.decimal is None:
        notes.append(f"Numbers of {path} have decimal commas.")
    return TableFile(path, kind, found), notes


def file_format(path: Path) -> str:
    """What the ending of a file says that it is."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in COMPRESSIONS
    ending = (suffixes[:-1] if packed else suffixes)[-1:]
    kind = FORMATS.get(ending[0]) if ending else None
    if kind is None or (packed and kind != TableFile.CSV):
        raise ValueError(
            f"{path}: the ending does not tell what table it is; use .csv, .csv.gz, .parquet, "
            ".arrow or .feather."
        )
    return "arrow" if kind == "feather" else kind


def _guessed(path: Path, reading: Reading) -> Reading:
    """Delimiter and decimal sign by the first lines, where they are not given."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            text = stream.read(2**16).decode(reading.encoding, errors="replace")
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"{path} cannot be read as csv: {_why(error)}") from error
    except LookupError as error:
        raise ValueError(f"--encoding {reading.encoding} is not known; try latin-1.") from error
    if "\0" in text:
        raise ValueError(f"{path} is not in {reading.encoding}; name its --encoding, or its kind.")
    header = re.sub(r'"[^"]*"', "", text).partition("\n")[0]
    delimiter = reading.delimiter or max(DELIMITERS, key=header.count)
    decimal = reading.decimal
    if decimal is None and delimiter != ",":
        lines = text.splitlines()[1:]
        cells = [cell.strip(' "') for line in lines for cell in line.split(delimiter)]
        commas, points = (any(map(re.compile(sign).fullmatch, cells)) for sign in FRACTIONS)
        decimal = "," if commas and not points else None
    return Reading(delimiter, decimal, reading.encoding)


def _with_plain_texts(schema: Any) -> Any:
    """A schema without views of texts, which Arrow cannot filter or write as CSV."""
    for place, field in enumerate(schema):
        if field.type == pa.string_view():
            schema = schema.set(place, field.with_type(pa.large_string()))
    return schema


def _lasting(kind: Any) -> Any:
    """A type that also later rows of a column will have."""
    if pa.types.is_integer(kind):
        return pa.float64()
    return pa.string() if pa.types.is_null(kind) else kind


def _cut(batch: Any) -> Iterator[Any]:
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


def _why(error: BaseException) -> str:
    """The first sentence of a reader's complaint."""
    lines = str(error).strip().splitlines()
    text = lines[0][:300] if lines else type(error).__name__
    if re.search("utf-?8", text, re.IGNORECASE):
        text += "; name its --encoding, for example latin-1"
    return text if text.endswith(".") else f"{text}."
