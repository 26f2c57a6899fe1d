"""Bilinear forms over pairs of members, in every shape, against explicit n x n matrices."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose

from ulmus.core.data.source import RowBlocks
from ulmus.core.ridge.member_pairs import (
    COMMON,
    GROUP_MEMBERS,
    GROUP_UNITS,
    OTHERS,
    OWN,
    PairGram,
    member_groups,
)
from ulmus.core.variance.quadratic_forms import JackknifeForm, PairForms, RegeneratedForm, row_form

M, N, n, p, more = 4, 5, 17, 6, 3
pairings = pytest.mark.parametrize("pairing", [COMMON, OWN, OTHERS], ids=lambda kind: kind.name)


@pytest.fixture
def parts():
    """Rows Q (M, N, n), their noise variances, and two sets of functionals t and u."""
    rng = np.random.default_rng(0)
    Q = rng.standard_normal((M, N, n))
    return Q, rng.uniform(0.2, 2, (M, n)), rng.standard_normal((M, N, p)), rng


def explicit_sums(Q, t, u, D):
    """Sums of z_m' D_ml zeta_l over m = l and over m != l, with n x n matrices D(m, l)."""
    z, zeta = (np.einsum("mjn,mjp->mpn", Q, a) for a in (t, u))
    single = sum(z[m] @ D(m, m) @ zeta[m].T for m in range(M))
    pairs = [(m, k) for m in range(M) for k in range(M) if m != k]
    return single, sum(z[m] @ D(m, k) @ zeta[k].T for m, k in pairs)


def explicit_pairing(pairing, S):
    """D(m, l) from one matrix S_k per member."""
    if pairing is COMMON:
        return lambda m, k: np.eye(len(S[0]))
    if pairing is OWN:
        return lambda m, k: (S[m] + S[k]) / 2
    return lambda m, k: sum(S) - S[m] - (S[k] if k != m else 0)


def assert_sums(form, expected, t, u):
    """The form gives these sums for t with u, and their diagonals for t with itself."""
    assert_allclose(form.sums(t, u), expected[:2], rtol=1e-10, atol=1e-10)
    diagonals = [np.diagonal(a) for a in expected[2:]]
    assert_allclose(form.sums(t), diagonals, rtol=1e-10, atol=1e-10)
    assert_allclose(form.total(t), sum(diagonals), rtol=1e-10, atol=1e-10)


@pairings
def test_primal_and_dual_forms_are_the_explicit_matrices(parts, pairing):
    Q, omega, t, rng = parts
    u = rng.standard_normal((M, N, more))
    D = explicit_pairing(pairing, [np.diag(o) for o in omega])
    expected = (*explicit_sums(Q, t, u, D), *explicit_sums(Q, t, t, D))
    dual = row_form(Q, pairing, None if pairing is COMMON else omega)
    for form in (dual, dual.primal(), dual.primal().primal()):
        assert_sums(form, expected, t, u)


@pairings
def test_sums_by_member_and_by_pair_are_blocks_of_the_explicit_matrices(
    parts, pairing, monkeypatch
):
    monkeypatch.setattr("ulmus.core.arrays.backend.BLOCK_ELEMENTS", 1)  # several blocks of rows
    _, _, t, rng = parts
    Q, omega = rng.standard_normal((M, N, 700)), rng.uniform(0.2, 2, (M, 700))
    D = explicit_pairing(pairing, [np.diag(o) for o in omega])
    K = [[Q[m] @ D(m, k) @ Q[k].T for k in range(M)] for m in range(M)]
    single = [K[m][m] @ t[m] for m in range(M)]
    distinct = [sum(K[m][k] @ t[k] for k in range(M) if k != m) for m in range(M)]
    by_pair = [[np.diagonal(t[m].T @ K[m][k] @ t[k]) for k in range(M)] for m in range(M)]
    dual = row_form(Q, pairing, None if pairing is COMMON else omega)
    for form in (dual, dual.primal()):
        assert_allclose(form.applied(t), (single, distinct), rtol=1e-10, atol=1e-9)
        assert_allclose(form.by_pair(t), by_pair, rtol=1e-10, atol=1e-9)
    noise = [[np.diagonal(D(m, k)) for k in range(M)] for m in range(M)]
    assert_allclose(pairing.between(omega), noise, rtol=1e-12)


@pytest.mark.parametrize("pairing", [OWN, OTHERS], ids=lambda kind: kind.name)
def test_the_jackknife_form_is_diagonal_minus_rank_one(parts, pairing):
    Q, _, t, rng = parts
    u, r = rng.standard_normal((M, N, more)), rng.standard_normal((M, n))
    S = [(n - 1) / n * (np.diag(r_m**2) - np.outer(r_m, r_m) / n) for r_m in r]
    D = explicit_pairing(pairing, S)
    expected = (*explicit_sums(Q, t, u, D), *explicit_sums(Q, t, t, D))
    dual = row_form(Q, pairing, r**2)
    for diagonal in (dual, dual.primal()):
        form = JackknifeForm(diagonal, Q @ r.T, n, pairing.degree)
        assert_sums(form, expected, t, u)
        assert_sums(form.primal(), expected, t, u)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_regenerated_form_makes_its_rows_anew(make_layer, monkeypatch, weighted):
    monkeypatch.setattr("ulmus.core.arrays.backend.BLOCK_ELEMENTS", 1)  # several blocks of rows
    rng = np.random.default_rng(0)
    X, y, omega = rng.uniform(-1, 1, (1500, 3)), np.zeros((1, 1500)), rng.uniform(0.2, 2, 1500)
    root = rng.uniform(0.5, 2, 1500) if weighted else None
    layer, to_t = make_layer(M, N, 3), rng.standard_normal((M, N, N))
    form = RegeneratedForm(layer, to_t, RowBlocks(X, y, root, np.empty(0)), omega)
    Q = to_t @ (layer(X) * (1.0 if root is None else root))
    kept = row_form(Q, OWN, np.broadcast_to(omega, (M, 1500)))
    t, u = rng.standard_normal((M, N, p)), rng.standard_normal((M, N, more))
    for ours in (form, form.primal()):
        assert_allclose(ours.sums(t, u), kept.sums(t, u), rtol=1e-9)
        assert_allclose(ours.sums(t), kept.sums(t), rtol=1e-9)
        assert_allclose(ours.total(t), kept.total(t), rtol=1e-9)


@pairings
def test_covariances_are_symmetric_and_have_the_variances_on_their_diagonal(parts, pairing):
    Q, omega, t, _ = parts
    forms = PairForms(pairing.name, (row_form(Q, pairing, omega),), np.array([2.0, 0.5]))
    joint, alone = forms.means(t, t), forms.means(t)
    for covariance, variance in zip(joint, alone, strict=True):
        assert covariance.shape == (2, p, p)
        assert_allclose(covariance, np.swapaxes(covariance, 1, 2), rtol=1e-10, atol=1e-12)
        assert_allclose(np.diagonal(covariance, axis1=1, axis2=2), variance, rtol=1e-10)


def test_a_functional_is_a_combination_of_points(fitted_small):
    # An average over points is a point whose features are the average: any estimate agrees with
    # the explicit smoother rows.
    fit, (H, h, y, alpha, intercept, w), X = fitted_small
    rng = np.random.default_rng(0)
    A = rng.dirichlet(np.ones(len(X)), 3)
    ours = fit.parts_of(np.einsum("ap,mkp->mka", A, fit.features(X)), "BR")
    z = oracles.smoother_rows(H, h, alpha, intercept, w, weighted=True)
    combined = np.einsum("ap,mpn->man", A, z)
    f = np.mean(combined, axis=0) @ (oracles.root_weights(len(y), w) * y)
    assert_allclose(ours.mean[:, 0], f, rtol=1e-9)
    assert_allclose(ours.U[:, 0], oracles.br(combined, fit.sigma2[0]), rtol=1e-8)


@pytest.fixture
def fitted_small(make_table, hidden):
    """A core fit with the oracles' arguments and the points."""
    from models import member_or_ensemble

    data = make_table(40)
    model = member_or_ensemble(4, 6, alpha=0.3).fit(data.X, data.y, data.w)
    H, h = (hidden(model, X, data.X, data.w) for X in (data.X, data.X_new))
    return model.fitted_, (H, h, data.y, 0.3, True, data.w), data.X_new


def test_a_rotated_gram_is_the_gram_of_the_rotated_rows(parts):
    Q, omega, t, rng = parts
    A = rng.standard_normal((M, N, N))
    gram = row_form(Q, OWN, omega).primal()
    before = gram.sums(t)
    ours = gram.rotated(A)
    assert_allclose(ours.sums(t), row_form(A @ Q, OWN, omega).primal().sums(t), rtol=1e-10)
    assert_allclose(gram.sums(t), before, rtol=1e-14)


def test_pairs_alone_are_the_sums_without_single_members(parts):
    Q, _, t, _ = parts
    gram = PairGram.zeros(N, [slice(0, M)], like=Q)
    gram.add_pairs(Q)
    single, distinct = gram.sums(t)
    assert_allclose(single, 0)
    assert_allclose(distinct, row_form(Q, COMMON).sums(t).distinct, rtol=1e-10)


@pytest.mark.parametrize("members", [1, 2, 3, 5, 20, 21])
@pytest.mark.parametrize("neurons", [1, 100, 250, 500, 900, 5000])
def test_groups_have_bounded_sizes(members, neurons):
    groups = member_groups(members, neurons)
    assert [m for group in groups for m in range(group.start, group.stop)] == list(range(members))
    sizes = [group.stop - group.start for group in groups]
    assert max(sizes) <= GROUP_MEMBERS
    assert max(sizes) * neurons <= max(GROUP_UNITS, neurons)
    assert len(groups) >= min(2, members)
