"""Effects of columns that the input map drops: those of linear terms that are added to the fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import dense, to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals
from ulmus.core.query.added_terms import AddedTerms, added_terms
from ulmus.effects.estimands import ColumnChange, Estimand
from ulmus.effects.inference import Estimates
from ulmus.exceptions import DegenerateFitWarning, warn
from ulmus.messages import Message, Setting


class DroppedChanges(NamedTuple):
    """Changes of an estimand that have no effect in a fit."""

    changes: tuple[ColumnChange, ...] = ()
    inputs: np.ndarray | None = None  # (d,): inputs that they affect; None if the map keeps some

    def rows(self, labels: dict[str, list[Any]]) -> np.ndarray:
        """Rows of a result that measure these changes, boolean of shape (q,)."""
        terms = {(one.term, one.contrast) for one in self.changes}
        curves = any(one.contrast == "curve" for one in self.changes)
        pairs = zip(labels["term"], labels["contrast"], strict=True)
        return np.array([curves or pair in terms for pair in pairs], dtype=bool)


def dropped_changes(fit: Fit, estimand: Estimand) -> DroppedChanges:
    """Changes that are exactly zero because of the input map, with a warning."""
    if fit.input_map is None:
        return DroppedChanges()
    changes = estimand.changes
    kept, sloping = _kept_inputs(fit, one_hot=True), _kept_inputs(fit, one_hot=False)
    dropped = [change for change in changes if _has_no_effect(change, kept)]
    if dropped:
        origin = "given" if fit.input_map.structure == "given" else "learned"
        text = (
            f"the {origin} input map drops {_names(dropped, changes)}, so that the effect is 0 in "
            "this fit; the result is the effect of a linear term that is added to it"
        )
        remedy = Setting("input_map", None, "fit with {} to estimate the effect of a given column")
        warn(Message("dropped-feature", text, suggestions=(remedy,)), DegenerateFitWarning)
        affected = np.any([change.affected_inputs() for change in dropped], axis=0)
        return DroppedChanges(tuple(dropped), affected & ~kept)
    flat = [c for c in changes if c.slope and _has_no_effect(c, sloping)]
    if flat:
        text = (
            f"the input map keeps only one-hot indicators of {_names(flat, changes)}, whose "
            "derivative is 0; its standard error is unknown"
        )
        instead = ("compare values of the column instead",)
        warn(Message("one-hot-slope", text, suggestions=instead), DegenerateFitWarning)
    return DroppedChanges(tuple(flat))


class AddedRows(NamedTuple):
    """Linear terms that are added to some functionals of a fit."""

    rows: np.ndarray  # (q,): which functionals have them
    inputs: Any  # (d,): which inputs they are of; None where the effect of a column is unknown
    terms: AddedTerms | None  # None where they cannot be estimated


def added_rows(
    fit: Fit, dropped: DroppedChanges, labels: dict[str, list[Any]], count: int
) -> AddedRows | None:
    """Terms for the functionals that measure changes without an effect; None without any."""
    rows = dropped.rows(labels) if dropped.changes else np.zeros(0, dtype=bool)
    if not rows.any():
        return None
    terms = None if dropped.inputs is None else added_terms(fit, dropped.inputs)
    # Ratios are of two functionals each.
    return AddedRows(np.resize(rows, count), dropped.inputs, terms)


def without_standard_errors(estimates: Estimates, rows: np.ndarray) -> Estimates:
    """The same estimates, some of them with unknown standard errors."""
    variance = np.where(rows[:, None], np.nan, estimates.errors.variance)
    return estimates._replace(errors=estimates.errors._replace(variance=variance))


def with_dropped_columns(
    fit: Fit, functionals: Functionals, estimates: Estimates, dropped: DroppedChanges
) -> Estimates:
    """Estimates in which columns that the map drops have the effect of an added linear term.

    Where the rows of the fit are unknown or its noise is correlated, their standard errors are NaN.
    """
    added = added_rows(fit, dropped, estimates.labels, functionals.count)
    if added is None:
        return estimates
    rows, terms = added.rows, added.terms
    errors, covariance = estimates.errors, estimates.covariance
    if terms is None:
        return without_standard_errors(estimates, rows)
    change = _input_changes(functionals, added.inputs, terms.center) * rows[:, None]
    extra = np.einsum("qd,kde,re->kqr", change, terms.covariance, change)
    return estimates._replace(
        errors=errors._replace(
            center=errors.center + change @ terms.coefficients,
            variance=errors.variance + np.diagonal(extra, axis1=1, axis2=2).T,
        ),
        covariance=None if covariance is None else covariance + extra,
    )


def _input_changes(functionals: Functionals, inputs: Any, center: np.ndarray) -> np.ndarray:
    """The functionals of some inputs themselves, less their means, shape (q, d)."""
    total = np.zeros((functionals.count, len(center)))
    for piece in functionals.pieces:
        whole = slice(0, piece.weights.shape[0])
        slope = piece.directions is not None
        values = piece.directions(whole) if piece.directions is not None else piece.points(whole)
        X = to_numpy(dense(values))[:, inputs].astype(float)
        total += piece.weights.T @ (X - (0.0 if slope else center))
    return total


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
