"""Parametric noise covariances: a sum of terms in time and in space, and a nugget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from ulmus.core.noise_covariance.errors import covariance_error
from ulmus.core.noise_covariance.kernels import Kernel
from ulmus.core.noise_covariance.locations import Locations, group_starts
from ulmus.core.noise_covariance.roots import DenseRoot, ExponentialRoot, Root
from ulmus.core.noise_covariance.vecchia import NeighbourRoot
from ulmus.exceptions import InputError
from ulmus.messages import Setting

# Rows up to which covariances in space are exact; beyond it nearest neighbours approximate them.
MOST_DENSE = 2500


@dataclass(frozen=True)
class CovarianceTerm:
    """A component of the noise that is correlated along one axis."""

    # "time", where rows of different groups are independent, or "space", where groups are ignored.
    axis: str
    kernel: Kernel  # correlation as a function of distance

    @property
    def serial(self) -> bool:
        """Whether its inverse is banded in the order of the rows: an AR(1) process."""
        return self.axis == "time" and self.kernel == Kernel("exponential")

    def require(self, locations: Locations) -> None:
        """Raise an error if coordinates are missing or of too high a dimension."""
        if self.axis == "time":
            return
        if locations.coords is None:
            text = "spatially correlated noise requires coords"
            raise covariance_error("missing-coords", text, "give the coordinates of the rows")
        self.kernel.require_dimension(locations.coords.shape[1])

    def distances(self, locations: Locations, other: Locations | None = None) -> np.ndarray:
        """Distances between rows, or from rows to other locations, shape (n, n')."""
        return cdist(self._positions(locations), self._positions(other or locations))

    def same_series(self, locations: Locations, other: Locations | None = None) -> np.ndarray:
        """1 where two rows can be correlated, 0 where their groups differ, shape (n, n')."""
        other = other or locations
        if self.axis == "space":
            return np.ones((locations.n, other.n))
        return (locations.codes[:, None] == other.codes).astype(float)

    def correlation(
        self, locations: Locations, scale: float, other: Locations | None = None
    ) -> np.ndarray:
        """Correlations between rows, or of rows with other locations, shape (n, n')."""
        distances = self.distances(locations, other)
        return self.kernel(distances, scale) * self.same_series(locations, other)

    def root(self, locations: Locations, scale: float) -> Root:
        """Root of the correlation of rows in the order of their locations."""
        if self.serial:
            return ExponentialRoot(locations.times, locations.codes, scale)
        if locations.n <= MOST_DENSE:
            return DenseRoot(self.correlation(locations, scale))
        if self.axis == "time":
            raise _too_many(locations.n)
        return NeighbourRoot(locations.neighbours, lambda distance: self.kernel(distance, scale))

    def span(self, locations: Locations) -> float:
        """Upper bound on the distance of two rows that can be correlated, by bounding boxes."""
        positions = self._positions(locations)
        if self.axis == "space":
            return float(np.linalg.norm(np.ptp(positions, axis=0)))
        ordered = locations.ordered
        starts = np.flatnonzero(group_starts(ordered.codes))
        return max(float(np.ptp(part)) for part in np.split(ordered.times, starts[1:]))

    def gaps(self, locations: Locations, other: Locations) -> np.ndarray:
        """Distances of other locations from the bounding box of the rows, shape (n',)."""
        rows, others = self._positions(locations), self._positions(other)
        outside = np.maximum(rows.min(axis=0) - others, others - rows.max(axis=0))
        return np.linalg.norm(np.maximum(outside, 0.0), axis=1)

    def spacing(self, locations: Locations) -> float:
        """Median distance of rows to their nearest neighbour at another location."""
        if self.axis == "space":
            positions = np.unique(self._positions(locations), axis=0)
            if len(positions) < 2:
                return 0.0
            return float(np.median(cKDTree(positions).query(positions, k=2)[0][:, 1]))
        ordered = locations.ordered
        steps = np.diff(ordered.times)[~group_starts(ordered.codes)[1:]]
        return float(np.median(steps[steps > 0])) if np.any(steps > 0) else 0.0

    def has_ties(self, locations: Locations) -> bool:
        """Whether two rows of the same series share a location."""
        positions = self._positions(locations)
        if self.axis == "time":
            positions = np.column_stack([positions, locations.codes])
        return len(np.unique(positions, axis=0)) < locations.n

    def _positions(self, locations: Locations) -> np.ndarray:
        if self.axis == "time":
            return locations.times[:, None]
        return np.asarray(locations.coords)


@dataclass(frozen=True)
class CovarianceStructure:
    """A sum of correlated components, and independent noise."""

    terms: tuple[CovarianceTerm, ...]  # correlated components
    nugget: bool = True  # whether there is an independent component as well

    @property
    def n_parameters(self) -> int:
        """A scale for each term, and a share for each component but one."""
        return 2 * len(self.terms) - (0 if self.nugget else 1)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of scales, then of shares."""
        shared = self.terms if self.nugget else self.terms[:-1]
        scales = tuple(f"{term.axis} scale" for term in self.terms)
        return scales + tuple(f"{term.axis} share" for term in shared)

    def require(self, locations: Locations) -> None:
        """Raise an error for locations at which the parameters are not identifiable."""
        for term in self.terms:
            term.require(locations)
            in_time = term.axis == "time"
            quantity, parameter = ("time", "time") if in_time else ("coordinates", "coords")
            if term.spacing(locations) == 0:
                raise covariance_error(
                    "one-location",
                    f"all rows have the same {quantity}, so the error correlation is not "
                    "identifiable",
                    f"give {parameter} that differ between rows",
                    Setting("noise", "auto"),
                )
            if not self.nugget and term.has_ties(locations):
                raise covariance_error(
                    "ties-without-nugget",
                    f"implies equal errors of rows with the same {quantity}, of which there are "
                    "several",
                    "use nugget=True",
                    *(["give groups for several series"] if in_time else []),
                    parameter="nugget",
                    value=False,
                )
        only_space = len(self.terms) == 1 and self.terms[0].axis == "space"
        if locations.n > MOST_DENSE and not (only_space or self.serial):
            raise _too_many(locations.n)

    @property
    def serial(self) -> bool:
        """Whether it is an AR(1) process and a nugget, for which n rows cost O(n)."""
        return len(self.terms) == 1 and self.terms[0].serial

    def __str__(self) -> str:
        parts = [f"{term.kernel} in time" for term in self.terms if term.axis == "time"]
        parts += [f"{term.kernel} in space" for term in self.terms if term.axis == "space"]
        return " + ".join([*parts, *(["nugget"] if self.nugget else [])])


def _too_many(n: int) -> InputError:
    return covariance_error(
        "too-many-rows",
        f"{n} rows are too many for a sum of terms, or for a kernel in time other than "
        f"'exponential', whose cost is cubic in the rows: at most {MOST_DENSE}",
        "use one term",
        "use a subset of the rows",
    )
