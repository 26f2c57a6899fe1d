"""Suggestions that several checks share."""

from __future__ import annotations

import numpy as np

from ulmus.core.fit.fit import Fit
from ulmus.messages import Setting

MORE_NEURONS = Setting("n_neurons", phrase="use a larger {}")
ANOTHER_MAP = Setting("input_map", phrase="use another {}")


def alpha_deviation(fit: Fit) -> np.ndarray:
    """Standard deviations of the logarithms of alpha, zero where it was given, shape (K,)."""
    return fit.per_regression(lambda part: part.alpha_deviation)


def select_alpha(fit: Fit) -> tuple[Setting, ...]:
    """To select alpha, where it was given."""
    return () if np.all(alpha_deviation(fit)) else (Setting("alpha", "loo"),)
