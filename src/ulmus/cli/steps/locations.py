"""Columns of times, coordinates and groups, and the noise model of correlated errors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from ulmus.cli.noise_options import CLUSTERED, IN_SPACE, IN_TIME, NOISES, NoiseOptions
from ulmus.cli.options import column_names
from ulmus.noise import AR1, Clustered, Exponential, Matern, NeweyWest
from ulmus.noise.structures import location_columns
from ulmus.tables import NumberColumn
from ulmus.tables.cells import Cells
from ulmus.tables.columns import NumericColumn, column_type

STRUCTURES: dict[str, Any] = {
    "ar1": AR1,
    "newey-west": NeweyWest,
    "exponential": Exponential,
    "matern": Matern,
}


@dataclass(frozen=True)
class LocationColumns:
    """Names of the columns of times, coordinates and groups."""

    time: str | None = None  # numbers or dates
    coords: tuple[str, ...] = ()  # numbers
    groups: str | None = None  # any values

    @property
    def names(self) -> list[str]:
        """All of these columns."""
        return [name for names in self.axes.values() for name in names]

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """Columns of each axis that has any."""
        each = {
            "time": () if self.time is None else (self.time,),
            "coords": self.coords,
            "groups": () if self.groups is None else (self.groups,),
        }
        return {axis: names for axis, names in each.items() if names}

    def require_use(self, name: str | None) -> None:
        """Refuse an unknown noise model, one that lacks columns, and columns that it ignores."""
        if name is not None and name not in NOISES:
            raise ValueError(f"--noise must be one of {', '.join(NOISES)}, got {name}.")
        for axis, names in (("coords", IN_SPACE), ("groups", (CLUSTERED,))):
            if name in names and axis not in self.axes:
                raise ValueError(f"--noise {name} needs --{axis}; name columns of the table.")
        used = location_columns(self.noise(name, ()))
        unused = next((axis for axis in self.axes if axis not in used), None)
        if unused is not None:
            model = f"--noise {name or self._default}"
            raise ValueError(f"--{unused} has no use with {model}; drop one of them.")

    def noise(self, name: str | None, features: Collection[str]) -> Any:
        """The noise model of this name or the default; it refers to inputs by their names."""
        name, named = name or self._default, self._named(features)
        if name in IN_TIME:
            series = STRUCTURES[name](time=named.get("time"))
            return series * Clustered(named.get("groups")) if "groups" in self.axes else series
        if name in IN_SPACE:
            space = STRUCTURES[name](coords=named.get("coords"))
            return space + AR1(time=named.get("time")) if "time" in self.axes else space
        return Clustered(named.get("groups")) if name == CLUSTERED else name

    @property
    def _default(self) -> str:
        defaults = {"coords": "exponential", "time": "ar1", "groups": CLUSTERED}
        return next((name for axis, name in defaults.items() if axis in self.axes), "auto")

    def arguments(self, values: dict[str, Any], features: Collection[str]) -> dict[str, Any]:
        """Arguments of ``fit``: values of the axes that noise cannot name as inputs."""
        named = self._named(features)
        return {axis: array for axis, array in values.items() if axis not in named}

    def values(
        self, frame: Any, na_values: tuple[str, ...], first_row: int
    ) -> dict[str, np.ndarray]:
        """Times (n,), coordinates (n, c) and groups (n,) of rows; NaN and None where missing."""
        out = {}
        for axis, names in self.axes.items():
            cells = [Cells(name, frame[name], na_values, first_row) for name in names]
            each = [_location_values(one, axis) for one in cells]
            out[axis] = np.column_stack(each) if axis == "coords" else each[0]
        return out

    def _named(self, features: Collection[str]) -> dict[str, Any]:
        """Column names of the axes all of whose columns are inputs."""
        inputs = {axis: names for axis, names in self.axes.items() if set(names) <= set(features)}
        return {axis: names if axis == "coords" else names[0] for axis, names in inputs.items()}


def checked_locations(options: NoiseOptions, columns: Collection[str]) -> LocationColumns:
    """The columns of locations, if the noise model uses each of them."""
    coords = column_names(options.coords, columns)
    locations = LocationColumns(options.time, coords, options.groups)
    locations.require_use(options.noise)
    return locations


def missing_locations(values: dict[str, np.ndarray], n_rows: int) -> np.ndarray:
    """Whether a location of each row is missing, shape (n,)."""
    missing = np.zeros(n_rows, dtype=bool)
    for axis, array in values.items():
        groups = axis == "groups"
        absent = np.array([one is None for one in array]) if groups else np.isnan(array)
        missing |= absent.reshape(n_rows, -1).any(axis=1)
    return missing


def _location_values(cells: Cells, axis: str) -> np.ndarray:
    if axis == "groups":
        groups = np.full(len(cells.present), None, dtype=object)
        groups[cells.present] = cells.texts
        return groups
    found = column_type(cells) or NumberColumn
    allowed = found is NumberColumn or (axis == "time" and found.continuous)
    if allowed and issubclass(found, NumericColumn):
        return found.parse(cells)
    required = "numbers or dates" if axis == "time" else "numbers"
    raise ValueError(f"--{axis} {cells.name} contains {found.plural}; name a column of {required}.")
