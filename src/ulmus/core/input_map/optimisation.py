r"""A map of the inputs, learned by the evidence of a few networks.

The map is a scale for each input, or a full matrix; hidden weights are drawn as always and the
map stands before them. Scales have the prior log(1 + theta^2), which leaves most near their start
and lets some go far; mixing of inputs has a normal prior towards none. Two starts lead to the
scales: one common scale, and the diagonal of the average gradient outer product, without which
evidence finds nothing where few of many inputs matter. Both are tried on few rows, and the better
goes on with all of them. Then inputs are left out as long as that costs less than one unit of log
evidence for each, which the prior alone would not do. The matrix starts from the best scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import LbfgsInvHessProduct, minimize
from threadpoolctl import threadpool_limits

from ulmus.core.input_map.marginal_likelihood import ProbeNetworks

# Log scales and the entries that mix inputs stay within these bounds.
SCALE_BOUNDS = (-6.0, 5.0)
MIXING_BOUND = 4.0
# Prior precision of the entries that mix inputs.
MIXING_PRECISION = 30.0
# Bounds of alpha, and its start, relative to the mean sum of squares of a feature.
ALPHA_BOUNDS, ALPHA_START = (1e-7, 100.0), 1e-2
# Steps of the optimiser: for a common scale, for each start, and from there on.
COMMON_STEPS, RACE_STEPS, LAST_STEPS = 12, 15, 50
# Shares of the inputs that leaving out is tried with.
LEFT_OUT_SHARES = (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9)
# A step that gains a smaller share of the log evidence than this is the last.
FTOL = 5e-6
# Rows that the starts are tried on.
RACE_ROWS = 1000
# Refits that lead to the second start.
GRADIENT_REFITS = 3

Log = Callable[[str], None]


@dataclass(frozen=True)
class LearnedMap:
    """A map of the inputs and how it was found.

    Parameters
    ----------
    kind : str
        ``"common"`` for one scale, ``"ard"`` for a scale for each input, or ``"full"``.
    matrix : ndarray of shape (d', d')
        The map L: hidden units see z L.
    around : ndarray of shape (d',) or (d', d')
        The map, or its diagonal, before inputs were left out.
    log_alpha : float
        Logarithm of the ridge parameter that goes with it.
    value : float
        Minus its log evidence with the prior.
    spread : ndarray of shape (d', r)
        Columns whose outer products sum to the covariance of the log scales, from the Hessian.
    """

    kind: str
    matrix: np.ndarray
    around: np.ndarray
    log_alpha: float
    value: float
    spread: np.ndarray


def learned_map(networks: ProbeNetworks, kind: str, report: Log) -> LearnedMap:
    """The map of greatest evidence, ``"ard"`` or ``"full"``."""
    found = learned_scales(networks, report)
    return learned_matrix(networks, found, report) if kind == "full" else found


def learned_scales(networks: ProbeNetworks, report: Log) -> LearnedMap:
    """A scale for each input."""
    with _free_threads(networks):
        few = networks.fewer_rows(RACE_ROWS)
        trial = search = _Search(few, report)
        if few.y.shape[0] < networks.y.shape[0]:
            search = _Search(networks, report)
        common = trial.common()
        return search.scales(trial.started(common), math.log(search.size / trial.size))


def refitted_scales(networks: ProbeNetworks, start: LearnedMap, report: Log) -> LearnedMap:
    """Scales of the inputs that were kept when rows counted otherwise, from those found then."""
    with _free_threads(networks):
        return _Search(networks, report).kept_scales(start)


def learned_matrix(networks: ProbeNetworks, scales: LearnedMap, report: Log) -> LearnedMap:
    """A full matrix, from the best scales."""
    with _free_threads(networks):
        return _Search(networks, report).matrix(scales)


def _free_threads(networks: ProbeNetworks) -> threadpool_limits:
    """One thread for matrix products where the networks have threads of their own."""
    return threadpool_limits(1 if networks.n_threads > 1 else None, user_api="blas")


class _Search:
    """Optimisations of the evidence on the same rows."""

    def __init__(self, networks: ProbeNetworks, report: Log) -> None:
        self.networks, self.report = networks, report
        self.d = networks.n_inputs
        self.all_inputs = np.ones(self.d, dtype=bool)
        # Points and gradients seen with a scale for each input, whose changes show the Hessian.
        self.seen: list[tuple[np.ndarray, np.ndarray]] = []
        self.size = networks.feature_size
        if not 0 < self.size < math.inf:
            raise FloatingPointError("the hidden features do not vary or are not finite")
        self.alpha_bounds = tuple(math.log(bound * self.size) for bound in ALPHA_BOUNDS)

    def common(self) -> LearnedMap:
        """One scale for all inputs."""

        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            L = np.full(self.d, math.exp(p[0]))
            value, by_map, by_alpha = self.networks.negative_log_likelihood(L, p[1])
            return value, np.array([by_map @ L, by_alpha])

        start = np.array([0.0, math.log(ALPHA_START * self.size)])
        p, value = self._best(target, start, [SCALE_BOUNDS], COMMON_STEPS, "one scale")
        nothing = np.zeros((self.d, 0))
        L = np.full(self.d, math.exp(p[0]))
        return LearnedMap("common", np.diag(L), L, p[1], value, nothing)

    def started(self, common: LearnedMap) -> np.ndarray:
        """Log scales and log alpha after a few steps from each start, the better of the two."""
        # Where a common scale sees only noise, its alpha is so great that no gradient is left.
        log_alpha = min(common.log_alpha, math.log(ALPHA_START * self.size))
        common = replace(common, log_alpha=log_alpha)
        starts = {"common scale": np.diag(common.matrix), "gradients": self._by_gradients(common)}
        tried = []
        for name, L in starts.items():
            start = np.append(np.log(L), common.log_alpha)
            tried.append(self._best_scales(start, self.all_inputs, RACE_STEPS, f"from {name}"))
        return min(tried, key=lambda result: result[1])[0]

    def scales(self, start: np.ndarray, more_rows: float) -> LearnedMap:
        """A scale for each input, from a start with so many more rows in log alpha."""
        low, high = self.alpha_bounds
        start = np.append(start[:-1], np.clip(start[-1] + more_rows, low, high))
        p, value = self._best_scales(start, self.all_inputs, LAST_STEPS, "scales")
        around, kept = np.exp(p[:-1]), self._worth_keeping(p)
        if not np.all(kept):
            name = f"{np.sum(kept)} of {self.d} inputs kept"
            p, value = self._best_scales(p, kept, LAST_STEPS, name)
        return self._found(p, value, kept, around)

    def kept_scales(self, earlier: LearnedMap) -> LearnedMap:
        """Scales of the inputs that an earlier map keeps, from its own."""
        kept = np.diag(earlier.matrix) > 0
        start = np.append(np.log(np.where(kept, np.diag(earlier.matrix), 1.0)), earlier.log_alpha)
        p, value = self._best_scales(start, kept, LAST_STEPS, "scales again")
        return self._found(p, value, kept, np.where(kept, np.exp(p[:-1]), earlier.around))

    def _found(
        self, p: np.ndarray, value: float, kept: np.ndarray, around: np.ndarray
    ) -> LearnedMap:
        L, spread = np.exp(p[:-1]) * kept, _spread(self.seen, self.d)
        return LearnedMap("ard", np.diag(L), around, p[-1], value, spread)

    def _worth_keeping(self, p: np.ndarray) -> np.ndarray:
        """Inputs left when those of smallest scale go, one unit of log evidence for each."""
        order = np.argsort(p[:-1])
        tried = {}
        for n_out in {0, *(int(share * self.d) for share in LEFT_OUT_SHARES)}:
            kept = np.isin(np.arange(self.d), order[n_out:])
            value = self.networks.negative_log_likelihood(np.exp(p[:-1]) * kept, p[-1]).value
            tried[value - n_out] = kept
        return tried[min(tried)]

    def _best_scales(
        self, start: np.ndarray, kept: np.ndarray, steps: int, name: str
    ) -> tuple[np.ndarray, float]:
        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            theta, L = p[:-1], np.exp(p[:-1]) * kept
            value, by_map, by_alpha = self.networks.negative_log_likelihood(L, p[-1])
            gradient = np.append(by_map * L + kept * _prior_slope(theta), by_alpha)
            if math.isfinite(value):
                self.seen.append((p.copy(), gradient))
            return value + _prior(theta[kept]), gradient

        return self._best(target, start, [SCALE_BOUNDS] * self.d, steps, name)

    def matrix(self, scales: LearnedMap) -> LearnedMap:
        """A full matrix diag(e^theta) (I + F), from the best scales."""
        d, eye = self.d, np.eye(self.d)
        kept = np.diag(scales.matrix) > 0

        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            theta, F = p[:d], p[d:-1].reshape(d, d)
            scale = (np.exp(theta) * kept)[:, None]
            L = scale * (eye + F)
            value, by_map, by_alpha = self.networks.negative_log_likelihood(L, p[-1])
            value += _prior(theta) + 0.5 * MIXING_PRECISION * float(np.sum(F**2))
            by_theta = np.sum(by_map * L, axis=1) + _prior_slope(theta)
            by_F = by_map * scale + MIXING_PRECISION * F
            return value, np.concatenate([by_theta, by_F.ravel(), [by_alpha]])

        theta = np.log(np.where(kept, np.diag(scales.matrix), 1.0))
        start = np.concatenate([theta, np.zeros(d * d), [scales.log_alpha]])
        bounds = [SCALE_BOUNDS] * d + [(-MIXING_BOUND, MIXING_BOUND)] * d * d
        p, value = self._best(target, start, bounds, LAST_STEPS, "full map")
        L = (np.exp(p[:d]) * kept)[:, None] * (eye + p[d:-1].reshape(d, d))
        return LearnedMap("full", L, L, p[-1], value, scales.spread)

    def _by_gradients(self, common: LearnedMap) -> np.ndarray:
        """Scales by the mean squared derivatives of the prediction, refitted three times."""
        L = np.diag(common.matrix)
        total = np.sum(L**2)
        for _ in range(GRADIENT_REFITS):
            size = self.networks.gradient_size(L, common.log_alpha)
            if size is None or not np.sum(size) > 0 or not np.all(np.isfinite(size)):
                break
            L = np.sqrt(total * (size / np.sum(size) + 1e-6 / self.d))
        return np.clip(L, math.exp(SCALE_BOUNDS[0]), math.exp(SCALE_BOUNDS[1]))

    def _best(
        self, target: Any, start: np.ndarray, bounds: list[Any], steps: int, name: str
    ) -> tuple[np.ndarray, float]:
        """Best point and its value."""
        result = minimize(
            target,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[*bounds, self.alpha_bounds],
            options={"maxiter": steps, "maxcor": 20, "ftol": FTOL},
        )
        self.report(f"{name}: minus log evidence {result.fun:.2f} after {result.nfev} evaluations")
        if not math.isfinite(result.fun):
            raise FloatingPointError(f"the evidence of {name} is not finite")
        return result.x, float(result.fun)


def _prior(theta: np.ndarray) -> float:
    return float(np.sum(np.log1p(theta**2)))


def _prior_slope(theta: np.ndarray) -> np.ndarray:
    return 2 * theta / (1 + theta**2)


def _spread(seen: list[tuple[np.ndarray, np.ndarray]], d: int) -> np.ndarray:
    """A root of the covariance of the log scales: the inverse Hessian after BFGS updates.

    Each change of the gradient from one point to the next tells about one direction; in
    directions that were never taken the variance is one, as wide as the prior.
    """
    points, gradients = (np.array(column) for column in zip(*seen, strict=True))
    steps, changes = np.diff(points, axis=0), np.diff(gradients, axis=0)
    curved = np.sum(steps * changes, axis=1) > 1e-8 * np.sum(steps**2, axis=1)
    inverse = LbfgsInvHessProduct(steps[curved], changes[curved]).todense()[:d, :d]
    values, vectors = np.linalg.eigh((inverse + inverse.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0))
