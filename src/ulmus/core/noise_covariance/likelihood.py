r"""Restricted likelihood of a noise covariance beside a smooth function.

Residuals of a smoother underestimate the noise: the smoother retains its slow part as if it were
signal. The outputs themselves are the sum of a function and of noise,

.. math:: y = A_0\beta + A_1 u + e, \qquad u \sim N(0, \sigma^2 \rho D), \qquad
          e \sim N(0, \sigma^2 S).

The columns of A are the directions that the smoother retains. Along the first ones, those of a
share near one, the function is unrestricted, and they are projected out of y (Patterson &
Thompson, 1971). Along the others it is random, with variances in proportion to the odds
:math:`D = p/(1 - p)` of the shares p: this is the prior of which ridge regression is the posterior
mean. So noise and function share the variation along them as in a linear mixed model (Wahba, 1990;
Ruppert, Wand & Carroll, 2003). With :math:`V = S + \rho A_1 D A_1'`,

.. math:: -2 l = (n - k)(\log 2 \pi q + 1) + \log|V| + \log|A_0'V^{-1}A_0|, \qquad
          q = \frac{y'Py}{n - k},

with :math:`P = V^{-1} - V^{-1}A_0(A_0'V^{-1}A_0)^{-1}A_0'V^{-1}`, k columns of :math:`A_0`, and the
variance :math:`\sigma^2` and the ratio :math:`\rho` at their maximum likelihood values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from scipy.optimize import minimize_scalar

from ulmus.core.arrays.linalg import eigh
from ulmus.core.noise_covariance.smoothed_space import SmoothedSpace
from ulmus.core.noise_covariance.whitening import NoiseWhitening

# Variances up to this are zero, in the units of the fit; its inverse does not overflow.
SMALLEST_VARIANCE = 1e-200
# Minus the log likelihood if S is not positive definite.
IMPOSSIBLE = 1e12
# Logarithms of the ratio between which its maximum is bracketed; above them the function is
# unrestricted, below them it is zero.
LOG_RATIOS = np.linspace(-8.0, 12.0, 21)


@dataclass(frozen=True)
class RestrictedLikelihood:
    """Minus the log likelihood of scales and shares of the noise."""

    y: np.ndarray  # (n,): outputs, in the order of the locations
    space: SmoothedSpace  # directions of the function, in the same order
    whitening: NoiseWhitening  # solves with the covariance

    @cached_property
    def _columns(self) -> np.ndarray:
        """Directions and y side by side, in Fortran order for LAPACK."""
        return np.asfortranarray(np.column_stack([self.space.directions, self.y]))

    def value_and_variance(
        self, scales: Sequence[float], shares: Sequence[float]
    ) -> tuple[float, float]:
        """Minus the log likelihood, and the variance q of the noise."""
        try:
            white, log_det = self.whitening(scales, shares, self._columns)
            return self._at_best_ratio(white, log_det)
        except np.linalg.LinAlgError:
            return IMPOSSIBLE, math.nan

    def independent(self) -> tuple[float, float]:
        """The same for independent noise."""
        return self._at_best_ratio(self._columns, 0.0)

    def _at_best_ratio(self, white: np.ndarray, log_det: float) -> tuple[float, float]:
        """Both from whitened columns and log|S|, at the most likely ratio."""
        left = len(self.y) - self.space.n_fixed
        products, fixed_log_det = _without_fixed(white.T @ white, self.space.n_fixed)
        root = self.space.odds**0.5
        # Along eigenvectors of the products the ratio enters each term alone.
        w, vectors = eigh(products[:-1, :-1] * np.outer(root, root))
        w, c2 = np.maximum(w, 0.0), (vectors.T @ (root * products[:-1, -1])) ** 2
        total = float(products[-1, -1])

        def at(log_ratio: float) -> tuple[float, float]:
            ratio = math.exp(log_ratio)
            q = (total - float(np.sum(ratio * c2 / (1 + ratio * w)))) / left
            q = max(q, SMALLEST_VARIANCE)
            determinant = log_det + fixed_log_det + float(np.sum(np.log1p(ratio * w)))
            return 0.5 * (determinant + left * (math.log(2 * math.pi * q) + 1)), q

        return at(_minimiser(lambda log_ratio: at(log_ratio)[0])) if len(w) else at(0.0)


def _without_fixed(products: np.ndarray, k: int) -> tuple[np.ndarray, float]:
    """Products of columns projected off the first k, and the log determinant of those of the k."""
    if not k:
        return products, 0.0
    C = scipy.linalg.cholesky(products[:k, :k], lower=True)
    U = scipy.linalg.solve_triangular(C, products[:k, k:], lower=True)
    return products[k:, k:] - U.T @ U, 2 * float(np.sum(np.log(np.diagonal(C))))


def _minimiser(value: Callable[[float], float]) -> float:
    """Logarithm of the ratio of least value, within ``LOG_RATIOS``."""
    i = int(np.argmin([value(log_ratio) for log_ratio in LOG_RATIOS]))
    bounds = LOG_RATIOS[max(i - 1, 0)], LOG_RATIOS[min(i + 1, len(LOG_RATIOS) - 1)]
    found = minimize_scalar(value, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return float(found.x)
