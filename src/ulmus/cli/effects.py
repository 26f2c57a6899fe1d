"""``ulmus average``, ``compare`` and ``slope``: answers about the fitted function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ulmus.cli import options
from ulmus.cli.console import Console
from ulmus.cli.loaded_model import LoadedModel, loaded_model
from ulmus.cli.rows import some_rows, tidied_rows
from ulmus.tables import Column
from ulmus.tables.cells import (
    CATEGORY,
    DATE,
    DATE_TEXT,
    NUMBER,
    TRUTH,
    days_since_1970,
    some,
)
from ulmus.tables.files import Reading, file_format
from ulmus.tables.writers import require_place, write_frame

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Table to write instead of printing it.")
]
Target = Annotated[options.Of, typer.Option(help="What the intervals are for.")]
Simultaneous = Annotated[bool, typer.Option(help="Intervals that hold all together.")]


Estimand = Callable[[LoadedModel, Any, dict[str, Any]], Any]


@dataclass(frozen=True)
class EffectsCommand:
    """Whom to ask about which table, what the answer is for, and where it goes."""

    model: Path
    data: Path
    by: list[str] | None
    level: float
    of: options.Of
    simultaneous: bool
    output: Path | None
    missing: options.Missing | None
    reading: Reading
    console: Console

    def answered(self, question: Estimand) -> None:
        """Ask, and print or write what is answered."""
        console, output = self.console, self.output
        with console.handle_errors():
            if output is not None:
                require_place(output, inputs=[self.data, self.model])
                file_format(output)
            with console.working("EffectsCommand"):
                known = loaded_model(self.model, self.missing and self.missing.value)
                table = known.table(self.data, self.reading, console)
                by = list(options.names(self.by, table.names))
                columns = list(dict.fromkeys([*known.schema.names, *by]))
                rows = some_rows(table, columns, console)
                tidy, _ = tidied_rows(known, rows, self.data, console)
                frame = question(known, tidy, self._how(by))
            if output is not None:
                write_frame(output, frame)
            facts = {"output": output, "rows": len(tidy), "answer": frame.to_dict("records")}
            console.result(f"Wrote {output}." if output else _printed(frame), facts)

    def _how(self, by: list[str]) -> dict[str, Any]:
        """Options that all questions have."""
        return {
            "by": by or None,
            "confidence_level": self.level,
            "target": self.of.value,
            "simultaneous": self.simultaneous,
        }


def average(
    model: options.Model,
    data: options.Data,
    by: options.By = None,
    level: options.Level = 0.95,
    of: Target = options.Of.expectation,
    simultaneous: Simultaneous = False,
    output: Output = None,
    missing: options.MissingRule = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = "utf-8",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Averages of the fitted function over the rows of a table, with standard errors.

    ```
    ulmus average model.ulmus table.csv
    ulmus average model.ulmus table.csv --by region
    ```
    """
    how = Reading(delimiter, decimal, encoding), Console(quiet, json)
    asking = EffectsCommand(model, data, by, level, of, simultaneous, output, missing, *how)
    asking.answered(lambda known, table, how: known.ask.average(table, **how))


def compare(
    model: options.Model,
    data: options.Data,
    change: Annotated[
        list[str],
        typer.Option(
            help="What to change: `t=10,20` (from, to), `t=5` (a step), `t=sd`, `kind=a,b`, "
            "`day=2026-01-01,2026-12-31`, or `t` alone. May be given several times."
        ),
    ],
    by: options.By = None,
    level: options.Level = 0.95,
    of: Target = options.Of.expectation,
    simultaneous: Simultaneous = False,
    output: Output = None,
    missing: options.MissingRule = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = "utf-8",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """What a change of a column changes in the fitted function, on average over the rows.

    ```
    ulmus compare model.ulmus table.csv --change temperature=10,20
    ulmus compare model.ulmus table.csv --change kind --by region
    ```
    """
    how = Reading(delimiter, decimal, encoding), Console(quiet, json)
    asking = EffectsCommand(model, data, by, level, of, simultaneous, output, missing, *how)
    asking.answered(
        lambda known, table, how: known.ask.compare(table, _changes(known, change), **how)
    )


def slope(
    model: options.Model,
    data: options.Data,
    variable: Annotated[
        list[str] | None, typer.Option(help="Columns; by default, all numbers and dates.")
    ] = None,
    by: options.By = None,
    level: options.Level = 0.95,
    of: Target = options.Of.expectation,
    simultaneous: Simultaneous = False,
    output: Output = None,
    missing: options.MissingRule = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = "utf-8",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Slopes of the fitted function, on average over the rows of a table.

    ```
    ulmus slope model.ulmus table.csv
    ulmus slope model.ulmus table.csv --variable temperature --by region
    ```
    """

    def slopes(known: LoadedModel, table: Any, how: dict[str, Any]) -> Any:
        numeric = [c.name for c in known.schema.columns if c.kind in (NUMBER, DATE)]
        wanted = options.names(variable, known.schema.names)
        return known.ask.slope(table, list(wanted) or numeric, **how)

    how = Reading(delimiter, decimal, encoding), Console(quiet, json)
    asking = EffectsCommand(model, data, by, level, of, simultaneous, output, missing, *how)
    asking.answered(slopes)


def _changes(known: LoadedModel, change: list[str]) -> dict[str, Any]:
    """What options say is to be changed, as ``compare`` takes it."""
    columns = {column.name: column for column in known.schema.columns}
    changes: dict[str, Any] = {}
    for text in change:
        # A name may hold an equals sign itself.
        named = [name for name in columns if text == name or text.startswith(f"{name}=")]
        name = max(named, key=len, default=text.partition("=")[0])
        changes[name] = None if text == name else _values(columns.get(name), text[len(name) + 1 :])
    return changes


def _values(column: Column | None, text: str) -> Any:
    """The values that a column is to have, or a step of a number."""
    values = options.parts(text)
    if column is not None and column.kind == CATEGORY:
        unseen = next((value for value in values if value not in column.categories), None)
        if unseen is not None:
            raise ValueError(
                f"--change {column.name}: {unseen!r} is none of the model's categories "
                f"({some(map(repr, column.categories))}); put quotes around one that has a comma."
            )
        return values
    read = READ.get(column.kind, _number) if column is not None else _number
    return read(values[0]) if len(values) == 1 else tuple(map(read, values))


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _truth(text: str) -> float | str:
    return {"true": 1.0, "false": 0.0}.get(text.lower(), _number(text))


def _days(text: str) -> float | str:
    if not DATE_TEXT.fullmatch(text):
        return _number(text)
    import pandas as pd

    days = float(days_since_1970(pd.Series([text]))[0])
    if math.isnan(days):
        raise ValueError(f"--change: {text!r} is no date; write it as 2026-12-31.")
    return days


# How a value of a column is read, where it is more than a number.
READ: dict[str, Callable[[str], float | str]] = {TRUTH: _truth, DATE: _days}


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
