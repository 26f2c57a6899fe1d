"""Arrays of a page: little-endian numbers in base64."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import to_numpy

Packed = dict[str, Any]
TYPES = {np.dtype(name): name for name in ("f8", "f4", "i4", "i2")}
# Largest number of 16 bits.
LARGEST = 2**15 - 1


def packed(array: Any, *, single: bool = False) -> Packed:
    """An array as its type, shape and data; integers have 16 or 32 bits."""
    a = to_numpy(array)
    if a.dtype.kind in "iub":
        a = a if a.dtype == np.int16 else a.astype("i4")
    elif single or a.dtype != np.float32:
        a = a.astype("f4" if single else "f8")
    data = base64.b64encode(a.astype(a.dtype.newbyteorder("<")).tobytes())
    return {"type": TYPES[a.dtype], "shape": list(a.shape), "data": data.decode("ascii")}


def lower_triangle(matrix: Any) -> Packed:
    """The lower triangle of a symmetric matrix, row after row."""
    a = to_numpy(matrix)
    symmetric = 0.5 * (a + a.T)
    return packed(symmetric[np.tril_indices(len(a))].astype(a.dtype))


def quantised_rows(matrix: Any) -> Packed:
    """A matrix as whole numbers of 16 bits, in units of its rows.

    Products of a row with a vector have an error of about 1e-5 of their terms.
    """
    a = to_numpy(matrix).astype(float)
    largest = np.max(np.abs(a), axis=1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0) / LARGEST
    whole = np.round(a / unit[:, None]).astype(np.int16)
    return {**packed(whole), "unit": packed(unit)}
