"""The application with all its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from ulmus.cli.demo import demo
from ulmus.cli.effects import average, compare, slope
from ulmus.cli.explore import explore
from ulmus.cli.export import export
from ulmus.cli.fit import fit
from ulmus.cli.predict import predict
from ulmus.cli.report import report
from ulmus.version import __version__

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown")
for command in (fit, predict, report, average, compare, slope, explore, export, demo):
    app.command()(command)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"ulmus {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Regression with standard errors: from a table to predictions, effects and a report.

    Start with `ulmus demo`, or with `ulmus fit table.csv --target y -o model.ulmus`.
    Exit codes: 0 done, 1 failure, 2 bad input.
    """
