"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ulmus.exceptions import InputError
from ulmus.messages import Message


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside ``path``, which takes its place when all is written.

    A reader of ``path`` sees the old file or the new one, never a part of it, also when the program
    or the machine stops in between. After any error, an interrupt included, the temporary file is
    removed. A process that is killed leaves a hidden ``.NAME.xxxxxxxx.part.SUFFIX``, which can be
    deleted.

    Parameters
    ----------
    path : str or path-like
        The file to make. Its folder must exist. The file that a symbolic link points to is
        replaced, not the link, and keeps its permissions; a new file has those of the umask.

    Yields
    ------
    temporary : Path
        An empty file in the same folder and with the same suffix, to be written.

    Raises
    ------
    ValueError
        If ``path`` is a folder or another thing that is not a file, or has no folder.
    OSError
        If it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(f"{folder}/table.csv") as temporary:
    ...         temporary.write_text("a,b")
    3
    """
    target = writable_target(path)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    name = f".{target.name[:40]}.{secrets.token_hex(4)}.part{target.suffix}"
    temporary = target.with_name(name)
    try:
        _create(temporary, 0o666 if mode is None else mode | stat.S_IRUSR | stat.S_IWUSR, path)
        yield temporary
        if mode is not None:
            os.chmod(temporary, mode)
        _flush(temporary, os.O_RDWR)
        os.replace(temporary, target)
        with suppress(OSError):  # a folder cannot be flushed on every system
            _flush(target.parent, os.O_RDONLY)
    finally:
        temporary.unlink(missing_ok=True)


def writable_target(path: str | os.PathLike[str]) -> Path:
    """The file behind a path and its symbolic links, if it can be replaced."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise _refused(path, "is a folder", "give a file in it")
    if not target.parent.is_dir():
        raise _refused(path, "is in a folder that does not exist", "create it first")
    if target.is_symlink() or (target.exists() and not target.is_file()):
        raise _refused(path, "is not a regular file and cannot be replaced", "give another name")
    if target.exists() and not os.access(target, os.W_OK):
        text = f"{os.fspath(path)!r} is a file that must not be written"
        raise PermissionError(f"{text}; give another name or change its permissions.")
    return target


def _refused(path: str | os.PathLike[str], problem: str, suggestion: str) -> InputError:
    return InputError(
        Message("output-path", problem, "path", os.fspath(path), (suggestion,), "input")
    )


def _create(temporary: Path, mode: int, path: str | os.PathLike[str]) -> None:
    """Make an empty file that did not exist before."""
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    except OSError as error:
        raise type(error)(
            f"{os.fspath(path)!r} cannot be written: {error.strerror}; choose another folder."
        ) from None


def _flush(path: Path, flags: int) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
