"""Points among and around the training rows, at which low-rank forms are built and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.spatial import KDTree

from ulmus.core.arrays.backend import Array, dense, like, taken_rows, to_numpy

if TYPE_CHECKING:
    from ulmus.core.fit.fit import Fit

# Neighbours: along the line to one of the nearest rows, with noise relative to the deviations.
NEAREST, NEARBY = 3, 0.05
# Points outside: rows moved away from the centre of the range by at most this share of it.
BEYOND = 0.2
# Basis points for each effective degree of freedom, and their least and largest number: training
# rows, points between neighbours, and points outside. Points of each kind that are checked.
KINDS = (3.0, 300, 700), (1.0, 100, 250), (2.0, 200, 400)
CHECKED = 100
SEED = 26


class ComparedPoints(NamedTuple):
    """Points at which forms are built and compared."""

    basis: Array  # (p, d)
    checked: Array  # (q, d): points outside the basis


def compared_points(fit: Fit, n_rows: int) -> ComparedPoints | None:
    """Points among at most n training rows, between and around them; None with few rows.

    Where all rows are in the basis, those that are checked are too.
    """
    rng = np.random.default_rng(SEED)
    X = training_inputs(fit, n_rows, rng)
    if len(X) < 2 * CHECKED:
        return None
    _, near, outside = _numbers(fit)
    rows = X if len(X) == fit.n_rows else X[:-CHECKED]
    around = surroundings(fit, X)
    basis = rows, around.neighbours(near, rng), around.outside(outside, rng)
    checked = X[-CHECKED:], around.neighbours(CHECKED, rng), around.outside(CHECKED, rng)
    reference = fit.ensemble.layer.b
    return ComparedPoints(*(like(np.concatenate(part), reference) for part in (basis, checked)))


def surroundings(fit: Fit, X: np.ndarray) -> Surroundings:
    """Random points around some of the training rows, by the ranges of the inputs."""
    return Surroundings(X, to_numpy(fit.scale.low), to_numpy(fit.scale.high))


def n_basis_rows(fit: Fit) -> int:
    """Number of training rows among basis points and those that are checked."""
    return _numbers(fit)[0] + CHECKED


def _numbers(fit: Fit) -> tuple[int, ...]:
    """Number of basis points of each kind."""
    gamma = float(np.max(fit.gamma))
    return tuple(int(min(max(a * gamma, low), high)) for a, low, high in KINDS)


def training_inputs(fit: Fit, n: int, rng: np.random.Generator) -> np.ndarray:
    """Inputs of at most n training rows, the isolated ones first, (n, d).

    The basis does not span an isolated row unless it contains it. Half of the rows are those of
    largest leverage, and the others are drawn at random.
    """
    if fit.rows is None:
        X = to_numpy(dense(fit.gap_points)).astype(float)
        return X[rng.permutation(len(X))[:n]]
    used = np.flatnonzero(fit.rows.data.used)
    order = np.argsort(-np.max(fit.rows.leverage[:, used], axis=0), kind="stable")
    isolated, others = np.split(used[order], [min(n // 2, len(used))])
    chosen = np.concatenate([isolated, rng.permutation(others)])[:n]
    return to_numpy(dense(taken_rows(fit.rows.data.X, chosen))).astype(float)


class Surroundings:
    """Random points around some training rows."""

    def __init__(self, X: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        self.X, self.deviations = X, X.std(axis=0)
        self.low, self.high, self.center = low, high, 0.5 * (low + high)
        scaled = X / np.where(self.deviations > 0, self.deviations, 1.0)
        # Rows of equal inputs are no neighbours: there is nothing between them.
        first = np.sort(np.unique(X, axis=0, return_index=True)[1])
        nearest = KDTree(scaled[first]).query(scaled, [*range(1, NEAREST + 2)][: len(first)])[1]
        self.near = first[nearest]

    def neighbours(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Points between rows and their nearest rows, with noise, shape (n, d)."""
        i = rng.integers(len(self.X), size=n)
        j = rng.integers(min(1, self.near.shape[1] - 1), self.near.shape[1], size=n)
        from_row = self.X[self.near[i, j]] - self.X[i]
        noise = NEARBY * self.deviations * rng.standard_normal((n, self.X.shape[1]))
        return self.X[i] + rng.random((n, 1)) * from_row + noise

    def outside(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows moved away from the centre of the range, by up to a tenth of it, shape (n, d)."""
        from_center = self.X[rng.integers(len(self.X), size=n)] - self.center
        return self.center + from_center * (1 + BEYOND * rng.random(from_center.shape))

    def between(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Points between any two rows, shape (n, d)."""
        first, second = (self.X[rng.integers(len(self.X), size=n)] for _ in range(2))
        return first + rng.random((n, 1)) * (second - first)

    def mixed(self, n: int, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Rows some of whose columns are those of other rows, or anywhere in the range, (n, d).

        ``columns`` is the column of each input. Half of the points have a number of one column
        anywhere in its range or a tenth of it outside.
        """
        n_columns = int(columns[-1]) + 1 if len(columns) else 0
        points = self.X[rng.integers(len(self.X), size=n)]
        others = self.X[
            rng.integers(len(self.X), size=(n, n_columns))[:, columns], np.arange(len(columns))
        ]
        exchanged = rng.random((n, n_columns)) < rng.random((n, 1)) ** 2
        points = np.where(exchanged[:, columns], others, points)
        single = np.flatnonzero(np.bincount(columns, minlength=n_columns)[columns] == 1)
        if not len(single):
            return points
        moved, chosen = np.flatnonzero(rng.random(n) < 0.5), rng.choice(single, n)
        at = chosen[moved]
        anywhere = self.low[at] + (self.high - self.low)[at] * rng.uniform(-0.1, 1.1, len(at))
        points[moved, at] = anywhere
        return points
