"""Results on the response scale in a graph, as ``core/response`` and ``intervals/response.py``.

Means and variances are sums over the residuals of a transformed target. Quantiles of counts and
point masses are no standard operators, so that their bounds are not part of a graph.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ulmus.core.response import Counts, PointMass, ResponseFamilies, Transformed
from ulmus.core.response.family import LARGEST_SCORE, Nodes
from ulmus.core.response.transformer import Fitted
from ulmus.exceptions import InputError
from ulmus.integrations.onnx.graph import GraphBuilder
from ulmus.integrations.onnx.transforms import forward, inverse, inverse_slope
from ulmus.intervals.response import LEAST_SHARE
from ulmus.messages import Message, Setting


class LinkNodes(NamedTuple):
    """Results on the scale of the regression, each (p, K)."""

    mean: str
    model: str  # variance of the prediction
    noise: str  # variance of an observation around it
    low: str  # bounds of a new observation
    high: str

    def output(self, graph: GraphBuilder, k: int) -> LinkNodes:
        """The results of one output, each (p, 1)."""
        return LinkNodes(*(graph.columns(values, [k]) for values in self))


class MomentNodes(NamedTuple):
    """Moments of y at the points, each (p, 1)."""

    mean: str
    slope: str  # derivative of the mean by the prediction
    noise: str  # variance of an observation around the mean
    influence: str | float  # variance of the mean by estimating the family


def response_results(
    graph: GraphBuilder, families: ResponseFamilies, link: LinkNodes
) -> dict[str, str]:
    """Results of the graph on the scale of y, each (p, K): those that all families have."""
    outputs = [_of_output(graph, one, link.output(graph, k)) for k, one in enumerate(families)]
    names = [name for name in outputs[0] if all(name in one for one in outputs)]
    results = {name: graph.joined([one[name] for one in outputs]) for name in names}
    # NaN in a row of X stays NaN, also where it was compared with a bound.
    same = graph("Mul", link.mean, 0.0)
    return {name: graph("Add", values, same) for name, values in results.items()}


def _of_output(
    graph: GraphBuilder, family: Transformed | PointMass | Counts, link: LinkNodes
) -> dict[str, str]:
    if isinstance(family, Transformed):
        require_formula(family)
        moments = transformed_moments(graph, family, link.mean, graph("Sqrt", link.noise))
    elif isinstance(family, PointMass):
        require_formula(family.above)
        moments = point_mass_moments(graph, family, link.mean)
    else:
        moments = count_moments(graph, family, link.mean)
    model = graph("Mul", graph.square(moments.slope), link.model)
    least = graph("Mul", model, LEAST_SHARE)
    model = graph("Max", graph("Add", model, moments.influence), least)
    results = {
        "estimate": moments.mean,
        "std_error": graph("Sqrt", model),
        "sd": graph("Sqrt", graph("Add", model, moments.noise)),
    }
    if isinstance(family, Transformed):
        results["pred_low"] = _inverse(graph, family, link.low)
        results["pred_high"] = _inverse(graph, family, link.high)
    return results


def require_formula(family: Transformed) -> None:
    """Raise an error for a transformation by an object of any class."""
    if isinstance(family.transform, Fitted):
        text = "is an object of another package, which a graph cannot contain"
        remedies = (Setting("target_transform", "yeo-johnson", "fit with a name such as {}"),)
        name = family.transform.name
        raise InputError(
            Message("transformer-not-exported", text, "target_transform", name, remedies)
        )


def _inverse(graph: GraphBuilder, family: Transformed, z: str) -> str:
    """Values on the response scale, within the bounds."""
    return graph.clipped(inverse(graph, family.transform, z), family.low, family.high)


def _values_and_slopes(graph: GraphBuilder, family: Transformed, z: str) -> tuple[str, str]:
    """Values on the response scale and their derivatives, which are zero beyond the bounds."""
    y = inverse(graph, family.transform, z)
    above, below = graph("GreaterOrEqual", y, family.low), graph("LessOrEqual", y, family.high)
    slope = inverse_slope(graph, family.transform, z)
    inside = graph("And", above, below)
    return graph.clipped(y, family.low, family.high), graph("Where", inside, slope, 0.0)


def _mean_over(graph: GraphBuilder, nodes: Nodes, values: str) -> str:
    """Mean over the residuals, (p, 1), of values (p, J)."""
    return graph("MatMul", values, nodes.weight[:, None])


def transformed_moments(
    graph: GraphBuilder, family: Transformed, location: str, scale: str
) -> MomentNodes:
    """Moments by smearing, at predictions and standard deviations of noise, as ``Transformed``."""
    nodes = family.nodes
    e = nodes.value[None, :]
    z = graph("Add", location, graph("Mul", scale, e))
    y, slopes = _values_and_slopes(graph, family, z)
    mean, slope = (_mean_over(graph, nodes, values) for values in (y, slopes))
    deviation = graph("Sub", y, mean)
    noise = _mean_over(graph, nodes, graph.square(deviation))
    linear = graph("Mul", graph("Mul", scale, slope), e)
    error = graph.square(graph("Sub", deviation, linear))
    own = graph("MatMul", error, (nodes.weight / nodes.dof)[:, None])
    # The covariance with the error of the prediction, twice.
    shared = (2.0 * nodes.weight * nodes.value / nodes.dof)[:, None]
    common = graph("MatMul", graph("Sub", deviation, linear), shared)
    influence = graph("Add", own, graph("Mul", graph("Mul", scale, slope), common))
    return MomentNodes(mean, slope, noise, influence)


def point_mass_moments(graph: GraphBuilder, family: PointMass, m: str) -> MomentNodes:
    """Moments of observations with a point mass at their lower bound, as ``PointMass``."""
    above, least = family.above, family.above.least
    bounded = graph.clipped(m, *family.log_limits)
    mean = _bounded_mean(graph, above, bounded)
    slope = graph("Where", graph("Less", mean, above.most), graph("Sub", mean, least), 0.0)
    u = _standardised(graph, family, m)
    probability = graph("Sigmoid", _line(graph, family.odds, u))
    log_mean = graph("Sub", bounded, graph("Log", probability))  # of observations above the bound
    predictor = forward(graph, family.transform, _bounded_mean(graph, above, log_mean))
    location = _line(graph, family.location, predictor)
    scale = graph("Exp", _line(graph, family.log_scale, u))
    moments = transformed_moments(graph, above, location, scale)
    of_amount = graph("Sub", moments.mean, least)
    second = graph("Add", moments.noise, graph.square(of_amount))
    square = graph.square(graph("Mul", probability, of_amount))
    noise = graph("Max", graph("Sub", graph("Mul", probability, second), square), 0.0)
    return MomentNodes(mean, slope, noise, 0.0)


def _bounded_mean(graph: GraphBuilder, above: Transformed, log: str) -> str:
    """The mean above the bound with this logarithm, at most the other bound."""
    return graph("Min", graph("Add", graph("Exp", log), above.least), above.most)


def count_moments(graph: GraphBuilder, family: Counts, m: str) -> MomentNodes:
    """Moments of counts, as ``Counts``."""
    mean = graph("Exp", graph.clipped(m, *family.log_limits))
    dispersed = graph("Mul", graph.square(mean), family.dispersion)
    if len(family.odds):
        extra = graph("Sigmoid", _line(graph, family.odds, _standardised(graph, family, m)))
        dispersed = graph("Add", dispersed, graph("Mul", graph.square(mean), extra))
        dispersed = graph("Div", dispersed, graph("Sub", 1.0, extra))
    return MomentNodes(mean, mean, graph("Add", mean, dispersed), 0.0)


def _standardised(graph: GraphBuilder, family: PointMass | Counts, m: str) -> str:
    """Predictions in standard deviations from their mean, cut at ``LARGEST_SCORE``."""
    u = graph("Mul", graph("Sub", m, family.center), 1.0 / family.spread)
    return graph.clipped(u, -LARGEST_SCORE, LARGEST_SCORE)


def _line(graph: GraphBuilder, coefficients: np.ndarray, u: str) -> str:
    first, second = map(float, coefficients)
    return graph("Add", graph("Mul", u, second), first)
