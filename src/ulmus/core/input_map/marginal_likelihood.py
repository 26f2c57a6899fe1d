r"""Marginal likelihood of a map of the inputs, and its gradient.

Each of a few probe networks with fixed hidden units is a Bayesian ridge regression, with output
weights of variance :math:`s^2/\alpha` and noise of variance :math:`s^2`. With hidden features H
(centred if there is an intercept), :math:`G = H'H + \alpha I`, :math:`b = G^{-1} H'y` and
:math:`RSS = y'y - y'Hb`, minus twice the log marginal likelihood is, up to a constant,

.. math:: RSS/s^2 + n \log s^2 + \log\det G - N \log\alpha,

which the noise variance :math:`s^2 = RSS/n` minimises. Its gradient with respect to the features is

.. math:: \partial RSS / \partial H = -2 (y - Hb) b', \qquad
          \partial \log\det G / \partial H = 2 H G^{-1},

and the chain rule gives that with respect to the map L in :math:`u = z L W + c`. The log marginal
likelihood is averaged over networks and summed over outputs. The row axis is first in this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, to_numpy
from ulmus.core.arrays.linalg import cholesky, inverse_and_log_det, inverted_triangle
from ulmus.core.arrays.threads import mapped
from ulmus.core.data.source import Block
from ulmus.core.layer.hidden_layer import UnitDistribution, named
from ulmus.core.layer.inputs import Inputs


class LikelihoodGradient(NamedTuple):
    """Negative log marginal likelihood, and its derivatives by the map and by log alpha."""

    value: float
    by_map: np.ndarray
    by_log_alpha: float


@dataclass(frozen=True)
class Weighting:
    """A root V of the noise precision of the rows, normalised to mean weight one."""

    root: Array  # (n, 1): square roots of the row weights, or V

    def __call__(self, values: Array) -> Array:
        """V times values (n, k)."""
        return values * self.root if self.root.shape[1] == 1 else self.root @ values

    def back(self, values: Array) -> Array:
        """V' times values (n, k)."""
        return values * self.root if self.root.shape[1] == 1 else self.root.T @ values


@dataclass(frozen=True)
class ProbeNetworks:
    """Networks with fixed hidden units, and the rows of their marginal likelihood."""

    Z: Array  # (n, d'): inputs of the layer
    # (n, K): outputs, centred and of variance one, times the square roots of the row weights.
    y: Array
    weighting: Weighting | None  # weights of the rows; None for equal weights
    W: Array  # (S, d', N): hidden weights before the map
    b: Array  # (S, N): biases
    activation: str | Callable[[Array], Array]  # A name in ``ACTIVATIONS``
    centred: bool  # whether features are centred, for an intercept
    # (n,): index of each row in the sample.
    order: np.ndarray = field(default_factory=lambda: np.arange(0))
    # (K',): standard deviation of each output of the sample, in the units of y; zero for outputs
    # that are constant, which ``y`` lacks.
    sd: np.ndarray = field(default_factory=lambda: np.ones(1))

    @property
    def n_inputs(self) -> int:
        """Inputs of the layer, d'."""
        return int(self.Z.shape[1])

    @property
    def n_networks(self) -> int:
        """Number of networks, S."""
        return int(self.W.shape[0])

    @property
    def feature_size(self) -> float:
        """Mean sum of squares of a hidden feature without a map."""
        H, _ = self.features(0, np.ones(self.n_inputs))
        return float(namespace(H).sum(H**2)) / H.shape[1]

    def fewer_rows(self, n_rows: int) -> ProbeNetworks:
        """The same networks with about ``n_rows`` evenly spaced rows, or with all if fewer."""
        step = max(1, int(self.Z.shape[0]) // n_rows)
        if step == 1:
            return self
        weighting = None
        if self.weighting is not None:
            weighting = Weighting(self.weighting.root[::step, :])
        fewer = replace(self, Z=self.Z[::step, :], y=self.y[::step, :], weighting=weighting)
        return replace(fewer, y=fewer.centred_rows(fewer.y))

    def negative_log_likelihood(self, L: np.ndarray, log_alpha: float) -> LikelihoodGradient:
        """Negative log marginal likelihood at a map L, its diagonal (d',) or a matrix (d', d').

        Infinite if G is not positive definite.
        """
        parts = self._each(lambda s: self._gradient(s, L, log_alpha))
        if any(part is None for part in parts):
            return LikelihoodGradient(math.inf, np.zeros_like(L), 0.0)
        columns = zip(*parts, strict=True)
        return LikelihoodGradient(*(sum(column) / len(parts) for column in columns))

    def _gradient(self, s: int, L: np.ndarray, log_alpha: float) -> LikelihoodGradient | None:
        """Negative log marginal likelihood of one network."""
        (n, K), N = self.y.shape, self.W.shape[2]
        H, slope = self.features(s, L)
        xp, alpha = namespace(H), math.exp(log_alpha)
        solved = inverse_and_log_det(ridge_gram(H, alpha))
        if solved is None:
            return None
        inverse, log_det = solved
        b = inverse @ (H.T @ self.y)
        residual = self.y - H @ b
        size = xp.sum(b**2, axis=0)
        # Without noise in the data, s2 would converge to 0.
        s2 = (xp.sum(residual**2, axis=0) + alpha * size) / n + 1e-10
        value = n * xp.sum(xp.log(s2)) + K * (log_det - N * log_alpha)
        by_feature = K * (H @ inverse) - (residual / s2) @ b.T
        if self.weighting is not None:
            by_feature = self.weighting.back(by_feature)
        by_unit = self.Z.T @ (by_feature * slope)
        trace = xp.sum(xp.linalg.diagonal(inverse))
        by_alpha = alpha * xp.sum(size / s2) + K * (alpha * trace - N)
        # By the map, from the derivatives by the mapped weights (d', N).
        W = self.W[s, :, :]
        by_map = to_numpy(xp.sum(by_unit * W, axis=1) if L.ndim == 1 else by_unit @ W.T)
        return LikelihoodGradient(float(value) / 2, by_map, float(by_alpha) / 2)

    def dof_share(self, L: np.ndarray, log_alpha: float) -> float:
        """Mean effective degrees of freedom of the networks at a map, as a share of their units."""
        alpha = math.exp(log_alpha)

        def share(s: int) -> float:
            H, _ = self.features(s, L)
            solved = inverse_and_log_det(ridge_gram(H, alpha))
            if solved is None:
                return 1.0
            trace = namespace(H).sum(namespace(H).linalg.diagonal(solved[0]))
            return 1.0 - alpha * float(trace) / H.shape[1]

        return float(np.mean(self._each(share)))

    def coefficients(self, L: np.ndarray, log_alpha: float) -> list[Array] | None:
        """Output weights (N, K) of each network at a map; None if a G is not positive definite."""

        def weights(s: int) -> Array | None:
            H, _ = self.features(s, L)
            solved = inverse_and_log_det(ridge_gram(H, math.exp(log_alpha)))
            return None if solved is None else solved[0] @ (H.T @ self.y)

        parts = self._each(weights)
        return None if any(part is None for part in parts) else parts

    def coordinates(self, L: np.ndarray, log_alpha: float) -> Array:
        """C of shape (S N', n), with C'C / S the mean smoother of the networks at a map.

        The intercept is one row per network.
        """

        def rows(s: int) -> Array:
            H, _ = self.features(s, L)
            gram = ridge_gram(H, math.exp(log_alpha))
            C = inverted_triangle(cholesky(gram[None, :, :]))[0, :, :] @ H.T
            if not self.centred:
                return C
            constant = self._along / H.shape[0] ** 0.5
            return namespace(H).concat([constant.T, C], axis=0)

        parts = self._each(rows)
        return namespace(parts[0]).concat(parts, axis=0)

    def predictions(self, Z: Array, L: np.ndarray, b: list[Array]) -> Array:
        """Mean prediction of the networks with output weights b at inputs Z (p, d'), (p, K)."""
        activation = named(self.activation)
        parts = self._each(lambda s: activation.value(Z @ self.mapped(s, L) + self.b[s, :]) @ b[s])
        return sum(parts) / len(parts)

    def gradient_size(self, L: np.ndarray, log_alpha: float) -> np.ndarray | None:
        """Mean squared derivative of the prediction by each input, (d',), summed over outputs.

        This is the diagonal of the average gradient outer product.
        """
        b = self.coefficients(L, log_alpha)
        if b is None:
            return None

        def slopes(s: int) -> Array:
            """Derivatives of one network's prediction by the inputs, shape (K, n, d')."""
            mapped = self.mapped(s, L)
            _, slope = named(self.activation).both(self.Z @ mapped + self.b[s, :])
            weights = [(mapped * b[s][:, k]).T for k in range(b[s].shape[1])]
            return namespace(slope).stack([slope @ each for each in weights])

        parts = self._each(slopes)
        mean = sum(parts) / len(parts)
        xp = namespace(mean)
        return to_numpy(xp.sum(xp.mean(mean**2, axis=1), axis=0))

    def _each(self, task: Callable[[int], Any]) -> list[Any]:
        """Results of a function for each network."""
        return mapped(task, range(self.n_networks))

    def features(self, s: int, L: np.ndarray) -> tuple[Array, Array]:
        """Weighted and centred features (n, N) of one network, and slopes of the activation."""
        H, slope = named(self.activation).both(self.Z @ self.mapped(s, L) + self.b[s, :])
        return self.centred_rows(self.weighted(H)), slope

    def centred_rows(self, values: Array) -> Array:
        """Weighted values (n, k), projected off the intercept if there is one."""
        if not self.centred:
            return values
        along = self._along
        return values - along * namespace(values).mean(along * values, axis=0, keepdims=True)

    @property
    def _along(self) -> Array:
        """The intercept's feature (n, 1), of mean square one."""
        return self.weighted(namespace(self.Z).ones_like(self.Z[:, :1]))

    def weighted(self, values: Array) -> Array:
        """V times values of rows (n, k)."""
        return values if self.weighting is None else self.weighting(values)

    def mapped(self, s: int, L: np.ndarray) -> Array:
        """Hidden weights L W of one network, shape (d', N)."""
        W, L = self.W[s, :, :], like(L, self.W)
        return L[:, None] * W if L.ndim == 1 else L @ W


def ridge_gram(H: Array, alpha: float) -> Array:
    """G = H'H + alpha I, shape (N, N)."""
    xp = namespace(H)
    return H.T @ H + alpha * xp.eye(H.shape[1], dtype=H.dtype, device=H.device)


def probe_networks(
    sample: Block,
    inputs: Inputs,
    law: UnitDistribution,
    seeds: list[int],
    n_units: int,
    *,
    centred: bool,
) -> ProbeNetworks | None:
    """Networks for a sample of rows and its varying outputs; None if nothing varies.

    Units are Sobol points. Rows are rounded and sorted, so that the search does not depend on the
    units or the order of the rows in the last digits.
    """
    Z = inputs(sample.X).T
    xp = namespace(Z)
    Z = xp.astype(Z, xp.float64)  # a few thousand rows are cheap enough for double precision
    if bool(xp.all(Z[:1, :] == Z)):
        return None
    weight = None
    if sample.root_weight is not None:
        weight = like(sample.root_weight, Z)[:, None] ** 2
        weight = weight / xp.mean(weight)
    sd, y = _standardised_outputs(like(sample.y, Z).T, 1.0 if weight is None else weight, centred)
    if y is None:
        return None
    Z, y = _rounded(Z), _rounded(y)
    root = None if weight is None else _rounded(xp.sqrt(weight))
    y = y if root is None else root * y
    order = np.lexsort([*np.abs(to_numpy(y)).T, *to_numpy(Z).T])
    index = xp.asarray(order, device=Z.device)
    Z, y = (xp.take(a, index, axis=0) for a in (Z, y))
    weighting = None if root is None else Weighting(xp.take(root, index, axis=0))
    drawn = [law.sobol_member(seed, Z.shape[1], n_units) for seed in seeds]
    W, b = (like(np.stack(parts), Z) for parts in zip(*drawn, strict=True))
    return ProbeNetworks(Z, y, weighting, W, b, law.activation, centred, order, sd)


def _standardised_outputs(
    y: Array, weight: Array | float, centred: bool
) -> tuple[np.ndarray, Array | None]:
    """Standard deviations of the outputs (n, K), and the varying ones, of variance one.

    They are centred if there is an intercept. Standard deviations of constant outputs are zero; if
    all are constant, there are no outputs.
    """
    xp = namespace(y)
    if centred:
        y = y - y[:1, :]  # a large mean would cost digits of the variation
    # Scale before squaring, which could overflow.
    size = xp.max(xp.abs(y), axis=0)
    y = y / xp.where(size > 0, size, xp.ones_like(size))
    if centred:
        y = y - xp.mean(weight * y, axis=0)
    sd = xp.sqrt(xp.mean(weight * y**2, axis=0))
    varying = np.flatnonzero(to_numpy(sd) > 1e-12)
    deviation = np.zeros(int(y.shape[1]))
    deviation[varying] = to_numpy(sd * size)[varying]
    if len(varying) == 0:
        return deviation, None
    y, sd = (xp.take(a, xp.asarray(varying, device=y.device), axis=-1) for a in (y, sd))
    return deviation, y / sd


def _rounded(values: Array) -> Array:
    """Values to 36 binary digits: the search would amplify differences in the last digits."""
    return namespace(values).round(values * 2.0**36) / 2.0**36
