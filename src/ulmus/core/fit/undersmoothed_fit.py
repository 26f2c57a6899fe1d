"""Undersmoothed networks of a fit: their factors, and the forms of their noise.

Both follow from forms that a fit has, or else from the training rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import Array, double_precision, like, namespace
from ulmus.core.data.source import RowBlocks
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.ensemble.regression import SecondPass
from ulmus.core.noise import noise_of_estimate
from ulmus.core.ridge.member_pairs import COMMON, OWN, member_groups
from ulmus.core.variance.quadratic_forms import (
    Form,
    JackknifeForm,
    PairForms,
    PairwiseForm,
    RegeneratedForm,
    RowForm,
    row_form,
)
from ulmus.core.variance.undersmoothing import UndersmoothedNetworks, undersmoothed_networks
from ulmus.exceptions import NoUndersmoothedFitError
from ulmus.messages import Message, Setting
from ulmus.progress import stage

EXPECTATION = Setting("target", "expectation")


@dataclass(frozen=True)
class Undersmoothing:
    """Undersmoothed networks."""

    networks: tuple[UndersmoothedNetworks, ...]  # networks of each regression
    # Forms of the noise of each regression; None if those of the default estimate apply.
    forms: tuple[PairForms, ...] | None

    def primal(self) -> Undersmoothing:
        """The same with forms that keep no training rows."""
        if self.forms is None:
            return self
        return replace(self, forms=tuple(pair.primal() for pair in self.forms))


@stage("Undersmoothed networks")
def undersmoothing(
    ensemble: Ensemble,
    estimate: str,
    data: RowBlocks | None = None,
    omega: np.ndarray | None = None,
) -> Undersmoothing:
    """Undersmoothed networks for an estimate, from training rows and their squared residuals."""
    if not double_precision(ensemble.layer.W):
        cause = "requires smaller ridge parameters than dtype='float32' resolves"
        suggestions = (EXPECTATION, Setting("dtype", "float64"))
        raise _unavailable("float32-undersmoothing", cause, suggestions)
    products = _group_products(ensemble, data)
    networks = tuple(
        undersmoothed_networks(regression.exact, regression.y_square, stacked)
        for regression, stacked in zip(ensemble.regressions, products, strict=True)
    )
    # Forms of single rows do not apply: each member has residuals of its own.
    if not noise_of_estimate(estimate).by_member:
        return Undersmoothing(networks, None)
    parts = ensemble.regressions
    return Undersmoothing(networks, tuple(_row_forms(ensemble, p, data, omega) for p in parts))


def _unavailable(code: str, cause: str, suggestions: tuple[Any, ...]) -> NoUndersmoothedFitError:
    return NoUndersmoothedFitError(Message(code, cause, "target", "function", suggestions))


def _rows_not_kept() -> NoUndersmoothedFitError:
    cause = (
        "with heteroskedastic estimates requires residuals of the training rows, which this fit "
        "does not keep (streamed, compressed or saved without rows)"
    )
    return _unavailable(
        "rows-not-kept", cause, (EXPECTATION, Setting("in_memory", python="fit in memory"))
    )


def _group_products(ensemble: Ensemble, data: RowBlocks | None) -> list[Callable[[slice], Array]]:
    """For each regression, the products of Q of a group of members side by side."""
    parts = ensemble.regressions
    stored = [_stored_products(regression.forms) for regression in parts]
    if all(form is not None for form in stored):
        return [form.stacked for form in stored if form is not None]
    if data is None:
        raise _rows_not_kept()
    groups = member_groups(ensemble.n_members, ensemble.layer.W.shape[1])
    totals = data.reduce(SecondPass(ensemble, groups, [], ()))
    return [
        total.pairs_of(regression.exact).stacked
        for regression, total in zip(parts, totals.parts, strict=True)
    ]


def _row_forms(
    ensemble: Ensemble, regression: Regression, data: RowBlocks | None, omega: np.ndarray | None
) -> PairForms:
    """Noise of single rows in a regression, the same for all members."""
    if data is None or omega is None:
        raise _rows_not_kept()
    forms: list[Form] = []
    dual = _stored_rows(regression.forms)
    for k in regression.outputs:
        squares = like(omega[k], regression.exact.q)
        if dual is not None:
            members = namespace(squares).broadcast_to(squares, (dual.Q.shape[0], squares.shape[0]))
            forms.append(row_form(dual.Q, OWN, members))
        else:
            to_t = regression.exact.to_t[:, : regression.exact.n_strong, :]
            forms.append(RegeneratedForm(ensemble.layer, to_t, data, squares))
    ones = namespace(regression.noise_variance.sigma2).ones_like(regression.noise_variance.sigma2)
    return PairForms(OWN.name, tuple(forms), ones)


def _stored_products(forms: dict[str, PairForms]) -> PairwiseForm | None:
    """A form that yields the products of Q, if there is one."""
    form = forms[COMMON.name].shared if COMMON.name in forms else _stored_rows(forms)
    return form if isinstance(form, PairwiseForm) else None


def _stored_rows(forms: dict[str, PairForms]) -> RowForm | None:
    """A form that keeps the coordinates of the training rows, if there is one."""
    for pair in forms.values():
        for form in pair.forms:
            diagonal = form.diagonal if isinstance(form, JackknifeForm) else form
            if isinstance(diagonal, RowForm):
                return diagonal
    return None
