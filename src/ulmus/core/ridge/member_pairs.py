r"""Sums over pairs of members: pairings of their noise, groups of members, and Gram matrices.

A variance estimate sums :math:`z_m' D_{ml} z_l` over members and over pairs of distinct members.
A :class:`Pairing` defines the diagonal matrices D by omega, the noise variance of each row
estimated by each member; a :class:`PairGram` is the sum over rows of :math:`A_m D_{ml} A_l'`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ulmus.core.arrays.backend import (
    Array,
    column_sums,
    contracted,
    is_on_host,
    member_products,
    namespace,
    product_into,
    row_products,
    transposed,
)

# Largest numbers of members and of units of a group. The cost is cubic in the number of units, and
# larger groups change neither noise nor coverage noticeably (benchmarks/coverage.py).
GROUP_MEMBERS = 4
GROUP_UNITS = 800


class PairSums(NamedTuple):
    """Sums over single members and over ordered pairs of distinct members.

    Each is (p,) or (p, p'), or (M, N, p) before multiplication by the first factor.
    """

    single: Array
    distinct: Array


@dataclass(frozen=True)
class Pairing:
    """Definition of D_mm and D_ml by omega, shape (M, n)."""

    name: str  # name of the pairing
    degree: int  # number of distinct members in a term of the sum over pairs
    # Returns D_mm, shape (M, n), from omega; None for homoskedastic noise, whose variance is a
    # factor of the sums.
    single: Callable[[Array], Array] | None = None
    # Returns v, shape (M, n), from omega: D_ml is the mean of v_m and v_l.
    member: Callable[[Array], Array] | None = None

    def means(self, sums: PairSums, M: int) -> PairSums:
        """Means over members and over distinct members; an empty mean is zero."""
        others = M - 1 if self.degree == 3 else 1
        pairs = M * (M - 1) * (M - 2 if self.degree == 3 else 1)
        distinct = sums.distinct / pairs if pairs else sums.distinct
        return PairSums(sums.single / (M * others) if others else sums.single, distinct)

    def between(self, omega: Array) -> Array:
        """D_ml of rows with noise variances omega (M, n), for all m and l, shape (M, M, n)."""
        xp, (M, n) = namespace(omega), omega.shape
        if self.single is None or self.member is None:
            return xp.ones((M, M, n), dtype=omega.dtype, device=omega.device)
        v = self.member(omega)
        own = xp.eye(M, dtype=omega.dtype, device=omega.device)[:, :, None]
        return 0.5 * (v[:, None, :] + v) + own * (self.single(omega) - v)


def _own(omega: Array) -> Array:
    return omega


def _others_single(omega: Array) -> Array:
    return namespace(omega).sum(omega, axis=0) - omega


def _others_member(omega: Array) -> Array:
    # The mean of v_m and v_l is the sum of omega over all members but m and l.
    return namespace(omega).sum(omega, axis=0) - 2 * omega


# Homoskedastic noise; the mean of both members' omega; the sum of all other members' omega.
COMMON = Pairing("common", 2)
OWN = Pairing("own", 2, _own, _own)
OTHERS = Pairing("others", 3, _others_single, _others_member)
# Correlated noise: coordinates of rows are multiplied by a root of its covariance, and members are
# then combined as for one noise variance.
CORRELATED = Pairing("correlated", 2)
# A variance of each row that all members share, omega of shape (1, n).
MODELLED = Pairing("modelled", 2, _own, _own)
PAIRINGS = {pairing.name: pairing for pairing in (COMMON, OWN, OTHERS, CORRELATED, MODELLED)}


def member_groups(M: int, n_neurons: int) -> list[slice]:
    """Members in at least two groups, each of which is one wide network."""
    size = max(1, min(GROUP_MEMBERS, GROUP_UNITS // n_neurons))
    n_groups = min(M, max(2, -(-M // size)))
    edges = [round(g * M / n_groups) for g in range(n_groups + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def lone_members(M: int, start: int = 0) -> list[slice]:
    """Groups of one member, without pairs."""
    return [slice(m, m + 1) for m in range(start, M)]


# A GPU multiplies all pairs of members in one product, up to this number of units; above it, one
# member at a time, which computes only the symmetric half.
SPAN_UNITS = 512


@dataclass
class PairGram:
    """Sums over rows of A_m D_ml A_l' for all pairs of members, upper half only.

    Only the first N coordinates of A, t and u enter the sums.
    """

    single: Array  # (M, N, N): blocks on the diagonal
    # Element m contains the blocks (m, m+1), (m, m+2), ... of its group side by side.
    upper: list[Array]

    @classmethod
    def zeros(cls, N: int, groups: list[slice], *, like: Array) -> PairGram:
        """An empty sum over the pairs of members within groups that partition the members."""
        xp = namespace(like)
        M = groups[-1].stop

        def empty(*shape: int) -> Array:
            return xp.zeros(shape, dtype=like.dtype, device=like.device)

        ends = [group.stop for group in groups for _ in _members(group)]
        return cls(empty(M, N, N), [empty(N, (end - m - 1) * N) for m, end in enumerate(ends)])

    def stacked(self, group: slice) -> Array:
        """The full matrix of the k members of a group, shape (k N, k N)."""
        xp, N = namespace(self.single), self.single.shape[1]
        side = (group.stop - group.start) * N
        out = xp.zeros((side, side), dtype=self.single.dtype, device=self.single.device)
        for i, m in enumerate(_members(group)):
            here, after = slice(i * N, (i + 1) * N), slice((i + 1) * N, side)
            row = self.upper[m][:, : side - (i + 1) * N]
            out[here, here] = self.single[m, :, :]
            out[here, after] = row
            out[after, here] = row.T
        return out

    def with_single(self, single: Array) -> PairGram:
        """The same with other sums within members."""
        return PairGram(single, self.upper)

    def add_pairs(self, A: Array) -> None:
        """Add the rows A, shape (M, N, b), to the sums over distinct pairs."""
        if not any(row.shape[1] for row in self.upper):
            return
        A = self._leading(A)
        if is_on_host(A) or A.shape[1] > SPAN_UNITS:
            self._add_by_member(A, None)
        else:
            self._add_by_span(A, None)

    def add(self, A: Array, pairing: Pairing = COMMON, omega: Array | None = None) -> None:
        """Add the rows A, shape (M, N, b), with the noise variances omega, shape (M, b)."""
        A = self._leading(A)
        v = None if pairing.member is None else pairing.member(omega)
        same = None
        if is_on_host(A) or A.shape[1] > SPAN_UNITS:
            self._add_by_member(A, v)
        else:
            same = self._add_by_span(A, v)
        if same is None or pairing.single is not pairing.member:
            same = own_products(A, None if pairing.single is None else pairing.single(omega))
        self.single += same

    def _add_by_member(self, A: Array, v: Array | None) -> None:
        """Add the products of each member with those after it: the symmetric half."""
        xp, (_, N, b) = namespace(A), A.shape
        # One buffer for the scaled rows of every member: allocation is slower.
        scaled: Array = None if v is None else xp.empty_like(A)
        for m, row in enumerate(self.upper):
            partners = slice(m + 1, m + 1 + row.shape[1] // N)
            rest = A[partners, :, :]
            if v is not None:
                mean = (0.5 * (v[m, :] + v[partners, :]))[:, None, :]
                rest = product_into(scaled[partners, :, :], rest, mean)
            row += A[m, :, :] @ xp.reshape(rest, (row.shape[1], b)).T

    def _add_by_span(self, A: Array, v: Array | None) -> Array:
        """Add all products of a group as one product and its transpose, which is faster on a GPU.

        Returns the products of members with themselves, shape (M, N, N).
        """
        xp, (M, N, b) = namespace(A), A.shape
        first, same = 0, []
        while first < M:
            span = slice(first, first + 1 + self.upper[first].shape[1] // N)
            right = A[span, :, :]
            left = right if v is None else right * v[span, None, :]
            # The number of rows is given, as a block may contain no sampled row (b = 0).
            side = (span.stop - span.start) * N
            product = row_products(xp.reshape(left, (side, b)), xp.reshape(right, (side, b)))
            product = 0.5 * (product + product.T)
            for i, m in enumerate(_members(span)):
                here, after = slice(i * N, (i + 1) * N), slice((i + 1) * N, product.shape[0])
                same.append(product[here, here])
                self.upper[m] += product[here, after]
            first = span.stop
        return xp.stack(same)

    def __add__(self, other: PairGram) -> PairGram:
        """Sum over the rows of both."""
        upper = [a + b for a, b in zip(self.upper, other.upper, strict=True)]
        return PairGram(self.single + other.single, upper)

    def sums(self, t: Array, u: Array | None = None) -> PairSums:
        """Both sums for t (M, N, p), with itself or with u (M, N, p')."""
        joint, own, single = u is not None, u is None or u is t, self.within_members(t, u)
        t = self._leading(t)
        right = t if u is None else self._leading(u)
        distinct = namespace(t).zeros_like(single)
        for m, row in enumerate(self.upper[:-1]):
            distinct += contracted(t[m, :, :], row @ _partners(right, m, row), joint=joint)
            if joint and not own:
                distinct += contracted(row @ _partners(t, m, row), right[m, :, :], joint=True)
        if own:  # the terms of (l, m) are the transposed terms of (m, l)
            distinct = distinct + (distinct.T if joint else distinct)
        return PairSums(single, distinct)

    def within_members(self, t: Array, u: Array | None = None) -> Array:
        """Sum over single members, (p,) or (p, p')."""
        t = self._leading(t)
        right = t if u is None else self._leading(u)
        return contracted(t, self.single @ right, joint=u is not None)

    def total(self, t: Array, u: Array | None = None) -> Array:
        """Sum over all pairs, including those of a member with itself, (p,) or (p, p')."""
        return sum(self.sums(t, u))

    def applied(self, t: Array) -> PairSums:
        """Sums over l of K_ml t_l, within members and over distinct pairs, each (M, N, p)."""
        xp, N, every = namespace(t), self.single.shape[1], t
        t = self._leading(t)
        single, distinct = xp.zeros_like(every), xp.zeros_like(every)
        single[:, :N, :] = self.single @ t
        for m, row in enumerate(self.upper[:-1]):
            distinct[m, :N, :] += row @ _partners(t, m, row)
            products = xp.reshape(row.T @ t[m, :, :], (row.shape[1] // N, N, t.shape[2]))
            distinct[m + 1 : m + 1 + products.shape[0], :N, :] += products
        return PairSums(single, distinct)

    def by_pair(self, t: Array) -> Array:
        """The terms t_m' K_ml t_l of both sums for all m and l, shape (M, M, p)."""
        t = self._leading(t)
        xp, (M, N, p) = namespace(t), t.shape
        terms = xp.zeros((M, M, p), dtype=t.dtype, device=t.device)
        for m, row in enumerate(self.upper):
            terms[m, m, :] = column_sums(t[m, :, :], self.single[m, :, :] @ t[m, :, :])
            for k in range(m + 1, m + 1 + row.shape[1] // N):
                block = row[:, (k - m - 1) * N : (k - m) * N]
                terms[m, k, :] = column_sums(t[m, :, :], block @ t[k, :, :])
                terms[k, m, :] = terms[m, k, :]
        return terms

    def _leading(self, t: Array) -> Array:
        """The coordinates that enter the sums."""
        return t[:, : self.single.shape[1], :]

    def primal(self) -> PairGram:
        """The form itself, which contains no training row."""
        return self

    def rotated(self, A: Array) -> PairGram:
        """The same sums with each block B_ml replaced by A_m B_ml A_l'."""
        xp, A_t, N = namespace(A), transposed(A), A.shape[1]
        upper = []
        for m, row in enumerate(self.upper):
            k = row.shape[1] // A.shape[2]
            blocks = xp.reshape(A[m, :, :] @ row, (N, k, A.shape[2]))
            blocks = xp.permute_dims(blocks, (1, 0, 2)) @ A_t[m + 1 : m + 1 + k, :, :]
            upper.append(xp.reshape(xp.permute_dims(blocks, (1, 0, 2)), (N, k * N)))
        return PairGram(A @ self.single @ A_t, upper)


def _members(group: slice) -> range:
    return range(group.start, group.stop)


def _partners(t: Array, m: int, row: Array) -> Array:
    """The members after m of its group, whose blocks are in ``row``, stacked, shape (rest, p)."""
    _, N, p = t.shape
    return namespace(t).reshape(t[m + 1 : m + 1 + row.shape[1] // N, :, :], (row.shape[1], p))


def own_products(A: Array, v: Array | None = None) -> Array:
    """Sums over rows of A_m v_m A_m' for non-negative v (M, b), shape (M, N, N).

    Both factors are multiplied by the root of v: a matrix times its transpose costs half.
    """
    scaled = A if v is None else A * (v**0.5)[:, None, :]
    return member_products(scaled, scaled)
