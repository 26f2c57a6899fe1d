"""Tables in files: CSV, Parquet and Arrow, read a block of rows at a time."""

from __future__ import annotations

import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from ulmus.tables.cells import LEADING_ZERO, some
from ulmus.tables.formats import (
    ARROW,
    CSV,
    PARQUET,
    CsvDialect,
    file_format,
    is_compressed,
    read_error,
)

BATCH_ROWS = 65_536
# A table of more cells than this is read in blocks and not kept in memory.
MAX_CELLS_IN_MEMORY = 10_000_000
DETECTED = CsvDialect()


@dataclass(frozen=True)
class TableFile(ABC):
    """A table in a file; each format is a subclass."""

    path: Path
    text_columns: tuple[str, ...] = ()  # columns of a CSV file that are read as text
    copied_columns: tuple[str, ...] = ()  # columns of a CSV file whose integers stay integers
    format: ClassVar[str]

    @cached_property
    def schema(self) -> Any:
        """Names and Arrow types of the columns."""
        with self._read_errors():
            return self._schema()

    @cached_property
    def n_cells(self) -> int:
        """Number of cells, perhaps approximately."""
        with self._read_errors():
            return self._n_cells()

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    @property
    def named_columns(self) -> list[str]:
        """Names without those that pandas gives to an unnamed index, in CSV and in Parquet."""
        return [n for n in self.names if not re.fullmatch(r"(__index_level_\d+__)?", n)]

    @property
    def is_large(self) -> bool:
        """Whether it is read in blocks and not kept in memory."""
        return self.n_cells > MAX_CELLS_IN_MEMORY

    @cached_property
    def digit_columns(self) -> tuple[str, ...]:
        """Columns of digits that start with zero, such as 00123, which are names."""
        return ()

    def with_text_columns(self, names: Iterable[str]) -> Self:
        """The same file; these columns of a CSV file are read as text."""
        return replace(self, text_columns=tuple(name for name in names if name in self.names))

    def with_copied_columns(self, names: Iterable[str]) -> Self:
        """The same file; integers of these columns of a CSV file are not converted to floats."""
        return replace(self, copied_columns=tuple(names))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Blocks of rows with some columns, as record batches."""
        self.require(columns)
        with self._read_errors():
            yield from self._batches(list(columns))

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """Blocks of rows with some columns, as data frames."""
        return map(self.data_frame, self.batches(columns))

    def data_frame(self, rows: Any) -> Any:
        """Rows of Arrow as a data frame, in which an index of pandas is a column too."""
        with self._read_errors():
            return rows.replace_schema_metadata().to_pandas()

    def frame(self, columns: Sequence[str]) -> Any:
        """All rows at once, numbered from 1 as in messages."""
        self.require(columns)
        with self._read_errors():
            table = self._table(columns)
            return self.data_frame(table).set_axis(range(1, table.num_rows + 1))

    def require(self, columns: Sequence[str]) -> None:
        """Refuse names of no column, or of several."""
        for name in columns:
            if self.names.count(name) > 1:
                raise ValueError(f"{self.path} has several columns called {name!r}; rename them.")
            if name not in self.names:
                similar = difflib.get_close_matches(name, self.names, n=1)
                hint = f"; did you mean {similar[0]!r}?" if similar else "."
                names = some(self.names, 20)
                raise ValueError(f"{self.path} has no column {name!r}{hint} It has {names}.")

    @abstractmethod
    def _schema(self) -> Any: ...

    @abstractmethod
    def _n_cells(self) -> int: ...

    @abstractmethod
    def _batches(self, columns: list[str]) -> Iterator[Any]: ...

    def _table(self, columns: Sequence[str]) -> Any:
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(list(self._batches(list(columns))), schema)

    def _cast(self, batch: Any) -> Any:
        """A batch with the types of ``schema``."""
        schema = pa.schema([self.schema.field(name) for name in batch.schema.names])
        return batch if batch.schema.types == schema.types else batch.cast(schema)

    @contextmanager
    def _read_errors(self) -> Iterator[None]:
        """Convert errors of the reader to one sentence."""
        try:
            yield
        except (pa.ArrowException, UnicodeError, OSError, EOFError) as error:
            if isinstance(error, OSError) and error.filename is not None:
                raise
            raise read_error(self.path, self.format, error) from error


@dataclass(frozen=True)
class ParquetTable(TableFile):
    """A Parquet file."""

    format: ClassVar[str] = PARQUET

    def _schema(self) -> Any:
        return _without_string_views(pa.parquet.read_schema(self.path))

    def _n_cells(self) -> int:
        metadata = pa.parquet.read_metadata(self.path)
        return int(metadata.num_rows * metadata.num_columns)

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        # Page by page and group by group, as a row group may be as large as the table.
        options = {"buffer_size": 2**20, "page_checksum_verification": True}
        file = pa.parquet.ParquetFile(self.path, **options)
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(BATCH_ROWS, columns=columns, row_groups=[group]):
                yield self._cast(batch.select(columns))


@dataclass(frozen=True)
class ArrowTable(TableFile):
    """An Arrow (Feather) file."""

    format: ClassVar[str] = ARROW

    def _schema(self) -> Any:
        with self._reader() as reader:
            return _without_string_views(reader.schema)

    def _n_cells(self) -> int:
        return self.path.stat().st_size // 8

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        with self._reader() as reader:
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i).select(columns)
                batch.validate(full=True)
                batch = self._cast(batch)
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        with pa.memory_map(str(self.path)) as source, pa.ipc.open_file(source) as reader:
            yield reader


@dataclass(frozen=True)
class CsvTable(TableFile):
    """A CSV file."""

    dialect: CsvDialect = DETECTED
    format: ClassVar[str] = CSV

    def _schema(self) -> Any:
        with self._reader() as reader:
            self._require_decoded(reader.schema)
            return reader.schema

    def _n_cells(self) -> int:
        # About six bytes per cell, of which compression leaves a quarter.
        return self.path.stat().st_size // 6 * (4 if is_compressed(self.path) else 1)

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        with self._reader(columns) as reader:
            yield from reader

    def _table(self, columns: Sequence[str]) -> Any:
        # Types are inferred from all rows here, not from the first block.
        table = pa.csv.read_csv(self.path, **self._options(columns))
        self._require_decoded(table.schema)
        return table

    @cached_property
    def digit_columns(self) -> tuple[str, ...]:
        """Columns of digits some of which start with zero in the first block."""
        names = [field.name for field in self.schema if pa.types.is_floating(field.type)]
        options = self._options(names)
        options["convert_options"].column_types = dict.fromkeys(names, pa.string())
        if not names:
            return ()
        with self._read_errors(), pa.csv.open_csv(self.path, **options) as reader:
            first = reader.read_next_batch()
        return tuple(name for name in names if _starts_with_zero(first.column(name)))

    def _require_decoded(self, schema: Any) -> None:
        """Refuse binary columns, which are texts in another encoding."""
        binary = [field.name for field in schema if pa.types.is_binary(field.type)]
        if binary:
            raise pa.ArrowInvalid(f"column {binary[0]!r} is not in {self.dialect.encoding}")

    @contextmanager
    def _reader(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Reads blocks, with types inferred from the first and valid for later ones."""
        options = self._options(columns)
        with pa.csv.open_csv(self.path, **options) as first:
            types = {
                field.name: field.type if field.name in self.copied_columns else _wider(field.type)
                for field in first.schema
                if field.name not in self.text_columns
            }
        texts = dict.fromkeys(self.text_columns, pa.string())
        options["convert_options"].column_types = {**types, **texts}
        with pa.csv.open_csv(self.path, **options) as reader:
            yield reader

    def _options(self, columns: Sequence[str] | None) -> dict[str, Any]:
        delimiter, decimal = self.dialect.delimiter or ",", self.dialect.decimal or "."
        return {
            "read_options": pa.csv.ReadOptions(encoding=self.dialect.encoding, block_size=2**22),
            "parse_options": pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            "convert_options": pa.csv.ConvertOptions(
                include_columns=list(columns or ()),
                column_types=dict.fromkeys(self.text_columns, pa.string()),
                strings_can_be_null=True,
                decimal_point=decimal,
            ),
        }


def table_file(path: Path, dialect: CsvDialect = DETECTED) -> tuple[TableFile, list[str]]:
    """A table in a file, and notes about the detected dialect."""
    format = file_format(path)
    dialect.validate()
    if not path.exists():
        raise ValueError(f"{path} does not exist; check the name.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a file in it.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty; give a table with a line of column names.")
    if format != CSV:
        return (ParquetTable(path) if format == PARQUET else ArrowTable(path)), []
    detected = dialect.detected(path)
    return CsvTable(path, dialect=detected), dialect.notes(path, detected)


def _without_string_views(schema: Any) -> Any:
    """A schema with large strings for string views, which Arrow cannot filter or write as CSV."""
    for i, field in enumerate(schema):
        if field.type == pa.string_view():
            schema = schema.set(i, field.with_type(pa.large_string()))
    return schema


def _starts_with_zero(texts: Any) -> bool:
    return any(LEADING_ZERO.fullmatch(text.strip()) for text in texts.unique().to_pylist() if text)


def _wider(dtype: Any) -> Any:
    """A type that later rows of a column are likely to fit: floats for integers, text for null."""
    if pa.types.is_integer(dtype):
        return pa.float64()
    return pa.string() if pa.types.is_null(dtype) else dtype
