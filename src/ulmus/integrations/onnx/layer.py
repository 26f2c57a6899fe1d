"""The hidden layer in a graph: inputs, normal scores, one-hot indicators, units.

It follows ``inputs``, ``activations`` and ``hidden_layer`` of ``core/layer``. Points come first:
inputs are (p, d'), features (M, p, N).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto
from scipy.special import erfcx

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.layer.inputs import Inputs, NormalScores, OneHot
from ulmus.integrations.onnx.graph import GraphBuilder


def layer_inputs(graph: GraphBuilder, X: str, inputs: Inputs) -> str:
    """Inputs of the layer, shape (p, d'), as ``Inputs.__call__`` but not yet scaled."""
    parts = [graph("Sub", X, to_numpy(inputs.offset))]
    if inputs.normal_scores:
        parts.append(normal_scores(graph, X, inputs.normal_scores))
    if inputs.one_hot:
        parts.append(one_hot(graph, X, inputs.one_hot))
    return graph.joined(parts)


def normal_scores(graph: GraphBuilder, X: str, curves: Sequence[NormalScores]) -> str:
    """Normal scores by all curves, shape (p, curves), as ``NormalScores.__call__``."""
    knots = _padded([curve.knots for curve in curves])
    last = np.array([float(curve.knots[-1]) for curve in curves])
    x = graph.columns(X, [curve.column for curve in curves])
    x = graph.clipped(x, knots[:, 0], last)
    # The knot to the left is as far as inner knots are not to the right; the padding always is.
    inner = _padded([curve.knots[1:-1] for curve in curves])
    passed = graph("GreaterOrEqual", graph("Unsqueeze", x, np.array([2])), inner)
    left = graph.sum(graph("Cast", passed, to=TensorProto.INT64), 2)
    n_pieces = knots.shape[1] - 1
    piece = graph("Add", left, n_pieces * np.arange(len(curves)))

    def taken(arrays: list[Any]) -> str:
        return graph("Gather", _padded(arrays, n_pieces).ravel(), piece)

    rise, start, end = zip(*(curve.pieces for curve in curves), strict=True)
    parts = [[to_numpy(a) for a in kind] for kind in (rise, start, end)]
    share = graph("Sub", x, taken([curve.knots[:-1] for curve in curves]))
    share = graph("Div", share, taken([curve.gaps for curve in curves]))
    slope = taken(parts[1])
    curvature = taken([3 * r - 2 * a - b for r, a, b in zip(*parts, strict=True)])
    bend = taken([a + b - 2 * r for r, a, b in zip(*parts, strict=True)])
    value = graph("Add", curvature, graph("Mul", share, bend))
    value = graph("Add", slope, graph("Mul", share, value))
    low = taken([curve.heights[:-1] for curve in curves])
    return graph("Add", low, graph("Mul", share, value))


def _padded(arrays: list[Any], width: int | None = None) -> np.ndarray:
    """Arrays of different lengths as rows of a matrix, filled up with infinity."""
    rows = [to_numpy(a).astype(float) for a in arrays]
    out = np.full((len(rows), width or max(map(len, rows))), np.inf)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def one_hot(graph: GraphBuilder, X: str, several: Sequence[OneHot]) -> str:
    """Indicators of all levels, shape (p, levels), as ``OneHot.__call__``."""
    sizes = [int(part.values.shape[0]) for part in several]
    values = np.concatenate([to_numpy(part.values) for part in several])
    x = graph.columns(X, np.repeat([part.column for part in several], sizes))
    distance = graph("Abs", graph("Sub", x, values))
    near = graph("LessOrEqual", distance, np.repeat([float(p.tolerance) for p in several], sizes))
    return graph("Cast", near, to=TensorProto.DOUBLE)


def _erf(graph: GraphBuilder, u: str) -> str:
    r"""Error function, since onnxruntime has none in double precision.

    :math:`1 - e^{-x^2}\,\mathrm{erfcx}(x)` for :math:`x = |u|`, with a polynomial in
    :math:`(x - k)/(x + k)` for erfcx (Shepherd & Laframboise, 1981).
    """
    k, reach = 2.0, 6.0  # beyond the reach, the function is one in double precision
    end = (reach - k) / (reach + k)

    def complement(y: np.ndarray) -> np.ndarray:
        return erfcx(k * (1 + y) / (1 - y))

    x = graph("Min", graph("Abs", u), reach)
    y = graph("Div", graph("Sub", x, k), graph("Add", x, k))
    scaled = graph.smooth(y, complement, -1.0, end, degree=18)
    tail = graph("Mul", graph("Exp", graph("Neg", graph.square(x))), scaled)
    return graph("Mul", graph("Sign", u), graph("Sub", 1.0, tail))


def _rbf(graph: GraphBuilder, u: str) -> str:
    return graph("Exp", graph("Neg", graph.square(graph.clipped(u, -40.0, 40.0))))


ACTIVATIONS: dict[str, Callable[[GraphBuilder, str], str]] = {
    "logistic": lambda graph, u: graph("Sigmoid", u),
    "tanh": lambda graph, u: graph("Tanh", u),
    "relu": lambda graph, u: graph("Relu", u),
    "erf": _erf,
    "cos": lambda graph, u: graph("Cos", u),
    "rbf": _rbf,
    "identity": lambda graph, u: u,
}


# Derivatives of the activations at u, with value g.
SLOPES: dict[str, Callable[[GraphBuilder, str, str], str]] = {
    "logistic": lambda graph, u, g: graph("Mul", g, graph("Sub", 1.0, g)),
    "tanh": lambda graph, u, g: graph("Sub", 1.0, graph.square(g)),
    "relu": lambda graph, u, g: graph("Cast", graph("Greater", u, 0.0), to=TensorProto.DOUBLE),
    "erf": lambda graph, u, g: graph("Mul", _rbf(graph, u), 2 / np.sqrt(np.pi)),
    "cos": lambda graph, u, g: graph("Neg", graph("Sin", u)),
    "rbf": lambda graph, u, g: graph("Mul", graph("Mul", u, g), -2.0),
    "identity": lambda graph, u, g: graph("Add", graph("Mul", u, 0.0), 1.0),
}


def features(graph: GraphBuilder, X: str, layer: HiddenLayer) -> str:
    """Hidden features without the constant one, shape (M, p, N), as ``HiddenLayer.__call__``."""
    u = _pre_activations(graph, layer_inputs(graph, X, layer.inputs), layer)
    return ACTIVATIONS[str(layer.activation)](graph, u)


def _pre_activations(graph: GraphBuilder, inputs: str, layer: HiddenLayer) -> str:
    """Arguments of the activation (M, p, N) for inputs (p, d') of the layer that are not scaled."""
    if not isinstance(layer.activation, str):
        text = f"activation={layer.activation!r} is a function, which a graph cannot contain"
        raise ValueError(f"{text}; give one by name: {', '.join(map(repr, ACTIVATIONS))}.")
    # The weights are scaled instead of the inputs: onnxruntime merges a matrix product with a
    # division by one number before it, such as the scale of a single input, in single precision.
    W = to_numpy(layer.W).astype(float) / _scale(layer)
    u = graph("MatMul", inputs, W.transpose(0, 2, 1))
    return graph("Add", u, to_numpy(layer.b)[:, None, :])


def _scale(layer: HiddenLayer) -> np.ndarray:
    """Scale of each input of the layer, one for expansions, shape (d',)."""
    scale, out = to_numpy(layer.inputs.scale).astype(float), np.ones(layer.W.shape[2])
    out[: len(scale)] = scale
    return out


def map_derivatives(
    graph: GraphBuilder, X: str, layer: HiddenLayer, coefficients: np.ndarray, changes: np.ndarray
) -> list[str]:
    """Derivatives of the mean by each change P of the map at the same coefficients (M, N', K).

    Each has the shape (p, K), as ``MapUncertainty.shifts``.
    """
    inputs = layer_inputs(graph, X, layer.inputs)
    u = _pre_activations(graph, inputs, layer)
    slope = SLOPES[str(layer.activation)](graph, u, ACTIVATIONS[str(layer.activation)](graph, u))
    W = to_numpy(layer.W).astype(float) / layer.n_members
    beta = coefficients[:, int(layer.constant) :, :]
    by_output = []
    for k in range(beta.shape[2]):
        weights = W * beta[:, :, k, None]
        gradient = graph.sum(graph("MatMul", slope, weights), 0)  # (p, d')
        by_output.append(
            [
                graph.sum(
                    graph("Mul", graph("MatMul", inputs, P / _scale(layer)[:, None]), gradient),
                    1,
                    keepdims=True,
                )
                for P in changes
            ]
        )
    return [graph.joined(list(parts)) for parts in zip(*by_output, strict=True)]


def linear(graph: GraphBuilder, h: str, layer: HiddenLayer, weights: Any) -> str:
    """Features times weights (M, N', K) within each member, shape (M, p, K).

    The constant feature is 1 at every point, and its weights are added.
    """
    weights, first = to_numpy(weights).astype(float), int(layer.constant)
    product = graph("MatMul", h, weights[:, first:, :])
    return graph("Add", product, weights[:, :1, :]) if first else product


def stacked_linear(graph: GraphBuilder, h: str, layer: HiddenLayer, weights: Any) -> str:
    """Features of all members times weights (M N', r), shape (p, r)."""
    M, first = layer.n_members, int(layer.constant)
    by_member = to_numpy(weights).astype(float).reshape(M, layer.n_units, -1)
    rest = by_member[:, first:, :]
    flat = graph("Transpose", h, perm=[1, 0, 2])
    flat = graph("Reshape", flat, np.array([-1, M * rest.shape[1]]))
    product = graph("MatMul", flat, rest.reshape(M * rest.shape[1], -1))
    return graph("Add", product, by_member[:, 0, :].sum(axis=0)) if first else product


def mean(graph: GraphBuilder, X: str, layer: HiddenLayer, coefficients: Any, shift: Any) -> str:
    """Mean over members of a linear function of the features, shape (p, K), as ``Fold.mean``."""
    h = features(graph, X, layer)
    total = graph.sum(linear(graph, h, layer, coefficients / layer.n_members), 0)
    return graph("Add", total, to_numpy(shift)) if layer.constant else total
