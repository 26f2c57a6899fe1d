r"""The choice of a transformation by the leave-one-out predictive density of y.

All candidates are outputs of one regression on the same hidden layer, so that they cost little more
than a fit. The density of an observation is that of its scaled residual, smoothed without its fold,
times the derivative of the transformation. A transformation replaces the identity if its mean gain
exceeds ``MIN_GAIN`` standard errors and its means, transformed back, predict about as well. Small
whole numbers are counts, unless counts predict clearly worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from ulmus.core.arrays.backend import like, to_numpy
from ulmus.core.data.source import Block, RowBlocks, Source
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.link_rows import LinkFit, LinkRows, link_rows, links_of, of_output
from ulmus.core.fit.quasi_likelihood import amount_fit, count_fit
from ulmus.core.fit.spec import FitSpec
from ulmus.core.response.family import residual_nodes
from ulmus.core.response.point_mass import point_mass
from ulmus.core.response.residual_distribution import residual_shape
from ulmus.core.response.target import (
    TargetScore,
    TargetSpec,
    Values,
    has_point_mass,
    lower_bound,
    transform_of,
)
from ulmus.core.response.transformed import Transformed
from ulmus.core.response.transformer import AnyTransform
from ulmus.core.response.transforms import Identity, YeoJohnson

# Rows that candidates are compared on.
COMPARED_ROWS = 2000
# Powers of the Yeo-Johnson transformation; the inverse of others is infinite at finite numbers.
POWERS = (0.0, 0.25, 0.5, 0.75, 1.25, 1.5, 1.75, 2.0)
# Gain over the identity in standard errors, and largest ratio of root mean squared errors.
MIN_GAIN, MOST_ERROR = 3.0, 1.05
# A power is preferred to a logarithm or a root if it gains more than this many standard errors.
MIN_GAIN_OF_POWER = 1.0
# Small whole numbers are counts unless they lose more than this many standard errors.
MOST_LOSS_OF_COUNTS = 2.0
# Folds of the rows that the distribution of residuals is smoothed without.
FOLDS = 5
# Whole numbers of a larger mean are not taken for counts.
LARGEST_MEAN_COUNT = 100.0
COUNT = "count"
LEAST_PROBABILITY, LEAST_LOG_DENSITY = 1e-300, -1e6
# Largest gain or loss of a row: an outlier does not decide alone.
LARGEST_GAIN = 30.0


def candidate_transforms(target: TargetSpec, values: Values) -> list[AnyTransform]:
    """The identity, and the transformations that the values allow."""
    low, scale = lower_bound(target, values), float(np.std(values.sample))
    found: list[AnyTransform] = [Identity()]
    if values.least == values.most or not scale > 0:
        return found
    if target.transform == "auto":
        if np.isfinite(target.low) and np.isfinite(target.high):
            found.append(transform_of(replace(target, transform="logit"), values))
        if np.isfinite(low):
            names = ("log", "sqrt")
            found += [transform_of(replace(target, transform=name), values) for name in names]
    center = float(np.median(values.sample))
    return found + [YeoJohnson(power, center, scale) for power in POWERS]


def compare_transforms(
    block: Block,
    output: int,
    candidates: Sequence[AnyTransform],
    target: TargetSpec,
    values: Values,
    spec: FitSpec,
    link_fit: LinkFit,
) -> list[TargetScore]:
    """Scores of the candidates, of which one is chosen."""
    if len(candidates) == 1:
        return [TargetScore(output, candidates[0].name, 0.0, 0.0, 1.0, True)]
    y = to_numpy(block.y).astype(float)[output]
    if block.y.shape[0] == 1 and has_point_mass(target, candidates[0], values):
        results = _point_mass_densities(block, candidates, target, values, spec, link_fit)
    else:
        results = _transformed_densities(block, y, candidates, target, values, spec, link_fit)
    names = [_label(one) for one in candidates]
    best = _best(candidates, *compared(results), require_gain=target.transform == "auto")
    if may_be_counts(target, values) and block.y.shape[0] == 1:
        results.append(_count_densities(block, spec, values, link_fit))
        names.append(COUNT)
        gains, ratio = compared(results)
        if _is_no_worse(gains, ratio, len(names) - 1, best):
            best = len(names) - 1
    gains, ratio = compared(results)
    mean, se = gains.mean(axis=1), gains.std(axis=1) / np.sqrt(len(y))
    return [
        TargetScore(output, name, float(mean[i]), float(se[i]), float(ratio[i]), i == best)
        for i, name in enumerate(names)
    ]


def _label(transform: AnyTransform) -> str:
    """Name of a transformation, with its power."""
    power = f", power {transform.lmbda:g}" if isinstance(transform, YeoJohnson) else ""
    return f"{transform.name}{power}"


def may_be_counts(target: TargetSpec, values: Values) -> bool:
    """Whether whole numbers are so small that they may be counts."""
    whole = target.transform == "auto" and target.kind is None and values.whole
    small = values.least >= 0 and values.most > 1 and np.mean(values.sample) < LARGEST_MEAN_COUNT
    return bool(whole and small and target.high == np.inf)


def compared(results: Sequence[tuple[np.ndarray, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Gains over the first result for each row, and ratios of root mean squared errors."""
    densities = np.stack([density for density, _ in results])
    errors = np.array([error for _, error in results])
    densities = np.maximum(densities, LEAST_LOG_DENSITY)
    gains = np.clip(densities - densities[0], -LARGEST_GAIN, LARGEST_GAIN)
    gains = np.where(np.isnan(gains), 0.0, gains)
    return gains, np.sqrt(errors / errors[0]) if errors[0] > 0 else np.ones(len(errors))


def _is_no_worse(gains: np.ndarray, ratio: np.ndarray, i: int, best: int) -> bool:
    """Whether counts predict about as well as the best transformation."""
    difference = gains[best] - gains[i]
    error = difference.std() / np.sqrt(len(difference))
    return bool(difference.mean() <= MOST_LOSS_OF_COUNTS * error and ratio[i] <= MOST_ERROR)


def _count_densities(
    block: Block, spec: FitSpec, values: Values, link_fit: LinkFit
) -> tuple[np.ndarray, float]:
    """Logarithms of the probabilities of counts (n,), and the mean squared error of the means."""
    rows = rows_of_block(block)
    fit = count_fit(rows, _constant_noise(spec), values, _independent(link_fit))
    assert fit.response is not None
    assert fit.rows is not None
    same = of_output(link_rows(fit, rows, lambda block: block), 0)
    link, family = links_of(same), fit.response[0]
    error = float(np.mean((same.y - family.mean(link)) ** 2))
    return np.maximum(family.logpdf(same.y, link), -1e3), error


def _transformed_densities(
    block: Block,
    y: np.ndarray,
    candidates: Sequence[AnyTransform],
    target: TargetSpec,
    values: Values,
    spec: FitSpec,
    link_fit: LinkFit,
) -> list[tuple[np.ndarray, float]]:
    """Log densities and squared errors of transformations, as outputs of one regression."""
    z = np.stack([one.forward(y) for one in candidates])
    rows = replace(rows_of_block(block), y=z)
    fit = link_fit(rows, _constant_noise(spec), independent=True)
    linked, dof = link_rows(fit, rows, lambda same: same), fit.n_rows - fit.gamma
    each = [of_output(linked, i)._replace(y=y) for i in range(len(candidates))]
    return [
        log_densities(one, target, values, each[i], float(dof[i]))
        for i, one in enumerate(candidates)
    ]


def _point_mass_densities(
    block: Block,
    candidates: Sequence[AnyTransform],
    target: TargetSpec,
    values: Values,
    spec: FitSpec,
    link_fit: LinkFit,
) -> list[tuple[np.ndarray, float]]:
    """The same with a point mass, where all candidates have the same means."""
    rows, low = rows_of_block(block), values.least
    fit, linked = amount_fit(rows, _constant_noise(spec), values, low, _independent(link_fit))
    y, link, results = linked.y, links_of(linked), []
    for one in candidates:
        dof = float(fit.n_rows - fit.gamma[0])
        family = point_mass(y, linked.prediction, one, (low, target.high), dof)
        if values.whole:
            cell = family.cdf(y + 0.5, link) - family.cdf(y - 0.5, link)
            density = np.log(np.maximum(cell, LEAST_PROBABILITY))
        else:
            mass = np.log(np.maximum(family.point_mass(y, link), LEAST_PROBABILITY))
            at_bound = (y == low) | (y == target.high)
            density = np.where(at_bound, mass, family.logpdf(y, link))
        results.append((density, float(np.mean((y - family.mean(link)) ** 2))))
    return results


def rows_of_block(block: Block) -> RowBlocks:
    """The rows of a block as a source."""
    reference, root = like(np.empty(0), block.y), block.root_weight
    return RowBlocks(
        block.X, to_numpy(block.y), None if root is None else to_numpy(root), reference
    )


def _independent(link_fit: LinkFit) -> LinkFit:
    """The same for rows whose noise is not correlated."""

    def independent_fit(source: Source, spec: FitSpec, *, independent: bool = True) -> Fit:
        return link_fit(source, spec, independent=True)

    return independent_fit


def _constant_noise(spec: FitSpec) -> FitSpec:
    regression = spec.regression.with_constant_noise
    return replace(spec, regression=regression, min_gain_in_se=None, one_output=False)


def _best(
    candidates: Sequence[AnyTransform], gains: np.ndarray, ratio: np.ndarray, *, require_gain: bool
) -> int:
    """Number of the candidate to use."""
    mean, se = gains.mean(axis=1), gains.std(axis=1) / np.sqrt(gains.shape[1])
    usable = ratio <= MOST_ERROR
    usable[0] = True
    if require_gain:
        usable &= (mean > MIN_GAIN * se) | (np.arange(len(mean)) == 0)
    best = int(np.argmax(np.where(usable, mean, -np.inf)))
    if isinstance(candidates[best], YeoJohnson) and require_gain:
        simple = [i for i, one in enumerate(candidates) if i and not isinstance(one, YeoJohnson)]
        simple = [i for i in simple if usable[i]]
        if simple:
            other = max(simple, key=lambda i: mean[i])
            difference = gains[best] - gains[other]
            error = np.std(difference) / np.sqrt(len(difference))
            if np.mean(difference) <= MIN_GAIN_OF_POWER * error:
                return other
    return best


def log_densities(
    transform: AnyTransform, target: TargetSpec, values: Values, rows: LinkRows, dof: float
) -> tuple[np.ndarray, float]:
    """Logarithms of the predictive densities (n,), and the mean squared error of the means."""
    y = rows.y
    nodes = residual_nodes(rows.scaled_residual, dof)
    family = Transformed(transform, nodes, target.low, target.high)
    error = float(np.mean((y - family.mean(links_of(rows))) ** 2))
    sd = np.sqrt(rows.noise_variance + rows.model_variance)
    if values.whole:
        ends = [(_forward(transform, y + h) - rows.prediction) / sd for h in (-0.5, 0.5)]
        below, above = (ndtr(_smoothed_scores(rows.scaled_residual, end)[0]) for end in ends)
        return np.log(np.maximum(above - below, LEAST_PROBABILITY)), error
    score, slope = _smoothed_scores(rows.scaled_residual, rows.scaled_residual)
    density = -0.5 * score**2 - 0.5 * np.log(2 * np.pi) + np.log(slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        jacobian = transform.log_slope(y)
        # A bound has an infinite density, which is not compared.
        return np.where(np.isfinite(jacobian), density - np.log(sd) + jacobian, np.nan), error


def _forward(transform: AnyTransform, y: np.ndarray) -> np.ndarray:
    """Values on the link scale, for impossible ones those of the nearest possible one."""
    with np.errstate(divide="ignore"):
        return np.maximum(transform.forward(np.clip(y, *transform.support)), -1e300)


def _smoothed_scores(e: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Normal scores of values ``at`` for each row (n,), and their derivatives.

    They are those of the distribution of the scaled residuals e of other folds.
    """
    score, slope = np.empty(len(e)), np.empty(len(e))
    fold = np.arange(len(e)) % FOLDS
    for one in range(FOLDS):
        inside = fold == one
        shape = residual_shape(e[None, ~inside], np.array([True]))
        score[inside], slope[inside] = shape.scores(np.clip(at[inside], -1e6, 1e6), 0)
    return score, slope
