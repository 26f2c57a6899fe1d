"""Effects of a model at the rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ulmus.cli import options, steps
from ulmus.cli.console import Console
from ulmus.cli.steps.columns import model_columns
from ulmus.cli.steps.files import file_format, require_output_path, sample_rows, write_frame
from ulmus.tables import Column, NumberColumn, Schema

if TYPE_CHECKING:
    from ulmus.cli.steps.models import TableModel

# Computes the effects of a model at the rows of a table, with the options of all effects.
Estimand = Callable[["TableModel", Any, dict[str, Any]], Any]


def estimate(
    estimand: Estimand,
    model: Path,
    data: Path,
    effect: options.EffectOptions,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Estimate, and print or write the result."""
    output = effect.output
    if output is not None:
        require_output_path(output, inputs=[data, model])
        file_format(output)
    with console.working("Estimating"):
        needed = model_columns(model, effect.missing)
        table = needed.table(data, reading, console)
        by = list(options.column_names(effect.by, table.names))
        columns = list(dict.fromkeys([*needed.schema.names, *by]))
        rows, _ = needed.complete_rows(sample_rows(table, columns, console), data, console)
        how = {
            "by": by or None,
            "confidence_level": effect.confidence_level,
            "target": effect.interval_target.value,
            "scale": effect.scale.value,
            "simultaneous": effect.simultaneous,
        }
        result = estimand(steps.models.load_model(model, needed), rows, how)
    if output is not None:
        write_frame(output, result)
    facts = {"output": output, "rows": len(rows), "effects": result.to_dict("records")}
    console.result(f"Wrote {output}." if output else _printed(result), facts)


def contrasts(schema: Schema, variables: list[str]) -> dict[str, Any]:
    """The argument ``variables`` of ``compare``, from options such as ``t=10,20``."""
    columns = {column.name: column for column in schema.columns}
    found: dict[str, Any] = {}
    for text in variables:
        # A name may contain an equals sign itself.
        matches = [name for name in columns if text == name or text.startswith(f"{name}=")]
        name = max(matches, key=len, default=text.partition("=")[0])
        if name in found:
            text = f"--variables names {name} twice; give all values at once, as in {name}=1,2,3"
            raise ValueError(f"{text}, or run the command for each contrast.")
        values = text[len(name) + 1 :]
        column = columns.get(name, NumberColumn(name))
        found[name] = None if text == name else _values(column, values)
    return found


def _values(column: Column, text: str) -> Any:
    """The values of a column to compare, or a step of a number."""
    try:
        values = [column.parse_text(value) for value in options.split(text)]
    except ValueError as error:
        raise ValueError(f"--variables {column.name}: {error}") from error
    if column.categorical:
        return values
    return values[0] if len(values) == 1 else tuple(values)


def _printed(frame: Any) -> Table:
    """A frame for a terminal."""
    table = Table(box=None, pad_edge=False)
    numbers = [name for name in frame.columns if frame[name].dtype.kind == "f"]
    for name in frame.columns:
        table.add_column(str(name), justify="right" if name in numbers else "left")
    for row in frame.itertuples(index=False):
        cells = zip(frame.columns, row, strict=True)
        table.add_row(*(f"{v:.4g}" if name in numbers else str(v) for name, v in cells))
    return table
