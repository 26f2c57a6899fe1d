"""Missing numbers as conditional means of a multivariate normal distribution.

Means and covariances are estimated by the EM algorithm, with a prior of independent inputs that has
the weight of as many rows as there are inputs.

References
----------
Little & Rubin, Statistical Analysis with Missing Data (2002), section 11.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

# Of more inputs than this, missing numbers are means that ignore the other inputs.
MAX_INPUTS = 200
# Iterations of the EM algorithm, and the change of a correlation that ends them.
ITERATIONS, TOLERANCE = 20, 1e-3
# Multiply-adds of an iteration, which limit the number of rows.
MAX_PRODUCTS = 5e8


@dataclass(frozen=True)
class Imputation:
    """Conditional means of missing inputs given the others.

    Parameters
    ----------
    mean, scale : tuple of float
        Mean and standard deviation of each input.
    correlation : tuple of tuples of float
        Correlations of the inputs; empty if missing inputs are replaced by their means.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    correlation: tuple[tuple[float, ...], ...] = ()

    def fill(self, X: np.ndarray) -> np.ndarray:
        """Rows (n, d) with conditional means in place of NaN."""
        gaps = np.isnan(X)
        incomplete = np.flatnonzero(gaps.any(axis=1))
        if not len(incomplete):
            return X
        filled = X.copy()
        Z = np.where(gaps[incomplete], 0.0, (X[incomplete] - self.mean) / self.scale)
        if self.correlation:
            for pattern, rows in _patterns(gaps[incomplete]):
                coefficients, _ = _regression(self._matrix, pattern)
                Z[np.ix_(rows, pattern)] = Z[np.ix_(rows, ~pattern)] @ coefficients
        filled[incomplete] = np.where(gaps[incomplete], Z * self.scale + self.mean, X[incomplete])
        return filled

    def is_valid(self, d: int) -> bool:
        """Whether the moments are those of d inputs."""
        matrix = np.array(self.correlation or np.eye(d))
        moments = np.array([self.mean, self.scale])
        shapes = moments.shape == (2, d) and matrix.shape == (d, d)
        finite = np.isfinite(moments).all() and np.isfinite(matrix).all()
        return bool(
            shapes and finite and np.linalg.eigvalsh(matrix)[0] > 0 and np.all(moments[1] > 0)
        )

    @cached_property
    def _matrix(self) -> np.ndarray:
        return np.array(self.correlation)


def fitted_imputation(X: np.ndarray) -> Imputation:
    """Means and correlations of rows (n, d), in which NaN stands for missing inputs."""
    observed = np.sum(~np.isnan(X), axis=0)
    counts = np.maximum(observed, 1)
    mean = np.where(observed, np.nansum(X, axis=0) / counts, 0.0)
    scale = np.sqrt(np.nansum((X - mean) ** 2, axis=0) / counts)
    scale = np.where(scale > 0, scale, 1.0)
    d = X.shape[1]
    if d > MAX_INPUTS:
        return Imputation(tuple(mean.tolist()), tuple(scale.tolist()))
    n_rows = max(500, int(MAX_PRODUCTS / d**3))
    Z = ((X - mean) / scale)[:: max(1, -(-len(X) // n_rows))]
    mu, covariance = _moments(Z)
    sd = np.sqrt(np.diag(covariance))
    mean, scale = mean + mu * scale, scale * sd
    correlation = tuple(map(tuple, (covariance / np.outer(sd, sd)).tolist()))
    return Imputation(tuple(mean.tolist()), tuple(scale.tolist()), correlation)


def _moments(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and covariance (d, d) of standardised rows with missing values."""
    n, d = Z.shape
    gaps = np.isnan(Z)
    patterns = _patterns(gaps)
    mu, covariance = np.zeros(d), np.eye(d)
    for _ in range(ITERATIONS):
        filled = np.where(gaps, 0.0, Z - mu)
        residual = np.zeros((d, d))
        for pattern, rows in patterns:
            if not pattern.any():
                continue
            coefficients, remainder = _regression(covariance, pattern)
            filled[np.ix_(rows, pattern)] = filled[np.ix_(rows, ~pattern)] @ coefficients
            residual[np.ix_(pattern, pattern)] += len(rows) * remainder
        change = filled.mean(axis=0)
        mu = mu + change
        scatter = filled.T @ filled - n * np.outer(change, change) + residual
        before, covariance = covariance, (scatter + d * np.eye(d)) / (n + d)
        if np.max(np.abs(covariance - before)) < TOLERANCE or not gaps.any():
            break
    return mu, covariance


def _regression(covariance: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (observed, missing) of missing inputs, and their residual covariance."""
    observed = covariance[np.ix_(~missing, ~missing)]
    both = covariance[np.ix_(~missing, missing)]
    coefficients = np.linalg.solve(observed, both)
    return coefficients, covariance[np.ix_(missing, missing)] - both.T @ coefficients


def _patterns(gaps: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The distinct rows of a boolean matrix (n, d), and the rows that are equal to each."""
    patterns, index = np.unique(gaps, axis=0, return_inverse=True)
    order = np.argsort(index.ravel(), kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(index.ravel()))[:-1])
    return list(zip(patterns, rows, strict=True))
