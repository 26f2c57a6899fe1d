r"""How the noise of two members is combined in a sum over pairs, and members in groups.

An estimate sums :math:`z_m' D_{ml} z_l` over members and over pairs of distinct members. D is
diagonal and made from omega, the noise variance of each row as each member sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ulmus.core.arrays.backend import Array, namespace

# Members whose hidden layers, side by side, make one wider network: at most so many members,
# and so many units unless a single member has more. Wider ones cost the cube of their width and
# change neither noise nor coverage by more than simulations can tell.
GROUP_MEMBERS = 4
GROUP_UNITS = 800


class PairSums(NamedTuple):
    """Sums over single members and over ordered pairs of distinct members.

    Each is (p,) or (p, p'), or (M, N, p) before the product with the first factor is taken.
    """

    single: Array
    distinct: Array


@dataclass(frozen=True)
class Pairing:
    """How D_mm and D_ml follow from omega, shape (M, n).

    Parameters
    ----------
    name : str
        What D is made of.
    degree : int
        Number of distinct members in a term of the sum over pairs.
    single : callable or None
        D_mm from omega, shape (M, n); None for one noise variance in all rows, which is
        multiplied in later.
    member : callable or None
        Shares v from omega, shape (M, n): D_ml is the mean of v_m and v_l.
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


# One noise variance for all rows; the mean of what both members see; the sum of what all other
# members see.
COMMON = Pairing("common", 2)
OWN = Pairing("own", 2, _own, _own)
OTHERS = Pairing("others", 3, _others_single, _others_member)
# The name of forms whose noise hangs together between rows: coordinates of rows are multiplied by a
# root of its covariance, and members are then combined as for one noise variance.
DEPENDENT = "dependent"
PAIRINGS = {pairing.name: pairing for pairing in (COMMON, OWN, OTHERS)}


def member_groups(M: int, n_neurons: int) -> list[slice]:
    """Members cut into groups that are wide together, and at least two groups."""
    size = max(1, min(GROUP_MEMBERS, GROUP_UNITS // n_neurons))
    n_groups = min(M, max(2, -(-M // size)))
    edges = [round(g * M / n_groups) for g in range(n_groups + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def lone_members(M: int, start: int = 0) -> list[slice]:
    """Groups of one: no pairs at all."""
    return [slice(m, m + 1) for m in range(start, M)]
