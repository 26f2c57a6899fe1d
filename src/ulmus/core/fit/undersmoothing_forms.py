"""What wide networks need of the training rows: products of their coordinates, and their noise.

Both come from forms that a fit has anyway, or else from the rows themselves, where these are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ulmus.core.arrays.backend import Array, like, namespace
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.ensemble.row_pass import SecondPass
from ulmus.core.fit.training_data import TrainingRows
from ulmus.core.ridge.pairing import COMMON, OWN, member_groups
from ulmus.core.variance.quadratic_forms import (
    JackknifeForm,
    PairForms,
    RegeneratedForm,
    RowForm,
    row_form,
)

ROWS_NOT_KEPT = (
    "target='function' with heteroskedastic estimates needs residuals of the training rows, which "
    "a streamed fit does not keep; use target='expectation', or fit in memory."
)


def group_products(ensemble: Ensemble, rows: TrainingRows | None) -> list[Callable[[slice], Array]]:
    """For each regression, the products of Q of a group of members side by side."""
    parts = ensemble.regressions
    kept = [_kept_products(part.forms) for part in parts]
    if all(form is not None for form in kept):
        return [form.stacked for form in kept if form is not None]
    if rows is None:
        raise ValueError(ROWS_NOT_KEPT)
    groups = member_groups(ensemble.n_members, ensemble.layer.W.shape[1])
    totals = rows.data.reduce(SecondPass(ensemble, groups, [], ()))
    return [
        total.pairs_of(part.smoother).stacked
        for part, total in zip(parts, totals.parts, strict=True)
    ]


def per_row_forms(ensemble: Ensemble, part: Regression, rows: TrainingRows | None) -> PairForms:
    """Noise of single rows in a regression, the same for all members."""
    if rows is None or rows.omega is None:
        raise ValueError(ROWS_NOT_KEPT)
    forms: list[Any] = []
    dual = _kept_rows(part.forms)
    for k in part.outputs:
        omega = like(rows.omega[k], part.smoother.q)
        if dual is not None:
            members = namespace(omega).broadcast_to(omega, (dual.Q.shape[0], omega.shape[0]))
            forms.append(row_form(dual.Q, OWN, members))
        else:
            to_t = part.smoother.to_t[:, : part.smoother.n_strong, :]
            forms.append(RegeneratedForm(ensemble.layer, to_t, rows.data, omega))
    ones = namespace(part.variance.sigma2).ones_like(part.variance.sigma2)
    return PairForms(OWN.name, tuple(forms), ones)


def _kept_products(forms: dict[str, PairForms]) -> Any:
    """A form that can give the products of Q, if there is one."""
    if COMMON.name in forms:
        return forms[COMMON.name].shared
    return _kept_rows(forms)


def _kept_rows(forms: dict[str, PairForms]) -> RowForm | None:
    """A form that keeps the coordinates of the training rows, if there is one."""
    for pair in forms.values():
        for form in pair.forms:
            diagonal = form.diagonal if isinstance(form, JackknifeForm) else form
            if isinstance(diagonal, RowForm):
                return diagonal
    return None
