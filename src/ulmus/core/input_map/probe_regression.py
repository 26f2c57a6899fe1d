r"""The ridge regression of the outputs on the features of one probe network.

Features may be in single precision. Their Gram matrix is factorised in double precision, so that
the noise variance, which is stationary in the output weights, is accurate to round-off in the
features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, to_numpy
from ulmus.core.arrays.linalg import eigh, inverse_and_log_det

# Added to the noise variance, which would converge to zero without noise in the data.
NO_NOISE = 1e-10


@dataclass(frozen=True)
class ProbeRegression:
    """Ridge regression of outputs (n, K) on the features of one network at a map."""

    H: Array  # (n, N): weighted and centred features
    slope: Array  # (n, N): slopes of the activation
    inverse: Array  # (N, N): inverse of G, in double precision
    coefficients: Array  # (N, K): output weights b, in double precision
    residual: Array  # (n, K): residuals y - Hb
    s2: Array  # (K,): noise variance of largest likelihood
    alpha: float
    value: float  # negative log marginal likelihood, without a constant

    @property
    def dof(self) -> float:
        """Effective degrees of freedom, the trace of the smoother."""
        trace = namespace(self.inverse).sum(namespace(self.inverse).linalg.diagonal(self.inverse))
        return float(self.inverse.shape[0]) - self.alpha * float(trace)

    @property
    def by_log_alpha(self) -> float:
        """Derivative of the value by log alpha."""
        xp = namespace(self.coefficients)
        size = xp.sum(xp.sum(self.coefficients**2, axis=0) / self.s2)
        return 0.5 * (self.alpha * float(size) - self.coefficients.shape[1] * self.dof)


def ridge_gram(H: Array, alpha: float) -> Array:
    """G = H'H + alpha I in double precision, shape (N, N)."""
    xp = namespace(H)
    eye = xp.eye(H.shape[1], dtype=xp.float64, device=H.device)
    return xp.astype(H.T @ H, xp.float64, copy=False) + alpha * eye


def probe_regression(H: Array, slope: Array, y: Array, log_alpha: float) -> ProbeRegression | None:
    """The regression of outputs y (n, K); None if G is not positive definite."""
    xp, (n, K), N, alpha = namespace(H), y.shape, H.shape[1], math.exp(log_alpha)
    solved = inverse_and_log_det(ridge_gram(H, alpha))
    if solved is None:
        return None
    inverse, log_det = solved
    b = inverse @ xp.astype(H.T @ y, xp.float64, copy=False)
    residual = y - H @ xp.astype(b, H.dtype, copy=False)
    squares = xp.sum(xp.astype(residual, xp.float64, copy=False) ** 2, axis=0)
    s2 = (squares + alpha * xp.sum(b**2, axis=0)) / n + NO_NOISE
    value = n * float(xp.sum(xp.log(s2))) + K * (float(log_det) - N * log_alpha)
    return ProbeRegression(H, slope, inverse, b, residual, s2, alpha, value / 2)


def likelihood_profile(H: Array, y: Array, alphas: np.ndarray) -> np.ndarray:
    """Negative log marginal likelihood of outputs y (n, K) for each alpha, shape (A,)."""
    xp, (n, K), N = namespace(H), y.shape, H.shape[1]
    values, vectors = eigh(ridge_gram(H, 0.0))
    values = np.maximum(to_numpy(values), 0.0)
    along = to_numpy(vectors.T @ xp.astype(H.T @ y, xp.float64, copy=False)) ** 2
    square = to_numpy(xp.sum(xp.astype(y, xp.float64, copy=False) ** 2, axis=0))
    shifted = values[:, None] + alphas
    s2 = np.maximum(square[:, None] - along.T @ (1 / shifted), 0.0) / n + NO_NOISE
    log_det = np.sum(np.log(shifted), axis=0) - N * np.log(alphas)
    return 0.5 * (n * np.sum(np.log(s2), axis=0) + K * log_det)
