"""A summary as text and as an HTML table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ulmus.core.response.counts import LEAST_DISPERSION
from ulmus.diagnostics.finding import Finding, hanging, mark
from ulmus.diagnostics.relevance import share_text
from ulmus.messages import Dialect, python

if TYPE_CHECKING:
    from ulmus.diagnostics.summary_value import Summary

# Inputs that are named; the others are summed.
MOST_NAMED, LONGEST_NAME = 8, 40
OUT_OF_SAMPLE = "model.check(X_new, y_new) is an out-of-sample test."
ALL_CHECKS = "model.check() returns all diagnostics; " + OUT_OF_SAMPLE
INTERVALS = "model.predict_interval(X) returns prediction intervals for new observations."


def summary_text(summary: Summary, dialect: Dialect, next_steps: Sequence[str] | None) -> str:
    """Aligned text; see :meth:`Summary.format`."""
    entries = list(_entries(summary, dialect, next_steps))
    width = max(len(label) for label, _ in entries)
    lines = [_headline(summary)]
    for label, texts in entries:
        for i, text in enumerate(texts):
            lines += hanging(f"{label if i == 0 else '':<{width}}  ", text)
    return "\n".join(lines)


def summary_html(summary: Summary) -> str:
    """A plain table."""
    left = ' style="text-align: left; vertical-align: top"'
    rows = [
        f"<tr><th{left}>{escape(label)}</th>"
        f"<td{left}>{'<br>'.join(escape(text) for text in texts)}</td></tr>"
        for label, texts in _entries(summary, python, None)
    ]
    return f"<table><caption>{escape(_headline(summary))}</caption>{''.join(rows)}</table>"


def _headline(summary: Summary) -> str:
    outputs = "" if summary.n_outputs is None else f", {_counted(summary.n_outputs, 'output')}"
    inputs = _counted(summary.n_features, "input")
    return f"{summary.title}: {_counted(summary.n_rows, 'row')}, {inputs}{outputs}."


def _entries(
    summary: Summary, dialect: Dialect, next_steps: Sequence[str] | None
) -> Iterator[tuple[str, list[str]]]:
    """Labels with the lines beside them."""
    yield "network", [_network_line(summary)]
    for label, text in (
        ("target", _target_line),
        ("ridge", _ridge_line),
        ("noise", _noise_line),
        ("noise covariance", _noise_covariance_line),
        ("leave-one-out", _leave_one_out_line),
        ("variance", _variance_line),
    ):
        for k in range(summary.n_outputs or 1):
            line = text(summary, k)
            if line:
                yield label if summary.n_outputs is None else f"{label}, output {k}", [line]
    if summary.variance_rank is not None:
        yield "standard errors", [_standard_errors_line(summary)]
    if summary.relevance:
        yield "relevance", _relevance_lines(summary)
    if summary.warnings is not None:
        yield "warnings", _warning_lines(summary.warnings, dialect)
    if summary.notes:
        yield "notes", list(summary.notes)
    if next_steps is None:
        next_steps = [OUT_OF_SAMPLE if summary.warnings is None else ALL_CHECKS, INTERVALS]
    advice = [*(one.render(dialect) for one in summary.advice), *next_steps]
    if advice:
        yield "next", advice


def _output_value(summary: Summary, name: str, k: int) -> Any:
    """A field's value for an output."""
    value = getattr(summary, name)
    return value if summary.n_outputs is None or value is None else value[k]


def _network_line(summary: Summary) -> str:
    units = f"{summary.n_neurons} hidden units ({summary.activation})"
    members = "one network" if summary.n_estimators == 1 else f"{summary.n_estimators} members"
    maps = {None: "no input map", "given": "input map given"}
    learned = f"input map learned ({summary.input_map})"
    return f"{members} of {units}; {maps.get(summary.input_map, learned)}."


def _target_line(summary: Summary, k: int) -> str:
    mean, sd = _output_value(summary, "target_mean", k), _output_value(summary, "target_sd", k)
    parts = [] if mean is None else [f"mean {mean:.4g}, standard deviation {sd:.4g}"]
    fitted, gain = (_output_value(summary, name, k) for name in ("fitted_target", "target_gain"))
    if fitted is not None:
        parts.append(f"fitted as {fitted}{_choice_text(fitted, gain)}")
    return f"{'; '.join(parts)}." if parts else ""


def _choice_text(fitted: str, gain: tuple[float, float] | None) -> str:
    """Why a transformation was chosen; empty if it was given."""
    if gain is None:
        return ""
    if fitted.startswith("y"):
        return ", as no transformation predicts significantly better"
    return (
        f", chosen by predictive density ({gain[0]:+.2g} a row over y itself, standard error "
        f"{gain[1]:.2g})"
    )


def _ridge_line(summary: Summary, k: int) -> str:
    alpha, dof = _output_value(summary, "alpha", k), _output_value(summary, "dof", k)
    return f"alpha = {alpha:.3g}; {dof:.1f} effective degrees of freedom."


def _noise_line(summary: Summary, k: int) -> str:
    sd, share = _output_value(summary, "noise_sd", k), _output_value(summary, "noise_share", k)
    if sd is None:
        return _dispersion_line(summary, k)
    between = _output_value(summary, "noise_range", k)
    interval, weight = _output_value(summary, "noise_sd_interval", k), summary.mean_weight
    scale, target = _scale(summary, k)
    text = f"standard deviation {sd:.3g}{scale}"
    if _output_value(summary, "point_mass", k) is not None:
        return f"{text} above the point mass, at the mean prediction."
    if interval is not None and interval[1] > 0:
        text += f" (95% interval {interval[0]:.3g} to {interval[1]:.3g})"
    if weight is not None:
        text += f" at the mean weight {weight:.3g}, proportional to 1/sqrt(weight)"
    if _output_value(summary, "noise_modelled", k):
        text += ", modelled as a function of the inputs"
    elif weight is None:
        text += ", constant"
    if between is not None:
        text += f": {between[0]:.3g} to {between[1]:.3g} over the rows"
    if share is not None and math.isfinite(share):
        text += f"; {share:.0%} of the variance of {target}"
    return text + "."


def _scale(summary: Summary, k: int) -> tuple[str, str]:
    """The scale of the noise in a phrase, and the target on that scale."""
    scale = _output_value(summary, "noise_scale", k)
    return ("", "the target") if scale is None else (f" on the {scale} scale", "the target there")


def _dispersion_line(summary: Summary, k: int) -> str:
    """Variance of counts as a function of their mean."""
    dispersion = _output_value(summary, "dispersion", k)
    extra = _output_value(summary, "extra_zeros", k)
    if dispersion is None:
        return ""
    text = "the variance of a count is its mean"
    if dispersion >= LEAST_DISPERSION:
        text += f" plus {dispersion:.2g} times the square of the mean (negative binomial)"
    else:
        text += " (Poisson)"
    if extra:
        text += f"; extra zeros have probability {extra:.2g} at the mean prediction"
    return f"{text}."


def _noise_covariance_line(summary: Summary, k: int) -> str:
    phrase = _output_value(summary, "noise_covariance", k)
    return "" if phrase is None else f"{phrase}."


def _leave_one_out_line(summary: Summary, k: int) -> str:
    rmse, r2 = _output_value(summary, "rmse", k), _output_value(summary, "r2", k)
    if rmse is None:
        return ""
    if not math.isfinite(r2):
        return f"RMSE {rmse:.3g}; the target does not vary."
    mean, covered = _output_value(summary, "rmse_of_mean", k), _output_value(summary, "coverage", k)
    least = "at least " if _output_value(summary, "coverage_at_least", k) else ""
    text = (
        f"R2 {r2:.3f}; RMSE {rmse:.3g} ({mean:.3g} for the mean); {covered:.1%} of the rows "
        f"in their {summary.coverage_level:.0%} intervals ({least}nominal by construction)."
    )
    noise = _output_value(summary, "noise_share_of_error", k)
    if noise is not None:
        text += (
            f" The estimated noise variance, misfit included, is {noise.share:.0%} of the mean "
            f"squared error{_scale(summary, k)[0]} (95% interval {noise.low:.0%} to "
            f"{noise.high:.0%})."
        )
    return text


def _variance_line(summary: Summary, k: int) -> str:
    shares = _output_value(summary, "variance_shares", k)
    if shares is None:
        return ""
    parts = [f"{shares.data:.0%} noise of the training rows"]
    if summary.n_estimators > 1:
        parts.append(f"{shares.members:.0%} random weights")
    if shares.choices >= 0.005:  # not zero in whole percents
        parts.append(f"{shares.choices:.0%} selection of alpha and input map")
    return f"of a prediction: {', '.join(parts)}."


def _standard_errors_line(summary: Summary) -> str:
    tolerance = summary.variance_tolerance or 0.0
    size = f"at most {tolerance:.1%}" if tolerance >= 0.0005 else "less than 0.1%"
    agreement = f"{size} from the exact ones"
    return f"from forms of rank {summary.variance_rank}, {agreement}."


def _relevance_lines(summary: Summary) -> list[str]:
    named, others = summary.relevance[:MOST_NAMED], summary.relevance[MOST_NAMED:]
    lines = [(_shortened(r.name), r.share, f"(sd {share_text(r.sd)})") for r in named]
    if others:
        lines.append((f"{len(others)} more", sum(r.share for r in others), "together"))
    width = max(len(name) for name, *_ in lines)
    return [f"{name:<{width}}  {share_text(share):>5}  {more}" for name, share, more in lines]


def _warning_lines(findings: tuple[Finding, ...], dialect: Dialect) -> list[str]:
    if not findings:
        return ["none; all leave-one-out checks are ok."]
    lines = []
    for one in findings:
        suggestion = one.suggestion_in(dialect)
        line = f"{mark(one.severity)} {one.name}: {one.message}"
        lines.append(f"{line} -> {suggestion}" if suggestion else line)
    return lines


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
