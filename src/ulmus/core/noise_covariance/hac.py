"""Covariances from residual products weighted by a kernel, which assume a bandwidth only.

In time these are the estimates of Newey & West (1987) and Andrews (1991), in space that of Conley
(1999), within groups that of Liang & Zeger (1986).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ulmus.core.noise_covariance.errors import covariance_error
from ulmus.core.noise_covariance.kernels import Kernel
from ulmus.core.noise_covariance.locations import Locations, group_starts
from ulmus.core.noise_covariance.quadratic_spectral import QuadraticSpectralRoot
from ulmus.core.noise_covariance.roots import BartlettRoot, ClusterRoot, Root
from ulmus.core.noise_covariance.structure import CovarianceTerm
from ulmus.messages import Setting

# Andrews (1991), equations 6.2 and 6.4: bandwidth = factor (a n)^power, with a from a first-order
# autoregression of the residuals.
ANDREWS = {"bartlett": (1.1447, 1 / 3), "quadratic-spectral": (1.3221, 1 / 5)}
# Larger correlations of neighbours would imply a bandwidth beyond all rows.
LARGEST_CORRELATION = 0.97
CLUSTERS = "clusters"


@dataclass(frozen=True)
class HACSpec:
    """Weights of residual products."""

    # "bartlett", "quadratic-spectral" or "spherical" weights by distance, or "clusters", which
    # includes all products within a group.
    kernel: str
    # Distance at which the kernel ends; in time, chosen by the rule of Andrews if omitted.
    bandwidth: float | None = None

    @property
    def serial(self) -> bool:
        """Whether sorted rows can be processed in blocks."""
        return self.kernel in ("bartlett", CLUSTERS)

    def require(self, locations: Locations) -> None:
        """Raise an error for locations that the kernel does not apply to."""
        if self.kernel == "spherical":
            CovarianceTerm("space", Kernel("spherical")).require(locations)
        if self.kernel == "quadratic-spectral" and locations.groups is not None:
            text, suggestion = (
                "applies to one series, and there are groups",
                "use kernel='bartlett'",
            )
            raise covariance_error("one-series", text, suggestion, parameter="kernel", value="qs")
        if self.bandwidth is not None and locations.groups is None:
            self._require_bandwidth(self.bandwidth, locations)

    def _require_bandwidth(self, bandwidth: float, locations: Locations) -> None:
        """Raise an error for a bandwidth below the spacing of the rows or beyond their span.

        The first implies independent noise. With the second all products are included, which sum
        to nearly zero; within groups they may be, since products between groups are excluded.
        """
        in_space = self.kernel == "spherical"
        name, unit = ("cutoff", "coords") if in_space else ("bandwidth", "time")
        term = CovarianceTerm("space" if in_space else "time", Kernel("exponential"))
        step, span = term.spacing(locations), term.span(locations)
        value = float(f"{bandwidth:.3g}")
        if bandwidth > span:
            raise covariance_error(
                "bandwidth",
                f"exceeds the range of the {unit} ({span:.3g}): the weighted residual products sum "
                "to zero and the variance is not identified",
                f"use a smaller {name}, in the unit of {unit}",
                parameter=name,
                value=value,
            )
        if bandwidth < 0.1 * step and not term.has_ties(locations):
            raise covariance_error(
                "bandwidth",
                f"is far below the distance of neighbouring rows ({step:.3g}), which implies "
                "independent noise",
                f"use a larger {name}, in the unit of {unit}",
                Setting("noise", "heteroskedastic"),
                parameter=name,
                value=value,
            )

    def root(self, locations: Locations, bandwidth: float) -> Root:
        """Root of the weight matrix of rows in the order of their locations."""
        if self.kernel == CLUSTERS:
            return ClusterRoot(locations.codes)
        if self.kernel == "bartlett":
            return BartlettRoot(locations.times, locations.codes, bandwidth)
        if self.kernel == "quadratic-spectral":
            return QuadraticSpectralRoot(locations.times, bandwidth)
        return CovarianceTerm("space", Kernel("spherical")).root(locations, bandwidth)

    def estimate(self, residual: np.ndarray, locations: Locations) -> HACEstimate:
        """The bandwidth for residuals (n,) of rows in the order of their locations."""
        n_groups = len(np.unique(locations.codes)) if locations.groups is not None else None
        width = self.bandwidth
        if width is None:
            width = 0.0 if self.kernel == CLUSTERS else _andrews(self.kernel, residual, locations)
        return HACEstimate(self, float(width), locations.n, n_groups)


@dataclass(frozen=True)
class HACEstimate:
    """Weights of residual products, with a bandwidth."""

    spec: HACSpec  # the kernel
    bandwidth: float  # its bandwidth, in the unit of the locations; unused for clusters
    n_rows: int  # number of rows
    n_groups: int | None = None  # number of groups, if any

    @property
    def independent(self) -> bool:
        """Whether independent noise was preferred: never, as nothing is tested."""
        return False

    @property
    def dof(self) -> float:
        """Degrees of freedom of variances: groups less one for clusters, else infinite."""
        if self.spec.kernel != CLUSTERS or self.n_groups is None:
            return math.inf
        return max(self.n_groups - 1.0, 1.0)

    def in_units(self, unit: float) -> HACEstimate:
        """The same in other units of the outputs."""
        return self

    @property
    def small_sample(self) -> float:
        """Small-sample factor G (n - 1) / ((G - 1) n) for clusters, else 1."""
        if self.spec.kernel != CLUSTERS or not self.n_groups or self.n_groups < 2:
            return 1.0
        return self.n_groups / (self.n_groups - 1) * (self.n_rows - 1) / self.n_rows

    def root(self, locations: Locations) -> Root:
        """Root of the weight matrix of rows in the order of their locations."""
        return self.spec.root(locations.ordered, self.bandwidth)

    def __str__(self) -> str:
        if self.spec.kernel == CLUSTERS:
            groups = f"{self.n_groups} groups of {self.n_rows} rows"
            return f"Noise: arbitrary covariance within {groups}"
        within = "" if self.n_groups is None else f" within {self.n_groups} groups"
        return (
            f"Noise: residual products{within}, {self.spec.kernel} kernel of bandwidth "
            f"{self.bandwidth:.4g}, {self.n_rows} rows"
        )


def _andrews(kernel: str, residual: np.ndarray, locations: Locations) -> float:
    """Bandwidth by the rule of Andrews in the unit of time, at least one step."""
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
