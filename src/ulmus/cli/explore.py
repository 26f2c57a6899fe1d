"""``ulmus explore``: an interactive page of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ulmus.cli import options, steps
from ulmus.cli.console import Console


@options.command
def explore(
    *,
    model: options.Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML page to write.")],
    target: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the target (default: that of the fit)."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    confidence_level: options.ConfidenceLevel = 0.95,
    max_rows: Annotated[
        int,
        typer.Option(help="Largest number of training rows in the page; 0 to publish none."),
    ] = 1000,
    console: Console,
) -> None:
    """Write a page in which one moves the inputs and sees predictions, intervals and curves.

    The page is one file without network access. It contains training rows, as the histogram of
    observations and the rows nearest to a point; `--max-rows 0` leaves them out.

    ```
    ulmus explore model.ulmus -o page.html
    ulmus explore model.ulmus -o page.html --title "Ozone" --max-rows 0
    ```
    """
    steps.files.require_output_file(output, [".html", ".htm"], inputs=[model])
    columns = steps.columns.model_columns(model)
    loaded = steps.models.load_model(model, columns)
    name = target or columns.target or "y"
    with console.working(f"Writing {output}"):
        steps.pages.write_explorer(
            loaded.estimator,
            output,
            target=name,
            title=title,
            confidence_level=confidence_level,
            max_rows=max_rows,
        )
    megabytes = round(output.stat().st_size / 1e6, 2)
    facts = {"output": output, "target": name, "megabytes": megabytes}
    console.result(f"Wrote {output} ({megabytes:g} MB).", facts)
