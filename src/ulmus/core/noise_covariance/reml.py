r"""How noise hangs together, from what the smoother leaves of y.

Residuals of a smoother are no noise: it keeps the slow part of the noise as if it were function.
So the directions A that it keeps are projected out of y exactly, and the covariance
:math:`\sigma^2 S` is fitted to the rest by restricted likelihood (Patterson & Thompson, 1971),

.. math:: -2 l = (n - k)(\log 2 \pi q + 1) + \log|S| + \log|A'S^{-1}A|, \qquad
          q = \frac{y'Py}{n - k},

with :math:`P = S^{-1} - S^{-1}A(A'S^{-1}A)^{-1}A'S^{-1}` and the variance at its best value, q.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
import scipy.linalg
from scipy.optimize import minimize
from scipy.special import softmax

from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.structure import CovarianceStructure, CovarianceTerm
from ulmus.core.noise_covariance.whitening import NoiseWhitening, noise_whitening

# The shortest scale is this share of the spacing of the rows: neighbours hardly correlate there.
SHORTEST = 1 / 3
# A longest scale leaves this share of its variance outside the smoother's space: noise that hangs
# together over longer distances cannot be told from the function. Where the smoother sees nothing
# but time, or two coordinates, that is somewhat less than the resolution of the smoother, the span
# of the places over the number of directions, or over its root.
SURVIVING = 0.4
BISECTIONS = 8
# Logits of shares stay within this bound.
LARGEST_LOGIT = 6.0
# Starts of the search, as shares of the way between the bounds of each parameter.
STARTS = (0.25, 0.75)
# Step of numerical derivatives.
GRADIENT_STEP = 1e-4
# A nugget must gain this much in twice the log likelihood (Akaike, 1974): with a needless one, a
# weak correlation over a long distance is hard to tell from a strong one over a short distance.
NUGGET_GAIN = 2.0
# Dependence must gain the first of these for two parameters, which independent noise does once in
# a hundred simulations, and as much again for each further one.
LEAST_GAIN, FURTHER_GAIN = 6.0, 2.0
# Directions that must be left.
FEWEST_LEFT = 10
# Variances that cannot be told from none, in the units of the fit; their inverses are numbers.
SMALLEST_VARIANCE = 1e-200
# Intervals from fewer degrees of freedom cover no more, and are wider than any scale within its
# bounds would make them.
LEAST_DOF = 5.0
# Step of numerical second derivatives, in logarithms of scales and in logits of shares.
STEP = 0.05
# What the likelihood is where it cannot be computed.
IMPOSSIBLE = 1e12

Target = Callable[[np.ndarray], float]
Box = list[tuple[float, float]]


@dataclass(frozen=True)
class RestrictedLikelihood:
    """Minus the log likelihood of scales and shares, given y without the directions A.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Outputs, in the order of the places.
    A : ndarray of shape (n, k)
        Orthonormal columns.
    whitening : Whitening
        Solves with the covariance.
    """

    y: np.ndarray
    A: np.ndarray
    whitening: NoiseWhitening

    @cached_property
    def _columns(self) -> np.ndarray:
        """A and y side by side, one column after another in memory as LAPACK reads them."""
        return np.asfortranarray(np.column_stack([self.A, self.y]))

    def value_and_variance(
        self, scales: Sequence[float], shares: Sequence[float]
    ) -> tuple[float, float]:
        """Minus the log likelihood, and the variance q."""
        try:
            white, log_det = self.whitening(scales, shares, self._columns)
            a, b = white[:, :-1], white[:, -1]
            C = scipy.linalg.cholesky(a.T @ a, lower=True)
        except np.linalg.LinAlgError:
            return IMPOSSIBLE, math.nan
        left = len(self.y) - a.shape[1]
        kept = scipy.linalg.solve_triangular(C, a.T @ b, lower=True)
        q = max(float(b @ b - kept @ kept) / left, SMALLEST_VARIANCE)
        log_det += 2 * float(np.sum(np.log(np.diagonal(C))))
        return 0.5 * (log_det + left * (math.log(2 * math.pi * q) + 1)), q

    def independent(self) -> tuple[float, float]:
        """The same for independent noise."""
        left = len(self.y) - self.A.shape[1]
        rest = self.y - self.A @ (self.A.T @ self.y)
        q = max(float(rest @ rest) / left, SMALLEST_VARIANCE)
        return 0.5 * left * (math.log(2 * math.pi * q) + 1), q


def covariance_estimate(
    y: np.ndarray, A: np.ndarray, locations: Locations, structure: CovarianceStructure
) -> CovarianceEstimate:
    """Scales and shares of noise from y (n,), without the directions A (n, k).

    Where they explain y hardly better than independent noise does, it is independent noise. The
    first directions are those that the smoother keeps most; the last stay where too few are left.
    """
    structure.require(locations)
    A = A[:, : max(len(A) - FEWEST_LEFT, 0)]
    n, k = A.shape
    order, locations = locations.order, locations.ordered
    y, A = y[order], A[order]
    likelihood = RestrictedLikelihood(y, A, noise_whitening(structure, locations))
    alone, variance = likelihood.independent()
    target = _target(likelihood, structure)
    box = _box(structure, [scale_bounds(term, locations, A) for term in structure.terms])
    best, value = _best_with_or_without_nugget(target, structure, box)
    needed = LEAST_GAIN + FURTHER_GAIN * max(structure.n_parameters - 2, 0)
    scales, shares = parameters(structure, best)
    sill = likelihood.value_and_variance(scales, shares)[1]
    covariance = curvature_covariance(target, best, box)

    def log_sill(p: np.ndarray) -> float:
        return math.log(likelihood.value_and_variance(*parameters(structure, p))[1])

    def log_kept(p: np.ndarray) -> float:
        return log_sill(p) + math.log(kept_share(structure, locations, A, p))

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
        independent=sill <= SMALLEST_VARIANCE or bool(2 * (alone - value) < needed),
        dof=variance_dof(log_kept, best, covariance, n - k),
        sill_dof=variance_dof(log_sill, best, covariance, n - k),
    )


def scale_bounds(term: CovarianceTerm, locations: Locations, A: np.ndarray) -> tuple[float, float]:
    """Logarithms of the shortest and the longest scale that the rows can tell."""
    shortest = math.log(SHORTEST * term.spacing(locations))
    longest = math.log(term.span(locations))

    def survives(log_scale: float) -> bool:
        return 1 - _kept(term, locations, math.exp(log_scale), A) / locations.n >= SURVIVING

    if survives(longest):
        return shortest, longest
    low, high = shortest, longest
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if survives(middle) else (low, middle)
    return shortest, max(low, shortest + math.log(2))


def _kept(term: CovarianceTerm, locations: Locations, scale: float, A: np.ndarray) -> float:
    """Sum over directions of the variance along them, for noise of variance one."""
    return float(np.sum(term.root(locations, scale).applied(A.T) ** 2))


def kept_share(
    structure: CovarianceStructure, locations: Locations, A: np.ndarray, p: np.ndarray
) -> float:
    """Mean over directions A that the smoother keeps of the variance along them, over the sill."""
    scales, shares = parameters(structure, p)
    parts = zip(structure.terms, scales, shares, strict=True)
    structured = sum(w * _kept(term, locations, scale, A) for term, scale, w in parts)
    return structured / A.shape[1] + 1 - sum(shares) if A.shape[1] else 1.0


def parameters(
    structure: CovarianceStructure, p: np.ndarray
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Scales and shares of the terms, from log scales and logits."""
    J = len(structure.terms)
    shares = softmax(np.append(p[J:], 0.0))[:J]
    return tuple(np.exp(p[:J]).tolist()), tuple(shares.tolist())


def _target(likelihood: RestrictedLikelihood, structure: CovarianceStructure) -> Target:
    """Minus the log likelihood of log scales and logits; what was computed once is remembered."""

    @lru_cache
    def value(p: tuple[float, ...]) -> float:
        return likelihood.value_and_variance(*parameters(structure, np.array(p)))[0]

    return lambda p: value(tuple(p.tolist()))


def _box(structure: CovarianceStructure, scales: Box) -> Box:
    """Bounds of log scales and logits."""
    n_logits = structure.n_parameters - len(scales)
    return [*scales, *[(-LARGEST_LOGIT, LARGEST_LOGIT)] * n_logits]


def _best_with_or_without_nugget(
    target: Target, structure: CovarianceStructure, box: Box
) -> tuple[np.ndarray, float]:
    """The best parameters; those without a nugget if one gains little."""
    best, value = _best(target, box)
    if structure.nugget and len(structure.terms) == 1:
        bare, bare_value = _best(target, [box[0], (LARGEST_LOGIT, LARGEST_LOGIT)])
        if 2 * (bare_value - value) < NUGGET_GAIN:
            return bare, bare_value
    return best, value


def _best(target: Target, box: Box) -> tuple[np.ndarray, float]:
    """Log scales and logits of the greatest likelihood, and minus its logarithm."""
    grids = [sorted({low + s * (high - low) for s in STARTS}) for low, high in box]
    starts = [np.array(start) for start in product(*grids)]
    values = [target(start) for start in starts]
    start = starts[int(np.argmin(values))]
    how = {"eps": GRADIENT_STEP, "ftol": 1e-8, "maxiter": 60}
    found = minimize(target, start, method="L-BFGS-B", bounds=box, options=how)
    return (found.x, float(found.fun)) if found.fun < min(values) else (start, min(values))


def _standard_errors(
    structure: CovarianceStructure, best: np.ndarray, covariance: np.ndarray
) -> tuple[float, ...]:
    """Standard errors of scales and shares, from those of logarithms and logits; NaN for none."""
    scales, shares = parameters(structure, best)
    w = np.array(shares[: len(best) - len(scales)])
    jacobian = scipy.linalg.block_diag(np.diag(scales), np.diag(w) - np.outer(w, w))
    errors = np.sqrt(np.diagonal(jacobian @ covariance @ jacobian.T))
    known = (np.diagonal(covariance) > 0) & (errors > 0)
    return tuple(np.where(known, errors, math.nan).tolist())


def curvature_covariance(
    target: Target, best: np.ndarray, box: list[tuple[float, float]]
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


def _mixed(target: Target, best: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Difference of the target over steps a and b, which is a second one if they are the same."""
    signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
    return sum(s * r * target(best + s * a + r * b) for s, r in signs) / 4


def variance_dof(
    log_variance: Target, best: np.ndarray, covariance: np.ndarray, left: int
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
