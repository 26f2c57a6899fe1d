"""Operations on NumPy, torch and CuPy arrays that the array API standard does not cover."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special
from array_api_compat import (
    array_namespace,
    is_array_api_obj,
    is_cupy_namespace,
    is_torch_namespace,
)
from numpy.typing import NDArray

from ulmus.core.arrays.threads import mapped
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

Array = Any
FloatArray = NDArray[np.float64]

# Elements of a block of hidden features. Eight megabytes fit the cache of a processor and are long
# enough for matrix products at full speed; a GPU needs two gigabytes (benchmarks/scale.py).
BLOCK_ELEMENTS = 2**20
DEVICE_BLOCK_ELEMENTS = 2**28
# Columns of a large product that a thread computes at a time.
PRODUCT_COLUMNS = 256


def namespace(*arrays: Array) -> Any:
    """Array API namespace of the arrays."""
    return array_namespace(*arrays)


def like(values: Array, reference: Array) -> Array:
    """Convert values to the array type, dtype and device of a reference array."""
    xp = array_namespace(reference)
    if isinstance(values, np.ndarray) and not isinstance(reference, np.ndarray):
        values = np.ascontiguousarray(values)
    return xp.asarray(values, dtype=reference.dtype, device=reference.device)


def transposed(A: Array) -> Array:
    """Transpose each matrix of a stack."""
    return array_namespace(A).matrix_transpose(A)


def row_major(array: Array) -> Array:
    """C-ordered copy of an array."""
    out = array_namespace(array).empty(array.shape, dtype=array.dtype, device=array.device)
    out[...] = array
    return out


def double_precision(array: Array) -> bool:
    """Whether an array is of double precision."""
    return float(array_namespace(array).finfo(array.dtype).eps) < 1e-12


def is_foreign(values: Any) -> bool:
    """Whether an array is of another library than NumPy and SciPy, such as torch or CuPy."""
    native = isinstance(values, np.ndarray) or scipy.sparse.issparse(values)
    return is_array_api_obj(values) and not native


def to_numpy(array: Array) -> np.ndarray:
    """Convert an array of any library, or a list, to NumPy."""
    if is_foreign(array):
        # torch: detach from the graph, then copy to the host; CuPy: copy to the host.
        for method in ("detach", "cpu", "get"):
            if hasattr(array, method):
                array = getattr(array, method)()
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


def logistic(u: Array) -> Array:
    """1 / (1 + exp(-u)), elementwise; u may be overwritten."""
    xp = array_namespace(u)
    if is_torch_namespace(xp):
        return u.sigmoid_()
    if isinstance(u, np.ndarray):
        # In place: allocation costs more than the arithmetic. An overflow yields zero.
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


def product_into(out: Array, a: Array, b: Array) -> Array:
    """Elementwise product a * b, written to ``out`` where the library supports it."""
    if isinstance(out, np.ndarray):
        return np.multiply(a, b, out=out)
    if is_torch_namespace(array_namespace(out)):
        import torch

        return torch.mul(a, b, out=out)
    return a * b


def row_products(left: Array, right: Array) -> Array:
    """Sums over rows, left @ right', for matrices (N, b) and (R, b) with many rows b.

    A GPU computes tiles of 128 x 128 results, and 256 of them occupy it. If there are fewer, the
    rows are split into pieces that are multiplied in one batch and summed.
    """
    (N, b), R = left.shape, right.shape[0]
    n_tiles = -(-N // 128) * -(-R // 128)
    n_pieces = min(16, 256 // n_tiles, b // 64)
    if is_on_host(left) or n_pieces < 2:
        return left @ right.T
    xp, size = array_namespace(left), b // n_pieces

    def pieces(a: Array) -> Array:
        batch = xp.reshape(a[:, : size * n_pieces], (a.shape[0], n_pieces, size))
        return xp.permute_dims(batch, (1, 0, 2))

    product = xp.sum(pieces(left) @ xp.permute_dims(pieces(right), (0, 2, 1)), axis=0)
    rest = slice(size * n_pieces, b)
    return product + left[:, rest] @ right[:, rest].T


def member_products(left: Array, right: Array) -> Array:
    """Sums over rows for each member, (M, N, b) and (M, R, b) to (M, N, R)."""

    def product(m: int) -> Array:
        return row_products(left[m, :, :], right[m, :, :])

    return array_namespace(left).stack(mapped(product, range(left.shape[0])))


def contracted(a: Array, b: Array, *, joint: bool) -> Array:
    """Sums of products over all but the last axis: (p,), or (p, p') for all pairs if ``joint``."""
    if not joint:
        return column_sums(a, b)
    xp, p = array_namespace(a, b), b.shape[-1]
    left, right = xp.reshape(a, (-1, a.shape[-1])).T, xp.reshape(b, (-1, p))
    # BLAS computes half of a product with itself.
    if a is b or p <= PRODUCT_COLUMNS or not is_on_host(left):
        return left @ right
    columns = [slice(i, i + PRODUCT_COLUMNS) for i in range(0, p, PRODUCT_COLUMNS)]
    return xp.concat(mapped(lambda few: left @ right[:, few], columns), axis=1)


def column_sums(a: Array, b: Array) -> Array:
    """Sums of elementwise products over all but the last axis, shape (n,)."""
    if isinstance(a, np.ndarray):
        n = a.shape[-1]
        return np.einsum("kn,kn->n", a.reshape(-1, n), b.reshape(-1, n))
    xp = array_namespace(a, b)
    return xp.sum(a * b, axis=tuple(range(a.ndim - 1)))


def dense(X: Any) -> Any:
    """The same rows as a dense array."""
    return X.toarray() if scipy.sparse.issparse(X) else X


def taken_rows(X: Any, rows: slice | np.ndarray) -> Any:
    """Rows of a dense or sparse matrix, by slice or by index."""
    if isinstance(rows, slice) or not is_foreign(X):
        return X[rows, :]
    xp = array_namespace(X)
    return xp.take(X, xp.asarray(rows, device=X.device), axis=0)


def row_blocks(n_rows: int, width: int, reference: Array | None = None) -> Iterator[slice]:
    """Slices of ``n_rows`` rows, whose blocks of features fit the cache or the GPU.

    ``width`` is the number of hidden features of a row; the library and device of ``reference``
    determine the size.
    """
    on_host = reference is None or isinstance(reference, np.ndarray)
    elements = BLOCK_ELEMENTS if on_host or is_on_host(reference) else DEVICE_BLOCK_ELEMENTS
    size = max(512, min(elements // 128, elements // max(1, width)))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def is_on_host(array: Array) -> bool:
    """Whether an array is in host memory."""
    return "cpu" in str(getattr(array, "device", "cpu")).lower()


def reference_array(X: Array, device: str | None, dtype: str) -> Array:
    """Empty array of the library, dtype and device of the computation.

    They are those of X, unless a torch device is named.
    """
    if device is not None:
        return _torch_array(device, dtype)
    if is_foreign(X):
        xp = array_namespace(X)
        return xp.empty(0, dtype=getattr(xp, dtype), device=X.device)
    return np.empty(0, dtype=dtype)


def _torch_array(device: str, dtype: str) -> Array:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"device={device!r} requires torch, which is not installed; install ulmus[torch], or "
            "use device=None for NumPy."
        ) from error
    try:
        return torch.empty(0, dtype=getattr(torch, dtype), device=device)
    except (RuntimeError, AssertionError) as error:
        numpy = Setting("device", phrase="no {} for NumPy", python="None for NumPy")
        suggestions = "use 'cpu'", "'cuda' with a CUDA device", numpy
        text = "is not one that torch can use here"
        raise InputError(Message("unknown-device", text, "device", device, suggestions)) from error
