"""Settings of the search of a map, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class OptimiserSettings:
    """Bounds, priors and steps of the search, as measured in benchmarks/maps.py."""

    log_scale_bounds: tuple[float, float] = (-6.0, 5.0)  # bounds of log scales
    mixing_bound: float = 4.0  # bound of entries that mix inputs
    mixing_precision: float = 30.0  # prior precision of these entries
    # Bounds and start of alpha, relative to the mean sum of squares of a feature.
    alpha_bounds: tuple[float, float] = (1e-7, 100.0)
    # Lower bound with a full matrix, which could otherwise make inputs so small that units are
    # linear in them, and of alpha in second derivatives, whose round-off is about 1e-16 / alpha.
    resolved_alpha: float = 1e-6
    alpha_start: float = 1e-2
    # Single precision is used from this alpha on, a quarter of which is its bound there, and from
    # this number of rows times units.
    single_alpha: float = 2e-5
    single_size: int = 2**16
    # The small network on which starts are compared: rows and units, and both for each input.
    small_rows: int = 1000
    small_units: int = 128
    rows_for_input: int = 8
    units_for_input: int = 2
    # Logarithms of the common scales that are compared, and number of values of alpha.
    common_scales: tuple[float, ...] = (-3.0, -2.0, -1.25, -0.5, 0.25, 1.0, 2.0)
    compared_alphas: int = 40
    # Scales of functions of one input that are compared, and the units of their network.
    single_scales: tuple[float, ...] = (1.0, 4.0)
    single_units: int = 32
    start_steps: int = 15  # for each start
    # Largest log scale in steps from a common scale: longer ones may leap over a maximum.
    reach: float = 3.0
    small_steps: int = 40  # from the best starts
    # Degrees of freedom, as a share of the units, from which the small network is doubled: where
    # starts agree, and where they end at different values.
    saturation: tuple[float, float] = (0.7, 0.5)
    # The last networks: units for each degree of freedom of the small one, which grows with the
    # number of rows to this power.
    units_for_dof: float = 4.0
    dof_growth: float = 1 / 3
    steps: int = 50
    dropped_steps: int = 25  # after inputs were dropped
    matrix_rows: int = 2000  # rows on which most steps of a full matrix are taken
    matrix_steps: int = 60
    last_matrix_steps: int = 25
    # Gain in log marginal likelihood at which L-BFGS stops near the maximum, and the relative gain
    # elsewhere.
    gain: float = 0.1
    far_tolerance: float = 5e-6
    # Gain in log likelihood over a constant, for each input, below which a start explains nothing.
    least_gain: float = 2.0
    gradient_refits: int = 3  # refits for the start by gradients
    larger_scale: float = 3.0  # ratio to the common scale of the start with larger scales
    # Squared scales of starts by importances: their powers of the importances, and their means.
    importance_starts: tuple[tuple[float, float], ...] = ((1.0, 4.0), (1.0, 1.0), (2.0, 4.0))
    # Two starts whose values differ by no more are taken to end at the same maximum.
    agreement: float = 1.0
    # Importances are required where another start gains less than this share of the best one.
    required_share: float = 0.8
    # Curvature is computed on so many rows, by a network of so many units.
    curvature_rows: int = 500
    curvature_units: int = 128
    # Shares of inputs tried for dropping.
    dropped_shares: tuple[float, ...] = (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9)
    # Least curvature in a coordinate, and most entries whose information is computed.
    least_information: float = 1.0
    most_entries: int = 400


SETTINGS = OptimiserSettings()
Log = Callable[[str], None]


@dataclass(frozen=True)
class LearnedMap:
    """A map of the inputs with its marginal likelihood."""

    # ``"ard"`` for a scale for each input, or ``"full"``.
    structure: str
    matrix: np.ndarray  # (d', d'): the map L: hidden units are functions of z L
    undropped: np.ndarray  # (d',): the map, or its diagonal, before inputs were dropped
    log_alpha: float  # logarithm of the ridge parameter at the optimum
    value: float  # negative log marginal likelihood, including the prior
    from_importances: bool = False  # whether only importances in another model were a good start


def explains_nothing(value: float, n_inputs: int) -> bool:
    """Whether a negative log marginal likelihood is about that of a constant function."""
    return value > -SETTINGS.least_gain * n_inputs
