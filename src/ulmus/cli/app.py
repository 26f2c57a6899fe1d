"""The application with all its commands, in the order of their use."""

from __future__ import annotations

from typing import Annotated

import typer

from ulmus.cli.check import check
from ulmus.cli.demo import demo
from ulmus.cli.effects import average, compare, slope
from ulmus.cli.explore import explore
from ulmus.cli.export import export
from ulmus.cli.fit import fit
from ulmus.cli.info import info
from ulmus.cli.plot import plot
from ulmus.cli.predict import predict
from ulmus.cli.report import report
from ulmus.cli.usage import CommandGroup
from ulmus.version import __version__

# Panels of the help page, and their commands.
PANELS = {
    "Fit and predict": (fit, predict),
    "Check": (check, info),
    "Effects": (average, compare, slope),
    "Figures and pages": (plot, report, explore),
    "Other programs": (export,),
    "Example": (demo,),
}

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)


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
    Exit codes: 0 done, 1 failure or an error found by `check`, 2 bad input.
    """
