"""Activation functions g(u) and their derivatives g'(u), elementwise on pre-activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ulmus.core.backend import Array, erf, logistic, namespace


class Activation(NamedTuple):
    """A function of the pre-activation and its derivative; both may overwrite their argument."""

    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]


def _logistic_slope(u: Array) -> Array:
    g = logistic(u)
    return g * (1 - g)


def _tanh_slope(u: Array) -> Array:
    return 1 - namespace(u).tanh(u) ** 2


def _relu(u: Array) -> Array:
    return namespace(u).clip(u, min=0.0)


def _relu_slope(u: Array) -> Array:
    return namespace(u).astype(u > 0, u.dtype)


def _erf_slope(u: Array) -> Array:
    return 2 / math.sqrt(math.pi) * _rbf(u)


def _rbf(u: Array) -> Array:
    # exp(-40^2) is zero in double precision: the clip only keeps u^2 from overflowing.
    xp = namespace(u)
    return xp.exp(-(xp.clip(u, min=-40.0, max=40.0) ** 2))


def _rbf_slope(u: Array) -> Array:
    return -2 * u * _rbf(u)


ACTIVATIONS: dict[str, Activation] = {
    "logistic": Activation(logistic, _logistic_slope),
    "tanh": Activation(lambda u: namespace(u).tanh(u), _tanh_slope),
    "relu": Activation(_relu, _relu_slope),
    "erf": Activation(erf, _erf_slope),
    "cos": Activation(lambda u: namespace(u).cos(u), lambda u: -namespace(u).sin(u)),
    "rbf": Activation(_rbf, _rbf_slope),
    "identity": Activation(lambda u: u, lambda u: namespace(u).ones_like(u)),
}


def named(activation: str | Callable[[Array], Array]) -> Activation:
    """Activation by name, or a user's own function, whose derivative is not known."""
    if isinstance(activation, str):
        return ACTIVATIONS[activation]
    return Activation(activation, _unknown_derivative)


def _unknown_derivative(u: Array) -> Array:
    raise ValueError(
        "the derivative of a callable activation is not known; use an activation by name, for "
        "example activation='tanh'."
    )
