"""Bounds of a new observation in a graph, as ``intervals/distribution.py`` and ``bounds.py``."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ulmus.core.fit.fit import Fit
from ulmus.integrations.onnx.graph import GraphBuilder
from ulmus.integrations.onnx.variance import VarianceNodes
from ulmus.intervals.distribution import LEAST_DOF, NORMAL_DOF


def inverse_dof(graph: GraphBuilder, variance: VarianceNodes, total: str, fit: Fit) -> str:
    """One over the degrees of freedom of a new observation, (p, K), as ``observation_sd``."""
    weights = graph("Min", variance.redrawing, variance.model)
    some = graph("Greater", total, 0.0)
    share = graph("Where", some, graph("Div", weights, graph("Where", some, total, 1.0)), 0.0)
    residual_dof = np.maximum(fit.noise_dof, 1.0)
    weights_dof = max(fit.ensemble.n_members - 1, 1)
    noise = graph("Div", graph.square(graph("Sub", 1.0, share)), residual_dof)
    spent = graph("Add", noise, graph("Div", graph.square(share), float(weights_dof)))
    return graph.clipped(spent, 1 / NORMAL_DOF, 1 / LEAST_DOF)


def student_quantile(graph: GraphBuilder, inverse: str, level: float) -> str:
    """Half the width of an interval in standard deviations, by one over the degrees of freedom.

    Its logarithm is nearly a polynomial in that: to 1e-10 up to a level of 1 - 1e-12.
    """

    def logarithm(inverse: np.ndarray) -> np.ndarray:
        return np.log(stats.t.isf((1 - level) / 2, 1 / inverse))

    low, high = 1 / NORMAL_DOF, 1 / LEAST_DOF
    return graph("Exp", graph.smooth(inverse, logarithm, low, high, degree=24))
