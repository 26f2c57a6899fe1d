r"""Whether residuals hang together: the correlation of neighbours in time and in space.

Both scores are sums of products of residuals over pairs of neighbours, each over its own standard
deviation, :math:`z = \sum e_i e_j / \sqrt{\sum e_i^2 e_j^2}`. If rows are independent, products of
different pairs are uncorrelated, also where the variance of the noise varies or pairs share a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist

from ulmus.core.noise_covariance.locations import Locations

# Nearest neighbours of a row that count as its neighbours in space.
NEAREST = 6
# A variogram reaches over this share of the box around the rows, and takes so many of them.
REACH, VARIOGRAM_ROWS = 1 / 3, 2000
SEED = 0
# Neighbours clearly hang together where both the score and the correlation are larger: neither was
# in 1200 fits of independent rows, whose scores reached 2.7, also of tables sorted by an input.
CERTAIN, SIZABLE = 4.5, 0.2


class _Neighbours:
    """What neighbours in time and in space have in common: a correlation, and its score."""

    correlation: float
    z: float

    @property
    def significant(self) -> bool:
        """Whether rows hang together beyond doubt, and enough to matter."""
        return self.z > CERTAIN and self.correlation > SIZABLE


@dataclass(frozen=True)
class SerialCorrelation(_Neighbours):
    """Correlation of successive rows.

    Parameters
    ----------
    correlation : float
        Mean product of residuals of successive rows of a group, over their variance.
    z : float
        Its score: normal with variance one if rows are independent, large if they hang together.
    n_pairs : int
        Number of pairs.
    """

    correlation: float
    z: float
    n_pairs: int

    @property
    def durbin_watson(self) -> float:
        """The statistic of Durbin and Watson up to the ends of the series: 2 if independent."""
        return 2 * (1 - self.correlation)


@dataclass(frozen=True)
class Correlogram:
    """Correlation of rows by how many rows lie between them.

    Parameters
    ----------
    lags : ndarray of shape (h,)
        1 for successive rows of a group, 2 for those with one between them, and so on.
    correlations : ndarray of shape (h,)
        Mean product of residuals of such rows, over their variance.
    deviations : ndarray of shape (h,)
        Standard deviation that each has if rows are independent.
    """

    lags: np.ndarray
    correlations: np.ndarray
    deviations: np.ndarray


@dataclass(frozen=True)
class Variogram(_Neighbours):
    """Half the mean squared difference of residuals by distance, and the score of neighbours.

    Parameters
    ----------
    distances : ndarray of shape (b,)
        Mean distance of the pairs of a bin.
    semivariances : ndarray of shape (b,)
        Half their mean squared difference.
    counts : ndarray of shape (b,)
        Their number.
    variance : float
        Variance of the residuals, which the semivariances of distant pairs come to.
    correlation : float
        Mean product of residuals of nearest neighbours, over the variance.
    z : float
        Its score: normal with variance one if rows are independent, large if they hang together.
    n_pairs : int
        Number of pairs of nearest neighbours.
    """

    distances: np.ndarray
    semivariances: np.ndarray
    counts: np.ndarray
    variance: float
    correlation: float
    z: float
    n_pairs: int


def serial_correlation(residuals: np.ndarray, locations: Locations) -> SerialCorrelation:
    """Correlation of rows with the next of their group, from residuals (n,)."""
    e = (residuals - np.mean(residuals))[locations.order]
    first = _followed(locations, 1)
    return SerialCorrelation(*_score(e, first, first + 1))


def correlogram(residuals: np.ndarray, locations: Locations, n_lags: int) -> Correlogram:
    """Correlations of rows of a group at lags 1 to ``n_lags``, as far as groups are so long."""
    e = (residuals - np.mean(residuals))[locations.order]
    found = []
    for lag in range(1, n_lags + 1):
        first = _followed(locations, lag)
        if len(first):
            correlation, z, _ = _score(e, first, first + lag)
            found.append((lag, correlation, correlation / z if z else 0.0))
    lags, correlations, deviations = np.array(found).reshape(-1, 3).T
    return Correlogram(lags.astype(int), correlations, deviations)


def _followed(locations: Locations, lag: int) -> np.ndarray:
    """Locations in the order of rows whose group goes on for so many rows more."""
    codes = locations.codes[locations.order]
    return np.flatnonzero(codes[:-lag] == codes[lag:])


def variogram(residuals: np.ndarray, coords: np.ndarray, n_bins: int = 12) -> Variogram:
    """Variogram of residuals (n,) at coordinates (n, c)."""
    e = residuals - np.mean(residuals)
    k = min(NEAREST, len(e) - 1)
    # One of them is the row itself, though not always the first.
    near = cKDTree(coords).query(coords, k=np.arange(1, k + 2))[1]
    first = np.repeat(np.arange(len(e)), k + 1)
    pairs = np.sort(np.column_stack([first, near.ravel()]), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    correlation, z, n_pairs = _score(e, pairs[:, 0], pairs[:, 1])
    bins = _bins(e, coords, n_bins)
    return Variogram(*bins, float(np.mean(e**2)), correlation, z, n_pairs)


def _bins(
    e: np.ndarray, coords: np.ndarray, n_bins: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean distance, semivariance and number of pairs in bins of equal width that have any."""
    if len(e) > VARIOGRAM_ROWS:
        some = np.random.default_rng(SEED).choice(len(e), VARIOGRAM_ROWS, replace=False)
        e, coords = e[some], coords[some]
    reach = REACH * np.linalg.norm(np.ptp(coords, axis=0))
    distance, square = pdist(coords), pdist(e[:, None], "sqeuclidean") / 2
    within = distance <= reach
    distance, square = distance[within], square[within]
    width = reach / n_bins if reach > 0 else 1.0
    number = np.minimum((distance / width).astype(int), n_bins - 1)
    counts = np.bincount(number, minlength=n_bins)
    sums = [np.bincount(number, values, n_bins) for values in (distance, square)]
    used = counts > 0
    means = [total[used] / counts[used] for total in sums]
    return means[0], means[1], counts[used]


def _score(e: np.ndarray, i: np.ndarray, j: np.ndarray) -> tuple[float, float, int]:
    """Correlation, score and number of pairs i and j of centred residuals."""
    products, variance = e[i] * e[j], float(np.mean(e**2))
    if variance == 0 or not np.any(products):
        return 0.0, 0.0, len(products)
    z = float(np.sum(products)) / math.sqrt(float(np.sum(products**2)))
    return float(np.mean(products)) / variance, z, len(products)
