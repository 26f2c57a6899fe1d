r"""A map of the inputs, learned by the evidence of a few networks.

The map is a scale for each input, or a full matrix; hidden weights are drawn as always and the
map stands before them. Scales have the prior log(1 + theta^2), which leaves most near their start
and lets some go far; mixing of inputs has a normal prior towards none. Two starts lead to the
scales: one common scale, and the diagonal of the average gradient outer product, without which
evidence finds nothing where few of many inputs matter. The matrix starts from the best scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ulmus.core.evidence import Networks

# Log scales and the entries that mix inputs stay within these bounds.
SCALE_BOUNDS = (-6.0, 5.0)
MIXING_BOUND = 4.0
# Prior precision of the entries that mix inputs.
MIXING_PRECISION = 30.0
# Bounds of alpha, and its start, relative to the mean sum of squares of a feature.
ALPHA_BOUNDS, ALPHA_START = (1e-7, 100.0), 1e-2
# Steps of the optimiser: for a common scale, for each start, and for the better of the starts.
COMMON_STEPS, RACE_STEPS, LAST_STEPS = 12, 15, 50
# Refits that lead to the second start.
GRADIENT_REFITS = 3
# Inputs beyond which only a common scale is learned.
MOST_SCALES = 1000

Report = Callable[[str], None]


@dataclass(frozen=True)
class LearnedMap:
    """A map of the inputs and how it was found.

    Parameters
    ----------
    kind : str
        ``"common"`` for one scale, ``"ard"`` for one per input, or ``"full"``.
    matrix : ndarray of shape (d', d')
        The map L: hidden units see z L.
    log_alpha : float
        Logarithm of the ridge parameter that goes with it.
    value : float
        Minus its log evidence with the prior.
    spread : ndarray of shape (d', r)
        Columns whose outer products sum to the covariance of the log scales, from the Hessian.
    n_evaluations : int
        How often the evidence was evaluated.
    """

    kind: str
    matrix: np.ndarray
    log_alpha: float
    value: float
    spread: np.ndarray
    n_evaluations: int


def learned_map(networks: Networks, kind: str, report: Report) -> LearnedMap:
    """The map of greatest evidence: ``"common"``, ``"ard"`` or ``"full"``."""
    search = _Search(networks, report)
    found = search.common()
    if kind != "common" and networks.n_inputs <= MOST_SCALES:
        found = search.scales(found)
        if kind == "full":
            found = search.matrix(found)
    return found


class _Search:
    """One optimisation of the evidence; it counts what it evaluates."""

    def __init__(self, networks: Networks, report: Report) -> None:
        self.networks, self.report = networks, report
        self.d, self.n_evaluations = networks.n_inputs, 0
        self.size = networks.feature_size
        if not 0 < self.size < math.inf:
            raise FloatingPointError("the hidden features do not vary or are not finite")
        self.alpha_bounds = tuple(math.log(bound * self.size) for bound in ALPHA_BOUNDS)

    def common(self) -> LearnedMap:
        """One scale for all inputs."""

        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            L = np.full(self.d, math.exp(p[0]))
            value, by_map, by_alpha = self._evidence(L, p[1])
            return value, np.array([by_map @ L, by_alpha])

        start = np.array([0.0, math.log(ALPHA_START * self.size)])
        p, value, _ = self._best(target, start, [SCALE_BOUNDS], COMMON_STEPS, "one scale")
        return self._map("common", np.full(self.d, math.exp(p[0])), p[-1], value)

    def scales(self, common: LearnedMap) -> LearnedMap:
        """A scale for each input, from two starts."""

        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            theta, L = p[:-1], np.exp(p[:-1])
            value, by_map, by_alpha = self._evidence(L, p[-1])
            return value + _prior(theta), np.append(by_map * L + _prior_slope(theta), by_alpha)

        # Where a common scale sees only noise, its alpha is so great that no gradient is left.
        log_alpha = min(common.log_alpha, math.log(ALPHA_START * self.size))
        common = replace(common, log_alpha=log_alpha)
        bounds = [SCALE_BOUNDS] * self.d
        starts = {"common": np.diag(common.matrix), "gradients": self._by_gradients(common)}
        tried = [
            self._best(target, _point(L, common.log_alpha), bounds, RACE_STEPS, f"scales, {name}")
            for name, L in starts.items()
        ]
        start, *_ = min(tried, key=lambda result: result[1])
        p, value, inverse = self._best(target, start, bounds, LAST_STEPS, "scales")
        return self._map("ard", np.exp(p[:-1]), p[-1], value, inverse[: self.d, : self.d])

    def matrix(self, scales: LearnedMap) -> LearnedMap:
        """A full matrix diag(e^theta) (I + F), from the best scales."""
        d, eye = self.d, np.eye(self.d)

        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            theta, F = p[:d], p[d:-1].reshape(d, d)
            scale = np.exp(theta)[:, None]
            L = scale * (eye + F)
            value, by_map, by_alpha = self._evidence(L, p[-1])
            value += _prior(theta) + 0.5 * MIXING_PRECISION * float(np.sum(F**2))
            by_theta = np.sum(by_map * L, axis=1) + _prior_slope(theta)
            by_F = by_map * scale + MIXING_PRECISION * F
            return value, np.concatenate([by_theta, by_F.ravel(), [by_alpha]])

        theta = np.log(np.diag(scales.matrix))
        start = np.concatenate([theta, np.zeros(d * d), [scales.log_alpha]])
        bounds = [SCALE_BOUNDS] * d + [(-MIXING_BOUND, MIXING_BOUND)] * d * d
        p, value, inverse = self._best(target, start, bounds, LAST_STEPS, "full map")
        L = np.exp(p[:d])[:, None] * (eye + p[d:-1].reshape(d, d))
        return self._map("full", L, p[-1], value, inverse[:d, :d])

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

    def _evidence(self, L: np.ndarray, log_alpha: float) -> Any:
        self.n_evaluations += 1
        return self.networks.evidence(L, log_alpha)

    def _best(
        self, target: Any, start: np.ndarray, bounds: list[Any], steps: int, name: str
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Best point, its value, and the approximate inverse of the Hessian there."""
        result = minimize(
            target,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[*bounds, self.alpha_bounds],
            options={"maxiter": steps, "maxcor": 20},
        )
        self.report(f"{name}: minus log evidence {result.fun:.2f} after {result.nfev} evaluations")
        if not math.isfinite(result.fun):
            raise FloatingPointError(f"the evidence of {name} is not finite")
        inverse = result.hess_inv.todense() if len(start) <= MOST_SCALES else np.eye(len(start))
        return result.x, float(result.fun), inverse

    def _map(
        self, kind: str, L: np.ndarray, log_alpha: float, value: float, covariance: Any = None
    ) -> LearnedMap:
        spread = np.zeros((self.d, 0)) if covariance is None else _root(covariance)
        matrix = np.diag(L) if L.ndim == 1 else L
        return LearnedMap(kind, matrix, float(log_alpha), value, spread, self.n_evaluations)


def _prior(theta: np.ndarray) -> float:
    return float(np.sum(np.log1p(theta**2)))


def _prior_slope(theta: np.ndarray) -> np.ndarray:
    return 2 * theta / (1 + theta**2)


def _point(L: np.ndarray, log_alpha: float) -> np.ndarray:
    return np.append(np.log(L), log_alpha)


def _root(covariance: np.ndarray) -> np.ndarray:
    """A root of a covariance matrix, without what round-off makes negative."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0))
