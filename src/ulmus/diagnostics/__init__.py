"""What a fit says about itself: findings about its honesty with a light each, and a summary.

``report.py`` holds the values, ``evidence.py`` the rows that are looked at and whether intervals
covered them, ``coverage.py`` what that says about coverage, ``signs.py`` all other signs, and
``checks.py`` puts them together. ``summary.py`` says what was fitted, and ``summary_value.py``
holds its numbers and words.
"""

from ulmus.diagnostics.check import diagnostic_report
from ulmus.diagnostics.finding import CoverageRow, DiagnosticReport, Finding
from ulmus.diagnostics.summary import fit_summary
from ulmus.diagnostics.summary_value import Relevance, Summary, VarianceShares

__all__ = [
    "CoverageRow",
    "DiagnosticReport",
    "Finding",
    "Relevance",
    "Summary",
    "VarianceShares",
    "diagnostic_report",
    "fit_summary",
]
