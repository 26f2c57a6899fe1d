"""What a fit says about its own honesty: findings with a light each, in one report.

``report.py`` holds the values, ``evidence.py`` the rows that are looked at and whether intervals
covered them, ``coverage.py`` what that says about coverage, ``signs.py`` all other signs, and
``checks.py`` puts them together.
"""

from ulmus.honesty.checks import honesty_report
from ulmus.honesty.report import CoverageRow, Finding, HonestyReport

__all__ = ["CoverageRow", "Finding", "HonestyReport", "honesty_report"]
