"""Forms of low rank of any fit, for files that must be small.

A fit replaces its exact forms only where this saves time and changes no standard error by more than
1 %. A file of limited size requires such forms of every fit: here the rank is limited by the size
alone, and the largest error that was measured is part of the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ulmus.core.fit.basis_points import compared_points, n_basis_rows
from ulmus.core.fit.low_rank import (
    LEVELS,
    Level,
    LowRank,
    LowRankBasis,
    LowRankShifts,
    low_rank_within,
)
from ulmus.core.variance.quadratic_forms import PairwiseForm
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

if TYPE_CHECKING:
    from ulmus.core.fit.fit import Fit

# Accurate levels first; if their ranks are too large, the most accurate of a smaller rank.
SMALL_LEVELS = (
    *LEVELS,
    Level(1e-6, 0.02),
    Level(1e-8, 0.05),
    Level(5e-4, 0.05),
    Level(2e-3, 0.1),
    Level(1e-2, 0.2),
    Level(5e-2, 0.5),
)


class SmallForms(NamedTuple):
    """Forms of low rank, and leave-one-out shifts in their coordinates."""

    forms: LowRank
    shifts: tuple[LowRankShifts, ...] | None  # of each regression; None without training rows


def small_forms(fit: Fit, most_elements: int) -> SmallForms:
    """The forms of a fit, or others whose map from the features has at most so many elements."""
    if fit.low_rank is not None:
        return SmallForms(fit.low_rank, fit.low_rank_shifts)
    basis = _basis(fit, max(1, most_elements // fit.ensemble.layer.width))
    rows = fit.rows
    shifts = None if rows is None else basis.shifts(fit.exact_ensemble, rows)
    return SmallForms(basis.forms, shifts)


def _basis(fit: Fit, most_rank: int) -> LowRankBasis:
    """Forms of at most a rank."""
    parts = fit.exact_ensemble.regressions
    forms = [form for part in parts for pair in part.forms.values() for form in pair.forms]
    if not all(isinstance(form, PairwiseForm) for form in forms):
        text = "the exact jackknife matrices of the paper have no form of low rank"
        raise InputError(Message("no-low-rank", text, suggestions=(Setting("hc", "HC2"),)))
    if fit.rows is None and fit.gap_points.shape[0] == 0:
        text = "a compressed fit of few rows keeps no points at which its variances are simplified"
        remedy = "use the fit before compress()"
        raise InputError(Message("no-low-rank", text, suggestions=(remedy,)))
    points = compared_points(fit, n_basis_rows(fit), few=True)
    assert points is not None  # few rows suffice
    found = low_rank_within(fit, points, SMALL_LEVELS, most_rank)
    if found is None:
        text = f"no form of rank {most_rank} has standard errors within a half of the exact ones"
        remedies = Setting("n_neurons", phrase="use fewer {}"), Setting("alpha", "loo")
        raise InputError(Message("no-low-rank", text, suggestions=remedies))
    return found
