"""Covariances from products of residuals, weighted by a kernel: only its reach is assumed.

Along time these are the estimates of Newey & West (1987) and Andrews (1991), in space that of
Conley (1999), in groups the one of Liang & Zeger (1986).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ulmus.core.noise_covariance.kernels import Kernel
from ulmus.core.noise_covariance.locations import Locations, group_starts
from ulmus.core.noise_covariance.quadratic_spectral import QuadraticSpectralRoot
from ulmus.core.noise_covariance.roots import BartlettRoot, ClusterRoot, Root
from ulmus.core.noise_covariance.structure import CovarianceTerm

# Andrews (1991), equations 6.2 and 6.4: bandwidth = factor (a n)^power, with a from a first-order
# autoregression of the residuals.
ANDREWS = {"bartlett": (1.1447, 1 / 3), "quadratic-spectral": (1.3221, 1 / 5)}
# Correlations of neighbours beyond this would ask for a bandwidth of more than all rows.
LARGEST_CORRELATION = 0.97
CLUSTERS = "clusters"

# Kernels that reach this share of the distance of neighbours, or less, hold no products.
SHORTEST_REACH = 0.1


@dataclass(frozen=True)
class HACSpec:
    """Which products of residuals count.

    Parameters
    ----------
    kernel : {"bartlett", "quadratic-spectral", "spherical", "clusters"}
        How products of residuals are weighted by distance; all within a group for the last.
    bandwidth : float, optional
        Distance at which the kernel ends (or fades); for times, by the rule of Andrews if not
        given.
    """

    kernel: str
    bandwidth: float | None = None

    @property
    def serial(self) -> bool:
        """Whether rows in their order are enough, so that they may come in blocks."""
        return self.kernel in ("bartlett", CLUSTERS)

    def require(self, locations: Locations) -> None:
        """Refuse places at which the kernel has no meaning."""
        if self.kernel == "spherical":
            CovarianceTerm("space", Kernel("spherical")).require(locations)
        if self.kernel == "quadratic-spectral" and locations.groups is not None:
            raise ValueError(
                "kernel='qs' is for one series, and there are groups; use kernel='bartlett'."
            )
        if self.bandwidth is not None and locations.groups is None:
            self._require_reach(self.bandwidth, locations)

    def _require_reach(self, bandwidth: float, locations: Locations) -> None:
        """Refuse kernels that end before any neighbour, or beyond all rows.

        In the first case noise is independent; in the second all products count, and residuals sum
        to zero. Within groups all may count, as those of different groups do not.
        """
        in_space = self.kernel == "spherical"
        name, unit = ("cutoff", "coords") if in_space else ("bandwidth", "time")
        term = CovarianceTerm("space" if in_space else "time", Kernel("exponential"))
        step, span = term.spacing(locations), term.span(locations)
        if bandwidth > span:
            raise ValueError(
                f"{name}={bandwidth:.3g} is beyond the rows, which span {span:.3g}: all products "
                f"of residuals would count, and cancel; use a smaller one, in the unit of {unit}."
            )
        if bandwidth < SHORTEST_REACH * step and not term.has_ties(locations):
            raise ValueError(
                f"{name}={bandwidth:.3g} is far below the distance of neighbours, {step:.3g}, so "
                f"that noise is independent; use a larger one, in the unit of {unit}, or "
                "noise='heteroskedastic'."
            )

    def root(self, locations: Locations, bandwidth: float) -> Root:
        """Root of the weights of rows that are in their order."""
        if self.kernel == CLUSTERS:
            return ClusterRoot(locations.codes)
        if self.kernel == "bartlett":
            return BartlettRoot(locations.times, locations.codes, bandwidth)
        if self.kernel == "quadratic-spectral":
            return QuadraticSpectralRoot(locations.times, bandwidth)
        return CovarianceTerm("space", Kernel("spherical")).root(locations, bandwidth)

    def estimate(self, residual: np.ndarray, locations: Locations) -> HACEstimate:
        """The reach of the kernel for residuals (n,) of rows in their order."""
        n_groups = len(np.unique(locations.codes)) if locations.groups is not None else None
        reach = self.bandwidth
        if reach is None:
            reach = 0.0 if self.kernel == CLUSTERS else _andrews(self.kernel, residual, locations)
        return HACEstimate(self, float(reach), locations.n, n_groups)


@dataclass(frozen=True)
class HACEstimate:
    """A kernel, and the reach that was given or chosen for it.

    Parameters
    ----------
    spec : HACSpec
        The kernel.
    bandwidth : float
        Its reach, in the unit of the places; no meaning for clusters.
    n_rows : int
        Number of rows.
    n_groups : int, optional
        Number of groups, where there are any.
    """

    spec: HACSpec
    bandwidth: float
    n_rows: int
    n_groups: int | None = None

    @property
    def independent(self) -> bool:
        """Whether independent noise was preferred: never, as nothing is fitted."""
        return False

    @property
    def dof(self) -> float:
        """Degrees of freedom of variances: groups less one for clusters, else not limited."""
        if self.spec.kernel != CLUSTERS or self.n_groups is None:
            return math.inf
        return max(self.n_groups - 1.0, 1.0)

    def in_units(self, unit: float) -> HACEstimate:
        """The same for outputs in other units: nothing changes."""
        return self

    @property
    def small_sample(self) -> float:
        """What few groups cost: G (n - 1) / ((G - 1) n) for clusters, else 1."""
        if self.spec.kernel != CLUSTERS or not self.n_groups or self.n_groups < 2:
            return 1.0
        return self.n_groups / (self.n_groups - 1) * (self.n_rows - 1) / self.n_rows

    def root(self, locations: Locations) -> Root:
        """Root of the weights of rows in the order of their places."""
        return self.spec.root(locations.ordered, self.bandwidth)

    def __str__(self) -> str:
        if self.spec.kernel == CLUSTERS:
            return f"Noise: any covariance within {self.n_groups} groups of {self.n_rows} rows"
        within = "" if self.n_groups is None else f" within {self.n_groups} groups"
        return (
            f"Noise: products of residuals{within}, {self.spec.kernel} kernel of bandwidth "
            f"{self.bandwidth:.4g}, {self.n_rows} rows"
        )


def _andrews(kernel: str, residual: np.ndarray, locations: Locations) -> float:
    """Bandwidth in the unit of time, at least one step."""
    same = ~group_starts(locations.codes)[1:]
    before, after = residual[:-1][same], residual[1:][same]
    size = float(np.sum(before**2))
    rho = float(np.sum(before * after)) / size if size > 0 else 0.0
    rho = float(np.clip(rho, -LARGEST_CORRELATION, LARGEST_CORRELATION))
    factor, power = ANDREWS[kernel]
    a = 4 * rho**2 / (1 - rho) ** 4
    if kernel == "bartlett":
        a = 4 * rho**2 / ((1 - rho) ** 2 * (1 + rho) ** 2)
    step = CovarianceTerm("time", Kernel(kernel)).spacing(locations) or 1.0
    return step * max(1.0, min(factor * (a * locations.n) ** power, math.sqrt(locations.n) * 3))
