"""What the commands say, where, and how they end: results, notes, progress and failures."""

from __future__ import annotations

import json as json_text
import math
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import typer
from rich.console import Console as RichConsole
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

FAILURE, BAD_INPUT, INTERRUPTED = 1, 2, 130
WIDE = 250
# Python's words for what is an option on the command line.
OPTIONS = (
    (r"missing='(\w+)'", r"--missing \1"),
    (r"a mark of missing values", "a mark of missing values (--na of ulmus fit)"),
    (r"\bcategorical names", "--categorical names"),
    (r"\bconfidence_level\b", "--level"),
    (r"\bquantiles must", "--quantiles must"),
    (r"\bthreshold must be a number or a list of numbers", "--exceed takes numbers"),
    (r"\bn_estimators=(\d+)", r"--members \1"),
    (r"\bn_neurons\b", "--neurons"),
    (r"\binput_map=None", "--no-map"),
    (r"\brandom_state\b", "--seed"),
    (r"\bsample_weight\b", "--weight"),
    (r"\bvariables asks for column", "there is no column"),
    (r"\bvariables\['(.+?)'\]", r"--change \1"),
    (
        r"print\(model\.check\(\)\) has all checks; .* is",
        "ulmus report has all checks; new rows are",
    ),
    (r"print\(model\.check\(X_new, y_new\)\)", "ulmus report with new rows"),
    (r"model\.check\(X, y\)", "ulmus report"),
    (r"model\.predict_interval\(X\) covers", "ulmus predict has intervals for"),
    (r" \(compress\(\) drops them, streams never have them\)", ""),
    (r"noise=AR1\(\) of ulmus\.noise", "--time (or --noise ar1)"),
    (r"AR1\(\) or NeweyWest\(\) along", "--noise ar1 or newey-west along"),
    (r"Clustered\(\) (for|in) groups", r"--groups \1 groups"),
    (r"Exponential\(\) in space", "--coords in space"),
    (r"use AR1\(\), NeweyWest\(\) or Clustered\(\), or fit all rows in memory", "use --in-memory"),
    (r"noise='(\w+)'", r"--noise \1"),
    (r"\bpath='", "'"),
)
# Errors of the system that are about what a user named.
NAMED_BY_USER = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


@dataclass
class Console:
    """A conversation with a user: results on standard output, all else on standard error.

    Parameters
    ----------
    quiet : bool
        Whether to say nothing but results and failures.
    json : bool
        Whether results are JSON.
    """

    quiet: bool = False
    json: bool = False
    notes: list[str] = field(default_factory=list, init=False)
    warned: list[warnings.WarningMessage] = field(default_factory=list, init=False)

    def note(self, text: str) -> None:
        """Say something that is worth knowing, once."""
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.quiet:
            self._aside().print(text, markup=False, highlight=False, soft_wrap=True)

    def result(self, text: Any, facts: dict[str, Any]) -> None:
        """The result, for people or as JSON with all notes."""
        self._pass_on_warnings()
        if self.json and sys.stdout is not None:
            sys.stdout.write(json_text.dumps(_plain({**facts, "notes": self.notes})) + "\n")
        elif not self.quiet and sys.stdout is not None:
            # Tables keep all their columns where they go to a file or another program.
            console = RichConsole(width=None if sys.stdout.isatty() else WIDE)
            soft = isinstance(text, str)
            console.print(text, markup=False, highlight=False, soft_wrap=soft)

    @contextmanager
    def working(self, title: str) -> Iterator[None]:
        """A sign of life while something takes long; only on a terminal."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with self._progress(*columns) as progress:
            progress.add_task(title, total=None)
            yield

    @contextmanager
    def counting(self, title: str, total: int | None) -> Iterator[Any]:
        """A bar that grows by what its function is given; only on a terminal."""
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with self._progress(*columns) as progress:
            task = progress.add_task(title, total=total)
            yield lambda steps: progress.advance(task, steps)

    def _progress(self, *columns: Any) -> Progress:
        console = self._aside()
        hidden = self.quiet or self.json or not console.is_terminal
        return Progress(*columns, console=console, transient=True, disable=hidden)

    @staticmethod
    def _aside() -> RichConsole:
        return RichConsole(stderr=True)

    @contextmanager
    def handle_errors(self) -> Iterator[None]:
        """Turn warnings into notes, and failures into one line and an exit code."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.warned = caught
            try:
                yield
            except (typer.Exit, typer.Abort):
                raise
            except KeyboardInterrupt:
                self._end("interrupted; nothing was written.", INTERRUPTED)
            except MemoryError:
                self._end(
                    "not enough memory; use --stream, fewer --neurons, or a smaller table.", FAILURE
                )
            except (ValueError, *NAMED_BY_USER) as error:
                self._end(_sentence(error), BAD_INPUT)
            except (OSError, ImportError) as error:
                self._end(_sentence(error), FAILURE)
            except Exception as error:
                self._end(f"unexpected {type(error).__name__}: {_sentence(error)}", FAILURE)

    def _pass_on_warnings(self) -> None:
        """Warnings of ulmus as notes, one of each kind."""
        kinds = {w.category: str(w.message) for w in reversed(self.warned)}
        for kind, text in kinds.items():
            if kind.__module__.startswith("ulmus."):
                self.note(f"Note: {in_options(text)}")

    def _end(self, message: str, code: int) -> None:
        if os.environ.get("ULMUS_DEBUG"):
            raise
        text = f"ulmus: {message}"
        if self.json and sys.stdout is not None:
            sys.stdout.write(json_text.dumps({"error": message, "exit_code": code}) + "\n")
        self._aside().print(text, markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(code)


def counted_rows(n: int) -> str:
    """So many rows, in words."""
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def _sentence(error: BaseException) -> str:
    """An error in one line, with the names of options."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or str(error)).lower()}."
    if isinstance(error, OSError) and error.errno is not None:
        return f"{os.strerror(error.errno).lower()}."
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return in_options(" ".join(lines)) or type(error).__name__


def in_options(text: str) -> str:
    """A text with the names of options and commands, where it has those of Python."""
    for pattern, option in OPTIONS:
        text = re.sub(pattern, option, text)
    return text


def _plain(value: Any) -> Any:
    """A value as JSON has it: lists for arrays, and null for what is no number."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)
