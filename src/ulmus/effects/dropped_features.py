"""Warnings about effects of columns that the input map drops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ulmus.core.fit.fit import Fit
from ulmus.effects.estimands import ColumnChange, Estimand
from ulmus.effects.inference import Estimates
from ulmus.exceptions import DegenerateFitWarning, warn
from ulmus.messages import Message, Setting


def warn_about_dropped(fit: Fit, estimand: Estimand) -> tuple[ColumnChange, ...]:
    """Warn about effects that are exactly zero because of the input map, and return these.

    They have no standard error: that of the selection of inputs is unknown.
    """
    if fit.input_map is None:
        return ()
    changes = estimand.changes
    kept, sloping = _kept_inputs(fit, one_hot=True), _kept_inputs(fit, one_hot=False)
    dropped = [change for change in changes if _has_no_effect(change, kept)]
    if dropped:
        origin = "given" if fit.input_map.structure == "given" else "learned"
        text = (
            f"the {origin} input map drops {_names(dropped, changes)}, so that the effect is "
            "exactly 0 in this fit; its standard error is unknown, as the selection is uncertain"
        )
        remedy = Setting("input_map", None, "fit with {} to estimate the effect of a given column")
        warn(Message("dropped-feature", text, suggestions=(remedy,)), DegenerateFitWarning)
    flat = [c for c in changes if c.slope and c not in dropped and _has_no_effect(c, sloping)]
    if flat:
        text = (
            f"the input map keeps only one-hot indicators of {_names(flat, changes)}, whose "
            "derivative is exactly 0"
        )
        instead = ("compare values of the column instead",)
        warn(Message("one-hot-slope", text, suggestions=instead), DegenerateFitWarning)
    return (*dropped, *flat)


def without_zero_effects(estimates: Estimates, changes: Sequence[ColumnChange]) -> Estimates:
    """Estimates whose rows that measure some changes have no standard error."""
    terms = {
        (change.term, None if change.contrast == "curve" else change.contrast) for change in changes
    }
    if not terms:
        return estimates
    labels = estimates.labels
    pairs = zip(labels["term"], labels["contrast"], strict=True)
    zero = np.array([(t, c) in terms or (t, None) in terms for t, c in pairs])
    variance = np.where(zero[:, None], np.nan, estimates.errors.variance)
    return estimates._replace(errors=estimates.errors._replace(variance=variance))


def _kept_inputs(fit: Fit, *, one_hot: bool) -> np.ndarray:
    """Columns of the table that the map keeps, with or without one-hot indicators, shape (d,)."""
    assert fit.input_map is not None
    inputs = fit.ensemble.layer.inputs
    kept = np.any(fit.input_map.matrix != 0, axis=1)
    if not one_hot:
        n_indicators = sum(int(part.values.shape[0]) for part in inputs.one_hot)
        kept[len(kept) - n_indicators :] = False
    return np.bincount(inputs.origin, kept, minlength=int(inputs.offset.shape[0])) > 0


def _has_no_effect(change: ColumnChange, kept: np.ndarray) -> bool:
    """Whether a change affects inputs, but none of those that are kept."""
    if np.all(kept):
        return False
    affected = change.affected_inputs()
    return bool(np.any(affected) and not np.any(affected & kept))


def _names(some: Sequence[ColumnChange], changes: Sequence[ColumnChange]) -> str:
    """Names of columns, with the contrast where only some contrasts of a column are meant."""
    names = []
    for change in some:
        whole = all(other in some for other in changes if other.term == change.term)
        names.append(f"{change.term!r}" if whole else f"{change.term!r} ({change.contrast})")
    return ", ".join(dict.fromkeys(names))
