"""``ulmus average``, ``compare`` and ``slope``: effects with standard errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ulmus.cli import options
from ulmus.cli.console import Console
from ulmus.cli.loaded_model import LoadedModel, load_model, sample_rows
from ulmus.tables import Column, NumberColumn
from ulmus.tables.formats import file_format
from ulmus.tables.writers import require_output_path, write_frame

# Computes the effects of a model at the rows of a table, with the options of all effects.
Estimand = Callable[[LoadedModel, Any, dict[str, Any]], Any]


def _estimate(
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
        loaded = load_model(model, effect.missing)
        table = loaded.table(data, reading, console)
        by = list(options.column_names(effect.by, table.names))
        columns = list(dict.fromkeys([*loaded.schema.names, *by]))
        rows, _ = loaded.complete_rows(sample_rows(table, columns, console), data, console)
        how = {
            "by": by or None,
            "confidence_level": effect.confidence_level,
            "target": effect.interval_target.value,
            "simultaneous": effect.simultaneous,
        }
        result = estimand(loaded, rows, how)
    if output is not None:
        write_frame(output, result)
    facts = {"output": output, "rows": len(rows), "effects": result.to_dict("records")}
    console.result(f"Wrote {output}." if output else _printed(result), facts)


@options.command
def average(
    *,
    model: options.Model,
    data: options.Data,
    effect: options.EffectOptions,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Average the fitted function over the rows of a table, with standard errors.

    ```
    ulmus average model.ulmus table.csv
    ulmus average model.ulmus table.csv --by region
    ```
    """

    def means(loaded: LoadedModel, rows: Any, how: dict[str, Any]) -> Any:
        return loaded.inference.average(rows, **how)

    _estimate(means, model, data, effect, reading, console)


@options.command
def compare(
    *,
    model: options.Model,
    data: options.Data,
    variables: Annotated[
        list[str],
        typer.Option(
            metavar="CONTRAST",
            help="The contrast of a column: `t=10,20` (from, to), `t=5` (a step), `t=sd`, "
            "`region=a,b`, `day=2026-01-01,2026-12-31`, or `t` alone. May be repeated.",
        ),
    ],
    effect: options.EffectOptions,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Contrast two values of a column: the mean difference of the fitted function over the rows.

    ```
    ulmus compare model.ulmus table.csv --variables temperature=10,20
    ulmus compare model.ulmus table.csv --variables site --by region
    ```
    """

    def contrasts(loaded: LoadedModel, rows: Any, how: dict[str, Any]) -> Any:
        return loaded.inference.compare(rows, _contrasts(loaded, variables), **how)

    _estimate(contrasts, model, data, effect, reading, console)


@options.command
def slope(
    *,
    model: options.Model,
    data: options.Data,
    variables: Annotated[
        list[str] | None, options.columns_option(help="Columns (default: all numbers and dates).")
    ] = None,
    effect: options.EffectOptions,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Average the slopes of the fitted function over the rows of a table.

    ```
    ulmus slope model.ulmus table.csv
    ulmus slope model.ulmus table.csv --variables temperature --by region
    ```
    """

    def slopes(loaded: LoadedModel, rows: Any, how: dict[str, Any]) -> Any:
        names = options.column_names(variables, loaded.schema.names)
        return loaded.inference.slope(rows, list(names or loaded.schema.continuous), **how)

    _estimate(slopes, model, data, effect, reading, console)


def _contrasts(model: LoadedModel, variables: list[str]) -> dict[str, Any]:
    """The argument ``variables`` of ``compare``, from options such as ``t=10,20``."""
    columns = {column.name: column for column in model.schema.columns}
    contrasts: dict[str, Any] = {}
    for text in variables:
        # A name may contain an equals sign itself.
        matches = [name for name in columns if text == name or text.startswith(f"{name}=")]
        name = max(matches, key=len, default=text.partition("=")[0])
        if name in contrasts:
            text = f"--variables names {name} twice; give all values at once, as in {name}=1,2,3"
            raise ValueError(f"{text}, or run the command for each contrast.")
        values = text[len(name) + 1 :]
        column = columns.get(name, NumberColumn(name))
        contrasts[name] = None if text == name else _values(column, values)
    return contrasts


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
