"""Maximisation of the marginal likelihood of a map on the rows of some probe networks.

L-BFGS runs with bounds in the plain parameters, or from a point near the maximum without bounds in
coordinates in which the average information is the identity: the parameters of a map are strongly
correlated, and their curvatures differ by orders of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from ulmus.core.arrays.linalg import eigh
from ulmus.core.input_map.information import information
from ulmus.core.input_map.marginal_likelihood import ProbeNetworks
from ulmus.core.input_map.settings import SETTINGS, LearnedMap, Log

# Value and gradient at parameters.
Target = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Search:
    """Optimisations of the marginal likelihood on the same rows."""

    def __init__(
        self,
        networks: ProbeNetworks,
        log: Log,
        *,
        log_alpha: float = -math.inf,
        least_alpha: float = SETTINGS.alpha_bounds[0],
    ) -> None:
        """Single precision is used for many features where ``log_alpha`` at the start allows it.

        If it is infinite, single precision is accurate enough for the scales that are wanted.
        """
        self.log, self.d = log, networks.n_inputs
        self.all_inputs = np.ones(self.d, dtype=bool)
        self.size = networks.feature_size
        if not 0 < self.size < math.inf:
            raise FloatingPointError("the hidden features are constant or not finite")
        low, high = least_alpha, SETTINGS.alpha_bounds[1]
        single = networks.y.shape[0] * networks.n_units > SETTINGS.single_size
        single &= log_alpha > math.log(SETTINGS.single_alpha * self.size)
        if single:
            low = SETTINGS.single_alpha / 4
        self.networks = networks.single if single else networks
        self.alpha_bounds = math.log(low * self.size), math.log(high * self.size)

    # ------------------------------------------------------------ scales

    def common(self) -> tuple[float, float]:
        """The best of some common scales for all inputs, and log alpha."""
        scales = np.exp(np.array(SETTINGS.common_scales))
        maps = (np.full(self.d, scale) for scale in scales)
        values = np.array([self.networks.profile(L, self.log_alphas) for L in maps])
        i, j = np.unravel_index(np.argmin(values), values.shape)
        self.log(f"one scale: negative log marginal likelihood {values[i, j]:.2f}")
        return float(scales[i]), float(self.log_alphas[j])

    @property
    def log_alphas(self) -> np.ndarray:
        """Values of log alpha that are compared."""
        return np.linspace(*self.alpha_bounds, SETTINGS.compared_alphas)

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
        self,
        start: np.ndarray,
        kept: np.ndarray,
        steps: int,
        name: str,
        *,
        near: bool = False,
        most: float = math.inf,
    ) -> tuple[np.ndarray, float]:
        """Log scales of the inputs kept and log alpha after a number of steps, and their value.

        ``near`` says that the start is near the maximum; ``most`` is an upper bound of log scales.
        """

        def target(p: np.ndarray) -> tuple[float, np.ndarray]:
            theta, L = p[:-1], np.exp(p[:-1]) * kept
            value, by_map, by_alpha = self.networks.negative_log_likelihood(L, p[-1])
            gradient = np.append(by_map * L + kept * _prior_slope(theta), by_alpha)
            return value + _prior(theta[kept]), gradient

        low, high = SETTINGS.log_scale_bounds
        bounds = [(low, min(high, most))] * self.d
        root = self._scale_root(start, kept) if near else None
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

    # ------------------------------------------------------------ curvature

    def _scale_root(self, p: np.ndarray, kept: np.ndarray) -> np.ndarray | None:
        entries = np.repeat(np.flatnonzero(kept)[:, None], 2, axis=1)
        few, log_alpha, factor = for_curvature(self.networks, p[-1])
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
        L, (few, log_alpha, factor) = mixed(p, kept), for_curvature(self.networks, p[-1])
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
        """Minimiser of the target and its value; coordinates are those of a root if given."""
        limits = np.array([*bounds, self.alpha_bounds])
        if root is None:
            p, value, n_evaluations = _minimum_far(target, start, limits, steps)
        else:
            p, value, n_evaluations = _minimum_near(target, start, limits, steps, root)
        self.log(
            f"{name}: negative log marginal likelihood {value:.2f} after {n_evaluations} "
            "evaluations"
        )
        if not math.isfinite(value):
            raise FloatingPointError(f"the marginal likelihood of {name} is not finite")
        return p, value


def scales_value(networks: ProbeNetworks, p: np.ndarray) -> float:
    """Criterion of log scales and log alpha (d' + 1,) by some networks."""
    return networks.value(np.exp(p[:-1]), p[-1]) + _prior(p[:-1])


def for_curvature(networks: ProbeNetworks, log_alpha: float) -> tuple[ProbeNetworks, float, float]:
    """A smaller network for curvatures, its log alpha, and the factor from its rows to all."""
    few = networks.smaller(SETTINGS.curvature_rows, SETTINGS.curvature_units, 1)
    log_alpha += math.log(few.n_units / networks.n_units)
    return few, log_alpha, float(networks.y.shape[0] / few.y.shape[0])


def _minimum_far(
    target: Target, start: np.ndarray, bounds: np.ndarray, steps: int
) -> tuple[np.ndarray, float, int]:
    """Minimiser of the target, its value and the number of evaluations, from any start."""
    most = bounds[-1, 1]

    def bounded(p: np.ndarray) -> tuple[float, np.ndarray]:
        """The target with log alpha moved to its upper bound where it exceeds it."""
        value, gradient = target(np.append(p[:-1], min(p[-1], most)))
        return value, gradient if p[-1] <= most else np.append(gradient[:-1], 0.0)

    # With two bounds on every parameter, L-BFGS begins with a step to a corner of the bounds, with
    # an unbounded one by a step of length one.
    limits = [*bounds[:-1].tolist(), (bounds[-1, 0], None)]
    options = {"maxiter": steps, "maxcor": 20, "ftol": SETTINGS.far_tolerance}
    method, start = "L-BFGS-B", start.copy()
    while True:
        result = minimize(bounded, start, jac=True, method=method, bounds=limits, options=options)
        if math.isfinite(result.fun) or start[-1] >= most:
            return np.append(result.x[:-1], min(result.x[-1], most)), result.fun, result.nfev
        # G is not positive definite at the start: a larger alpha.
        start[-1] = max(start[-1], bounds[-1, 0]) + math.log(10)


def _minimum_near(
    target: Target, start: np.ndarray, bounds: np.ndarray, steps: int, root: np.ndarray
) -> tuple[np.ndarray, float, int]:
    """The same from a start near the minimum, by coordinates x.

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
    """The map diag(e^theta) (I + F) of parameters (theta, F, log alpha) and inputs kept."""
    d = len(kept)
    return (np.exp(p[:d]) * kept)[:, None] * (np.eye(d) + p[d:-1].reshape(d, d))


def _inverse_root(curvature: np.ndarray) -> np.ndarray:
    """Root of the inverse of a curvature (T, T), whose eigenvalues are bounded below."""
    values, vectors = eigh(0.5 * (curvature + curvature.T))
    return vectors / np.sqrt(np.maximum(values, 0) + SETTINGS.least_information)


def _prior(theta: np.ndarray) -> float:
    return float(np.sum(np.log1p(theta**2)))


def _prior_slope(theta: np.ndarray) -> np.ndarray:
    return 2 * theta / (1 + theta**2)


def _prior_curvature(theta: np.ndarray) -> np.ndarray:
    """Second derivatives of the negative log prior, zero where negative."""
    return np.maximum(0.0, 2 * (1 - theta**2) / (1 + theta**2) ** 2)
