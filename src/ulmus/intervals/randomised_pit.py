"""Probability integral transform where single values have a positive probability."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ulmus.core.arrays.backend import FloatArray

# Seed of the draws, which are the same for every table of a size.
SEED = 0
# Probability of a tail below which a value is not told from more extreme ones.
LEAST_TAIL = 1e-16


def uniform_draws(shape: tuple[int, ...]) -> FloatArray:
    """Uniform draws that randomise the PIT values of a table."""
    return np.random.default_rng(SEED).random(shape)


def randomised_pit(distribution: Any, y: FloatArray) -> FloatArray:
    """PIT values of observations y; uniform if the predictive distributions are correct.

    Where y itself has a positive probability, the value is drawn uniformly between the
    probabilities of less than y and of at most y (Czado, Gneiting & Held, 2009). The draws have a
    fixed seed.
    """
    pit = np.asarray(distribution.cdf(y), dtype=float)
    if not hasattr(distribution, "pmf"):
        return pit
    return np.clip(pit - uniform_draws(pit.shape) * distribution.pmf(y), 0.0, 1.0)


def middle_pit(distribution: Any, y: FloatArray) -> FloatArray:
    """The same in the middle between these two probabilities."""
    mass = distribution.pmf(y) if hasattr(distribution, "pmf") else 0.0
    return np.clip(np.asarray(distribution.cdf(y)) - 0.5 * mass, 0.0, 1.0)


def quantile_residuals(pit: FloatArray) -> FloatArray:
    """Normal scores of PIT values (Dunn & Smyth, 1996): standard normal if these are uniform."""
    return special.ndtri(np.clip(pit, LEAST_TAIL, 1.0 - LEAST_TAIL))
