"""Results on the scale of the regression, and how they lead to the scale of y."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.plot._points import one_output


def on_link_scale(estimator: Any) -> Any:
    """The estimator, or inference for a Pipeline, whose results are those of the regression."""
    fit = estimator._inference_fit()
    if fit.response is None:
        return estimator
    link = copy.copy(estimator)
    if "model" in vars(link):
        link.model = on_link_scale(link.model)
    else:
        link.fitted_ = fit.on_link_scale
    return link


def variance_factor(estimator: Any, table: Any, output: int) -> FloatArray | float:
    """Variance of the predicted y at the rows of a table, over that of the regression, (p,).

    It is about the squared derivative of y by the prediction of the regression.
    """
    if estimator._inference_fit().response is None:
        return 1.0
    link, response = (
        one_output(each.predict_var(table, component="model"), output)
        for each in (on_link_scale(estimator), estimator)
    )
    return np.divide(response, link, out=np.zeros_like(response), where=link > 0)
