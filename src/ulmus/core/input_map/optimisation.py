r"""A map of the inputs that maximises the marginal likelihood of a few probe networks.

The map L is a scale for each input (automatic relevance determination) or a full matrix. Log scales
:math:`\theta` have the prior :math:`\log(1 + \theta^2)`, whose heavy tails leave most of them near
zero and allow some to be large; entries that mix inputs have a normal prior of mean zero.

L-BFGS runs from several starts: one common scale; the diagonal of the average gradient outer
product, without which the search fails if few of many inputs matter; and importances of the inputs
in another model, where they are given, for inputs that matter only through their interactions. All
run a few steps on a subsample, or on all rows where none of them explains anything on fewer, and
the best one continues on all rows. Then the inputs of smallest scale are dropped if that costs less
than one unit of log marginal likelihood each. The full matrix starts from the scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from ulmus.core.input_map.marginal_likelihood import ProbeNetworks


@dataclass(frozen=True)
class OptimiserSettings:
    """Bounds, priors and steps of the search, as measured in benchmarks/maps.py."""

    log_scale_bounds: tuple[float, float] = (-6.0, 5.0)  # bounds of log scales
    mixing_bound: float = 4.0  # bound of entries that mix inputs
    mixing_precision: float = 30.0  # prior precision of these entries
    # Bounds and start of alpha, relative to the mean sum of squares of a feature.
    alpha_bounds: tuple[float, float] = (1e-7, 100.0)
    alpha_start: float = 1e-2
    common_steps: int = 12  # L-BFGS iterations for a common scale
    start_steps: int = 15  # for each start
    steps: int = 50  # from the better start
    start_rows: int = 1000  # rows on which the starts are compared
    # Gain in log likelihood over a constant, for each input, below which a start explains nothing.
    least_gain: float = 2.0
    gradient_refits: int = 3  # refits for the start by gradients
    tolerance: float = 5e-6  # relative gain in log marginal likelihood at which L-BFGS stops
    # Squared scales of that start are in proportion to these powers of the importances, and have
    # these means.
    importance_powers: tuple[float, ...] = (1.0, 2.0, 4.0)
    importance_sizes: tuple[float, ...] = (1.0, 4.0)
    # Shares of inputs tried for dropping.
    dropped_shares: tuple[float, ...] = (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9)


SETTINGS = OptimiserSettings()
# Name of the start from importances in another model.
IMPORTANCES = "importances"

Log = Callable[[str], None]


@dataclass(frozen=True)
class LearnedMap:
    """A map of the inputs with its marginal likelihood."""

    # ``"common"`` for one scale, ``"ard"`` for a scale for each input, or ``"full"``.
    structure: str
    matrix: np.ndarray  # (d', d'): the map L: hidden units are functions of z L
    undropped: np.ndarray  # (d',): the map, or its diagonal, before inputs were dropped
    log_alpha: float  # logarithm of the ridge parameter at the optimum
    value: float  # negative log marginal likelihood, including the prior
    from_importances: bool = False  # whether importances in another model were the best start


def learned_map(
    networks: ProbeNetworks, structure: str, log: Log, importances: np.ndarray | None = None
) -> LearnedMap:
    """The map of largest marginal likelihood, ``"ard"`` or ``"full"``.

    Importances (d',) of the inputs in another model are non-negative.
    """
    scales = learned_scales(networks, log, importances)
    return learned_matrix(networks, scales, log) if structure == "full" else scales


def learned_scales(
    networks: ProbeNetworks, log: Log, importances: np.ndarray | None = None
) -> LearnedMap:
    """A scale for each input."""
    few = networks.fewer_rows(SETTINGS.start_rows)
    trial = search = _Search(few, log)
    if few.y.shape[0] < networks.y.shape[0]:
        search = _Search(networks, log)
    start = trial.best_start(trial.common(), importances)
    if trial is not search and explains_nothing(start.value, search.d):
        trial = search
        start = search.best_start(search.common(), importances)
    learned = search.scales(start.scales, math.log(search.size / trial.size))
    return replace(learned, from_importances=start.name == IMPORTANCES)


def explains_nothing(value: float, n_inputs: int) -> bool:
    """Whether a negative log marginal likelihood is about that of a constant function."""
    return value > -SETTINGS.least_gain * n_inputs


def refitted_scales(networks: ProbeNetworks, start: LearnedMap, log: Log) -> LearnedMap:
    """Scales of the inputs of a map, optimised from it for other weights of the rows."""
    return _Search(networks, log).kept_scales(start)


def learned_matrix(networks: ProbeNetworks, scales: LearnedMap, log: Log) -> LearnedMap:
    """A full matrix, from learned scales."""
    return _Search(networks, log).matrix(scales)


class _Start(NamedTuple):
    """A start of the search after a few steps."""

    name: str
    scales: np.ndarray  # (d' + 1,): log scales and log alpha
    value: float  # negative log marginal likelihood, including the prior


class _Search:
    """Optimisations of the marginal likelihood on the same rows."""

    def __init__(self, networks: ProbeNetworks, log: Log) -> None:
        self.networks, self.log = networks, log
        self.d = networks.n_inputs
        self.all_inputs = np.ones(self.d, dtype=bool)
        self.size = networks.feature_size
        if not 0 < self.size < math.inf:
            raise FloatingPointError("the hidden features are constant or not finite")
        self.alpha_bounds = tuple(math.log(bound * self.size) for bound in SETTINGS.alpha_bounds)

    def common(self) -> LearnedMap:
        """One scale for all inputs."""

        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            L = np.full(self.d, math.exp(p[0]))
            value, by_map, by_alpha = self.networks.negative_log_likelihood(L, p[1])
            return value, np.array([by_map @ L, by_alpha])

        start = np.array([0.0, math.log(SETTINGS.alpha_start * self.size)])
        bounds = [SETTINGS.log_scale_bounds]
        p, value = self._minimum(target, start, bounds, SETTINGS.common_steps, "one scale")
        L = np.full(self.d, math.exp(p[0]))
        return LearnedMap("common", np.diag(L), L, p[1], value)

    def best_start(self, common: LearnedMap, importances: np.ndarray | None) -> _Start:
        """Log scales and log alpha after a few steps from each start, the best of them."""
        # If a common scale fits only noise, alpha is so large that gradients vanish.
        log_alpha = min(common.log_alpha, math.log(SETTINGS.alpha_start * self.size))
        common = replace(common, log_alpha=log_alpha)
        starts = {"common scale": np.diag(common.matrix), "gradients": self._by_gradients(common)}
        if importances is not None:
            starts[IMPORTANCES] = self._by_importances(importances, log_alpha)
        results = []
        for name, L in starts.items():
            start, steps = np.append(np.log(L), common.log_alpha), SETTINGS.start_steps
            found = self._best_scales(start, self.all_inputs, steps, f"from {name}")
            results.append(_Start(name, *found))
        return min(results, key=lambda result: result.value)

    def scales(self, start: np.ndarray, more_rows: float) -> LearnedMap:
        """A scale for each input, from a start whose log alpha is shifted by ``more_rows``."""
        low, high = self.alpha_bounds
        start = np.append(start[:-1], np.clip(start[-1] + more_rows, low, high))
        p, value = self._best_scales(start, self.all_inputs, SETTINGS.steps, "scales")
        undropped, kept = np.exp(p[:-1]), self._kept_inputs(p)
        if not np.all(kept):
            name = f"{np.sum(kept)} of {self.d} inputs kept"
            p, value = self._best_scales(p, kept, SETTINGS.steps, name)
        return self._learned(p, value, kept, undropped)

    def kept_scales(self, earlier: LearnedMap) -> LearnedMap:
        """Scales of the inputs that an earlier map keeps, starting from it."""
        kept = np.diag(earlier.matrix) > 0
        start = np.append(np.log(np.where(kept, np.diag(earlier.matrix), 1.0)), earlier.log_alpha)
        p, value = self._best_scales(start, kept, SETTINGS.steps, "scales again")
        return self._learned(p, value, kept, np.where(kept, np.exp(p[:-1]), earlier.undropped))

    def _learned(
        self, p: np.ndarray, value: float, kept: np.ndarray, undropped: np.ndarray
    ) -> LearnedMap:
        return LearnedMap("ard", np.diag(np.exp(p[:-1]) * kept), undropped, p[-1], value)

    def _kept_inputs(self, p: np.ndarray) -> np.ndarray:
        """Inputs after dropping those of smallest scale, at one unit of log likelihood each."""
        order = np.argsort(p[:-1])
        candidates = {}
        for n_dropped in {0, *(int(share * self.d) for share in SETTINGS.dropped_shares)}:
            kept = np.isin(np.arange(self.d), order[n_dropped:])
            value = self.networks.negative_log_likelihood(np.exp(p[:-1]) * kept, p[-1]).value
            candidates[value - n_dropped] = kept
        return candidates[min(candidates)]

    def _best_scales(
        self, start: np.ndarray, kept: np.ndarray, steps: int, name: str
    ) -> tuple[np.ndarray, float]:
        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            theta, L = p[:-1], np.exp(p[:-1]) * kept
            value, by_map, by_alpha = self.networks.negative_log_likelihood(L, p[-1])
            gradient = np.append(by_map * L + kept * _prior_slope(theta), by_alpha)
            return value + _prior(theta[kept]), gradient

        return self._minimum(target, start, [SETTINGS.log_scale_bounds] * self.d, steps, name)

    def matrix(self, scales: LearnedMap) -> LearnedMap:
        """A full matrix diag(e^theta) (I + F), from learned scales."""
        d, eye = self.d, np.eye(self.d)
        kept = np.diag(scales.matrix) > 0

        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            theta, F = p[:d], p[d:-1].reshape(d, d)
            scale = (np.exp(theta) * kept)[:, None]
            L = scale * (eye + F)
            value, by_map, by_alpha = self.networks.negative_log_likelihood(L, p[-1])
            value += _prior(theta) + 0.5 * SETTINGS.mixing_precision * float(np.sum(F**2))
            by_theta = np.sum(by_map * L, axis=1) + _prior_slope(theta)
            by_F = by_map * scale + SETTINGS.mixing_precision * F
            return value, np.concatenate([by_theta, by_F.ravel(), [by_alpha]])

        theta = np.log(np.where(kept, np.diag(scales.matrix), 1.0))
        start = np.concatenate([theta, np.zeros(d * d), [scales.log_alpha]])
        mixing = (-SETTINGS.mixing_bound, SETTINGS.mixing_bound)
        bounds = [SETTINGS.log_scale_bounds] * d + [mixing] * d * d
        p, value = self._minimum(target, start, bounds, SETTINGS.steps, "full map")
        L = (np.exp(p[:d]) * kept)[:, None] * (eye + p[d:-1].reshape(d, d))
        return LearnedMap("full", L, L, p[-1], value)

    def _by_gradients(self, common: LearnedMap) -> np.ndarray:
        """Scales in proportion to the root mean squared derivatives of a refitted prediction."""
        L = np.diag(common.matrix)
        total = np.sum(L**2)
        for _ in range(SETTINGS.gradient_refits):
            size = self.networks.gradient_size(L, common.log_alpha)
            if size is None or not np.sum(size) > 0 or not np.all(np.isfinite(size)):
                break
            L = _proportional(size, total)
        return L

    def _by_importances(self, importances: np.ndarray, log_alpha: float) -> np.ndarray:
        """The best of scales that differ in size and in contrast between the inputs."""
        candidates = {}
        for power in SETTINGS.importance_powers:
            for size in SETTINGS.importance_sizes:
                L = _proportional(importances**power, size * self.d)
                value = self.networks.negative_log_likelihood(L, log_alpha).value
                candidates[value] = L
        return candidates[min(candidates)]

    def _minimum(
        self, target: Any, start: np.ndarray, bounds: list[Any], steps: int, name: str
    ) -> tuple[np.ndarray, float]:
        """Minimiser of the target and its value."""
        result = minimize(
            target,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[*bounds, self.alpha_bounds],
            options={"maxiter": steps, "maxcor": 20, "ftol": SETTINGS.tolerance},
        )
        self.log(
            f"{name}: negative log marginal likelihood {result.fun:.2f} after {result.nfev} "
            "evaluations"
        )
        if not math.isfinite(result.fun):
            raise FloatingPointError(f"the marginal likelihood of {name} is not finite")
        return result.x, float(result.fun)


def _proportional(size: np.ndarray, total: float) -> np.ndarray:
    """Scales (d',) whose squares are in proportion to non-negative sizes and sum to a total."""
    low, high = SETTINGS.log_scale_bounds
    L = np.sqrt(total * (size / np.sum(size) + 1e-6 / len(size)))
    return np.clip(L, math.exp(low), math.exp(high))


def _prior(theta: np.ndarray) -> float:
    return float(np.sum(np.log1p(theta**2)))


def _prior_slope(theta: np.ndarray) -> np.ndarray:
    return 2 * theta / (1 + theta**2)
