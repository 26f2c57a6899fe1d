"""The command line: ``ulmus reproduce``; needs the extra ``ulmus[cli]``."""

import typer

from ulmus.cli.reproduce import reproduce

app = typer.Typer(
    help="Regression by ensembles of Extreme Learning Machines with closed-form error bars.",
    no_args_is_help=True,
    add_completion=False,
)
app.command()(reproduce)


@app.callback()
def main() -> None:
    """Regression by ensembles of Extreme Learning Machines with closed-form error bars."""


__all__ = ["app"]
