"""Maximisation of the marginal likelihood of a map on the rows of some probe networks.

L-BFGS runs with bounds in the plain parameters, or from a point near the maximum without bounds in
coordinates in which the average information is the identity: the parameters of a map are strongly
correlated, and their curvatures differ by orders of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from ulmus.core.arrays.linalg import eigh
from ulmus.core.input_map.information import information
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
    # Single precision is used from this alpha on, and bounds it there by a quarter.
    single_alpha: float = 2e-5
    # The small network on which starts are compared: rows and units, and both for each input.
    small_rows: int = 500
    small_units: int = 128
    rows_for_input: int = 8
    units_for_input: int = 4
    common_steps: int = 12  # L-BFGS iterations for a common scale
    start_steps: int = 15  # for each start
    small_steps: int = 40  # from the best start
    # The last networks: units for each degree of freedom of the small one, which grows with the
    # number of rows to this power.
    units_for_dof: float = 4.0
    dof_growth: float = 1 / 3
    steps: int = 12
    dropped_steps: int = 6  # after inputs were dropped
    matrix_rows: int = 2000  # rows on which most steps of a full matrix are taken
    matrix_steps: int = 50
    last_matrix_steps: int = 12
    gain: float = 0.1  # gain in log marginal likelihood at which L-BFGS stops
    # Gain in log likelihood over a constant, for each input, below which a start explains nothing.
    least_gain: float = 2.0
    gradient_refits: int = 3  # refits for the start by gradients
    # Squared scales of that start are in proportion to these powers of the importances, and have
    # these means.
    importance_powers: tuple[float, ...] = (1.0, 2.0, 4.0)
    importance_sizes: tuple[float, ...] = (1.0, 4.0)
    # Shares of inputs tried for dropping.
    dropped_shares: tuple[float, ...] = (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9)
    # Least curvature in a coordinate, and most entries whose information is computed.
    least_information: float = 1.0
    most_entries: int = 400


SETTINGS = OptimiserSettings()
# Name of the start from importances in another model.
IMPORTANCES = "importances"

Log = Callable[[str], None]
# Value and gradient at parameters.
Target = Callable[[np.ndarray], tuple[float, np.ndarray]]


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


class Start(NamedTuple):
    """A start of the search after a few steps."""

    name: str
    scales: np.ndarray  # (d' + 1,): log scales and log alpha
    value: float  # negative log marginal likelihood, including the prior


class Search:
    """Optimisations of the marginal likelihood on the same rows."""

    def __init__(self, networks: ProbeNetworks, log: Log, *, log_alpha: float = -math.inf) -> None:
        """Single precision is used where ``log_alpha``, at the start, is large enough for it."""
        self.log, self.d = log, networks.n_inputs
        self.all_inputs = np.ones(self.d, dtype=bool)
        self.size = networks.feature_size
        if not 0 < self.size < math.inf:
            raise FloatingPointError("the hidden features are constant or not finite")
        low, high = SETTINGS.alpha_bounds
        single = log_alpha > math.log(SETTINGS.single_alpha * self.size)
        if single:
            low = SETTINGS.single_alpha / 4
        self.networks = networks.single if single else networks
        self.alpha_bounds = math.log(low * self.size), math.log(high * self.size)

    # ------------------------------------------------------------ scales

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

    def best_start(self, common: LearnedMap, importances: np.ndarray | None) -> Start:
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
            found = self.best_scales(start, self.all_inputs, steps, f"from {name}")
            results.append(Start(name, *found))
        return min(results, key=lambda result: result.value)

    def scales(self, start: np.ndarray) -> LearnedMap:
        """A scale for each input, from a start near the maximum."""
        p, value = self.best_scales(start, self.all_inputs, SETTINGS.steps, "scales", near=True)
        undropped, kept = np.exp(p[:-1]), self._kept_inputs(p)
        if not np.all(kept):
            name, steps = f"{np.sum(kept)} of {self.d} inputs kept", SETTINGS.dropped_steps
            p, value = self.best_scales(p, kept, steps, name, near=True)
        return self._learned(p, value, kept, undropped)

    def kept_scales(self, earlier: LearnedMap) -> LearnedMap:
        """Scales of the inputs that an earlier map keeps, starting from it."""
        kept = np.diag(earlier.matrix) > 0
        start = np.append(np.log(np.where(kept, np.diag(earlier.matrix), 1.0)), earlier.log_alpha)
        p, value = self.best_scales(start, kept, SETTINGS.steps, "scales again", near=True)
        return self._learned(p, value, kept, np.where(kept, np.exp(p[:-1]), earlier.undropped))

    def best_scales(
        self, start: np.ndarray, kept: np.ndarray, steps: int, name: str, *, near: bool = False
    ) -> tuple[np.ndarray, float]:
        """Log scales of the inputs kept and log alpha after a number of steps, and their value."""

        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            theta, L = p[:-1], np.exp(p[:-1]) * kept
            value, by_map, by_alpha = self.networks.negative_log_likelihood(L, p[-1])
            gradient = np.append(by_map * L + kept * _prior_slope(theta), by_alpha)
            return value + _prior(theta[kept]), gradient

        bounds, root = [SETTINGS.log_scale_bounds] * self.d, None
        if near:
            root = self._scale_root(start, kept)
        return self._minimum(target, start, bounds, steps, name, root)

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
            value = self.networks.value(np.exp(p[:-1]) * kept, p[-1])
            candidates[value - n_dropped] = kept
        return candidates[min(candidates)]

    # ------------------------------------------------------------ a full matrix

    def matrix(self, p: np.ndarray, kept: np.ndarray, steps: int) -> tuple[np.ndarray, float]:
        """Parameters (theta, F, log alpha) of the map diag(e^theta) (I + F), and their value.

        They start from p; theta and F have d' and d'^2 entries.
        """
        d = self.d

        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            theta, F = p[:d], p[d:-1].reshape(d, d)
            scale, L = (np.exp(theta) * kept)[:, None], mixed(p, kept)
            value, by_map, by_alpha = self.networks.negative_log_likelihood(L, p[-1])
            value += _prior(theta) + 0.5 * SETTINGS.mixing_precision * float(np.sum(F**2))
            by_theta = np.sum(by_map * L, axis=1) + _prior_slope(theta)
            by_F = by_map * scale + SETTINGS.mixing_precision * F
            return value, np.concatenate([by_theta, by_F.ravel(), [by_alpha]])

        mixing = (-SETTINGS.mixing_bound, SETTINGS.mixing_bound)
        bounds = [SETTINGS.log_scale_bounds] * d + [mixing] * d * d
        return self._minimum(target, p, bounds, steps, "full map", self._matrix_root(p, kept))

    # ------------------------------------------------------------ starts

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
                candidates[self.networks.value(L, log_alpha)] = L
        return candidates[min(candidates)]

    # ------------------------------------------------------------ curvature

    def _few(self) -> tuple[ProbeNetworks, float]:
        """A smaller network for the curvature, and the factor from its rows to all."""
        few = self.networks.smaller(SETTINGS.small_rows, SETTINGS.small_units, 1)
        return few, self.networks.y.shape[0] / few.y.shape[0]

    def _scale_root(self, p: np.ndarray, kept: np.ndarray) -> np.ndarray | None:
        entries = np.repeat(np.flatnonzero(kept)[:, None], 2, axis=1)
        few, factor = self._few()
        log_alpha = p[-1] - math.log(self.networks.n_units / few.n_units)
        found = information(few, np.exp(p[:-1]) * kept, log_alpha, entries, relative=True)
        if found is None:
            return None
        of = [*np.flatnonzero(kept), self.d]
        curvature = factor * found
        curvature[:-1, :-1] += np.diag(_prior_curvature(p[:-1][kept]))
        root = np.zeros((len(p), len(of)))
        root[of] = _inverse_root(curvature)
        return root

    def _matrix_root(self, p: np.ndarray, kept: np.ndarray) -> np.ndarray | None:
        d, rows = self.d, np.flatnonzero(kept)
        if d * len(rows) > SETTINGS.most_entries:
            return None
        entries = np.array([(i, j) for i in rows for j in range(d)])
        few, factor = self._few()
        L, log_alpha = mixed(p, kept), p[-1] - math.log(self.networks.n_units / few.n_units)
        found = information(few, L, log_alpha, entries, relative=False)
        if found is None:
            return None
        # Derivatives of the entries of L by theta and F.
        chain = np.zeros((len(entries) + 1, len(p)))
        for t, (i, j) in enumerate(entries):
            chain[t, i], chain[t, d + i * d + j] = L[i, j], math.exp(p[i])
        chain[-1, -1] = 1.0
        prior = np.zeros(len(p))
        prior[:d], prior[d:-1] = _prior_curvature(p[:d]), SETTINGS.mixing_precision
        return _inverse_root(factor * chain.T @ found @ chain + np.diag(prior))

    # ------------------------------------------------------------ minimisation

    def _minimum(
        self,
        target: Target,
        start: np.ndarray,
        bounds: list[tuple[float, float]],
        steps: int,
        name: str,
        root: np.ndarray | None = None,
    ) -> tuple[np.ndarray, float]:
        """Minimiser of the target and its value; coordinates are those of ``root`` if given."""
        bounds = [*bounds, self.alpha_bounds]
        if root is None:
            options = {"maxiter": steps, "maxcor": 20, "ftol": 5e-6}
            result = minimize(
                target, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
            )
            p, value, n_evaluations = result.x, float(result.fun), result.nfev
        else:
            p, value, n_evaluations = _minimum_near(target, start, np.array(bounds), steps, root)
        self.log(
            f"{name}: negative log marginal likelihood {value:.2f} after {n_evaluations} "
            "evaluations"
        )
        if not math.isfinite(value):
            raise FloatingPointError(f"the marginal likelihood of {name} is not finite")
        return p, value


def _minimum_near(
    target: Target, start: np.ndarray, bounds: np.ndarray, steps: int, root: np.ndarray
) -> tuple[np.ndarray, float, int]:
    """Minimiser of the target, its value and the number of evaluations, by coordinates x.

    The parameters are start + root x, moved to their bounds where they exceed them.
    """
    low, high = bounds.T
    start = np.clip(start, low, high)
    first = target(start)
    slope = root.T @ first[1]
    # The first step of L-BFGS has length one: here it is that of Newton's method.
    root = root * max(float(np.linalg.norm(slope)), 1e-10)

    def whitened(x: np.ndarray) -> tuple[float, np.ndarray]:
        p = start + root @ x
        value, gradient = target(np.clip(p, low, high)) if np.any(x) else first
        if not math.isfinite(value):
            return math.inf, np.zeros(len(x))
        return value, root.T @ np.where((p >= low) & (p <= high), gradient, 0.0)

    options = {"maxiter": steps, "maxcor": 20, "ftol": SETTINGS.gain / max(1.0, abs(first[0]))}
    result = minimize(
        whitened, np.zeros(root.shape[1]), jac=True, method="L-BFGS-B", options=options
    )
    return np.clip(start + root @ result.x, low, high), float(result.fun), result.nfev


def mixed(p: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The map diag(e^theta) (I + F) of parameters (theta, F, log alpha) with rows of inputs kept."""
    d = len(kept)
    return (np.exp(p[:d]) * kept)[:, None] * (np.eye(d) + p[d:-1].reshape(d, d))


def _inverse_root(curvature: np.ndarray) -> np.ndarray:
    """Root of the inverse of a curvature (T, T), whose eigenvalues are bounded below."""
    values, vectors = eigh(0.5 * (curvature + curvature.T))
    return vectors / np.sqrt(np.maximum(values, 0) + SETTINGS.least_information)


def _proportional(size: np.ndarray, total: float) -> np.ndarray:
    """Scales (d',) whose squares are in proportion to non-negative sizes and sum to a total."""
    low, high = SETTINGS.log_scale_bounds
    L = np.sqrt(total * (size / np.sum(size) + 1e-6 / len(size)))
    return np.clip(L, math.exp(low), math.exp(high))


def _prior(theta: np.ndarray) -> float:
    return float(np.sum(np.log1p(theta**2)))


def _prior_slope(theta: np.ndarray) -> np.ndarray:
    return 2 * theta / (1 + theta**2)


def _prior_curvature(theta: np.ndarray) -> np.ndarray:
    """Second derivatives of the negative log prior, zero where negative."""
    return np.maximum(0.0, 2 * (1 - theta**2) / (1 + theta**2) ** 2)
