"""Output of the commands: results, notes, progress, and errors in the names of options."""

from __future__ import annotations

import json as json_text
import math
import os
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import typer
from rich.console import Console as RichConsole

from ulmus.cli import INTERRUPTED, INTERRUPTED_TEXT
from ulmus.cli.option_names import option_names
from ulmus.cli.progress_bar import Bar
from ulmus.exceptions import CarriesMessage, UlmusWarning
from ulmus.messages import ANY, Message, Setting
from ulmus.progress import Lines, reported_to

FAILURE, BAD_INPUT = 1, 2
# Exit code where the reader of a pipe has stopped reading: that of a program that SIGPIPE ends.
CLOSED_PIPE = 141
# Seconds that a stage must last to be worth a line where there is no terminal.
PATIENCE = 2.0
# Warnings with the same code that are printed; the others are counted.
MOST_ALIKE = 3
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
    # What messages call a temporary file, by its path.
    titles: dict[str, str] = field(default_factory=dict, init=False)
    # Temporary files, which are removed at the end.
    resources: ExitStack = field(default_factory=ExitStack, init=False)

    def note(self, text: str) -> None:
        """Print a note, once."""
        text = self._titled(text)
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.quiet:
            self.error(text)

    def error(self, text: str) -> None:
        """Print a line on standard error, above any display of progress."""
        self._stderr.print(text, markup=False, highlight=False, soft_wrap=True)

    def result(self, text: str, facts: dict[str, Any], findings: Collection[str] = ()) -> None:
        """Print the result: a text, or facts and notes as JSON.

        Warnings that are among the findings of the result, by their codes, are no notes.
        """
        self.note_warnings(findings)
        if self.json:
            self._write(json_text.dumps(_json_value({**facts, "notes": self.notes})))
        elif text and not self.quiet:
            self._write(self._titled(text))

    def option(self, parameter: str, value: Any = ANY, item: str | None = None) -> str | None:
        """A Python parameter as an option of this command, else of fit or predict; a dialect."""
        if parameter == "path":
            return str(value)
        key = RENAMED.get(parameter, parameter)
        for command in dict.fromkeys((self.command, "fit", "predict")):
            option = option_names(command).get(key)
            if option is not None:
                where = "" if command == self.command else f" (ulmus {command})"
                return option.text(value, item) + where
        return None

    def print_error(self, message: str, code: int = BAD_INPUT) -> None:
        """Print an error, also as JSON if the result would be."""
        message = self._titled(message)
        if self.json:
            self._write(json_text.dumps({"error": message, "exit_code": code}))
        self.error(f"ulmus: {message}")

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
                with self.resources:
                    yield
            except (typer.Exit, typer.Abort):
                raise
            except BrokenPipeError:
                _discard_output()
                raise typer.Exit(CLOSED_PIPE) from None
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

    def note_warnings(self, findings: Collection[str] = ()) -> None:
        """Warnings of ulmus as notes, without findings; those with the same code are limited."""
        texts: dict[str, dict[str, None]] = {}
        for caught in self.caught:
            if isinstance(caught.message, UlmusWarning):
                message: Message = caught.message.message
                if message.code not in findings:
                    texts.setdefault(message.code, {})[message.render(self.option)] = None
        for alike in map(list, texts.values()):
            for text in alike[:MOST_ALIKE]:
                self.note(f"Note: {text}")
            if len(alike) > MOST_ALIKE:
                self.note(f"Note: {len(alike) - MOST_ALIKE} more warnings like this one.")
        self.caught.clear()

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
        self.print_error(message, code)
        raise typer.Exit(code)

    def _titled(self, text: str) -> str:
        """A text with the titles of temporary files for their paths."""
        for path, title in self.titles.items():
            text = text.replace(path, title)
        return text

    def _write(self, text: str) -> None:
        """Write a line on standard output, if it is open."""
        if sys.stdout is not None:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()


def _discard_output() -> None:
    """Let Python's own flush at the end of the process succeed where nobody reads."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
