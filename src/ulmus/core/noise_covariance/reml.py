r"""Scales and shares of a noise covariance by restricted maximum likelihood (REML).

A variance v that is a function of the estimated parameters has about
:math:`\nu = 2 / \operatorname{Var}(\log v)` degrees of freedom (Satterthwaite, 1946), from the
curvature of the likelihood. The curvature overstates the variance of scales near the longest one,
and says nothing about a scale at it, where the data do not bound the scale from above; hence
``LEAST_DOF``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import product

import numpy as np
import scipy.linalg
from scipy.optimize import minimize
from scipy.special import softmax

from ulmus.core.arrays.linalg import eigh
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.likelihood import SMALLEST_VARIANCE, RestrictedLikelihood
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.smoothed_space import SmoothedSpace
from ulmus.core.noise_covariance.structure import CovarianceStructure, CovarianceTerm
from ulmus.core.noise_covariance.whitening import noise_whitening

# The shortest scale, as a share of the spacing of the rows: neighbours are nearly uncorrelated.
SHORTEST = 1 / 3
# At the longest scale this share of the variance is outside the space of the smoother: noise of a
# longer scale is not separable from the signal. If time, or two coordinates, are the only inputs,
# the longest scale is somewhat below the resolution of the smoother, the span of the locations over
# the number of directions, or over its square root.
SURVIVING = 0.3
# Bound of the logits of shares.
MAX_LOGIT = 6.0
# A nugget must gain this much in twice the log likelihood (Akaike, 1974): with a superfluous one,
# weak correlation of a long scale and strong correlation of a short scale are hardly separable.
NUGGET_GAIN = 2.0
# A covariance must gain the first of these for two parameters, which independent noise does in one
# of a hundred simulations, and the second for each further parameter.
LEAST_GAIN, FURTHER_GAIN = 6.0, 2.0
# Least residual degrees of freedom.
FEWEST_LEFT = 10
# Noise of a smaller share of the mean square of y is round-off.
ROUND_OFF = 1e-28
# Intervals with fewer degrees of freedom do not cover more, and are wider than any scale within its
# bounds implies.
LEAST_DOF = 5.0
# Step of numerical second derivatives, in logarithms of scales and in logits of shares.
STEP = 0.05

Target = Callable[[np.ndarray], float]
Box = list[tuple[float, float]]


def covariance_estimate(
    y: np.ndarray, space: SmoothedSpace, locations: Locations, structure: CovarianceStructure
) -> CovarianceEstimate:
    """Scales and shares of noise from y (n,), beside a function in the space of the smoother.

    Independent noise is preferred if the gain in likelihood is small. The last directions of the
    space are ignored if too few degrees of freedom would remain.
    """
    structure.require(locations)
    n = len(y)
    space = space.leading(max(n - FEWEST_LEFT, 0))
    order, locations = locations.order, locations.ordered
    space, k = space.ordered(order), space.n_fixed
    A = space.directions[:, :k]
    likelihood = RestrictedLikelihood(y[order], space, noise_whitening(structure, locations))
    alone, variance = likelihood.independent()
    target = _target(likelihood, structure)
    box = [scale_bounds(term, locations, A) for term in structure.terms]
    box += [(-MAX_LOGIT, MAX_LOGIT)] * (structure.n_parameters - len(box))
    best, value = _best_with_or_without_nugget(target, structure, box)
    needed = LEAST_GAIN + FURTHER_GAIN * max(structure.n_parameters - 2, 0)
    scales, shares = parameters(structure, best)
    sill = likelihood.value_and_variance(scales, shares)[1]
    smallest = max(SMALLEST_VARIANCE, ROUND_OFF * float(np.mean(y**2)))
    covariance = curvature_covariance(target, best, box)

    def log_sill(p: np.ndarray) -> float:
        return math.log(likelihood.value_and_variance(*parameters(structure, p))[1])

    def log_retained(p: np.ndarray) -> float:
        return log_sill(p) + math.log(retained_share(structure, locations, A, p))

    dof, sill_dof = (
        LEAST_DOF
        if at_longest_scale(structure, best, box)
        else variance_dof(log_variance, best, covariance, n - k)
        for log_variance in (log_retained, log_sill)
    )
    return CovarianceEstimate(
        structure,
        values=(*scales, *shares[: structure.n_parameters - len(scales)]),
        standard_errors=_standard_errors(structure, best, covariance),
        sill=sill,
        shares=shares,
        log_likelihood=-value,
        independent_log_likelihood=-alone,
        independent_variance=variance,
        n_rows=n,
        n_removed=k,
        independent=sill <= smallest or bool(2 * (alone - value) < needed),
        dof=dof,
        sill_dof=sill_dof,
    )


def scale_bounds(term: CovarianceTerm, locations: Locations, A: np.ndarray) -> tuple[float, float]:
    """Logarithms of the shortest and the longest identifiable scale."""
    shortest = math.log(SHORTEST * term.spacing(locations))
    longest = math.log(term.span(locations))

    def identifiable(log_scale: float) -> bool:
        retained = _retained_variance(term, locations, math.exp(log_scale), A)
        return 1 - retained / locations.n >= SURVIVING

    if identifiable(longest):
        return shortest, longest
    low, high = shortest, longest
    for _ in range(8):  # bisections
        middle = 0.5 * (low + high)
        low, high = (middle, high) if identifiable(middle) else (low, middle)
    return shortest, max(low, shortest + math.log(2))


def at_longest_scale(structure: CovarianceStructure, best: np.ndarray, box: Box) -> bool:
    """Whether a scale is at its upper bound."""
    J = len(structure.terms)
    return bool(np.any(best[:J] > np.array(box)[:J, 1] - 2 * STEP))


def _retained_variance(
    term: CovarianceTerm, locations: Locations, scale: float, A: np.ndarray
) -> float:
    """Sum over the directions A of the variance along them, for noise of variance one."""
    return float(np.sum(term.root(locations, scale).applied(A.T) ** 2))


def retained_share(
    structure: CovarianceStructure, locations: Locations, A: np.ndarray, p: np.ndarray
) -> float:
    """Mean variance along the directions A that the smoother retains, over the sill."""
    scales, shares = parameters(structure, p)
    parts = zip(structure.terms, scales, shares, strict=True)
    structured = sum(w * _retained_variance(term, locations, scale, A) for term, scale, w in parts)
    return structured / A.shape[1] + 1 - sum(shares) if A.shape[1] else 1.0


def parameters(
    structure: CovarianceStructure, p: np.ndarray
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Scales and shares of the terms, from log scales and logits."""
    J = len(structure.terms)
    shares = softmax(np.append(p[J:], 0.0))[:J]
    return tuple(np.exp(p[:J]).tolist()), tuple(shares.tolist())


def _target(likelihood: RestrictedLikelihood, structure: CovarianceStructure) -> Target:
    """Minus the log likelihood as a function of log scales and logits, memoised."""

    @lru_cache
    def value(p: tuple[float, ...]) -> float:
        return likelihood.value_and_variance(*parameters(structure, np.array(p)))[0]

    return lambda p: value(tuple(p.tolist()))


def _best_with_or_without_nugget(
    target: Target, structure: CovarianceStructure, box: Box
) -> tuple[np.ndarray, float]:
    """Maximum likelihood parameters, without a nugget if its gain is small."""
    best, value = _best(target, box)
    if structure.nugget and len(structure.terms) == 1:
        bare, bare_value = _best(target, [box[0], (MAX_LOGIT, MAX_LOGIT)])
        if 2 * (bare_value - value) < NUGGET_GAIN:
            return bare, bare_value
    return best, value


def _best(target: Target, box: Box) -> tuple[np.ndarray, float]:
    """Log scales and logits of maximum likelihood, and minus the log likelihood."""
    # Starts at a quarter and three quarters of the range of each parameter.
    grids = [sorted({low + s * (high - low) for s in (0.25, 0.75)}) for low, high in box]
    starts = [np.array(start) for start in product(*grids)]
    values = [target(start) for start in starts]
    start = starts[int(np.argmin(values))]
    options = {"eps": 1e-4, "ftol": 1e-8, "maxiter": 60}
    result = minimize(target, start, method="L-BFGS-B", bounds=box, options=options)
    return (result.x, float(result.fun)) if result.fun < min(values) else (start, min(values))


def _standard_errors(
    structure: CovarianceStructure, best: np.ndarray, covariance: np.ndarray
) -> tuple[float, ...]:
    """Standard errors of scales and shares, by the delta method; NaN at a bound."""
    scales, shares = parameters(structure, best)
    w = np.array(shares[: len(best) - len(scales)])
    jacobian = scipy.linalg.block_diag(np.diag(scales), np.diag(w) - np.outer(w, w))
    errors = np.sqrt(np.diagonal(jacobian @ covariance @ jacobian.T))
    known = (np.diagonal(covariance) > 0) & (errors > 0)
    return tuple(np.where(known, errors, math.nan).tolist())


def curvature_covariance(target: Target, best: np.ndarray, box: Box) -> np.ndarray:
    """Covariance (m, m) of the parameters: the inverse curvature of minus the log likelihood.

    It is zero for parameters at a bound of the box.
    """
    inside = np.min(np.abs(best[:, None] - np.array(box)), axis=1) > 2 * STEP
    steps = STEP * np.eye(len(best))[inside]
    H = np.array([[_mixed(target, best, a, b) for b in steps] for a in steps])
    covariance = np.zeros((len(best), len(best)))
    if len(H) and eigh(H)[0][0] > 0:
        covariance[np.ix_(inside, inside)] = np.linalg.inv(H / STEP**2)
    return covariance


def _mixed(target: Target, best: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Second difference of the target over steps a and b."""
    signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
    return sum(s * r * target(best + s * a + r * b) for s, r in signs) / 4


def variance_dof(
    log_variance: Target, best: np.ndarray, covariance: np.ndarray, left: int
) -> float:
    """Degrees of freedom of a variance that is a function of the parameters and the sill.

    ``log_variance`` is a function of the parameters, which have the covariance (m, m) around
    ``best`` (m,), with the sill at its maximum. Given the parameters, the logarithm of the sill has
    the variance 2 / left, for ``left`` residual degrees of freedom.
    """
    known = np.flatnonzero(np.diagonal(covariance) > 0)
    slope = np.zeros(len(best))
    for i in known:
        step = STEP * np.eye(len(best))[i]
        slope[i] = (log_variance(best + step) - log_variance(best - step)) / (2 * STEP)
    return max(float(2 / (2 / left + slope @ covariance @ slope)), min(LEAST_DOF, float(left)))
