"""Targets on another scale: transformations, smearing, point masses and counts.

A regression is fitted on the *link scale*, z = T(y). A *response family* returns from there to the
*response scale*, that of y: means, variances and distributions of an observation, given the
prediction and the noise on the link scale. This package imports ``arrays`` only.
"""

from ulmus.core.response.counts import Counts
from ulmus.core.response.log_mean import LogMean
from ulmus.core.response.point_mass import PointMass
from ulmus.core.response.transformed import Transformed

__all__ = ["Counts", "LogMean", "PointMass", "ResponseFamilies", "Transformed"]

# The family of each output.
ResponseFamilies = tuple[Transformed | PointMass | Counts, ...]
