r"""Joint covariances of points and functionals, made positive semidefinite.

A variance estimate is a quadratic form in the features of a functional; its bilinear form for two
functionals is their covariance. Forms over distinct pairs of members need not be positive
semidefinite. Therefore

1. variances are those of single functionals, replaced by their positive part if negative;
2. negative eigenvalues of the correlation matrix are set to zero, which gives the nearest positive
   semidefinite matrix;
3. that matrix is rescaled to a unit diagonal, so that the variances are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ulmus.core.arrays.backend import Array
from ulmus.core.arrays.linalg import eigh
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals, count, portion, portions

# Eigenvalues of a correlation matrix below this, times its number of rows, are round-off.
ROUND_OFF = 1e-13


def bilinear(
    fit: Fit, X: Array | Functionals, form: Callable[[Array, Array], np.ndarray]
) -> np.ndarray:
    """A bilinear form for all pairs of points or functionals, shape (K, p, p).

    ``form`` returns (p', p, K) for two portions of features.
    """
    layer, q = fit.ensemble.layer, count(X)
    slices = portions(layer, X)
    out = np.empty((fit.ensemble.n_outputs, q, q))
    for i, rows in enumerate(slices):
        h = portion(layer, X, rows)
        for columns in slices[i:]:
            u = h if columns == rows else portion(layer, X, columns)
            block = form(h, u).T
            out[:, rows, columns] = block
            out[:, columns, rows] = np.swapaxes(block, 1, 2)
    return out


def outer_sums(shifts: np.ndarray) -> np.ndarray:
    """Covariance of a sum of independent shifts (s, K, p), shape (K, p, p)."""
    each = np.swapaxes(shifts, 0, 1)
    return np.swapaxes(each, 1, 2) @ each


def semidefinite(covariance: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """A positive semidefinite covariance (K, p, p) near the given one, with variances (K, p)."""
    out = np.empty_like(covariance)
    for k, (C, v) in enumerate(zip(covariance, variance, strict=True)):
        sd = np.sqrt(v)
        out[k] = sd[:, None] * _nearest_correlation(_in_units_of(sd, C)) * sd
        out[k][np.diag_indices(len(v))] = v
    return out


def _in_units_of(sd: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Correlations, zero for variances of zero."""
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
    return inverse[:, None] * covariance * inverse


def _nearest_correlation(R: np.ndarray) -> np.ndarray:
    """A positive semidefinite matrix with a unit diagonal near a symmetric one."""
    R = 0.5 * (R + R.T)
    np.fill_diagonal(R, 1.0)
    values, vectors = eigh(R)
    if values[0] > -ROUND_OFF * len(R):
        return R
    negative = values < 0
    R = R - (vectors[:, negative] * values[negative]) @ vectors[:, negative].T
    size = np.sqrt(np.diag(R))
    R /= size[:, None] * size
    return R


def root(covariance: np.ndarray) -> np.ndarray:
    """Root L (p, p) of a positive semidefinite matrix LL' (p, p).

    It is the symmetric root of the correlations, which is unique: signs and order of eigenvectors
    depend on the library and its threads.
    """
    sd = np.sqrt(np.diag(covariance))
    values, vectors = eigh(_in_units_of(sd, covariance))
    kept = values > ROUND_OFF * len(values)
    some = vectors[:, kept]
    return sd[:, None] * ((some * np.sqrt(values[kept])) @ some.T)
