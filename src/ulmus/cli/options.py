"""Arguments and options that several commands share."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Missing(StrEnum):
    """What rows with missing values get."""

    error = "error"
    drop = "drop"
    impute = "impute"


class Of(StrEnum):
    """What a confidence interval is for."""

    function = "function"
    expectation = "expectation"


READING = "How to read CSV"

Data = Annotated[Path, typer.Argument(help="Table: .csv, .csv.gz, .parquet, .arrow or .feather.")]
Model = Annotated[Path, typer.Argument(help="Model file that `ulmus fit` or `save` wrote.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but failures.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Level = Annotated[float, typer.Option(help="Level of intervals, between 0 and 1.")]
By = Annotated[list[str] | None, typer.Option(help="Column of groups; may be given several times.")]
MissingRule = Annotated[
    Missing | None,
    typer.Option(help="Rows with missing values; by default, as when the model was fitted."),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="What parts columns; by default, found out.", rich_help_panel=READING),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="Decimal sign; by default, found out.", rich_help_panel=READING),
]
Encoding = Annotated[str, typer.Option(help="Encoding of the text.", rich_help_panel=READING)]


def names(given: list[str] | None, columns: Collection[str] = ()) -> tuple[str, ...]:
    """Names that were given one by one, or several with commas between; a column's name whole."""
    listed = ([text] if text in columns else parts(text) for text in given or ())
    return tuple(name for several in listed for name in several)


def parts(text: str) -> list[str]:
    """What the commas of a text part, of which quotes hold together what they enclose."""
    lines = csv.reader(io.StringIO(text), skipinitialspace=True)
    return [part.strip() for line in lines for part in line if part.strip()]
