"""What a fit says about itself: findings about its honesty with a light each, and a summary.

``report.py`` holds the values, ``evidence.py`` the rows that are looked at and whether intervals
covered them, ``coverage.py`` what that says about coverage, ``signs.py`` all other signs, and
``checks.py`` puts them together. ``summary.py`` says what was fitted, and ``summary_value.py``
holds its numbers and words.
"""

from ulmus.honesty.checks import honesty_report
from ulmus.honesty.report import CoverageRow, Finding, HonestyReport
from ulmus.honesty.summary import fit_summary
from ulmus.honesty.summary_value import Relevance, Summary, VarianceShares

__all__ = [
    "CoverageRow",
    "Finding",
    "HonestyReport",
    "Relevance",
    "Summary",
    "VarianceShares",
    "fit_summary",
    "honesty_report",
]
