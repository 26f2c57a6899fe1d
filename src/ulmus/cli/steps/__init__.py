"""The work of the commands, in modules that are imported with their first use.

``files`` opens tables and checks outputs; ``roles`` and ``columns`` are the columns of a table that
a fit and a fitted model use. These modules read files with pyarrow, so that a wrong file or column
is refused before scikit-learn is loaded, and ``streams`` are standard input and output as tables.
``locations`` are those of correlated errors, ``training`` fits, ``models`` loads a model,
``model_info`` describes its file, ``predictions``, ``effects``, ``diagnostics`` and ``figures``
compute from it, ``printed`` aligns their tables, and ``pages`` and ``graphs`` write it for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ulmus.cli import exit_on_interrupt
from ulmus.lazy import lazy_package

if TYPE_CHECKING:
    from ulmus.cli.steps import (
        columns,
        diagnostics,
        effects,
        examples,
        figures,
        files,
        graphs,
        locations,
        model_info,
        models,
        pages,
        predictions,
        printed,
        roles,
        streams,
        training,
    )

__all__ = [
    "columns",
    "diagnostics",
    "effects",
    "examples",
    "figures",
    "files",
    "graphs",
    "locations",
    "model_info",
    "models",
    "pages",
    "predictions",
    "printed",
    "roles",
    "streams",
    "training",
]

_attribute, __dir__ = lazy_package(__name__, {}, __all__)


def __getattr__(name: str) -> Any:
    """A module, imported with its first use."""
    with exit_on_interrupt():
        return _attribute(name)
