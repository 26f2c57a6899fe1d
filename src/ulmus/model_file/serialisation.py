"""A fit as named arrays and a small description, and back: what a model file holds.

Every class that a fit is made of stands in one table. Its fields are arrays, which get a name by
the way that leads to them, or plain values, which go into the description. An array that is used
in several places is listed once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import is_array_api_obj

from ulmus.core.arrays.backend import Array, is_foreign, like, to_numpy
from ulmus.core.data.feature_scaling import FeatureScale
from ulmus.core.data.source import RowBlocks
from ulmus.core.data.target_scaling import OutputUnits
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.ensemble.regression import Start
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.layer_spec import InputMap
from ulmus.core.fit.refits import Fold
from ulmus.core.fit.residual_distribution import ResidualShape
from ulmus.core.fit.training_data import Stream, TrainingRows
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.layer.inputs import Inputs, Levels, Scores
from ulmus.core.noise.constant import NoiseVariance
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.hac import HACEstimate, Robust
from ulmus.core.noise_covariance.kernels import Kernel
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.structure import Family, Term
from ulmus.core.noise_model.model import NoiseVarianceModel
from ulmus.core.ridge.grams import PairGram
from ulmus.core.ridge.moments import Moments
from ulmus.core.ridge.preconditioner import Whitening
from ulmus.core.ridge.smoother import Smoother
from ulmus.core.variance.quadratic_forms import JackknifeForm, PairForms, RegeneratedForm, RowForm
from ulmus.core.variance.undersmoothing import UndersmoothedNetworks
from ulmus.model_file.field_types import made

CLASSES = {
    cls.__name__: cls
    for cls in (
        CovarianceEstimate,
        Ensemble,
        Family,
        FeatureScale,
        Fit,
        Fold,
        HiddenLayer,
        InputMap,
        Inputs,
        JackknifeForm,
        Kernel,
        Levels,
        Moments,
        NoiseVarianceModel,
        NoiseVariance,
        OutputUnits,
        PairForms,
        PairGram,
        Locations,
        RegeneratedForm,
        Regression,
        ResidualShape,
        Robust,
        HACEstimate,
        RowBlocks,
        RowForm,
        Scores,
        Smoother,
        Start,
        Stream,
        Term,
        TrainingRows,
        Whitening,
        UndersmoothedNetworks,
    )
}
SEQUENCES = {"list": list, "tuple": tuple}


def listed(fit: Fit) -> tuple[dict[str, np.ndarray], Any]:
    """All arrays of a fit by name, as NumPy arrays, and a description that JSON can hold."""
    return described(fit.settled(), "fit")


def described(
    value: Any, name: str, classes: Mapping[str, type] = CLASSES
) -> tuple[dict[str, np.ndarray], Any]:
    """The same of any value that is made of arrays, plain values and classes of the table."""
    writer = _Writer(classes)
    description = writer.described(value, name)
    return writer.arrays, description


def restored(
    arrays: Mapping[str, np.ndarray], description: Any, reference: Array | None = None
) -> Fit:
    """The fit of named arrays and their description.

    Arrays that were of another library come back as those of ``reference``, or of NumPy.
    """
    fit = restored_value(arrays, description, reference)
    if not isinstance(fit, Fit):
        raise ValueError(f"the description is that of a {type(fit).__name__}, not of a fit.")
    return fit


def restored_value(
    arrays: Mapping[str, np.ndarray],
    description: Any,
    reference: Array | None = None,
    classes: Mapping[str, type] = CLASSES,
) -> Any:
    """Any value of named arrays and their description.

    Nothing is trusted: classes must stand in the table, and fields must exist and be of their kind.
    """
    return _Reader(arrays, reference, classes).value(description)


class _Writer:
    """Collects arrays while it describes values."""

    def __init__(self, classes: Mapping[str, type]) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._classes = classes
        self._names: dict[Any, str] = {}
        self._seen: list[Any] = []

    def described(self, value: Any, name: str) -> Any:
        """A description of a value; its arrays are named after the way to it."""
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
            return {"dict": {k: self.described(v, f"{name}.{k}") for k, v in value.items()}}
        for kind, cls in SEQUENCES.items():
            if isinstance(value, cls):
                return {kind: [self.described(v, f"{name}.{i}") for i, v in enumerate(value)]}
        if type(value) in self._classes.values():
            return self._object(value, name)
        raise ValueError(
            f"{name} is a {type(value).__name__}, which cannot be stored as arrays; use an "
            "activation by name instead of a function."
        )

    def _object(self, value: Any, name: str) -> dict[str, Any]:
        fields = {
            field.name: self.described(getattr(value, field.name), f"{name}.{field.name}")
            for field in dataclasses.fields(value)
        }
        return {"class": type(value).__name__, "fields": fields}

    def _array(self, value: Array, name: str) -> dict[str, Any]:
        key = _identity(value)
        if key not in self._names:
            self._names[key] = name
            self._seen.append(value)  # memory that is in use is not given to another array
            self.arrays[name] = np.ascontiguousarray(to_numpy(value))
        return {"array": self._names[key], "foreign": is_foreign(value)}

    @staticmethod
    def _number(value: Any) -> Any:
        value = value.item() if isinstance(value, np.number) else value
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": repr(value)}
        return value


def _identity(value: Array) -> Any:
    """What tells an array from others: its place in memory and how it is read there."""
    if isinstance(value, np.ndarray):
        return value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str
    return id(value)


class _Reader:
    """Makes values from their description and the arrays."""

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        reference: Array | None,
        classes: Mapping[str, type],
    ) -> None:
        self._arrays = arrays
        self._reference = reference
        self._classes = classes
        self._made: dict[str, Any] = {}

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
        for kind, cls in SEQUENCES.items():
            if kind in text:
                return cls(self.value(part) for part in text[kind])
        if text.get("class") not in self._classes:
            raise ValueError(f"there is no class {text.get('class')!r} in a model file")
        fields = {name: self.value(part) for name, part in text["fields"].items()}
        return made(self._classes[text["class"]], fields)

    def _sparse(self, text: dict[str, Any]) -> Any:
        parts = tuple(self._array(part) for part in text["sparse"])
        matrix = scipy.sparse.csr_array(parts, shape=tuple(text["shape"]))
        matrix.check_format(full_check=True)  # compiled code trusts the indices
        return matrix

    def _array(self, text: dict[str, Any]) -> Array:
        name = text["array"]
        if name not in self._arrays:
            raise ValueError(f"there is no array {name!r}")
        if name not in self._made:
            values = self._arrays[name]
            if text["foreign"] and self._reference is not None:
                values = like(values, self._reference)
            self._made[name] = values
        return self._made[name]
