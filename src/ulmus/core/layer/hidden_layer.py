"""The random hidden layer: activations, draws of weights, features h(x) and their derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import ndtri
from scipy.stats.qmc import Sobol

from ulmus.core.arrays.backend import Array, dense, erf, is_on_host, like, logistic, namespace
from ulmus.core.layer.inputs import Inputs
from ulmus.exceptions import InputError
from ulmus.messages import ANY, Message, Setting

# Largest array of features that is factorised at once: half a gigabyte.
PORTION_ELEMENTS = 2**26
# Range of biases with the automatic scale: units are centred within the standardised data.
AUTO_BIAS = 1.5


class WeightDistribution(NamedTuple):
    """A distribution of hidden weights of scale 1: random draws, and quantiles."""

    draw: Callable[..., np.ndarray]
    quantile: Callable[[np.ndarray], np.ndarray]


DISTRIBUTIONS: dict[str, WeightDistribution] = {
    "uniform": WeightDistribution(
        lambda rng, size: rng.uniform(-1.0, 1.0, size), lambda u: 2 * u - 1
    ),
    "normal": WeightDistribution(lambda rng, size: rng.standard_normal(size), ndtri),
}


@dataclass(frozen=True)
class UnitDistribution:
    """Distribution of the hidden units.

    Biases have the scale of the largest weight, as in the paper; with the automatic scale they are
    uniform on (-1.5, 1.5). Biases of ``"cos"`` are uniform on (0, 2 pi), so that the units are
    random Fourier features (Rahimi & Recht, 2007).
    """

    distribution: str  # A name in ``DISTRIBUTIONS``
    # (d',): scale of the weights of each input; None for the automatic scale.
    scale: np.ndarray | None
    # A name in ``ACTIVATIONS``, or a function of the array of pre-activations.
    activation: str | Callable[[Array], Array]

    def member(self, seed: Any, n_inputs: int, n_neurons: int) -> tuple[np.ndarray, np.ndarray]:
        """Weights (d', N) and biases (N,) of one member."""
        rng, scale = np.random.default_rng(seed), self.scales(n_inputs)
        draw = DISTRIBUTIONS[self.distribution].draw
        W = draw(rng, (n_inputs, n_neurons)) * scale[:, None]
        b = draw(rng, n_neurons) * np.max(scale)
        if self.activation == "cos":
            b = rng.uniform(0.0, 2 * np.pi, n_neurons)
        elif self.scale is None:
            b = rng.uniform(-AUTO_BIAS, AUTO_BIAS, n_neurons)
        return W, b

    def sobol_member(
        self, seed: Any, n_inputs: int, n_neurons: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights and biases of one member from scrambled Sobol points.

        They cover the space of units more evenly than random draws, so that the marginal
        likelihood of an input map varies less between seeds.
        """
        rng = np.random.default_rng(seed)
        points = Sobol(n_inputs + 1, rng=rng).random_base2(int(n_neurons - 1).bit_length())
        points = np.clip(points[:n_neurons], 1e-9, 1 - 1e-9).T
        scale, quantile = self.scales(n_inputs), DISTRIBUTIONS[self.distribution].quantile
        b = quantile(points[-1]) * np.max(scale)
        if self.activation == "cos":
            b = 2 * np.pi * points[-1]
        elif self.scale is None:
            b = AUTO_BIAS * (2 * points[-1] - 1)
        return quantile(points[:-1]) * scale[:, None], b

    def scales(self, n_inputs: int) -> np.ndarray:
        """Scale of the weights of each input, shape (d',)."""
        if self.scale is None:
            # Pre-activations of standardised inputs have standard deviation 0.7.
            return np.full(n_inputs, 0.7 / np.sqrt(n_inputs))
        return self.scale


def drawn_layer(
    seeds: list[np.random.SeedSequence],
    n_neurons: int,
    law: UnitDistribution,
    inputs: Inputs,
    input_map: np.ndarray | None,
    *,
    constant: bool,
) -> HiddenLayer:
    """A hidden layer with one member per seed and an optional map (d', d') of its inputs."""
    n_inputs, reference = len(inputs.origin), inputs.offset
    members = [law.member(seed, n_inputs, n_neurons) for seed in seeds]
    W = np.stack([weights.T for weights, _ in members])
    if input_map is not None:
        W = W @ input_map.T
    b = np.stack([biases for _, biases in members])
    W, b = like(np.ascontiguousarray(W), reference), like(b, reference)
    return HiddenLayer(W, b, inputs, law.activation, constant)


@dataclass(frozen=True)
class HiddenLayer:
    r"""Hidden units of all members, :math:`h(x) = g(z(x) W + b)`."""

    W: Array  # (M, N, d'): hidden weights with one unit per row, including the input map
    b: Array  # (M, N): biases
    inputs: Inputs  # the inputs z(x) of the layer: standardised, and optionally expanded
    # A name in ``ACTIVATIONS``, or a function of the array of pre-activations.
    activation: str | Callable[[Array], Array]
    constant: bool  # whether each member has a leading constant unit 1: the unpenalised intercept

    @property
    def n_members(self) -> int:
        """Number of members M."""
        return int(self.W.shape[0])

    @property
    def n_units(self) -> int:
        """Units of a member, including the constant."""
        return int(self.W.shape[1]) + int(self.constant)

    @property
    def width(self) -> int:
        """Total number of features of all members."""
        return self.n_members * self.n_units

    def shares(self, h: Array) -> Array:
        """Coefficients of the output shift in functionals with features h (M, N', p), shape (p,).

        They are the constant features: 1 for a point, 0 for a difference. Without an intercept
        the outputs are not shifted.
        """
        return h[0, 0, :] if self.constant else namespace(h).zeros_like(h[0, 0, :])

    def members(self, few: slice) -> HiddenLayer:
        """Layer of some of the members."""
        return replace(self, W=self.W[few, :, :], b=self.b[few, :])

    def portions(self, n_rows: int) -> Iterator[HiddenLayer]:
        """Members in portions: one on the host, as many as fit in memory on a GPU."""
        on_host = is_on_host(self.W)
        size = 1 if on_host else max(1, PORTION_ELEMENTS // max(1, n_rows * self.n_units))
        for start in range(0, self.n_members, size):
            yield self.members(slice(start, min(start + size, self.n_members)))

    def __call__(self, X: Array) -> Array:
        """Features of the rows of X, shape (M, N', n), with the constant unit first."""
        u = self._pre_activations(X)
        shape, H = u.shape, named(self.activation).value(u)
        if not isinstance(self.activation, str):
            _require_values(H, shape)
        H = self._members(H, X.shape[0])
        if self.constant:
            H[:, 0, :] = 1.0
        return H

    def derivative(self, X: Array, directions: Array) -> Array:
        """Directional derivatives of the features at the rows of X, shape (M, N', n)."""
        W, _ = self._stacked(namespace(self.W))
        slope = named(self.activation).derivative(self._pre_activations(X))
        if scipy.sparse.issparse(directions) and not self.inputs.expands:
            return self._members(slope * (directions @ (W / self.inputs.scale).T).T, X.shape[0])
        # The constant unit has zero weights, and a zero derivative.
        X, directions = self._dense_if_expanded(X), dense(directions)
        return self._members(slope * (W @ self.inputs.derivative(X, directions)), X.shape[0])

    def with_slopes(self, Z: Array) -> Both:
        """Features (M, N', n) and slopes of the units (M, N, n) at layer inputs Z (d', n)."""
        xp = namespace(self.W)
        H, slope = named(self.activation).both(self.W @ Z + self.b[:, :, None])
        if self.constant:
            H = xp.concat([xp.ones_like(H[:, :1, :]), H], axis=1)
        return H, slope

    def slopes(self, Z: Array, h: Array | None = None) -> Array:
        """Slopes of the units (M, N, n) at layer inputs Z (d', n), from their features if known."""
        slope = named(self.activation).slope
        if h is None or slope is None:
            return self.with_slopes(Z)[1]
        return slope(h[:, int(self.constant) :, :])

    def _pre_activations(self, X: Array) -> Array:
        """Arguments u of the activation for all units of all members, shape (M N', n)."""
        xp = namespace(self.W)
        W, b = self._stacked(xp)
        X = self._dense_if_expanded(X)
        if scipy.sparse.issparse(X):
            # Scale the hidden weights instead of X, which stays sparse.
            W = W / self.inputs.scale
            b = b - xp.sum(W * self.inputs.offset, axis=1)
            u = np.ascontiguousarray((X @ W.T).T)
            u += b[:, None]
            return u
        Z = self.inputs(X)
        # A constant input 1 adds the biases within the matrix product.
        inputs = xp.concat([Z, xp.ones_like(Z[:1, :])])
        return xp.concat([W, b[:, None]], axis=1) @ inputs

    def _dense_if_expanded(self, X: Array) -> Array:
        """X, converted to dense if inputs are expanded."""
        return X.toarray() if scipy.sparse.issparse(X) and self.inputs.expands else X

    def _members(self, values: Array, n_rows: int) -> Array:
        return namespace(values).reshape(values, (self.n_members, self.n_units, n_rows))

    def _stacked(self, xp: Any) -> tuple[Array, Array]:
        """Weights (M N', d) and biases (M N',), with zeros for each constant unit."""
        W, b = self.W, self.b
        if self.constant:
            W = xp.concat([xp.zeros_like(W[:, :1, :]), W], axis=1)
            b = xp.concat([xp.zeros_like(b[:, :1]), b], axis=1)
        return xp.reshape(W, (-1, W.shape[2])), xp.reshape(b, (-1,))


def _require_values(H: Array, shape: tuple[int, ...]) -> None:
    """Check that a callable activation returned a finite array of the same shape."""
    if tuple(getattr(H, "shape", ())) != tuple(shape):
        raise ValueError(
            f"activation must return an array of the shape of its argument, {tuple(shape)}, got "
            f"{getattr(H, 'shape', type(H).__name__)}."
        )
    xp = namespace(H)
    if not bool(xp.all(xp.isfinite(H))):
        suggestions = (
            "give a function that is finite for every pre-activation",
            Setting("standardize", True, "use {} and a smaller weight_scale"),
        )
        text = "returned NaN or infinity"
        raise InputError(Message("activation-not-finite", text, "activation", ANY, suggestions))


# ------------------------------------------------------------ activations

Both = tuple[Array, Array]


class Activation(NamedTuple):
    """An activation, and the pair of it and its derivative.

    These two functions may overwrite their argument.
    """

    value: Callable[[Array], Array]
    both: Callable[[Array], Both]
    slope: Callable[[Array], Array] | None = None  # the derivative from the value

    def derivative(self, u: Array) -> Array:
        """The derivative."""
        return self.both(u)[1]


def _logistic_both(u: Array) -> Both:
    g = logistic(u)
    return g, g * (1 - g)


def _tanh_both(u: Array) -> Both:
    g = namespace(u).tanh(u)
    return g, 1 - g * g


def _relu_both(u: Array) -> Both:
    xp = namespace(u)
    return xp.clip(u, min=0.0), xp.astype(u > 0, u.dtype)


def _erf_both(u: Array) -> Both:
    return erf(u), 2 / math.sqrt(math.pi) * _rbf(u)


def _rbf(u: Array) -> Array:
    # exp(-40^2) is zero in double precision; the clip prevents overflow of u^2.
    xp = namespace(u)
    return xp.exp(-(xp.clip(u, min=-40.0, max=40.0) ** 2))


def _rbf_both(u: Array) -> Both:
    g = _rbf(u)
    return g, -2 * u * g


def _cos_both(u: Array) -> Both:
    xp = namespace(u)
    return xp.cos(u), -xp.sin(u)


ACTIVATIONS: dict[str, Activation] = {
    "logistic": Activation(logistic, _logistic_both, lambda g: g * (1 - g)),
    "tanh": Activation(lambda u: namespace(u).tanh(u), _tanh_both, lambda g: 1 - g * g),
    "relu": Activation(lambda u: namespace(u).clip(u, min=0.0), _relu_both),
    "erf": Activation(erf, _erf_both),
    "cos": Activation(lambda u: namespace(u).cos(u), _cos_both),
    "rbf": Activation(_rbf, _rbf_both),
    "identity": Activation(lambda u: u, lambda u: (u, namespace(u).ones_like(u))),
}


def named(activation: str | Callable[[Array], Array]) -> Activation:
    """Activation by name, or of a callable, whose derivative is unknown."""
    if isinstance(activation, str):
        return ACTIVATIONS[activation]
    return Activation(activation, _unknown_derivative)


def _unknown_derivative(u: Array) -> Both:
    text = "the derivative of a callable activation is unknown"
    by_name = Setting("activation", "tanh", "use an activation by name, such as {}")
    raise InputError(Message("unknown-derivative", text, suggestions=(by_name,)))
