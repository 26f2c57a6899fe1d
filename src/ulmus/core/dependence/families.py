"""What a covariance of noise is made of: terms along time and in space, and a nugget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from ulmus.core.dependence.kernels import Kernel
from ulmus.core.dependence.neighbours import NeighbourRoot
from ulmus.core.dependence.places import Places, group_starts
from ulmus.core.dependence.roots import DenseRoot, ExponentialRoot, Root

# Rows up to which covariances in space are exact; beyond it rows have neighbours.
MOST_DENSE = 2500


@dataclass(frozen=True)
class Term:
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

    def require(self, places: Places) -> None:
        """Refuse places without coordinates, and more of them than the kernel can have."""
        if self.axis == "time":
            return
        if places.coords is None:
            raise ValueError("noise in space needs coords, got none; give coordinates of the rows.")
        self.kernel.require_dimension(places.coords.shape[1])

    def distances(self, places: Places, other: Places | None = None) -> np.ndarray:
        """Distances between rows, or from rows to others, shape (n, n')."""
        return cdist(self._positions(places), self._positions(other or places))

    def together(self, places: Places, other: Places | None = None) -> np.ndarray:
        """1 where two rows can hang together, 0 where they are of different groups, (n, n')."""
        other = other or places
        if self.axis == "space":
            return np.ones((places.n, other.n))
        return (places.codes[:, None] == other.codes).astype(float)

    def correlation(self, places: Places, scale: float, other: Places | None = None) -> np.ndarray:
        """Correlations between rows, or of rows with others, shape (n, n')."""
        distances = self.distances(places, other)
        return self.kernel(distances, scale) * self.together(places, other)

    def root(self, places: Places, scale: float) -> Root:
        """Root of the correlation of rows that are in their order."""
        if self.serial:
            return ExponentialRoot(places.clock, places.codes, scale)
        if places.n <= MOST_DENSE:
            return DenseRoot(self.correlation(places, scale))
        if self.axis == "time":
            raise ValueError(_too_many(places.n))
        return NeighbourRoot(places.near, lambda distance: self.kernel(distance, scale))

    def span(self, places: Places) -> float:
        """Largest distance of two rows that can hang together, by the box around them."""
        positions = self._positions(places)
        if self.axis == "space":
            return float(np.linalg.norm(np.ptp(positions, axis=0)))
        ordered = places.ordered
        starts = np.flatnonzero(group_starts(ordered.codes))
        return max(float(np.ptp(part)) for part in np.split(ordered.clock, starts[1:]))

    def gaps(self, places: Places, other: Places) -> np.ndarray:
        """Distances of others from the box around the rows: none is nearer to a row, (n',)."""
        rows, others = self._positions(places), self._positions(other)
        outside = np.maximum(rows.min(axis=0) - others, others - rows.max(axis=0))
        return np.linalg.norm(np.maximum(outside, 0.0), axis=1)

    def spacing(self, places: Places) -> float:
        """Median distance of rows to their nearest neighbour at another place."""
        if self.axis == "space":
            positions = np.unique(self._positions(places), axis=0)
            if len(positions) < 2:
                return 0.0
            return float(np.median(cKDTree(positions).query(positions, k=2)[0][:, 1]))
        ordered = places.ordered
        steps = np.diff(ordered.clock)[~group_starts(ordered.codes)[1:]]
        return float(np.median(steps[steps > 0])) if np.any(steps > 0) else 0.0

    def has_ties(self, places: Places) -> bool:
        """Whether two rows that can hang together are at the same place."""
        positions = self._positions(places)
        if self.axis == "time":
            positions = np.column_stack([positions, places.codes])
        return len(np.unique(positions, axis=0)) < places.n

    def _positions(self, places: Places) -> np.ndarray:
        if self.axis == "time":
            return places.clock[:, None]
        return np.asarray(places.coords)


@dataclass(frozen=True)
class Family:
    """A sum of terms, and noise of each row's own.

    Parameters
    ----------
    terms : tuple of Term
        Parts that hang together.
    nugget : bool, default=True
        Whether each row has noise of its own as well.
    """

    terms: tuple[Term, ...]
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

    def require(self, places: Places) -> None:
        """Refuse places at which the parameters cannot be told."""
        for term in self.terms:
            term.require(places)
            if term.spacing(places) == 0:
                values = {"time": "times", "space": "coords"}[term.axis]
                raise ValueError(
                    f"all rows are at one place in {term.axis}, so that nothing tells how noise "
                    f"hangs together; give {values} that differ, or noise='auto'."
                )
            if not self.nugget and term.has_ties(places):
                series = ", or groups for several series" if term.axis == "time" else ""
                raise ValueError(
                    f"nugget=False with several rows at the same place in {term.axis}, whose noise "
                    f"would be the same; use nugget=True{series}."
                )
        only_space = len(self.terms) == 1 and self.terms[0].axis == "space"
        if places.n > MOST_DENSE and not (only_space or self.serial):
            raise ValueError(_too_many(places.n))

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
