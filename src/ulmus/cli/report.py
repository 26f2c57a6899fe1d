"""``ulmus report``: an HTML page about a model and a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ulmus.cli import options, steps
from ulmus.cli.console import Console


@options.command
def report(
    *,
    model: options.Model,
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML page to write.")],
    target: options.Target = None,
    sample_weight: options.NewWeight = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    missing: options.MissingRule = None,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Write a page about a model: its accuracy, diagnostics of its error bars, relevance of inputs.

    Rows that the model was fitted to are found by their values, and their errors are leave-one-out.
    With other rows that contain the target, the page is an out-of-sample test.

    ```
    ulmus report model.ulmus table.csv -o report.html
    ulmus report model.ulmus new.csv -o report.html --title "Ozone, 2026"
    ```
    """
    steps.files.require_output_file(output, [".html", ".htm"], inputs=[data, model])
    with console.working("Reading"):
        columns = steps.columns.model_columns(model, missing)
        table = columns.table(data, reading, console)
        name = columns.target if target is None else target
        weights = columns.weight_column(sample_weight, table, console)
        rows, y, weight = columns.observed_rows(table, name, weights, console)
        loaded = steps.models.load_model(model, columns)
    with console.working(f"Writing {output}"):
        estimator, shown = loaded.estimator, name or "y"
        steps.pages.write_report(
            estimator, rows, y, output, title=title, target=shown, sample_weight=weight
        )
    facts = {"output": output, "rows": len(rows), "observed": y is not None}
    console.result(f"Wrote {output}.", facts)
