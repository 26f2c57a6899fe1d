"""What a fit keeps of the rows it was made from: the rows themselves, or sums over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.data.source import RowBlocks
from ulmus.core.ensemble.regression import Start
from ulmus.core.noise_covariance.diagnostics import SerialCorrelation, serial_correlation
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.ridge.moments import Moments

# Residuals, as a share of the largest deviation of y from its mean, that are no noise.
NEGLIGIBLE = 1e-3


# A row whose leverage is this close to 1 determines its own prediction.
FULL_LEVERAGE = 1 - 1e-8


@dataclass(frozen=True)
class TrainingRows:
    """What an in-memory fit knows of its rows, in its units of y.

    Parameters
    ----------
    data : RowBlocks
        The rows, in the user's units.
    leverage : ndarray of shape (K, n)
        Leverage, mean over members.
    largest_leverage : float
        The largest of any row in any member.
    loo : ndarray of shape (M, K, n)
        Residuals of each member fitted without the row, or without its block where the rows
        have labels.
    norm : ndarray of shape (K, n)
        Squared error expected of each left-out prediction, in units of the noise.
    noise : ndarray of shape (K, n)
        Noise variance at weight 1 of each row, by a model fitted without it.
    omega : ndarray of shape (K, n) or None
        Squared residuals of the ensemble, discounted, where the default estimate needs them.
    tuned : ndarray of shape (n,) or None
        Which rows the map was learned from, where others were kept from it.
    places : Locations or None
        Where the rows are in time or space, where their noise hangs together.
    """

    data: RowBlocks
    leverage: np.ndarray
    largest_leverage: float
    loo: np.ndarray
    norm: np.ndarray
    noise: np.ndarray
    omega: np.ndarray | None
    tuned: np.ndarray | None = None
    locations: Locations | None = None

    def residuals(self, unit: np.ndarray) -> np.ndarray:
        """Leave-one-out residuals of the ensemble in the units of y (K,), shape (K, n)."""
        return self.loo.mean(axis=0) * unit[:, None]

    @property
    def weighted_residuals(self) -> np.ndarray:
        """The same in the fit's units, times the roots of the row weights, shape (K, n)."""
        root = self.data.root_weight
        return self.loo.mean(axis=0) * (1.0 if root is None else root)

    @property
    def judges(self) -> np.ndarray:
        """Rows whose left-out residuals make prediction intervals, shape (n,).

        All of positive weight, but those that were set aside for the map.
        """
        return self.data.used if self.tuned is None else self.data.used & ~self.tuned

    @property
    def serial_correlations(self) -> tuple[SerialCorrelation, ...]:
        """Correlation of successive rows of each output, by left-out residuals.

        Rows follow one another as their noise does, or else as in the table.
        """
        locations, used = self.locations or Locations(n=self.data.n_rows), self.data.used
        return tuple(
            serial_correlation(residual[used], locations.taken(used))
            for residual in self.weighted_residuals
        )

    @property
    def clearest_correlation(self) -> SerialCorrelation | None:
        """The clearest sign in an output that rows hang together, if any is clear.

        Residuals that are small against y are what a sorted table shows of a function without
        noise.
        """
        sizes = np.sqrt(np.mean(self.loo.mean(axis=0)[:, self.data.used] ** 2, axis=1))
        found = zip(self.serial_correlations, sizes, strict=True)
        clear = [one for one, size in found if one.significant and size > NEGLIGIBLE]
        return max(clear, key=lambda one: one.z, default=None)


@dataclass(frozen=True)
class Stream:
    """What rows that come later are added to: the sums so far, and what they rest on."""

    start: Start
    moments: Moments
