r"""Bilinear forms over pairs of members, from which variances and covariances are computed.

For functionals with coordinates t and u, an estimate combines a sum over single members and a sum
over pairs of distinct members,

.. math:: \sum_m z_m' D_{mm} \zeta_m \quad\text{and}\quad \sum_{m \ne l} z_m' D_{ml} \zeta_l,

with z = Q t, :math:`\zeta` = Q u, and D of :class:`~ulmus.core.ridge.member_pairs.Pairing`. The
primal form, :class:`~ulmus.core.ridge.member_pairs.PairGram`, stores the matrices Q_m' D_ml Q_l;
the dual form, :class:`RowForm`, stores Q and sums over training rows. Both return the same numbers;
the smaller one is cheaper. Without u, the sums are of each t with itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from ulmus.core.arrays.backend import (
    Array,
    contracted,
    member_products,
    namespace,
    row_blocks,
    transposed,
)
from ulmus.core.arrays.threads import mapped
from ulmus.core.data.source import RowBlocks
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.ridge.member_pairs import (
    COMMON,
    OWN,
    PAIRINGS,
    PairGram,
    Pairing,
    PairSums,
    own_products,
)
from ulmus.core.ridge.preconditioner import scaled_rows


@runtime_checkable
class Form(Protocol):
    """Both sums for t (M, N, p), with itself or with u (M, N, p')."""

    def sums(self, t: Array, u: Array | None = None) -> PairSums:
        """Both sums."""

    def total(self, t: Array, u: Array | None = None) -> Array:
        """Sum over all pairs, including those of a member with itself, (p,) or (p, p')."""

    def primal(self) -> Form:
        """The same form without training rows."""


@runtime_checkable
class PairwiseForm(Form, Protocol):
    """A form with a matrix K_ml = Q_m' D_ml Q_l for each pair of members."""

    def applied(self, t: Array) -> PairSums:
        """Sums over l of K_ml t_l, within members and over distinct pairs, each (M, N, p)."""

    def by_pair(self, t: Array) -> Array:
        """The terms t_m' K_ml t_l of both sums for all m and l, shape (M, M, p)."""

    def stacked(self, group: slice) -> Array:
        """The matrices of the k members of a group as one, shape (k N, k N)."""


@dataclass(frozen=True)
class RowForm:
    """The sums over training rows, for fewer rows than features."""

    Q: Array  # (M, N, n): coordinates of the training rows
    pairing: str  # name of the pairing
    # (M, n) or (1, n): noise variances of the rows; None for homoskedastic noise.
    omega: Array | None
    single: Array  # (M, N, N): sums over rows within members, with D_mm
    same: Array  # (M, N, N): the same with the formula of D_ml for l = m

    def sums(self, t: Array, u: Array | None = None) -> PairSums:
        """Both sums for t (M, N, p), with itself or with u (M, N, p')."""
        joint, right = u is not None, t if u is None else u
        pairs = _all_pairs(self.Q, t, u, PAIRINGS[self.pairing], self.omega)
        single = contracted(t, self.single @ right, joint=joint)
        if self.same is self.single:
            return PairSums(single, pairs - single)
        return PairSums(single, pairs - contracted(t, self.same @ right, joint=joint))

    def total(self, t: Array, u: Array | None = None) -> Array:
        """Sum over all pairs, including those of a member with itself, (p,) or (p, p')."""
        pairing = PAIRINGS[self.pairing]
        if pairing.single is not pairing.member:
            return sum(self.sums(t, u))
        return _all_pairs(self.Q, t, u, pairing, self.omega)

    def applied(self, t: Array) -> PairSums:
        """Sums over l of K_ml t_l, within members and over distinct pairs, each (M, N, p)."""
        z, shares = _summed(self.Q, t), PAIRINGS[self.pairing].member
        if shares is None:
            pairs = _by_member(self.Q, z)
        else:
            shared = self.Q * shares(self.omega)[:, None, :]
            pairs = 0.5 * (_by_member(shared, z) + _by_member(self.Q, _summed(shared, t)))
        return PairSums(self.single @ t, pairs - self.same @ t)

    def by_pair(self, t: Array) -> Array:
        """The terms t_m' K_ml t_l of both sums for all m and l, shape (M, M, p)."""
        xp, (M, _, p) = namespace(t), t.shape
        shares, products = PAIRINGS[self.pairing].member, 0.0
        v = None if shares is None else shares(self.omega)
        for rows in row_blocks(self.Q.shape[2], M * p, self.Q):
            z = xp.permute_dims(transposed(t) @ self.Q[:, :, rows], (1, 0, 2))
            left = z if v is None else z * v[:, rows]
            products = products + left @ transposed(z)
        pairs = xp.permute_dims(0.5 * (products + transposed(products)), (1, 2, 0))
        same = xp.eye(M, dtype=t.dtype, device=t.device)[:, :, None]
        return pairs * (1 - same) + xp.sum(t * (self.single @ t), axis=1) * same

    def stacked(self, group: slice) -> Array:
        """Products of the rows Q of the k members of a group, shape (k N, k N)."""
        rows = namespace(self.Q).reshape(self.Q[group, :, :], (-1, self.Q.shape[2]))
        return rows @ rows.T

    def primal(self) -> PairGram:
        """The same sums as matrices."""
        M, N, _ = self.Q.shape
        gram = PairGram.zeros(N, [slice(0, M)], like=self.Q)
        if self.omega is not None and self.omega.shape[0] == 1:
            gram.add(self.Q * self.omega[0, :] ** 0.5)
        else:
            gram.add(self.Q, PAIRINGS[self.pairing], self.omega)
        return gram


def _summed(Q: Array, t: Array) -> Array:
    """Sum over members of Q_m' t_m, shape (n, p)."""
    return contracted(Q, t, joint=True)


def _by_member(Q: Array, z: Array) -> Array:
    """Products Q_m z with z (n, p), shape (M, N, p)."""
    return namespace(Q).stack(mapped(lambda m: Q[m, :, :] @ z, range(Q.shape[0])))


def _all_pairs(Q: Array, t: Array, u: Array | None, pairing: Pairing, omega: Array | None) -> Array:
    """Sum over all pairs of members through rows Q (M, N, n), shape (p,) or (p, p')."""
    joint, right = u is not None, t if u is None else u
    z = _summed(Q, t)
    zeta = z if right is t else _summed(Q, right)
    if pairing.member is None:
        return contracted(z, zeta, joint=joint)
    if omega is not None and omega.shape[0] == 1:  # all members share the variances
        return contracted(z * omega[0, :, None], zeta, joint=joint)
    # D_ml is the mean of the terms of both members.
    shared = Q * pairing.member(omega)[:, None, :]
    pairs = contracted(z, _summed(shared, right), joint=joint)
    if not joint:
        return pairs
    other = pairs.T if right is t else contracted(_summed(shared, t), zeta, joint=True)
    return 0.5 * (pairs + other)


def row_form(Q: Array, pairing: Pairing, omega: Array | None = None) -> RowForm:
    """Dual form of the rows Q, with precomputed sums within members."""
    if pairing.single is None or pairing.member is None:
        own = own_products(Q)
        return RowForm(Q, pairing.name, None, own, own)
    single = same = own_products(Q, pairing.single(omega))
    if pairing.member is not pairing.single:
        same = member_products(Q * pairing.member(omega)[:, None, :], Q)
    return RowForm(Q, pairing.name, omega, single, same)


@dataclass(frozen=True)
class RegeneratedForm:
    """A dual form that recomputes Q from the training rows, if there are too many to store it."""

    layer: HiddenLayer  # the hidden units
    to_t: Array  # (M, N, N'): map from features to the first N coordinates
    rows: RowBlocks  # the training rows
    omega: Array  # (n,): noise variance of each row, equal for all members

    def sums(self, t: Array, u: Array | None = None) -> PairSums:
        """Both sums for t (M, N, p), with itself or with u (M, N, p')."""
        t, u = self._leading(t), self._leading(u)
        parts = [row_form(Q, OWN, omega).sums(t, u) for Q, omega in self._rows()]
        return PairSums(sum(p.single for p in parts), sum(p.distinct for p in parts))

    def total(self, t: Array, u: Array | None = None) -> Array:
        """Sum over all pairs, including those of a member with itself, (p,) or (p, p')."""
        t, u = self._leading(t), self._leading(u)
        return sum(_all_pairs(Q, t, u, OWN, omega) for Q, omega in self._rows())

    def _leading(self, t: Array | None) -> Array | None:
        return None if t is None else t[:, : self.to_t.shape[1], :]

    def primal(self) -> PairGram:
        """The same sums as matrices."""
        M, N, _ = self.to_t.shape
        total = PairGram.zeros(N, [slice(0, M)], like=self.to_t)
        for Q, omega in self._rows():
            total.add(Q * omega[0, :] ** 0.5)
        return total

    def _rows(self) -> Iterator[tuple[Array, Array]]:
        """Blocks of Q (M, N, b) with the noise variances of their rows (M, b)."""
        for block in self.rows:
            Q = self.to_t @ scaled_rows(self.layer(block.X), block.root_weight)
            xp = namespace(Q)
            omega = xp.take(self.omega, xp.asarray(block.rows, device=Q.device))
            omega = xp.broadcast_to(omega, (Q.shape[0], Q.shape[2]))
            yield Q, omega


@dataclass(frozen=True)
class JackknifeForm:
    r"""A form with the paper's jackknife matrices, diagonal minus rank one.

    :math:`\Sigma_k = \frac{n-1}{n}(\Omega_k - r_k r_k'/n)`, with the leave-one-out residuals
    r of each member. Only the products :math:`c_{mk} = Q_m' r_k` are needed.
    """

    diagonal: Form  # the form of the diagonal part
    c: Array  # (M, N, M): products c_mk, with k last
    n: int  # number of rows
    degree: int  # degree of the pairing

    def sums(self, t: Array, u: Array | None = None) -> PairSums:
        """Both sums for t (M, N, p), with itself or with u (M, N, p')."""
        joint = u is not None
        # z_m' r_k for all m and k, each (M, M, p).
        g = transposed(self.c) @ t
        e = g if u is None else transposed(self.c) @ u
        own, own_e = (_diagonal(a) for a in (g, e))
        xp = namespace(t)
        total, total_e = xp.sum(g, axis=0), xp.sum(e, axis=0)
        own_own = contracted(own, own_e, joint=joint)
        if self.degree == 2:
            single = own_own
            cross = contracted(own, total_e, joint=joint) + contracted(total, own_e, joint=joint)
            distinct = 0.5 * cross - own_own
        else:
            single = contracted(g, e, joint=joint) - own_own
            distinct = contracted(total - own, total_e - own_e, joint=joint) - single
        base, factor = self.diagonal.sums(t, u), (self.n - 1) / self.n
        return PairSums(
            factor * (base.single - single / self.n), factor * (base.distinct - distinct / self.n)
        )

    def total(self, t: Array, u: Array | None = None) -> Array:
        """Sum over all pairs, including those of a member with itself, (p,) or (p, p')."""
        return sum(self.sums(t, u))

    def primal(self) -> JackknifeForm:
        """The same form with a primal diagonal part."""
        return replace(self, diagonal=self.diagonal.primal())


def _diagonal(g: Array) -> Array:
    return namespace(g).stack([g[m, m, :] for m in range(g.shape[0])])


@dataclass(frozen=True)
class PairForms:
    """The forms of one noise assumption, for each output or common to all, as variances."""

    pairing: str  # name of the pairing
    forms: tuple[Form, ...]  # one for each output, or one for all
    scale: Array  # (K,): factors of the forms

    @property
    def shared(self) -> Form:
        """The form of all outputs, or of the first."""
        return self.forms[0]

    def means(self, t: Array, u: Array | None = None) -> PairSums:
        """Means over members and over distinct members, each (K, p) or (K, p, p')."""
        xp, M = namespace(t), t.shape[0]
        parts = [PAIRINGS[self.pairing].means(form.sums(t, u), M) for form in self.forms]
        parts = parts * (self.scale.shape[0] if len(parts) == 1 else 1)
        single, distinct = (xp.stack(list(a)) for a in zip(*parts, strict=True))
        scale = xp.reshape(self.scale, (-1, *[1] * (single.ndim - 1)))
        return PairSums(single * scale, distinct * scale)

    def total(self, t: Array, u: Array | None = None) -> Array:
        """Variance of the sum over members, (K, p), or its covariance, (K, p, p')."""
        xp = namespace(t)
        parts = [form.total(t, u) for form in self.forms]
        parts = xp.stack(parts * (self.scale.shape[0] if len(parts) == 1 else 1))
        if u is None:
            parts = xp.clip(parts, min=0.0)
        return parts * xp.reshape(self.scale, (-1, *[1] * (parts.ndim - 1)))

    def primal(self) -> PairForms:
        """The same without training rows."""
        return replace(self, forms=tuple(form.primal() for form in self.forms))


def common_forms(form: Form, sigma2: Array) -> PairForms:
    """Forms of homoskedastic noise."""
    return PairForms(COMMON.name, (form,), sigma2)
