"""Options of the columns of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ulmus.cli.options import Missing, Unknown, columns_option


@dataclass(frozen=True)
class ColumnOptions:
    """Roles of the columns, and missing values."""

    columns: Annotated[
        list[str] | None, columns_option(help="Inputs (default: all other columns).")
    ] = None
    drop: Annotated[list[str] | None, columns_option(help="Columns that are not inputs.")] = None
    categorical: Annotated[
        list[str] | None, columns_option(help="Columns of numbers that are labels of categories.")
    ] = None
    sample_weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of row weights: inverse noise variances."),
    ] = None
    missing: Annotated[
        Missing,
        typer.Option(help="Rows with missing values: fill them in, exclude them, or refuse them."),
    ] = Missing.impute
    na_values: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXTS", help="Codes for missing values, such as -999 or unknown,?."),
    ] = None
    unknown: Annotated[
        Unknown,
        typer.Option(help="Categories of new rows that no training row has: average, or refuse."),
    ] = Unknown.average
