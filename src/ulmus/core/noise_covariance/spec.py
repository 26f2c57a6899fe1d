"""The noise covariance assumed for a fit, before its parameters are estimated."""

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
    """A covariance structure and the locations of the rows."""

    # A parametric covariance, or a kernel for residual products.
    structure: CovarianceStructure | HACSpec
    locations: Locations  # locations of all rows, those of weight zero included
    # (n,): mask of the rows of positive weight, for rows that are not in memory.
    used: np.ndarray | None = None

    @property
    def parametric(self) -> CovarianceStructure | None:
        """The structure if its parameters are estimated by likelihood, else None."""
        return self.structure if isinstance(self.structure, CovarianceStructure) else None

    def taken(self, rows: np.ndarray) -> CovarianceSpec:
        """The same for a subset of the rows, by index."""
        used = None if self.used is None else self.used[rows]
        return CovarianceSpec(self.structure, self.locations.taken(rows), used)

    @property
    def used_locations(self) -> Locations:
        """Locations of the rows of positive weight."""
        return self.locations if self.used is None else self.locations.taken(self.used)
