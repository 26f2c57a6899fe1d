"""The command line, ``ulmus``: commands only call the library. Needs the extra ``ulmus[cli]``."""

from __future__ import annotations

import os
import signal
from typing import Any, NoReturn

# Exit code of an interrupt, and its message.
INTERRUPTED, INTERRUPTED_TEXT = 130, "interrupted; nothing was written."


def main() -> None:
    """Run the command line, or say what is missing."""
    # Not if the caller ignores interrupts, as nohup does.
    handles = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handles:
        signal.signal(signal.SIGINT, _exit_at_once)
    try:
        from ulmus.cli.app import app
    except ModuleNotFoundError as error:
        message = f"ulmus: the command line needs {error.name}: pip install 'ulmus[cli]'"
        raise SystemExit(message) from error
    if handles:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    app(prog_name="ulmus")


def _exit_at_once(*_: Any) -> NoReturn:
    """End the process while packages are loaded.

    An exception would be replaced by another one in some of their extension modules.
    """
    os.write(2, f"ulmus: {INTERRUPTED_TEXT}\n".encode())
    os._exit(INTERRUPTED)
