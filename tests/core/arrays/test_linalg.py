"""Factorisations against plain NumPy, and what they do where LAPACK gives up."""

import numpy as np
import pytest
from models import plain_ensemble
from numpy.testing import assert_allclose

from ulmus.core.arrays import linalg
from ulmus.core.arrays.backend import to_numpy


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(3, 20, 6), (3, 6, 6), (3, 4, 6), (1, 200, 70)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_triangular_factors(rng, shape, dtype):
    A = rng.standard_normal(shape).astype(dtype)
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    R = linalg.triangular_factor(A)
    assert R.dtype == dtype
    assert_allclose(np.tril(R, -1), 0)
    gram = A.transpose(0, 2, 1) @ A
    assert_allclose(R.transpose(0, 2, 1) @ R, gram, atol=tolerance * np.abs(gram).max())
    T = linalg.ridge_triangle(R, 0.7)
    assert T.shape == (shape[0], shape[2], shape[2])
    assert_allclose(np.tril(T, -1), 0)
    ridge = gram + 0.49 * np.eye(shape[2])
    assert_allclose(T.transpose(0, 2, 1) @ T, ridge, atol=tolerance * np.abs(gram).max())


@pytest.mark.parametrize("N", [3, 40])
def test_triangular_products_and_inverses(rng, N):
    L = np.tril(rng.standard_normal((4, N, N))) + N * np.eye(N)
    B = rng.standard_normal((4, N, 9))
    assert_allclose(linalg.lower_product(L, B), L @ B, rtol=1e-12, atol=1e-12)
    U = L.transpose(0, 2, 1)
    assert_allclose(linalg.upper_product(U, B), U @ B, rtol=1e-12, atol=1e-12)
    wide = rng.standard_normal((4, 2, N))
    assert_allclose(linalg.upper_product(wide, B), wide @ B, rtol=1e-12, atol=1e-12)
    assert_allclose(linalg.inverted_triangle(L) @ L, np.tile(np.eye(N), (4, 1, 1)), atol=1e-10)


def test_products_by_halves(torch, rng, monkeypatch):
    monkeypatch.setattr(linalg, "HOST_TRIANGLE", 4)
    L, B = np.tril(rng.standard_normal((2, 13, 13))), rng.standard_normal((2, 13, 5))
    ours = linalg.lower_product(torch.asarray(L), torch.asarray(B))
    assert_allclose(to_numpy(ours), L @ B, rtol=1e-12, atol=1e-12)
    U = np.ascontiguousarray(L.transpose(0, 2, 1))
    ours = linalg.upper_product(torch.asarray(U), torch.asarray(B))
    assert_allclose(to_numpy(ours), U @ B, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 9, 9), (2, 5, 9)])
def test_singular_values_by_the_gram_matrix(torch, rng, monkeypatch, shape):
    monkeypatch.setattr(linalg, "CARD_SVD_SIZE", 1)
    monkeypatch.setattr(linalg, "is_on_host", lambda array: False)
    A = rng.standard_normal(shape)
    U, s, Vt = map(to_numpy, linalg.svd(torch.asarray(A)))
    assert_allclose(s, np.linalg.svd(A, compute_uv=False), rtol=1e-7)
    assert_allclose(U * s[:, None, :] @ Vt, A, atol=1e-7)


def gives_up(*args, **kwargs):
    raise np.linalg.LinAlgError("SVD did not converge")


def test_a_factorisation_that_does_not_converge_has_a_fallback(rng, monkeypatch):
    A = rng.standard_normal((3, 7, 5))
    S = A[0].T @ A[0]
    monkeypatch.setattr(np.linalg, "svd", gives_up)
    monkeypatch.setattr(np.linalg, "eigh", gives_up)
    U, s, Vt = linalg.svd(A)
    assert_allclose(U * s[:, None, :] @ Vt, A, atol=1e-12)
    values, vectors = linalg.eigh(S)
    assert np.all(np.diff(values) >= 0)
    assert_allclose(vectors * values @ vectors.T, S, atol=1e-12)
    stack = np.stack([[S, 2 * S, 3 * S]])
    values, vectors = linalg.eigh(stack)
    back = vectors * values[..., None, :] @ np.swapaxes(vectors, -1, -2)
    assert_allclose(back, stack, atol=1e-12)


def test_positive_definite_means_every_matrix_and_by_a_margin(xp):
    eye, low = np.eye(3), np.diag([1.0, 1e-3, 1.0])
    for matrices, expected in [
        ([eye, low], True),
        ([eye, 1e-4 * low], False),
        ([eye, -eye], False),
    ]:
        assert linalg.positive_definite(xp.asarray(np.stack(matrices)), 1e-6) is expected


def test_no_failed_factorisation_reaches_a_user(make_table, monkeypatch):
    data = make_table(60)
    expected = plain_ensemble(4, 12, random_state=0).fit(data.X, data.y)
    before = expected.predict_interval(data.X_new, kind="confidence")
    monkeypatch.setattr(np.linalg, "svd", gives_up)
    monkeypatch.setattr(np.linalg, "eigh", gives_up)
    ours = plain_ensemble(4, 12, random_state=0).fit(data.X, data.y)
    assert_allclose(ours.predict(data.X_new), expected.predict(data.X_new), rtol=1e-9)
    assert_allclose(ours.predict_interval(data.X_new, kind="confidence"), before, rtol=1e-6)


def test_other_errors_pass(monkeypatch):
    def wrong(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(np.linalg, "svd", wrong)
    with pytest.raises(MemoryError):
        linalg.svd(np.eye(3)[None])


def test_a_singular_correlation_has_a_cholesky_factor():
    A = np.ones((2, 4, 4))
    L = linalg.cholesky(A)
    assert_allclose(L @ L.transpose(0, 2, 1), A, atol=1e-10)
    regular = np.stack([np.eye(4), 0.5 * np.eye(4) + 0.5])
    assert_allclose(linalg.cholesky(regular), np.linalg.cholesky(regular), rtol=1e-14)
    with pytest.raises(ValueError, match="NaN or infinity"):
        linalg.cholesky(np.full((1, 2, 2), np.nan))


@pytest.mark.parametrize("N", [40, 120])
def test_rows_that_repeat_have_a_fit(N):
    # A tenth of the rows are distinct, and there are more units than distinct rows.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 6))[rng.integers(0, 20, 200)]
    y = X[:, 0] + 0.1 * rng.standard_normal(200)
    model = plain_ensemble(4, N, random_state=0).fit(X, y)
    for kind in ("prediction", "confidence"):
        assert np.all(np.isfinite(model.predict_interval(X, kind=kind)))
