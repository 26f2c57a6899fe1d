"""Training rows, each predicted without it: means, coverage and probability integral transforms.

Coverage and PIT of a transformed target are those of the regression, as ranks do not change. Those
of counts and point masses follow from their predictive distributions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.query.leave_out import out_of_fold_residuals, row_sd, scaled_residuals
from ulmus.core.response import Counts, PointMass, Transformed
from ulmus.core.response.family import LinkPrediction
from ulmus.intervals.bounds import has_ranks, is_skewed, quantile_rank
from ulmus.intervals.distribution import fit_shape
from ulmus.intervals.observations import calibrated_error, calibrated_quantiles
from ulmus.intervals.randomised_pit import quantile_residuals, uniform_draws
from ulmus.intervals.response import (
    by_output,
    calibrated_families,
    leave_one_out_links,
    observed_outputs,
)

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]
FamilyOfOutput = Transformed | PointMass | Counts

# Intervals cover more than their level if so many of the values have a positive probability.
ATOM_SHARE = 0.02


@dataclass(frozen=True)
class LeaveOneOutRows:
    """The calibration rows of a fit, with predictions that do not depend on their y."""

    fit: Fit
    observed: FloatArray  # (K, n): outputs as the user gave them
    errors: FloatArray  # (K, n): scaled residuals on the scale of the regression
    residuals: FloatArray  # (K, n): residuals there, in the units of the output
    # Predictions of each output on the link scale; None if the regression is that of y.
    links: tuple[LinkPrediction, ...] | None

    @classmethod
    def of(cls, fit: Fit, rows: TrainingRows) -> LeaveOneOutRows:
        """Those of a fit that keeps its rows."""
        used = rows.calibration_rows
        residuals = out_of_fold_residuals(fit, rows)[:, used]
        links = None if fit.response is None else tuple(leave_one_out_links(fit))
        errors = scaled_residuals(fit, rows)
        return cls(fit, observed_outputs(fit)[:, used], errors, residuals, links)

    @cached_property
    def mean(self) -> FloatArray:
        """Predicted mean of each row, (K, n)."""
        if self.fit.response is None or self.links is None:
            return self.observed - self.residuals
        return by_output(self.fit.response, self.links, lambda one, link: one.mean(link)).T

    @cached_property
    def randomised(self) -> BoolArray:
        """Outputs with values of positive probability, whose PIT is randomised, (K,)."""
        if self.fit.response is None:
            return np.zeros(len(self.observed), dtype=bool)
        pairs = zip(self.fit.response, self.observed, strict=True)
        return np.array([has_atoms(family, y) for family, y in pairs])

    def coverage(self, k: int, levels: tuple[float, ...]) -> BoolArray:
        """Whether the rows lie in intervals that are computed from the others, (levels, n)."""
        if self.fit.response is None or self.links is None:
            return leave_one_out_coverage(self.errors[k], levels)
        family, y = self.fit.response[k], self.observed[k]
        if not isinstance(family, Transformed):
            below, mass = self._probabilities(k)
            score = np.clip(2.0 * np.minimum(below, 1.0 - below + mass), 0.0, 1.0)
            return _coverage_of_scores(score, levels, at_least=family.is_discrete)
        covered = leave_one_out_coverage(self.errors[k], levels)
        # An interval that is cut off at a bound of y contains the bound.
        inside = (y == family.least) & (self.errors[k] > 0)
        return covered | inside | ((y == family.most) & (self.errors[k] < 0))

    def bounds(self, k: int, level: float) -> FloatArray:
        """Prediction intervals that are computed from the other rows, on the scale of y, (2, n).

        Those of counts and point masses are quantiles of their predictive distributions, whose
        levels are calibrated by all rows.
        """
        family = None if self.fit.response is None else self.fit.response[k]
        if family is not None and not isinstance(family, Transformed):
            calibrated = calibrated_families(self.fit)[k]
            return calibrated_quantiles(calibrated, self.links[k], [level], calibrate=True)[:, 0]  # type: ignore[arg-type,index]
        rows = self.fit.rows
        assert rows is not None  # as in ``of``
        centre = self.mean[k] if family is None else self.links[k].mean  # type: ignore[index]
        sd = row_sd(self.fit, rows)[k, rows.calibration_rows]
        ends = centre + leave_one_out_ends(self.errors[k], level) * sd
        return ends if family is None else family.inverse(ends)

    @cached_property
    def pit(self) -> FloatArray:
        """Predictive distribution function at y, randomised where y has a probability, (K, n)."""
        return self._pit(uniform_draws(self.observed.shape))

    @property
    def middle_pit(self) -> FloatArray:
        """The same in the middle between the probabilities of less and of at most y, (K, n)."""
        return self._pit(np.full(self.observed.shape, 0.5))

    def _pit(self, draws: FloatArray) -> FloatArray:
        """The same for given positions (K, n) between these probabilities."""
        pit = self._continuous_pit()
        if self.fit.response is None:
            return pit
        for k, family in enumerate(self.fit.response):
            if isinstance(family, Transformed):
                low, high = self.observed[k] == family.least, self.observed[k] == family.most
                pit[k] = np.where(low, draws[k] * pit[k], pit[k])
                pit[k] = np.where(high, pit[k] + draws[k] * (1.0 - pit[k]), pit[k])
            else:
                below, mass = self._probabilities(k)
                pit[k] = np.clip(below - draws[k] * mass, 0.0, 1.0)
        return pit

    def _probabilities(self, k: int) -> tuple[FloatArray, FloatArray]:
        """Probabilities of at most y, and of y itself, each (n,)."""
        assert self.fit.response is not None
        assert self.links is not None
        family, y, link = self.fit.response[k], self.observed[k], self.links[k]
        return family.cdf(y, link), family.point_mass(y, link)

    def _continuous_pit(self) -> FloatArray:
        """The distribution function of scaled residuals (K, n)."""
        shape, dof = fit_shape(self.fit), residual_dof(self.fit)
        pit = stats.t.cdf(self.errors, dof[:, None])
        for k in np.flatnonzero(shape.shaped) if shape is not None else ():
            pit[k] = special.ndtr(shape.scores(self.errors[k], int(k))[0])  # type: ignore[union-attr]
        return pit


def training_quantile_residuals(fit: Fit, rows: TrainingRows, k: int) -> FloatArray:
    """Normal scores of the randomised PIT of all rows of an output, each without itself, (n,).

    The output has a distribution of counts or a point mass.
    """
    assert fit.response is not None  # the caller's condition
    unit, root = fit.ensemble.unit, rows.data.root_weight
    weight = 1.0 if root is None else np.where(root > 0, root, 1.0) ** 2
    noise = (rows.noise * unit[:, None] ** 2 / weight)[k]
    model = np.sqrt(np.maximum(row_sd(fit, rows)[k] ** 2 - noise, 0.0))
    mean = rows.data.y[k] - rows.residuals(unit)[k]
    link = LinkPrediction(mean, np.sqrt(noise), model, None)
    family, y = fit.response[k], observed_outputs(fit)[k]
    draws = uniform_draws(rows.noise.shape)[k]
    return quantile_residuals(family.cdf(y, link) - draws * family.point_mass(y, link))


def has_atoms(family: FamilyOfOutput, y: FloatArray) -> bool:
    """Whether single values have a positive probability, and occur among observations (n,)."""
    if not isinstance(family, Transformed):
        return True
    return bool(np.mean((y == family.least) | (y == family.most)) >= ATOM_SHARE)


def leave_one_out_coverage(errors: FloatArray, levels: tuple[float, ...]) -> BoolArray:
    """Whether scaled residuals (n,) lie in the intervals computed from the others, (levels, n).

    A value is at most the k-th smallest of the others if fewer than k of them are smaller, so that
    one sort suffices for all rows.
    """
    n, out = len(errors), np.empty((len(levels), len(errors)), dtype=bool)
    skewed = is_skewed(errors)
    for i, level in enumerate(levels):
        if skewed and has_ranks(n - 1, level, two_sided=True):
            tail = (1 - level) / 2
            smaller, up_to = _others_below(errors)
            above_low = up_to >= quantile_rank(n - 1, tail, upper=False)
            out[i] = above_low & (smaller < quantile_rank(n - 1, 1 - tail, upper=True))
        else:
            smaller, _ = _others_below(np.abs(errors))
            out[i] = smaller < quantile_rank(n - 1, level, upper=True)
    return out


def leave_one_out_ends(errors: FloatArray, level: float) -> FloatArray:
    """Bounds of each scaled residual (n,) that are order statistics of the others, (2, n).

    They contain the residuals that :func:`leave_one_out_coverage` finds covered.
    """
    n = len(errors)
    if is_skewed(errors) and has_ranks(n - 1, level, two_sided=True):
        tail = (1 - level) / 2
        low = _order_statistic_of_others(errors, quantile_rank(n - 1, tail, upper=False))
        return np.stack(
            [low, _order_statistic_of_others(errors, quantile_rank(n - 1, 1 - tail, upper=True))]
        )
    size = _order_statistic_of_others(np.abs(errors), quantile_rank(n - 1, level, upper=True))
    return np.stack([-size, size])


def _order_statistic_of_others(values: FloatArray, rank: int) -> FloatArray:
    """The value of this rank, from 1, among the other n - 1 values, (n,); infinite beyond them."""
    order = np.append(np.sort(values), np.inf)
    # Without one of the smaller values, the next one has this rank.
    own = np.empty(len(values), dtype=np.intp)
    own[np.argsort(values, kind="stable")] = np.arange(len(values))
    return order[np.minimum(np.where(own < rank, rank, rank - 1), len(values))]


def _others_below(values: FloatArray) -> tuple[IntArray, IntArray]:
    """For each value, the numbers of others that are smaller, and smaller or equal."""
    order = np.sort(values)
    smaller = np.searchsorted(order, values, side="left")
    return smaller, np.searchsorted(order, values, side="right") - 1


def _coverage_of_scores(
    score: FloatArray, levels: tuple[float, ...], *, at_least: bool
) -> BoolArray:
    """Whether tail probabilities (n,) exceed the errors calibrated by the others, (levels, n).

    Those of whole numbers are at most nominal, for ``at_least`` nominal coverage of single points.
    Without one of the scores, the calibrated error is one of two numbers: it depends on whether the
    score is among the smallest ones, up to the rank of the quantile.
    """
    n, order = len(score), np.sort(score)
    place = np.empty(n, dtype=np.intp)
    place[np.argsort(score, kind="stable")] = np.arange(n)
    out = np.empty((len(levels), n), dtype=bool)
    for i, level in enumerate(levels):
        without_small = calibrated_error(order[1:], level)
        without_large = calibrated_error(order[:-1], level)
        rank = max(quantile_rank(n - 1, 1.0 - level, upper=False), 1)
        error = np.where(place < rank, without_small, without_large)
        out[i] = score >= (np.minimum(error, 1.0 - level) if at_least else error)
    return out


def residual_dof(fit: Fit) -> FloatArray:
    """Residual degrees of freedom, at least one, shape (K,)."""
    gamma = fit.ensemble.per_output(part.smoother.gamma for part in fit.ensemble.regressions)
    return np.maximum(fit.n_rows - gamma, 1.0)
