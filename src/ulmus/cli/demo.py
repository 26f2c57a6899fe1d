"""``ulmus demo``: the main commands on a small table."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from ulmus.cli import options, steps
from ulmus.cli.console import Console


@options.command
def demo(
    *,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder for the table and all results.")
    ] = Path("ulmus-demo"),
    console: Console,
) -> None:
    """Fit a model to a small table, predict, estimate slopes, and write a report.

    This takes about half a minute.

    ```
    ulmus demo
    ulmus demo my-folder
    ```
    """
    start = time.monotonic()
    files = {
        "table": folder / "diabetes.csv",
        "model": folder / "model.ulmus",
        "report": folder / "report.html",
        "predictions": folder / "predictions.csv",
    }
    folder.mkdir(parents=True, exist_ok=True)
    steps.examples.write_diabetes(files["table"])
    table, model, report, predictions = map(str, files.values())
    for words in (
        ["fit", table, "--target", "progression", "-o", model, "--report", report],
        ["predict", model, table, "-o", predictions, "--keep", "age,bmi"],
        ["slope", model, table, "--variables", "bmi,bp"],
    ):
        _run(words, console)
    seconds = time.monotonic() - start
    text = f"\nThis took {seconds:.0f} seconds. Open {report} in a browser."
    console.result(text, {**files, "seconds": round(seconds, 1)})


def _run(words: list[str], console: Console) -> None:
    """Print a command and run it."""
    from ulmus.cli.app import app

    shown = not (console.quiet or console.json)
    if shown:
        typer.echo(f"\n$ ulmus {shlex.join(words)}")
    code = app([*words, *([] if shown else ["--quiet"])], standalone_mode=False)
    if code:
        raise typer.Exit(code)
