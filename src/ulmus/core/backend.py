"""The one door to NumPy, torch and CuPy: what the array API standard leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.special
from array_api_compat import array_namespace, is_cupy_namespace, is_torch_namespace

Array = Any

# A block of hidden features of about eight megabytes stays near the processor and is still
# long enough for matrix products to run at full speed.
BLOCK_ELEMENTS = 2**20


def namespace(*arrays: Array) -> Any:
    """Array API namespace that the arrays share."""
    return array_namespace(*arrays)


def like(values: Array, reference: Array) -> Array:
    """Give NumPy values the array type, dtype and device of a reference array."""
    xp = array_namespace(reference)
    return xp.asarray(values, dtype=reference.dtype, device=reference.device)


def to_numpy(array: Array) -> np.ndarray:
    """Copy an array of any library to NumPy."""
    if isinstance(array, np.ndarray):
        return array
    for bring_home in ("cpu", "get"):
        if hasattr(array, bring_home):
            array = getattr(array, bring_home)()
    return np.asarray(array)


def erf(u: Array) -> Array:
    """Error function, elementwise."""
    xp = array_namespace(u)
    if is_torch_namespace(xp):
        return u.erf()
    if is_cupy_namespace(xp):
        from cupyx.scipy.special import erf as cupy_erf

        return cupy_erf(u)
    return like(scipy.special.erf(np.asarray(u)), u)


def triangular_factor(A: Array) -> Array:
    """Factor R of the QR factorisation of a stack of matrices, without forming Q."""
    xp = array_namespace(A)
    if isinstance(A, np.ndarray):
        return np.linalg.qr(A, mode="r")
    if is_torch_namespace(xp):
        import torch

        return torch.linalg.qr(A, mode="r").R
    return xp.linalg.qr(A).R


def column_sums(a: Array, b: Array) -> Array:
    """Sums of elementwise products over all but the last axis, shape (n,)."""
    if isinstance(a, np.ndarray):
        n = a.shape[-1]
        return np.einsum("kn,kn->n", a.reshape(-1, n), b.reshape(-1, n))
    xp = array_namespace(a, b)
    return xp.sum(a * b, axis=tuple(range(a.ndim - 1)))


def row_blocks(n_rows: int, features: int) -> Iterator[slice]:
    """Slices that cut ``n_rows`` so that a block of hidden features stays small."""
    size = max(64, min(8192, BLOCK_ELEMENTS // max(1, features)))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))
