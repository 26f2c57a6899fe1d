"""Intervals: bounds from predictions (``bounds.py``), and those of a fit (``of_fit.py``)."""

from ulmus.intervals.bounds import (
    conformal_bounds,
    conformal_ranks,
    is_skewed,
    normal_bounds,
    satterthwaite_dof,
)

__all__ = [
    "conformal_bounds",
    "conformal_ranks",
    "is_skewed",
    "normal_bounds",
    "satterthwaite_dof",
]
