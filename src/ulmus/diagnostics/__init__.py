"""Diagnostics and the summary of a fit.

``check`` runs the checks of ``checks/`` on ``calibration_data`` (training rows by
``leave_one_out``, or new rows) and returns a report of ``finding``s; ``coverage`` tests counts of
covered rows. ``summary`` computes the fields of a ``summary_value``, those of the target by
``summary_target``, which ``summary_text`` renders; ``target_text`` names targets and their scales.
``baselines`` computes the leave-one-out predictions of simpler models. Findings are data: front
ends render their suggestions. Figures and pages belong to ``plot`` and ``report``.
"""

from ulmus.diagnostics.check import diagnostic_report
from ulmus.diagnostics.finding import CoverageRow, DiagnosticReport, Finding
from ulmus.diagnostics.summary import fit_summary
from ulmus.diagnostics.summary_value import FeatureRelevance, NoiseShare, Summary, VarianceShares

__all__ = [
    "CoverageRow",
    "DiagnosticReport",
    "FeatureRelevance",
    "Finding",
    "NoiseShare",
    "Summary",
    "VarianceShares",
    "diagnostic_report",
    "fit_summary",
]
