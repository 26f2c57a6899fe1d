"""The application with all its commands."""

from __future__ import annotations

import typer

from ulmus.cli.reproduce import reproduce

app = typer.Typer(no_args_is_help=True, add_completion=False)
app.command()(reproduce)


@app.callback()
def main() -> None:
    """Regression by ensembles of Extreme Learning Machines with closed-form error bars."""
