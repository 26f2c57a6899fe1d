"""The description in a model file, as text and as facts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

from ulmus.cli.console import counted_rows
from ulmus.model_file.container import read_document

WIDTH = 100
# Columns that are listed in the text.
MOST_COLUMNS = 50
KEPT = (
    "contains its training rows: jackknife+ intervals, leave-one-out residuals and "
    "`ulmus check` without a table; anyone with the file can read them"
)
NOT_KEPT = (
    "contains no training rows: intervals are those of the predictive distribution, and "
    "`ulmus check` requires a table"
)


def described_header(path: Path) -> tuple[str, dict[str, Any]]:
    """The description of a model file: aligned text, and its facts."""
    document = read_document(path)
    facts = _facts(path, document)
    entries = list(_entries(facts))
    width = max(len(label) for label, _ in entries)
    lines = [line for label, text in entries for line in _wrapped(f"{label:<{width}}  ", text)]
    return "\n".join(lines), facts


def _wrapped(lead: str, text: str) -> list[str]:
    """Lines of a text after a lead, under which they are indented; aligned columns stay."""
    lines = wrap(text, WIDTH - len(lead), drop_whitespace=True, break_long_words=False)
    return [f"{lead if i == 0 else ' ' * len(lead)}{line}" for i, line in enumerate(lines)]


def _facts(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    training, schema = document["training"], document["columns"]["schema"]
    return {
        "model": path,
        "class": document["class"],
        "ulmus": document["ulmus"],
        "format": document["format"],
        "date": document["date"],
        "bytes": path.stat().st_size,
        "training_rows": training["rows"],
        "training_rows_kept": training["rows_kept"],
        "outputs": training["outputs"],
        "target": document["target"],
        "sample_weight": document["sample_weight"],
        "columns": _columns(document["columns"]),
        "missing": "error" if schema is None else schema["missing"],
        "unknown": None if schema is None else schema["unknown"],
        "na_values": [] if schema is None else schema["na_values"],
        "parameters": {name: _plain(value) for name, value in document["parameters"].items()},
        "encoding": [*([] if schema is None else schema["notes"]), *document["notes"]],
    }


def _columns(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Name, type and details of each column."""
    if columns["schema"] is None:
        names = columns["names"] or [f"x{j}" for j in range(columns["count"])]
        return [{"name": name, "type": "number"} for name in names]
    kept = ("name", "type", "n_missing", "categories", "seasons")
    return [
        {name: column[name] for name in kept if name in column}
        for column in columns["schema"]["columns"]
    ]


def _entries(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Labels, and the texts beside them."""
    yield "file", f"{facts['model']}, {_size(facts['bytes'])}"
    yield "", f"written {facts['date']} by ulmus {facts['ulmus']}, format {facts['format']}"
    yield "", KEPT if facts["training_rows_kept"] else NOT_KEPT
    yield "model", f"{facts['class']}, fitted to {counted_rows(facts['training_rows'])}"
    weight = facts["sample_weight"]
    weighted = "" if weight is None else f", weights {weight}"
    outputs = "" if facts["outputs"] == 1 else f" ({facts['outputs']} outputs)"
    yield "target", f"{facts['target'] or 'without a name'}{outputs}{weighted}"
    width = max(len(column["name"]) for column in facts["columns"])
    for i, column in enumerate(facts["columns"][:MOST_COLUMNS]):
        yield "columns" if i == 0 else "", f"{column['name']:<{width}}  {_details(column)}"
    if len(facts["columns"]) > MOST_COLUMNS:
        yield "", f"and {len(facts['columns']) - MOST_COLUMNS} more; --json lists all of them"
    parameters = [f"{name}={value!r}" for name, value in facts["parameters"].items()]
    yield "parameters", ", ".join(parameters)


def _details(column: dict[str, Any]) -> str:
    """The type of a column, its categories or seasons, and its missing values."""
    values = column.get("categories") or column.get("seasons") or ()
    shown = ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
    n_missing = column.get("n_missing", 0)
    missing = f"; {n_missing} missing" if n_missing else ""
    return column["type"] + (f": {shown}" if shown else "") + missing


def _plain(value: Any) -> Any:
    """A parameter as JSON: tuples and other objects are described by dictionaries."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("tuple", "list"):
        return [_plain(one) for one in next(iter(value.values()))]
    return value


def _size(n_bytes: int) -> str:
    """A size in words."""
    size, units = float(n_bytes), ["bytes", "kB", "MB", "GB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} bytes" if units[0] == "bytes" else f"{size:.1f} {units[0]}"
