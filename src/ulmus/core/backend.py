"""The one door to NumPy, torch and CuPy: what the array API standard leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
from array_api_compat import (
    array_namespace,
    is_array_api_obj,
    is_cupy_namespace,
    is_torch_namespace,
)

Array = Any

# A block of hidden features of about eight megabytes stays near a processor and is still long
# enough for matrix products to run at full speed; a graphics card wants two gigabytes.
BLOCK_ELEMENTS = 2**20
DEVICE_BLOCK_ELEMENTS = 2**28
# Results are made in tiles of this side, and so many of them fill a card.
DEVICE_TILE = 128
DEVICE_TILES_WANTED = 256
# Larger triangles are inverted one by one: NumPy's batches do not know that they are triangles.
LAPACK_SIZE = 32


def namespace(*arrays: Array) -> Any:
    """Array API namespace that the arrays share."""
    return array_namespace(*arrays)


def like(values: Array, reference: Array) -> Array:
    """Give values the array type, dtype and device of a reference array."""
    xp = array_namespace(reference)
    if isinstance(values, np.ndarray) and not isinstance(reference, np.ndarray):
        values = np.ascontiguousarray(values)
    return xp.asarray(values, dtype=reference.dtype, device=reference.device)


def double_precision(array: Array) -> bool:
    """Whether an array has 64-bit numbers."""
    return float(array_namespace(array).finfo(array.dtype).eps) < 1e-12


def to_numpy(array: Array) -> np.ndarray:
    """Bring an array of any library, or a list, to NumPy."""
    if is_array_api_obj(array) and not isinstance(array, np.ndarray):
        # torch and CuPy have their own words for leaving the device.
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


def inverted_triangle(L: Array) -> Array:
    """Inverses of a stack of lower triangular matrices."""
    xp = array_namespace(L)
    if is_torch_namespace(xp):
        import torch

        eye = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device)
        return torch.linalg.solve_triangular(L, eye, upper=False)
    N = L.shape[-1]
    if not isinstance(L, np.ndarray) or N < LAPACK_SIZE:
        return xp.linalg.inv(L)
    (trtri,) = scipy.linalg.get_lapack_funcs(("trtri",), (L,))
    inverses = np.empty_like(L)
    for inverse, lower in zip(inverses.reshape(-1, N, N), L.reshape(-1, N, N), strict=True):
        inverse.T[...] = trtri(lower.T, lower=0)[0]
    return inverses


def logistic(u: Array) -> Array:
    """1 / (1 + exp(-u)), elementwise, where u may be overwritten."""
    xp = array_namespace(u)
    if is_torch_namespace(xp):
        return u.sigmoid_()
    if isinstance(u, np.ndarray):
        # In place, as new memory costs more than the arithmetic; an overflow is a unit of zero.
        np.negative(u, out=u)
        with np.errstate(over="ignore"):
            np.exp(u, out=u)
        u += 1.0
        return np.reciprocal(u, out=u)
    # tanh saturates where exp overflows: 1 / (1 + exp(-u)) = (1 + tanh(u / 2)) / 2.
    u *= 0.5
    u = xp.tanh(u)
    u *= 0.5
    u += 0.5
    return u


def row_products(left: Array, right: Array) -> Array:
    """Sums over rows, left @ right', for matrices (N, b) and (R, b) with many rows b.

    A graphics card works on tiles of the result. Where these are too few to keep it busy, the
    rows are cut into pieces that are multiplied side by side and summed.
    """
    (N, b), R = left.shape, right.shape[0]
    tiles = -(-N // DEVICE_TILE) * -(-R // DEVICE_TILE)
    n_pieces = min(16, DEVICE_TILES_WANTED // tiles, b // 64)
    if is_on_host(left) or n_pieces < 2:
        return left @ right.T
    xp, size = array_namespace(left), b // n_pieces

    def pieces(a: Array) -> Array:
        cut = xp.reshape(a[:, : size * n_pieces], (a.shape[0], n_pieces, size))
        return xp.permute_dims(cut, (1, 0, 2))

    product = xp.sum(pieces(left) @ xp.permute_dims(pieces(right), (0, 2, 1)), axis=0)
    rest = slice(size * n_pieces, b)
    return product + left[:, rest] @ right[:, rest].T


def member_products(left: Array, right: Array) -> Array:
    """Sums over rows for each member, (M, N, b) and (M, R, b) to (M, N, R)."""
    xp = array_namespace(left)
    if is_on_host(left):
        return left @ xp.permute_dims(right, (0, 2, 1))
    return xp.stack([row_products(left[m, :, :], right[m, :, :]) for m in range(left.shape[0])])


def column_sums(a: Array, b: Array) -> Array:
    """Sums of elementwise products over all but the last axis, shape (n,)."""
    if isinstance(a, np.ndarray):
        n = a.shape[-1]
        return np.einsum("kn,kn->n", a.reshape(-1, n), b.reshape(-1, n))
    xp = array_namespace(a, b)
    return xp.sum(a * b, axis=tuple(range(a.ndim - 1)))


def taken_rows(X: Any, rows: slice | np.ndarray) -> Any:
    """Rows of a dense or sparse matrix, by slice or by index."""
    if isinstance(rows, slice) or isinstance(X, np.ndarray) or not is_array_api_obj(X):
        return X[rows, :]
    xp = array_namespace(X)
    return xp.take(X, xp.asarray(rows, device=X.device), axis=0)


def row_blocks(n_rows: int, features: int, reference: Array | None = None) -> Iterator[slice]:
    """Slices that cut ``n_rows`` so that a block of hidden features has a good size.

    ``reference`` is an array of the kind that will be computed with.
    """
    on_host = reference is None or isinstance(reference, np.ndarray)
    elements = BLOCK_ELEMENTS if on_host or is_on_host(reference) else DEVICE_BLOCK_ELEMENTS
    size = max(64, min(elements // 128, elements // max(1, features)))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def is_on_host(array: Array) -> bool:
    """Whether an array lives in the processor's own memory."""
    return "cpu" in str(getattr(array, "device", "cpu")).lower()


def reference_array(X: Array, device: str | None, dtype: str) -> Array:
    """An empty array of the kind to compute with.

    It follows the data, unless a device is named: then it is a torch tensor there.
    """
    if device is not None:
        import torch

        return torch.empty(0, dtype=getattr(torch, dtype), device=device)
    if is_array_api_obj(X) and not isinstance(X, np.ndarray):
        xp = array_namespace(X)
        return xp.empty(0, dtype=getattr(xp, dtype), device=X.device)
    return np.empty(0, dtype=dtype)
