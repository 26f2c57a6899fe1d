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

from ulmus.core.backend import Array, column_sums, namespace

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
    distinct : callable or None
        D_ml for the members l after m, from omega and m, shape (M - m - 1, n).
    """

    name: str
    degree: int
    single: Callable[[Array], Array] | None = None
    distinct: Callable[[Array, int], Array] | None = None

    def means(self, sums: PairSums, M: int) -> PairSums:
        """Turn sums into means over distinct members; an empty sum stays zero."""
        others = M - 1 if self.degree == 3 else 1
        pairs = M * (M - 1) * (M - 2 if self.degree == 3 else 1)
        distinct = sums.distinct / pairs if pairs else sums.distinct
        return PairSums(sums.single / (M * others), distinct)


def _own_single(omega: Array) -> Array:
    return omega


def _own_distinct(omega: Array, m: int) -> Array:
    return 0.5 * (omega[m, :] + omega[m + 1 :, :])


def _others_single(omega: Array) -> Array:
    return namespace(omega).sum(omega, axis=0) - omega


def _others_distinct(omega: Array, m: int) -> Array:
    return namespace(omega).sum(omega, axis=0) - omega[m, :] - omega[m + 1 :, :]


# One noise variance for all rows, multiplied in later; the mean of the two members' own
# squared residuals; the sum of those of all other members.
COMMON = PairWeights("common", 2)
OWN = PairWeights("own", 2, _own_single, _own_distinct)
OTHERS = PairWeights("others", 3, _others_single, _others_distinct)


def member_groups(M: int) -> list[slice]:
    """Members cut into groups of about four, and at least two groups."""
    n_groups = min(M, max(2, -(-M // GROUP_SIZE)))
    edges = [round(g * M / n_groups) for g in range(n_groups + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


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
        Row m holds the blocks of m with the members after it side by side: with all of them,
        (m, m+1), ..., (m, M-1), or only with those of its group.
    """

    single: Array
    upper: list[Array]

    @classmethod
    def zeros(cls, N: int, groups: list[slice], *, pairs: bool, like: Array) -> PairGram:
        """An empty sum over all pairs of members, or over those within a group."""
        xp = namespace(like)
        M = groups[-1].stop

        def empty(*shape: int) -> Array:
            return xp.zeros(shape, dtype=like.dtype, device=like.device)

        ends = [M if pairs else group.stop for group in groups for _ in _members(group)]
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
        xp = namespace(A)
        b = A.shape[2]
        weighted = A if weights.single is None else A * weights.single(omega)[:, None, :]
        self.single += weighted @ xp.permute_dims(A, (0, 2, 1))
        for m, row in enumerate(self.upper):
            partners = slice(m + 1, m + 1 + row.shape[1] // A.shape[1])
            rest = A[partners, :, :]
            if weights.distinct is not None:
                rest = rest * weights.distinct(omega, m)[:, None, :]
            row += A[m, :, :] @ xp.reshape(rest, (-1, b)).T

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
    own, every : arrays of shape (M, N, N) or None
        Sums over rows within members, weighted by their own omega and by that of all members.
    """

    Q: Array
    weights: PairWeights
    omega: Array | None = None
    own: Array | None = None
    every: Array | None = None

    def sums(self, t: Array) -> PairSums:
        """Both forms at the points t, shape (M, N, p)."""
        xp = namespace(t)
        n, p = self.Q.shape[2], t.shape[2]
        stacked = xp.reshape(t, (-1, p))
        z_sum = xp.reshape(self.Q, (-1, n)).T @ stacked
        if self.omega is None:
            single = column_sums(t, t)
            return PairSums(single, column_sums(z_sum, z_sum) - single)
        omega_z = xp.reshape(self.Q * self.omega[:, None, :], (-1, n)).T @ stacked
        own_pairs = column_sums(z_sum, omega_z)
        own = column_sums(t, self.own @ t)
        if self.weights.degree == 2:
            return PairSums(own, own_pairs - own)
        total = xp.sum(self.omega, axis=0)
        all_pairs = column_sums(z_sum * total[:, None], z_sum) - 2 * own_pairs
        every = column_sums(t, self.every @ t)
        return PairSums(every - own, all_pairs - every + 2 * own)

    def gram(self) -> PairGram:
        """The primal form, which needs no training row."""
        M, N, _ = self.Q.shape
        gram = PairGram.zeros(N, [slice(0, M)], pairs=True, like=self.Q)
        gram.add(self.Q, self.weights, self.omega)
        return gram


def row_form(Q: Array, weights: PairWeights, omega: Array | None = None) -> RowForm:
    """Dual form of the rows Q, with its sums within members computed once."""
    if omega is None:
        return RowForm(Q, weights)
    xp = namespace(Q)
    Q_t = xp.permute_dims(Q, (0, 2, 1))
    own = (Q * omega[:, None, :]) @ Q_t
    every = (Q * xp.sum(omega, axis=0)) @ Q_t if weights.degree == 3 else None
    return RowForm(Q, weights, omega, own, every)


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
