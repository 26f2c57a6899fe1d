"""Locations of the rows of a table, from its columns or from arrays beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ulmus.core.data.cv_blocks import group_blocks, spatial_blocks, time_blocks
from ulmus.core.noise_covariance.hac import CLUSTERS, HACSpec
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.core.noise_covariance.structure import CovarianceStructure
from ulmus.noise.structures import AXES, CorrelatedNoise, location_columns
from ulmus.noise.validation import coordinates, labels, location_error, times


def covariance_spec(
    noise: CorrelatedNoise, n_rows: int, columns: Any, arrays: dict[str, Any]
) -> CovarianceSpec:
    """Covariance structure of noise, and the locations of the rows of a table.

    ``columns`` returns the column of a name; ``arrays`` are ``time``, ``coords`` and ``groups``
    given beside the table, or None.
    """
    structure, names = noise.structure(), noise.names()
    # Groups define several series for any noise in time.
    axes = names | ({"groups": None} if "time" in names and "groups" not in names else {})
    values = _values(f"noise={noise!r}", "fit", n_rows, axes, columns, arrays)
    for axis in ("coords", "groups"):
        if axis in names and values[axis] is None:
            raise _missing(f"noise={noise!r}", "fit", axis)
    if values.get("groups") is not None:
        groups = values["groups"]
        values["groups"], values["labels"] = group_codes(groups), group_labels(groups)
    return CovarianceSpec(structure, Locations(**values, n=n_rows))


def new_locations(
    noise: Any,
    structure: CovarianceStructure,
    rows: Locations,
    n_points: int,
    columns: Any,
    arrays: dict[str, Any],
) -> Locations:
    """Locations of the points of a table, along the axes of a fitted covariance structure.

    Groups without training rows are independent of all of them; their code is -1. ``columns`` and
    ``arrays`` are as for :func:`covariance_spec`.
    """
    names = location_columns(noise)
    along = {term.axis for term in structure.terms}
    needed = [axis for axis, term in (("time", "time"), ("coords", "space")) if term in along]
    needed += ["groups"] if "time" in along and rows.groups is not None else []
    axes = {axis: names.get(axis) for axis in needed}
    values = _values(f"noise {structure}", "predict", n_points, axes, columns, arrays)
    for axis in needed:
        if values[axis] is None:
            note = ""
            if axis == "time" and rows.time is None:
                note = (
                    f" (the {rows.n} training rows have the default times 0, 1, ... within groups)"
                )
            raise _missing(f"noise {structure}", "predict", axis, note)
    if "groups" in needed and rows.labels is not None:
        values["groups"] = _training_codes(values["groups"], np.asarray(rows.labels))
    locations = Locations(**values, n=n_points)
    if locations.coords is not None and rows.coords is not None:
        n_columns, expected = locations.coords.shape[1], rows.coords.shape[1]
        if n_columns != expected:
            text = f"coords has {n_columns} columns in predict, and had {expected} in fit"
            raise location_error("coords", text, "give the same columns")
    return locations


def _values(
    noise: str, method: str, n: int, axes: dict[str, Any], columns: Any, arrays: dict[str, Any]
) -> dict[str, Any]:
    """Values along the axes of the noise, or None for those that are omitted."""
    for axis in AXES:
        if arrays.get(axis) is not None and axis not in axes:
            text = f"{axis} was given to {method}, and is not used by {noise}"
            raise location_error(axis, text, f"omit {axis}")
    values = {
        axis: _axis_values(axis, name, arrays.get(axis), columns, method)
        for axis, name in axes.items()
    }
    for axis, array in values.items():
        if array is not None and len(array) != n:
            text = f"{axis} given to {method} has {len(array)} rows, and X has {n}"
            raise location_error(axis, text, "give one value for each row")
    return values


def _missing(noise: str, method: str, axis: str, note: str = "") -> Exception:
    named = "names of columns" if axis == "coords" else "name of a column"
    text = f"{noise} requires {axis}{note}"
    return location_error(
        axis, text, f"give {method}(..., {axis}=...)", f"give the {named} of X to the noise"
    )


def _training_codes(groups: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Codes of labels among those of the training rows, and -1 for others."""
    if (groups.dtype.kind == "U") != (known.dtype.kind == "U"):
        types = ["strings" if array.dtype.kind == "U" else "numbers" for array in (groups, known)]
        text = f"groups given to predict are {types[0]}, and those of fit were {types[1]}"
        raise location_error("groups", text, "give labels of the same type")
    order = np.argsort(known)
    position = np.searchsorted(known, groups, sorter=order)
    codes = order[np.minimum(position, len(known) - 1)]
    return np.where(known[codes] == groups, codes, -1)


def default_block_ids(spec: CovarianceSpec, used: np.ndarray) -> np.ndarray:
    """Ids of the blocks of correlated rows for cross-validation, shape (n,).

    Rows of positive weight, by the mask ``used`` (n,), define the blocks; other rows get the id of
    the preceding row.
    """
    locations = spec.locations.taken(used)
    if isinstance(spec.structure, HACSpec) and spec.structure.kernel == CLUSTERS:
        ids = group_blocks(locations.codes)
    elif locations.coords is not None:
        ids = spatial_blocks(locations.coords)
    else:
        ids = time_blocks(locations.times, locations.groups)
    return ids[np.maximum(np.cumsum(used) - 1, 0)]


def location_columns_of(spec: CovarianceSpec) -> list[np.ndarray]:
    """Columns (n,) of the locations that the noise depends on."""
    locations, columns = spec.locations, list[np.ndarray]()
    if locations.coords is not None:
        columns += list(locations.coords.T)
    if locations.groups is not None:
        columns.append(locations.groups)
    clusters = isinstance(spec.structure, HACSpec) and spec.structure.kernel == CLUSTERS
    if locations.time is not None or not (clusters or locations.coords is not None):
        columns.append(locations.times)
    return columns


def _axis_values(axis: str, name: Any, array: Any, columns: Any, method: str) -> Any:
    """Numbers of an axis, or labels of groups, from an array or from columns of X by name."""
    if name is not None and array is not None:
        text = f"{axis} was given to {method} and as {axis}={name!r} of the noise"
        raise location_error(axis, text, "omit one of them")
    if name is None and array is None:
        return None
    if axis == "coords":
        if array is None:
            return np.column_stack([coordinates(columns(one)) for one in name])
        return coordinates(array)
    values = columns(name) if array is None else array
    return labels(values) if axis == "groups" else times(values)


def group_codes(values: Any) -> np.ndarray:
    """Groups as numbers 0, 1, ..., in the order of their first rows."""
    _, first, codes = np.unique(np.asarray(values), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def group_labels(values: np.ndarray) -> np.ndarray | tuple[str, ...]:
    """Labels of the groups 0, 1, ...: an array of numbers, or a tuple of strings."""
    names, first = np.unique(values, return_index=True)
    names = names[np.argsort(first)]
    return tuple(names.tolist()) if names.dtype.kind == "U" else names
