"""``ulmus plot``: a figure of a model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ulmus.cli import options, steps
from ulmus.cli.console import Console


class DisplayChoice(StrEnum):
    """The displays of ``ulmus.plot`` by name."""

    prediction = "prediction"
    partial_dependence = "partial-dependence"
    slope = "slope"
    variance = "variance"
    ensemble_size = "ensemble-size"
    calibration = "calibration"
    residuals = "residuals"
    relevance = "relevance"


@options.command
def plot(
    *,
    model: options.Model,
    data: options.OptionalData = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Figure to write: .png, .svg or .pdf.")
    ],
    display: Annotated[
        DisplayChoice | None,
        typer.Option(
            metavar="NAME",
            help="partial-dependence (the default with a table), slope, prediction, variance, "
            "ensemble-size, calibration, relevance (the default without a table) or residuals "
            "(the same without a learned input map).",
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        options.columns_option(
            help="Columns of the curves (default: the most relevant, for partial-dependence)."
        ),
    ] = None,
    confidence_level: options.ConfidenceLevel = 0.95,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Add simultaneous bands to curves.")
    ] = False,
    centered: Annotated[
        bool, typer.Option("--centered", help="Partial dependence as differences from its mean.")
    ] = False,
    grid_resolution: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Number of points of each curve.")
    ] = None,
    target: options.Target = None,
    missing: options.MissingRule = None,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Draw a figure of a model, with error bars: a display of `ulmus.plot`.

    `relevance` and `residuals` (leave-one-out) need no table. `partial-dependence`, `slope`,
    `variance` and `ensemble-size` average over the rows of a table. `prediction` draws predictions
    and observations along a column, and `calibration` compares intervals with the observations of
    new rows; training rows would be optimistic. Needs ulmus[plot].

    ```
    ulmus plot model.ulmus table.csv -o curves.png
    ulmus plot model.ulmus table.csv -o bmi.svg --display slope --features bmi
    ulmus plot model.ulmus new.csv -o calibration.pdf --display calibration
    ulmus plot model.ulmus -o relevance.png --display relevance
    ```
    """
    steps.files.require_output_file(output, [".png", ".svg", ".pdf"], inputs=[data, model])
    options_of_display = {
        "confidence_level": None if confidence_level == 0.95 else confidence_level,
        "simultaneous": simultaneous or None,
        "centered": centered or None,
        "grid_resolution": grid_resolution,
    }
    given = {name: value for name, value in options_of_display.items() if value is not None}
    request = steps.figures.Request(display and display.value, features, given, target, missing)
    facts = steps.figures.draw(request, model, data, output, reading, console)
    console.result(f"Wrote {output} ({facts['display']}).", {"output": output, **facts})
