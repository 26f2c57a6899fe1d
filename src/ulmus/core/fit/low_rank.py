"""The low-rank forms of a fit: basis points, rank, and the tolerance that they reach.

A fit is evaluated at basis points among and around the training rows, which determine the rank. The
forms are used if standard errors at other such points agree with those of the exact forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from scipy.spatial import KDTree

from ulmus.core.arrays.backend import Array, dense, like, namespace, taken_rows, to_numpy
from ulmus.core.ensemble.components import (
    low_rank_undersmoothed_parts,
    point_parts,
    undersmoothed_parts,
)
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.variance.estimates import ESTIMATES, never_negative
from ulmus.core.variance.low_rank import (
    LowRankForms,
    LowRankNetworks,
    MemberKernel,
    NetworkKernel,
    low_rank_basis,
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
LEVELS = (Level(2e-3, 0.005), Level(1e-5, TOLERANCE))
# Largest accepted error of the standard deviation of a new observation that scales residuals, which
# depends on the leverage: at isolated points it needs many more coordinates than a standard error.
SCALE_TOLERANCE = 0.05
# Smallest number of elements of the exact forms that are replaced: four megabytes.
FEWEST_ELEMENTS = 2**19
# Largest rank, and largest rank relative to the products of an exact form per feature.
MOST_RANK, CHEAPER = 512, 0.35
# Basis points for each effective degree of freedom, and their least and largest number: training
# rows, points between neighbours, and points outside. Points of each kind that are checked.
KINDS = (3.0, 300, 700), (1.0, 100, 250), (2.0, 200, 400)
CHECKED = 100
# Largest number of rows that may all be basis points.
MOST_ROWS = 1000
# Share of the leverage in the kernel of the basis.
LEVERAGE_SHARE = 0.1
# Neighbours: along the line to one of the nearest rows, with noise relative to the deviations.
NEAREST, NEARBY = 3, 0.05
# Points outside: rows moved away from the centre of the range by at most this share of it.
BEYOND = 0.2
SEED = 26


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


class Points(NamedTuple):
    """Points at which the forms are built and compared."""

    basis: Array  # (p, d)
    checked: Array  # (q, d): points outside the basis


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
    attempts = (_low_rank(fit, *attempt) for attempt in _attempts(fit))
    return next((found for found in attempts if found is not None), None)


def low_rank_undersmoothing(fit: Fit) -> LowRankUndersmoothing | None:
    """The same for the undersmoothed networks."""
    attempts = (_low_rank_undersmoothing(fit, *attempt) for attempt in _attempts(fit))
    return next((found for found in attempts if found is not None), None)


def _low_rank(fit: Fit, points: Points, level: Level) -> LowRankBasis | None:
    """The forms for some points and a level of accuracy."""
    h, held = (fit.features(X) for X in points)
    parts, bases = [], []
    for part in fit.exact_ensemble.regressions:
        pairs = part.forms[ESTIMATES[fit.estimates[0]].pairing]
        kernel = MemberKernel(part.exact, pairs, LEVERAGE_SHARE * _mean_noise(part))
        B = low_rank_basis(kernel, h, _largest_rank(part), level.negligible)
        if B is None:
            return None
        parts.append(low_rank_forms(kernel, part.forms, B))
        bases.append(kernel.by_member(B))
    ensemble, names = fit.exact_ensemble, fit.estimates
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

    def rounded() -> tuple[LowRankForms, ...]:
        return tuple(part.rounded() for part in parts)

    chosen = _accepted(tuple(parts), rounded, error, level.tolerance)
    if chosen is None:
        return None
    forms = LowRank(*chosen)
    return LowRankBasis(forms, tuple(bases))


def _low_rank_undersmoothing(
    fit: Fit, points: Points, level: Level
) -> LowRankUndersmoothing | None:
    """The same for the undersmoothed networks."""
    h, held = (fit.features(X) for X in points)
    networks, forms = fit.undersmoothing.networks, fit.noise_forms
    parts = []
    for part, network, pairs in zip(fit.exact_ensemble.regressions, networks, forms, strict=True):
        outputs = []
        for k in range(len(part.outputs)):
            form = pairs.forms[k if len(pairs.forms) > 1 else 0]
            if not isinstance(form, PairwiseForm):
                return None
            kernel = NetworkKernel(part.exact, network, form, pairs.scale[k], k)
            B = low_rank_basis(kernel, h, _largest_rank(part), level.negligible)
            if B is None:
                return None
            outputs.append(low_rank_networks(kernel, B))
        parts.append(tuple(outputs))
    exact = undersmoothed_parts(fit.exact_ensemble, networks, forms, held)
    dof = tuple(network.dof for network in networks)

    def error(parts: tuple[tuple[LowRankNetworks, ...], ...]) -> float:
        other = low_rank_undersmoothed_parts(fit.ensemble, parts, dof, held)
        return _error(other.variance, exact.variance)

    def rounded() -> tuple[tuple[LowRankNetworks, ...], ...]:
        return tuple(tuple(one.rounded() for one in outputs) for outputs in parts)

    chosen = _accepted(tuple(parts), rounded, error, level.tolerance)
    return None if chosen is None else LowRankUndersmoothing(chosen[0], dof, chosen[1])


def _error(approximate: np.ndarray, exact: np.ndarray) -> float:
    """Largest relative error of roots of variances; infinite where it is not a number."""
    ratio = np.divide(approximate, exact, out=np.ones_like(exact), where=exact > 0)
    error = np.max(np.abs(np.sqrt(np.maximum(ratio, 0.0)) - 1), initial=0.0)
    return float(error) if np.isfinite(error) else np.inf


Parts = TypeVar("Parts")


def _accepted(
    exact: Parts,
    rounded: Callable[[], Parts],
    error: Callable[[Parts], float],
    tolerance: float,
) -> tuple[Parts, float] | None:
    """The first of parts in single and in double precision within the tolerance, and its error."""
    # Without noise, the forms are too large for single precision, and the error is infinite.
    with np.errstate(over="ignore", invalid="ignore"):
        single = rounded()
        reached = error(single)
    if reached <= tolerance:
        return single, reached
    reached = error(exact)
    return (exact, reached) if reached <= tolerance else None


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


# ------------------------------------------------------------ points


def large_forms(fit: Fit) -> bool:
    """Whether the exact forms are so large that others replace them, in memory or in a file."""
    parts = fit.exact_ensemble.regressions
    forms = [form for part in parts for pair in part.forms.values() for form in pair.forms]
    if fit.spec.regression.exact or fit.noise_covariance is not None or not forms:
        return False
    if not all(isinstance(form, PairwiseForm) for form in forms):
        return False
    return fit.ensemble.layer.width * min(map(_products, parts)) >= FEWEST_ELEMENTS


def _attempts(fit: Fit) -> Iterator[tuple[Points, Level]]:
    """Points and levels that are tried in turn; none where the exact forms are kept.

    Basis points are chosen from some of the rows, and then from all of few: in a design of few
    values, each row may have a component of its own.
    """
    if not large_forms(fit):
        return
    gamma = float(np.max(fit.gamma))
    n, near, outside = (int(min(max(a * gamma, low), high)) for a, low, high in KINDS)
    again = n + CHECKED < fit.n_rows <= MOST_ROWS and fit.rows is not None
    choices = [(n + CHECKED, LEVELS), *([(fit.n_rows, LEVELS[1:])] if again else [])]
    for n_rows, levels in choices:
        rng = np.random.default_rng(SEED)
        X = _training_inputs(fit, n_rows, rng)
        if X.shape[0] < 2 * CHECKED:
            return
        # Where all rows are in the basis, those that are checked are too.
        few = X if X.shape[0] == fit.n_rows else X[:-CHECKED]
        around = Surroundings(X, to_numpy(fit.scale.low), to_numpy(fit.scale.high))
        basis = few, around.neighbours(near, rng), around.outside(outside, rng)
        checked = X[-CHECKED:], around.neighbours(CHECKED, rng), around.outside(CHECKED, rng)
        first, second = (like(np.concatenate(p), fit.ensemble.layer.b) for p in (basis, checked))
        yield from ((Points(first, second), level) for level in levels)


def _training_inputs(fit: Fit, n: int, rng: np.random.Generator) -> np.ndarray:
    """Inputs of at most n training rows, the isolated ones first, (n, d).

    The basis does not span an isolated row unless it contains it. Half of the rows are those of
    largest leverage, and the others are drawn at random.
    """
    if fit.rows is None:
        X = to_numpy(dense(fit.gap_points)).astype(float)
        return X[rng.permutation(len(X))[:n]]
    used = np.flatnonzero(fit.rows.data.used)
    order = np.argsort(-np.max(fit.rows.leverage[:, used], axis=0), kind="stable")
    isolated, others = np.split(used[order], [min(n // 2, len(used))])
    chosen = np.concatenate([isolated, rng.permutation(others)])[:n]
    return to_numpy(dense(taken_rows(fit.rows.data.X, chosen))).astype(float)


class Surroundings:
    """Random points around some training rows."""

    def __init__(self, X: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        self.X, self.deviations = X, X.std(axis=0)
        self.center = 0.5 * (low + high)
        scaled = X / np.where(self.deviations > 0, self.deviations, 1.0)
        # Rows of equal inputs are no neighbours: there is nothing between them.
        first = np.sort(np.unique(X, axis=0, return_index=True)[1])
        nearest = KDTree(scaled[first]).query(scaled, [*range(1, NEAREST + 2)][: len(first)])[1]
        self.near = first[nearest]

    def neighbours(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Points between rows and their nearest rows, with noise, shape (n, d)."""
        i = rng.integers(len(self.X), size=n)
        j = rng.integers(min(1, self.near.shape[1] - 1), self.near.shape[1], size=n)
        from_row = self.X[self.near[i, j]] - self.X[i]
        noise = NEARBY * self.deviations * rng.standard_normal((n, self.X.shape[1]))
        return self.X[i] + rng.random((n, 1)) * from_row + noise

    def outside(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows moved away from the centre of the range, by up to a tenth of it, shape (n, d)."""
        from_center = self.X[rng.integers(len(self.X), size=n)] - self.center
        return self.center + from_center * (1 + BEYOND * rng.random(from_center.shape))
