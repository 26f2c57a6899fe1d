"""Sentences of a report that are computed; the template contains the others."""

from __future__ import annotations

import numpy as np

from ulmus.diagnostics.given_rows import GivenRows
from ulmus.plot._variance import CHOICE, MODEL, OBSERVATION, OWN, SHARED, WEIGHTS
from ulmus.report.contents import ReportContents
from ulmus.report.evaluation import Evaluation
from ulmus.report.numbers import counted, fixed, number, share
from ulmus.report.predictions import LINEAR
from ulmus.report.report_input import GIVEN, LEAVE_ONE_OUT, MIXED
from ulmus.report.variance_components import EnsembleSizeCurve, MeanVarianceComponents

# A difference of so many standard errors is significant.
SIGNIFICANT = 2.0
# The beginning of a sentence about accuracy, where not all rows are new.
ACCURACY_ON = {
    LEAVE_ONE_OUT: "Leave-one-out",
    MIXED: "On training rows, leave-one-out, and on new rows",
    GIVEN: "On the rows of this report, which may be training rows",
}
# Largest component of the variance of a prediction, as the predicate of its share.
LARGEST_COMPONENT = {
    SHARED: "noise of the training rows, common to all members; it decreases with more rows, not "
    "with more members",
    OWN: "noise of the training rows, specific to members; it averages out over more members",
    WEIGHTS: "due to the random hidden weights; it decreases with more members (n_estimators)",
    CHOICE: "due to the selection of the ridge parameter and the input map on the same rows; it "
    "decreases with more rows",
    MODEL: "that of one network with fixed hidden weights; the variance of the random weights is "
    "not included, which requires an ELMEnsembleRegressor",
}


def overview_text(contents: ReportContents) -> str:
    """The report in a paragraph."""
    evaluation = contents.evaluation
    if evaluation is None:
        return (
            "The model was not evaluated: no observations were passed, and it keeps no training "
            "rows. Pass X and y of new rows."
        )
    parts = (
        _accuracy(contents, evaluation),
        _extrapolation(evaluation),
        _diagnostics(contents, evaluation),
    )
    return " ".join(part for part in parts if part)


def _accuracy(contents: ReportContents, evaluation: Evaluation) -> str:
    model, *baselines = evaluation.scores
    which = ACCURACY_ON.get(contents.evaluated_on, "On new rows")
    against = " and ".join(f"{number(s.rmse, 3)} for {s.name}" for s in baselines)
    against = f", compared with {against}" if against else ""
    rmse = f"an RMSE of {number(model.rmse, 3)}{against}"
    if contents.observed is not None and np.ptp(contents.observed) == 0:
        return f"All values of {contents.target_name} are equal: there is nothing to explain."
    if model.r2 <= 0:
        return (
            f"{which}, the model does not predict {contents.target_name} better than its mean: it "
            f"has {rmse}."
        )
    text = (
        f"{which}, the model explains {share(model.r2)} of the variance of {contents.target_name} "
        f"(R² {fixed(model.r2)}), with {rmse}."
    )
    gain = evaluation.gains.get(LINEAR)
    if gain is None:
        return text
    if gain > SIGNIFICANT:
        return f"{text} It is significantly more accurate than a linear model."
    if gain < -SIGNIFICANT:
        return f"{text} A linear model is significantly more accurate: prefer it."
    return f"{text} The difference from a linear model is not significant."


def _extrapolation(evaluation: Evaluation) -> str:
    """Accuracy without rows far outside the training range."""
    if evaluation.inside is None:
        return ""
    outside = counted(int(evaluation.outside.sum()), "row lies", "rows lie")
    return (
        f"{outside} outside the range of the "
        f"training inputs; without these, the RMSE is {number(evaluation.inside.rmse, 3)} and R² "
        f"{fixed(evaluation.inside.r2)}."
    )


def _diagnostics(contents: ReportContents, evaluation: Evaluation) -> str:
    findings = evaluation.report.findings
    flagged = [finding.name for finding in findings if finding.severity != "ok"]
    text = ""
    if contents.evaluated_on != LEAVE_ONE_OUT:
        text = (
            f"The 95% prediction intervals cover {evaluation.coverage:.1%} of "
            f"{counted(len(evaluation.observed), 'row')}. "
        )
    if not flagged:
        return f"{text}All {len(findings)} diagnostic checks are ok."
    listed = ", ".join(dict.fromkeys(flagged))
    checks = "check is" if len(flagged) == 1 else "checks are"
    return f"{text}{len(flagged)} diagnostic {checks} not ok: {listed}."


def rows_text(contents: ReportContents) -> str:
    """The rows of the report, and how the model is evaluated."""
    fit = f"The model was fitted to {counted(contents.n_training, 'row')}."
    given = contents.given
    if given is None:
        return f"{fit} {_unobserved_rows(contents)}"
    if given.trained is None:
        same = contents.n_rows == contents.n_training
        hint = " Their number equals that of the fit." if same else ""
        return (
            f"{fit} It does not keep them, so that it cannot be determined whether the "
            f"{counted(contents.n_rows, 'row')} of this report are among them. If they are, all "
            f"that follows is optimistic.{hint}"
        )
    text = _evaluated_rows(contents, given)
    n_others = given.n_rows - len(given.judged)
    if n_others:
        others = counted(n_others, "further row is", "further rows are")
        why = "a repeated training row, or one without leave-one-out prediction"
        text += f" {others} not counted: {why}."
    return f"{fit} {text}"


def _evaluated_rows(contents: ReportContents, given: GivenRows) -> str:
    """How many rows of the report the fit was trained on, and how these are predicted."""
    if not given.n_trained:
        return (
            f"This report evaluates it on {counted(given.n_new, 'new row')}, which are not part of "
            "the fit: an out-of-sample test for rows like these."
        )
    optimistic = (
        " The input map was optimised on all rows, which makes these errors slightly optimistic."
        if contents.map_saw_all
        else ""
    )
    each = "each is predicted from all others by exact leave-one-out formulas."
    if given.n_new:
        rows = counted(given.n_trained, "row of this report is", "rows of this report are")
        others = counted(given.n_new, "row is", "rows are")
        return (
            f"{rows} among them: {each}{optimistic} The other {others} not part of the fit: an "
            "out-of-sample test for rows like these."
        )
    rows = "They are the rows of this report"
    if given.n_trained < contents.n_training:
        rows = f"The {counted(given.n_trained, 'row')} of this report are among them"
    return (
        f"{rows}: {each}{optimistic} If rows are similar to each other (repeated measurements, "
        "neighbours in time or space), errors at new rows are larger; new rows provide an "
        "out-of-sample test."
    )


def _unobserved_rows(contents: ReportContents) -> str:
    """How the model is evaluated without observations."""
    if contents.evaluated_on == LEAVE_ONE_OUT:
        return (
            f"{counted(contents.n_rows, 'further row')} without observations are used for "
            "relevance, partial dependence and variance; accuracy and calibration are those of the "
            "training rows, leave-one-out."
        )
    return "It does not keep them, and no observations were passed."


def variance_text(
    components: MeanVarianceComponents, ensemble_size: EnsembleSizeCurve | None
) -> str:
    """The largest component, and the share of the noise in a new observation."""
    total = sum(components.prediction.values())
    if total <= 0:
        return "The variance is zero: the fit has no noise."
    largest = max(components.shares, key=lambda name: components.shares[name])
    size = components.shares[largest]
    if largest == SHARED and ensemble_size is not None:
        # The limit of infinitely many members is what all members have in common.
        size = min(ensemble_size.limit / total, 1.0)
    noise = components.observation_shares[OBSERVATION]
    return (
        f"{share(size)} of the variance of a prediction is {LARGEST_COMPONENT[largest]}. Of the "
        f"variance of a new observation, {share(noise)} is its own noise, and the rest is the "
        "variance of the prediction."
    )
