"""The random hidden layer: drawing weights, activations, and the features h(X)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ulmus.core.backend import Array, erf, like, logistic, namespace


def _relu(u: Array) -> Array:
    return namespace(u).clip(u, min=0.0)


def _rbf(u: Array) -> Array:
    # exp(-40^2) is zero in double precision: the clip only keeps u^2 from overflowing.
    xp = namespace(u)
    return xp.exp(-(xp.clip(u, min=-40.0, max=40.0) ** 2))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "logistic": logistic,
    "tanh": lambda u: namespace(u).tanh(u),
    "relu": _relu,
    "erf": erf,
    "cos": lambda u: namespace(u).cos(u),
    "rbf": _rbf,
    "identity": lambda u: u,
}

DISTRIBUTIONS: dict[str, Callable[..., np.ndarray]] = {
    "uniform": lambda rng, size: rng.uniform(-1.0, 1.0, size),
    "normal": lambda rng, size: rng.standard_normal(size),
}


def drawn_layer(
    seeds: list[np.random.SeedSequence],
    n_features: int,
    n_neurons: int,
    *,
    distribution: str,
    scale: Array,
    activation: str | Callable[[Array], Array],
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the weights (M, d, N) and biases (M, N) of one member per seed.

    Biases have the scale of the largest weight, as in the paper; those of ``"cos"`` are
    phases, uniform on a full turn, which makes the units random Fourier features
    (Rahimi & Recht, 2007).
    """
    draw = DISTRIBUTIONS[distribution]
    scale = np.broadcast_to(np.asarray(scale, dtype=float), (n_features,))
    weights, biases = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        weights.append(draw(rng, (n_features, n_neurons)) * scale[:, None])
        bias = draw(rng, n_neurons) * np.max(scale)
        biases.append(rng.uniform(0.0, 2 * np.pi, n_neurons) if activation == "cos" else bias)
    return np.stack(weights), np.stack(biases)


@dataclass(frozen=True)
class HiddenLayer:
    r"""Hidden units of all members, :math:`h(x) = g((x - o)/c \; W + b)`.

    Parameters
    ----------
    weights : array of shape (M, N, d)
        Weights with one unit per row.
    biases : array of shape (M, N)
        Biases.
    offset, scale : arrays of shape (d,)
        What is subtracted from each input and what divides it.
    activation : str or callable
        A name in ``ACTIVATIONS``, or a function of the array of pre-activations.
    constant : bool
        Whether each member gets a leading unit that is always 1: the unpenalised intercept.
    """

    weights: Array
    biases: Array
    offset: Array
    scale: Array
    activation: str | Callable[[Array], Array]
    constant: bool

    @property
    def n_members(self) -> int:
        """Number of members M."""
        return int(self.weights.shape[0])

    @property
    def n_units(self) -> int:
        """Units per member, the constant one included."""
        return int(self.weights.shape[1]) + int(self.constant)

    @property
    def size(self) -> int:
        """Number of features of all members together."""
        return self.n_members * self.n_units

    def __call__(self, X: Array) -> Array:
        """Features of the rows of X, shape (M, N, n), a constant unit first if there is one."""
        xp = namespace(self.weights)
        weights, biases = self._stacked(xp)
        n_rows = X.shape[0]
        if scipy.sparse.issparse(X):
            # Scaling the weights instead of X keeps X sparse.
            weights = weights / self.scale
            biases = biases - xp.sum(weights * self.offset, axis=1)
            u = np.ascontiguousarray((X @ weights.T).T)
            u += biases[:, None]
        else:
            X = (like(X, self.weights) - self.offset) / self.scale
            # Biases ride along as one more input: a pass over all units less.
            inputs = xp.concat([X.T, xp.ones_like(X.T[:1, :])])
            u = xp.concat([weights, biases[:, None]], axis=1) @ inputs
        g = ACTIVATIONS[self.activation] if isinstance(self.activation, str) else self.activation
        H = xp.reshape(g(u), (self.n_members, self.n_units, n_rows))
        if self.constant:
            H[:, 0, :] = 1.0
        return H

    def _stacked(self, xp: Any) -> tuple[Array, Array]:
        """Weights (M N, d) and biases (M N,), with a zero row for each constant unit."""
        W, b = self.weights, self.biases
        if self.constant:
            W = xp.concat([xp.zeros_like(W[:, :1, :]), W], axis=1)
            b = xp.concat([xp.zeros_like(b[:, :1]), b], axis=1)
        return xp.reshape(W, (-1, W.shape[2])), xp.reshape(b, (-1,))
