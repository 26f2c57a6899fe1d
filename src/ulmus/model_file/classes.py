"""The classes that a model file can name; no other name is resolved."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

import scipy.sparse

from ulmus.core.fit.fit import Fit
from ulmus.core.fit.misfit import Misfit
from ulmus.core.ridge.member_pairs import PairGram
from ulmus.core.variance.quadratic_forms import JackknifeForm, RegeneratedForm, RowForm
from ulmus.model_file.field_types import field_hints
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


#: Classes of a fit. Forms are named, as fields that accept any of them have no narrower hint.
FIT_CLASSES = reachable_dataclasses(Fit, JackknifeForm, PairGram, RegeneratedForm, RowForm)

#: What ``skops.io.load(path, trusted=SKOPS_TRUSTED_TYPES)`` must trust to load a fitted estimator:
#: the classes of ulmus, and SciPy's sparse arrays for fits to them.
SKOPS_TRUSTED_TYPES = tuple(f"{module}.{name}" for name, module in ESTIMATORS.items()) + tuple(
    f"{cls.__module__}.{cls.__qualname__}"
    for cls in (*FIT_CLASSES.values(), *NOISE_CLASSES.values(), Misfit, scipy.sparse.csr_array)
)
