"""Formats of table files, by their ending."""

from __future__ import annotations

from pathlib import Path

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
