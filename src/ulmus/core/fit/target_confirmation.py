"""The choice of a transformation, confirmed by fits that differ in their maps.

Candidates are compared behind one map for all of them. The best one, or else the best of another
kind, is confirmed by a fit of its own, whose map is optimised for it, beside such a fit of y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ulmus.core.data.mapped_source import mapped_rows
from ulmus.core.data.source import Block, RowBlocks, Source
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.forward_transforms import ForwardTransforms
from ulmus.core.fit.link_rows import LinkFit, link_rows, of_output
from ulmus.core.fit.spec import FitSpec
from ulmus.core.fit.target_choice import (
    COMPARED_ROWS,
    COUNT,
    MIN_GAIN,
    MOST_ERROR,
    candidate_transforms,
    compare_transforms,
    compared,
    log_densities,
    rows_of_block,
)
from ulmus.core.response.target import TargetScore, TargetSpec, Values, has_point_mass
from ulmus.core.response.transformer import AnyTransform
from ulmus.core.response.transforms import Identity

# Gain over y itself by fits of their own, in standard errors: the comparison has tested already.
MIN_CONFIRMED = 1.0


class Choice(NamedTuple):
    """The transformation of each output, or counts, and the scores of the candidates."""

    transforms: list[AnyTransform]
    scores: tuple[TargetScore, ...] = ()
    counts: bool = False
    fit: Fit | None = None  # a fit of all rows to the transformed output, where there is one


def chosen_target(
    source: Source, spec: FitSpec, target: TargetSpec, values: Sequence[Values], link_fit: LinkFit
) -> Choice:
    """The transformation of each output with the best predictive density."""
    block = source.sample(COMPARED_ROWS)
    few = isinstance(source, RowBlocks) and source.n_rows <= COMPARED_ROWS
    rows = source if isinstance(source, RowBlocks) and few else rows_of_block(block)
    chosen = [_choice(rows, block, k, spec, target, one, link_fit) for k, one in enumerate(values)]
    return Choice(
        [one.transforms[0] for one in chosen],
        tuple(score for one in chosen for score in one.scores),
        any(one.counts for one in chosen),
        chosen[0].fit if rows is source and len(chosen) == 1 else None,
    )


def _choice(
    rows: RowBlocks,
    block: Block,
    k: int,
    spec: FitSpec,
    target: TargetSpec,
    values: Values,
    link_fit: LinkFit,
) -> Choice:
    """The transformation of output k."""
    candidates = candidate_transforms(target, values)
    scores = compare_transforms(block, k, candidates, target, values, spec, link_fit)
    best = next(i for i, score in enumerate(scores) if score.chosen)
    if scores[best].name == COUNT:
        return Choice([Identity()], tuple(scores), counts=True)
    one = candidates[best]
    mixed = has_point_mass(target, one, values)
    if target.transform != "auto" or isinstance(one, Identity) or mixed:
        return Choice([one], tuple(scores))
    output = replace(rows, y=rows.y[k : k + 1])
    own = _own_fit(output, Identity(), target, values, spec, link_fit)
    scores = [replace(score, chosen=False) for score in scores]
    for i in _eligible(candidates, scores, best):
        other = _own_fit(output, candidates[i], target, values, spec, link_fit)
        scores[i] = _confirmed(scores[i], own, other)
        if scores[i].chosen:
            return Choice([candidates[i]], tuple(scores), fit=other.fit)
    scores[0] = replace(scores[0], chosen=True)
    return Choice([Identity()], tuple(scores), fit=own.fit)


def _eligible(
    candidates: Sequence[AnyTransform], scores: Sequence[TargetScore], best: int
) -> list[int]:
    """Candidates to confirm, best first: the best one, and the best of another kind."""
    order = sorted(range(1, len(candidates)), key=lambda i: -scores[i].gain)
    clear = [i for i in order if scores[i].is_clear(MIN_GAIN, MOST_ERROR)]
    others = [i for i in clear if type(candidates[i]) is not type(candidates[best])]
    return [best, *others[:1]]


class OwnFit(NamedTuple):
    """A fit with a map of its own, and its predictive densities of the rows."""

    fit: Fit
    densities: tuple[np.ndarray, float]  # logarithms (n,), and the mean squared error of the means


def _own_fit(
    rows: RowBlocks,
    transform: AnyTransform,
    target: TargetSpec,
    values: Values,
    spec: FitSpec,
    link_fit: LinkFit,
) -> OwnFit:
    forward = ForwardTransforms((transform,))
    fit = link_fit(mapped_rows(rows, forward), spec, independent=True)
    linked, dof = of_output(link_rows(fit, rows, forward), 0), float(fit.n_rows - fit.gamma[0])
    return OwnFit(fit, log_densities(transform, target, values, linked, dof))


def _confirmed(score: TargetScore, identity: OwnFit, other: OwnFit) -> TargetScore:
    """The score of a transformation with its gain over y itself by fits of their own."""
    gains, ratio = compared([identity.densities, other.densities])
    gain, error = float(gains[1].mean()), float(gains[1].std() / np.sqrt(gains.shape[1]))
    chosen = gain > MIN_CONFIRMED * error and ratio[1] <= MOST_ERROR
    return replace(
        score,
        confirmed_gain=gain,
        confirmed_error=error,
        error_ratio=float(ratio[1]),
        chosen=bool(chosen),
    )
