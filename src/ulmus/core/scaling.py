"""Mean and standard deviation of the inputs, as sums over row blocks that merge with ``+``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from ulmus.core.backend import Array, namespace, to_numpy
from ulmus.core.moments import Block


@dataclass(frozen=True)
class FeatureScale:
    """Weighted mean and sum of squared deviations of each feature.

    Parameters
    ----------
    mass : float
        Sum of the row weights.
    mean, deviations : ndarrays of shape (d,)
        Mean, and sum of weighted squared deviations from it.
    """

    mass: float
    mean: np.ndarray
    deviations: np.ndarray

    def __add__(self, other: FeatureScale) -> FeatureScale:
        """Scale of the rows of both (Chan, Golub & LeVeque, 1979)."""
        mass = self.mass + other.mass
        if mass == 0:
            return self
        gap = other.mean - self.mean
        share = other.mass / mass
        deviations = self.deviations + other.deviations + gap**2 * self.mass * share
        return FeatureScale(mass, self.mean + gap * share, deviations)

    @property
    def sd(self) -> np.ndarray:
        """Standard deviations, 1 for features that are constant up to round-off."""
        sd = np.sqrt(self.deviations / self.mass)
        return np.where(sd <= 10 * np.finfo(float).eps * np.abs(self.mean), 1.0, sd)


def feature_scale(blocks: Iterable[Block]) -> FeatureScale:
    """Scale of the inputs of all blocks."""
    total: FeatureScale | None = None
    for block in blocks:
        scale = _block_scale(block.X, block.root_weight)
        total = scale if total is None else total + scale
    if total is None:
        raise ValueError("blocks holds no rows; give at least two rows of data.")
    return total


def _block_scale(X: Array, root_weight: Array | None) -> FeatureScale:
    weight = None if root_weight is None else root_weight**2
    if weight is not None and (isinstance(X, np.ndarray) or scipy.sparse.issparse(X)):
        weight = to_numpy(weight)
    if scipy.sparse.issparse(X):
        rows = np.ones(X.shape[0]) if weight is None else weight
        mass = float(np.sum(rows))
        mean = (X.T @ rows) / (mass or 1.0)
        deviations = np.maximum(X.multiply(X).T @ rows - mass * mean**2, 0)
        return FeatureScale(mass, mean, deviations)
    xp = namespace(X)
    X = xp.astype(X, xp.float64)
    rows = xp.ones_like(X[:, 0]) if weight is None else xp.astype(weight, xp.float64)
    mass = float(xp.sum(rows))
    mean = (rows @ X) / (mass or 1.0)
    return FeatureScale(mass, to_numpy(mean), to_numpy(rows @ (X - mean) ** 2))
