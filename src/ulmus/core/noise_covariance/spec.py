"""What is assumed about how noise hangs together, before anything is fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.hac import HACEstimate, HACSpec
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.structure import CovarianceStructure

NoiseCovarianceEstimate = CovarianceEstimate | HACEstimate


@dataclass(frozen=True)
class CovarianceSpec:
    """How noise hangs together, and where the rows are.

    Parameters
    ----------
    structure : CovarianceStructure or HACSpec
        A covariance with parameters, or a kernel for products of residuals.
    places : Locations
        Of all rows, those of weight zero too.
    used : ndarray of shape (n,) or None
        Which rows have a positive weight, where they are not in memory.
    """

    structure: CovarianceStructure | HACSpec
    locations: Locations
    used: np.ndarray | None = None

    @property
    def parametric(self) -> CovarianceStructure | None:
        """The covariance, if there is one."""
        return self.structure if isinstance(self.structure, CovarianceStructure) else None

    def taken(self, rows: np.ndarray) -> CovarianceSpec:
        """The same of some rows, by index."""
        used = None if self.used is None else self.used[rows]
        return CovarianceSpec(self.structure, self.locations.taken(rows), used)

    @property
    def used_locations(self) -> Locations:
        """Locations of the rows of positive weight."""
        return self.locations if self.used is None else self.locations.taken(self.used)
