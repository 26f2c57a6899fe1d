"""Intervals: bounds from predictions (``bounds.py``), and those of a fit.

``prediction.py`` is for new observations, ``confidence.py`` for values of a function,
``standard_errors.py`` the variance of the prediction that both use. ``distribution.py`` is the
predictive distribution, and ``shortest.py`` tells which of its intervals are the shortest.
"""

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
