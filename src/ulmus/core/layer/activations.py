"""Activation functions g(u) and their derivatives g'(u), elementwise on pre-activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ulmus.core.arrays.backend import Array, erf, logistic, namespace
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

Both = tuple[Array, Array]


class Activation(NamedTuple):
    """An activation, and the pair of it and its derivative.

    Both functions may overwrite their argument.
    """

    value: Callable[[Array], Array]
    both: Callable[[Array], Both]

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
    "logistic": Activation(logistic, _logistic_both),
    "tanh": Activation(lambda u: namespace(u).tanh(u), _tanh_both),
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
    raise InputError(
        Message(
            "unknown-derivative",
            "the derivative of a callable activation is unknown",
            suggestions=(Setting("activation", "tanh", "use an activation by name, such as {}"),),
        )
    )
