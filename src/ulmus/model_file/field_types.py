"""Whether a value has the type that a dataclass declares for its field.

The closed set of field types: None, bool, int, float, str, arrays, classes, and tuples, lists,
dictionaries with text keys and unions of these. Functions are none of them.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import is_array_api_obj


def construct(cls: type, values: dict[str, Any]) -> Any:
    """A value of a dataclass, if every field is present and has its type.

    Fields with a default may be absent, so that files written before they existed can be read.
    """
    hints = field_hints(cls)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise ValueError(f"{cls.__name__} has no field {unknown[0]!r}")
    for field in fields(cls):
        absent = field.name not in values
        if absent and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{cls.__name__} lacks its field {field.name!r}")
        if not absent and not matches_type(values[field.name], hints[field.name]):
            found = type(values[field.name]).__name__
            raise ValueError(f"{cls.__name__}.{field.name} cannot be a {found}")
    return cls(**values)


@cache
def field_hints(cls: type) -> dict[str, Any]:
    """Type hints of the fields of a dataclass by name."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def matches_type(value: Any, hint: Any) -> bool:
    """Whether a value has the type of a hint; arrays of any library have the hint Any."""
    origin = typing.get_origin(hint)
    if origin is not None:
        return GENERIC[origin](value, typing.get_args(hint))
    return PLAIN[hint](value) if hint in PLAIN else isinstance(value, hint)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_array_or_class(value: Any) -> bool:
    return is_array_api_obj(value) or scipy.sparse.issparse(value) or is_dataclass(value)


PLAIN: dict[Any, Callable[[Any], bool]] = {
    NoneType: lambda value: value is None,
    bool: lambda value: isinstance(value, bool),
    int: lambda value: isinstance(value, int) and not isinstance(value, bool),
    float: _is_number,
    str: lambda value: isinstance(value, str),
    np.ndarray: lambda value: isinstance(value, np.ndarray),
    Any: _is_array_or_class,
}


def _is_tuple(value: Any, hints: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if hints[-1] is Ellipsis:
        return all(matches_type(item, hints[0]) for item in value)
    return len(value) == len(hints) and all(map(matches_type, value, hints))


def _is_sequence(value: Any, hints: tuple[Any, ...]) -> bool:
    return isinstance(value, (list, tuple)) and all(matches_type(v, hints[0]) for v in value)


def _is_dictionary(value: Any, hints: tuple[Any, ...]) -> bool:
    return isinstance(value, dict) and all(matches_type(v, hints[1]) for v in value.values())


def _is_one_of(value: Any, hints: tuple[Any, ...]) -> bool:
    return any(matches_type(value, hint) for hint in hints)


GENERIC: dict[Any, Callable[[Any, tuple[Any, ...]], bool]] = {
    UnionType: _is_one_of,
    typing.Union: _is_one_of,
    tuple: _is_tuple,
    list: lambda value, hints: isinstance(value, list) and _is_sequence(value, hints),
    Sequence: _is_sequence,
    dict: _is_dictionary,
    np.ndarray: lambda value, _: isinstance(value, np.ndarray),
    Callable: lambda value, _: False,
}
