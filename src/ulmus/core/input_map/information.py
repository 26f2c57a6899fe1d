r"""Curvature of the marginal likelihood by the entries of a map: the average information.

For a probe network with features H, :math:`A = I - H (H'H + \alpha I)^{-1} H'`, residuals
:math:`r = Ay`, coefficients b, noise variance :math:`s^2 = y'Ay/n` and the derivative
:math:`\dot H` of the features by a parameter, the derivative of its prediction is :math:`Av` with
:math:`v = \dot H b + H \dot H' r / \alpha`. The average information (Gilmour, Thompson & Cullis,
1995) is the mean of observed and expected information without second derivatives of the features,

.. math:: v'Av / (2 s^2) - (v'r)^2 / (2 n s^4).

It is positive semidefinite.
"""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, to_numpy
from ulmus.core.input_map.marginal_likelihood import ProbeNetworks
from ulmus.core.input_map.probe_regression import ProbeRegression


def information(
    networks: ProbeNetworks, L: np.ndarray, log_alpha: float, entries: np.ndarray, *, relative: bool
) -> np.ndarray | None:
    """Average information of entries (T, 2) of the map L and of log alpha, (T + 1, T + 1).

    Entries are those of L, or of P in a relative change (I + P) L. None if a network has no ridge
    inverse.
    """
    regressions = networks.regressions(L, log_alpha)
    if regressions is None:
        return None
    total = np.zeros((len(entries) + 1, len(entries) + 1))
    for s, one in enumerate(regressions):
        W = networks.mapped(s, L) if relative else networks.W[s, :, :]
        for k in range(int(networks.y.shape[1])):
            total += average_information(one, derivatives(networks, one, W, entries, k), k)
    return total / len(regressions)


def derivatives(
    networks: ProbeNetworks, one: ProbeRegression, W: Array, entries: np.ndarray, k: int
) -> Array:
    r"""The vectors v of the entries and of log alpha for output k, shape (n, T + 1).

    An entry (i, j) adds :math:`z_i w_j` to the pre-activations, with the weights W (d', N).
    """
    xp, Z = namespace(one.H), networks.Z
    b = xp.astype(one.coefficients[:, k], one.H.dtype, copy=False)
    r = one.residual[:, k : k + 1]
    i, j = (xp.asarray(column, device=Z.device) for column in entries.T)
    by_weight = one.slope @ (W * b).T  # (n, d'): the derivative along each input
    changed = xp.take(Z, i, axis=1) * xp.take(by_weight, j, axis=1)
    changed = networks.centred_rows(networks.weighted(changed))
    r = r if networks.weighting is None else networks.weighting.back(r)
    back = xp.take(one.slope.T @ (Z * r), i, axis=1) * xp.take(W, j, axis=0).T
    return xp.concat([changed + one.H @ (back / one.alpha), -(one.H @ b)[:, None]], axis=1)


def average_information(regression: ProbeRegression, v: Array, k: int) -> np.ndarray:
    r"""Average information of the derivatives v (n, T) of output k, shape (T, T).

    .. math:: v'Av / (2 s^2) - (v'r)(r'v) / (2 n s^4), \qquad A = I - H G^{-1} H'.
    """
    xp, s2 = namespace(v), regression.s2[k]
    Hv = xp.astype(regression.H.T @ v, xp.float64, copy=False)
    vAv = xp.astype(v.T @ v, xp.float64, copy=False) - Hv.T @ (regression.inverse @ Hv)
    rv = xp.astype(regression.residual[:, k] @ v, xp.float64, copy=False)
    return to_numpy(vAv / (2 * s2) - rv[:, None] * rv[None, :] / (2 * v.shape[0] * s2**2))
