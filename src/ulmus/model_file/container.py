"""The file: arrays in the safetensors format, and a JSON document in its metadata.

The document lists the SHA-256 of every array and of itself. The safetensors library checks offsets,
shapes and the length of the file; the checks here cover what it accepts: names given twice, other
dtypes, and everything in the document.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialised

from ulmus.exceptions import ModelFileError
from ulmus.version import __version__

FORMAT = 2
# The key of the document in the metadata; the only one, as safetensors orders several at random.
DOCUMENT = "ulmus"
# Bytes of a document.
LARGEST_DOCUMENT = 2**25
# What safetensors and NumPy call the booleans and numbers that a file may contain.
DTYPES = {"BOOL": "bool", "F32": "float32", "F64": "float64"}
for _bits in (8, 16, 32, 64):
    DTYPES |= {f"I{_bits}": f"int{_bits}", f"U{_bits}": f"uint{_bits}"}
FOREIGN = (
    (b"PK\x03\x04", "a zip file"),
    (b"\x80", "a pickle, which could run anything and is never loaded"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"PAR1", "a Parquet file"),
    (b"\x1f\x8b", "a gzip file"),
    ((b"x\x01", b"x\x5e", b"x\x9c", b"x\xda"), "a compressed file, perhaps of joblib"),
    (b"\x08", "perhaps an ONNX file"),
)


class Container(NamedTuple):
    """The document of a file, and its arrays by name."""

    document: dict[str, Any]
    arrays: dict[str, np.ndarray]


# ---------------------------------------------------------------- writing


def write_container(
    path: os.PathLike[str], document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write a document and arrays; equal ones give equal bytes."""
    stored = {name: _storable(array) for name, array in arrays.items()}
    digests = {name: array_digest(array) for name, array in stored.items()}
    unsealed = {"format": FORMAT, "ulmus": __version__, **document, "arrays": digests}
    text = json.dumps({**unsealed, "sha256": document_digest(unsealed)}, allow_nan=False)
    if len(text) > LARGEST_DOCUMENT:
        room = f"{len(text)} bytes, and a model file has room for {LARGEST_DOCUMENT}"
        raise ValueError(f"the description of the model has {room}; use fewer categories.")
    # The library's own writing to a path makes another file, with permissions of its own.
    content = serialised(stored, metadata={DOCUMENT: text})
    with open(path, "wb") as file:
        file.write(content)


def _storable(array: np.ndarray) -> np.ndarray:
    """The array in C order and native byte order, as safetensors requires."""
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    if native.dtype.name not in DTYPES.values():
        raise ValueError(f"an array of dtype {array.dtype} cannot be stored; use plain numbers.")
    return native


def array_digest(array: np.ndarray) -> str:
    """SHA-256 of dtype, shape and values in little-endian order."""
    total = hashlib.sha256(f"{array.dtype.name}{array.shape}".encode())
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    total.update(little.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def document_digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of a document, whatever the order of its keys."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


# ---------------------------------------------------------------- reading


def read_container(path: str | os.PathLike[str]) -> Container:
    """The document and the arrays of a file, checked."""
    with refusals(path), _opened(path) as (tensors, header):
        document = _document(path, tensors, header)
        _require_memory(path)
        digests = document["arrays"]
        return Container(document, {name: _array(tensors, name, digests[name]) for name in digests})


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The document of a file alone."""
    with refusals(path), _opened(path) as (tensors, header):
        return _document(path, tensors, header)


@contextmanager
def refusals(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever fails while a file is read into one sentence about the file."""
    try:
        yield
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:
        broken = isinstance(error, (SafetensorError, OSError))
        problem = "damaged or truncated" if broken else "not a valid model file"
        why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        why = why.removeprefix("Error while deserializing header: ")
        if isinstance(error, KeyError):
            why = f"it lacks {why}"
        raise ModelFileError(f"{_shown(path)} is {problem}: {why[:300]}.") from error


def _shown(path: str | os.PathLike[str]) -> str:
    return repr(os.fspath(path))


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The tensors of a file, with offsets that the library has checked, and the header."""
    if not os.path.exists(path):
        raise ModelFileError(f"{_shown(path)} does not exist; give the name of a model file.")
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError(f"{_shown(path)} is not a file; give the name of a model file.")
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise ModelFileError(f"{_shown(path)} cannot be read: {error.strerror}.") from error
    with file:
        length, brace = file.read(8), file.read(1)
        if brace != b"{":
            _refuse_foreign(path, length)
        with safe_open(path, framework="numpy") as tensors:
            # The library keeps the last of two arrays with the same name.
            header = _parsed(brace + file.read(int.from_bytes(length, "little") - 1))
            yield tensors, header


def _refuse_foreign(path: str | os.PathLike[str], start: bytes) -> None:
    found = (name for prefix, name in FOREIGN if start.startswith(prefix))
    name = next(found, "not in the safetensors format") if start else "empty"
    raise ModelFileError(f"{_shown(path)} is not a model file of ulmus: it is {name}.")


def _require_memory(path: str | os.PathLike[str]) -> None:
    """Refuse a file larger than the memory; the library would stop the interpreter."""
    size = os.path.getsize(path)
    try:
        np.empty(size, dtype=np.uint8)
    except (MemoryError, ValueError):
        text = f"{_shown(path)} has {size} bytes, more than the memory of this machine."
        raise ModelFileError(text) from None


def _document(path: str | os.PathLike[str], tensors: Any, header: dict[str, Any]) -> dict[str, Any]:
    """The document, if it is undamaged, of this format, and lists the arrays of the file."""
    metadata = header.get("__metadata__") or {}
    if set(metadata) != {DOCUMENT}:
        text = f"{_shown(path)} is not a model file of ulmus"
        raise ModelFileError(f"{text}: it is another safetensors file.")
    text = metadata[DOCUMENT]
    if len(text) > LARGEST_DOCUMENT:
        raise ValueError(f"its document has more than {LARGEST_DOCUMENT} bytes")
    document = _parsed(text.encode())
    _require_format(path, document)
    rewritten = json.dumps(document)  # differs where digits of a number changed, but not its value
    digest = document.pop("sha256", None)
    if rewritten != text or digest != document_digest(document):
        raise ValueError("its document has been changed or damaged")
    odd = sorted(set(tensors.keys()) ^ set(document["arrays"]))
    if odd:
        raise ValueError(f"its arrays are not those of its document: {odd[0]!r:.80}")
    return document


def _require_format(path: str | os.PathLike[str], document: Any) -> None:
    version = document.get("format") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelFileError(f"{_shown(path)} is not a model file of ulmus: it has no format.")
    if version != FORMAT:
        writer = document.get("ulmus")
        plausible = isinstance(writer, str) and re.fullmatch(r"[0-9][0-9A-Za-z.+!-]{0,40}", writer)
        raise ModelFileError(
            f"{_shown(path)} was written in format {version} by "
            f"{f'ulmus {writer}' if plausible else 'another ulmus'}; this ulmus {__version__} "
            f"reads format {FORMAT}: {'upgrade ulmus' if version > FORMAT else 'fit again'}."
        )


def _parsed(text: bytes) -> Any:
    """A JSON value without duplicate keys, non-finite numbers or excessive nesting."""
    try:
        numbers: Any = {"parse_float": _finite, "parse_constant": _finite}
        document = json.loads(text.decode("ascii"), object_pairs_hook=_unique, **numbers)
        _require_depth(document, 100)  # that of a fit is about 20
    except RecursionError:
        raise ValueError("its document is nested too deeply") from None
    return document


def _require_depth(value: Any, depth: int) -> None:
    if not isinstance(value, (dict, list)):
        return
    if depth == 0:
        raise ValueError("its document is nested too deeply")
    for inner in value.values() if isinstance(value, dict) else value:
        _require_depth(inner, depth - 1)


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


def _array(tensors: Any, name: str, digest: Any) -> np.ndarray:
    dtype = tensors.get_slice(name).get_dtype()
    if dtype not in DTYPES:
        raise ValueError(f"its array {name!r:.80} has the dtype {dtype}, not one of plain numbers")
    array: np.ndarray = tensors.get_tensor(name)
    if array_digest(array) != digest:
        raise ValueError(f"its array {name!r:.80} has been changed or damaged")
    return array
