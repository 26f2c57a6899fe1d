r"""Wider networks: the hidden layers of a group of members side by side.

Averaging members of N neurons keeps the bias of one of them. Ridge regression on the kN
neurons of a group can smooth much less, which the noise estimate and confidence intervals for
the function need. With the members' H = V S Q (basis.py), a group's hidden matrix is, up to a
rotation, :math:`[S_1 Q_1; \dots; S_k Q_k]`, so that its ridge path follows from the Gram matrix
B of the stacked Q alone,

.. math:: z(x) = Q' S (S B S + \alpha I)^{-1} V' h(x) = Q' \tau(x),

and :math:`\tau` takes the place of t in every quadratic form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.backend import Array, namespace, to_numpy
from ulmus.core.basis import Basis

# alpha over the largest eigenvalue. Eigenvalues carry an error of about 1e-16 of the largest, so
# that a smaller alpha would let round-off decide.
STEPS_PER_DECADE = 4
WIDE_GRID = 10.0 ** (np.arange(-42, 9) / STEPS_PER_DECADE)
# A largest eigenvalue below this is a hidden layer without any signal.
SMALLEST_SCALE = 1e-250
# Of the rows, this share at most is used up by an undersmoothed fit.
LARGEST_TRACE_SHARE = 0.9


@dataclass(frozen=True)
class WidePath:
    """Ridge path of one group over a grid of alpha.

    Parameters
    ----------
    values, vectors : arrays of shape (kN,) and (kN, kN)
        Eigenvalues and eigenvectors of S B S.
    alphas : array of shape (A,)
        The grid.
    trace, dof : arrays of shape (A,)
        tr(P) and tr(2P - P^2), without the constant.
    rss : array of shape (A, K)
        Residual sums of squares.
    gcv : array of shape (A,)
        Generalised cross-validation scores, outputs in units of their variance.
    n : int
        Rows, less one if there is a constant.
    """

    values: Array
    vectors: Array
    alphas: np.ndarray
    trace: np.ndarray
    dof: np.ndarray
    rss: np.ndarray
    gcv: np.ndarray
    n: int


def wide_path(
    basis: Basis, q: Array, group: slice, stack: Array, y_square: Array, n: int
) -> WidePath:
    """Ridge path of a group of members.

    Parameters
    ----------
    basis : Basis
        The members.
    q : array of shape (M, N, K)
        Q'y of each member.
    group : slice
        The members of the group.
    stack : array of shape (k N, k N)
        Gram matrix of their rows Q.
    y_square : array of shape (K,)
        Sums of squared outputs.
    n : int
        Number of rows.
    """
    xp = namespace(q)
    first, (_, N, K) = int(basis.constant), q.shape
    k = group.stop - group.start
    s = xp.reshape(basis.s[group, :], (-1,))
    blocks = xp.reshape(stack, (k, N, k, N))[:, first:, :, first:]
    kernel = xp.reshape(blocks, (s.shape[0], s.shape[0])) * s[:, None] * s[None, :]
    values, vectors = xp.linalg.eigh(kernel)
    values = xp.clip(values, min=0.0)
    u = vectors.T @ (s[:, None] * xp.reshape(q[group, first:, :], (-1, K)))
    u2 = to_numpy(u**2)
    centred = to_numpy(y_square - q[0, 0, :] ** 2 if first else y_square)
    return _scored_path(values, vectors, u2, centred, n - first)


def _scored_path(
    values: Array, vectors: Array, u2: np.ndarray, y_square: np.ndarray, n: int
) -> WidePath:
    lam = to_numpy(values)
    alphas = WIDE_GRID * (lam[-1] if lam[-1] > SMALLEST_SCALE else 1.0)
    shrink = lam + alphas[:, None]
    d = lam / shrink
    trace, dof = np.sum(d, axis=1), np.sum(d * (2 - d), axis=1)
    rss = np.clip(y_square - ((2 - d) / shrink) @ u2, 0, None)
    relative = np.sum(rss / np.where(y_square > 0, y_square, 1), axis=1)
    open_rows = n - trace
    gcv = np.full(len(alphas), np.inf)
    valid = open_rows > 1e-3 * n
    gcv[valid] = n * relative[valid] / open_rows[valid] ** 2
    return WidePath(values, vectors, alphas, trace, dof, rss, gcv, n)


def undersmoothing_alpha(
    paths: list[WidePath], score_slack: float = 1.05, trace_factor: float = 2.0
) -> float:
    """The smaller of two ridge parameters that smooth less than the best predictor.

    One is the least that raises the generalised cross-validation score by no more than a
    twentieth, the other doubles the degrees of freedom.
    """
    alphas = np.mean([path.alphas for path in paths], axis=0)
    gcv = np.mean([path.gcv for path in paths], axis=0)
    trace = np.mean([path.trace for path in paths], axis=0)
    best = int(np.argmin(gcv))
    tolerated = int(np.argmax(gcv <= score_slack * gcv[best]))
    limit = min(trace_factor * trace[best], LARGEST_TRACE_SHARE * paths[0].n)
    doubled = int(np.argmax(trace <= max(limit, trace[-1])))
    return float(alphas[min(tolerated, doubled)])


def wide_map(basis: Basis, group: slice, path: WidePath, alpha: float) -> Array:
    """Map from the features of a group to tau, shape (k N, k N), constants included."""
    xp, first = namespace(basis.s), int(basis.constant)
    k, units = group.stop - group.start, basis.s.shape[1]
    s = xp.reshape(basis.s[group, :], (-1,))
    vectors = path.vectors
    tau = s[:, None] * ((vectors / (path.values + alpha)) @ vectors.T)
    out = xp.zeros((k, units + first, k, units + first), dtype=basis.s.dtype, device=basis.s.device)
    blocks = xp.reshape(tau, (k, units, k, units))
    for j in range(k):
        rotated = blocks[:, :, j, :] @ basis.Vt[group.start + j, :, :]
        out[:, first:, j, first:] = rotated
        if first:
            out[:, first:, j, 0] = -(rotated @ basis.shift[group.start + j, :])
            # Every member carries the constant; the group has it once.
            out[j, 0, j, 0] = float(basis.mass) ** -0.5 / k
    side = k * (units + first)
    return xp.reshape(out, (side, side))
