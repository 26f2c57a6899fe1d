"""``ulmus info``: what a model file contains."""

from __future__ import annotations

from typing import Annotated

import typer

from ulmus.cli import options, steps
from ulmus.cli.console import Console


@options.command
def info(
    *,
    model: options.Model,
    header: Annotated[
        bool,
        typer.Option("--header", help="Only what the file says, without its arrays: immediately."),
    ] = False,
    console: Console,
) -> None:
    """Print what a model file contains: its fit, columns, parameters, and what it can compute.

    Nothing is fitted. Diagnostics are computed by `ulmus check`.

    ```
    ulmus info model.ulmus
    ulmus info model.ulmus --header
    ```
    """
    text, facts = steps.model_info.described_header(model)
    if not header:
        with console.working(f"Reading {model}"):
            summary = steps.diagnostics.saved_summary(model)
        text += f"\n\n{summary.format(console.option, ())}"
        facts["summary"] = summary.to_dict(console.option)
    console.result(text, facts)
