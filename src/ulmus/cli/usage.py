"""The group of all commands; its usage errors are one line, in the style of all other errors."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import typer
from typer.core import TyperGroup

from ulmus.cli import INTERRUPTED
from ulmus.cli.console import BAD_INPUT, Console
from ulmus.cli.option_names import option_names

# Names that other programs, or earlier versions, have for an option.
REPLACED = {
    "--change": "--variables",
    "--confidence": "--confidence-level",
    "--data": "the argument TABLE",
    "--ensemble-size": "--n-estimators",
    "--exceed": "--threshold",
    "--feature": "--features",
    "--features": "--variables",
    "--format": "the ending of --output",
    "--group": "--groups",
    "--group-by": "--by",
    "--hidden": "--n-neurons",
    "--hidden-units": "--n-neurons",
    "--jobs": "--n-jobs",
    "--kind": "--display",
    "--level": "--confidence-level",
    "--map": "--input-map auto",
    "--members": "--n-estimators",
    "--model": "the argument MODEL",
    "--na": "--na-values",
    "--neurons": "--n-neurons",
    "--no-map": "--input-map none",
    "--of": "--interval-target",
    "--out": "--output",
    "--quantile": "--quantiles",
    "--se": "std_error, which is always written",
    "--seed": "--random-state",
    "--sep": "--delimiter",
    "--separator": "--delimiter",
    "--stratify": "--by",
    "--threads": "--n-jobs",
    "--variable": "--variables",
    "--variables": "--features",
    "--weight": "--sample-weight",
    "--weights": "--sample-weight",
    "--y": "--target",
}
# What a converter of options says of a value, and what an error says.
REQUIREMENTS = (
    (r"Input should be a valid integer.*", "must be a whole number"),
    (r"Input should be a valid number.*", "must be a number"),
    (r"Input should be greater than or equal to (\S+)", r"must be at least \1"),
    (r"Value error, .* is not one of (.*?)\.?", r"must be one of \1"),
)


class CommandGroup(TyperGroup):
    """All commands."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; the help page without one."""
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        run = partial(super().main, words, prog_name, complete_var, False, **extra)
        if not standalone_mode:
            return run()
        try:
            code = run()
        except typer.Abort:
            code = INTERRUPTED
        except Exception as error:
            # The classes of usage errors differ between versions of typer.
            if not hasattr(error, "format_message"):
                raise
            code = _refused(error, words)
        sys.exit(code if isinstance(code, int) else 0)


def _refused(error: Any, words: list[str]) -> int:
    """Print a usage error, and return the exit code."""
    context = getattr(error, "ctx", None)
    command = None if context is None or context.parent is None else str(context.info_name)
    console = Console(command or "fit", json="--json" in words)
    console.print_error(_sentence(error, command, words))
    return BAD_INPUT


def _sentence(error: Any, command: str | None, words: list[str]) -> str:
    """A usage error in one line."""
    program = "ulmus" if command is None else f"ulmus {command}"
    if getattr(error, "option_name", None) is not None and hasattr(error, "possibilities"):
        return f"{program} has no option {_no_such_option(error.option_name, command)}"
    parameter = getattr(error, "param", None)
    if parameter is not None and hasattr(error, "param_type"):
        return _missing(parameter, program)
    if parameter is not None:
        return f"{_named(parameter)} {_requirement(error.message, _value(parameter, words))}."
    text = " ".join(error.format_message().split()).rstrip(".")
    text = re.sub(r"\. Did you mean", "; did you mean", text).removesuffix("?")
    question = "?" if "did you mean" in text else f"; see {program} --help."
    return f"{text[:1].lower()}{text[1:]}{question}"


def _no_such_option(name: str, command: str | None) -> str:
    """The name of an option that does not exist, and what to use instead."""
    if command is None:
        return f"{name}; see ulmus --help."
    known = [option.name for option in option_names(command).values()]
    replacement = REPLACED.get(name)
    for found in (replacement, REPLACED.get(str(replacement))):
        if found is not None and (found.split()[0] in known or found[0] != "-"):
            return f"{name}; use {found}."
    starting = [one for one in known if one.startswith(name)]
    similar = starting or difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    if len(similar) == 1:
        return f"{name}; did you mean {similar[0]}?"
    key = (replacement or name).split()[0][2:].replace("-", "_")
    elsewhere = next((one for one in ("fit", "predict") if key in option_names(one)), None)
    if elsewhere is not None:
        option = replacement or name
        return f"{name}; {option} is an option of ulmus {elsewhere}."
    return f"{name}; see ulmus {command} --help."


def _missing(parameter: Any, program: str) -> str:
    """A required argument or option that was not given."""
    help_text = str(getattr(parameter, "help", None) or "").rstrip(".")
    shown = _named(parameter)
    short = next((one for one in parameter.opts if re.fullmatch("-[a-z]", one)), None)
    kind = f"{shown} ({short})" if short else shown
    return f"{program} requires {kind}: {help_text[:1].lower()}{help_text[1:]}."


def _named(parameter: Any) -> str:
    """An option by its first long name, an argument by the word of the help page."""
    long = next((name for name in parameter.opts if name.startswith("--")), None)
    return long or str(getattr(parameter, "metavar", None) or parameter.name)


def _value(parameter: Any, words: list[str]) -> str | None:
    """The value of an option as it was typed."""
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in (*parameter.opts, *parameter.secondary_opts):
            return value if equals else next(iter(words[i + 1 :]), None)
    return None


def _requirement(message: str, value: str | None) -> str:
    """What a value must be, and what it is."""
    got = "" if value is None else f", got {value!r}"
    for pattern, requirement in REQUIREMENTS:
        match = re.fullmatch(pattern, message.strip())
        if match is not None:
            return match.expand(requirement) + got
    return f"is refused: {message[:1].lower()}{message[1:].rstrip('.')}{got}"
