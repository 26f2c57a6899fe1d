"""Error measures of standard errors and predictions, from section 4 of the paper."""

from __future__ import annotations

import numpy as np

from ulmus.datasets import FloatArray

ERROR_MEASURES = ("se", "e", "re")
FIT_MEASURES = ("mse", "relative_mse")


def error_measures(sd: FloatArray, true_sd: FloatArray) -> FloatArray:
    r"""Medians over points of a standard error and of its errors, (..., 3).

    .. math:: se = \operatorname{med} \hat\sigma, \quad
              e = \operatorname{med} |\hat\sigma - \sigma|, \quad
              re = \operatorname{med} |\hat\sigma - \sigma| / \sigma

    Parameters
    ----------
    sd : array of shape (..., P)
        Estimated standard errors.
    true_sd : array that broadcasts against it
        The true ones.
    """
    error = np.abs(sd - true_sd)
    return np.stack(
        [np.median(values, axis=-1) for values in (sd, error, error / true_sd)], axis=-1
    )


def fit_measures(y: FloatArray, prediction: FloatArray) -> FloatArray:
    """Mean squared error, and its ratio to the variance of the outputs, (..., 2)."""
    mse = np.mean((y - prediction) ** 2, axis=-1)
    return np.stack([mse, mse / np.var(y, axis=-1)], axis=-1)
