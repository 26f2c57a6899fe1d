"""Whether a value is of the kind that a dataclass says its field has: values from files are not."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import is_array_api_obj


def made(cls: type, values: dict[str, Any]) -> Any:
    """A value of a dataclass, if every field is there and of its kind.

    Fields that have a default may be absent, so that what was written before they existed can be
    read.
    """
    known, hints = fields(cls), _hints(cls)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise ValueError(f"{cls.__name__} has no field {unknown[0]!r}")
    for field in known:
        absent = field.name not in values
        if absent and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{cls.__name__} lacks its field {field.name!r}")
        if not absent and not is_kind(values[field.name], hints[field.name]):
            found = type(values[field.name]).__name__
            raise ValueError(f"{cls.__name__}.{field.name} cannot be a {found}")
    return cls(**values)


@cache
def _hints(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def is_kind(value: Any, hint: Any) -> bool:
    """Whether a value is what a type hint says; arrays and forms have the hint Any."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (UnionType, typing.Union):
        return any(is_kind(value, one) for one in arguments)
    if origin is Callable:
        return False
    if origin is tuple:
        return isinstance(value, tuple) and all(is_kind(one, arguments[0]) for one in value)
    if origin is Sequence:
        return isinstance(value, (list, tuple)) and all(is_kind(v, arguments[0]) for v in value)
    if origin is list:
        return isinstance(value, list) and all(is_kind(one, arguments[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(is_kind(v, arguments[1]) for v in value.values())
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if hint is Any:
        return is_array_api_obj(value) or scipy.sparse.issparse(value) or is_dataclass(value)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)
