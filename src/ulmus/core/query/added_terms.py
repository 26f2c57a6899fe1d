r"""Coefficients of linear terms that are added to a fit, for inputs that its map drops.

With :math:`\tilde D = (I - P) D` and :math:`\tilde y = (I - P) y` for the smoother P, the mean over
members, the coefficients in :math:`y = f + D\beta + \varepsilon` are estimated by least squares,

.. math:: \hat\beta = (\tilde D'\tilde D)^+ \tilde D'\tilde y,

with a heteroskedasticity-consistent covariance (Speckman, J. R. Statist. Soc. B 50, 1988).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import dense, to_numpy
from ulmus.core.data.source import Block
from ulmus.core.ensemble.ensemble import Regression
from ulmus.core.fit.fit import Fit


class AddedTerms(NamedTuple):
    """Linear terms of d inputs for K outputs."""

    coefficients: np.ndarray  # (d, K)
    covariance: np.ndarray  # (K, d, d)
    center: np.ndarray  # (d,): mean of the inputs


def added_terms(fit: Fit, inputs: np.ndarray) -> AddedTerms | None:
    """Terms of some inputs, boolean (d,); None without the rows or for correlated noise."""
    if fit.rows is None or fit.noise_covariance is not None:
        return None
    data = fit.rows.data
    X = to_numpy(dense(data.X))[:, inputs].astype(float)
    root = np.ones(len(X)) if data.root_weight is None else to_numpy(data.root_weight)
    center = (root**2 @ X) / np.sum(root**2)
    K, d = data.y.shape[0], X.shape[1]
    coefficients, covariance = np.zeros((d, K)), np.zeros((K, d, d))
    for regression in fit.exact_ensemble.regressions:
        y = to_numpy(data.y)[list(regression.outputs)].T
        columns = root[:, None] * np.concatenate([X - center, y - y.mean(axis=0)], axis=1)
        residuals = columns - _smoothed(fit, regression, columns)
        D, own = residuals[:, :d], residuals[:, d:]
        dof = regression.exact.gamma
        for column, k in enumerate(regression.outputs):
            result = _least_squares(D, own[:, column], np.sum(root > 0) - dof)
            coefficients[:, k], covariance[k] = result
    return AddedTerms(coefficients, covariance, center)


def _smoothed(fit: Fit, regression: Regression, columns: np.ndarray) -> np.ndarray:
    """P times columns (n, c) that are multiplied by the root weights."""
    assert fit.rows is not None
    smoother, layer = regression.exact, fit.ensemble.layer

    def coordinates(block: Block) -> np.ndarray:
        t = to_numpy(smoother.coordinates(layer(block.X)))
        return t if block.root_weight is None else t * to_numpy(block.root_weight)

    blocks = list(fit.rows.data)
    sums = sum(coordinates(block) @ columns[block.rows] for block in blocks)
    smoothed = np.empty_like(columns)
    for block in blocks:
        t = np.swapaxes(coordinates(block), 1, 2)
        smoothed[block.rows] = np.mean(t @ sums, axis=0)
    return smoothed


def _least_squares(
    D: np.ndarray, y: np.ndarray, residual_dof: float
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (d,) of columns D (n, d), and their covariance (d, d)."""
    inverse = np.linalg.pinv(D.T @ D, hermitian=True)
    beta = inverse @ (D.T @ y)
    error = (y - D @ beta) * np.sqrt(len(y) / max(residual_dof - D.shape[1], 1.0))
    scores = (D * error[:, None]) @ inverse
    return beta, scores.T @ scores
