"""Model files: saving a fitted estimator and loading it, without running anything of the file.

``saving`` and ``loading`` are the two functions; ``container`` is the file, in the safetensors
format; ``serialisation`` converts a fit to named arrays and a description, and back, with the
classes of ``classes`` and the field types of ``field_types``; ``validation`` refuses a fit whose
arrays contradict each other. What is written or checked in a file belongs here; estimators are
found by name, so that they can import this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulmus.lazy import lazy_package

if TYPE_CHECKING:
    from ulmus.model_file.loading import load, model_document
    from ulmus.model_file.saving import save
    from ulmus.model_file.serialisation import SKOPS_TRUSTED_TYPES

__all__ = ["SKOPS_TRUSTED_TYPES", "load", "model_document", "save"]

__getattr__, __dir__ = lazy_package(
    __name__,
    {
        "SKOPS_TRUSTED_TYPES": "serialisation",
        "load": "loading",
        "model_document": "loading",
        "save": "saving",
    },
)
