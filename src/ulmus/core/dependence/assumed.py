"""What is assumed about how noise hangs together, before anything is fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.dependence.families import Family
from ulmus.core.dependence.places import Places
from ulmus.core.dependence.robust import Robust


@dataclass(frozen=True)
class Dependence:
    """How noise hangs together, and where the rows are.

    Parameters
    ----------
    kind : Family or Robust
        A covariance with parameters, or a kernel for products of residuals.
    places : Places
        Of all rows, those of weight zero too.
    used : ndarray of shape (n,) or None
        Which rows have a positive weight, where they are not in memory.
    """

    kind: Family | Robust
    places: Places
    used: np.ndarray | None = None

    @property
    def family(self) -> Family | None:
        """The covariance, if there is one."""
        return self.kind if isinstance(self.kind, Family) else None

    def taken(self, rows: np.ndarray) -> Dependence:
        """The same of some rows, by index."""
        used = None if self.used is None else self.used[rows]
        return Dependence(self.kind, self.places.taken(rows), used)

    @property
    def used_places(self) -> Places:
        """Places of the rows of positive weight."""
        return self.places if self.used is None else self.places.taken(self.used)
