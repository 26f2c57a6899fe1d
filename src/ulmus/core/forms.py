r"""Quadratic forms over pairs of members, the shape of every variance estimate.

An estimate needs two sums at a point x, one over single members and one over pairs,

.. math:: \sum_m z_m' D_{mm} z_m \quad\text{and}\quad \sum_{m \ne l} z_m' D_{ml} z_l,

with diagonal weights D. As z = Q t, they are forms in t(x) (primal, :class:`PairGram`: the
matrices Q_m' D_ml Q_l are kept) or sums over training rows (dual, :class:`RowForm`: Q is kept).
Both return the same numbers; the smaller of the two is also the cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

from ulmus.core.backend import (
    Array,
    column_sums,
    is_on_host,
    member_products,
    namespace,
    row_products,
)

# Members whose hidden layers, side by side, make one wider network.
GROUP_SIZE = 4


class PairSums(NamedTuple):
    """Sums over single members and over ordered pairs of distinct members, each (p,)."""

    single: Array
    distinct: Array


class Form(Protocol):
    """Anything that gives both sums at the points t, shape (M, N, p)."""

    def sums(self, t: Array) -> PairSums:
        """Evaluate the form."""


@dataclass(frozen=True)
class PairWeights:
    """Weights D of one kind of estimate, as functions of the squared residuals.

    ``omega`` has shape (M, n): the estimated noise variance of each row, by each member.

    Parameters
    ----------
    name : str
        What the weights are made of.
    degree : int
        Number of distinct members in a term of the sum over pairs.
    single : callable or None
        D_mm from omega, shape (M, n); None for weights of one.
    member : callable or None
        Member weights w from omega, shape (M, n): D_ml is the mean of w_m and w_l.
    """

    name: str
    degree: int
    single: Callable[[Array], Array] | None = None
    member: Callable[[Array], Array] | None = None

    def means(self, sums: PairSums, M: int) -> PairSums:
        """Turn sums into means over distinct members; an empty sum stays zero."""
        others = M - 1 if self.degree == 3 else 1
        pairs = M * (M - 1) * (M - 2 if self.degree == 3 else 1)
        distinct = sums.distinct / pairs if pairs else sums.distinct
        return PairSums(sums.single / (M * others), distinct)


def _own(omega: Array) -> Array:
    return omega


def _others_single(omega: Array) -> Array:
    return namespace(omega).sum(omega, axis=0) - omega


def _others_member(omega: Array) -> Array:
    # The mean of w_m and w_l is the sum of omega over all members but m and l.
    return namespace(omega).sum(omega, axis=0) - 2 * omega


# One noise variance for all rows, multiplied in later; the mean of the two members' own
# squared residuals; the sum of those of all other members.
COMMON = PairWeights("common", 2)
OWN = PairWeights("own", 2, _own, _own)
OTHERS = PairWeights("others", 3, _others_single, _others_member)


def member_groups(M: int) -> list[slice]:
    """Members cut into groups of about four, and at least two groups."""
    n_groups = min(M, max(2, -(-M // GROUP_SIZE)))
    edges = [round(g * M / n_groups) for g in range(n_groups + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def lone_members(M: int, start: int = 0) -> list[slice]:
    """Groups of one: no pairs at all."""
    return [slice(m, m + 1) for m in range(start, M)]


def _members(group: slice) -> range:
    return range(group.start, group.stop)


@dataclass
class PairGram:
    """Sums over rows of A_m D_ml A_l' for all pairs of members, upper half only.

    Parameters
    ----------
    single : array of shape (M, N, N)
        Blocks on the diagonal.
    upper : list of arrays
        Row m holds the blocks of m with the members after it in its group side by side:
        (m, m+1), (m, m+2), ...
    """

    single: Array
    upper: list[Array]

    @classmethod
    def zeros(cls, N: int, groups: list[slice], *, like: Array) -> PairGram:
        """An empty sum over the pairs of members within groups, which together are all of them."""
        xp = namespace(like)
        M = groups[-1].stop

        def empty(*shape: int) -> Array:
            return xp.zeros(shape, dtype=like.dtype, device=like.device)

        ends = [group.stop for group in groups for _ in _members(group)]
        return cls(empty(M, N, N), [empty(N, (end - m - 1) * N) for m, end in enumerate(ends)])

    def stacked(self, group: slice) -> Array:
        """The full matrix of the members of a group side by side, shape (k N, k N)."""
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

    def add(self, A: Array, weights: PairWeights, omega: Array | None = None) -> None:
        """Add the rows A, shape (M, N, b), with weights made from omega, shape (M, b)."""
        w = None if weights.member is None else weights.member(omega)
        same = None
        if is_on_host(A):
            self._add_by_member(A, w)
        else:
            same = self._add_by_span(A, w)
        if same is None or weights.single is not weights.member:
            same = _own_products(A, None if weights.single is None else weights.single(omega))
        self.single += same

    def _add_by_member(self, A: Array, w: Array | None) -> None:
        """Add the products of each member with those after it: the symmetric half only."""
        xp, (_, N, b) = namespace(A), A.shape
        for m, row in enumerate(self.upper):
            partners = slice(m + 1, m + 1 + row.shape[1] // N)
            rest = A[partners, :, :]
            if w is not None:
                rest = rest * (0.5 * (w[m, :] + w[partners, :]))[:, None, :]
            row += A[m, :, :] @ xp.reshape(rest, (-1, b)).T

    def _add_by_span(self, A: Array, w: Array | None) -> Array:
        """Add the same as one large product and its transpose, which a graphics card prefers.

        Returns the products of members with themselves, shape (M, N, N).
        """
        xp, (M, N, b) = namespace(A), A.shape
        first, same = 0, []
        while first < M:
            span = slice(first, first + 1 + self.upper[first].shape[1] // N)
            right = A[span, :, :]
            left = right if w is None else right * w[span, None, :]
            product = row_products(xp.reshape(left, (-1, b)), xp.reshape(right, (-1, b)))
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

    def sums(self, t: Array) -> PairSums:
        """Both forms at the points t, shape (M, N, p)."""
        xp = namespace(t)
        distinct = xp.zeros_like(t[0, 0, :])
        for m, row in enumerate(self.upper):
            rest = xp.reshape(t[m + 1 :, :, :], (-1, t.shape[2]))
            distinct += 2 * column_sums(t[m, :, :], row @ rest)
        return PairSums(column_sums(t, self.single @ t), distinct)

    def rotated(self, A: Array) -> PairGram:
        """The same sums with each block B_ml replaced by A_m B_ml A_l'."""
        xp = namespace(A)
        A_t = xp.permute_dims(A, (0, 2, 1))
        N = A.shape[1]
        upper = []
        for m, row in enumerate(self.upper):
            k = row.shape[1] // N
            blocks = xp.reshape(A[m, :, :] @ row, (N, k, N))
            blocks = xp.permute_dims(blocks, (1, 0, 2)) @ A_t[m + 1 : m + 1 + k, :, :]
            upper.append(xp.reshape(xp.permute_dims(blocks, (1, 0, 2)), (N, k * N)))
        return PairGram(A @ self.single @ A_t, upper)


@dataclass(frozen=True)
class RowForm:
    """The same forms through the training rows, for fewer rows than features.

    Parameters
    ----------
    Q : array of shape (M, N, n)
        Orthonormal rows of each member.
    weights : PairWeights
        Kind of weights.
    omega : array of shape (M, n) or None
        Squared residuals; None for ``common`` weights.
    single, same : arrays of shape (M, N, N) or None
        Sums over rows within members, with the weights of a single member and with those of a
        pair whose members are the same.
    """

    Q: Array
    weights: PairWeights
    omega: Array | None = None
    single: Array | None = None
    same: Array | None = None

    def sums(self, t: Array) -> PairSums:
        """Both forms at the points t, shape (M, N, p)."""
        xp = namespace(t)
        n, p = self.Q.shape[2], t.shape[2]
        stacked = xp.reshape(t, (-1, p))
        z_sum = xp.reshape(self.Q, (-1, n)).T @ stacked
        if self.weights.member is None:
            single = column_sums(t, t)
            return PairSums(single, column_sums(z_sum, z_sum) - single)
        weighted = self.Q * self.weights.member(self.omega)[:, None, :]
        pairs = column_sums(z_sum, xp.reshape(weighted, (-1, n)).T @ stacked)
        same = column_sums(t, self.same @ t)
        return PairSums(column_sums(t, self.single @ t), pairs - same)

    def gram(self) -> PairGram:
        """The primal form, which needs no training row."""
        M, N, _ = self.Q.shape
        gram = PairGram.zeros(N, [slice(0, M)], like=self.Q)
        gram.add(self.Q, self.weights, self.omega)
        return gram


def row_form(Q: Array, weights: PairWeights, omega: Array | None = None) -> RowForm:
    """Dual form of the rows Q, with its sums within members computed once."""
    if weights.single is None or weights.member is None:
        return RowForm(Q, weights)
    single = same = _own_products(Q, weights.single(omega))
    if weights.member is not weights.single:
        same = member_products(Q * weights.member(omega)[:, None, :], Q)
    return RowForm(Q, weights, omega, single, same)


def _own_products(A: Array, w: Array | None) -> Array:
    """Sums over rows of A_m w_m A_m' for weights (M, b) that are not negative, (M, N, N).

    A matrix times its own transpose costs half: both factors get the root of the weights.
    """
    scaled = A if w is None else A * (w**0.5)[:, None, :]
    return member_products(scaled, scaled)


@dataclass(frozen=True)
class RegeneratedForm:
    """A dual form that makes Q anew from the training rows, for rows too many to keep it.

    Parameters
    ----------
    blocks : re-iterable of arrays (M, N, b)
        Blocks of Q.
    omega : array of shape (n,)
        One weight per row, the same for all members.
    """

    blocks: Iterable[Array]
    omega: Array

    def sums(self, t: Array) -> PairSums:
        """Both forms at the points t, shape (M, N, p)."""
        parts = [form.sums(t) for form in self._row_forms()]
        return PairSums(sum(p.single for p in parts), sum(p.distinct for p in parts))

    def gram(self) -> PairGram:
        """The primal form, which needs no training row."""
        grams = (form.gram() for form in self._row_forms())
        total = next(grams)
        for gram in grams:
            total = total + gram
        return total

    def _row_forms(self) -> Iterator[RowForm]:
        start = 0
        for Q in self.blocks:
            stop = start + Q.shape[2]
            omega = namespace(Q).broadcast_to(self.omega[start:stop], (Q.shape[0], stop - start))
            yield row_form(Q, OWN, omega)
            start = stop


@dataclass(frozen=True)
class JackknifeForm:
    r"""A form with the paper's jackknife matrices, diagonal minus rank one.

    :math:`\Sigma_k = \frac{n-1}{n}(\Omega_k - r_k r_k'/n)`, with the leave-one-out residuals
    r of each member. Only the products :math:`c_{mk} = Q_m' r_k` are needed.

    Parameters
    ----------
    diagonal : Form
        The form of the diagonal part.
    c : array of shape (M, N, M)
        Products c_mk, with k last.
    n : int
        Number of rows.
    degree : int
        2 for own weights, 3 for others.
    """

    diagonal: Form
    c: Array
    n: int
    degree: int

    def sums(self, t: Array) -> PairSums:
        """Both forms at the points t, shape (M, N, p)."""
        xp = namespace(t)
        g = xp.permute_dims(self.c, (0, 2, 1)) @ t  # g[m, k] = z_m' r_k
        members = range(g.shape[0])
        own = xp.stack([g[m, m, :] for m in members])
        total = xp.sum(g, axis=0)
        if self.degree == 2:
            single = xp.sum(own**2, axis=0)
            distinct = xp.sum(own * (total - own), axis=0)
        else:
            others = total - own
            single = xp.sum(g**2, axis=(0, 1)) - xp.sum(own**2, axis=0)
            distinct = xp.sum(others**2, axis=0) - single
        base, factor = self.diagonal.sums(t), (self.n - 1) / self.n
        return PairSums(
            factor * (base.single - single / self.n),
            factor * (base.distinct - distinct / self.n),
        )
