"""The transformation that ``target_transform="auto"`` would choose for a fit to y itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ulmus.core.data.mapped_source import mapped_rows
from ulmus.core.data.source import RowBlocks, Source
from ulmus.core.fit.build import build
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.forward_transforms import ForwardTransforms
from ulmus.core.fit.link_rows import link_rows, links_of, of_output
from ulmus.core.fit.quasi_likelihood import count_fit
from ulmus.core.fit.spec import FitSpec
from ulmus.core.fit.target import output_values
from ulmus.core.fit.target_choice import (
    COUNT,
    MIN_GAIN,
    MOST_ERROR,
    candidate_transforms,
    compare_transforms,
    compared,
    log_densities,
    may_be_counts,
)
from ulmus.core.fit.target_confirmation import MIN_CONFIRMED
from ulmus.core.response.target import TargetScore, TargetSpec, Values
from ulmus.core.response.transformer import AnyTransform
from ulmus.core.response.transforms import Identity
from ulmus.exceptions import InputError, collect_warnings

# Rows that transformations are compared on, and members of the layer that they are fitted to.
SUGGESTION_ROWS, SUGGESTION_MEMBERS = 1000, 3

# Log densities of observations (n,), and their mean squared error.
Densities = tuple[np.ndarray, float]


def suggested_transform(fit: Fit, output: int = 0) -> TargetScore | None:
    """The best transformation of an output, or counts; None where y itself is as good.

    The candidates are fitted to some of the rows on some members of the fit, whose map is not
    optimised again. As for ``"auto"``, their gain over y itself exceeds ``MIN_GAIN`` standard
    errors with constant noise, and ``MIN_CONFIRMED`` over the fit itself. None also for fits
    without their rows, for fits whose target is specified, and for point masses, beside which a
    density is no score.
    """
    if fit.rows is None or fit.spec.target is not None or not np.any(fit.rows.data.used):
        return None
    values = output_values(fit.rows.data)[output]
    if values.has_mass and values.least == 0 and not values.whole:
        return None
    values = values._replace(n_least=0)  # the fit has no point mass of counts
    # Counts have no correlated noise, and are those of a single output.
    countable = fit.noise_covariance is None and fit.ensemble.n_outputs == 1
    target = TargetSpec("auto", kind=None if countable else "continuous")
    if values.least == values.most:
        return None
    try:
        with collect_warnings(), np.errstate(all="ignore"):
            comparison = _comparison(fit, output, values)
            if may_be_counts(target, values):
                score = comparison.score(COUNT, comparison.of_counts, MIN_GAIN)
                if score is not None:
                    return score
            return comparison.best_transform(replace(target, kind="continuous"))
    except InputError:  # the sample does not determine a fit of this layer
        return None


@dataclass(frozen=True)
class _Comparison:
    """A fit to an output, and some of its rows to compare it on with other fits."""

    own: Densities  # of the fit itself
    rows: RowBlocks
    output: int
    values: Values
    spec: FitSpec  # of the other fits

    def best_transform(self, target: TargetSpec) -> TargetScore | None:
        """Score of the best transformation, which is chosen among outputs of one regression."""
        candidates = candidate_transforms(target, self.values)
        block = self.rows.block(slice(None))._replace(root_weight=self.rows.root_weight)
        scores = compare_transforms(
            block, self.output, candidates, target, self.values, self.spec, _link_fit
        )
        best = candidates[next(i for i, score in enumerate(scores) if score.chosen)]
        if isinstance(best, Identity):
            return None
        return self.score(best.name, lambda: self.of_transform(best, target), MIN_CONFIRMED)

    def score(
        self, name: str, densities: Callable[[], Densities], least: float
    ) -> TargetScore | None:
        """Score of another fit; None unless it gains ``least`` standard errors."""
        gains, ratio = compared([self.own, densities()])
        gain, error = float(gains[1].mean()), float(gains[1].std() / np.sqrt(gains.shape[1]))
        if not (gain > least * error and ratio[1] <= MOST_ERROR):
            return None
        return TargetScore(self.output, name, gain, error, float(ratio[1]), True)

    def of_transform(self, transform: AnyTransform, target: TargetSpec) -> Densities:
        """Those of a fit to the transformed output, with noise as in the fit itself."""
        forward = ForwardTransforms((transform,))
        rows = replace(self.rows, y=self.rows.y[self.output : self.output + 1])
        fit = _link_fit(mapped_rows(rows, forward), self.spec)
        linked = of_output(link_rows(fit, rows, forward), 0)
        dof = float(fit.n_rows - fit.gamma[0])
        density, error = log_densities(transform, target, self.values, linked, dof)
        # That of a square root is infinite at its bound, which is no gain.
        return np.where(np.isfinite(density), density, self.own[0]), error

    def of_counts(self) -> Densities:
        """Those of a distribution of counts."""
        fit = count_fit(self.rows, self.spec, self.values, _link_fit)
        assert fit.response is not None
        linked = of_output(link_rows(fit, self.rows, lambda block: block), 0)
        family, link = fit.response[0], links_of(linked)
        return family.logpdf(linked.y, link), float(np.mean((linked.y - family.mean(link)) ** 2))


def _comparison(fit: Fit, output: int, values: Values) -> _Comparison:
    assert fit.rows is not None  # the caller's condition
    data, spec = fit.rows.data, fit.spec
    index = data.evenly_spaced(SUGGESTION_ROWS)
    linked = of_output(link_rows(fit, data, lambda block: block), output)
    at = np.searchsorted(np.flatnonzero(data.used), index)
    dof, target = float(fit.n_rows - fit.gamma[output]), TargetSpec("auto")
    own, _ = log_densities(Identity(), target, values, linked, dof)
    error = float(np.mean(linked.residual[at] ** 2))
    regression = replace(spec.regression, noise_variance="residual")
    if not (regression.alpha == "gcv" or isinstance(regression.alpha, float)):
        regression = replace(regression, alpha="loo")
    layer = fit.ensemble.layer.members(slice(0, SUGGESTION_MEMBERS))
    plain = replace(spec, layer=layer, regression=regression, tuning_fraction=None)
    rows = data.taken(index).without_blocks()
    return _Comparison((own[at], error), rows, output, values, plain)


def _link_fit(source: Source, spec: FitSpec, *, independent: bool = False) -> Fit:
    """A fit to rows on the link scale, with independent noise."""
    return build(source, replace(spec, target=None))
