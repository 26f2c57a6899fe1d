"""A fitted model as an ONNX graph: predictions, error bars and intervals outside Python.

The graph is written with standard operators in double precision, one module for each part of the
model: ``layer`` (inputs, normal scores, one-hot indicators, units), ``forms`` (sums over pairs of
members), ``variance`` (of the prediction and of the noise), ``bounds`` (of an observation), and
``response`` (results of a transformed, bounded or counted target); ``graph`` builds it.

Tracing the core instead (tried with ndonnx 0.23) fails: ``shape[0]`` is None for a symbolic number
of points, and results that are collected as NumPy arrays end a trace.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ulmus.core.arrays.threads import thread_pool
from ulmus.core.fit.fit import Fit
from ulmus.estimators._base import BaseELM
from ulmus.estimators._parameters import checked_levels
from ulmus.version import __version__

try:
    import onnx
except ImportError as error:
    raise ImportError("ulmus.onnx needs onnx; run `pip install 'ulmus[onnx]'`.") from error

from ulmus.integrations.onnx.bounds import inverse_dof, student_quantile
from ulmus.integrations.onnx.graph import GraphBuilder
from ulmus.integrations.onnx.response import LinkNodes, response_results
from ulmus.integrations.onnx.variance import noise_variance, prediction_variance

__all__ = ["to_onnx", "usage"]

OUTPUTS = {
    "estimate": "prediction",
    "std_error": "standard error of the prediction",
    "sd": "standard deviation of a new observation",
    "pred_low": "lower bound of a new observation, level {}",
    "pred_high": "upper bound of a new observation, level {}",
}
NO_BOUNDS = (
    "No bounds of a new observation: quantiles of counts and of point masses are no standard "
    "operators."
)


def to_onnx(model: Any, *, confidence_level: float = 0.95) -> onnx.ModelProto:
    r"""A fitted model as an ONNX graph in double precision.

    Parameters
    ----------
    model : ELMRegressor or ELMEnsembleRegressor
        A fitted model. No training row is written.
    confidence_level : float, default=0.95
        Level of the bounds, between 0 and 1.

    Returns
    -------
    proto : onnx.ModelProto
        The graph; ``onnx.save(proto, path)`` writes it. Its input ``X`` has shape (batch,
        n_features). Its outputs have shape (batch,), or (batch, n_outputs) after a fit to several:

        ============= ================================================================
        ``estimate``  ``predict(X)``
        ``std_error`` the root of ``predict_var(X, component="model")``
        ``sd``        ``predict(X, return_std=True)[1]``
        ``pred_low``  ``predict_interval(X, confidence_level, method="gaussian")[:, 0]``
        ``pred_high`` ``predict_interval(X, confidence_level, method="gaussian")[:, 1]``
        ============= ================================================================

        A graph of counts, or of a target with a point mass, has no bounds, as quantiles of these
        distributions are no standard operators. Its ``metadata_props`` are ``ulmus_version``,
        ``confidence_level``, the ``estimate`` of the variance, and in JSON ``feature_names``, a
        list or null, ``target_transform``, a list with the name of each output's, or null, and
        ``encoded_columns``, the names of the columns that the inputs encode, or null.

    Notes
    -----
    Results are on the scale of y, and agree with those of the model to 1e-6 of their size, for any
    rows of a batch. A graph
    emits no warnings: points far outside the training range are predicted as by the model, and
    NaN in a row of X makes all results of that row NaN. A model that was fitted in single
    precision is computed in double precision, and agrees to the three digits that it has. After a
    fit with ``sample_weight``, new observations have the mean weight of the training rows.

    The bounds are those of Student's distribution, which assumes Gaussian noise; ``"jackknife+"``
    and the other methods of ``predict_interval`` require the training rows. They are ``estimate``
    plus and minus :math:`t_{1 - a/2}(\nu)` times ``sd``, with degrees of freedom :math:`\nu` that
    differ from point to point; the quantile is a polynomial in :math:`1/\nu`, accurate to 1e-10.
    Bounds of a transformed target are those of the regression, transformed back. Its means are
    averages over at most 256 leave-one-out residuals, which are part of the graph. A
    ``target_transform`` that is an object of another package cannot be written.

    With at most 400 rows and a learned map, the map is refitted without each fifth of the rows, if
    no error bar was computed before; that takes five times as long as the fit.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.integrations.onnx import to_onnx
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> [output.name for output in to_onnx(model, confidence_level=0.9).graph.output]
    ['estimate', 'std_error', 'sd', 'pred_low', 'pred_high']
    """
    if not isinstance(model, BaseELM):
        found = f"got a {type(model).__name__}; of a Pipeline, give its last step"
        raise ValueError(f"model must be a fitted ELMRegressor or ELMEnsembleRegressor, {found}.")
    check_is_fitted(model)
    (level,) = checked_levels([confidence_level])
    fit, graph = model.fitted_, GraphBuilder()
    with thread_pool(model._n_threads):
        results, shape = _results(graph, fit, level), ["batch", fit.ensemble.n_outputs]
    if fit.one_output:
        results = {name: graph("Squeeze", r, np.array([1])) for name, r in results.items()}
        shape = shape[:1]
    proto = graph.model(len(fit.scale.mean), results, shape)
    names = model._input_names() if hasattr(model, "feature_names_in_") else None
    properties = {
        "ulmus_version": __version__,
        "confidence_level": repr(level),
        "estimate": fit.estimates[0],
        "feature_names": json.dumps(None if names is None else list(names)),
        "target_transform": json.dumps(_target_transforms(fit)),
        "encoded_columns": json.dumps(_encoded_columns(model)),
    }
    onnx.helper.set_model_props(proto, properties)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def _results(graph: GraphBuilder, fit: Fit, level: float) -> dict[str, str]:
    """Results of the graph at its input X, each (p, K)."""
    variance = prediction_variance(graph, "X", fit)
    noise = noise_variance(graph, "X", fit)
    total = graph("Add", variance.model, noise)
    sd = graph("Sqrt", total)
    quantile = student_quantile(graph, inverse_dof(graph, variance, total, fit), level)
    half = graph("Mul", quantile, sd)
    if fit.response is not None:
        ends = graph("Sub", variance.mean, half), graph("Add", variance.mean, half)
        each = graph("Add", graph("Mul", variance.mean, 0.0), noise)  # noise may be constant
        link = LinkNodes(variance.mean, variance.model, each, *ends)
        return response_results(graph, fit.response, link)
    return {
        "estimate": variance.mean,
        "std_error": graph("Sqrt", variance.model),
        "sd": sd,
        "pred_low": graph("Sub", variance.mean, half),
        "pred_high": graph("Add", variance.mean, half),
    }


def _encoded_columns(model: BaseELM) -> list[str] | None:
    """Names of the columns that the inputs of the graph encode; None if they are the inputs."""
    columns, inputs = model._feature_names(), model._input_names()
    return None if list(columns) == list(inputs) else list(columns)


def _target_transforms(fit: Fit) -> list[str] | None:
    return None if fit.response is None else [family.name for family in fit.response]


def usage(
    proto: onnx.ModelProto,
    path: str | os.PathLike[str],
    model_file: str | os.PathLike[str] | None = None,
) -> str:
    """How to call a graph of :func:`to_onnx` from Python, in a few lines.

    Parameters
    ----------
    proto : onnx.ModelProto
        The graph.
    path : str or path
        Where it was written.
    model_file : str, path or None, default=None
        A file of the same model, whose ``columns_`` compute the inputs of the graph from a table.
        None for a model whose inputs are the numbers of the table.

    Returns
    -------
    text : str
        Code, and the names, types and shapes of the input and of the outputs.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.integrations.onnx import to_onnx, usage
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 1.0, 3.0]
    >>> model = ELMEnsembleRegressor(3, 2, alpha=0.1, random_state=0).fit(X, y)
    >>> print(usage(to_onnx(model), "model.onnx"))
    Call it from Python after `pip install onnxruntime`:
    <BLANKLINE>
        import numpy as np
        import onnxruntime
    <BLANKLINE>
        session = onnxruntime.InferenceSession("model.onnx")
        X = np.asarray(table, np.float64)
        estimate, std_error, sd, pred_low, pred_high = session.run(None, {"X": X})
    <BLANKLINE>
    Input
        X          double (batch, 1)  columns in the order of the table of the fit
    Outputs
        estimate   double (batch)     prediction
        std_error  double (batch)     standard error of the prediction
        sd         double (batch)     standard deviation of a new observation
        pred_low   double (batch)     lower bound of a new observation, level 0.95
        pred_high  double (batch)     upper bound of a new observation, level 0.95
    """
    properties = {item.key: item.value for item in proto.metadata_props}
    names = json.loads(properties["feature_names"])
    columns = "columns in the order of the table of the fit" if names is None else "columns:"
    found = [value.name for value in proto.graph.output]
    outputs, level = ", ".join(found), properties["confidence_level"]
    encoded = json.loads(properties["encoded_columns"]) is not None
    imported, encoding = _encoding(encoded, model_file)
    lines = [
        "Call it from Python after `pip install onnxruntime`:",
        "",
        *(f"    import {name}" for name in imported),
        "",
        f"    session = onnxruntime.InferenceSession({json.dumps(os.fspath(path))})",
        *(f"    {line}" for line in encoding),
        f'    {outputs} = session.run(None, {{"X": X}})',
        "",
        "Input",
        _line(proto.graph.input[0], columns),
        *(f"        {name}" for name in names or ()),
        "Outputs",
        *(_line(value, OUTPUTS[value.name].format(level)) for value in proto.graph.output),
        *([] if "pred_low" in found else [NO_BOUNDS]),
    ]
    return "\n".join(lines)


def _encoding(
    encoded: bool, model_file: str | os.PathLike[str] | None
) -> tuple[list[str], list[str]]:
    """Imports, and code that computes the inputs of the graph from a table."""
    if not encoded:
        return ["numpy as np", "onnxruntime"], ["X = np.asarray(table, np.float64)"]
    fitted = "columns = model.columns_  # of the fitted model"
    if model_file is not None:
        fitted = f"columns = ulmus.load({json.dumps(os.fspath(model_file))}).columns_"
    inputs = "X = columns.encode(columns.parse(table)[0])  # inputs of the columns of the table"
    return ["onnxruntime", *(["ulmus"] if model_file is not None else [])], [fitted, inputs]


def _line(value: Any, meaning: str) -> str:
    """Name, type, shape and meaning of an input or output, on a line."""
    axes = value.type.tensor_type.shape.dim
    shape = ", ".join(axis.dim_param or str(axis.dim_value) for axis in axes)
    return f"    {value.name:<10} double {f'({shape})':<11} {meaning}"
