"""What a fit keeps of its rows: the rows and their results, sums over them, or neither."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, to_numpy
from ulmus.core.arrays.threads import mapped
from ulmus.core.data.cv_blocks import block_starts
from ulmus.core.data.source import Block, RowBlocks, regroup_blocks
from ulmus.core.ensemble.regression import SampleScaling
from ulmus.core.fit.undersmoothed_fit import Undersmoothing
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.noise_covariance.diagnostics import NeighbourCorrelation, serial_correlation
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.response.residual_distribution import ResidualShape
from ulmus.core.ridge.moments import Moments
from ulmus.core.ridge.smoother import Smoother

# Residuals below this share of the largest deviation of y from its mean are numerical error.
NEGLIGIBLE = 1e-3
# A row of larger leverage determines its own prediction.
FULL_LEVERAGE = 1 - 1e-8


@dataclass(frozen=True)
class TrainingRows:
    """The rows of an in-memory fit and their leave-one-out results, in the fit's units of y."""

    data: RowBlocks  # the rows, in the user's units
    leverage: np.ndarray  # (K, n): leverage, mean over members
    largest_leverage: float  # the largest leverage of any row in any member
    # (M, K, n): leave-one-out residuals of each member; leave-block-out where the rows have block
    # ids.
    loo: np.ndarray
    # (K, n): expected squared error of each leave-one-out prediction, in units of the noise
    # variance.
    loo_leverage: np.ndarray
    # (K, n): noise variance at weight 1 of each row, by a model fitted without it.
    noise: np.ndarray
    # (K, n): corrected squared residuals of the ensemble, where the default estimate needs them.
    omega: np.ndarray | None
    map_rows: np.ndarray | None = None  # (n,): rows that the map was optimised on, where not on all
    locations: Locations | None = None  # locations in time or space, where noise is correlated
    # For each fold importances of the columns in another model, (d,), where these were the best
    # start of the search of the map.
    fold_importances: tuple[np.ndarray, ...] = ()
    observed: np.ndarray | None = None  # (K, n): outputs before they were mapped to the link scale

    def residuals(self, unit: np.ndarray) -> np.ndarray:
        """Leave-one-out residuals of the ensemble in units (K,) of y, shape (K, n)."""
        return self.loo.mean(axis=0) * unit[:, None]

    @property
    def weighted_residuals(self) -> np.ndarray:
        """The same in the fit's units, times the roots of the row weights, shape (K, n)."""
        root = self.data.root_weight
        return self.loo.mean(axis=0) * (1.0 if root is None else root)

    def with_copies(self, values: np.ndarray) -> np.ndarray:
        """Results (K, n) of the rows, where copies have those of the rows that they repeat."""
        copy_of = self.data.copy_of
        return values if copy_of is None else values[:, copy_of]

    def shifts(
        self, smoother: Smoother, outputs: tuple[int, ...], layer: HiddenLayer, t: Array
    ) -> np.ndarray:
        """Changes of predictions at coordinates t by leaving out each block, (K', blocks, p).

        They are those of some outputs with a smoother, in the fit's units of y.
        """
        xp, M, block_index = namespace(t), smoother.n_members, self.data.block_index
        flat = xp.reshape(t, (-1, t.shape[2]))
        out = np.zeros((len(outputs), self.data.n_blocks, t.shape[2]))

        def add(block: Block) -> None:
            index, Q = block.rows, smoother.coordinates(layer(block.X))
            starts = block_starts(block_index[index])
            for j, k in enumerate(outputs):
                L = like(self.loo[:, k, index] / M, Q)
                if block.root_weight is not None:
                    L = L * block.root_weight**2
                shifts = xp.reshape(Q * L[:, None, :], (-1, Q.shape[2])).T @ flat
                by_block = np.add.reduceat(to_numpy(shifts), starts, axis=0)
                out[j, block_index[index][starts], :] = by_block

        mapped(add, regroup_blocks(self.data))
        return out

    @property
    def calibration_rows(self) -> np.ndarray:
        """Rows of positive weight, without those set aside for the map, shape (n,)."""
        used = self.data.used
        return used if self.map_rows is None else used & ~self.map_rows

    @property
    def serial_correlations(self) -> tuple[NeighbourCorrelation, ...]:
        """Correlation of successive leave-one-out residuals of each output.

        Rows are ordered by their locations, else as in the table.
        """
        used = self.data.used
        locations = None if self.locations is None else self.locations.taken(used)
        return tuple(serial_correlation(e[used], locations) for e in self.weighted_residuals)

    @property
    def strongest_correlation(self) -> NeighbourCorrelation | None:
        """The most significant correlation of successive residuals, if one is significant.

        Residuals that are small against y are excluded: in a sorted table they are the
        approximation error of a function without noise.
        """
        sizes = np.sqrt(np.mean(self.loo.mean(axis=0)[:, self.data.used] ** 2, axis=1))
        pairs = zip(self.serial_correlations, sizes, strict=True)
        clear = [one for one, size in pairs if one.significant and size > NEGLIGIBLE]
        return max(clear, key=lambda one: one.z, default=None)


@dataclass(frozen=True)
class RowSums:
    """Sums over the rows so far, to which further rows are added."""

    scaling: SampleScaling
    moments: Moments


@dataclass(frozen=True)
class CompressedRows:
    """Results that replace the training rows of a compressed fit."""

    # Largest distance between prediction and undersmoothed fit, in standard errors.
    undersmoothing_gap: float
    undersmoothing: Undersmoothing | None = None  # the undersmoothed networks, where they exist
    # Distribution of the scaled residuals, where it is not normal.
    residual_shape: ResidualShape | None = None
