r"""How sure a fitted covariance of noise is, from the curvature of its likelihood.

Noise that hangs together has few independent pieces, however many its rows are. A variance v that
rests on it is taken to vary as one of

.. math:: \nu = 2 / \operatorname{Var}(\log v)

degrees of freedom does (Satterthwaite, 1946), with the variance of its logarithm from that of the
parameters it is a function of. The curvature does not know that scales have bounds, so that it
calls scales near the longest one less sure than they are, and there are least degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Intervals from fewer degrees of freedom cover no more, and are wider than any scale within its
# bounds would make them.
LEAST_DOF = 5.0
# Step of numerical derivatives, in logarithms of scales and in logits of shares.
STEP = 0.05

Function = Callable[[np.ndarray], float]


def curvature_covariance(
    target: Function, best: np.ndarray, box: list[tuple[float, float]]
) -> np.ndarray:
    """Covariance (m, m) of parameters at the least minus log likelihood.

    It is zero for parameters at a bound of the box, about which the curvature says nothing.
    """
    inside = np.min(np.abs(best[:, None] - np.array(box)), axis=1) > 2 * STEP
    steps = STEP * np.eye(len(best))[inside]
    H = np.array([[_mixed(target, best, a, b) for b in steps] for a in steps])
    covariance = np.zeros((len(best), len(best)))
    if len(H) and np.linalg.eigvalsh(H)[0] > 0:
        covariance[np.ix_(inside, inside)] = np.linalg.inv(H / STEP**2)
    return covariance


def _mixed(target: Function, best: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Difference of the target over steps a and b, which is a second one if they are the same."""
    signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
    return sum(s * r * target(best + s * a + r * b) for s, r in signs) / 4


def variance_dof(
    log_variance: Function, best: np.ndarray, covariance: np.ndarray, left: int
) -> float:
    """Degrees of freedom of a variance that is a function of parameters and of the sill.

    Parameters
    ----------
    log_variance : callable
        Its logarithm, with the sill at its best value for the parameters.
    best : ndarray of shape (m,)
        The parameters.
    covariance : ndarray of shape (m, m)
        Their covariance.
    left : int
        Directions that the sill rests on: its logarithm has the variance 2 / left for parameters
        that are known.
    """
    known = np.flatnonzero(np.diagonal(covariance) > 0)
    slope = np.zeros(len(best))
    for i in known:
        step = STEP * np.eye(len(best))[i]
        slope[i] = (log_variance(best + step) - log_variance(best - step)) / (2 * STEP)
    return max(float(2 / (2 / left + slope @ covariance @ slope)), min(LEAST_DOF, float(left)))
