"""The low-rank forms of a fit: basis points, rank, and the tolerance that they reach.

A fit is evaluated at basis points among and around the training rows, which determine the rank. The
forms are used if standard errors at other such points agree with those of the exact forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from ulmus.core.arrays.backend import Array, is_on_host, like, namespace, to_numpy
from ulmus.core.ensemble.components import (
    low_rank_undersmoothed_parts,
    point_parts,
    undersmoothed_parts,
)
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.fit.basis_points import ComparedPoints, compared_points, n_basis_rows
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.variance.estimates import ESTIMATES, never_negative
from ulmus.core.variance.low_rank import (
    LowRankForms,
    LowRankNetworks,
    MemberKernel,
    NetworkKernel,
    kernel_spectrum,
    low_rank_forms,
    low_rank_networks,
)
from ulmus.core.variance.quadratic_forms import PairForms, PairwiseForm, RowForm

if TYPE_CHECKING:
    from ulmus.core.fit.fit import Fit

# Largest accepted error of a standard error, relative to the exact one.
TOLERANCE = 0.01


class Level(NamedTuple):
    """What a basis may miss."""

    negligible: float  # part of the variance at a basis point
    tolerance: float  # largest accepted error of a standard error


# A small basis where it is accurate, else a larger one.
LEVELS = (Level(2e-3, 0.005), Level(1e-4, TOLERANCE))
# Largest accepted error of the standard deviation of a new observation that scales residuals, which
# depends on the leverage: at isolated points it needs many more coordinates than a standard error.
SCALE_TOLERANCE = 0.05
# Smallest number of elements of the exact forms that are replaced: four megabytes.
FEWEST_ELEMENTS = 2**19
# Largest rank, and largest rank relative to the products of an exact form per feature.
MOST_RANK, CHEAPER = 768, 0.35
# With more degrees of freedom, relative to the rows, the rank is never clearly smaller.
LARGEST_DOF_SHARE = 0.25
# Largest number of rows that may all be basis points.
MOST_ROWS = 500
# Share of the leverage in the kernel of the basis.
LEVERAGE_SHARE = 0.1


@dataclass(frozen=True)
class LowRank:
    """Low-rank forms of the regressions of a fit."""

    parts: tuple[LowRankForms, ...]  # forms of each regression
    tolerance: float  # largest relative error of a standard error at points outside the basis

    @property
    def rank(self) -> int:
        """Largest rank of a regression."""
        return max(part.rank for part in self.parts)


@dataclass(frozen=True)
class LowRankUndersmoothing:
    """Low-rank forms of the undersmoothed networks of a fit."""

    parts: tuple[tuple[LowRankNetworks, ...], ...]  # of each output of each regression
    dof: tuple[np.ndarray, ...]  # (K,): degrees of freedom of a group, for each regression
    tolerance: float  # largest relative error of a standard error at points outside the basis


class LowRankShifts(NamedTuple):
    """Leave-one-out shifts of a regression: weights times the coordinates of its forms."""

    forms: LowRankForms
    weights: Array  # (K', blocks, r), in the fit's units of y

    def of(self, h: Array) -> np.ndarray:
        """Changes of predictions by leaving out each block, (K', blocks, p)."""
        c = self.forms.coordinates(h)
        return to_numpy(like(self.weights, c) @ c)


class LowRankBasis(NamedTuple):
    """Low-rank forms with the coordinates (M, N', r) of the basis of each regression."""

    forms: LowRank
    bases: tuple[Array, ...]

    def shifts(self, ensemble: Ensemble, rows: TrainingRows) -> tuple[LowRankShifts, ...]:
        """Leave-one-out shifts of each regression."""
        parts = zip(ensemble.regressions, self.forms.parts, self.bases, strict=True)
        return tuple(
            LowRankShifts(forms, rows.shifts(part.exact, part.outputs, ensemble.layer, B))
            for part, forms, B in parts
        )


@dataclass(frozen=True)
class Compact:
    """What replaces the exact forms of a fit that does not keep them.

    A fit with training rows computes the exact forms from these where they are required.
    """

    forms: LowRank | None  # None where they do not reach the tolerance
    # None where they are computed from the rows, or there are no such networks.
    undersmoothing: LowRankUndersmoothing | None


def low_rank(fit: Fit) -> LowRankBasis | None:
    """Low-rank forms of a fit; None if they are not cheaper, or do not reach the tolerance."""
    return _first(_low_rank, fit)


def low_rank_undersmoothing(fit: Fit) -> LowRankUndersmoothing | None:
    """The same for the undersmoothed networks."""
    return _first(_low_rank_undersmoothing, fit)


Found = TypeVar("Found")


def _first(
    attempt: Callable[[Fit, ComparedPoints, tuple[Level, ...]], Found | None], fit: Fit
) -> Found | None:
    """The result of the first attempt that has one."""
    found = (attempt(fit, *choice) for choice in _attempts(fit))
    return next((one for one in found if one is not None), None)


def _low_rank(fit: Fit, points: ComparedPoints, levels: tuple[Level, ...]) -> LowRankBasis | None:
    """The forms for some points at the first sufficient level of accuracy."""
    ensemble, names = fit.exact_ensemble, fit.estimates
    h, held = (fit.features(X) for X in points)
    kernels = [member_kernel(part, names[0], LEVERAGE_SHARE) for part in ensemble.regressions]
    spectra = [kernel_spectrum(kernel, h) for kernel in kernels]
    pairings = {ESTIMATES[name].pairing for name in names}
    exact = {name: point_parts(ensemble, name, held) for name in pairings}

    def error(parts: tuple[LowRankForms, ...]) -> float:
        errors = []
        for name in names:
            one = exact[ESTIMATES[name].pairing]
            other = point_parts(ensemble, ESTIMATES[name].pairing, held, low_rank=parts)
            errors.append(_error(*(never_negative(name, each) for each in (other, one))))
        scale = _error(1 + other.leverage, 1 + one.leverage)
        return max(errors) if scale <= SCALE_TOLERANCE else np.inf

    for level in levels:
        found = [
            spectrum.basis(_largest_rank(part), level.negligible)
            for part, spectrum in zip(ensemble.regressions, spectra, strict=True)
        ]
        bases = [B for B in found if B is not None]
        if len(bases) < len(found):
            return None  # a higher level requires a larger rank
        parts = tuple(
            low_rank_forms(kernel, part.forms, B)
            for part, kernel, B in zip(ensemble.regressions, kernels, bases, strict=True)
        )
        chosen = _accepted(_precisions(fit, parts, _rounded_forms), error, level.tolerance)
        if chosen is not None:
            by_member = (kernel.by_member(B) for kernel, B in zip(kernels, bases, strict=True))
            return LowRankBasis(LowRank(*chosen), tuple(by_member))
    return None


def member_kernel(part: Regression, estimate: str, leverage_share: float) -> MemberKernel:
    """The kernel of a variance estimate, with a share of the leverage of constant noise."""
    pairs = part.forms[ESTIMATES[estimate].pairing]
    return MemberKernel(part.exact, pairs, leverage_share * _mean_noise(part))


def _low_rank_undersmoothing(
    fit: Fit, points: ComparedPoints, levels: tuple[Level, ...]
) -> LowRankUndersmoothing | None:
    """The same for the undersmoothed networks."""
    kernels = _network_kernels(fit)
    if kernels is None:
        return None
    h, held = (fit.features(X) for X in points)
    networks = fit.undersmoothing.networks
    ranks = map(_largest_rank, fit.exact_ensemble.regressions)
    spectra = [
        [(kernel, kernel_spectrum(kernel, h), rank) for kernel in outputs]
        for outputs, rank in zip(kernels, ranks, strict=True)
    ]
    exact = undersmoothed_parts(fit.exact_ensemble, networks, fit.noise_forms, held)
    dof = tuple(network.dof for network in networks)

    def error(parts: tuple[tuple[LowRankNetworks, ...], ...]) -> float:
        other = low_rank_undersmoothed_parts(fit.ensemble, parts, dof, held)
        return _error(other.variance, exact.variance)

    for level in levels:
        parts = []
        for outputs in spectra:
            forms = []
            for kernel, spectrum, rank in outputs:
                B = spectrum.basis(rank, level.negligible)
                if B is None:
                    return None
                forms.append(low_rank_networks(kernel, B))
            parts.append(tuple(forms))
        choices = _precisions(fit, tuple(parts), _rounded_networks)
        chosen = _accepted(choices, error, level.tolerance)
        if chosen is not None:
            return LowRankUndersmoothing(chosen[0], dof, chosen[1])
    return None


def _network_kernels(fit: Fit) -> list[list[NetworkKernel]] | None:
    """A kernel for each output of each regression; None where a form has no matrices."""
    networks, forms, out = fit.undersmoothing.networks, fit.noise_forms, []
    for part, network, pairs in zip(fit.exact_ensemble.regressions, networks, forms, strict=True):
        kernels = []
        for k in range(len(part.outputs)):
            form = pairs.forms[k if len(pairs.forms) > 1 else 0]
            if not isinstance(form, PairwiseForm):
                return None
            kernels.append(NetworkKernel(part.exact, network, form, pairs.scale[k], k))
        out.append(kernels)
    return out


def relative_errors(variance: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Relative errors of roots of variances; one where the exact one is zero and the other not."""
    ratio = np.divide(variance, exact, out=np.where(variance > 0, 4.0, 1.0), where=exact > 0)
    return np.abs(np.sqrt(np.maximum(ratio, 0.0)) - 1.0)


def _error(approximate: np.ndarray, exact: np.ndarray) -> float:
    """Largest relative error where there is a variance; infinite where it is not a number."""
    error = np.max(relative_errors(approximate, exact)[exact > 0], initial=0.0)
    return float(error) if np.isfinite(error) else np.inf


Parts = TypeVar("Parts")


def _precisions(fit: Fit, parts: Parts, rounded: Callable[[Parts], Parts]) -> Iterator[Parts]:
    """The parts in single and in double precision.

    On a GPU in double alone: single precision would cost a conversion of all features.
    """
    if is_on_host(fit.ensemble.layer.b):
        yield rounded(parts)
    yield parts


def _accepted(
    choices: Iterator[Parts], error: Callable[[Parts], float], tolerance: float
) -> tuple[Parts, float] | None:
    """The first choice within the tolerance, and its error."""
    # Without noise, the forms are too large for single precision, and the error is infinite.
    with np.errstate(over="ignore", invalid="ignore"):
        reached = ((parts, error(parts)) for parts in choices)
        return next((one for one in reached if one[1] <= tolerance), None)


def _rounded_forms(parts: tuple[LowRankForms, ...]) -> tuple[LowRankForms, ...]:
    return tuple(part.rounded() for part in parts)


def _rounded_networks(
    parts: tuple[tuple[LowRankNetworks, ...], ...],
) -> tuple[tuple[LowRankNetworks, ...], ...]:
    return tuple(tuple(one.rounded() for one in outputs) for outputs in parts)


def _mean_noise(part: Regression) -> Array:
    return namespace(part.noise_variance.residual).mean(part.noise_variance.residual)


def _products(part: Regression) -> float:
    """Products of the exact form of a regression for each feature of a point."""
    M, N, _ = part.exact.to_t.shape
    pairs: PairForms = next(iter(part.forms.values()))
    form = pairs.shared
    return 2 * N + (form.Q.shape[2] if isinstance(form, RowForm) else M * N / 2)


def _largest_rank(part: Regression) -> int:
    return min(MOST_RANK, int(CHEAPER * _products(part)))


def large_forms(fit: Fit) -> bool:
    """Whether the exact forms are so large that others replace them, in memory or in a file."""
    parts = fit.exact_ensemble.regressions
    forms = [form for part in parts for pair in part.forms.values() for form in pair.forms]
    if fit.spec.regression.exact or fit.noise_covariance is not None or not forms:
        return False
    if not all(isinstance(form, PairwiseForm) for form in forms):
        return False
    return fit.ensemble.layer.width * min(map(_products, parts)) >= FEWEST_ELEMENTS


def _attempts(fit: Fit) -> Iterator[tuple[ComparedPoints, tuple[Level, ...]]]:
    """Points and levels that are tried in turn; none where the exact forms are kept.

    Basis points are chosen from some of the rows, and then from all of few: in a design of few
    values, each row may have a component of its own.
    """
    gamma = float(np.max(fit.gamma))
    if not large_forms(fit) or gamma > LARGEST_DOF_SHARE * fit.n_rows:
        return
    n = n_basis_rows(fit)
    again = n < fit.n_rows <= MOST_ROWS and fit.rows is not None
    for n_rows, levels in [(n, LEVELS), *([(fit.n_rows, LEVELS[1:])] if again else [])]:
        points = compared_points(fit, n_rows)
        if points is None:
            return
        yield points, levels
