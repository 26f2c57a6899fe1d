"""The numbers of units and of members that are chosen from the rows.

Units beyond a few times the effective degrees of freedom of the function change a prediction
little, and fewer cost accuracy. The error that members of few units share is not averaged out, so
that units come before members: members fill up a total number of units, within a budget of
multiplications.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ulmus.core.arrays.backend import Array, is_on_host

FEWEST_UNITS = 100


@dataclass(frozen=True)
class SizeRule:
    """Numbers of units of a member, and of members."""

    # Units in addition to those for each effective degree of freedom.
    spare: int
    per_dof: float
    growth: float  # largest number of units, over the square root of the number of rows
    most: int  # largest number of units
    products: float  # largest product of the rows, the members and the squared units of one
    total: int  # units of all members, up to which members are added
    # Numbers of members: the least for very many rows, the least otherwise, and the largest.
    members_of_many: int
    fewest_members: int
    most_members: int

    def units(self, n_rows: int, dof: float | None) -> int:
        """Units of a member for effective degrees of freedom, where they are known."""
        rows = max(n_rows, 1)
        affordable = math.sqrt(self.products / (self.members_of_many * rows))
        useful = math.inf if dof is None else self.spare + self.per_dof * dof
        return int(
            max(FEWEST_UNITS, min(useful, self.growth * math.sqrt(rows), self.most, affordable))
        )

    def members(self, n_rows: int, n_neurons: int) -> int:
        """Members of ``n_neurons`` units each."""
        wanted = max(self.fewest_members, min(self.most_members, self.total // n_neurons))
        affordable = int(self.products / (max(n_rows, 1) * n_neurons**2))
        return max(self.members_of_many, min(wanted, affordable))


# A GPU multiplies so fast that units are not limited by degrees of freedom.
HOST = SizeRule(200, 3.0, 20.0, 4000, 1e11, 3000, 3, 6, 8)
GPU = SizeRule(0, math.inf, 40.0, 8000, 1.25e13, 0, 8, 8, 8)


def size_rule(reference: Array) -> SizeRule:
    """The rule for the device of an array."""
    return HOST if is_on_host(reference) else GPU


def dof_of_more_rows(dof: float, n_sample: int, n_rows: int) -> float:
    """Effective degrees of freedom for all rows, from those for a sample of them.

    They grow with about the cube root of the number of rows.
    """
    return dof * max(1.0, n_rows / n_sample) ** (1 / 3)
