"""Progress on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console as RichConsole
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Bar:
    """The stage, the share done, and the seconds elapsed and left."""

    def __init__(self, console: RichConsole) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(elapsed_when_finished=False),
        )
        self._display = Progress(*columns, console=console, transient=True)
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
