"""Archives of arrays and one JSON document: a zip file in which nothing can run.

The document ``model.json`` names every array with the SHA-256 of its ``.npy`` member, and ends with
the SHA-256 of itself. A reader believes nothing that a file says about its sizes before it has
checked that it can be true, and reads no more than that.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ulmus.exceptions import ModelFileError
from ulmus.model_file.npy import npy_parts, read_npy
from ulmus.version import __version__

FORMAT = 1
DOCUMENT = "model.json"
# Deflate makes nothing smaller than by a factor of 1032.
LARGEST_RATIO = 1100
# Bytes of a document, and levels of brackets in it; a fit has some 20.
LARGEST_DOCUMENT, DEEPEST = 2**26, 100
# Arrays are deflated where so many bytes from their middle shrink to less than this share.
TRIAL, WORTHWHILE = 2**16, 0.8
# Members are encrypted, patched, or have hidden headers.
REFUSED_FLAGS = 0x1 | 0x20 | 0x40 | 0x2000
ARRAY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,200}")
VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,40}")
FOREIGN = (
    (b"\x80", "a pickle, which could run anything and is never loaded"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"PAR1", "a Parquet file"),
    (b"\x1f\x8b", "a gzip file"),
    ((b"x\x01", b"x\x5e", b"x\x9c", b"x\xda"), "a compressed file, perhaps of joblib"),
    (b"\x08", "perhaps an ONNX file"),
)
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
)


class Archive(NamedTuple):
    """The document of a file, and its arrays by name."""

    document: dict[str, Any]
    arrays: dict[str, np.ndarray]


# ---------------------------------------------------------------- writing


def write_archive(
    path: os.PathLike[str], document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write a document and arrays; the same ones always give the same bytes."""
    parts = {name: npy_parts(array) for name, array in arrays.items()}
    sums = {name: _digest(*part) for name, part in parts.items()}
    known = {"format": FORMAT, "ulmus": __version__, **document, "arrays": sums}
    text = json.dumps({**known, "sha256": _seal(known)}, indent=1, allow_nan=False)
    with zipfile.ZipFile(path, "w") as archive:
        _write(archive, DOCUMENT, text.encode("ascii"))
        for name, part in parts.items():
            _write(archive, f"{name}.npy", *part)


def _write(archive: zipfile.ZipFile, name: str, *parts: Any) -> None:
    """Add a member, deflated where that helps."""
    info = zipfile.ZipInfo(name)  # of a fixed date
    info.create_system, info.external_attr = 3, 0o600 << 16
    info.file_size = sum(len(part) for part in parts)
    start = max(0, len(parts[-1]) - TRIAL) // 2
    trial = bytes(parts[-1][start : start + TRIAL])
    if len(zlib.compress(trial, 1)) < WORTHWHILE * len(trial):
        info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w") as member:
        for part in parts:
            member.write(part)


def _digest(*parts: Any) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()


def _seal(document: Mapping[str, Any]) -> str:
    """SHA-256 of a document, however it is laid out."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return _digest(text.encode("ascii"))


# ---------------------------------------------------------------- reading


def read_archive(path: str | os.PathLike[str]) -> Archive:
    """The document and the arrays of a file, checked."""
    with refusals(path), _opened(path) as archive:
        document = _document(path, archive)
        sums = document["arrays"]
        return Archive(document, {name: _array(archive, name, sums[name]) for name in sums})


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The document of a file alone."""
    with refusals(path), _opened(path) as archive:
        return _document(path, archive)


@contextmanager
def refusals(path: str | os.PathLike[str]) -> Iterator[None]:
    """One sentence about a file, whatever goes wrong while it is read."""
    try:
        yield
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:
        what = "damaged or cut off" if isinstance(error, DAMAGE) else "not a valid model file"
        why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        if isinstance(error, KeyError):
            why = f"it lacks {why}"
        raise ModelFileError(f"{_shown(path)} is {what}: {why[:300]}.") from error


def _shown(path: str | os.PathLike[str]) -> str:
    return repr(os.fspath(path))


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    """A zip file whose members are as large as they say, as far as that can be true."""
    if not os.path.exists(path):
        raise ModelFileError(f"{_shown(path)} does not exist; give the name of a model file.")
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError(f"{_shown(path)} is not a file; give the name of a model file.")
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise ModelFileError(f"{_shown(path)} cannot be read: {error.strerror}.") from error
    with file:
        _refuse_foreign(path, file.read(8))
        size = os.fstat(file.fileno()).st_size
        with zipfile.ZipFile(file) as archive:
            _require_plain(archive.infolist(), size)
            yield archive


def _refuse_foreign(path: str | os.PathLike[str], start: bytes) -> None:
    if start.startswith(b"PK\x03\x04"):
        return
    kind = next((kind for prefix, kind in FOREIGN if start.startswith(prefix)), "no zip file")
    kind = kind if start else "empty"
    raise ModelFileError(f"{_shown(path)} is not a model file of ulmus: it is {kind}.")


def _require_plain(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse members that are no plain data, and sizes that so many bytes cannot hold."""
    for info in members:
        kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if info.compress_type not in kinds or info.flag_bits & REFUSED_FLAGS:
            raise ValueError(f"its member {info.filename!r:.80} is not plain data")
        if info.file_size > LARGEST_RATIO * (info.compress_size + 1):
            raise ValueError(
                f"its member {info.filename!r:.80} claims {info.file_size} bytes in "
                f"{info.compress_size}"
            )
    if sum(info.compress_size for info in members) > size:
        raise ValueError("its members overlap")


def _document(path: str | os.PathLike[str], archive: zipfile.ZipFile) -> dict[str, Any]:
    """The document, if it is whole, of a known format, and the members are what it says."""
    names = [info.orig_filename for info in archive.infolist()]
    if DOCUMENT not in names:
        raise ModelFileError(
            f"{_shown(path)} is not a model file of ulmus: it is a zip file without {DOCUMENT}."
        )
    if archive.getinfo(DOCUMENT).file_size > LARGEST_DOCUMENT:
        raise ValueError(f"its document has more than {LARGEST_DOCUMENT} bytes")
    document = _parsed(archive.read(DOCUMENT))
    _require_format(path, document)
    seal = document.pop("sha256", None)
    if seal != _seal(document):
        raise ValueError("its document has been changed or damaged")
    sums = document["arrays"]
    if not all(ARRAY_NAME.fullmatch(name) for name in sums):
        raise ValueError("it has an array of a forbidden name")
    expected = [DOCUMENT, *(f"{name}.npy" for name in sums)]
    if sorted(names) != sorted(expected):
        odd = sorted(set(names) ^ set(expected)) or ["one of them twice"]
        raise ValueError(f"its members are not those of its document: {odd[0]!r:.80}")
    return document


def _require_format(path: str | os.PathLike[str], document: Any) -> None:
    version = document.get("format") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelFileError(f"{_shown(path)} is not a model file of ulmus: it has no format.")
    if version > FORMAT:
        writer = document.get("ulmus")
        known = isinstance(writer, str) and VERSION.fullmatch(writer)
        raise ModelFileError(
            f"{_shown(path)} was written in format {version} by "
            f"{f'ulmus {writer}' if known else 'a newer ulmus'}; this ulmus {__version__} "
            f"reads formats up to {FORMAT}: upgrade ulmus."
        )


def _parsed(text: bytes) -> Any:
    """A JSON document without duplicate keys, numbers that are none, or bottomless brackets."""
    try:
        document = json.loads(
            text.decode("ascii"),
            object_pairs_hook=_unique,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except RecursionError:
        raise ValueError("its document is nested too deeply") from None
    level, depth = [document], 0
    while level:
        level = [
            inner
            for value in level
            if isinstance(value, (dict, list))
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        depth += 1
        if depth > DEEPEST:
            raise ValueError("its document is nested too deeply")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("its document has a key twice")
    return values


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"its document has the number {text:.20}")
    return value


def _array(archive: zipfile.ZipFile, name: str, expected: Any) -> np.ndarray:
    info, total = archive.getinfo(f"{name}.npy"), hashlib.sha256()
    with archive.open(info) as member:
        try:
            array = read_npy(member, info.file_size, total.update)
        except ValueError as error:
            raise ValueError(f"its array {name!r} {error}") from error
    if total.hexdigest() != expected:
        raise ValueError(f"its array {name!r} has been changed or damaged")
    return array
