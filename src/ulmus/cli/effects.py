"""``ulmus average``, ``compare`` and ``slope``: effects with standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ulmus.cli import options, steps
from ulmus.cli.console import Console

if TYPE_CHECKING:
    from ulmus.cli.steps.models import TableModel


@options.command
def average(
    *,
    model: options.Model,
    data: options.Data,
    effect: options.EffectOptions,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Average the predictions over the rows of a table, with standard errors.

    ```
    ulmus average model.ulmus table.csv
    ulmus average model.ulmus table.csv --by region
    ```
    """

    def means(loaded: TableModel, rows: Any, how: dict[str, Any]) -> Any:
        return loaded.estimator.average(rows, **how)

    steps.effects.estimate(means, model, data, effect, reading, console)


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
            "`region=a,b`, `day=2026-01-01,2026-12-31`, or `t` alone; several as `t=10,20,region`, "
            "or repeated.",
        ),
    ],
    comparison: Annotated[
        options.Comparison, typer.Option(help="Difference or ratio of the two averages.")
    ] = options.Comparison.difference,
    effect: options.EffectOptions,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Contrast two values of a column: the difference or ratio of average predictions.

    ```
    ulmus compare model.ulmus table.csv --variables temperature=10,20
    ulmus compare model.ulmus table.csv --variables site --by region
    ```
    """

    def contrasts(loaded: TableModel, rows: Any, how: dict[str, Any]) -> Any:
        changes = steps.effects.contrasts(loaded.columns.schema, variables)
        return loaded.estimator.compare(rows, changes, comparison=comparison.value, **how)

    steps.effects.estimate(contrasts, model, data, effect, reading, console)


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
    """Average the slopes of the predictions over the rows of a table.

    ```
    ulmus slope model.ulmus table.csv
    ulmus slope model.ulmus table.csv --variables temperature --by region
    ```
    """

    def slopes(loaded: TableModel, rows: Any, how: dict[str, Any]) -> Any:
        names = options.column_names(variables, loaded.columns.schema.names)
        for name in names:
            steps.effects.require_column(loaded.columns.schema, name)
        return loaded.estimator.slope(rows, list(names or loaded.columns.schema.continuous), **how)

    steps.effects.estimate(slopes, model, data, effect, reading, console)
