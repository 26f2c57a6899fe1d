"""Sentences of a report that are computed; the template contains the others."""

from __future__ import annotations

import numpy as np

from ulmus.diagnostics.given_rows import GivenRows
from ulmus.plot._variance import CHOICE, MODEL, OBSERVATION, OWN, SHARED, WEIGHTS
from ulmus.report.answers import Answers, InputContrast
from ulmus.report.contents import ReportContents
from ulmus.report.evaluation import Evaluation
from ulmus.report.numbers import counted, fixed, number, rounded, share
from ulmus.report.predictions import LINEAR
from ulmus.report.report_input import GIVEN, LEAVE_ONE_OUT, MIXED
from ulmus.report.variance_components import EnsembleSizeCurve, MeanVarianceComponents

# A difference of so many standard errors is significant.
SIGNIFICANT = 2.0
# The beginning of a sentence about accuracy, where not all rows are new.
ACCURACY_ON = {
    LEAVE_ONE_OUT: "Leave-one-out",
    MIXED: "In training rows, leave-one-out, and in new rows",
    GIVEN: "In the rows of this report, which may be training rows",
}
# What the severity of the checks says about the error bars.
TRUST = {
    "ok": "passed all checks.",
    "warning": "are to be used with care: read the warnings below.",
    "error": "are not to be trusted before the errors below are resolved.",
}
# The beginning of a note about rows that a fit excluded.
EXCLUDED_ROWS = "Excluded rows"
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


def verdict_text(contents: ReportContents) -> str:
    """What the model achieves, and whether its error bars can be trusted, in two sentences."""
    evaluation = contents.evaluation
    if evaluation is None:
        return (
            "The model was not evaluated: no observations were passed, and it keeps no training "
            "rows. Pass X and y of new rows."
        )
    parts = (
        _accuracy(contents, evaluation),
        _extrapolation(evaluation),
        _error_bars(contents, evaluation),
    )
    return " ".join(part for part in parts if part)


def verdict_label(contents: ReportContents) -> str:
    """The severity of the report in a few words."""
    if contents.evaluation is None:
        return "not evaluated"
    counts = {
        severity: sum(one.severity == severity for one in contents.problems)
        for severity in ("error", "warning")
    }
    parts = [counted(n, severity) for severity, n in counts.items() if n]
    n_checks = len(contents.evaluation.report.findings)
    return " and ".join(parts) if parts else f"all {n_checks} checks are ok"


def _accuracy(contents: ReportContents, evaluation: Evaluation) -> str:
    model, *baselines = evaluation.scores
    name = contents.target_name
    if contents.observed is not None and np.ptp(contents.observed) == 0:
        return f"All values of {name} are equal: there is nothing to explain."
    which = ACCURACY_ON.get(contents.evaluated_on, "In new rows")
    against = " and ".join(f"{rounded(s.rmse)} for {s.name}" for s in baselines)
    rmse = f"root mean squared error {rounded(model.rmse)}"
    rmse += f", compared with {against}" if against else ""
    if model.r2 <= 0:
        return f"{which}, the model does not predict {name} better than its mean ({rmse})."
    text = (
        f"{which}, the model explains {share(model.r2)} of the variance of {name} "
        f"(R² {fixed(model.r2)}; {rmse})"
    )
    gain = evaluation.gains.get(LINEAR)
    if gain is None:
        return f"{text}."
    if gain > SIGNIFICANT:
        return f"{text}, significantly more accurately than a linear model."
    if gain < -SIGNIFICANT:
        return f"{text}. A linear model is significantly more accurate: prefer it."
    return f"{text}, not significantly better than a linear model."


def _extrapolation(evaluation: Evaluation) -> str:
    """Accuracy without rows far outside the training range."""
    if evaluation.inside is None:
        return ""
    outside = counted(int(evaluation.outside.sum()), "row lies", "rows lie")
    return (
        f"{outside} outside the range of the training inputs; without these, the root mean squared "
        f"error is {rounded(evaluation.inside.rmse)} and R² {fixed(evaluation.inside.r2)}."
    )


def _error_bars(contents: ReportContents, evaluation: Evaluation) -> str:
    """Width and coverage of the prediction intervals, and whether to trust them."""
    half = evaluation.half_width
    width = f" (typically ± {rounded(half)})" if np.isfinite(half) else ""
    text = f"Its 95% prediction intervals{width}"
    if contents.evaluated_on == LEAVE_ONE_OUT:
        return f"{text} {TRUST[contents.severity]}"
    rows = counted(len(evaluation.observed), "row")
    return f"{text} cover {evaluation.coverage:.1%} of {rows} and {TRUST[contents.severity]}"


def exclusion_texts(contents: ReportContents) -> list[str]:
    """Rows that were excluded, as sentences."""
    source, out = contents.source, []
    if source is not None and source.n_excluded:
        total = source.n_excluded + contents.n_training
        out.append(
            f"{number(source.n_excluded)} of the {number(total)} rows of {source.path} "
            f"({share(source.n_excluded / total)}) were excluded from the fit, as they lack the "
            "target or other values."
        )
    else:
        out += [note for note in contents.notes if note.startswith(EXCLUDED_ROWS)]
    if contents.n_excluded:
        total = contents.n_excluded + contents.n_rows
        out.append(
            f"{counted(contents.n_excluded, 'row')} of {number(total)} "
            f"({share(contents.n_excluded / total)}) have missing values and are not part of this "
            "report."
        )
    return out


def column_notes(contents: ReportContents) -> list[str]:
    """What the fit made of its columns: excluded and encoded ones, and cells that it filled in."""
    return [note for note in contents.notes if not note.startswith(EXCLUDED_ROWS)]


def contrast_text(contrast: InputContrast, target: str) -> str:
    """The change of the prediction in words, after the name of the input."""
    between = f"{contrast.second} instead of {contrast.first}"
    if contrast.quartiles:
        between = f"from {contrast.first} to {contrast.second} (first to third quartile)"
    change = contrast.change
    if not change.is_clear:
        return (
            f"{between}: no clear change of {target}, {rounded(change.value)} (95% interval "
            f"{rounded(change.low)} to {rounded(change.high)})."
        )
    ends = sorted([abs(change.low), abs(change.high)])
    direction = "higher" if change.value > 0 else "lower"
    return (
        f"{between}: {target} is {direction} by {rounded(abs(change.value))} (95% interval "
        f"{rounded(ends[0])} to {rounded(ends[1])})."
    )


def average_text(answers: Answers, target: str) -> str:
    """The average prediction in words."""
    average = answers.average
    return (
        f"The average prediction of {target} over {counted(answers.n_rows, 'row')} is "
        f"{number(average.value)} (95% interval {number(average.low)} to {number(average.high)})."
    )


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
