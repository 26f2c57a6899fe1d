"""The options of the commands by their names in Python."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import typer


class CommandOption(NamedTuple):
    """An option of a command, and whether it takes no value."""

    name: str
    is_flag: bool

    def text(self, value: Any, item: str | None) -> str:
        """The option as it is typed, with a value and the column that it is for."""
        values = value if isinstance(value, (list, tuple)) else [value]
        is_plain = all(one is None or isinstance(one, (str, int, float)) for one in values)
        shown = "" if self.is_flag or not is_plain else ",".join(map(_typed, values))
        if item is not None:
            shown = f"{item}={shown}" if shown else item
        return f"{self.name} {shown}".rstrip()


@cache
def option_names(command: str) -> dict[str, CommandOption]:
    """Options of a command by their Python names, from the command's own parameters."""
    from ulmus.cli.app import app

    group: Any = typer.main.get_command(app)
    return {
        name[2:].replace("-", "_"): CommandOption(name, bool(getattr(parameter, "is_flag", False)))
        for parameter in group.commands[command].params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    }


def _typed(value: Any) -> str:
    """A value as it is typed on the command line."""
    if value is None:
        return "none"
    return f"{value:.15g}" if isinstance(value, float) else str(value)
