"""The random hidden layer: drawing its weights, the features h(x) and their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from ulmus.core.activations import named
from ulmus.core.backend import Array, like, namespace

# Largest array of features that is factorised at once: half a gigabyte.
PORTION_ELEMENTS = 2**26

DISTRIBUTIONS: dict[str, Callable[..., np.ndarray]] = {
    "uniform": lambda rng, size: rng.uniform(-1.0, 1.0, size),
    "normal": lambda rng, size: rng.standard_normal(size),
}


def drawn_units(
    seeds: list[np.random.SeedSequence],
    n_inputs: int,
    n_neurons: int,
    *,
    distribution: str,
    scale: Array,
    activation: str | Callable[[Array], Array],
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the hidden weights (M, d, N) and biases (M, N) of one member per seed.

    Biases have the scale of the largest weight, as in the paper; those of ``"cos"`` are
    phases, uniform on a full turn, which makes the units random Fourier features
    (Rahimi & Recht, 2007).
    """
    draw = DISTRIBUTIONS[distribution]
    scale = np.broadcast_to(np.asarray(scale, dtype=float), (n_inputs,))
    W, b = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        W.append(draw(rng, (n_inputs, n_neurons)) * scale[:, None])
        bias = draw(rng, n_neurons) * np.max(scale)
        b.append(rng.uniform(0.0, 2 * np.pi, n_neurons) if activation == "cos" else bias)
    return np.stack(W), np.stack(b)


@dataclass(frozen=True)
class HiddenLayer:
    r"""Hidden units of all members, :math:`h(x) = g((x - o)/c \; W + b)`.

    Parameters
    ----------
    W : array of shape (M, N, d)
        Hidden weights with one unit per row.
    b : array of shape (M, N)
        Biases.
    offset, scale : arrays of shape (d,)
        What is subtracted from each input and what divides it.
    activation : str or callable
        A name in ``ACTIVATIONS``, or a function of the array of pre-activations.
    constant : bool
        Whether each member gets a leading unit that is always 1: the unpenalised intercept.
    """

    W: Array
    b: Array
    offset: Array
    scale: Array
    activation: str | Callable[[Array], Array]
    constant: bool

    @property
    def n_members(self) -> int:
        """Number of members M."""
        return int(self.W.shape[0])

    @property
    def n_units(self) -> int:
        """Units of a member, the constant one included."""
        return int(self.W.shape[1]) + int(self.constant)

    @property
    def width(self) -> int:
        """Number of features of all members together."""
        return self.n_members * self.n_units

    def members(self, few: slice) -> HiddenLayer:
        """Some of the members as a layer of their own."""
        return replace(self, W=self.W[few, :, :], b=self.b[few, :])

    def portions(self, n_rows: int) -> Iterator[HiddenLayer]:
        """The members in portions whose features of so many rows are not too large together."""
        size = max(1, PORTION_ELEMENTS // max(1, n_rows * self.n_units))
        for start in range(0, self.n_members, size):
            yield self.members(slice(start, min(start + size, self.n_members)))

    def __call__(self, X: Array) -> Array:
        """Features of the rows of X, shape (M, N', n), a constant unit first if there is one."""
        H = self._members(self._called(self._pre_activations(X)), X.shape[0])
        if self.constant:
            H[:, 0, :] = 1.0
        return H

    def derivative(self, X: Array, j: int) -> Array:
        """Derivative of the features by input j at the rows of X, shape (M, N', n)."""
        slope = self._members(
            named(self.activation).derivative(self._pre_activations(X)), X.shape[0]
        )
        first = int(self.constant)
        slope[:, first:, :] = slope[:, first:, :] * (self.W[:, :, j] / self.scale[j])[:, :, None]
        if self.constant:
            slope[:, 0, :] = 0.0
        return slope

    def _pre_activations(self, X: Array) -> Array:
        """Arguments u of the activation for all units of all members, shape (M N', n)."""
        xp = namespace(self.W)
        W, b = self._stacked(xp)
        if scipy.sparse.issparse(X):
            # Scaling the hidden weights instead of X keeps X sparse.
            W = W / self.scale
            b = b - xp.sum(W * self.offset, axis=1)
            u = np.ascontiguousarray((X @ W.T).T)
            u += b[:, None]
            return u
        X = (like(X, self.W) - self.offset) / self.scale
        # With a further input that is always 1, the product adds the biases by itself.
        inputs = xp.concat([X.T, xp.ones_like(X.T[:1, :])])
        return xp.concat([W, b[:, None]], axis=1) @ inputs

    def _called(self, u: Array) -> Array:
        shape = u.shape
        H = named(self.activation).value(u)
        if not isinstance(self.activation, str):
            _require_values(H, shape)
        return H

    def _members(self, values: Array, n_rows: int) -> Array:
        return namespace(values).reshape(values, (self.n_members, self.n_units, n_rows))

    def _stacked(self, xp: Any) -> tuple[Array, Array]:
        """Weights (M N', d) and biases (M N',), with a zero row for each constant unit."""
        W, b = self.W, self.b
        if self.constant:
            W = xp.concat([xp.zeros_like(W[:, :1, :]), W], axis=1)
            b = xp.concat([xp.zeros_like(b[:, :1]), b], axis=1)
        return xp.reshape(W, (-1, W.shape[2])), xp.reshape(b, (-1,))


def _require_values(H: Array, shape: tuple[int, ...]) -> None:
    """Refuse what a user's own activation returns if it is no finite array of the same shape."""
    if tuple(getattr(H, "shape", ())) != tuple(shape):
        raise ValueError(
            f"activation must return an array of the shape it is given, {tuple(shape)}, got "
            f"{getattr(H, 'shape', type(H).__name__)}."
        )
    xp = namespace(H)
    if not bool(xp.all(xp.isfinite(H))):
        raise ValueError(
            "activation returned NaN or infinity; give a function that is finite for every "
            "pre-activation, or standardize=True and a smaller weight_scale."
        )
