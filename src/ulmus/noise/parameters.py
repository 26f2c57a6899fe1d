"""What kinds of noise are made with, checked: names of columns, a nugget, how far noise reaches."""

from __future__ import annotations

from typing import Any

import numpy as np


def coordinate_names(coords: Any) -> tuple[str, ...] | None:
    """Names of the columns of coordinates, as a tuple so that equal kinds are equal."""
    if coords is None or isinstance(coords, str):
        return None if coords is None else (coords,)
    if not isinstance(coords, (list, tuple)):
        raise ValueError(
            f"coords must be names of columns of X, such as ('east', 'north'), got a value of type "
            f"{type(coords).__name__}; give coordinates themselves to fit."
        )
    if not coords or not all(isinstance(name, str) for name in coords):
        raise ValueError(
            f"coords={coords!r} must be names of one or more columns of X, such as ('east', "
            "'north'); give coordinates themselves to fit."
        )
    return tuple(coords)


def require_column_name(axis: str, name: Any) -> None:
    """Refuse values where the name of a column is meant."""
    if name is not None and not isinstance(name, str):
        raise ValueError(
            f"{axis} must be the name of a column of X, got a value of type "
            f"{type(name).__name__}; give values themselves to fit."
        )


def require_nugget(nugget: Any) -> None:
    """Refuse a nugget that is neither there nor not, such as the name of a column."""
    if not isinstance(nugget, (bool, np.bool_)):
        raise ValueError(
            f"nugget must be True or False, got {nugget!r}; name columns by their axis, as in "
            "AR1(time='day') or Exponential(coords=('east', 'north'))."
        )


def smoothness(nu: Any) -> float:
    """The smoothness of Matern noise; which numbers it can be, its kernel knows."""
    if not _is_number(nu):
        raise ValueError(f"nu must be a number, for example 1.5, got {nu!r}.")
    return float(nu)


def reach(name: str, value: Any) -> float | None:
    """How far a kernel reaches; None where the rows are to tell."""
    if isinstance(value, str) and value == "auto":
        return None
    if not _is_number(value) or not 0 < value < np.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}.")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
