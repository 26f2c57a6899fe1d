"""Factorisations of stacks of matrices, with fallbacks.

LAPACK's divide and conquer methods fail to converge for rare matrices; slower methods are used
for these, so that every finite matrix is factorised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from array_api_compat import is_torch_namespace

from ulmus.core.arrays.backend import Array, is_on_host, like, namespace, to_numpy, transposed
from ulmus.core.arrays.threads import mapped

# Sizes above which triangular matrices are multiplied by halves, on the host and on a GPU.
HOST_TRIANGLE = 128
CARD_TRIANGLE = 1024
# Size above which a GPU computes singular values from the Gram matrix: ten times faster, without
# values below 1e-8 of the largest.
CARD_SVD_SIZE = 512


def triangular_factor(A: Array) -> Array:
    """Factor R of the QR factorisation of a stack of matrices, without forming Q."""
    xp = namespace(A)
    if isinstance(A, np.ndarray):
        return _lapack_triangles(A)
    if is_torch_namespace(xp):
        import torch

        return torch.linalg.qr(A, mode="r").R
    return xp.linalg.qr(A).R


def _lapack_triangles(A: np.ndarray) -> np.ndarray:
    """Triangular factors by LAPACK, one by one: NumPy's batched QR makes three copies of each."""
    *stack, n, N = A.shape
    rows = min(n, N)
    R = np.zeros((*stack, rows, N), dtype=A.dtype)
    geqrf, geqrf_lwork = scipy.linalg.get_lapack_funcs(("geqrf", "geqrf_lwork"), (A,))
    size = int(geqrf_lwork(n, N)[0].real)
    triangles, matrices = R.reshape(-1, rows, N), A.reshape(-1, n, N)

    def factorise(m: int) -> None:
        triangles[m] = np.triu(geqrf(matrices[m], lwork=size)[0][:rows])

    mapped(factorise, range(len(matrices)))
    return R


def ridge_triangle(R: Array, root_alpha: float) -> Array:
    """Triangular factors of [R; root_alpha I] for a stack of R (M, r, N), shape (M, N, N)."""
    xp, (M, _, N) = namespace(R), R.shape
    if isinstance(R, np.ndarray):
        return _lapack_ridge_triangles(R, root_alpha)
    eye = root_alpha * xp.eye(N, dtype=R.dtype, device=R.device)
    return triangular_factor(xp.concat([R, xp.broadcast_to(eye, (M, N, N))], axis=1))


def _lapack_ridge_triangles(R: np.ndarray, root_alpha: float) -> np.ndarray:
    """Ridge factors of upper trapezoidal R, at a fifth of the cost of a full matrix."""
    M, r, N = R.shape
    out = np.empty((M, N, N), dtype=R.dtype)
    square = np.zeros((N, N), dtype=R.dtype, order="F")
    (tpqrt,) = scipy.linalg.get_lapack_funcs(("tpqrt",), (R,))
    eye = np.asfortranarray(np.eye(N, dtype=R.dtype) * root_alpha)
    for m in range(M):
        square[:r] = R[m]
        # Blocks of 64 columns.
        out[m] = np.triu(tpqrt(N, min(N, 64), square, eye)[0])
    return out


def inverted_triangle(L: Array) -> Array:
    """Inverses of a stack of lower triangular matrices."""
    xp = namespace(L)
    if is_torch_namespace(xp):
        import torch

        eye = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device)
        return torch.linalg.solve_triangular(L, eye, upper=False)
    N = L.shape[-1]
    if not isinstance(L, np.ndarray) or N < 32:  # small matrices: one batched general inverse
        return xp.linalg.inv(L)
    (trtri,) = scipy.linalg.get_lapack_funcs(("trtri",), (L,))
    inverses = np.empty(L.shape, dtype=L.dtype)
    for inverse, lower in zip(inverses.reshape(-1, N, N), L.reshape(-1, N, N), strict=True):
        inverse.T[...] = trtri(lower.T, lower=0)[0]
    return inverses


def lower_product(L: Array, B: Array) -> Array:
    """Products of lower triangular matrices (M, N, N) with matrices (M, N, b)."""
    return _triangular_product(L, B, upper=False)


def upper_product(R: Array, B: Array) -> Array:
    """Products of upper triangular matrices (M, N, N), or any (M, r, N), with (M, N, b)."""
    return _triangular_product(R, B, upper=True) if R.shape[1] == R.shape[2] else R @ B


def _triangular_product(T: Array, B: Array, *, upper: bool) -> Array:
    out = namespace(B).empty_like(B)
    if is_on_host(T):
        # Not by BLAS's trmm: SciPy calls it with the interpreter lock, so that threads wait.
        each = [slice(m, m + 1) for m in range(T.shape[0])]
        mapped(lambda m: _write_product(out[m, :, :], T[m, :, :], B[m, :, :], upper), each)
    else:
        _write_product(out, T, B, upper)
    return out


def _write_product(out: Array, T: Array, B: Array, upper: bool) -> None:
    """Triangular product by recursive halving; the zero half of T is skipped."""
    size = HOST_TRIANGLE if is_on_host(T) else CARD_TRIANGLE
    if T.shape[1] <= size:
        out[...] = T @ B
        return
    half = T.shape[1] // 2
    first, last = slice(0, half), slice(half, None)
    full, part = (first, last) if upper else (last, first)
    for rows in (full, part):
        _write_product(out[:, rows, :], T[:, rows, rows], B[:, rows, :], upper)
    out[:, full, :] += T[:, full, part] @ B[:, part, :]


def svd(A: Array) -> tuple[Array, Array, Array]:
    """Thin singular value decompositions U, s, Vt of a stack of matrices (M, r, N)."""
    xp = namespace(A)
    if min(A.shape[-2:]) > CARD_SVD_SIZE and not is_on_host(A):
        return _svd_by_gram(A)
    try:
        if isinstance(A, np.ndarray):
            parts = mapped(lambda each: np.linalg.svd(each, full_matrices=False), A)
            U, s, Vt = (np.stack(arrays) for arrays in zip(*parts, strict=True))
        else:
            U, s, Vt = xp.linalg.svd(A, full_matrices=False)
        return U, s, Vt
    except Exception as error:
        _require_failed_convergence(error)
        U, s, Vt = _one_by_one(A, _slow_svd)
        return U, s, Vt


def eigh(A: Array) -> tuple[Array, Array]:
    """Ascending eigenvalues and eigenvectors of symmetric matrices (..., N, N)."""
    xp, N = namespace(A), A.shape[-1]
    try:
        values, vectors = xp.linalg.eigh(A)
        return values, vectors
    except Exception as error:
        _require_failed_convergence(error)
        values, vectors = _one_by_one(xp.reshape(A, (-1, N, N)), _slow_eigh)
        return xp.reshape(values, A.shape[:-1]), xp.reshape(vectors, A.shape)


def cholesky(A: Array) -> Array:
    """Lower Cholesky factors of correlation matrices (M, N, N), which may be nearly singular.

    If the factorisation fails, the diagonal is raised by round-off, then by ten times as much,
    until it succeeds.
    """
    xp = namespace(A)
    eye = xp.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    round_off = A.shape[-1] * float(xp.finfo(A.dtype).eps)
    for shift in (0.0, *(round_off * 10.0**k for k in range(16))):
        try:
            factor = xp.linalg.cholesky(A + shift * eye)
            if bool(xp.all(xp.isfinite(factor))):
                return factor
        except Exception as error:
            _require_failed_convergence(error)
    raise ValueError("the hidden features contain NaN or infinity; check X and the activation.")


def positive_definite(A: Array, least: float) -> bool:
    """Whether all squared pivots of symmetric matrices (..., N, N) exceed ``least``."""
    xp = namespace(A)
    try:
        pivots = xp.linalg.diagonal(xp.linalg.cholesky(A))
    except Exception as error:
        _require_failed_convergence(error)
        return False
    return bool(xp.all(pivots**2 > least))


def inverse_and_log_det(A: Array) -> tuple[Array, Array] | None:
    """Inverse and log determinant of a matrix (N, N), or None if it is not positive definite."""
    if isinstance(A, np.ndarray):
        return _lapack_inverse(A)
    xp = namespace(A)
    try:
        half = inverted_triangle(xp.linalg.cholesky(A)[None, :, :])[0, :, :]
    except Exception as error:
        _require_failed_convergence(error)
        return None
    log_det = -2 * xp.sum(xp.log(xp.linalg.diagonal(half)))
    return (half.T @ half, log_det) if bool(xp.isfinite(log_det)) else None


def _lapack_inverse(A: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Inverse and log determinant by LAPACK's potri, which computes one triangle."""
    potrf, potri = scipy.linalg.get_lapack_funcs(("potrf", "potri"), (A,))
    factor, failed = potrf(A.T, lower=True, clean=True, overwrite_a=True)
    if failed or not np.all(np.isfinite(np.diagonal(factor))):
        return None
    log_det = 2 * np.sum(np.log(np.diagonal(factor)))
    half, _ = potri(factor, lower=True, overwrite_c=True)
    inverse = half + half.T
    np.fill_diagonal(inverse, np.diagonal(half))
    return inverse, log_det


def _require_failed_convergence(error: Exception) -> None:
    """Re-raise every error except a failed factorisation of an array library."""
    if type(error).__name__ not in ("LinAlgError", "_LinAlgError"):
        raise error


def _one_by_one(A: Array, factorise: Callable[[np.ndarray], tuple[np.ndarray, ...]]) -> Any:
    parts = [factorise(matrix) for matrix in to_numpy(A)]
    return tuple(like(np.stack(arrays), A) for arrays in zip(*parts, strict=True))


def _slow_svd(A: np.ndarray) -> tuple[np.ndarray, ...]:
    """QR iteration, which converges where divide and conquer does not."""
    U, s, Vt = scipy.linalg.svd(A, full_matrices=False, lapack_driver="gesvd")
    return U, s, Vt


def _slow_eigh(A: np.ndarray) -> tuple[np.ndarray, ...]:
    values, vectors = scipy.linalg.eigh(A, driver="ev")
    return values, vectors


def _svd_by_gram(A: Array) -> tuple[Array, Array, Array]:
    xp = namespace(A)
    values, V = xp.linalg.eigh(transposed(A) @ A)
    rank = min(A.shape[-2:])
    order = xp.arange(V.shape[-1] - 1, V.shape[-1] - 1 - rank, -1, device=V.device)
    V, values = xp.take(V, order, axis=-1), xp.take(values, order, axis=-1)
    s = xp.sqrt(xp.clip(values, min=0.0))
    tiny = float(xp.finfo(A.dtype).eps) ** 0.5 * s[..., :1]
    safe = xp.where(s > tiny, s, xp.ones_like(s))
    U = xp.where((s > tiny)[..., None, :], (A @ V) / safe[..., None, :], xp.zeros_like(A @ V))
    return U, s, transposed(V)
