"""Choosing the ridge parameter: generalised and exact leave-one-out cross-validation.

Both scores come from one factorisation, over a grid relative to the largest singular value.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ulmus.core.backend import Array, namespace, to_numpy
from ulmus.core.basis import Basis
from ulmus.core.moments import Block
from ulmus.core.whitening import Whitening, scaled_rows

# alpha over the squared largest singular value: from interpolation to the mean.
RELATIVE_GRID = np.logspace(-14, 2, 65)
# Fits that leave less than this share of the rows as residual degrees of freedom are no choice.
SMALLEST_RESIDUAL_SHARE = 1e-3
# A left-out row that the fit reproduces to round-off has no usable residual.
SMALLEST_SLACK = 1e-10


def alpha_grid(basis: Basis) -> np.ndarray:
    """Candidate values of alpha in ascending order."""
    largest = float(namespace(basis.s).max(basis.s))
    return RELATIVE_GRID * max(largest, np.finfo(float).tiny ** 0.25) ** 2


def residual_squares(basis: Basis, q: Array, y_square: Array, alpha: float) -> Array:
    """Residual sum of squares of each member and output, shape (M, K)."""
    xp = namespace(q)
    left = 1 - basis.filters(alpha)[:, :, None]
    # What no direction explains is a difference of near equals; below round-off it is nothing.
    beyond = y_square - xp.sum(q**2, axis=1)
    resolution = 100 * float(xp.finfo(q.dtype).eps) * y_square
    beyond = xp.where(beyond > resolution, beyond, xp.zeros_like(beyond))
    return beyond + xp.sum((left * q) ** 2, axis=1)


def gcv_scores(basis: Basis, q: Array, y_square: Array, n: int, alphas: np.ndarray) -> np.ndarray:
    r"""Generalised cross-validation for each alpha, shape (A, K).

    .. math:: n \|(I - P)y\|^2 / (n - \operatorname{tr} P)^2,

    averaged over the members (Golub, Heath & Wahba, 1979).
    """
    scores = []
    xp = namespace(q)
    for alpha in map(float, alphas):
        slack = n - xp.sum(basis.filters(alpha), axis=1)[:, None]
        valid = slack > SMALLEST_RESIDUAL_SHARE * n
        rss = residual_squares(basis, q, y_square, alpha)
        score = n * rss / xp.where(valid, slack, xp.ones_like(slack)) ** 2
        score = xp.where(valid, score, xp.full_like(score, xp.inf))
        scores.append(to_numpy(xp.mean(score, axis=0)))
    return np.stack(scores)


def loo_scores(
    blocks: Iterable[Block],
    whitening: Whitening,
    basis: Basis,
    q: Array,
    n: int,
    alphas: np.ndarray,
) -> np.ndarray:
    r"""Squared leave-one-out errors of the ensemble for each alpha, shape (A, K).

    Leaving row i out of member m changes its residual to :math:`r_{mi}/(1 - p_{mi})` exactly;
    the ensemble's error is the mean over members. Errors are weighted by the row weights.
    """
    xp = namespace(q)
    K = q.shape[2]
    to_q = basis.to_q @ whitening.P
    d = xp.stack([basis.filters(float(a)) for a in alphas], axis=1)  # (M, A, N)
    total = np.zeros((len(alphas), K))
    interpolating = to_numpy(xp.max(xp.sum(d, axis=2), axis=0)) > (1 - SMALLEST_RESIDUAL_SHARE) * n
    total[interpolating] = np.inf
    for block in blocks:
        Q = to_q @ scaled_rows(whitening.layer(block.X), block.root_weight)
        slack = 1 - d @ Q**2
        usable = slack > SMALLEST_SLACK
        slack = xp.where(usable, slack, xp.ones_like(slack))
        broken = xp.any(xp.any(~usable, axis=0), axis=1)
        for k in range(K):
            residual = block.target[k, :] - (d * q[:, None, :, k]) @ Q
            error = xp.mean(residual / slack, axis=0)
            score = xp.where(broken, xp.full_like(error[:, 0], xp.inf), xp.sum(error**2, axis=1))
            total[:, k] += to_numpy(score)
    return total


def best_alpha(alphas: np.ndarray, scores: np.ndarray, y_variance: np.ndarray) -> float:
    """The alpha of least score; several outputs count in units of their own variance."""
    scale = np.where(y_variance > 0, y_variance, 1.0)
    overall = np.sum(scores / scale, axis=1)
    if not np.any(np.isfinite(overall)):
        return float(alphas[-1])
    # Of equal scores take the strongest ridge: a constant output is fitted by its mean.
    return float(alphas[len(alphas) - 1 - int(np.argmin(overall[::-1]))])
