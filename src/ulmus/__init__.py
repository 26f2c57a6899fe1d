"""Regression by ensembles of Extreme Learning Machines with error bars in closed form.

Public names are imported with their first use (PEP 562): the command ``ulmus`` starts with this
module, and handles an interrupt while NumPy, SciPy and scikit-learn are loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ulmus.version import __version__

if TYPE_CHECKING:
    from ulmus.estimators import ELMEnsembleRegressor, ELMRegressor
    from ulmus.model_file import load
    from ulmus.pipelines import inference

__all__ = ["ELMEnsembleRegressor", "ELMRegressor", "__version__", "inference", "load"]

_MODULES = {
    "ELMEnsembleRegressor": "ulmus.estimators",
    "ELMRegressor": "ulmus.estimators",
    "inference": "ulmus.pipelines",
    "load": "ulmus.model_file",
}
# Modules that need no optional package; the others are imported explicitly.
_SUBMODULES = (
    "datasets",
    "diagnostics",
    "effects",
    "estimators",
    "exceptions",
    "intervals",
    "messages",
    "metrics",
    "model_file",
    "noise",
    "pipelines",
    "tables",
)


def __getattr__(name: str) -> Any:
    """A public name or module, imported with its first use."""
    if name in _SUBMODULES:
        return import_module(f"ulmus.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'ulmus' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names and modules."""
    return sorted({*globals(), *__all__, *_SUBMODULES})
