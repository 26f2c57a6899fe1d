"""Leave-one-out predictions of baselines: the mean, and a linear model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.arrays.linalg import svd

# Ridge parameters that a linear model chooses from, for standardised inputs and relative to the
# number of rows: from almost least squares to almost the mean.
PENALTIES = np.logspace(-6, 3, 19)


@dataclass(frozen=True)
class LinearBaseline:
    """A linear model with its leave-one-out predictions."""

    coef: FloatArray  # (d,): coefficients of the inputs
    intercept: float  # prediction where all inputs are zero
    loo_predictions: FloatArray  # (n,): leave-one-out predictions of the rows

    def predict(self, X: FloatArray) -> FloatArray:
        """Prediction at the rows of X (p, d), shape (p,)."""
        return X @ self.coef + self.intercept


def leave_one_out_mean(y: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """The mean of all other rows, for outputs and positive weights (n,) of at least two rows."""
    w = np.ones(len(y)) if weight is None else weight
    return (np.sum(w * y) - w * y) / (np.sum(w) - w)


def linear_baseline(
    X: FloatArray, y: FloatArray, weight: FloatArray | None = None
) -> LinearBaseline:
    r"""A ridge regression of y (n,) on X (n, d) with the penalty of least leave-one-out error.

    Inputs are standardised and the intercept is free. With root weights on the rows, the centred
    inputs :math:`U S V'` and a penalty :math:`\alpha` the leverage of row i is

    .. math:: p_i = w_i / \textstyle\sum w + \sum_j U_{ij}^2 s_j^2 / (s_j^2 + \alpha),

    and its residual without it is :math:`r_i / (1 - p_i)`: no refit is needed. The small penalty
    keeps it defined where inputs repeat each other or outnumber the rows.
    """
    w = np.ones(len(y)) if weight is None else weight
    share = w / np.sum(w)
    centre, mean = share @ X, float(share @ y)
    sd = np.sqrt(share @ (X - centre) ** 2)
    # Inputs that are constant up to round-off get no coefficient.
    scale = np.where(sd > 1e-12 * np.max(np.abs(X), axis=0, initial=0.0), sd, np.inf)
    root = np.sqrt(w)
    (U,), (s,), (Vt,) = svd((root[:, None] * (X - centre) / scale)[None])
    target = root * (y - mean)
    along = U.T @ target

    def loo_residual(alpha: float) -> FloatArray:
        d = s**2 / (s**2 + alpha)
        # At least a small number, so that residuals stay finite.
        one_minus_leverage = np.maximum(1 - share - U**2 @ d, 1e-10)
        return (target - U @ (d * along)) / one_minus_leverage

    alphas = PENALTIES * np.sum(w)
    errors = [np.sum(loo_residual(alpha) ** 2) for alpha in alphas]
    alpha = float(alphas[int(np.argmin(errors))])
    coef = (Vt.T @ (s / (s**2 + alpha) * along)) / scale
    return LinearBaseline(coef, mean - float(centre @ coef), y - loo_residual(alpha) / root)
