"""Checks of the target: its values, and the scale on which it is fitted."""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.target import output_values
from ulmus.core.fit.target_choice import COUNT
from ulmus.core.fit.target_suggestion import suggested_transform
from ulmus.core.query.leave_out import noiseless
from ulmus.core.response import Counts, PointMass
from ulmus.core.response.target import Values
from ulmus.diagnostics.checks.fit_checks import constant_outputs
from ulmus.diagnostics.finding import Finding, finding
from ulmus.diagnostics.leave_one_out import LeaveOneOutRows
from ulmus.diagnostics.target_text import family_of
from ulmus.intervals.bounds import is_skewed
from ulmus.intervals.distribution import departs_from_normal
from ulmus.messages import Setting

NOTHING_TO_EXPLAIN = "There is nothing to explain."
ANOTHER_TARGET = "fit to a target that varies"
IMPOSSIBLE = "The fitted distribution excludes them."
# Whole numbers with fewer values, or of a smaller mean, may be counts.
FEW_COUNTS = 50
# The 95 % quantile of the normal distribution, and the share of the rows whose intervals between
# such quantiles reach below zero from which a positive target is worth another scale.
NORMAL_QUANTILE, BELOW_ZERO_SHARE = 1.645, 0.01
# Share of such intervals that is a finding where no other scale is clearly better.
NOTABLE_SHARE = 0.05
CONTINUOUS = "No continuous distribution predicts a value that occurs so often."
NEGATIVE = "Intervals for y itself may reach values that y cannot have."


def target_findings(fit: Fit, k: int, y: FloatArray | None = None) -> list[Finding]:
    """Findings about an output, and about observations of it (n,) if they are given."""
    if constant_outputs(fit)[k]:
        message = f"y is constant: all {fit.n_rows} rows have the same value."
        return [finding("target", "warning", 0.0, message, NOTHING_TO_EXPLAIN, (ANOTHER_TARGET,))]
    return [*_impossible_values(fit, k, y), *_target_scale(fit, k)]


def _impossible_values(fit: Fit, k: int, y: FloatArray | None) -> list[Finding]:
    """Observations that the response family excludes."""
    family = family_of(fit, k)
    if family is None or y is None:
        return []
    if isinstance(family, Counts):
        outside, possible = (y < 0) | (y != np.round(y)), "no whole numbers from zero on"
    else:
        above = family.above if isinstance(family, PointMass) else family
        outside = (y < above.least) | (y > above.most)
        possible = f"outside the range of the fit, {above.least:.4g} to {above.most:.4g}"
    count = int(np.sum(outside))
    if not count:
        return []
    message = f"{count} of {len(y)} values of y are {possible}."
    remedies = ("correct these rows", Setting("target_range", phrase="refit with another {}"))
    return [finding("target", "error", count / len(y), message, IMPOSSIBLE, remedies)]


def _target_scale(fit: Fit, k: int) -> list[Finding]:
    """Whether another scale predicts better; nothing where y may be negative or was specified."""
    if fit.rows is None or fit.spec.target is not None or noiseless(fit)[k]:
        return []
    values = output_values(fit.rows.data)[k]
    code = "target-scale"
    if values.least < 0 or not _is_worth_a_comparison(fit, k, values):
        return []
    if values.has_mass and values.least == 0 and not values.whole:
        share = values.n_least / values.n_rows
        message = f"{share:.0%} of the values of y are 0, the smallest one."
        remedies = (Setting("target_transform", "auto"), Setting("target_range", (0, None)))
        return [finding(code, "warning", share, message, CONTINUOUS, remedies)]
    score = suggested_transform(fit, k)
    if score is None:
        return _impossible_intervals(fit, k, values)
    gain = (
        f"raises the leave-one-out log density by {score.gain:.2g} a row (standard error "
        f"{score.standard_error:.2g})"
    )
    if score.name == COUNT:
        message = f"y is a count: a distribution of counts {gain}."
        remedy = Setting("target_kind", "count")
    else:
        message = f"y is positive and skewed: the scale {score.name!r} {gain}."
        remedy = Setting("target_transform", "auto")
    return [finding(code, "warning", score.gain, message, NEGATIVE, (remedy,))]


def _impossible_intervals(fit: Fit, k: int, values: Values) -> list[Finding]:
    """Whether many intervals begin below zero, where no other scale is clearly better."""
    share = _share_below_zero(LeaveOneOutRows.of(fit, fit.rows), k)  # type: ignore[arg-type]
    if share < NOTABLE_SHARE:
        return []
    message = (
        f"{share:.0%} of the 90 % prediction intervals begin below 0; no value of y is negative."
    )
    remedies: tuple[Setting, ...] = (Setting("target_range", (0, None)),)
    if values.least > 0:
        remedies += (Setting("target_transform", "log"),)
    return [finding("target-scale", "warning", share, message, NEGATIVE, remedies)]


def _is_worth_a_comparison(fit: Fit, k: int, values: Values) -> bool:
    """Whether residuals are skewed or not normal, or intervals reach below zero."""
    assert fit.rows is not None  # the caller's condition
    found = LeaveOneOutRows.of(fit, fit.rows)
    errors = found.errors[k]
    if _is_countable(values) or is_skewed(errors) or departs_from_normal(errors):
        return True
    return _share_below_zero(found, k) > BELOW_ZERO_SHARE


def _share_below_zero(found: LeaveOneOutRows, k: int) -> float:
    """Share of the rows whose 90 % intervals begin below zero."""
    errors, residuals = found.errors[k], found.residuals[k]
    sd = np.divide(residuals, errors, out=np.zeros_like(errors), where=errors != 0)
    return float(np.mean(found.mean[k] < NORMAL_QUANTILE * sd))


def _is_countable(values: Values) -> bool:
    """Whether whole numbers may be counts."""
    few = len(np.unique(values.sample)) < FEW_COUNTS or np.mean(values.sample) < FEW_COUNTS
    return bool(values.whole and few)
