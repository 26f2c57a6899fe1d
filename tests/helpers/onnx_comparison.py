"""A model and its ONNX graph, run by onnxruntime, at the same points."""

import warnings
from functools import cache

import numpy as np
import pytest

from ulmus import ELMEnsembleRegressor
from ulmus.exceptions import ExtrapolationWarning, NegativeVarianceWarning

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from ulmus.integrations.onnx import graph as builder  # noqa: E402
from ulmus.onnx import to_onnx  # noqa: E402

OUTPUTS = ["estimate", "std_error", "sd", "pred_low", "pred_high"]
SMALL = {"random_state": 0, "input_map": None, "expand_inputs": None}


@cache
def mixed_table(n, seed=0):
    """A plain column, a skewed one, five levels and a second plain one; the noise varies."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 4))
    X[:, 1] = np.exp(1.5 * X[:, 1])
    X[:, 2] = rng.integers(0, 5, n) ** 2
    y = np.sin(2 * X[:, 0]) + np.log(X[:, 1]) * X[:, 3] + 0.05 * X[:, 2]
    return X, y + 0.3 * np.exp(X[:, 0] / 2) * rng.standard_normal(n)


def session(proto):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = proto.SerializeToString()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def by_graph(run, X):
    """Results of a graph, or of a session that has loaded it, at points."""
    run = session(run) if isinstance(run, onnx.ModelProto) else run
    return dict(zip(OUTPUTS, run.run(OUTPUTS, {"X": X}), strict=True))


def by_model(model, X, level=0.95):
    """What the graph should compute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        warnings.simplefilter("ignore", NegativeVarianceWarning)
        bounds = model.predict_interval(X, level, method="gaussian")
        return {
            "estimate": model.predict(X),
            "std_error": np.sqrt(model.predict_var(X, component="model")),
            "sd": model.predict(X, return_std=True)[1],
            "pred_low": bounds[..., 0],
            "pred_high": bounds[..., 1],
        }


def require_agreement(model, *tables, level=0.95, graph=None):
    """Compare all results at the points of some tables, and return the graph.

    Error bars by forms of low rank are computed in single precision by the model, and in double
    precision by the graph.
    """
    proto = to_onnx(model, confidence_level=level) if graph is None else graph
    run = session(proto)
    for X in tables:
        ours, theirs = by_model(model, X, level), by_graph(run, X)
        size = np.max(np.abs(ours["estimate"]), axis=0)
        rounded = 0.0 if model.fitted_.low_rank is None else 1e-5 * ours["sd"]
        for name in OUTPUTS:
            assert theirs[name].shape == ours[name].shape
            assert theirs[name].dtype == np.float64
            limit = 1e-6 * np.abs(ours[name]) + 1e-9 * size
            if name != "estimate":
                limit = limit + rounded
            assert np.all(np.abs(theirs[name] - ours[name]) <= limit), name
    return proto


def evaluated(function, x):
    """A function that is written into a graph, at the numbers of one row x."""
    graph = builder.GraphBuilder()
    result = graph("Identity", function(graph, "X"))
    proto = graph.model(len(x), {"y": result}, ["batch", len(x)])
    return session(proto).run(None, {"X": x[None]})[0][0]


@cache
def default_fit(n):
    """A fit with the default parameters, and its graph."""
    model = ELMEnsembleRegressor(random_state=0).fit(*mixed_table(n))
    return model, to_onnx(model)
