"""Missing values of every library: None, NaN, NaT and NA."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_missing(value: Any) -> bool:
    """Whether a scalar is None, NaN, NaT or NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # a comparison with NA of pandas is NA, which has no boolean
        return True


def missing_mask(values: np.ndarray) -> np.ndarray:
    """Boolean array of the shape of ``values``: which of them are missing."""
    if values.dtype.kind != "O":
        return np.asarray(values != values)
    flat = [is_missing(value) for value in values.flat]
    return np.array(flat, dtype=bool).reshape(values.shape)
