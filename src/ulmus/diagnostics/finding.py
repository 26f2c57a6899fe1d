"""What diagnostics return: findings, coverages of groups of rows, and the report of both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

from ulmus.messages import Dialect, Setting, clauses, joined, python

# From best to worst.
SEVERITIES = ("ok", "warning", "error")
# Subjects of findings; a section of the HTML report lists the findings of one or more of them.
TOPICS = ("calibration", "correlation", "fit", "inputs", "size", "warnings")
WIDTH = 100
# Name and topic of every check by its code.
CHECKS = {
    "coverage": ("coverage", "calibration"),
    "coverage-by-noise": ("coverage by noise", "calibration"),
    "coverage-by-leverage": ("coverage by leverage", "calibration"),
    "coverage-by-group": ("coverage by group", "calibration"),
    "coverage-by-input": ("coverage by input", "calibration"),
    "error-scale": ("error scale by input", "calibration"),
    "predictive-distribution": ("predictive distribution", "calibration"),
    "residual-distribution": ("residual distribution", "calibration"),
    "residual-correlation": ("residual correlation", "correlation"),
    "residual-periodicity": ("residual periodicity", "correlation"),
    "target": ("target", "fit"),
    "target-scale": ("target scale", "fit"),
    "misfit": ("misfit", "fit"),
    "step": ("step", "fit"),
    "bias": ("bias", "fit"),
    "hidden-units": ("hidden units", "fit"),
    "leverage": ("leverage", "inputs"),
    "duplicate-rows": ("duplicate rows", "inputs"),
    "extrapolation": ("extrapolation", "inputs"),
    "sample-weight": ("sample weights", "calibration"),
    "rows": ("rows", "size"),
    "members": ("members", "size"),
    "selection": ("model selection", "size"),
    "prediction-warning": ("warning", "warnings"),
}


class Finding(NamedTuple):
    """The result of one check.

    Parameters
    ----------
    name : str
        Name of the check, with the output if there are several.
    code : str
        Identifier of the check, the same for all outputs.
    topic : str
        Subject of the check: ``"calibration"``, ``"correlation"``, ``"fit"``, ``"inputs"``,
        ``"size"`` or ``"warnings"``.
    severity : {"ok", "warning", "error"}
        Severity of the result.
    statistic : float
        The number that determines the severity.
    message : str
        The result in a sentence, followed by what it implies unless it is ok.
    suggestions : tuple of str and Setting
        Alternatives, each a clause or a parameter to set; empty if ok.
    limit : str
        From which statistic on the result is a warning, where the check has a threshold.

    Examples
    --------
    >>> from ulmus.diagnostics import Finding
    >>> found = Finding("rows", "rows", "size", "warning", 2.5, "30 rows.", ("add rows",))
    >>> found.severity, found.suggestion
    ('warning', 'add rows.')
    """

    name: str
    code: str
    topic: str
    severity: str
    statistic: float
    message: str
    suggestions: tuple[str | Setting, ...] = ()
    limit: str = ""

    @property
    def suggestion(self) -> str:
        """The suggestions in a sentence with Python's names of parameters; empty if ok."""
        return self.suggestion_in(python)

    def suggestion_in(self, dialect: Dialect) -> str:
        """The suggestions that exist in a dialect, in a sentence; empty if there are none."""
        sentence = joined(clauses(self.suggestions, dialect))
        return f"{sentence}." if sentence else ""

    def to_dict(self, dialect: Dialect = python) -> dict[str, Any]:
        """The fields with the suggestions as a sentence."""
        fields = self._asdict()
        fields.pop("suggestions")
        return fields | {"suggestion": self.suggestion_in(dialect)}


def finding(
    code: str,
    severity: str,
    statistic: float,
    message: str,
    implication: str = "",
    suggestions: tuple[str | Setting, ...] = (),
    limit: str = "",
) -> Finding:
    """The finding of a registered check; implication and suggestions count only if it is not ok."""
    name, topic = CHECKS[code]
    if severity == "ok":
        return Finding(name, code, topic, severity, statistic, message, limit=limit)
    text = f"{message} {implication}" if implication else message
    return Finding(name, code, topic, severity, statistic, text, suggestions, limit)


class CoverageRow(NamedTuple):
    """Empirical coverage of prediction intervals in a group of rows.

    Parameters
    ----------
    group : str
        ``"all"``, or the definition of the group.
    level : float
        Nominal level of the intervals.
    n : int
        Rows of the group.
    coverage : float
        Share of them inside their intervals.

    Examples
    --------
    >>> from ulmus.diagnostics import CoverageRow
    >>> row = CoverageRow("all", level=0.9, n=200, coverage=0.92)
    >>> f"{row.coverage:.0%} of {row.n} rows"
    '92% of 200 rows'
    """

    group: str
    level: float
    n: int
    coverage: float


@dataclass(frozen=True)
class DiagnosticReport:
    """Diagnostics of a fit, as returned by :meth:`ulmus.ELMEnsembleRegressor.check`.

    Parameters
    ----------
    title : str
        The rows that the diagnostics are computed from.
    findings : tuple of Finding
        One for each check.
    coverage : tuple of CoverageRow
        Coverage of prediction intervals, of all rows and by group.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> report = model.check()
    >>> report.title
    'diagnostics from 60 training rows, leave-one-out.'
    >>> report.to_frame().columns.to_list()
    ['name', 'code', 'topic', 'severity', 'statistic', 'message', 'suggestion']
    """

    title: str
    findings: tuple[Finding, ...]
    coverage: tuple[CoverageRow, ...]

    @property
    def severity(self) -> str:
        """The worst severity of all findings."""
        return worst(f.severity for f in self.findings)

    def about(self, *topics: str) -> tuple[Finding, ...]:
        """The findings of some topics of :class:`Finding`, in the order of the report."""
        return tuple(f for f in self.findings if f.topic in topics)

    def format(self, dialect: Dialect = python) -> str:
        """The report as text: an aligned entry for each finding.

        Parameters
        ----------
        dialect : callable, default=ulmus.messages.python
            Renders the parameters of suggestions; see ``ulmus.messages``.
        """
        width = max((len(f.name) for f in self.findings), default=0)
        lines = [f"{mark(self.severity)} {self.title}"]
        for one in self.findings:
            lead = f"{mark(one.severity):<9} {one.name:<{width}}  "
            lines += hanging(lead, one.message)
            suggestion = one.suggestion_in(dialect)
            if suggestion:
                lines += hanging(" " * len(lead) + "-> ", suggestion)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.format()

    def _repr_html_(self) -> str:
        """A plain table for notebooks."""
        names = ("severity", "name", "message", "suggestion")
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = [
            "".join(f"<td>{escape(getattr(one, name))}</td>" for name in names)
            for one in self.findings
        ]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        title = escape(f"{mark(self.severity)} {self.title}")
        return f"<table><caption>{title}</caption><tr>{head}</tr>{body}</table>"

    def to_frame(self) -> Any:
        """The findings as a data frame, or as a record array if pandas is not installed.

        Columns are the fields of :class:`Finding` but the limit, with the suggestions as text.
        """
        names = (*Finding._fields[:-2], "suggestion")
        columns = {name: [getattr(one, name) for one in self.findings] for name in names}
        try:
            import pandas as pd
        except ImportError:
            table: Any = np.rec
            return table.fromarrays([np.array(c) for c in columns.values()], names=list(columns))
        return pd.DataFrame(columns)


def worst(severities: Iterable[str]) -> str:
    """The worst of some severities; ok if there are none."""
    return max(severities, key=SEVERITIES.index, default="ok")


def mark(severity: str) -> str:
    """A severity as the mark of a line of text."""
    return f"[{severity}]"


def hanging(lead: str, text: str) -> list[str]:
    """Lines of a text after a lead, under which they are indented."""
    lines = wrap(text, max(WIDTH - len(lead), 40)) or [""]
    return [lead + lines[0], *(" " * len(lead) + line for line in lines[1:])]
