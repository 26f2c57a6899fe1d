"""The values that a check returns: findings, a table of coverages, and the report of both."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

# Lights from best to worst, with the mark that each has in a text.
MARKS = {"green": "[ok]", "yellow": "[??]", "red": "[!!]"}
WIDTH = 100


class Finding(NamedTuple):
    """One thing that was looked at.

    Parameters
    ----------
    name : str
        What was looked at, with the output if there are several.
    light : {"green", "yellow", "red"}
        How it looks.
    statistic : float
        The number that decided.
    says : str
        A sentence with the numbers.
    remedy : str
        What to do about it; empty if green.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(100, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> findings = {finding.name: finding for finding in model.check().findings}
    >>> findings["members"].light
    'yellow'
    >>> "n_estimators" in findings["members"].remedy
    True
    """

    name: str
    light: str
    statistic: float
    says: str
    remedy: str = ""


class CoverageRow(NamedTuple):
    """How often intervals of a level covered the rows of a group.

    Parameters
    ----------
    group : str
        ``"all"``, or what the rows have in common.
    level : float
        Level of the intervals.
    n : int
        Rows of the group.
    coverage : float
        Share of them inside their intervals.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(100, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> row = model.check().coverage[0]
    >>> row.group, row.level, row.n
    ('all', 0.5, 100)
    """

    group: str
    level: float
    n: int
    coverage: float


@dataclass(frozen=True)
class DiagnosticReport:
    """Findings about a fit.

    Parameters
    ----------
    title : str
        What was looked at, in a sentence.
    findings : tuple of Finding
        One for each thing that was looked at.
    coverage : tuple of CoverageRow
        How often prediction intervals covered the rows of each group.

    See Also
    --------
    ulmus.ELMEnsembleRegressor.check : Makes one.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(100, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> report = model.check()
    >>> print(str(report).splitlines()[0])
    [??] yellow: a check of the fit by 100 left-out training rows.
    >>> report.to_frame().columns.to_list()
    ['name', 'light', 'statistic', 'says', 'remedy']
    """

    title: str
    findings: tuple[Finding, ...]
    coverage: tuple[CoverageRow, ...]

    @property
    def light(self) -> str:
        """The worst light of all findings."""
        return max((f.light for f in self.findings), key=list(MARKS).index, default="green")

    def __str__(self) -> str:
        width = max((len(f.name) for f in self.findings), default=0)
        lines = [f"{MARKS[self.light]} {self.light}: {self.title}"]
        for finding in self.findings:
            lead = f"{MARKS[finding.light]} {finding.name:<{width}}  "
            lines += hanging(lead, finding.says)
            if finding.remedy:
                lines += hanging(" " * len(lead) + "-> ", finding.remedy)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A plain table for notebooks."""
        head = "".join(f"<th>{name}</th>" for name in ("", "finding", "says", "remedy"))
        rows = [
            "".join(f"<td>{escape(text)}</td>" for text in (f.light, f.name, f.says, f.remedy))
            for f in self.findings
        ]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        title = escape(f"{self.light}: {self.title}")
        return f"<table><caption>{title}</caption><tr>{head}</tr>{body}</table>"

    def to_frame(self) -> Any:
        """The findings as a table.

        Returns
        -------
        frame : pandas.DataFrame or numpy.recarray
            One row for each finding, with the fields of :class:`Finding` as columns. A record
            array if pandas is not installed.
        """
        columns = {
            name: [getattr(finding, name) for finding in self.findings] for name in Finding._fields
        }
        try:
            import pandas as pd
        except ImportError:
            table: Any = np.rec
            return table.fromarrays([np.array(c) for c in columns.values()], names=list(columns))
        return pd.DataFrame(columns)


def hanging(lead: str, text: str) -> list[str]:
    """Lines of a text after a lead, under which they are indented."""
    lines = wrap(text, max(WIDTH - len(lead), 40)) or [""]
    return [lead + lines[0], *(" " * len(lead) + line for line in lines[1:])]
