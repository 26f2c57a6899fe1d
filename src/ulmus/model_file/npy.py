"""Arrays of plain numbers as bytes in NumPy's own format, and back, without trust."""

from __future__ import annotations

import ast
import io
import math
from collections.abc import Callable
from typing import IO, Any

import numpy as np

MAGIC = b"\x93NUMPY"
# Bytes of the length of a header, by the version of the format.
LENGTHS = {b"\x01\x00": 2, b"\x02\x00": 4, b"\x03\x00": 4}
LONGEST_HEADER, MOST_AXES = 10_000, 32
# Truth values and numbers, in the order of bytes that nearly all machines have.
DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")
PIECE = 2**20


def npy_parts(array: np.ndarray) -> tuple[bytes, memoryview]:
    """Header and data of an array in version 1.0 of the format, rows first."""
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
    if array.dtype.str not in DTYPES:
        raise ValueError(f"an array of dtype {array.dtype} cannot be stored; use plain numbers.")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return header.getvalue(), array.reshape(-1).view(np.uint8).data


def read_npy(file: IO[bytes], size: int, tell: Callable[[Any], None]) -> np.ndarray:
    """An array from a file of so many bytes, all of which are told to a function as they come."""
    dtype, shape, used = _header(file, tell)
    if used + math.prod(shape) * dtype.itemsize != size:
        raise ValueError("has another size than its header says")
    array = np.empty(shape, dtype=dtype)
    data = array.reshape(-1).view(np.uint8).data
    for start in range(0, len(data), PIECE):
        piece = _read(file, min(PIECE, len(data) - start))
        tell(piece)
        data[start : start + PIECE] = piece
    return array.astype(dtype.newbyteorder("="), copy=False)


def _header(file: IO[bytes], tell: Callable[[Any], None]) -> tuple[np.dtype[Any], Any, int]:
    """Type and shape of an array, and how many bytes they took."""
    start = _read(file, len(MAGIC) + 2)
    if start[: len(MAGIC)] != MAGIC or start[len(MAGIC) :] not in LENGTHS:
        raise ValueError("is not in NumPy's format")
    length = _read(file, LENGTHS[start[len(MAGIC) :]])
    if int.from_bytes(length, "little") > LONGEST_HEADER:
        raise ValueError("has too long a header")
    text = _read(file, int.from_bytes(length, "little"))
    for part in (start, length, text):
        tell(part)
    try:
        known = ast.literal_eval(text.decode("ascii").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError("has a header that cannot be read") from None
    if not isinstance(known, dict) or set(known) != {"descr", "fortran_order", "shape"}:
        raise ValueError("has a header that cannot be read")
    dtype, shape = known["descr"], known["shape"]
    if not isinstance(dtype, str) or dtype not in DTYPES or known["fortran_order"] is not False:
        raise ValueError(f"is of the kind {dtype!r:.40}, not of plain numbers")
    if not isinstance(shape, tuple) or len(shape) > MOST_AXES or not all(map(_is_count, shape)):
        raise ValueError(f"has the shape {shape!r:.40}")
    return np.dtype(dtype), shape, len(start) + len(length) + len(text)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _read(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError("it ends too early")
    return data
