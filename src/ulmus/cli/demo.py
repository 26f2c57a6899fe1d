"""``ulmus demo``: the main commands on a small table."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console as RichConsole

from ulmus.cli import steps
from ulmus.cli.console import Console


def demo(
    folder: Annotated[Path, typer.Argument(help="Folder for the table and all results.")] = Path(
        "ulmus-demo"
    ),
) -> None:
    """Fit a model to a small table, predict, estimate slopes, and write a report.

    ```
    ulmus demo
    ```
    """
    table, model = folder / "diabetes.csv", folder / "model.ulmus"
    report, predictions = folder / "report.html", folder / "predictions.csv"
    with Console("demo").handle_errors():
        folder.mkdir(parents=True, exist_ok=True)
        steps.examples.write_diabetes(table)
    _run("fit", table, "--target", "progression", "-o", model, "--report", report)
    _run("predict", model, table, "-o", predictions, "--keep", "age,bmi")
    _run("slope", model, table, "--variables", "bmi,bp")
    RichConsole().print(f"\nOpen {report} in a browser.", markup=False, highlight=False)


def _run(*arguments: str | Path) -> None:
    """Print a command and run it."""
    from ulmus.cli.app import app

    words = [str(argument) for argument in arguments]
    command = f"\n$ ulmus {shlex.join(words)}"
    RichConsole(soft_wrap=True).print(command, markup=False, highlight=False, style="bold")
    code = app(words, standalone_mode=False)
    if code:
        raise typer.Exit(code)
