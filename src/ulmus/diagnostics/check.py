"""All checks of a fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ulmus.core.arrays.backend import Array, taken_rows
from ulmus.core.fit.fit import Fit
from ulmus.core.response import LogMean
from ulmus.diagnostics.calibration_data import (
    CalibrationData,
    given_data,
    input_values,
    leave_one_out_data,
    n_calibration_residuals,
)
from ulmus.diagnostics.checks import calibration, fit_checks
from ulmus.diagnostics.checks.residual_correlation import correlation_findings
from ulmus.diagnostics.checks.residual_periodicity import periodicity_findings
from ulmus.diagnostics.checks.target_checks import target_findings
from ulmus.diagnostics.coverage import CoverageTest
from ulmus.diagnostics.finding import CoverageRow, DiagnosticReport, Finding, finding
from ulmus.diagnostics.given_rows import GivenRows
from ulmus.diagnostics.target_text import family_of
from ulmus.exceptions import UlmusWarning, collect_warnings
from ulmus.intervals.distribution import fit_shape
from ulmus.messages import Setting
from ulmus.tables.frames import default_feature_names


def diagnostic_report(
    fit: Fit,
    X: Array | None = None,
    y: np.ndarray | None = None,
    *,
    names: Sequence[str] | None = None,
    weight: np.ndarray | None = None,
) -> DiagnosticReport:
    """Diagnostics of a fit, as :meth:`ulmus.ELMEnsembleRegressor.check` returns them.

    Parameters
    ----------
    fit : Fit
        The fit.
    X, y : array of shape (n, d) and ndarray of shape (K, n), optional
        Points, and observations there as the user gives them, on the scale of y.
    names : sequence of str, optional
        Names of the inputs.
    weight : ndarray of shape (n,), optional
        Weights of the new observations; by default the mean weight of the training rows.

    Returns
    -------
    report : DiagnosticReport
        Of the rows given, or of the training rows. Training rows, which are found by their values,
        are predicted without themselves.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> from ulmus.diagnostics import diagnostic_report
    >>> diagnostic_report(model.fitted_, names=["angle"]).title
    'diagnostics from 60 training rows, leave-one-out.'
    """
    with collect_warnings() as collected:
        if X is None or y is None:
            if fit.rows is None:
                raise ValueError(
                    "check without data requires the training rows, which this fit does not keep "
                    "(streamed or compressed); give X and y."
                )
            data, points, given = leave_one_out_data(fit, fit.rows), fit.rows.data.X, None
            description = f"{data.n_rows} training rows, leave-one-out"
        else:
            given, points = GivenRows.of(fit, X, y), X
            data, description = given_data(fit, X, y, given, weight), given.description()
        observed = None if given is None or y is None else y[:, given.judged]
        findings, table = _output_findings(fit, data, points, names, observed)
        if given is not None and given.n_new:
            new = taken_rows(X, given.judged[~given.judged_as_trained])
            findings.append(fit_checks.extrapolation_finding(fit, new, given.new_rows))
        findings += [fit_checks.bias_finding(fit), *fit_checks.leverage_findings(fit)]
        findings += fit_checks.copy_findings(fit)
        findings += [fit_checks.members_finding(fit, points), fit_checks.selection_finding(fit)]
        known = weight is not None or not (given is None or given.n_new) or data.leave_one_out
        findings += fit_checks.weight_findings(fit, known=known)
    findings += _warning_findings(collected)
    title = f"diagnostics from {description}."
    return DiagnosticReport(title, tuple(findings), tuple(table))


def _output_findings(
    fit: Fit,
    data: CalibrationData,
    points: Array,
    names: Sequence[str] | None,
    observed: np.ndarray | None,
) -> tuple[list[Finding], list[CoverageRow]]:
    """Findings and coverages of each output, named if there are several."""
    findings: list[Finding] = []
    table: list[CoverageRow] = []
    names = default_feature_names(points.shape[1]) if names is None else names
    labels = [str(names[j]) for j in data.columns]
    shape = fit_shape(fit)
    training = input_values(points if fit.rows is None else fit.rows.data.X, data.columns)
    n_residuals = n_calibration_residuals(fit)
    # Correlated rows are worth fewer independent ones.
    effective = np.where(fit.has_covariance, np.minimum(fit.noise_dof / fit.n_rows, 1.0), 1.0)
    several = len(data.pit) > 1
    for k in range(len(data.pit)):
        test = CoverageTest(data, float(n_residuals[k]), float(effective[k]))
        parts = [
            calibration.coverage_finding(test, k),
            *calibration.group_findings(test, k, labels, training),
        ]
        found = [
            *(one for one, _ in parts),
            calibration.error_scale_finding(test, k, labels),
            calibration.predictive_distribution_finding(test, k),
            calibration.residual_distribution_finding(fit, shape, k),
            *target_findings(fit, k, None if observed is None else observed[k]),
            *fit_checks.misfit_findings(fit, k),
            *correlation_findings(fit, k),
            *periodicity_findings(fit, k),
            fit_checks.units_finding(fit, k),
            fit_checks.rows_finding(fit, k),
        ]
        found = [_applicable(one, fit, k) for one in found]
        findings += [f._replace(name=f"{f.name}, output {k}") if several else f for f in found]
        rows = [row for _, part in parts for row in part]
        table += [r._replace(group=f"output {k}, {r.group}") if several else r for r in rows]
    return findings, table


def _applicable(one: Finding, fit: Fit, k: int) -> Finding:
    """A finding without suggestions that the fit follows already, or that do not apply to it."""
    gain, target, family = fit.spec.min_gain_in_se, fit.spec.target, family_of(fit, k)
    dropped: tuple[str | Setting, ...]
    dropped = () if gain is None else calibration.MODEL_THE_NOISE[: 1 if gain > 0 else 2]
    if target is not None and (target.kind == "count" or target.transform == "auto"):
        dropped = (*dropped, calibration.TRANSFORM)
    if isinstance(family, LogMean):
        # Their intervals are those of a distribution, whose scale is no function of the inputs.
        dropped = (*dropped, *calibration.MODEL_THE_NOISE, calibration.OF_FOLDS)
        dropped = (*dropped, calibration.ASSUME_NOTHING)
    return one._replace(suggestions=tuple(s for s in one.suggestions if s not in dropped))


def _warning_findings(collected: Iterable[UlmusWarning]) -> list[Finding]:
    """Warnings of predictions, once each."""
    messages = dict.fromkeys(str(warning) for warning in collected)
    return [finding("prediction-warning", "warning", 1.0, message) for message in messages]
