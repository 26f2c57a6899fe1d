r"""Scores of probabilistic predictions: coverage, width, proper scores and calibration.

A prediction has one of three forms, which determine the arguments of a function. For a
target of shape (n,), or (n, K) with K outputs:

=========  =====================================  ============================================
form       arguments                              shapes
=========  =====================================  ============================================
intervals  ``intervals, confidence_level``        (n, 2) and a float, or (n, 2, k) and (k,);
                                                  (n, K, 2) or (n, K, 2, k) with K outputs
quantiles  ``quantile_predictions, quantiles``    (n, q) or (n, K, q), and (q,)
normal     ``mean, std``                          (n,) or (n, K) each; ``std`` may be a float
=========  =====================================  ============================================

:func:`normal_intervals`, :func:`quantile_intervals`, :func:`interval_quantiles` and
:func:`quantile_normal` convert one form to another, as in
``crps_quantiles(y, *interval_quantiles(intervals, levels))``. Scores are averages over rows,
weighted by an optional ``sample_weight`` of shape (n,), and then over outputs. Titles of the
references are in the bibliography (:doc:`/reference/bibliography`).
"""

from ulmus.metrics._conversions import (
    CentralIntervals,
    NormalPrediction,
    QuantilePrediction,
    interval_quantiles,
    normal_intervals,
    quantile_intervals,
    quantile_normal,
)
from ulmus.metrics._intervals import (
    GroupCoverage,
    calibration_error,
    coverage,
    coverage_by_group,
    interval_score,
    mean_width,
    quantile_groups,
)
from ulmus.metrics._normal import crps_normal, log_score, pit_normal
from ulmus.metrics._quantiles import crps_quantiles, pit_quantiles

__all__ = [
    "CentralIntervals",
    "GroupCoverage",
    "NormalPrediction",
    "QuantilePrediction",
    "calibration_error",
    "coverage",
    "coverage_by_group",
    "crps_normal",
    "crps_quantiles",
    "interval_quantiles",
    "interval_score",
    "log_score",
    "mean_width",
    "normal_intervals",
    "pit_normal",
    "pit_quantiles",
    "quantile_groups",
    "quantile_intervals",
    "quantile_normal",
]
