r"""Quasi-likelihood with a log link: penalised iteratively reweighted least squares.

The regression is of :math:`\eta = \log(\mu - a)` for the mean :math:`\mu` of y above its bound a
(zero for counts). With the variance function V, a ridge regression of the working response
:math:`\eta + (y - \mu) / (\mu - a)` with weights :math:`(\mu - a)^2 / V` is a step of scoring
(McCullagh & Nelder, 1989, sections 2.5 and 9.2). Its fit is that of any weighted regression, with
the standard errors, leverages and leave-one-out results of one, and consistent for the mean
whatever the distribution of y.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import FloatArray, like, to_numpy
from ulmus.core.data.mapped_source import mapped_rows
from ulmus.core.data.source import Block, Source
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.link_rows import LinkFit, LinkRows, link_rows, of_output
from ulmus.core.fit.spec import FitSpec
from ulmus.core.response.counts import count_family, dispersion_by_moments
from ulmus.core.response.point_mass import point_mass
from ulmus.core.response.target import Values
from ulmus.core.response.transformer import AnyTransform

# Steps of Fisher scoring on the layer of the first fit.
SCORING_STEPS = 3
# The logarithm of the mean stays this close to that of the mean of y.
LARGEST_DEVIATION = 8.0
# Added before the first logarithm: to counts, and to amounts as a share of their mean.
START, START_SHARE = 0.5, 0.5
# Power of the mean in the variance of amounts with a point mass: between those of counts and of
# amounts of constant relative error, as of a sum of a random number of gamma variables (Tweedie).
AMOUNT_POWER = 1.5


@dataclass(frozen=True)
class VarianceFunction:
    """The variance of y by its mean above the bound, up to a factor."""

    dispersion: float | None  # mean + dispersion mean^2; None for the power of amounts
    unit: float = 1.0  # mean of the amounts, in units of which weights are near 1

    def weight(self, mean: FloatArray) -> FloatArray:
        """Squared mean over variance."""
        if self.dispersion is None:
            return (mean / self.unit) ** (2.0 - AMOUNT_POWER)
        return mean / (1.0 + self.dispersion * mean)

    def updated(self, y: FloatArray, mean: FloatArray) -> VarianceFunction:
        """The same with the dispersion of observations around their means."""
        if self.dispersion is None:
            return self
        return VarianceFunction(dispersion_by_moments(y, mean))


@dataclass(frozen=True)
class StartingResponse:
    """Logarithms of the outputs, with weights as if these were the means."""

    low: float  # the bound
    start: float  # added before the logarithm
    variance: VarianceFunction

    def __call__(self, block: Block) -> Block:
        """The block with these outputs and weights."""
        above = to_numpy(block.y).astype(float) - self.low + self.start
        above = np.maximum(above, self.start)
        return _linked(block, np.log(above), self.variance.weight(above[0]))


@dataclass(frozen=True)
class WorkingResponse:
    """Working responses and weights at the means of a fit."""

    fit: Fit
    low: float
    offset: float  # added to the predictions of the fit
    variance: VarianceFunction
    limits: tuple[float, float]  # of the logarithm of the mean

    def __call__(self, block: Block) -> Block:
        """The block with these outputs and weights."""
        above = to_numpy(block.y).astype(float) - self.low
        eta = np.clip(self.fit.mean(block.X)[0] + self.offset, *self.limits)
        mean = np.exp(eta)
        return _linked(block, eta + (above - mean) / mean, self.variance.weight(mean))


def _linked(block: Block, z: FloatArray, weight: FloatArray) -> Block:
    root = np.sqrt(weight)
    if block.root_weight is not None:
        own = to_numpy(block.root_weight)
        # Rows of weight zero may have impossible outputs.
        root = np.where(own > 0, np.where(own > 0, root, 1.0) * own, 0.0)
        z = np.where(own > 0, z, 0.0)
    return block._replace(y=like(z, block.y), root_weight=like(root, block.y))


class QuasiFit(NamedTuple):
    """A fit of the logarithm of the mean, and its rows with leave-one-out results."""

    fit: Fit
    rows: LinkRows


def quasi_fit(
    source: Source,
    spec: FitSpec,
    start: StartingResponse,
    mean: float,
    link_fit: LinkFit,
) -> QuasiFit:
    """Fit the mean of a single output, whose mean over the rows is about ``mean`` above the bound.

    The map is optimised twice: for the logarithms of the outputs, and for the working responses.
    """
    limits = np.log(mean) - LARGEST_DEVIATION, np.log(mean) + LARGEST_DEVIATION
    regression = spec.regression.with_constant_noise
    simple = replace(spec, regression=regression, min_gain_in_se=None)
    fit = link_fit(mapped_rows(source, start), simple)
    rows = of_output(link_rows(fit, source, start), 0)
    # The mean of the predicted means is that of the outputs.
    offset = np.log(np.mean(rows.y - start.low)) - np.log(np.mean(np.exp(rows.prediction)))
    working = _working(fit, rows, start, float(offset), limits)
    for _ in range(SCORING_STEPS):
        fit = link_fit(mapped_rows(source, working), replace(simple, layer=fit.ensemble.layer))
        rows = of_output(link_rows(fit, source, working), 0)
        working = _working(fit, rows, start, 0.0, limits)
    fit = link_fit(mapped_rows(source, working), spec)
    return QuasiFit(fit, of_output(link_rows(fit, source, working), 0))


def _working(
    fit: Fit, rows: LinkRows, start: StartingResponse, offset: float, limits: Any
) -> WorkingResponse:
    mean = np.exp(np.clip(rows.prediction + offset, *limits))
    variance = start.variance.updated(rows.y - start.low, mean)
    return WorkingResponse(fit, start.low, offset, variance, limits)


def count_fit(source: Source, spec: FitSpec, values: Values, link_fit: LinkFit) -> Fit:
    """A fit to counts."""
    mean = max(float(np.mean(values.sample)), START / len(values.sample))
    start = StartingResponse(0.0, START, VarianceFunction(0.0))
    fit, rows = quasi_fit(source, spec, start, mean, link_fit)
    family = count_family(rows.y, rows.prediction, rows.model_variance)
    return replace(fit, response=(family,))


def amount_fit(
    source: Source, spec: FitSpec, values: Values, low: float, link_fit: LinkFit
) -> QuasiFit:
    """A fit of the mean of amounts above a bound."""
    mean = float(np.mean(values.sample)) - low
    start = StartingResponse(low, START_SHARE * mean, VarianceFunction(None, mean))
    return quasi_fit(source, spec, start, mean, link_fit)


def point_mass_fit(
    source: Source,
    spec: FitSpec,
    values: Values,
    transform: AnyTransform,
    bounds: tuple[float, float],
    link_fit: LinkFit,
) -> Fit:
    """A fit to amounts above a bound that many rows equal."""
    fit, rows = amount_fit(source, spec, values, bounds[0], link_fit)
    dof = float(fit.n_rows - fit.gamma[0])
    family = point_mass(rows.y, rows.prediction, transform, bounds, dof)
    unit = float(np.mean(values.sample)) - bounds[0]
    return replace(fit, response=(replace(family, unit=unit),))
