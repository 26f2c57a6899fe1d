"""Signs that the hidden layer cannot follow the function, and what they add to an interval for it.

Two signs, both at rows of the table and in the inputs as the layer sees them, its map included.
Left-out residuals of neighbours that agree in sign show a function that was smoothed away. A fit
that changes along an input almost only within a few rows shows a step, and the rows do not tell
where between them it lies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.spatial import KDTree

from ulmus.core.backend import Array, like, taken_rows, to_numpy
from ulmus.core.ensemble import Ensemble
from ulmus.core.source import RowBlocks

# Rows that are looked at, and neighbours of each, itself included.
MOST_ROWS, NEIGHBOURS = 2000, 9
# Residuals are cut at so many robust standard deviations, so that single wild ones decide nothing.
CUT = 2.5
# Residuals cluster where neighbours agree by more than the first number of standard errors; or by
# more than the second, if a sum over neighbours also exceeds sqrt(2 log n), about the largest of n
# independent ones, by the third. Without misfit agreement is negative, as rows were left out, and
# reached 3.1 in a hundred fits with t3 noise, or noise whose deviation varies tenfold.
STRONG_AGREEMENT, AGREEMENT, EXCESS = 3.5, 1.0, 0.7
# A fit that changes within fewer rows than these, or than this share of them, has a step; one with
# less variance than this share of the noise has none.
STEP_ROWS, STEP_SHARE, FLAT_SHARE = 14.0, 0.07, 0.25
# Profiles along an input: through so many rows, with a point for so many rows.
PROFILES, ROWS_PER_POINT, MOST_POINTS = 24, 3, 120
# An input of which fewer of these points differ has steps of its own.
DISTINCT_SHARE = 0.8
# Inputs of a smaller relevance, and more inputs than these, are not looked at.
LEAST_RELEVANCE, MOST_INPUTS = 0.05, 10
# Neighbours whose residuals and predictions an interval allows for where there is a sign.
LOCAL = 4


@dataclass(frozen=True)
class Misfit:
    """Signs of misfit for each output, and the rows that intervals look them up in.

    Parameters
    ----------
    largest_sum : ndarray of shape (K,)
        Largest sum of left-out residuals of up to eight neighbours, in standard deviations.
    agreement : ndarray of shape (K,)
        Sum of products of neighbours' residuals, in standard errors.
    step_rows : ndarray of shape (K,)
        Rows within which the fit makes most of its change along an input.
    n_rows : int
        Rows looked at.
    inputs : ndarray of shape (n, d')
        Their inputs, mapped.
    residuals, fitted : ndarrays of shape (K, n)
        Their left-out residuals and predictions, in the units of y.
    """

    largest_sum: np.ndarray
    agreement: np.ndarray
    step_rows: np.ndarray
    n_rows: int
    inputs: np.ndarray
    residuals: np.ndarray
    fitted: np.ndarray

    @property
    def clustered(self) -> np.ndarray:
        """Whether residuals of neighbours agree, shape (K,)."""
        excess = self.largest_sum - np.sqrt(2 * np.log(max(self.n_rows, 2)))
        both = (self.agreement > AGREEMENT) & (excess > EXCESS)
        return (self.agreement > STRONG_AGREEMENT) | both

    @property
    def stepped(self) -> np.ndarray:
        """Whether the fit has a step, shape (K,)."""
        return self.step_rows < min(STEP_ROWS, STEP_SHARE * self.n_rows)

    def allowance(self, inputs: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """What an interval for the function adds to both sides, shape (K, p).

        Where residuals cluster, the mean residual of the nearest rows; where there is a step,
        the change of the prediction to the nearest rows.
        """
        if not np.any(self.clustered | self.stepped):
            return np.zeros_like(mean)
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
    """Look for signs of misfit.

    Parameters
    ----------
    ensemble : Ensemble
        The fitted members.
    data : RowBlocks
        The training rows.
    residuals : ndarray of shape (K, n)
        Left-out residuals, in the units of y.
    noise : ndarray of shape (K,)
        Noise variance, in the units of y.
    matrix : ndarray of shape (d', d') or None
        The map of the inputs.
    relevance : ndarray of shape (d,) or None
        Shares of the inputs in the prediction.
    """
    used = np.flatnonzero(data.used)
    rows = used[np.unique(np.linspace(0, len(used) - 1, min(len(used), MOST_ROWS)).astype(int))]
    X = dense(taken_rows(data.X, rows))
    inputs, few = mapped(ensemble, X, matrix), residuals[:, rows]
    fitted = ensemble.mean(X)
    weight = 1.0 if data.root_weight is None else data.root_weight[rows]
    largest, agreement = neighbour_sums(inputs, few * weight)
    steps = np.full(len(few), float(len(rows)))
    for j in _worth_a_look(relevance, X.shape[1]):
        steps = np.minimum(steps, changing_rows(ensemble, X, j))
    flat = np.var(fitted, axis=1) <= FLAT_SHARE * noise
    steps = np.where(flat, float(len(rows)), steps)
    return Misfit(largest, agreement, steps, len(rows), inputs, few, fitted)


def dense(X: Array) -> Array:
    """The same rows as a dense array."""
    return X.toarray() if scipy.sparse.issparse(X) else X


def mapped(ensemble: Ensemble, X: Array, matrix: np.ndarray | None) -> np.ndarray:
    """Inputs of the rows of a dense X as the hidden units see them, shape (n, d')."""
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
    u = np.clip(residuals / robust, -CUT, CUT)
    u = u / np.sqrt(np.mean(u**2, axis=1, keepdims=True))
    _, near = KDTree(inputs).query(inputs, k)
    sums = np.cumsum(u[:, near], axis=2)[:, :, 1:-1] / np.sqrt(np.arange(2, k))
    products = np.sum(u[:, :, None] * u[:, near[:, 1 : 1 + LOCAL]], axis=(1, 2))
    return np.max(np.abs(sums), axis=(1, 2)), products / np.sqrt(n * min(LOCAL, k - 1))


def changing_rows(ensemble: Ensemble, X: Array, j: int) -> np.ndarray:
    """Rows within which predictions make most of their change along input j, shape (K,).

    Profiles are cut at quantiles of the input. The share of the rows, and that of the range, on
    which a change as steep everywhere would have to be made are compared; the larger counts, as a
    change between the few far values of a skewed input is none within few rows.
    """
    X, n = to_numpy(X), X.shape[0]
    points = max(min(n // ROWS_PER_POINT, MOST_POINTS), 2)
    grid = np.quantile(X[:, j], np.linspace(0, 1, points + 1))
    length = np.diff(grid)
    if np.mean(length > 0) < DISTINCT_SHARE:
        return np.full(ensemble.n_outputs, float(n))  # steps between few values are no sign
    through = X[np.linspace(0, n - 1, min(PROFILES, n)).astype(int)]
    profile = np.repeat(through, points + 1, axis=0)
    profile[:, j] = np.tile(grid, len(through))
    values = ensemble.mean(profile).reshape(-1, len(through), points + 1)
    change = np.sqrt(np.mean(np.diff(values, axis=2) ** 2, axis=1))
    rows = participation(change, np.full(points, 1 / points))
    return n * np.maximum(rows, participation(change, length / np.sum(length)))


def participation(change: np.ndarray, share: np.ndarray) -> np.ndarray:
    r"""Share of a whole over which a change is made, shape (K,).

    For changes c (K, points) over parts of shares l, :math:`(\sum c^2/l)^2 / \sum c^4/l^3`: one
    for a constant slope, and the part's share for a change within one part.
    """
    largest = np.max(change, axis=1, keepdims=True)
    c2 = np.divide(change, largest, out=np.ones_like(change), where=largest > 0) ** 2
    wide = share > 0
    c2, share = c2[:, wide], share[wide] / np.sum(share[wide])
    return np.sum(c2 / share, axis=1) ** 2 / np.sum(c2**2 / share**3, axis=1)


def _worth_a_look(relevance: np.ndarray | None, d: int) -> list[int]:
    """Inputs along which a step is looked for."""
    if relevance is None:
        return list(range(d)) if d <= MOST_INPUTS else []
    most = np.argsort(-relevance)[:MOST_INPUTS]
    return [int(j) for j in most if relevance[j] >= LEAST_RELEVANCE]
