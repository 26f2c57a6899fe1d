"""Messages as data: the cause, the parameter, its value, and what to do about it.

Errors, warnings and diagnostic findings carry a :class:`Message`. Python, the command line and the
report render it, each with its own names of parameters and only with suggestions that exist there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# A value that is not part of the message.
ANY = object()


@dataclass(frozen=True)
class Setting:
    """A parameter and its value, as part of a suggestion.

    Parameters
    ----------
    parameter : str
        Name of the parameter in Python.
    value : object
        Its value; ``ANY`` leaves it open.
    phrase : str
        The words around it, with ``{}`` in its place.

    Examples
    --------
    >>> Message("ridge", "the ridge is too small", suggestions=(
    ...     Setting("alpha", phrase="use a larger {}"), Setting("alpha", "loo"))).render()
    "the ridge is too small; use a larger alpha, or use alpha='loo'."
    """

    parameter: str
    value: Any = ANY
    phrase: str = "use {}"


# Renders a setting, or returns None where the parameter does not exist.
Dialect = Callable[[str, Any], str | None]


def python(parameter: str, value: Any) -> str:
    """A setting as a keyword argument."""
    return parameter if value is ANY else f"{parameter}={value!r}"


@dataclass(frozen=True)
class Message:
    """What is wrong or was found, and what to do about it.

    Parameters
    ----------
    code : str
        Short identifier, such as ``"no-residual-dof"``.
    text : str
        The cause in a clause without its final full stop. Where a parameter is named, the clause is
        its predicate.
    parameter : str or None
        Name of the parameter that caused it, in Python.
    value : object
        Its value.
    suggestions : tuple of str and Setting
        Alternatives, each a clause.
    topic : str
        The subject under which a report lists it.
    """

    code: str
    text: str
    parameter: str | None = None
    value: Any = ANY
    suggestions: tuple[str | Setting, ...] = ()
    topic: str = ""

    def render(self, dialect: Dialect = python) -> str:
        """One sentence with the names of parameters of a dialect."""
        subject = "" if self.parameter is None else dialect(self.parameter, self.value)
        if subject is None:  # the parameter has no name there: its Python name is the next best
            subject = python(str(self.parameter), self.value)
        cause = f"{subject} {self.text}" if subject else self.text
        remedy = self.suggestion(dialect)
        return f"{cause}; {remedy}." if remedy else f"{cause}."

    def suggestion(self, dialect: Dialect = python) -> str:
        """The suggestions that exist in a dialect, as one clause."""
        return joined(clauses(self.suggestions, dialect))


def clauses(suggestions: tuple[str | Setting, ...], dialect: Dialect = python) -> list[str]:
    """Suggestions with the names of a dialect; settings that it lacks are dropped."""
    found = []
    for one in suggestions:
        if isinstance(one, str):
            found.append(one)
            continue
        name = dialect(one.parameter, one.value)
        if name is not None:
            found.append(one.phrase.format(name))
    return found


def joined(parts: list[str]) -> str:
    """Alternatives as one clause: ``a, b, or c``."""
    return ", or ".join(parts) if len(parts) < 3 else ", ".join(parts[:-1]) + f", or {parts[-1]}"
