"""The command line, ``ulmus``: commands only call the library. Needs the extra ``ulmus[cli]``.

``app`` has all commands; ``fit``, ``predict``, ``check``, ``info``, ``effects``, ``plot``,
``report``, ``export`` and ``demo`` define their options and order of work, ``options`` and the
modules called ``..._options`` what they share, ``console`` what they print, and ``usage`` how wrong
options are refused. These modules are imported for every help page and load no package but typer
and rich. The work is done by the modules of ``steps``, which are imported with their first use.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

# Exit code of an interrupt, and its message.
INTERRUPTED, INTERRUPTED_TEXT = 130, "interrupted; nothing was written."


def main() -> None:
    """Run the command line, or say what is missing."""
    try:
        with exit_on_interrupt():
            from ulmus.cli.app import app
    except ModuleNotFoundError as error:
        message = f"ulmus: the command line needs {error.name}: pip install 'ulmus[cli]'"
        raise SystemExit(message) from error
    app(prog_name="ulmus")


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """End the process at an interrupt while packages are loaded.

    An exception would be replaced by another one in some of their extension modules.
    """
    # Not if the caller ignores interrupts, as nohup does; other threads receive none.
    handler, in_main = signal.getsignal(signal.SIGINT), threading.main_thread()
    if handler is not signal.default_int_handler or threading.current_thread() is not in_main:
        yield
        return
    signal.signal(signal.SIGINT, _exit_at_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _exit_at_once(*_: Any) -> NoReturn:
    os.write(2, f"ulmus: {INTERRUPTED_TEXT}\n".encode())
    os._exit(INTERRUPTED)
