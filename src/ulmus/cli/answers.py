"""``ulmus average``, ``compare`` and ``slope``: answers about the fitted function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ulmus.cli import options
from ulmus.cli.models import Known, known_model
from ulmus.cli.outputs import require_place, write_frame
from ulmus.cli.report import some_rows
from ulmus.cli.tables import Reading, file_format
from ulmus.cli.talk import Talk
from ulmus.columns.cells import CATEGORY

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Table to write instead of printing it.")
]
Target = Annotated[options.Of, typer.Option(help="What the intervals are for.")]
Simultaneous = Annotated[bool, typer.Option(help="Intervals that hold all together.")]


def average(
    model: options.Model,
    data: options.Data,
    by: options.By = None,
    level: options.Level = 0.95,
    of: Target = options.Of.expectation,
    simultaneous: Simultaneous = False,
    output: Output = None,
    missing: options.MissingRule = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Averages of the fitted function over the rows of a table, with standard errors.

    ```
    ulmus average model.ulmus table.csv
    ulmus average model.ulmus table.csv --by region
    ```
    """
    _answered(
        Talk(quiet, json),
        model,
        data,
        lambda known, table, how: known.ask.average(table, **how),
        {"by": by, "confidence_level": level, "target": of.value, "simultaneous": simultaneous},
        output,
        missing,
    )


def compare(
    model: options.Model,
    data: options.Data,
    change: Annotated[
        list[str],
        typer.Option(
            help="What to change: `t=10,20` (from, to), `t=5` (a step), `t=sd`, `kind=a,b`, or "
            "`t` alone. May be given several times."
        ),
    ],
    by: options.By = None,
    level: options.Level = 0.95,
    of: Target = options.Of.expectation,
    simultaneous: Simultaneous = False,
    output: Output = None,
    missing: options.MissingRule = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """What a change of a column changes in the fitted function, on average over the rows.

    ```
    ulmus compare model.ulmus table.csv --change temperature=10,20
    ulmus compare model.ulmus table.csv --change kind --by region
    ```
    """
    _answered(
        Talk(quiet, json),
        model,
        data,
        lambda known, table, how: known.ask.compare(table, _changes(known, change), **how),
        {"by": by, "confidence_level": level, "target": of.value, "simultaneous": simultaneous},
        output,
        missing,
    )


def slope(
    model: options.Model,
    data: options.Data,
    variable: Annotated[
        list[str] | None, typer.Option(help="Columns; by default, all that are no categories.")
    ] = None,
    by: options.By = None,
    level: options.Level = 0.95,
    of: Target = options.Of.expectation,
    simultaneous: Simultaneous = False,
    output: Output = None,
    missing: options.MissingRule = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Slopes of the fitted function, on average over the rows of a table.

    ```
    ulmus slope model.ulmus table.csv
    ulmus slope model.ulmus table.csv --variable temperature --by region
    ```
    """

    def slopes(known: Known, table: Any, how: dict[str, Any]) -> Any:
        numeric = [c.name for c in known.schema.columns if c.kind != CATEGORY]
        return known.ask.slope(table, list(options.names(variable)) or numeric, **how)

    _answered(
        Talk(quiet, json),
        model,
        data,
        slopes,
        {"by": by, "confidence_level": level, "target": of.value, "simultaneous": simultaneous},
        output,
        missing,
    )


def _answered(
    talk: Talk,
    model: Path,
    data: Path,
    question: Callable[[Known, Any, dict[str, Any]], Any],
    how: dict[str, Any],
    output: Path | None,
    missing: options.Missing | None,
) -> None:
    """Ask a model about a table, and print or write what it answers."""
    with talk.politely():
        if output is not None:
            require_place(output, inputs=[data, model])
            file_format(output)
        how["by"] = list(options.names(how["by"])) or None
        with talk.working("Asking"):
            known = known_model(model, missing and missing.value)
            table = known.table(data, Reading(), talk)
            columns = dict.fromkeys([*known.schema.names, *(how["by"] or ())])
            tidy, _ = known.schema.tidied(some_rows(table, list(columns), talk))
            if not len(tidy):
                raise ValueError(f"{data} has no complete rows.")
            frame = question(known, tidy, how)
        if output is not None:
            write_frame(output, frame)
        facts = {"output": output, "rows": len(tidy), "answer": frame.to_dict("records")}
        talk.result(f"Wrote {output}." if output else _printed(frame), facts)


def _changes(known: Known, change: list[str]) -> dict[str, Any]:
    """What options say is to be changed, as ``compare`` takes it."""
    kinds = {column.name: column.kind for column in known.schema.columns}
    changes: dict[str, Any] = {}
    for text in change:
        name, given, values = text.partition("=")
        parts = [part.strip() for part in values.split(",")]
        if not given:
            changes[name] = None
        elif kinds.get(name) == CATEGORY:
            changes[name] = parts
        elif len(parts) == 1:
            changes[name] = _number(parts[0])
        else:
            changes[name] = tuple(_number(part) for part in parts)
    return changes


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _printed(frame: Any) -> Table:
    """A frame of answers for a terminal."""
    table = Table(box=None, pad_edge=False)
    numbers = [name for name in frame.columns if frame[name].dtype.kind == "f"]
    for name in frame.columns:
        table.add_column(str(name), justify="right" if name in numbers else "left")
    for row in frame.itertuples(index=False):
        cells = zip(frame.columns, row, strict=True)
        table.add_row(*(f"{v:.4g}" if name in numbers else str(v) for name, v in cells))
    return table
