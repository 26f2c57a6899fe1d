r"""How probable the outputs are under a map of the inputs, and the gradient of it.

Each of a few networks with fixed hidden units is a Bayesian ridge regression: output weights of
variance s2/alpha, noise of variance s2. With H the hidden features (centred where there is an
intercept), G = H'H + alpha I, b = G^-1 H'y and RSS = y'y - y'Hb, minus twice the log evidence is

    RSS/s2 + n log s2 + log det G - N log alpha

up to a constant; at the best noise variance s2 = RSS/n it is n log(RSS/n) and the last two terms.
The gradient by the features is closed,

    d RSS / dH = -2 (y - Hb) b',    d log det G / dH = 2 H G^-1,

and the chain rule leads on through the activation and the map L in u = z L W + c. Evidence is
averaged over the networks and summed over outputs. Rows come first here, as in the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ulmus.core.activations import named
from ulmus.core.backend import Array, like, namespace, to_numpy, transposed
from ulmus.core.inputs import Inputs
from ulmus.core.layer import UnitLaw
from ulmus.core.linalg import inverses
from ulmus.core.source import Block

# Noise variance is not let below this share of that of y: data without noise would drive it to 0.
SMALLEST_NOISE = 1e-10


class Gradient(NamedTuple):
    """Minus the log evidence, and its derivatives by the map and by log alpha."""

    value: float
    by_map: np.ndarray
    by_log_alpha: float


@dataclass(frozen=True)
class Networks:
    """A few networks with fixed units, and the rows that they are judged by.

    Parameters
    ----------
    Z : array of shape (n, d')
        Inputs of the layer.
    y : array of shape (n, K)
        Outputs, centred and of variance one, times the square roots of the row weights.
    root_weight : array of shape (n, 1) or None
        Square roots of the row weights, of mean square one.
    W : array of shape (S, d', N)
        Hidden weights before the map.
    b : array of shape (S, 1, N)
        Biases.
    activation : str
        A name in ``ACTIVATIONS``.
    centred : bool
        Whether an intercept takes up the mean of the features.
    """

    Z: Array
    y: Array
    root_weight: Array | None
    W: Array
    b: Array
    activation: str | Callable[[Array], Array]
    centred: bool

    @property
    def n_inputs(self) -> int:
        """Inputs of the layer, d'."""
        return int(self.Z.shape[1])

    @property
    def feature_size(self) -> float:
        """Sum of squares of a hidden feature without a map, the mean over features."""
        H, _ = self._features(np.ones(self.n_inputs))
        return float(namespace(H).sum(H**2)) / (H.shape[0] * H.shape[2])

    def evidence(self, L: np.ndarray, log_alpha: float) -> Gradient:
        """Minus the log evidence at a map L, its diagonal (d',) or a matrix (d', d').

        Infinite where G has no Cholesky factor.
        """
        xp, (n, K), (S, _, N) = namespace(self.y), self.y.shape, self.W.shape
        H, slope = self._features(L)
        alpha = math.exp(log_alpha)
        solved = inverses(_ridge_gram(H, alpha))
        if solved is None:
            return Gradient(math.inf, np.zeros_like(L), 0.0)
        inverse, log_det = solved
        b = inverse @ (transposed(H) @ self.y)
        residual = self.y - H @ b
        size = xp.sum(b**2, axis=1)
        s2 = (xp.sum(residual**2, axis=1) + alpha * size) / n + SMALLEST_NOISE
        value = n * xp.sum(xp.log(s2), axis=1) + K * (log_det - N * log_alpha)
        by_feature = K * (H @ inverse) - (residual / s2[:, None, :]) @ transposed(b)
        by_unit = self._weighted(self.Z).T @ (by_feature * slope)
        trace = xp.sum(xp.linalg.diagonal(inverse), axis=1)
        by_alpha = alpha * xp.sum(size / s2, axis=1) + K * (alpha * trace - N)
        return Gradient(
            float(xp.sum(value)) / (2 * S),
            self._by_map(by_unit, L) / S,
            float(xp.sum(by_alpha)) / (2 * S),
        )

    def coefficients(self, L: np.ndarray, log_alpha: float) -> Array | None:
        """Output weights (S, N, K) at a map, if G has a Cholesky factor."""
        H, _ = self._features(L)
        solved = inverses(_ridge_gram(H, math.exp(log_alpha)))
        return None if solved is None else solved[0] @ (transposed(H) @ self.y)

    def predictions(self, Z: Array, L: np.ndarray, b: Array) -> Array:
        """Mean over networks of what output weights say of inputs Z (p, d'), shape (p, K)."""
        u = Z @ self._mapped(L) + self.b
        return namespace(b).mean(named(self.activation).value(u) @ b, axis=0)

    def gradient_size(self, L: np.ndarray, log_alpha: float) -> np.ndarray | None:
        """Mean squared derivative of the prediction by each input, (d',), summed over outputs.

        The diagonal of the average gradient outer product.
        """
        b = self.coefficients(L, log_alpha)
        if b is None:
            return None
        xp, mapped = namespace(b), self._mapped(L)
        _, slope = named(self.activation).both(self.Z @ mapped + self.b)
        total = xp.zeros(self.n_inputs, dtype=b.dtype, device=b.device)
        for k in range(b.shape[2]):
            weights = transposed(mapped * b[:, :, k][:, None, :])
            total = total + xp.mean(xp.mean(slope @ weights, axis=0) ** 2, axis=0)
        return to_numpy(total)

    def _features(self, L: np.ndarray) -> tuple[Array, Array]:
        """Features (S, n, N), weighted and centred, and slopes of their activations."""
        xp = namespace(self.W)
        H, slope = named(self.activation).both(self.Z @ self._mapped(L) + self.b)
        if self.centred:
            mean = self._weighted(self._weighted(H))
            H = H - xp.mean(mean, axis=1, keepdims=True)
        return self._weighted(H), slope

    def _weighted(self, values: Array) -> Array:
        """Rows times the roots of their weights."""
        return values if self.root_weight is None else values * self.root_weight

    def _mapped(self, L: np.ndarray) -> Array:
        L = like(L, self.W)
        return L[None, :, None] * self.W if L.ndim == 1 else L @ self.W

    def _by_map(self, by_unit: Array, L: np.ndarray) -> np.ndarray:
        """From derivatives by the mapped weights (S, d', N) to those by the map."""
        xp = namespace(by_unit)
        if L.ndim == 1:
            return to_numpy(xp.sum(by_unit * self.W, axis=(0, 2)))
        return to_numpy(xp.sum(by_unit @ transposed(self.W), axis=0))


def _ridge_gram(H: Array, alpha: float) -> Array:
    """G = H'H + alpha I for each network, shape (S, N, N)."""
    xp = namespace(H)
    return transposed(H) @ H + alpha * xp.eye(H.shape[2], dtype=H.dtype, device=H.device)


def networks(
    sample: Block, inputs: Inputs, law: UnitLaw, seeds: list[int], n_units: int, *, centred: bool
) -> Networks | None:
    """Networks for a sample of rows; None where the outputs or all inputs do not vary."""
    Z = inputs(sample.X).T
    xp = namespace(Z)
    if bool(xp.all(Z[:1, :] == Z)):
        return None
    weight, root_weight = 1.0, None
    if sample.root_weight is not None:
        weight = like(sample.root_weight, Z)[:, None] ** 2
        weight = weight / xp.mean(weight)
        root_weight = xp.sqrt(weight)
    y = like(sample.y, Z).T
    # Huge numbers are brought near one before they are squared.
    size = xp.max(xp.abs(y), axis=0)
    y = y / xp.where(size > 0, size, xp.ones_like(size))
    if centred:
        y = y - xp.mean(weight * y, axis=0)
    sd = xp.sqrt(xp.mean(weight * y**2, axis=0))
    if not bool(xp.all(sd > 1e-12)):
        return None
    drawn = [law.even(seed, Z.shape[1], n_units) for seed in seeds]
    W, b = (like(np.stack(parts), Z) for parts in zip(*drawn, strict=True))
    y = y / sd if root_weight is None else root_weight * y / sd
    return Networks(Z, y, root_weight, W, b[:, None, :], law.activation, centred)
