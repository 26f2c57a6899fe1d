"""Diagnostics and the summary of a fit.

``check`` runs the checks of ``checks/`` on ``calibration_data`` (training rows, leave-one-out, or
new rows) and returns a report of ``finding``s; ``coverage`` tests counts of covered rows.
``summary`` computes the numbers of a ``summary_value``, and ``baselines`` the leave-one-out errors
of simpler models. Findings are data: front ends render their suggestions. Plots and pages are
elsewhere.
"""

from ulmus.diagnostics.check import diagnostic_report
from ulmus.diagnostics.finding import CoverageRow, DiagnosticReport, Finding
from ulmus.diagnostics.summary import fit_summary
from ulmus.diagnostics.summary_value import FeatureRelevance, Summary, VarianceShares

__all__ = [
    "CoverageRow",
    "DiagnosticReport",
    "FeatureRelevance",
    "Finding",
    "Summary",
    "VarianceShares",
    "diagnostic_report",
    "fit_summary",
]
