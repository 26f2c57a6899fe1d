"""Locations of the rows: their times, their coordinates and their groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ulmus.core.noise_covariance.errors import covariance_error
from ulmus.core.noise_covariance.vecchia import Neighbourhoods


@dataclass(frozen=True)
class Locations:
    """Times, coordinates and groups of the rows."""

    # (n,): times in any unit. Without them, rows of a group are one unit apart.
    time: Any | None = None
    coords: Any | None = None  # (n, c): coordinates in space
    # (n,): integer codes of groups: several series, or clusters of rows. Without them, all rows
    # form one group.
    groups: Any | None = None
    n: int = -1  # number of rows; required only if the others are omitted
    # (g,): names of the groups 0, 1, ...: numbers, or strings.
    labels: np.ndarray | tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check the arrays, and that they are of the same length."""
        arrays = {
            "time": _finite("time", self.time, 1),
            "coords": _coordinates(self.coords),
            "groups": _codes(self.groups),
        }
        lengths = {name: len(values) for name, values in arrays.items() if values is not None}
        if self.n >= 0:
            lengths["n"] = self.n
        if not lengths:
            raise ValueError("locations require time, coords, groups or the number of rows n.")
        if len(set(lengths.values())) > 1:
            each = ", ".join(f"{name} of {length} rows" for name, length in lengths.items())
            text = f"locations have {each}"
            raise covariance_error("invalid-lengths", text, "give one value for each row")
        object.__setattr__(self, "n", next(iter(lengths.values())))
        for name, values in arrays.items():
            object.__setattr__(self, name, values)

    @cached_property
    def order(self) -> np.ndarray:
        """Indices that sort the rows by group and by time within a group, stable, shape (n,)."""
        keys = [key for key in (self.time, self.groups) if key is not None]
        return np.lexsort(keys) if keys else np.arange(self.n)

    @cached_property
    def codes(self) -> np.ndarray:
        """Groups; zero for all rows if there are none, shape (n,)."""
        return np.zeros(self.n, dtype=int) if self.groups is None else self.groups

    @cached_property
    def times(self) -> np.ndarray:
        """Times, or the number of earlier rows of the same group, shape (n,)."""
        if self.time is not None:
            return self.time
        codes = self.codes[self.order]
        position = np.arange(self.n)
        starts = position[group_starts(codes)]
        times = np.empty(self.n)
        times[self.order] = position - starts[np.cumsum(group_starts(codes)) - 1]
        return times

    def taken(self, index: Any) -> Locations:
        """Locations of some rows, by index; rows without times keep the steps between them."""
        coords = None if self.coords is None else self.coords[index]
        groups = None if self.groups is None else self.groups[index]
        return Locations(self.times[index], coords, groups, labels=self.labels)

    @cached_property
    def neighbours(self) -> Neighbourhoods:
        """Nearest neighbours of the rows in space."""
        return Neighbourhoods.of(np.asarray(self.coords))

    @cached_property
    def ordered(self) -> Locations:
        """The same locations, sorted."""
        return self.taken(self.order)


def group_starts(codes: np.ndarray) -> np.ndarray:
    """Mask of the rows that are first in a run of equal codes, shape (n,)."""
    return np.concatenate([np.ones(min(1, len(codes)), dtype=bool), codes[1:] != codes[:-1]])


def _finite(name: str, values: Any, ndim: int) -> np.ndarray | None:
    if values is None:
        return None
    array = np.asarray(values, dtype=float)
    if array.ndim != ndim:
        shape = "(n,)" if ndim == 1 else "(n, c)"
        text = f"{name} has shape {array.shape}"
        raise covariance_error(f"invalid-{name}", text, f"give an array of shape {shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=tuple(range(1, ndim))))
    if len(bad):
        text = f"{name} of row {bad[0]} is {array[bad[0]]}"
        raise covariance_error(f"invalid-{name}", text, "give finite numbers", "exclude the row")
    return array


def _coordinates(coords: Any) -> np.ndarray | None:
    if coords is None:
        return None
    array = np.asarray(coords)
    return _finite("coords", array[:, None] if array.ndim == 1 else array, 2)


def _codes(groups: Any) -> np.ndarray | None:
    if groups is None:
        return None
    array = np.asarray(groups)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise covariance_error(
            "invalid-groups",
            f"groups has shape {array.shape} and dtype {array.dtype}",
            "give integer codes of shape (n,), for example those of "
            "numpy.unique(groups, return_inverse=True)",
        )
    return array
