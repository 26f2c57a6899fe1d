"""Values of a fit as arrays and a description, and back; classes that may occur in a file."""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import is_array_api_obj

from ulmus.core.arrays.backend import Array, is_foreign, like, to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.misfit import Misfit
from ulmus.core.response.transformer import Fitted, Transformer
from ulmus.core.ridge.member_pairs import PairGram
from ulmus.core.ridge.sampled_pairs import SampledPairs
from ulmus.core.variance.quadratic_forms import JackknifeForm, RegeneratedForm, RowForm
from ulmus.model_file.field_types import construct, field_hints
from ulmus.noise.structures import NOISE_STRUCTURES

# Estimators import this package, so that they are named here and imported when a file is read.
ESTIMATORS = {
    "ELMEnsembleRegressor": "ulmus.estimators.ensemble",
    "ELMRegressor": "ulmus.estimators.single",
}
#: Classes of the ``noise`` parameter.
NOISE_CLASSES: dict[str, type] = dict(NOISE_STRUCTURES)


def estimator_class(name: Any) -> Any:
    """The estimator of a name."""
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ValueError(f"there is no class {name!r:.80}")
    return getattr(import_module(ESTIMATORS[name]), name)


def _dataclasses_in(hint: Any) -> Iterator[type]:
    """The dataclasses that a type hint mentions."""
    if is_dataclass(hint) and isinstance(hint, type):
        yield hint
    for argument in typing.get_args(hint):
        yield from _dataclasses_in(argument)


def reachable_dataclasses(*roots: type) -> dict[str, type]:
    """The dataclasses that values of some dataclasses consist of, by name, themselves included."""
    found: dict[str, type] = {}
    waiting = list(roots)
    while waiting:
        cls = waiting.pop()
        if cls.__name__ not in found:
            found[cls.__name__] = cls
            for hint in field_hints(cls).values():
                waiting.extend(_dataclasses_in(hint))
    return dict(sorted(found.items()))


# Forms are named, as fields that accept any of them have no narrower hint.
_REACHABLE = reachable_dataclasses(
    Fit, JackknifeForm, PairGram, RegeneratedForm, RowForm, SampledPairs
)
#: Classes of a fit in a model file. Transformers of a target are objects of any class.
FIT_CLASSES = {name: cls for name, cls in _REACHABLE.items() if cls not in (Fitted, Transformer)}

#: What ``skops.io.load(path, trusted=SKOPS_TRUSTED_TYPES)`` must trust to load a fitted estimator:
#: the classes of ulmus, and SciPy's sparse arrays for fits to them.
SKOPS_TRUSTED_TYPES = tuple(f"{module}.{name}" for name, module in ESTIMATORS.items()) + tuple(
    f"{cls.__module__}.{cls.__qualname__}"
    for cls in (*_REACHABLE.values(), *NOISE_CLASSES.values(), Misfit, scipy.sparse.csr_array)
)


SEQUENCES = {"list": list, "tuple": tuple}


def to_arrays(fit: Fit) -> tuple[dict[str, np.ndarray], Any]:
    """All arrays of a fit by name, as NumPy arrays, and a description of the rest."""
    return describe(fit.with_refits().compacted(), "fit")


def describe(
    value: Any, name: str, classes: Mapping[str, type] = FIT_CLASSES
) -> tuple[dict[str, np.ndarray], Any]:
    """Arrays and description of any value that consists of arrays, plain values and classes."""
    writer = _Writer(classes)
    description = writer.describe(value, name)
    return writer.arrays, description


def from_arrays(
    arrays: Mapping[str, np.ndarray], description: Any, reference: Array | None = None
) -> Fit:
    """The fit of named arrays and their description.

    Arrays of another library come back in the library of ``reference``, or as NumPy arrays.
    """
    fit = from_description(arrays, description, reference)
    if not isinstance(fit, Fit):
        raise ValueError(f"the description is that of a {type(fit).__name__}, not of a fit.")
    return fit


def from_description(
    arrays: Mapping[str, np.ndarray],
    description: Any,
    reference: Array | None = None,
    classes: Mapping[str, type] = FIT_CLASSES,
) -> Any:
    """Any value of named arrays and their description.

    Only classes of the table are constructed, and only from fields that exist and have their type.
    """
    return _Reader(arrays, reference, classes).value(description)


@dataclass
class _Writer:
    """Collects the arrays of the values that it describes."""

    classes: Mapping[str, type]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    names: dict[Any, str] = field(default_factory=dict)  # by the identity of the array
    alive: list[Any] = field(default_factory=list)  # arrays whose memory must not be reused

    def describe(self, value: Any, name: str) -> Any:
        """Description of a value; its arrays are named by the path to it."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, (int, float, np.number)):
            return self._number(value)
        if scipy.sparse.issparse(value):
            parts = [value.data, value.indices, value.indptr]
            return {
                "sparse": [self._array(a, f"{name}.{i}") for i, a in enumerate(parts)],
                "shape": list(value.shape),
            }
        if is_array_api_obj(value):
            return self._array(value, name)
        if isinstance(value, dict):
            return {"dict": {k: self.describe(v, f"{name}.{k}") for k, v in value.items()}}
        for sequence, cls in SEQUENCES.items():
            if isinstance(value, cls):
                return {sequence: [self.describe(v, f"{name}.{i}") for i, v in enumerate(value)]}
        if type(value) in self.classes.values():
            return self._object(value, name)
        text = f"{name} is a {type(value).__name__}, which cannot be stored as arrays"
        raise ValueError(f"{text}; use an activation by name instead of a function.")

    def _object(self, value: Any, name: str) -> dict[str, Any]:
        parts = {
            one.name: self.describe(getattr(value, one.name), f"{name}.{one.name}")
            for one in fields(value)
        }
        return {"class": type(value).__name__, "fields": parts}

    def _array(self, value: Array, name: str) -> dict[str, Any]:
        key = _identity(value)
        if key not in self.names:
            self.names[key] = name
            self.alive.append(value)
            self.arrays[name] = np.asarray(to_numpy(value), order="C")
        return {"array": self.names[key], "foreign": is_foreign(value)}

    @staticmethod
    def _number(value: Any) -> Any:
        value = value.item() if isinstance(value, np.number) else value
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": repr(value)}
        return value


def _identity(value: Array) -> Any:
    """Key of an array: its memory, shape, strides and dtype."""
    if isinstance(value, np.ndarray):
        return value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str
    return id(value)


@dataclass
class _Reader:
    """Constructs values from their description and the arrays."""

    arrays: Mapping[str, np.ndarray]
    reference: Array | None
    classes: Mapping[str, type]
    converted: dict[str, Any] = field(default_factory=dict)

    def value(self, text: Any) -> Any:
        """The value of a description."""
        if not isinstance(text, dict):
            return text
        if "array" in text:
            return self._array(text)
        if "float" in text:
            return float(text["float"])
        if "sparse" in text:
            return self._sparse(text)
        if "dict" in text:
            return {key: self.value(part) for key, part in text["dict"].items()}
        for sequence, cls in SEQUENCES.items():
            if sequence in text:
                return cls(self.value(part) for part in text[sequence])
        if text.get("class") not in self.classes:
            raise ValueError(f"there is no class {text.get('class')!r} in a model file")
        parts = {name: self.value(part) for name, part in text["fields"].items()}
        return construct(self.classes[text["class"]], parts)

    def _sparse(self, text: dict[str, Any]) -> Any:
        parts = tuple(self._array(part) for part in text["sparse"])
        matrix = scipy.sparse.csr_array(parts, shape=tuple(text["shape"]))
        matrix.check_format(full_check=True)  # compiled code trusts the indices
        return matrix

    def _array(self, text: dict[str, Any]) -> Array:
        name = text["array"]
        if name not in self.arrays:
            raise ValueError(f"there is no array {name!r}")
        if name not in self.converted:
            values = self.arrays[name]
            if text["foreign"] and self.reference is not None:
                values = like(values, self.reference)
            self.converted[name] = values
        return self.converted[name]
