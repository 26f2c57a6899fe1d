"""Formats of table files, by their ending, and the dialect of CSV files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

CSV, PARQUET, ARROW = "csv", "parquet", "arrow"
FORMATS = {
    ".csv": CSV,
    ".parquet": PARQUET,
    ".pq": PARQUET,
    ".arrow": ARROW,
    ".ipc": ARROW,
    ".feather": ARROW,
}
COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4")


def is_compressed(path: Path) -> bool:
    """Whether the ending is that of a compressed file."""
    return path.suffix.lower() in COMPRESSIONS


def file_format(path: Path) -> str:
    """Format of a file by its ending; only CSV may be compressed."""
    compressed = is_compressed(path)
    ending = Path(path.stem).suffix if compressed else path.suffix
    format = FORMATS.get(ending.lower())
    if format is None or (compressed and format != CSV):
        text = f"the ending of {path} does not identify a table format"
        endings = "use .csv, .csv.gz, .parquet, .arrow or .feather"
        suggestions = (endings, Setting("format", phrase="set {}"))
        raise InputError(Message("table-format", text, suggestions=suggestions))
    return format


DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# Numbers with decimal commas, and with decimal points.
FRACTIONS = (r"-?\d*,\d+([eE][+-]?\d+)?", r"-?\d*\.\d+([eE][+-]?\d+)?")
ENCODING = Setting("encoding", "latin-1", "set its encoding, for example {}")


@dataclass(frozen=True)
class CsvDialect:
    """How a CSV file is read; None is detected from its first lines."""

    delimiter: str | None = None  # character between columns
    decimal: str | None = None  # decimal sign of numbers
    encoding: str = "utf-8"  # encoding of its text

    def validate(self) -> None:
        """Refuse signs of more than one character."""
        for parameter, sign in (("delimiter", self.delimiter), ("decimal", self.decimal)):
            if sign is not None and len(sign) != 1:
                raise InputError(Message("csv-sign", "must be one character", parameter, sign))

    def detected(self, path: Path) -> CsvDialect:
        """The same with delimiter and decimal sign from the first lines, where they are None."""
        text = self._head(path)
        header = re.sub(r'"[^"]*"', "", text).partition("\n")[0]
        delimiter = self.delimiter or max(DELIMITERS, key=header.count)
        decimal = self.decimal
        if decimal is None and delimiter != ",":
            lines = text.splitlines()[1:]
            cells = [cell.strip(' "') for line in lines for cell in line.split(delimiter)]
            commas, points = (any(map(re.compile(sign).fullmatch, cells)) for sign in FRACTIONS)
            decimal = "," if commas and not points else None
        return CsvDialect(delimiter, decimal, self.encoding)

    def notes(self, path: Path, detected: CsvDialect) -> list[str]:
        """Sentences about what was detected and is unusual."""
        notes = []
        if detected.delimiter != "," and self.delimiter is None:
            signs = DELIMITERS[str(detected.delimiter)]
            notes.append(f"Columns of {path} are separated by {signs}.")
        if detected.decimal == "," and self.decimal is None:
            notes.append(f"Numbers of {path} have decimal commas.")
        return notes

    def _head(self, path: Path) -> str:
        try:
            with pa.input_stream(str(path), compression="detect") as stream:
                text: str = stream.read(2**16).decode(self.encoding, errors="replace")
        except (OSError, pa.ArrowException) as error:
            raise read_error(path, "csv", error) from error
        except LookupError as error:
            text, suggestions = "is not a known encoding", ("try latin-1",)
            message = Message("unknown-encoding", text, "encoding", self.encoding, suggestions)
            raise InputError(message) from error
        if "\0" in text:
            cause = f"{path} is not a text in {self.encoding}"
            raise InputError(Message("wrong-encoding", cause, suggestions=(ENCODING,)))
        return text


def read_error(path: Path, format: str, error: BaseException) -> InputError:
    """One sentence about why a file cannot be read."""
    lines = str(error).strip().splitlines()
    reason = lines[0][:300].rstrip(".") if lines else type(error).__name__
    cause = f"{path} cannot be read as {format}: {reason}"
    suggestions = (ENCODING,) if re.search("utf-?8", reason, re.IGNORECASE) else ()
    return InputError(Message("unreadable-table", cause, suggestions=suggestions))
