"""``ulmus report``: an HTML page about a model and a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ulmus.cli import options
from ulmus.cli.console import Console
from ulmus.cli.loaded_model import loaded_model
from ulmus.cli.rows import observed_rows
from ulmus.tables.files import Reading
from ulmus.tables.writers import require_place


def report(
    model: options.Model,
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML page to write.")],
    target: Annotated[
        str | None,
        typer.Option(help="Observed column; by default, the one that the model was fitted to."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    missing: options.MissingRule = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = "utf-8",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Write a page about a model: how good it is, whether its error bars are honest, what matters.

    With the table that the model was fitted to, every row is judged as if it had been left out.
    Another table with the target in it is an honest test.

    ```
    ulmus report model.ulmus table.csv -o report.html
    ulmus report model.ulmus new.csv -o report.html --title "Ozone, 2026"
    ```
    """
    console = Console(quiet, json)
    with console.handle_errors():
        require_place(output, [".html", ".htm"], inputs=[data, model])
        from ulmus.report import write_report

        with console.working("Reading"):
            known = loaded_model(model, missing and missing.value)
            table = known.table(data, Reading(delimiter, decimal, encoding), console)
            name = known.target if target is None else target
            tidy, y = observed_rows(known, table, name, console)
        with console.working(f"Writing {output}"):
            write_report(known.model, tidy, y, output, title=title, target=name or "y")
        facts = {"output": output, "rows": len(tidy), "observed": y is not None}
        console.result(f"Wrote {output}.", facts)
