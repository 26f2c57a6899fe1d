"""Arrays of a page: little-endian numbers in base64."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import to_numpy

Packed = dict[str, Any]
TYPES = {np.dtype(name): name for name in ("f8", "f4", "i4", "i2")}
# Largest numbers of these bits.
LARGEST = {16: 2**15 - 1, 32: 2**31 - 1}


def packed(array: Any, *, single: bool = False) -> Packed:
    """An array as its type, shape and data; integers have 16 or 32 bits."""
    a = to_numpy(array)
    if a.dtype.kind in "iub":
        a = a if a.dtype == np.int16 else a.astype("i4")
    elif single or a.dtype != np.float32:
        a = a.astype("f4" if single else "f8")
    data = base64.b64encode(a.astype(a.dtype.newbyteorder("<")).tobytes())
    return {"type": TYPES[a.dtype], "shape": list(a.shape), "data": data.decode("ascii")}


def lower_triangle(matrix: Any, bits: int) -> Packed:
    """The lower triangle of a symmetric matrix, row after row, as whole numbers."""
    a = to_numpy(matrix).astype(float)
    symmetric = 0.5 * (a + a.T)
    return quantised_rows(symmetric[np.tril_indices(len(a))][None, :], bits)


def quantised_rows(matrix: Any, bits: int = 16) -> Packed:
    """A matrix as whole numbers of 16 or 32 bits, in a unit for each row.

    Products of a row with a vector have an error of about 1e-5, or 1e-10, of their terms.
    """
    whole, unit = _rounded(to_numpy(matrix).astype(float), bits)
    return {**packed(whole), "unit": packed(unit)}


def refined_rows(matrix: Any, most_elements: int) -> Packed:
    """The same with the remainders of some rows, which have errors of about 1e-9 of their terms.

    Terms may cancel, and then their errors are large compared with the product. The rows with the
    largest errors are refined, so many that remainders have at most ``most_elements``.
    """
    a = to_numpy(matrix).astype(float)
    whole, unit = _rounded(a, 16)
    count = int(np.clip(most_elements // max(a.shape[1], 1), 0, len(a)))
    rows = np.sort(np.argsort(-unit, kind="stable")[:count])
    remainders = a[rows] - whole[rows] * unit[rows, None]
    refined = {"rows": packed(rows), "remainders": quantised_rows(remainders)}
    return {**packed(whole), "unit": packed(unit)} | ({"refined": refined} if count else {})


def restored_rows(rows: Packed) -> np.ndarray:
    """The matrix that the page has instead of that of `quantised_rows` or `refined_rows`."""
    a = _unpacked(rows) * _unpacked(rows["unit"])[:, None]
    if "refined" in rows:
        a[_unpacked(rows["refined"]["rows"])] += restored_rows(rows["refined"]["remainders"])
    return a


def _unpacked(array: Packed) -> np.ndarray:
    data = np.frombuffer(base64.b64decode(array["data"]), f"<{array['type']}")
    return data.reshape(array["shape"])


def _rounded(a: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers, and the unit of each row."""
    largest = np.max(np.abs(a), axis=1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0) / LARGEST[bits]
    return np.round(a / unit[:, None]).astype(f"i{bits // 8}"), unit
