"""Messages as data: the cause, the parameter, its value, and what to do about it.

Errors, warnings and diagnostic findings carry a :class:`Message`. Python, the command line and the
report render it, each with its own names of parameters and only with suggestions that exist there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol


class _Open(Enum):
    ANY = "any"


# The value of a setting that leaves it open, and is not part of the message.
ANY = _Open.ANY


@dataclass(frozen=True)
class Setting:
    """A parameter and its value, as part of a text or a suggestion.

    Parameters
    ----------
    parameter : str
        Name of the parameter in Python.
    value : object
        Its value; ``ANY`` leaves it open.
    phrase : str
        The words around it, with ``{}`` in its place.
    python : str or None
        The whole clause for Python, where it has no such parameter.

    Examples
    --------
    >>> Message(
    ...     "ridge",
    ...     "the ridge is too small",
    ...     suggestions=(Setting("alpha", phrase="use a larger {}"), Setting("alpha", "loo")),
    ... ).render()
    "the ridge is too small; use a larger alpha, or use alpha='loo'."
    """

    parameter: str
    value: Any = ANY
    phrase: str = "use {}"
    python: str | None = None


class Dialect(Protocol):
    """Renders a setting, or returns None where the parameter does not exist."""

    def __call__(self, parameter: str, value: Any = ..., item: str | None = ...) -> str | None:
        """The setting in words."""


def python(parameter: str, value: Any = ANY, item: str | None = None) -> str:
    """A setting as a keyword argument."""
    name = parameter if item is None else f"{parameter}[{item!r}]"
    return name if value is ANY else f"{name}={value!r}"


def named(parameter: str, value: Any = ANY) -> Setting:
    """A setting that is named within a text."""
    return Setting(parameter, value, "{}")


@dataclass(frozen=True)
class Message:
    """What is wrong or was found, and what to do about it."""

    code: str  # short identifier, such as ``"no-residual-dof"``
    # The cause in a clause without its final full stop. Where a parameter is named, the clause is
    # its predicate.
    text: str | tuple[str | Setting, ...]
    parameter: str | None = None  # name of the parameter that caused it, in Python
    value: Any = ANY  # its value
    suggestions: tuple[str | Setting, ...] = ()  # alternatives, each a clause
    topic: str = ""  # the subject under which a report lists it
    # Key of the parameter, if its value is a dictionary: a column's name in ``variables``.
    item: str | None = None
    shows_value: bool = True  # whether the value follows the parameter, as in ``alpha=-1``

    def __str__(self) -> str:
        return self.render()

    def render(self, dialect: Dialect = python) -> str:
        """One sentence with the names of parameters of a dialect."""
        cause, remedy = self.cause(dialect), self.suggestion(dialect)
        return f"{cause}; {remedy}." if remedy else f"{cause}."

    def cause(self, dialect: Dialect = python) -> str:
        """The clause without the suggestions."""
        parts = (self.text,) if isinstance(self.text, str) else self.text
        text = "".join(part if isinstance(part, str) else _clause(part, dialect) for part in parts)
        if self.parameter is None:
            return text
        arguments = self.parameter, self.value if self.shows_value else ANY, self.item
        return f"{dialect(*arguments) or python(*arguments)} {text}"

    def suggestion(self, dialect: Dialect = python) -> str:
        """The suggestions that exist in a dialect, as one clause."""
        return joined(clauses(self.suggestions, dialect))


def invalid(parameter: str, requirement: str, value: Any, *, item: str | None = None) -> Message:
    """A parameter that does not meet a requirement, such as ``must be a number``."""
    text = f"{requirement}, got {value!r}"
    return Message(
        f"invalid-{parameter}", text, parameter, value, item=item, topic="input", shows_value=False
    )


def clauses(suggestions: Sequence[str | Setting], dialect: Dialect = python) -> list[str]:
    """Suggestions with the names of a dialect; settings that it lacks are dropped."""
    return [
        one if isinstance(one, str) else _clause(one, dialect)
        for one in suggestions
        if isinstance(one, str) or dialect(one.parameter, one.value)
    ]


def joined(parts: list[str]) -> str:
    """Alternatives as one clause: ``a, b, or c``."""
    return ", or ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])}, or {parts[-1]}"


def _clause(setting: Setting, dialect: Dialect) -> str:
    """A setting and the words around it, with its Python name where the dialect has none."""
    if dialect is python and setting.python is not None:
        return setting.python
    arguments = setting.parameter, setting.value
    return setting.phrase.format(dialect(*arguments) or python(*arguments))
