"""What a covariance of noise is made of: terms along time and in space, and a nugget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from ulmus.core.noise_covariance.kernels import Kernel
from ulmus.core.noise_covariance.locations import Locations, group_starts
from ulmus.core.noise_covariance.roots import DenseRoot, ExponentialRoot, Root
from ulmus.core.noise_covariance.vecchia import NeighbourRoot

# Rows up to which covariances in space are exact; beyond it rows have neighbours.
MOST_DENSE = 2500


@dataclass(frozen=True)
class CovarianceTerm:
    """A part of the noise that hangs together along one axis.

    Parameters
    ----------
    axis : {"time", "space"}
        Along time, rows of different groups are independent; in space, groups do not matter.
    kernel : Kernel
        How its correlation falls with distance.
    """

    axis: str
    kernel: Kernel

    @property
    def serial(self) -> bool:
        """Whether its inverse is banded in the order of the rows: an autoregression."""
        return self.axis == "time" and self.kernel == Kernel("exponential")

    def require(self, locations: Locations) -> None:
        """Refuse places without coordinates, and more of them than the kernel can have."""
        if self.axis == "time":
            return
        if locations.coords is None:
            raise ValueError("noise in space needs coords, got none; give coordinates of the rows.")
        self.kernel.require_dimension(locations.coords.shape[1])

    def distances(self, locations: Locations, other: Locations | None = None) -> np.ndarray:
        """Distances between rows, or from rows to others, shape (n, n')."""
        return cdist(self._positions(locations), self._positions(other or locations))

    def together(self, locations: Locations, other: Locations | None = None) -> np.ndarray:
        """1 where two rows can hang together, 0 where they are of different groups, (n, n')."""
        other = other or locations
        if self.axis == "space":
            return np.ones((locations.n, other.n))
        return (locations.codes[:, None] == other.codes).astype(float)

    def correlation(
        self, locations: Locations, scale: float, other: Locations | None = None
    ) -> np.ndarray:
        """Correlations between rows, or of rows with others, shape (n, n')."""
        distances = self.distances(locations, other)
        return self.kernel(distances, scale) * self.together(locations, other)

    def root(self, locations: Locations, scale: float) -> Root:
        """Root of the correlation of rows that are in their order."""
        if self.serial:
            return ExponentialRoot(locations.times, locations.codes, scale)
        if locations.n <= MOST_DENSE:
            return DenseRoot(self.correlation(locations, scale))
        if self.axis == "time":
            raise ValueError(_too_many(locations.n))
        return NeighbourRoot(locations.neighbours, lambda distance: self.kernel(distance, scale))

    def span(self, locations: Locations) -> float:
        """Largest distance of two rows that can hang together, by the box around them."""
        positions = self._positions(locations)
        if self.axis == "space":
            return float(np.linalg.norm(np.ptp(positions, axis=0)))
        ordered = locations.ordered
        starts = np.flatnonzero(group_starts(ordered.codes))
        return max(float(np.ptp(part)) for part in np.split(ordered.times, starts[1:]))

    def gaps(self, locations: Locations, other: Locations) -> np.ndarray:
        """Distances of others from the box around the rows: none is nearer to a row, (n',)."""
        rows, others = self._positions(locations), self._positions(other)
        outside = np.maximum(rows.min(axis=0) - others, others - rows.max(axis=0))
        return np.linalg.norm(np.maximum(outside, 0.0), axis=1)

    def spacing(self, locations: Locations) -> float:
        """Median distance of rows to their nearest neighbour at another place."""
        if self.axis == "space":
            positions = np.unique(self._positions(locations), axis=0)
            if len(positions) < 2:
                return 0.0
            return float(np.median(cKDTree(positions).query(positions, k=2)[0][:, 1]))
        ordered = locations.ordered
        steps = np.diff(ordered.times)[~group_starts(ordered.codes)[1:]]
        return float(np.median(steps[steps > 0])) if np.any(steps > 0) else 0.0

    def has_ties(self, locations: Locations) -> bool:
        """Whether two rows that can hang together are at the same place."""
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
    """A sum of terms, and noise of each row's own.

    Parameters
    ----------
    terms : tuple of Term
        Parts that hang together.
    nugget : bool, default=True
        Whether each row has noise of its own as well.
    """

    terms: tuple[CovarianceTerm, ...]
    nugget: bool = True

    @property
    def n_parameters(self) -> int:
        """A scale for each term, and a share for each part but one."""
        return 2 * len(self.terms) - (0 if self.nugget else 1)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of scales, then of shares."""
        shared = self.terms if self.nugget else self.terms[:-1]
        scales = tuple(f"{term.axis} scale" for term in self.terms)
        return scales + tuple(f"{term.axis} share" for term in shared)

    def require(self, locations: Locations) -> None:
        """Refuse places at which the parameters cannot be told."""
        for term in self.terms:
            term.require(locations)
            if term.spacing(locations) == 0:
                values = {"time": "times", "space": "coords"}[term.axis]
                raise ValueError(
                    f"all rows are at one place in {term.axis}, so that nothing tells how noise "
                    f"hangs together; give {values} that differ, or noise='auto'."
                )
            if not self.nugget and term.has_ties(locations):
                series = ", or groups for several series" if term.axis == "time" else ""
                raise ValueError(
                    f"nugget=False with several rows at the same place in {term.axis}, whose noise "
                    f"would be the same; use nugget=True{series}."
                )
        only_space = len(self.terms) == 1 and self.terms[0].axis == "space"
        if locations.n > MOST_DENSE and not (only_space or self.serial):
            raise ValueError(_too_many(locations.n))

    @property
    def serial(self) -> bool:
        """Whether it is an autoregression and a nugget, for which n rows cost n."""
        return len(self.terms) == 1 and self.terms[0].serial

    def __str__(self) -> str:
        parts = [f"{term.kernel} along time" for term in self.terms if term.axis == "time"]
        parts += [f"{term.kernel} in space" for term in self.terms if term.axis == "space"]
        return " + ".join([*parts, *(["a nugget"] if self.nugget else [])])


def _too_many(n: int) -> str:
    return (
        f"{n} rows, and a sum of terms or a kernel other than 'exponential' along time takes at "
        f"most {MOST_DENSE}; use one term, or a part of the rows."
    )
