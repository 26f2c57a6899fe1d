"""Evidence of misfit of the hidden layer, and the half-width it adds to intervals for the function.

Leave-one-out residuals of neighbours that agree in sign are a sign of oversmoothing; neighbours are
determined in the mapped inputs. A steep change along an input that a step explains as well is not
identified between the rows on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from ulmus.core.arrays.backend import Array, dense, like, taken_rows, to_numpy
from ulmus.core.data.source import RowBlocks
from ulmus.core.ensemble.ensemble import Ensemble

# Rows that are used, and neighbours of each, itself included.
MAX_MISFIT_ROWS, NEIGHBOURS = 2000, 9
# Residuals are clipped at this many robust standard deviations.
CLIP = 2.5
# Residuals cluster if the agreement of neighbours exceeds the first number of standard errors; or
# the second, if a sum over neighbours also exceeds sqrt(2 log n), about the maximum of n
# independent sums, by the third. Without misfit the agreement of leave-one-out residuals is
# negative, and reached 3.1 in 100 fits with t3 noise, or noise whose deviation varies tenfold.
STRONG_AGREEMENT, AGREEMENT, EXCESS = 3.5, 1.0, 0.7
# A change is steep if it occurs within this share of the rows and of the range of an input, and
# large if it exceeds this many standard deviations of the noise.
STEEP_SHARE, LARGE_CHANGE = 0.2, 2.0
# Profiles along an input: their number, rows per point, and the largest number of points.
PROFILES, ROWS_PER_POINT, MOST_POINTS = 16, 3, 333
# Fewest rows in the zone of a change, and smallest share of rows on each side of it.
FEWEST_IN_ZONE, BESIDE_SHARE = 4, 0.05
# Smallest share of distinct points; inputs with fewer values have steps of their own.
DISTINCT_SHARE = 0.8
# Inputs of at least this relevance are searched for steps, and at most this many.
LEAST_RELEVANCE, MOST_INPUTS = 0.1, 10
# Neighbours whose residuals and predictions enter the allowance.
LOCAL = 4


@dataclass(frozen=True)
class Misfit:
    """Statistics of misfit for each output, and the rows that allowances are computed from."""

    # (K,): largest sum of leave-one-out residuals of two to eight neighbours, in standard
    # deviations.
    largest_sum: np.ndarray
    agreement: np.ndarray  # (K,): sum of products of neighbours' residuals, in standard errors
    # (K,): reduction of squared errors by a step instead of the steepest change, in units of the
    # noise variance; minus infinity where no change is steep and large.
    step_gain: np.ndarray
    n_rows: int  # rows used
    inputs: np.ndarray  # (n, d'): their mapped inputs
    # residuals, fitted: (K, n): their leave-one-out residuals and predictions, in the units of y.
    residuals: np.ndarray
    fitted: np.ndarray

    @property
    def clustered(self) -> np.ndarray:
        """Whether residuals of neighbours agree, shape (K,)."""
        both = (self.agreement > AGREEMENT) & (self.largest_sum > self._largest_usual_sum)
        return (self.agreement > STRONG_AGREEMENT) | both

    @property
    def clustered_limit(self) -> str:
        """When residuals of neighbours agree, in words."""
        return (
            f"z above {STRONG_AGREEMENT:g}, or above {AGREEMENT:g} with sums above "
            f"{self._largest_usual_sum:.1f} standard deviations"
        )

    @property
    def _largest_usual_sum(self) -> float:
        """A sum that few tables of independent residuals exceed, in standard deviations."""
        return float(np.sqrt(2 * np.log(max(self.n_rows, 2)))) + EXCESS

    @property
    def stepped(self) -> np.ndarray:
        """Whether a step explains a change as well as the fit, shape (K,)."""
        return self.step_gain > 0

    @property
    def found(self) -> bool:
        """Whether any output shows misfit."""
        return bool(np.any(self.clustered | self.stepped))

    def allowance(self, inputs: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Half-width that intervals for the function add, shape (K, p).

        Where residuals cluster, the mean residual of the nearest rows; where there is a step,
        the change of the prediction to the nearest rows.
        """
        _, near = KDTree(self.inputs).query(inputs, min(LOCAL, self.n_rows))
        near = near.reshape(len(inputs), -1)
        bias = np.abs(np.mean(self.residuals[:, near], axis=2))
        change = np.max(np.abs(self.fitted[:, near] - mean[:, :, None]), axis=2)
        return bias * self.clustered[:, None] + change * self.stepped[:, None]


def misfit(
    ensemble: Ensemble,
    data: RowBlocks,
    residuals: np.ndarray,
    noise: np.ndarray,
    matrix: np.ndarray | None,
    relevance: np.ndarray | None,
) -> Misfit:
    """Statistics of misfit at the training rows.

    Leave-one-out residuals (K, n) and noise variances (K,) are in the units of y; ``matrix``
    (d', d') is the map of the inputs and ``relevance`` (d,) their shares in the prediction.
    """
    rows = data.evenly_spaced(MAX_MISFIT_ROWS)
    X = dense(taken_rows(data.X, rows))
    inputs, few = mapped(ensemble, X, matrix), residuals[:, rows]
    fitted = ensemble.mean(X)
    root = np.ones(len(rows)) if data.root_weight is None else data.root_weight[rows]
    largest, agreement = neighbour_sums(inputs, few * root)
    gain = np.full(len(few), -np.inf)
    for j in _searched_inputs(relevance, X.shape[1]):
        y = data.y[:, rows]
        gain = np.maximum(gain, step_gain(ensemble, to_numpy(X), y, few, root, noise, j))
    return Misfit(largest, agreement, gain, len(rows), inputs, few, fitted)


def mapped(ensemble: Ensemble, X: Array, matrix: np.ndarray | None) -> np.ndarray:
    """Mapped inputs of the rows of a dense X, shape (n, d')."""
    layer = ensemble.layer
    Z = to_numpy(layer.inputs(like(X, layer.W))).T
    return np.ascontiguousarray(Z if matrix is None else Z @ matrix)


def neighbour_sums(inputs: np.ndarray, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Largest sum over two to eight neighbours, and their agreement, for each output, (K,)."""
    K, n = residuals.shape
    k = min(NEIGHBOURS, n)
    robust = np.median(np.abs(residuals), axis=1, keepdims=True) / 0.6745
    if k < 3 or not np.all(robust > 0):
        return np.zeros(K), np.zeros(K)
    u = np.clip(residuals / robust, -CLIP, CLIP)
    u = u / np.sqrt(np.mean(u**2, axis=1, keepdims=True))
    _, near = KDTree(inputs).query(inputs, k)
    sums = np.cumsum(u[:, near], axis=2)[:, :, 1:-1] / np.sqrt(np.arange(2, k))
    products = np.sum(u[:, :, None] * u[:, near[:, 1 : 1 + LOCAL]], axis=(1, 2))
    return np.max(np.abs(sums), axis=(1, 2)), products / np.sqrt(n * min(LOCAL, k - 1))


def step_gain(
    ensemble: Ensemble,
    X: np.ndarray,
    y: np.ndarray,
    residuals: np.ndarray,
    root: np.ndarray,
    noise: np.ndarray,
    j: int,
) -> np.ndarray:
    """Reduction of squared errors by a step along input j, in units of the noise, shape (K,).

    ``root`` (n,) are roots of the weights of the rows, and ``noise`` (K,) variances at weight 1.

    Rows within the zone of the steepest change are predicted by the fit at the nearer end of the
    zone, with the best location of the step, and compared with their leave-one-out residuals.
    """
    gain = np.full(len(y), -np.inf)
    grid, change = profile_changes(ensemble, X, j)
    length = np.diff(grid)
    if np.mean(length > 0) < DISTINCT_SHARE:
        return gain  # steps between few values are no misfit
    rows = participation(change, np.full(len(length), 1 / len(length)))
    width = participation(change, length / np.sum(length))
    slope = np.divide(change, length, out=np.zeros_like(change), where=length > 0)
    for k in np.flatnonzero(np.maximum(rows, width) < STEEP_SHARE):
        steepest = int(np.argmax(slope[k]))
        center, half = np.mean(grid[steepest : steepest + 2]), width[k] * np.sum(length)
        zone = np.flatnonzero(np.abs(X[:, j] - center) <= half)
        zone = zone[np.argsort(X[zone, j])]
        beside = min(np.sum(X[:, j] < center - half), np.sum(X[:, j] > center + half))
        if len(zone) < FEWEST_IN_ZONE or beside < BESIDE_SHARE * len(X):
            continue  # the ends of the range are steep by chance
        sides = [ensemble.mean(_moved(X[zone], j, center + side))[k] for side in (-half, half)]
        own = root[zone]
        if np.mean((own * (sides[1] - sides[0])) ** 2) < LARGE_CHANGE**2 * noise[k]:
            continue
        left, right = ((own * (y[k, zone] - side)) ** 2 for side in sides)
        splits = np.append(0.0, np.cumsum(left)) + np.append(np.cumsum(right[::-1])[::-1], 0.0)
        saved = np.sum((own * residuals[k, zone]) ** 2) - np.min(splits)
        gain[k] = saved / noise[k] if noise[k] > 0 else np.inf
    return gain


def _moved(X: np.ndarray, j: int, value: float) -> np.ndarray:
    X = X.copy()
    X[:, j] = value
    return X


def profile_changes(ensemble: Ensemble, X: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of input j, and root mean squared changes of the prediction between them."""
    n = len(X)
    points = max(min(n // ROWS_PER_POINT, MOST_POINTS), 2)
    grid = np.quantile(X[:, j], np.linspace(0, 1, points + 1))
    through = X[np.linspace(0, n - 1, min(PROFILES, n)).astype(int)]
    profile = np.repeat(through, points + 1, axis=0)
    profile[:, j] = np.tile(grid, len(through))
    values = ensemble.mean(profile).reshape(-1, len(through), points + 1)
    return grid, np.sqrt(np.mean(np.diff(values, axis=2) ** 2, axis=1))


def participation(change: np.ndarray, share: np.ndarray) -> np.ndarray:
    r"""Share of a range over which a change occurs, shape (K,).

    For changes c (K, points) over parts of shares l, :math:`(\sum c^2/l)^2 / \sum c^4/l^3`: one
    for a constant slope, and the part's share for a change within one part.
    """
    largest = np.max(change, axis=1, keepdims=True)
    c2 = np.divide(change, largest, out=np.ones_like(change), where=largest > 0) ** 2
    wide = share > 0
    c2, share = c2[:, wide], share[wide] / np.sum(share[wide])
    return np.sum(c2 / share, axis=1) ** 2 / np.sum(c2**2 / share**3, axis=1)


def _searched_inputs(relevance: np.ndarray | None, d: int) -> list[int]:
    """Inputs along which a step is searched."""
    if relevance is None:
        return list(range(d)) if d <= MOST_INPUTS else []
    most = np.argsort(-relevance)[:MOST_INPUTS]
    return [int(j) for j in most if relevance[j] >= LEAST_RELEVANCE]
