"""Intervals for new observations and for the function.

``bounds`` computes bounds from predictions and residuals. For a fit, ``standard_errors`` estimates
the variance of predictions, ``confidence`` the intervals for the function, ``prediction`` those for
new observations, ``kriging`` the same given neighbouring residuals, and ``distribution`` the
predictive distribution, all on the scale of the regression. ``response`` and ``observations`` lead
to that of y.
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
