"""A root of the quadratic spectral kernel, by its frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import roots_legendre

from ulmus.core.arrays.backend import Array, like, row_blocks
from ulmus.core.noise_covariance.errors import covariance_error
from ulmus.core.noise_covariance.recursions import require_rows
from ulmus.core.noise_covariance.roots import Running, in_one_block, require_positive
from ulmus.messages import Setting

# Nodes of a quadrature rule, and the angle over which it is exact to round-off.
NODES, NODES_ANGLE = 64, 160.0


@dataclass(frozen=True)
class QuadraticSpectralRoot:
    r"""The kernel of Andrews (1991) for one series, regular or not.

    Its spectral density is a parabola up to a highest frequency,

    .. math:: k(dt) = \int_0^1 \tfrac32 (1 - u^2) \cos(\omega u \, dt)\, du, \qquad
              \omega = \frac{6 \pi}{5 \, \mathrm{bandwidth}},

    and Gauss-Legendre quadrature, exact to round-off here, has positive weights: the columns of the
    root are a cosine and a sine for each node.
    """

    time: np.ndarray  # (n,): times
    bandwidth: float  # bandwidth, in the unit of the times

    def __post_init__(self) -> None:
        """Raise an error for a bandwidth far below the time step."""
        require_positive("bandwidth", self.bandwidth)
        # More than 20 frequencies per row.
        if self._n_panels * NODES > 20 * len(self.time) + NODES:
            raise covariance_error(
                "bandwidth",
                "is far below the time step, which implies independent noise",
                "use a larger bandwidth",
                Setting("noise", "homoskedastic"),
                parameter="bandwidth",
                value=float(f"{self.bandwidth:.3g}"),
            )

    @property
    def _highest(self) -> float:
        """The highest frequency."""
        return 6 * np.pi / (5 * self.bandwidth)

    @property
    def _n_panels(self) -> float:
        """Number of frequency intervals, each with a quadrature rule."""
        return max(1.0, float(np.ceil(self._highest * np.ptp(self.time) / NODES_ANGLE)))

    @cached_property
    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Angular frequencies and square roots of their weights."""
        n_panels = int(self._n_panels)
        node, weight = roots_legendre(NODES)
        u = (np.arange(n_panels)[:, None] + (node + 1) / 2).ravel() / n_panels
        return self._highest * u, np.sqrt(0.75 / n_panels * np.tile(weight, n_panels) * (1 - u**2))

    def columns(self, rows: slice) -> np.ndarray:
        """Rows of L, shape (b, n')."""
        frequency, root_weight = self._nodes
        angle = (self.time[rows] - self.time[0])[:, None] * frequency
        return np.hstack([root_weight * np.cos(angle), root_weight * np.sin(angle)])

    def applied(self, t: Array) -> Array:
        """t L for t (..., n), shape (..., n')."""
        return in_one_block(self, t, len(self.time))

    def running(self) -> Running:
        """Cumulative sums for each frequency."""
        return _RunningFrequencies(self)


class _RunningFrequencies:
    def __init__(self, root: QuadraticSpectralRoot) -> None:
        self._root, self._n_rows = root, 0
        self._sums: Array | None = None

    def add(self, t: Array) -> Array:
        start, self._n_rows = self._n_rows, self._n_rows + t.shape[-1]
        require_rows(self._n_rows, len(self._root.time))
        width = 2 * len(self._root._nodes[0])
        for rows in row_blocks(t.shape[-1], width):
            L = self._root.columns(slice(start + rows.start, start + rows.stop))
            part = t[..., rows] @ like(L, t)
            self._sums = part if self._sums is None else self._sums + part
        return t[..., :0]

    def last(self) -> Array | None:
        return self._sums
