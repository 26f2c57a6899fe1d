r"""Sums over pairs of members of which those between groups are computed from a sample of the rows.

Products between all members cost n (MN)^2 operations, those within members n M N^2. Only variances
depend on the former. With :math:`T_{gh}` the sum over all rows of :math:`z_g' D z_h` for the groups
g and h, and :math:`S_{gh}` the same over a random sample, divided by the probability that it
contains a row, an unbiased estimate of the sum over all pairs of G groups is

.. math:: \sum_{g,h} S_{gh} + G \sum_g (T_{gg} - S_{gg}).

The sampling error of a sum between groups is that of the squared difference of their smoother
rows, :math:`z_g'z_h = (z_g'z_g + z_h'z_h - |z_g - z_h|^2) / 2`, which is small as groups agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import Array, namespace
from ulmus.core.data.source import Block, row_keys
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.ridge.member_pairs import COMMON, PairGram, Pairing, PairSums, member_groups

# Rows of a sample for each hidden unit of a member, and the fewest rows. Standard errors are within
# 1 percent of the exact ones, those of "S3" within 2 (tests/core/ridge/test_sampled_pairs.py).
SAMPLED_ROWS, FEWEST_SAMPLED = 5, 2000
# Larger shares of the rows are not worth a sample.
LARGEST_SHARE = 0.5
# Seed of the keys by which rows are chosen.
SEED = 2


@dataclass(frozen=True)
class SampledPairs:
    """Sums of :class:`PairGram` for all pairs of members, estimated from two of them."""

    groups: PairGram  # all rows, pairs within groups
    sample: PairGram  # a sample of rows over its share, all pairs

    @property
    def single(self) -> Array:
        """Sums within members, (M, N, N)."""
        return self.groups.single

    @property
    def n_groups(self) -> int:
        """Number of groups of members."""
        return sum(row.shape[1] == 0 for row in self.groups.upper)

    @property
    def combined(self) -> PairGram:
        """The estimated sums over all pairs as one."""
        G, upper = self.n_groups, []
        for own, row in zip(self.groups.upper, self.sample.upper, strict=True):
            width = own.shape[1]
            within = row[:, :width] + G * (own - row[:, :width])
            upper.append(namespace(row).concat([within, row[:, width:]], axis=1))
        single = self.sample.single + G * (self.groups.single - self.sample.single)
        return PairGram(single, upper)

    def __add__(self, other: SampledPairs) -> SampledPairs:
        """Sums over the rows of both."""
        return SampledPairs(self.groups + other.groups, self.sample + other.sample)

    def sums(self, t: Array, u: Array | None = None) -> PairSums:
        """Both sums for t (M, N, p), with itself or with u (M, N, p')."""
        single = self.groups.within_members(t, u)
        return PairSums(single, self.total(t, u) - single)

    def total(self, t: Array, u: Array | None = None) -> Array:
        """Sum over all pairs, including those of a member with itself, (p,) or (p, p')."""
        return self.combined.total(t, u)

    def applied(self, t: Array) -> PairSums:
        """Sums over l of K_ml t_l, within members and over distinct pairs, each (M, N, p)."""
        xp, N = namespace(t), self.single.shape[1]
        single = xp.zeros_like(t)
        single[:, :N, :] = self.single @ t[:, :N, :]
        return PairSums(single, sum(self.combined.applied(t)) - single)

    def by_pair(self, t: Array) -> Array:
        """The terms t_m' K_ml t_l of both sums for all m and l, shape (M, M, p).

        The correction of a group is divided evenly between its pairs with other members.
        """
        terms, own = self.sample.by_pair(t), self.groups.by_pair(t)
        xp, M, edges = namespace(t), t.shape[0], self._edges
        excess = xp.zeros_like(terms[0, :, :])
        for group in edges:
            k = group.stop - group.start
            difference = own[group, group, :] - terms[group, group, :]
            share = (len(edges) - 1) / (2 * k * (M - k))
            excess[group, :] = share * xp.sum(difference, axis=(0, 1))
        terms = terms + excess[:, None, :] + excess[None, :, :]
        for group in edges:
            terms[group, group, :] = own[group, group, :]
        return terms

    @property
    def _edges(self) -> list[slice]:
        """Members of each group."""
        last = [m + 1 for m, row in enumerate(self.groups.upper) if row.shape[1] == 0]
        return [slice(a, b) for a, b in zip([0, *last[:-1]], last, strict=True)]

    def stacked(self, group: slice) -> Array:
        """The products of the members of a group, over all rows, shape (k N, k N)."""
        return self.groups.stacked(group)

    def primal(self) -> SampledPairs:
        """The form itself, which contains no training row."""
        return self

    def rotated(self, A: Array) -> SampledPairs:
        """The same sums with each block B_ml replaced by A_m B_ml A_l'."""
        return SampledPairs(self.groups.rotated(A), self.sample.rotated(A))

    def with_single(self, single: Array) -> SampledPairs:
        """The same with other sums within members."""
        return SampledPairs(self.groups.with_single(single), self.sample)


AllPairs = PairGram | SampledPairs


@dataclass(frozen=True)
class PairSampling:
    """The share of rows that enter sums over pairs of members in different groups."""

    share: float = 1.0

    def groups(self, M: int, n_neurons: int) -> list[slice]:
        """Groups of members whose pairs are summed over all rows, for sums over all pairs."""
        return [slice(0, M)] if self.share >= 1 else member_groups(M, n_neurons)

    def rows(self, block: Block) -> np.ndarray | None:
        """Index of the sampled rows of a block; None if all rows are."""
        if self.share >= 1:
            return None
        return np.flatnonzero(row_keys(block, SEED) < self.share)

    def zeros(self, N: int, groups: list[slice], *, like: Array) -> AllPairs:
        """Empty sums over pairs within groups, which partition the members, and the sample."""
        own = PairGram.zeros(N, groups, like=like)
        if self.share >= 1:
            return own
        return SampledPairs(own, PairGram.zeros(N, [slice(0, groups[-1].stop)], like=like))

    def add(
        self,
        total: AllPairs,
        A: Array,
        rows: np.ndarray | None,
        pairing: Pairing = COMMON,
        omega: Array | None = None,
    ) -> None:
        """Add the rows A (M, N, b), of which ``rows`` are sampled.

        ``omega`` (M, b) are their noise variances.
        """
        if isinstance(total, SampledPairs):
            total.groups.add(A, pairing, omega)
            self._add_sample(total.sample, A, rows, pairing, omega)
        else:
            total.add(A, pairing, omega)

    def add_pairs(self, total: AllPairs, A: Array, rows: np.ndarray | None) -> None:
        """The same without the sums within members."""
        if isinstance(total, SampledPairs):
            total.groups.add_pairs(A)
            self._add_sample(total.sample, A, rows, COMMON, None)
        else:
            total.add_pairs(A)

    def _add_sample(
        self,
        sample: PairGram,
        A: Array,
        rows: np.ndarray | None,
        pairing: Pairing,
        omega: Array | None,
    ) -> None:
        xp = namespace(A)
        index = xp.asarray(rows, device=A.device)
        if omega is not None:
            omega = xp.take(omega, index, axis=1)
        sample.add(xp.take(A, index, axis=2) * self.share**-0.5, pairing, omega)


ALL_ROWS = PairSampling()


def pair_sampling(n_rows: int, layer: HiddenLayer, *, exact: bool) -> PairSampling:
    """All rows if ``exact`` or if they are few for the units of a member, else a share of them."""
    share = max(SAMPLED_ROWS * layer.n_units, FEWEST_SAMPLED) / max(n_rows, 1)
    if exact or layer.n_members == 1 or share > LARGEST_SHARE:
        return ALL_ROWS
    return PairSampling(share)
