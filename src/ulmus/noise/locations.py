"""Where the rows of a table are: places from its columns, or from arrays beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ulmus.core.data.cv_blocks import group_blocks, spatial_blocks, time_blocks
from ulmus.core.noise_covariance.hac import CLUSTERS, HACSpec
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.core.noise_covariance.structure import CovarianceStructure
from ulmus.noise.structures import AXES, CorrelatedNoise
from ulmus.noise.validation import coordinates, labels, times


def covariance_spec(
    noise: CorrelatedNoise, n_rows: int, columns: Any, given: dict[str, Any]
) -> CovarianceSpec:
    """What a kind of noise assumes, and the places of the rows of a table.

    Parameters
    ----------
    noise : CorrelatedNoise
        The kind of noise.
    n_rows : int
        Rows of the table.
    columns : callable
        The column of a name.
    given : dict
        Arrays for ``time``, ``coords`` and ``groups``, or None.
    """
    kind, names = noise.structure(), noise.names()
    # Several series in one table: groups may come with any noise along time.
    wanted = names | ({"groups": None} if "time" in names and "groups" not in names else {})
    found = _found(f"noise={noise!r}", "fit", n_rows, wanted, columns, given)
    for axis in ("coords", "groups"):
        if axis in names and found[axis] is None:
            raise ValueError(_missing(f"noise={noise!r}", "fit", axis))
    if found.get("groups") is not None:
        values = found["groups"]
        found["groups"], found["labels"] = group_codes(values), group_labels(values)
    return CovarianceSpec(kind, Locations(**found, n=n_rows))


def new_locations(
    noise: Any,
    family: CovarianceStructure,
    trained: Locations,
    n_rows: int,
    columns: Any,
    given: dict[str, Any],
) -> Locations:
    """Locations of the points of a table, by the axes along which noise was fitted.

    Groups that no training row had are independent of all of them, and get the code -1.

    Parameters
    ----------
    noise : CorrelatedNoise
        The kind of noise, for the names of columns.
    family : Family
        What was fitted.
    trained : Locations
        Of the training rows.
    n_rows : int
        Points of the table.
    columns : callable
        The column of a name.
    given : dict
        Arrays for ``time``, ``coords`` and ``groups``, or None.
    """
    names = noise.names() if isinstance(noise, CorrelatedNoise) else {}
    along = {term.axis for term in family.terms}
    needed = [axis for axis, term in (("time", "time"), ("coords", "space")) if term in along]
    needed += ["groups"] if "time" in along and trained.groups is not None else []
    wanted = {axis: names.get(axis) for axis in needed}
    found = _found(f"noise {family}", "predict", n_rows, wanted, columns, given)
    for axis in needed:
        if found[axis] is None:
            raise ValueError(_missing(f"noise {family}", "predict", axis) + _count(axis, trained))
    if "groups" in needed and trained.labels is not None:
        found["groups"] = _known_codes(found["groups"], np.asarray(trained.labels))
    at = Locations(**found, n=n_rows)
    if at.coords is not None and trained.coords is not None:
        n_given, n_known = at.coords.shape[1], trained.coords.shape[1]
        if n_given != n_known:
            raise ValueError(
                f"coords given to predict has {n_given} columns, and that of fit had {n_known}; "
                "give the same ones."
            )
    return at


def _found(
    what: str,
    method: str,
    n_rows: int,
    wanted: dict[str, Any],
    columns: Any,
    given: dict[str, Any],
) -> dict[str, Any]:
    """Numbers along the axes that are wanted, or None where they were not given."""
    for axis in AXES:
        if given.get(axis) is not None and axis not in wanted:
            raise ValueError(f"{axis} was given to {method}, and {what} has no use for it.")
    found = {
        axis: _place(axis, name, given.get(axis), columns, method) for axis, name in wanted.items()
    }
    for axis, values in found.items():
        if values is not None and len(values) != n_rows:
            raise ValueError(
                f"{axis} given to {method} has {len(values)} rows, and X has {n_rows}; give one "
                "value for each row."
            )
    return found


def _missing(what: str, method: str, axis: str) -> str:
    named = "names of columns" if axis == "coords" else "name of a column"
    return f"{what} needs {axis}: give {method}(..., {axis}=...), or the {named} of X."


def _count(axis: str, trained: Locations) -> str:
    """What times are, where the rows had none."""
    if axis != "time" or trained.time is not None:
        return ""
    return (
        f" The {trained.n} training rows had no times and are at 0, 1, ..., counted within groups."
    )


def _known_codes(given: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Codes of labels among those that are known, and -1 for others."""
    if (given.dtype.kind == "U") != (known.dtype.kind == "U"):
        kinds = ["words" if array.dtype.kind == "U" else "numbers" for array in (given, known)]
        raise ValueError(
            f"groups given to predict are {kinds[0]}, and those of fit were {kinds[1]}; give the "
            "same kind of labels."
        )
    order = np.argsort(known)
    place = np.searchsorted(known, given, sorter=order)
    codes = order[np.minimum(place, len(known) - 1)]
    return np.where(known[codes] == given, codes, -1)


def default_block_ids(assumed: CovarianceSpec, used: np.ndarray) -> np.ndarray:
    """Labels of the blocks in which rows are left out, shape (n,).

    Parameters
    ----------
    assumed : Dependence
        How the noise hangs together, and where the rows are.
    used : ndarray of bool, shape (n,)
        Rows of positive weight, which make the blocks; others are with the row before them.
    """
    block_ids = _used_cut(assumed.structure, assumed.locations.taken(used))
    return block_ids[np.maximum(np.cumsum(used) - 1, 0)]


def _used_cut(kind: CovarianceStructure | HACSpec, locations: Locations) -> np.ndarray:
    if isinstance(kind, HACSpec) and kind.kernel == CLUSTERS:
        return group_blocks(locations.codes)
    if locations.coords is not None:
        return spatial_blocks(locations.coords)
    return time_blocks(locations.times, locations.groups)


def _place(axis: str, name: Any, array: Any, columns: Any, method: str) -> Any:
    """Numbers of an axis, or labels of groups: an array that was given, or columns of X by name."""
    if name is not None and array is not None:
        raise ValueError(
            f"{axis} was given to {method} and as {axis}={name!r} of the noise; keep one."
        )
    if name is None and array is None:
        return None
    if axis == "coords":
        if array is None:
            return np.column_stack([coordinates(columns(one)) for one in name])
        return coordinates(array)
    values = columns(name) if array is None else array
    return labels(values) if axis == "groups" else times(values)


def group_codes(values: Any) -> np.ndarray:
    """Groups as numbers 0, 1, ..., in the order in which they come."""
    _, first, codes = np.unique(np.asarray(values), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def group_labels(values: np.ndarray) -> np.ndarray | tuple[str, ...]:
    """What the groups of these numbers are called; a model file can hold numbers and words."""
    names, first = np.unique(values, return_index=True)
    names = names[np.argsort(first)]
    return tuple(names.tolist()) if names.dtype.kind == "U" else names
