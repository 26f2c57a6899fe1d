"""A small builder of ONNX graphs: nodes and constants go in, names of their results come out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import onnx
from numpy.polynomial import chebyshev
from onnx import TensorProto, helper

# Widely supported, and recent enough for every operator used here in double precision.
OPSET, IR_VERSION = 17, 8
# A protobuf message has at most two gigabytes; the rest is for the nodes.
LARGEST_BYTES = 2**31 - 2**24

# The name of a result, or numbers that become a constant.
Value = str | np.ndarray | float


class GraphBuilder:
    """Nodes in the order in which they are added, and constants in double precision.

    Equal constants are stored once, and so are equal nodes: a part of the model that is written
    twice is computed once.
    """

    def __init__(self) -> None:
        self._nodes: dict[Any, Any] = {}
        self._constants: dict[Any, Any] = {}
        self._bytes = 0

    def __call__(self, operator: str, *values: Value, **attributes: Any) -> str:
        """Name of the result of an ONNX operator."""
        names = [value if isinstance(value, str) else self.constant(value) for value in values]
        key = operator, tuple(names), repr(sorted(attributes.items()))
        if key not in self._nodes:
            name = f"{operator}_{len(self._nodes)}"
            self._nodes[key] = helper.make_node(operator, names, [name], name, **attributes)
        return str(self._nodes[key].output[0])

    def constant(self, values: Any) -> str:
        """Name of an array of numbers; whole numbers stay whole, all others are double."""
        array = np.asarray(values)
        whole = array.dtype.kind == "i"
        kind, dtype = (TensorProto.INT64, "<i8") if whole else (TensorProto.DOUBLE, "<f8")
        raw = array.astype(dtype).tobytes()
        key = kind, array.shape, hashlib.sha256(raw).digest()
        if key not in self._constants:
            self._bytes += len(raw)
            if self._bytes > LARGEST_BYTES:
                text = f"the graph needs more than {LARGEST_BYTES / 1e9:.1f} GB, the most of a file"
                raise ValueError(f"{text}; fit with fewer n_neurons or n_estimators.")
            name = f"constant_{len(self._constants)}"
            self._constants[key] = helper.make_tensor(name, kind, array.shape, raw, raw=True)
        return str(self._constants[key].name)

    # ------------------------------------------------------------ operators with arguments

    def sum(self, x: Value, axis: int, *, keepdims: bool = False) -> str:
        """Sum along an axis."""
        return self("ReduceSum", x, np.array([axis]), keepdims=int(keepdims))

    def added(self, parts: Iterable[Value]) -> str:
        """Sum of several results."""
        return str(reduce(lambda a, b: self("Add", a, b), parts))

    def square(self, x: Value) -> str:
        """Square of each number."""
        return self("Mul", x, x)

    def clipped(self, x: Value, low: Value, high: Value) -> str:
        """Numbers clipped to two bounds, which are arrays or numbers."""
        return self("Min", self("Max", x, low), high)

    def columns(self, x: Value, which: Sequence[int] | np.ndarray) -> str:
        """Some columns of a matrix."""
        return self("Gather", x, np.asarray(which, dtype=np.int64), axis=1)

    def joined(self, parts: Sequence[str]) -> str:
        """Columns of several matrices side by side."""
        return parts[0] if len(parts) == 1 else self("Concat", *parts, axis=1)

    def smooth(self, x: str, function: Any, low: float, high: float, degree: int) -> str:
        """A smooth function of x between two bounds, by a polynomial through Chebyshev's points."""

        def between(s: np.ndarray) -> np.ndarray:
            return function(low + (s + 1) / 2 * (high - low))

        interpolant: Any = chebyshev.chebinterpolate
        coefficients = chebyshev.cheb2poly(interpolant(between, degree))
        s = self("Sub", self("Mul", self("Sub", x, low), 2 / (high - low)), 1.0)
        *others, last = (float(c) for c in coefficients)
        value: Value = last
        for c in reversed(others):
            value = self("Add", self("Mul", s, value), c)
        return str(value)

    # ------------------------------------------------------------ the finished model

    def model(self, n_features: int, outputs: dict[str, str], shape: list[Any]) -> onnx.ModelProto:
        """The graph as a model with the input X (batch, d), and outputs of one shape by name."""
        nodes = list(self._nodes.values())
        for name, result in outputs.items():
            nodes.append(helper.make_node("Identity", [result], [name], name))
        graph = helper.make_graph(
            nodes,
            "ulmus",
            [_double("X", ["batch", n_features])],
            [_double(name, shape) for name in outputs],
            list(self._constants.values()),
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def _double(name: str, shape: Sequence[Any]) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape)
