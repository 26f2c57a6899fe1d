"""All numbers of a report; nothing here is drawn or put into words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.diagnostics.correlogram import ResidualCorrelation, residual_correlation
from ulmus.diagnostics.finding import SEVERITIES, Finding, finding, worst
from ulmus.diagnostics.given_rows import GivenRows
from ulmus.diagnostics.target_text import family_of, link_name, residuals_name, scale_name
from ulmus.exceptions import collect_warnings
from ulmus.intervals.response import observed_outputs
from ulmus.plot import Curve
from ulmus.report.answers import Answers, answers
from ulmus.report.columns import ColumnSummary, TableColumn, column_summaries
from ulmus.report.evaluation import Evaluation, evaluate
from ulmus.report.partial_dependence import curve_values, partial_dependence
from ulmus.report.relevance import RelevanceShares, relevance
from ulmus.report.report_input import ReportInput
from ulmus.report.settings import Settings, settings
from ulmus.report.source import TableSource
from ulmus.report.variance_components import (
    EnsembleSizeCurve,
    MeanVarianceComponents,
    ensemble_size_curve,
    variance_components,
)


@dataclass(frozen=True)
class ReportContents:
    """The numbers of a report."""

    title: str  # of the page
    target_name: str
    evaluated_on: str  # rows that the model is evaluated on
    given: GivenRows | None  # which of its rows the fit was trained on; None without observations
    keeps_rows: bool  # whether the fit keeps its rows
    map_saw_all: bool  # whether the input map was optimised on all of these
    n_rows: int  # rows of the report
    n_inside: int  # those of them in the range of the training inputs
    n_training: int  # rows of the fit
    source: TableSource | None  # file of the training rows, if it is known
    n_excluded: int  # rows of the report that the model excludes for missing values
    notes: tuple[str, ...]  # what the fit made of the columns and rows of its table
    columns: tuple[ColumnSummary, ...]  # the inputs of the table
    observed: FloatArray | None  # (n,): observations of the target
    evaluation: Evaluation | None  # accuracy and calibration
    residual_correlation: ResidualCorrelation | None  # correlogram and variogram
    relevance: RelevanceShares  # relevance of the inputs
    curves: tuple[Curve, ...]  # partial dependence on the most relevant ones
    curve_values: tuple[list[str], ...]  # values of the inputs along these, as text
    answers: Answers  # averages, contrasts and slopes
    effect_notes: tuple[str, ...]  # warnings about these and the curves
    variance: MeanVarianceComponents  # components of the variance
    ensemble_size: EnsembleSizeCurve | None  # variance against the number of members
    settings: Settings  # how the model was fitted
    # What is regressed, and what its residuals are called; None and "residuals" for y itself.
    regressed: str | None
    residuals: str
    warnings: tuple[str, ...]  # warnings that were issued meanwhile

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Findings that are not ok, the worst first, and warnings."""
        findings = () if self.evaluation is None else self.evaluation.report.findings
        found = [one for one in findings if one.severity != "ok"]
        found.sort(key=lambda one: -SEVERITIES.index(one.severity))
        added = [finding("prediction-warning", "warning", 1.0, text) for text in self.warnings]
        return (*found, *added)

    @property
    def severity(self) -> str:
        """The worst severity of all problems."""
        return worst(one.severity for one in self.problems)


def report_contents(
    report_input: ReportInput,
    title: str,
    target_name: str,
    source: TableSource | None = None,
) -> ReportContents:
    """The contents of a report; warnings issued on the way are part of them."""
    fit = report_input.fit
    with collect_warnings() as collected:
        evaluation = evaluate(report_input, target_name)
        shares = relevance(report_input)
        variance = variance_components(report_input)
        ensemble_size = ensemble_size_curve(report_input)
    with collect_warnings() as of_effects:
        curves = partial_dependence(report_input, shares.relevant)
        found = answers(report_input, shares)
    y, family = report_input.y, family_of(fit, 0)
    if y is None and fit.rows is not None:
        y = observed_outputs(fit)[0, fit.rows.data.used]
    return ReportContents(
        title=title,
        target_name=target_name,
        evaluated_on=report_input.evaluated_on,
        given=report_input.given,
        keeps_rows=fit.rows is not None,
        map_saw_all=_map_saw_all(fit),
        n_rows=len(report_input.table),
        n_inside=len(report_input.inside),
        n_training=fit.n_rows,
        source=source,
        n_excluded=report_input.n_excluded,
        notes=() if report_input.schema is None else report_input.schema.notes,
        columns=column_summaries(report_input),
        observed=y,
        evaluation=evaluation,
        residual_correlation=residual_correlation(fit),
        relevance=shares,
        curves=curves,
        curve_values=tuple(
            curve_values(curve, TableColumn.of(report_input, report_input.names.index(curve.name)))
            for curve in curves
        ),
        answers=found,
        effect_notes=_distinct_warnings(map(str, of_effects)),
        variance=variance,
        ensemble_size=ensemble_size,
        settings=settings(report_input, target_name, source),
        regressed=None if scale_name(family) is None else link_name(family, target_name),
        residuals=residuals_name(family, target_name),
        warnings=_distinct_warnings(_unreported(map(str, collected), evaluation)),
    )


def _unreported(messages: Iterable[str], evaluation: Evaluation | None) -> list[str]:
    """Warnings that are no findings already."""
    findings = () if evaluation is None else evaluation.report.findings
    reported = {finding.message for finding in findings}
    return [message for message in messages if message not in reported]


def _map_saw_all(fit: Fit) -> bool:
    """Whether the input map behind leave-one-out predictions was optimised on these rows too."""
    learned = fit.input_map is not None and fit.input_map.relevance is not None
    set_aside = fit.rows is not None and fit.rows.map_rows is not None
    return learned and not set_aside and not fit.folded


def _distinct_warnings(messages: Iterable[str]) -> tuple[str, ...]:
    """The first of all messages that differ only in numbers and names, and how many follow."""
    similar: dict[str, list[str]] = {}
    for message in dict.fromkeys(messages):
        similar.setdefault(re.sub(r"\d+|'[^']*'", "", message), []).append(message)
    return tuple(
        first if not others else f"{first} ({len(others)} more of this type)"
        for first, *others in similar.values()
    )
