"""Output of the commands: results, notes, progress, and errors in the names of options."""

from __future__ import annotations

import json as json_text
import math
import os
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import typer
from rich.console import Console as RichConsole
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress

from ulmus.cli import INTERRUPTED, INTERRUPTED_TEXT
from ulmus.exceptions import CarriesMessage, UlmusWarning
from ulmus.messages import ANY, Message, Setting
from ulmus.progress import Lines, reported_to

FAILURE, BAD_INPUT = 1, 2
# Seconds that a stage must last to be worth a line where there is no terminal.
PATIENCE = 2.0
# Options whose names differ from the Python parameter.
RENAMED = {"target": "interval_target"}
# System errors about a path that the user named.
PATH_ERRORS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


@dataclass
class Console:
    """Prints results on standard output, and notes, progress and errors on standard error."""

    command: str  # the command, whose options messages name
    quiet: bool = False  # whether to print errors only
    json: bool = False  # whether the result is JSON
    notes: list[str] = field(default_factory=list, init=False)
    caught: list[warnings.WarningMessage] = field(default_factory=list, init=False)

    def note(self, text: str) -> None:
        """Print a note, once."""
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.quiet:
            self.error(text)

    def error(self, text: str) -> None:
        """Print a line on standard error, above any display of progress."""
        self._stderr.print(text, markup=False, highlight=False, soft_wrap=True)

    def result(self, text: Any, facts: dict[str, Any], findings: Collection[str] = ()) -> None:
        """Print the result: a text or table, or facts and notes as JSON.

        Warnings that are among the findings of the result, by their codes, are no notes.
        """
        self._note_warnings(findings)
        if self.json and sys.stdout is not None:
            sys.stdout.write(json_text.dumps(_json_value({**facts, "notes": self.notes})) + "\n")
        elif not self.quiet and sys.stdout is not None:
            # A file or another program receives tables of up to 250 characters a line.
            console = RichConsole(width=None if sys.stdout.isatty() else 250)
            console.print(text, markup=False, highlight=False, soft_wrap=isinstance(text, str))

    def option(self, parameter: str, value: Any = ANY, item: str | None = None) -> str | None:
        """A Python parameter as an option of this command, else of ``ulmus fit``; a dialect."""
        if parameter == "path":
            return str(value)
        key = RENAMED.get(parameter, parameter)
        for command in dict.fromkeys((self.command, "fit")):
            option = option_names(command).get(key)
            if option is not None:
                where = "" if command == self.command else f" in ulmus {command}"
                return option.text(value, item) + where
        return None

    @contextmanager
    def working(self, title: str) -> Iterator[None]:
        """Show a title and the stages that the library reports: a bar on a terminal, else lines."""
        if self.quiet or self.json or sys.stderr is None:
            yield
        elif self._stderr.is_terminal:
            with Bar(self._stderr) as bar, reported_to(bar):
                bar.report(title, None)
                yield
        else:
            with reported_to(self._lines):
                self._lines.report(title, None)
                try:
                    yield
                finally:
                    self._lines.close()

    @cached_property
    def _stderr(self) -> RichConsole:
        return RichConsole(stderr=True)

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.error, patience=PATIENCE)

    @contextmanager
    def handle_errors(self) -> Iterator[None]:
        """Turn warnings into notes, and errors into one line and an exit code."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.caught = caught
            try:
                yield
            except (typer.Exit, typer.Abort):
                raise
            except KeyboardInterrupt:
                self._exit(INTERRUPTED_TEXT, INTERRUPTED)
            except MemoryError:
                self._exit(self._out_of_memory(), FAILURE)
            except (ValueError, *PATH_ERRORS) as error:
                self._exit(self._sentence(error), BAD_INPUT)
            except (OSError, ImportError) as error:
                self._exit(self._sentence(error), FAILURE)
            except Exception as error:
                self._exit(f"unexpected {type(error).__name__}: {self._sentence(error)}", FAILURE)

    def _note_warnings(self, findings: Collection[str]) -> None:
        """Warnings of ulmus as notes, the first of each code, without findings."""
        messages: dict[str, Message] = {}
        for caught in self.caught:
            if isinstance(caught.message, UlmusWarning):
                messages.setdefault(caught.message.message.code, caught.message.message)
        for code, message in messages.items():
            if code not in findings:
                self.note(f"Note: {message.render(self.option)}")

    def _out_of_memory(self) -> str:
        smaller = Setting("stream"), Setting("n_neurons", phrase="fewer {}"), "a smaller table"
        message = Message("out-of-memory", "not enough memory", suggestions=smaller)
        return message.render(self.option)

    def _sentence(self, error: BaseException) -> str:
        """An error in one line, with the names of options."""
        if isinstance(error, CarriesMessage):
            return error.message.render(self.option)
        if isinstance(error, OSError) and error.filename is not None:
            return f"{error.filename}: {(error.strerror or str(error)).lower()}."
        if isinstance(error, OSError) and error.errno is not None:
            return f"{os.strerror(error.errno).lower()}."
        return " ".join(str(error).split()) or type(error).__name__

    def _exit(self, message: str, code: int) -> None:
        if os.environ.get("ULMUS_DEBUG"):
            raise
        if self.json and sys.stdout is not None:
            sys.stdout.write(json_text.dumps({"error": message, "exit_code": code}) + "\n")
        self.error(f"ulmus: {message}")
        raise typer.Exit(code)


class Bar:
    """Progress on a terminal: the stage, the share done, and the seconds elapsed and left."""

    def __init__(self, console: RichConsole) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(elapsed_when_finished=False),
        )
        self._display = RichProgress(*columns, console=console, transient=True)
        self._stage = ""

    def __enter__(self) -> Bar:
        self._display.start()
        self._task = self._display.add_task("", total=None)
        return self

    def __exit__(self, *_: Any) -> None:
        self._display.stop()

    def report(self, stage: str, share: float | None) -> None:
        """Show a stage, and the share that is done if it is known."""
        if stage != self._stage:
            self._display.remove_task(self._task)
            self._stage, self._task = stage, self._display.add_task(stage, total=None)
        if share is not None:
            self._display.update(self._task, total=1.0, completed=share)

    def detail(self, text: str) -> None:
        """Details are not shown."""


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


def counted_rows(n: int) -> str:
    """A number of rows in words."""
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def _json_value(value: Any) -> Any:
    """A value as JSON has it: lists for arrays, and null for NaN and infinity."""
    if isinstance(value, dict):
        return {str(key): _json_value(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(inner) for inner in value]
    if hasattr(value, "tolist"):
        return _json_value(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)
