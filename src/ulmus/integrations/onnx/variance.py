"""Prediction, its variance and the variance of the noise in a graph, each (p, K).

It follows ``intervals/standard_errors.py``, ``core/ensemble/components.py``,
``core/variance/estimates.py`` and ``core/noise_model/model.py``, for the default estimate of a fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.ensemble.map_uncertainty import MapUncertainty
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.noise_model.model import NoiseVarianceModel
from ulmus.core.ridge.member_pairs import PairSums
from ulmus.core.variance.estimates import ESTIMATES
from ulmus.integrations.onnx.forms import CoordinateNodes, low_rank_means, means
from ulmus.integrations.onnx.graph import GraphBuilder
from ulmus.integrations.onnx.layer import (
    features,
    linear,
    map_derivatives,
    mean,
    stacked_linear,
)


@dataclass(frozen=True)
class VarianceNodes:
    """Prediction, its variance, and the spread of members over their number, each (p, K)."""

    mean: str
    model: str
    redrawing: str


def prediction_variance(graph: GraphBuilder, X: str, fit: Fit) -> VarianceNodes:
    """Mean and variance of the prediction, as the function of the same name."""
    ensemble = fit.ensemble if fit.low_rank is not None else fit.exact_ensemble
    h = features(graph, X, ensemble.layer)
    columns = [
        regression_variance(graph, h, part, i, fit) for i, part in enumerate(ensemble.regressions)
    ]
    center, model, redrawing = (
        _ordered(graph, list(a), ensemble.regressions) for a in zip(*columns, strict=True)
    )
    unit = ensemble.unit.astype(float)
    center = graph("Add", graph("Mul", center, unit), ensemble.shift)
    model, redrawing = (graph("Mul", a, unit**2) for a in (model, redrawing))
    if fit.folded:
        model = graph("Add", model, map_variance(graph, X, fit))
    elif fit.map_uncertainty is not None:
        added = first_order_map_variance(graph, X, fit.ensemble, fit.map_uncertainty)
        model = graph("Add", model, added)
    return VarianceNodes(center, model, redrawing)


def _ordered(graph: GraphBuilder, parts: list[str], regressions: Sequence[Regression]) -> str:
    """Results of the regressions in the order of the outputs, as ``Ensemble.ordered``."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort([k for part in regressions for k in part.outputs])
    return graph.columns(graph.joined(parts), order)


def regression_variance(
    graph: GraphBuilder, h: str, part: Regression, i: int, fit: Fit
) -> tuple[str, str, str]:
    """The same for features h (M, p, N) by the regression of index i, in the fit's units."""
    estimate, M, layer = fit.estimates[0], fit.ensemble.n_members, fit.ensemble.layer
    values = linear(graph, h, layer, part.smoother.beta)
    center = graph("Mul", graph.sum(values, 0), 1 / M)
    spread = graph.sum(graph.square(graph("Sub", values, center)), 0)
    redrawing = graph("Mul", spread, 1 / (max(M - 1, 1) * M))
    pairing = ESTIMATES[estimate].pairing
    if fit.low_rank is not None:
        pair = low_rank_means(graph, h, layer, fit.low_rank.parts[i], pairing)
    else:
        weights = to_numpy(part.exact.to_t).transpose(0, 2, 1)
        where = CoordinateNodes(linear(graph, h, layer, weights), M, layer.n_units)
        pair = means(graph, part.forms[pairing], where)
    model = never_negative(graph, estimate, pair, redrawing, M)
    if np.any(part.alpha_deviation > 0):
        model = graph("Add", model, alpha_variance(graph, h, layer, part))
    return center, model, redrawing


def never_negative(graph: GraphBuilder, name: str, pair: PairSums, redrawing: str, M: int) -> str:
    """The estimate, and its positive part where it is negative, as the function of the name."""
    variance = graph("Add", _combined(graph, name, pair, M), redrawing)
    A, U = pair
    given_weights = _combined(graph, "NHo", pair, M)
    alone = graph("Mul", A, 1 / M)
    given_weights = graph("Where", graph("Greater", given_weights, 0.0), given_weights, alone)
    between = graph("Sub", redrawing, graph("Mul", graph("Sub", A, U), 1 / M))
    positive = graph("Add", given_weights, graph("Max", between, 0.0))
    return graph("Where", graph("Less", variance, 0.0), positive, variance)


def _combined(graph: GraphBuilder, name: str, pair: PairSums, M: int) -> str:
    """How an estimate combines the two means; it is linear in them."""
    A, U = np.eye(2)
    shares = ESTIMATES[name].part(A, U, M)
    return graph.added([graph("Mul", a, share) for a, share in zip(pair, shares, strict=True)])


def alpha_variance(graph: GraphBuilder, h: str, layer: HiddenLayer, part: Regression) -> str:
    """What choosing alpha adds in the fit's units, (p, K), as ``Ensemble.alpha_shifts``."""
    first, second = (
        graph.square(stacked_linear(graph, h, layer, weights.T))
        for weights in to_numpy(part.alpha_weights)
    )
    return graph("Max", graph("Sub", first, second), 0.0)


def map_variance(graph: GraphBuilder, X: str, fit: Fit) -> str:
    """What choosing the map adds, (p, K): the sample variance between the folds."""
    parts = [mean(graph, X, fold.layer, fold.coefficients, fold.shift) for fold in fit.folds]
    center = graph("Mul", graph.added(parts), 1 / len(parts))
    squares = graph.added(graph.square(graph("Sub", part, center)) for part in parts)
    return graph("Mul", squares, 1 / (len(parts) - 1))


def first_order_map_variance(
    graph: GraphBuilder, X: str, ensemble: Ensemble, uncertainty: MapUncertainty
) -> str:
    """What choosing the map adds to first order, (p, K), as ``MapUncertainty.shifts``."""
    layer, none, terms = ensemble.layer, np.zeros(ensemble.n_outputs), []
    beta = ensemble.ordered([to_numpy(p.smoother.beta) for p in ensemble.regressions], axis=2)
    by_layer = map_derivatives(graph, X, layer, beta, uncertainty.changes)
    parts = (to_numpy(uncertainty.slopes), to_numpy(uncertainty.covariances))
    for derivative, slope, covariance in zip(by_layer, *parts, strict=True):
        whole = graph("Add", derivative, mean(graph, X, layer, slope + covariance, none))
        less = graph.square(mean(graph, X, layer, covariance, none))
        terms.append(graph("Sub", graph.square(whole), less))
    total = graph("Max", graph.added(terms), 0.0)
    return graph("Mul", total, ensemble.unit.astype(float) ** 2)


def noise_variance(graph: GraphBuilder, X: str, fit: Fit) -> str:
    """Variance of a new observation around its prediction, (p, K), or (K,) if it is constant."""
    scale = fit.ensemble.unit.astype(float) ** 2 / fit.mean_weight
    if fit.noise_model is None:
        residual = fit.per_regression(lambda part: part.noise_variance.residual)
        return graph.constant(residual.astype(float) * scale)
    return graph("Mul", varying_noise(graph, X, fit.noise_model), scale)


def varying_noise(graph: GraphBuilder, X: str, model: NoiseVarianceModel) -> str:
    """Noise variance at weight 1 and in the fit's units, as ``NoiseVarianceModel.variance``."""
    used = [k for k, one in enumerate(model.logs) if one is not None]
    if not used:
        return graph.constant(model.flat)
    logs = [
        mean(graph, X, one.layer, one.coefficients, one.shift)
        for one in model.logs
        if one is not None
    ]
    # A column for each output, zero where the logarithm is not used.
    everywhere = graph("MatMul", graph.joined(logs), np.eye(len(model.logs))[used])
    inside = graph.clipped(everywhere, model.low, model.high)
    constant = np.isfinite(model.flat)
    factor, flat = np.where(constant, 0.0, model.factor), np.where(constant, model.flat, 0.0)
    varying = graph("Mul", graph("Exp", graph("Mul", inside, model.share)), factor)
    return graph("Add", varying, flat)
