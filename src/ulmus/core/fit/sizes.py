"""The numbers of units and of members that are chosen from the rows.

Units beyond a few times the effective degrees of freedom of the function change a prediction
little, and fewer cost accuracy. What members of few units have in common is not averaged out, so
that units come before members, whose number is what a budget of multiplications leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ulmus.core.arrays.backend import Array, is_on_host

FEWEST_UNITS = 100


@dataclass(frozen=True)
class SizeRule:
    """Numbers of units of a member, and of members.

    Products are those of the rows, the members and the squared units of one.
    """

    # Units for each effective degree of freedom, and in addition to them.
    per_dof: float
    spare: int
    # Largest numbers of units: by the square root and by the fourth root of the rows, and in all.
    by_root: float
    by_fourth_root: float
    most_units: int
    # Largest product of the least number of members, and product up to which members are added.
    products: float
    cheap_products: float
    total: int  # units of all members, beyond which there are no more than the usual members
    # Numbers of members: the least, the usual and the largest.
    members: tuple[int, int, int]

    def n_units(self, n_rows: int, dof: float | None) -> int:
        """Units of a member for effective degrees of freedom, where they are known."""
        n = max(n_rows, 1)
        bounds = [self.by_root * n**0.5, self.by_fourth_root * n**0.25, float(self.most_units)]
        bounds.append(math.sqrt(self.products / (self.members[0] * n)))
        if dof is not None:
            bounds.append(self.spare + self.per_dof * dof)
        return int(max(FEWEST_UNITS, min(bounds)))

    def n_members(self, n_rows: int, n_units: int) -> int:
        """Members of ``n_units`` units each."""
        least, usual, most = self.members
        cheap = self.cheap_products / (max(n_rows, 1) * n_units**2)
        return int(max(least, min(most, max(usual, self.total // n_units), cheap)))


HOST = SizeRule(2.0, 200, 20.0, 134.0, 4000, 1e11, 3.5e9, 3000, (3, 6, 8))
# A GPU multiplies so fast that neither number is worth saving.
GPU = SizeRule(0.0, 8000, 40.0, math.inf, 8000, 1.25e13, math.inf, 0, (8, 8, 8))


def size_rule(reference: Array) -> SizeRule:
    """The rule for the device of an array."""
    return HOST if is_on_host(reference) else GPU


def dof_of_function(dof: float, n_units: int, n_sample: int, n_rows: int) -> float:
    """Effective degrees of freedom of networks of many units on all rows.

    ``dof`` are those of a network of ``n_units`` units on a sample: units bound them, and they grow
    with about the cube root of the number of rows.
    """
    unbounded = dof / max(1 - dof / n_units, 1 / n_units)
    return unbounded * max(1.0, n_rows / n_sample) ** (1 / 3)
