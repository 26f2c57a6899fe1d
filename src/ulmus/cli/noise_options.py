"""Options of correlated errors: columns of times, coordinates and groups, and the noise model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer

from ulmus.cli.options import column_names

INDEPENDENT = ("auto", "homoskedastic", "heteroskedastic")
IN_TIME = ("ar1", "newey-west")
IN_SPACE = ("exponential", "matern")
CLUSTERED = "clustered"
NOISES = (*INDEPENDENT, *IN_TIME, *IN_SPACE, CLUSTERED)
_option = partial(typer.Option, rich_help_panel="Correlated errors")


@dataclass(frozen=True)
class NoiseOptions:
    """Columns of locations, and the name of the noise model."""

    time: Annotated[
        str | None, _option(metavar="COLUMN", help="Column of times: errors are autocorrelated.")
    ] = None
    coords: Annotated[
        list[str] | None,
        _option(
            metavar="COLUMNS",
            help="Columns of coordinates, such as east,north: errors are spatially correlated.",
        ),
    ] = None
    groups: Annotated[
        str | None,
        _option(
            metavar="COLUMN",
            help="Column of groups: errors are correlated within groups; with --time, each group "
            "is a series.",
        ),
    ] = None
    noise: Annotated[
        str | None,
        _option(
            metavar="NAME",
            help="Independent errors: auto, homoskedastic or heteroskedastic. In time: ar1 or "
            "newey-west. In space: exponential or matern. In groups: clustered. Default: by the "
            "columns above.",
        ),
    ] = None

    def names(self, columns: Collection[str]) -> list[str]:
        """Names of all columns of locations, for a table with these columns."""
        single = (name for name in (self.time, self.groups) if name is not None)
        return [*single, *column_names(self.coords, columns)]
