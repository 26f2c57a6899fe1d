"""Errors about noise covariances and locations, as messages."""

from __future__ import annotations

from typing import Any

from ulmus.exceptions import InputError
from ulmus.messages import ANY, Message, Setting


def covariance_error(
    code: str,
    text: str,
    *suggestions: str | Setting,
    parameter: str | None = None,
    value: Any = ANY,
) -> InputError:
    """An error under the topic of the noise covariance."""
    return InputError(Message(code, text, parameter, value, suggestions, "noise covariance"))
