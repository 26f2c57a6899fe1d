"""Errors and warnings of ulmus, and the one way to raise a warning.

Each warning can be silenced or turned into an error by its class.
"""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import FrameType


class NeedsTwoPassesError(ValueError, AttributeError):
    """An estimate that sees rows twice was asked of a method that sees them once.

    It is an AttributeError too, so that ``hasattr`` tells whether the method can be used.
    """


class ModelFileError(ValueError):
    """A file is no model that this ulmus can load; the message says why in one sentence."""


class ExtrapolationWarning(UserWarning):
    """Points lie where the training inputs say little."""


class DegenerateFitWarning(UserWarning):
    """The fit is usable but some of its error bars rest on very little."""


class NegativeVarianceWarning(UserWarning):
    """A variance estimate fell below zero and was replaced by its positive-part form."""


class BiasWarning(UserWarning):
    """A prediction is far from an undersmoothed fit of the same data."""


def _folders() -> tuple[str, ...]:
    """Folders whose code only passes calls on: this package, and scikit-learn's Pipelines."""
    specs = [find_spec(name) for name in ("sklearn", "joblib")]
    others = [str(Path(spec.origin).parent) for spec in specs if spec and spec.origin]
    return (str(Path(__file__).parent), *others)


FOLDERS = _folders()


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that led here, however deep the call is."""
    if sys.version_info >= (3, 12):
        warnings.warn(message, category, skip_file_prefixes=FOLDERS)
        return
    level, frame = 1, sys._getframe(0)
    above: FrameType | None = frame
    while above is not None and above.f_code.co_filename.startswith(FOLDERS):
        level, above = level + 1, above.f_back
    warnings.warn(message, category, stacklevel=level if above is not None else 2)
