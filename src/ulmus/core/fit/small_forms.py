"""Forms of low rank of any fit, for files that must be small.

A fit replaces its exact forms only where this saves time and changes no standard error near the
rows by more than 1 %. A file of limited size requires such forms of every fit. Their coordinates
may be linear in few of the features, and they are compared with the exact ones also at rows whose
columns are exchanged, as a reader of the file may choose them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, like
from ulmus.core.ensemble.components import point_parts
from ulmus.core.ensemble.ensemble import Ensemble
from ulmus.core.fit.basis_points import n_basis_rows, surroundings, training_inputs
from ulmus.core.fit.low_rank import (
    LowRank,
    LowRankBasis,
    LowRankShifts,
    member_kernel,
    relative_errors,
)
from ulmus.core.variance.estimates import ESTIMATES, never_negative
from ulmus.core.variance.low_rank import (
    KernelSpectrum,
    LowRankForms,
    MemberKernel,
    kernel_spectrum,
    low_rank_forms,
    with_few_features,
)
from ulmus.core.variance.quadratic_forms import PairwiseForm
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

if TYPE_CHECKING:
    from ulmus.core.fit.fit import Fit

# Parts of the variance at basis points that may be missing, and how many are tried for each size.
NEGLIGIBLE = (1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 5e-3, 2e-2, 5e-2, 1e-1, 3e-1)
MOST_TRIED = 2
# Errors of standard errors that are accepted: root mean square, and largest. Otherwise a larger
# size is tried.
TYPICAL_ERROR, LARGEST_ERROR = 0.01, 0.1
# Root mean square at which no other form is tried.
ACCURATE = 0.001
# Fewest features for each coordinate, where coordinates are linear in few.
FEATURES_PER_RANK = 1.25
# Share of the leverage in the kernel of the basis: intervals of new observations depend on it.
LEVERAGE_SHARE = 1.0
# Largest number of rows in the basis; further points of it, checked points, and points to which the
# coordinates by few features are fitted.
MOST_ROWS, FURTHER, CHECKED, FITTED = 700, 500, 400, 2000
SEED = 29


class SmallForms(NamedTuple):
    """Forms of low rank, and leave-one-out shifts in their coordinates."""

    forms: LowRank
    shifts: tuple[LowRankShifts, ...] | None  # of each regression; None without training rows
    typical_error: float = 0.0  # root mean square of relative errors of standard errors

    @property
    def accepted(self) -> bool:
        """Whether errors are small."""
        return is_accurate(self.forms, self.typical_error)


def is_accurate(forms: LowRank, typical_error: float) -> bool:
    """Whether errors of standard errors are so small that no larger forms are tried."""
    return typical_error <= TYPICAL_ERROR and forms.tolerance <= LARGEST_ERROR


class SmallPoints(NamedTuple):
    """Points (p, d) at which forms are built, compared, and simplified."""

    basis: Array
    checked: Array
    fitted: Array


def small_forms(fit: Fit, sizes: Sequence[int]) -> SmallForms:
    """Accurate forms of the smallest of some sizes, or the most accurate of all.

    Sizes are numbers of elements, in ascending order. The forms are those of the fit, if it has
    such and they are small enough.
    """
    found = _Search(fit)
    best: tuple[LowRankBasis, float] | None = None
    for size in sizes:
        own = fit.low_rank
        if own is not None and _elements(own) <= size:
            return SmallForms(own, fit.low_rank_shifts)
        for basis, typical_error in found.of_size(size):
            if best is None or typical_error < best[1]:
                best = basis, typical_error
            if best[1] <= ACCURATE:
                break
        if best is not None and is_accurate(best[0].forms, best[1]):
            break
    assert best is not None  # a basis of few coordinates is always possible
    basis, typical_error = best
    shifts = None if fit.rows is None else basis.shifts(fit.exact_ensemble, fit.rows)
    return SmallForms(basis.forms, shifts, typical_error)


def compared_features(fit: Fit) -> Array | None:
    """Features (M, N', p) at which forms are compared; None if the fit keeps no points."""
    if _keeps_no_points(fit):
        return None
    return fit.features(_points(fit).checked)


def _elements(forms: LowRank) -> float:
    """Number of elements of the largest forms: three triangles and a map from the features."""
    return max(one.rank * (one.C.shape[1] + 1.5 * one.rank) for one in forms.parts)


class _Search:
    """Forms of a fit, compared with the exact ones at points around and between its rows."""

    def __init__(self, fit: Fit) -> None:
        self.fit = fit

    @cached_property
    def points(self) -> SmallPoints:
        """Features (M, N', p) of the points."""
        return SmallPoints(*(self.fit.features(X) for X in _points(self.fit)))

    @cached_property
    def kernels(self) -> list[MemberKernel]:
        """The kernel of each regression."""
        _require_forms(self.fit)
        estimate = self.fit.estimates[0]
        parts = self.fit.exact_ensemble.regressions
        return [member_kernel(part, estimate, LEVERAGE_SHARE) for part in parts]

    @cached_property
    def spectra(self) -> list[KernelSpectrum]:
        """The spectrum of each kernel at the basis points."""
        return [kernel_spectrum(kernel, self.points.basis) for kernel in self.kernels]

    @cached_property
    def exact(self) -> np.ndarray:
        """Exact variances at the points that are compared, (p, K)."""
        return self._variance(self.fit.exact_ensemble, None)

    def _variance(self, ensemble: Ensemble, parts: tuple[LowRankForms, ...] | None) -> np.ndarray:
        name = self.fit.estimates[0]
        pairing = ESTIMATES[name].pairing
        found = point_parts(ensemble, pairing, self.points.checked, low_rank=parts)
        return never_negative(name, found)

    def of_size(self, size: int) -> Iterator[tuple[LowRankBasis, float]]:
        """Some forms of at most so many elements, and the root mean square of their errors."""
        ensemble = self.fit.exact_ensemble
        for bases in islice(self._bases(size), MOST_TRIED):
            parts = tuple(
                _smaller(low_rank_forms(kernel, part.forms, B), self.points.fitted, size)
                for part, kernel, B in zip(ensemble.regressions, self.kernels, bases, strict=True)
            )
            errors = relative_errors(self._variance(ensemble, parts), self.exact)
            pairs = zip(self.kernels, bases, strict=True)
            by_member = tuple(kernel.by_member(B) for kernel, B in pairs)
            forms = LowRank(parts, float(np.max(errors, initial=0.0)))
            yield LowRankBasis(forms, by_member), float(np.sqrt(np.mean(errors**2)))

    def _bases(self, size: int) -> Iterator[list[Array]]:
        """Bases of all regressions that are small enough, accurate and large ones first."""
        most_rank = max(1, int((size / (FEATURES_PER_RANK + 1.5)) ** 0.5))
        for negligible in NEGLIGIBLE:
            found = [spectrum.basis(most_rank, negligible) for spectrum in self.spectra]
            bases = [B for B in found if B is not None]
            if len(bases) == len(found):
                yield bases
        yield [spectrum.leading(most_rank) for spectrum in self.spectra]


def _smaller(part: LowRankForms, fitted: Array, most_elements: int) -> LowRankForms:
    """Forms of at most so many elements, whose coordinates may be linear in few features.

    Rank r has r q elements for q features, and three triangles of r^2 / 2.
    """
    n_features = int(most_elements / part.rank - 1.5 * part.rank)
    if n_features >= part.C.shape[1]:
        return part
    return with_few_features(part, fitted, n_features)


def _points(fit: Fit) -> SmallPoints:
    """Points among, around, and mixed from the training rows."""
    rng = np.random.default_rng(SEED)
    X = training_inputs(fit, min(n_basis_rows(fit), MOST_ROWS), rng)
    around = surroundings(fit, X)
    encoded = fit.encoded_columns
    columns = np.arange(X.shape[1]) if encoded is None else encoded

    def mixed(n: int) -> np.ndarray:
        return np.concatenate([around.mixed(n // 2, columns, rng), around.between(n // 2, rng)])

    near = around.neighbours(FURTHER // 2, rng)
    basis = np.concatenate([X, near, around.outside(FURTHER // 2, rng), mixed(FURTHER)])
    checked = np.concatenate([around.neighbours(CHECKED // 4, rng), mixed(CHECKED)])
    fitted = np.concatenate([basis, mixed(FITTED)])
    reference = fit.ensemble.layer.b
    return SmallPoints(*(like(part, reference) for part in (basis, checked, fitted)))


def _require_forms(fit: Fit) -> None:
    parts = fit.exact_ensemble.regressions
    forms = [form for part in parts for pair in part.forms.values() for form in pair.forms]
    if not all(isinstance(form, PairwiseForm) for form in forms):
        text = "the exact jackknife matrices of the paper have no form of low rank"
        raise InputError(Message("no-low-rank", text, suggestions=(Setting("hc", "HC2"),)))
    if _keeps_no_points(fit):
        text = "a compressed fit of few rows keeps no points at which other forms can be compared"
        remedy = "use the fit before compress()"
        raise InputError(Message("no-low-rank", text, suggestions=(remedy,)))


def _keeps_no_points(fit: Fit) -> bool:
    return fit.rows is None and fit.gap_points.shape[0] == 0
