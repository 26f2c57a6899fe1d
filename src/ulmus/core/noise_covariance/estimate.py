"""An estimated noise covariance: its parameters, their standard errors, and the covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.roots import IdentityRoot, Root, StackedRoot
from ulmus.core.noise_covariance.structure import CovarianceStructure


@dataclass(frozen=True)
class CovarianceEstimate:
    """Scales and shares of a covariance structure, by restricted likelihood."""

    structure: CovarianceStructure  # the covariance structure
    values: tuple[float, ...]  # parameters, in the order of ``names``
    # Their standard errors; NaN for a parameter at its bound: a scale beyond the range of the rows,
    # a nugget that is not needed.
    standard_errors: tuple[float, ...]
    sill: float  # variance of the noise of a row, the sum of all components
    shares: tuple[float, ...]  # share of each term in it; the remainder is the nugget
    log_likelihood: float  # restricted log likelihood
    independent_log_likelihood: float  # the same for independent noise
    independent_variance: float  # variance of the noise if it is independent
    n_rows: int  # number of rows
    n_removed: int  # directions that the smoother retains, which the likelihood excludes
    # Whether independent noise was preferred, since the gain in likelihood is too small.
    independent: bool
    # Degrees of freedom of the variance of the noise that the smoother retains: few if noise is
    # correlated over long distances.
    dof: float = math.inf
    sill_dof: float = math.inf  # degrees of freedom of the variance of the noise of a row

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.structure.names

    @property
    def n_left(self) -> int:
        """Residual degrees of freedom from which the parameters are estimated."""
        return self.n_rows - self.n_removed

    @property
    def scales(self) -> tuple[float, ...]:
        """Scale of each term."""
        return self.values[: len(self.structure.terms)]

    @property
    def gain(self) -> float:
        """Twice the gain in log likelihood over independent noise."""
        return 2 * (self.log_likelihood - self.independent_log_likelihood)

    @property
    def variance(self) -> float:
        """Variance of the noise of a row."""
        return self.independent_variance if self.independent else self.sill

    @property
    def structured_variances(self) -> tuple[float, ...]:
        """Variance of each term; zero if independent noise was preferred."""
        return tuple(0.0 if self.independent else self.sill * share for share in self.shares)

    @property
    def structured_variance(self) -> float:
        """Variance of the correlated components."""
        return sum(self.structured_variances)

    @property
    def nugget_variance(self) -> float:
        """Variance of the independent component."""
        return max(self.variance - self.structured_variance, 0.0)

    def in_units(self, unit: float) -> CovarianceEstimate:
        """The same for outputs multiplied by ``unit``."""
        shift = self.n_left * math.log(unit)
        return replace(
            self,
            sill=self.sill * unit**2,
            independent_variance=self.independent_variance * unit**2,
            log_likelihood=self.log_likelihood - shift,
            independent_log_likelihood=self.independent_log_likelihood - shift,
        )

    def root(self, locations: Locations) -> Root:
        """Root of the noise covariance of rows in the order of their locations."""
        if self.independent:
            return StackedRoot((IdentityRoot(),), (self.variance,))
        locations = locations.ordered
        parts = zip(self.structure.terms, self.scales, strict=True)
        roots: tuple[Root, ...] = tuple(term.root(locations, scale) for term, scale in parts)
        weights = self.structured_variances
        if self.structure.nugget:
            roots, weights = (*roots, IdentityRoot()), (*weights, self.nugget_variance)
        return StackedRoot(roots, weights)

    def covariance(self, locations: Locations, other: Locations | None = None) -> np.ndarray:
        """Noise covariance of rows, or with the noise at other locations, shape (n, n').

        The nugget is included in the first only.
        """
        S = np.zeros((locations.n, (other or locations).n))
        parts = zip(self.structure.terms, self.scales, self.structured_variances, strict=True)
        for term, scale, variance in parts:
            if variance:
                S += variance * term.correlation(locations, scale, other)
        return S if other is not None else S + self.nugget_variance * np.eye(locations.n)

    def __str__(self) -> str:
        rows = zip(self.names, self.values, self.standard_errors, strict=True)
        width = max(map(len, (*self.names, "structured variance")))
        lines = [f"Noise: {self.structure}", f"{'':{width}}  {'value':>10}  {'std. error':>10}"]
        for name, value, error in rows:
            formatted = f"{'at bound':>10}" if math.isnan(error) else f"{error:10.4g}"
            lines.append(f"{name:{width}}  {value:10.4g}  {formatted}")
        lines += [
            f"{'structured variance':{width}}  {self.structured_variance:10.4g}",
            f"{'nugget variance':{width}}  {self.nugget_variance:10.4g}",
            f"{self.n_rows} rows, {self.n_left} residual degrees of freedom",
            f"log likelihood {self.log_likelihood:.2f}, independent noise "
            f"{self.independent_log_likelihood:.2f}: twice the gain is {self.gain:.2f}",
        ]
        if self.independent:
            lines.append("The gain is too small: the noise is assumed independent.")
        return "\n".join(lines)
