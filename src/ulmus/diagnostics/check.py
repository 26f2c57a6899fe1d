"""The report about a fit, from all findings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import Array
from ulmus.core.fit.fit import Fit
from ulmus.diagnostics import fit_checks as signs
from ulmus.diagnostics.calibration_data import (
    Evidence,
    given_evidence,
    input_values,
    left_out_evidence,
    n_judges,
)
from ulmus.diagnostics.coverage import Judge, group_findings, overall, spread_finding
from ulmus.diagnostics.finding import CoverageRow, DiagnosticReport, Finding
from ulmus.diagnostics.residual_correlation import correlation_findings
from ulmus.intervals.distribution import fit_shape


def diagnostic_report(
    fit: Fit,
    X: Array | None = None,
    y: np.ndarray | None = None,
    *,
    names: Sequence[str] | None = None,
) -> DiagnosticReport:
    """What a fit says about its own honesty.

    Parameters
    ----------
    fit : Fit
        The fit.
    X : array of shape (n, d), optional
        New points.
    y : ndarray of shape (K, n), optional
        What was observed there.
    names : sequence of str, optional
        Names of the inputs.

    Returns
    -------
    report : DiagnosticReport
        Of the left-out training rows if no points are given.

    See Also
    --------
    ulmus.ELMEnsembleRegressor.check : The same for an estimator.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(100, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> from ulmus.diagnostics import diagnostic_report
    >>> diagnostic_report(model.fitted_, names=["angle"]).title
    'a check of the fit by 100 left-out training rows.'
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if X is None or y is None:
            if fit.rows is None:
                raise ValueError(
                    "check without data needs the training rows, which compress() dropped or a "
                    "streamed fit never kept; give X and y."
                )
            evidence, points = left_out_evidence(fit, fit.rows), fit.rows.data.X
        else:
            evidence, points = given_evidence(fit, X, y), X
        findings, table = _of_outputs(fit, evidence, points, names)
        if X is not None:
            findings.append(signs.extrapolation_finding(fit, X))
        findings += [signs.bias_finding(fit), *signs.leverage_finding(fit)]
        findings += [signs.members_finding(fit, points), signs.choices_finding(fit)]
    findings += _of_warnings(caught)
    kind = "left-out training" if evidence.left_out else "given"
    title = f"a check of the fit by {evidence.n_rows} {kind} rows."
    return DiagnosticReport(title, tuple(findings), tuple(table))


def _of_outputs(
    fit: Fit, evidence: Evidence, points: Array, names: Sequence[str] | None
) -> tuple[list[Finding], list[CoverageRow]]:
    """Findings and coverages of each output, named if there are several."""
    findings: list[Finding] = []
    table: list[CoverageRow] = []
    labels = [f"input {j}" if names is None else str(names[j]) for j in evidence.columns]
    known = points if fit.rows is None else fit.rows.data.X
    shape = fit_shape(fit)
    training, judges = input_values(known, evidence.columns), n_judges(fit)
    # Rows that hang together tell as much as fewer independent ones.
    worth = np.where(fit.has_covariance, np.minimum(fit.noise_dof / fit.n_rows, 1.0), 1.0)
    for k in range(len(evidence.pit)):
        several = len(evidence.pit) > 1
        judge = Judge(evidence, float(judges[k]), float(worth[k]))
        parts = [overall(judge, k), *group_findings(judge, k, labels, training)]
        found = [finding for finding, _ in parts]
        found.append(spread_finding(judge, k, labels))
        found += [
            signs.pit_finding(evidence, k, judge.n_judges, judge.worth),
            signs.shape_finding(fit, shape, k),
        ]
        found += [*signs.misfit_findings(fit, k), *correlation_findings(fit, k)]
        found += [signs.units_finding(fit, k), signs.rows_finding(fit, k)]
        findings += [f._replace(name=f"{f.name}, output {k}") if several else f for f in found]
        rows = [row for _, part in parts for row in part]
        table += [r._replace(group=f"output {k}, {r.group}") if several else r for r in rows]
    return findings, table


def _of_warnings(caught: Iterable[Any]) -> list[Finding]:
    """Warnings that predictions raised, once each."""
    messages = dict.fromkeys(str(warning.message) for warning in caught)
    remedy = "predictions warn of it as well; see there."
    return [Finding("warning", "yellow", 1.0, message, remedy) for message in messages]
