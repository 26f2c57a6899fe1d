"""Regression by ensembles of Extreme Learning Machines with error bars in closed form.

Public names are imported with their first use (PEP 562): the command ``ulmus`` starts with this
module, and handles an interrupt while NumPy, SciPy and scikit-learn are loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulmus.lazy import lazy_package
from ulmus.version import __version__

if TYPE_CHECKING:
    from ulmus.estimators import ELMEnsembleRegressor, ELMRegressor
    from ulmus.model_file import load
    from ulmus.pipelines import inference

__all__ = ["ELMEnsembleRegressor", "ELMRegressor", "__version__", "inference", "load"]

_NAMES = {
    "ELMEnsembleRegressor": "estimators",
    "ELMRegressor": "estimators",
    "inference": "pipelines",
    "load": "model_file",
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


__getattr__, __dir__ = lazy_package(__name__, _NAMES, _SUBMODULES)
