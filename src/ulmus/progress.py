"""Progress of long computations: stages in words, and the share of each that is done.

The library names its stages, and a caller decides what receives them; by default nothing does.
Results do not depend on it.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Progress(Protocol):
    """Receives the progress of a computation."""

    def report(self, stage: str, share: float | None) -> None:
        """A share of a stage is done, between 0 and 1; None where it is not known."""

    def detail(self, text: str) -> None:
        """A result of a step within a stage."""


class _Silent:
    """Discards all progress."""

    def report(self, stage: str, share: float | None) -> None:
        pass

    def detail(self, text: str) -> None:
        pass


class _Receiver(NamedTuple):
    """What receives the progress of the present thread or task, and whether a stage has begun."""

    progress: Progress
    in_stage: bool


_NOBODY = _Receiver(_Silent(), in_stage=False)
_RECEIVER: ContextVar[_Receiver] = ContextVar("receiver", default=_NOBODY)


@contextmanager
def reported_to(progress: Progress | None) -> Iterator[None]:
    """Report the stages of the present thread or task, unless a caller receives them already."""
    if progress is None or _RECEIVER.get() is not _NOBODY:
        yield
        return
    token = _RECEIVER.set(_Receiver(progress, in_stage=False))
    try:
        yield
    finally:
        _RECEIVER.reset(token)


@contextmanager
def stage(name: str) -> Iterator[Callable[[float], None]]:
    """A stage, as a context or a decorator; yields a function that reports the share done.

    Stages within it are parts of it, and are not reported. The function may be called from other
    threads.
    """
    progress, in_stage = _RECEIVER.get()
    if in_stage:
        yield lambda share: None
        return
    token = _RECEIVER.set(_Receiver(progress, True))
    try:
        progress.report(name, None)
        yield lambda share: progress.report(name, min(share, 1.0))
    finally:
        _RECEIVER.reset(token)


def counted(
    task: Callable[[Item], Result], n_tasks: int, done: Callable[[float], None]
) -> Callable[[Item], Result]:
    """A task that reports which share of all tasks is done, on any number of threads."""
    numbers = itertools.count(1)

    def counting(item: Item) -> Result:
        result = task(item)
        done(next(numbers) / n_tasks)
        return result

    return counting


def detail(text: str) -> None:
    """Report a result of a step within the present stage."""
    _RECEIVER.get().progress.detail(text)


@dataclass
class Lines:
    """Writes a line for each stage, and others while it lasts; each with the time since the start.

    With ``patience``, only stages that last so many seconds are written, from another thread.
    """

    write: Callable[[str], None]
    details: bool = False  # whether details are written
    patience: float = 0.0  # seconds
    interval: float = 10.0  # seconds between lines of the same stage
    clock: Callable[[], float] = time.monotonic
    _start: float = field(init=False)
    _stage: str = field(init=False, default="")
    _stage_start: float = field(init=False, default=0.0)
    _written: float = field(init=False, default=0.0)
    _timer: threading.Timer | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._start = self.clock()

    def report(self, stage: str, share: float | None) -> None:
        """Write the name of a new stage, and the share that is done of one that takes long."""
        now = self.clock() - self._start
        if stage != self._stage:
            self.close()
            self._stage, self._stage_start = stage, now
            if self.patience:
                self._timer = threading.Timer(self.patience, self._line, (now, stage))
                self._timer.daemon = True
                self._timer.start()
            else:
                self._line(now, stage)
        elif share and now - self._written >= self.interval:
            left = (now - self._stage_start) * (1 - share) / share
            self._line(now, f"{stage}: {share:.0%}, about {left:.0f} s left")

    def detail(self, text: str) -> None:
        """Write a detail, if they are wanted."""
        if self.details:
            self._line(self.clock() - self._start, f"  {text}")

    def close(self) -> None:
        """End the present stage."""
        self._stage = ""
        if self._timer is not None:
            self._timer.cancel()

    def _line(self, now: float, text: str) -> None:
        self._written = now
        self.write(f"[{now:6.1f} s] {text}")
