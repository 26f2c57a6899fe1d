"""Columns that say where the rows are: in time, in space and in groups; and the noise they mean."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from ulmus.noise import AR1, Clustered, CorrelatedNoise, Exponential, Matern, NeweyWest
from ulmus.tables.cells import CATEGORY, DATE, NUMBER, Cells

INDEPENDENT = ("auto", "homoskedastic", "heteroskedastic")
ALONG_TIME = {"ar1": AR1, "newey-west": NeweyWest}
IN_SPACE = {"exponential": Exponential, "matern": Matern}
CLUSTERED = "clustered"
NOISES = (*INDEPENDENT, *ALONG_TIME, *IN_SPACE, CLUSTERED)


@dataclass(frozen=True)
class LocationColumns:
    """Names of the columns that have times, coordinates and groups, where there are any.

    Parameters
    ----------
    time : str or None
        Times: numbers or dates.
    coords : tuple of str
        Coordinates: numbers.
    groups : str or None
        Groups: anything.
    """

    time: str | None = None
    coords: tuple[str, ...] = ()
    groups: str | None = None

    @property
    def names(self) -> list[str]:
        """All of these columns."""
        return [name for names in self.axes.values() for name in names]

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """Columns of each axis that is given."""
        each = {
            "time": () if self.time is None else (self.time,),
            "coords": self.coords,
            "groups": () if self.groups is None else (self.groups,),
        }
        return {axis: names for axis, names in each.items() if names}

    def require_use(self, kind: str | None) -> None:
        """Refuse noise that is not known, that lacks its columns, or that has no use for some."""
        if kind is not None and kind not in NOISES:
            known = ", ".join(map(repr, NOISES))
            raise ValueError(f"noise must be one of {known}, got {kind!r}.")
        for needed, kinds in (("coords", tuple(IN_SPACE)), ("groups", (CLUSTERED,))):
            if kind in kinds and needed not in self.axes:
                raise ValueError(f"--noise {kind} needs --{needed}; name columns of the table.")
        noise = self.noise(kind, ())
        used = noise.names() if isinstance(noise, CorrelatedNoise) else {}
        idle = next((axis for axis in self.axes if axis not in used), None)
        if idle is not None:
            means = f"--noise {kind or self._usual}"
            raise ValueError(f"--{idle} has no use with {means}; leave one of them out.")

    def noise(self, kind: str | None, features: Collection[str]) -> Any:
        """The noise of this name, or what the columns mean if there is none.

        It names the columns that the model has as inputs; values of others are given to its fit.
        """
        kind, named = kind or self._usual, self._named(features)
        if kind in ALONG_TIME:
            along = ALONG_TIME[kind](time=named.get("time"))
            return along * Clustered(named.get("groups")) if "groups" in self.axes else along
        if kind in IN_SPACE:
            space = IN_SPACE[kind](coords=named.get("coords"))
            return space + AR1(time=named.get("time")) if "time" in self.axes else space
        return Clustered(named.get("groups")) if kind == CLUSTERED else kind

    @property
    def _usual(self) -> str:
        usual = {"coords": "exponential", "time": "ar1", "groups": CLUSTERED}
        return next((kind for axis, kind in usual.items() if axis in self.axes), "auto")

    def given(self, values: dict[str, Any], features: Collection[str]) -> dict[str, Any]:
        """Values of the axes that noise cannot name."""
        named = self._named(features)
        return {axis: array for axis, array in values.items() if axis not in named}

    def values(self, frame: Any, marks: tuple[str, ...], first_row: int) -> dict[str, np.ndarray]:
        """Times (n,), coordinates (n, c) and groups (n,) of rows; NaN and None where missing."""
        out = {}
        for axis, names in self.axes.items():
            cells = [Cells(name, frame[name], marks, first_row) for name in names]
            each = [_groups(one) if axis == "groups" else _numbers(one, axis) for one in cells]
            out[axis] = np.column_stack(each) if axis == "coords" else each[0]
        return out

    def _named(self, features: Collection[str]) -> dict[str, Any]:
        """Axes of which every column is an input, with the names that noise has for them."""
        whole = {axis: names for axis, names in self.axes.items() if set(names) <= set(features)}
        return {axis: names if axis == "coords" else names[0] for axis, names in whole.items()}


def missing_locations(values: dict[str, np.ndarray], n_rows: int) -> np.ndarray:
    """Rows of which a place is missing, shape (n,)."""
    missing = np.zeros(n_rows, dtype=bool)
    for axis, array in values.items():
        groups = axis == "groups"
        absent = np.array([one is None for one in array]) if groups else np.isnan(array)
        missing |= absent.reshape(n_rows, -1).any(axis=1)
    return missing


def _numbers(cells: Cells, axis: str) -> np.ndarray:
    allowed = (NUMBER, DATE) if axis == "time" else (NUMBER,)
    if cells.kind is not None and cells.kind not in allowed:
        held = {CATEGORY: "texts", DATE: "dates"}.get(cells.kind, "truth values")
        wanted = "numbers or dates" if axis == "time" else "numbers"
        raise ValueError(f"--{axis} {cells.name} holds {held}; name a column of {wanted}.")
    return cells.numbers(cells.kind or NUMBER)


def _groups(cells: Cells) -> np.ndarray:
    groups = np.full(len(cells.present), None, dtype=object)
    groups[cells.present] = cells.texts
    return groups
