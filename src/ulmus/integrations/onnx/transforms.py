"""Transformations of a target and their inverses, as ``core/response/transforms.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ulmus.core.response.transforms import LARGEST_EXPONENT, Identity, Log, Logit, Sqrt, YeoJohnson
from ulmus.integrations.onnx.graph import GraphBuilder


def forward(graph: GraphBuilder, transform: Any, y: str) -> str:
    """Values on the link scale."""
    return FORWARDS[type(transform)](graph, transform, y)


def inverse(graph: GraphBuilder, transform: Any, z: str) -> str:
    """Values on the response scale."""
    return INVERSES[type(transform)](graph, transform, z)


def inverse_slope(graph: GraphBuilder, transform: Any, z: str) -> str:
    """Derivative of the inverse; zero outside the domain."""
    low, high = transform.domain
    slope = SLOPES[type(transform)](graph, transform, z)
    inside = graph("And", graph("GreaterOrEqual", z, low), graph("LessOrEqual", z, high))
    return graph("Where", inside, slope, 0.0)


def _log_forward(graph: GraphBuilder, transform: Log, y: str) -> str:
    return graph("Log", graph("Add", y, transform.start - transform.low))


def _sqrt_forward(graph: GraphBuilder, transform: Sqrt, y: str) -> str:
    return graph("Sqrt", graph("Sub", y, transform.low))


def _logit_forward(graph: GraphBuilder, transform: Logit, y: str) -> str:
    share = graph("Mul", graph("Sub", y, transform.low), 1.0 / (transform.high - transform.low))
    share = graph("Add", graph("Mul", share, 1.0 - 2.0 * transform.squeeze), transform.squeeze)
    return graph("Sub", graph("Log", share), graph("Log", graph("Sub", 1.0, share)))


def _yeo_johnson_forward(graph: GraphBuilder, transform: YeoJohnson, y: str) -> str:
    u = graph("Mul", graph("Sub", y, transform.center), 1.0 / transform.scale)
    upper, lower = graph("Max", u, 0.0), graph("Max", graph("Neg", u), 0.0)
    above = _power(graph, graph("Log", graph("Add", upper, 1.0)), transform.lmbda)
    below = _power(graph, graph("Log", graph("Add", lower, 1.0)), 2.0 - transform.lmbda)
    return graph("Sub", above, below)  # one of the two is zero


def _power(graph: GraphBuilder, log: str, lmbda: float) -> str:
    if abs(lmbda) < 1e-8:
        return log
    power = graph("Exp", graph("Min", graph("Mul", log, lmbda), 700.0))
    return graph("Mul", graph("Sub", power, 1.0), 1.0 / lmbda)


def _exponential(graph: GraphBuilder, transform: Log, z: str) -> str:
    return graph("Exp", graph.clipped(z, *transform.domain))


def _log(graph: GraphBuilder, transform: Log, z: str) -> str:
    return graph("Add", _exponential(graph, transform, z), transform.low - transform.start)


def _sqrt(graph: GraphBuilder, transform: Sqrt, z: str) -> str:
    return graph("Add", graph.square(graph("Max", z, 0.0)), transform.low)


def _sqrt_slope(graph: GraphBuilder, transform: Sqrt, z: str) -> str:
    return graph("Mul", graph("Max", z, 0.0), 2.0)


def _logit(graph: GraphBuilder, transform: Logit, z: str) -> str:
    share = graph("Sub", graph("Sigmoid", z), transform.squeeze)
    share = graph.clipped(graph("Mul", share, 1.0 / (1.0 - 2.0 * transform.squeeze)), 0.0, 1.0)
    size = transform.high - transform.low
    return graph("Add", graph("Mul", share, size), transform.low)


def _logit_slope(graph: GraphBuilder, transform: Logit, z: str) -> str:
    share = graph("Sigmoid", z)
    size = (transform.high - transform.low) / (1.0 - 2.0 * transform.squeeze)
    return graph("Mul", graph("Mul", share, graph("Sub", 1.0, share)), size)


def _yeo_johnson(graph: GraphBuilder, transform: YeoJohnson, z: str) -> str:
    upper, lower = _yeo_johnson_logs(graph, transform, z)
    above, below = graph("Sub", graph("Exp", upper), 1.0), graph("Sub", 1.0, graph("Exp", lower))
    # One of the two is zero.
    u = graph("Mul", graph("Add", above, below), transform.scale)
    return graph("Add", u, transform.center)


def _yeo_johnson_slope(graph: GraphBuilder, transform: YeoJohnson, z: str) -> str:
    upper, lower = _yeo_johnson_logs(graph, transform, z)
    log_slope = graph("Mul", graph("Sub", upper, lower), 1.0 - transform.lmbda)
    return graph("Mul", graph("Exp", log_slope), transform.scale)


def _yeo_johnson_logs(graph: GraphBuilder, transform: YeoJohnson, z: str) -> tuple[str, str]:
    """Logarithms of 1 + |u| where the standardised value u is positive, and where negative."""
    z = graph.clipped(z, *transform.domain)
    upper = _log_of_power(graph, graph("Max", z, 0.0), transform.lmbda)
    lower = _log_of_power(graph, graph("Max", graph("Neg", z), 0.0), 2.0 - transform.lmbda)
    return upper, lower


def _log_of_power(graph: GraphBuilder, z: str, lmbda: float) -> str:
    if abs(lmbda) < 1e-8:
        return graph("Min", z, LARGEST_EXPONENT)
    inner = graph("Max", graph("Mul", z, lmbda), -1.0 + 1e-16)
    logarithm = graph("Log", graph("Add", inner, 1.0))
    return graph("Min", graph("Mul", logarithm, 1.0 / lmbda), LARGEST_EXPONENT)


GraphFunction = Callable[[GraphBuilder, Any, str], str]

FORWARDS: dict[type, GraphFunction] = {
    Identity: lambda graph, transform, y: y,
    Log: _log_forward,
    Sqrt: _sqrt_forward,
    Logit: _logit_forward,
    YeoJohnson: _yeo_johnson_forward,
}
INVERSES: dict[type, GraphFunction] = {
    Identity: lambda graph, transform, z: z,
    Log: _log,
    Sqrt: _sqrt,
    Logit: _logit,
    YeoJohnson: _yeo_johnson,
}
SLOPES: dict[type, GraphFunction] = {
    Identity: lambda graph, transform, z: graph("Add", graph("Mul", z, 0.0), 1.0),
    Log: _exponential,
    Sqrt: _sqrt_slope,
    Logit: _logit_slope,
    YeoJohnson: _yeo_johnson_slope,
}
