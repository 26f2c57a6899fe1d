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
from ulmus.core.arrays.linalg import cholesky, inverted_triangle
from ulmus.core.arrays.threads import mapped
from ulmus.core.data.source import Block
from ulmus.core.input_map.probe_regression import (
    ProbeRegression,
    likelihood_profile,
    probe_regression,
    ridge_gram,
)
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
    def n_units(self) -> int:
        """Units of a network, N."""
        return int(self.W.shape[2])

    def dof(self, L: np.ndarray, log_alpha: float) -> float:
        """Effective degrees of freedom of a network at a map, on average; at most its units."""
        parts = self.regressions(L, log_alpha)
        return float(self.n_units if parts is None else np.mean([one.dof for one in parts]))

    @property
    def feature_size(self) -> float:
        """Mean sum of squares of a hidden feature without a map."""
        H, _ = self.features(0, np.ones(self.n_inputs))
        return float(namespace(H).sum(H**2)) / H.shape[1]

    def smaller(self, n_rows: int, n_units: int, n_networks: int) -> ProbeNetworks:
        """The first networks with their first units and evenly spaced rows, about so many each.

        Rows that are whitened by a correlation are kept.
        """
        few = replace(self, W=self.W[:n_networks, :, :n_units], b=self.b[:n_networks, :n_units])
        step = max(1, int(self.Z.shape[0]) // n_rows)
        if step == 1 or (self.weighting is not None and self.weighting.root.shape[1] > 1):
            return few
        weighting = None
        if self.weighting is not None:
            weighting = Weighting(self.weighting.root[::step, :])
        rows = {"Z": self.Z[::step, :], "y": self.y[::step, :], "order": self.order[::step]}
        few = replace(few, weighting=weighting, **rows)
        return replace(few, y=few.centred_rows(few.y))

    @property
    def single(self) -> ProbeNetworks:
        """The same networks in single precision."""
        xp = namespace(self.Z)
        Z, y, W, b = (xp.astype(a, xp.float32) for a in (self.Z, self.y, self.W, self.b))
        weighting = None
        if self.weighting is not None:
            weighting = Weighting(xp.astype(self.weighting.root, xp.float32))
        return replace(self, Z=Z, y=y, W=W, b=b, weighting=weighting)

    def regression(self, s: int, L: np.ndarray, log_alpha: float) -> ProbeRegression | None:
        """The regression of one network at a map; None if G is not positive definite."""
        return probe_regression(*self.features(s, L), self.y, log_alpha)

    def regressions(self, L: np.ndarray, log_alpha: float) -> list[ProbeRegression] | None:
        """The regression of each network at a map; None if a G is not positive definite."""
        parts = self._each(lambda s: self.regression(s, L, log_alpha))
        return None if any(part is None for part in parts) else parts

    def value(self, L: np.ndarray, log_alpha: float) -> float:
        """Negative log marginal likelihood without derivatives, at half the cost."""
        parts = self.regressions(L, log_alpha)
        return math.inf if parts is None else sum(part.value for part in parts) / len(parts)

    def profile(self, L: np.ndarray, log_alphas: np.ndarray) -> np.ndarray:
        """Negative log marginal likelihood of a map for some values of log alpha, shape (A,)."""
        parts = self._each(
            lambda s: likelihood_profile(self.features(s, L)[0], self.y, np.exp(log_alphas))
        )
        return np.mean(parts, axis=0)

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
        one = self.regression(s, L, log_alpha)
        if one is None:
            return None
        xp, K, dtype = namespace(one.H), self.y.shape[1], one.H.dtype
        by_feature = one.H @ xp.astype(K * one.inverse, dtype, copy=False)
        residual = one.residual / xp.astype(one.s2, dtype, copy=False)
        if self.weighting is not None:
            by_feature, residual = self.weighting.back(by_feature), self.weighting.back(residual)
        # The derivatives by the mapped weights (d', N). That of RSS by the features is a sum of
        # products of rank one and is not formed.
        by_unit, b = self.Z.T @ (by_feature * one.slope), xp.astype(one.coefficients, dtype)
        for k in range(K):
            by_unit -= ((self.Z * residual[:, k : k + 1]).T @ one.slope) * b[:, k]
        W = self.W[s, :, :]
        by_map = xp.sum(by_unit * W, axis=1) if L.ndim == 1 else by_unit @ W.T
        return LikelihoodGradient(one.value, to_numpy(by_map).astype(float), one.by_log_alpha)

    def coefficients(self, L: np.ndarray, log_alpha: float) -> list[Array] | None:
        """Output weights (N, K) of each network at a map; None if a G is not positive definite."""
        parts, xp = self.regressions(L, log_alpha), namespace(self.Z)
        if parts is None:
            return None
        return [xp.astype(one.coefficients, self.Z.dtype, copy=False) for one in parts]

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
        xp = namespace(values)
        if self.weighting is None:
            return values - xp.mean(values, axis=0, keepdims=True)
        along = self._along
        return values - along * xp.mean(along * values, axis=0, keepdims=True)

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
