"""Fits to a transformed target or to counts, and the families that lead back from them.

The regression is a fit to rows whose outputs are mapped to the link scale; the response family is
estimated from its leave-one-out residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.data.mapped_source import mapped_rows
from ulmus.core.data.source import RowBlocks, Source
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.forward_transforms import ForwardTransforms
from ulmus.core.fit.link_rows import LinkFit, link_rows, of_output
from ulmus.core.fit.quasi_likelihood import count_fit, point_mass_fit
from ulmus.core.fit.spec import FitSpec
from ulmus.core.fit.target_confirmation import Choice, chosen_target
from ulmus.core.response import ResponseFamilies
from ulmus.core.response.family import residual_nodes
from ulmus.core.response.target import (
    OutputPass,
    TargetSpec,
    Values,
    check_counts,
    check_range,
    has_point_mass,
    possible_values,
    transform_of,
)
from ulmus.core.response.transformed import Transformed
from ulmus.core.response.transformer import AnyTransform
from ulmus.exceptions import NeedsTwoPassesError

# Rows whose outputs determine a transformation.
SAMPLED_OUTPUTS = 4000


def fit_target(source: Source, spec: FitSpec, link_fit: LinkFit, *, correlated: bool) -> Fit:
    """Fit rows whose target is transformed, bounded or counted.

    Where noise is ``correlated``, or outputs are several, there are no point masses: their fit
    weights rows by the mean of a single output.
    """
    known, plain = known_target(source, spec), replace(spec, target=None)
    if correlated and known.spec.kind is None:
        known = known._replace(spec=replace(known.spec, kind="continuous"))
    choice, values = _choice(source, plain, known, link_fit), known.values[0]
    single = len(known.values) == 1 and not correlated
    if choice.counts:
        fit = count_fit(source, plain, values, link_fit)
    elif single and has_point_mass(known.spec, choice.transforms[0], values):
        transform = choice.transforms[0]
        bounds = possible_values(known.spec, transform, values)
        fit = point_mass_fit(source, plain, values, transform, bounds, link_fit)
    else:
        same = choice.fit if single else None  # fitted to these rows already
        fit = transformed_fit(source, plain, known, choice.transforms, link_fit, same)
    rows = fit.rows
    if rows is not None:
        assert isinstance(source, RowBlocks)
        rows = replace(rows, observed=to_numpy(source.y).astype(float))
    spec = replace(fit.spec, target=known.spec)
    return replace(fit, spec=spec, target_scores=choice.scores, rows=rows)


class KnownTarget(NamedTuple):
    """The parameters of the target, and the values of each output."""

    spec: TargetSpec
    values: list[Values]


def known_target(source: Source, spec: FitSpec) -> KnownTarget:
    """The parameters of the target and its values, checked against each other."""
    target, values = spec.target, output_values(source)
    assert target is not None  # else the rows are fitted as they are
    for one in values:
        check_range(target, one)
        if target.kind == "count":
            check_counts(one, len(values))
    return KnownTarget(target, values)


def _choice(source: Source, spec: FitSpec, known: KnownTarget, link_fit: LinkFit) -> Choice:
    """The transformations, given or chosen, or counts."""
    target, values = known
    if target.kind == "count":
        return Choice([], counts=True)
    if target.chosen_by_rows:
        return chosen_target(source, spec, target, values, link_fit)
    return Choice([transform_of(target, one) for one in values])


def output_values(source: Source) -> list[Values]:
    """Range and a sample of each output."""
    found = source.reduce(OutputPass())
    sample = to_numpy(source.sample(SAMPLED_OUTPUTS).y).astype(float)
    return [
        Values(
            float(found.least[k]),
            float(found.most[k]),
            found.n_rows,
            int(found.n_least[k]),
            bool(found.whole[k]),
            y,
        )
        for k, y in enumerate(sample)
    ]


def transformed_fit(
    source: Source,
    spec: FitSpec,
    known: KnownTarget,
    transforms: Sequence[AnyTransform],
    link_fit: LinkFit,
    fit: Fit | None = None,
) -> Fit:
    """A fit to transformed outputs, or the given one with its response families."""
    forward = ForwardTransforms(tuple(transforms))
    fit = link_fit(mapped_rows(source, forward), spec) if fit is None else fit
    return replace(fit, response=transformed_families(fit, source, forward, known))


def transformed_families(
    fit: Fit, source: Source, forward: ForwardTransforms, known: KnownTarget
) -> ResponseFamilies:
    """The response families of a fit to transformed outputs."""
    rows, dof = link_rows(fit, source, forward), fit.n_rows - fit.gamma
    families = []
    for k, transform in enumerate(forward.transforms):
        bounds = possible_values(known.spec, transform, known.values[k])
        nodes = residual_nodes(of_output(rows, k).scaled_residual, float(dof[k]))
        families.append(Transformed(transform, nodes, *bounds))
    return tuple(families)


def updated_target(
    rows: Source,
    spec: FitSpec,
    earlier: Fit | None,
    link_update: Callable[[Any, FitSpec], Fit],
    link_fit: LinkFit,
) -> Fit:
    """A fit to which rows are added that come once; the first ones determine transformations."""
    target = spec.target
    assert target is not None
    if target.kind == "count":
        text = "partial_fit reads each row once, and the weights of counts require several passes"
        raise NeedsTwoPassesError(f"{text}; use fit_blocks, or target_transform='sqrt'.")
    known, plain = known_target(rows, spec), replace(spec, target=None)
    if earlier is not None and earlier.response is not None:
        transforms = [one.transform for one in earlier.response if isinstance(one, Transformed)]
    else:
        # Neither counts nor point masses are fitted in one pass.
        target = replace(target, kind="continuous")
        several = [one._replace(n_least=0) for one in known.values]
        transforms = _choice(rows, plain, KnownTarget(target, several), link_fit).transforms
    forward = ForwardTransforms(tuple(transforms))
    fit = link_update(mapped_rows(rows, forward), plain)
    families = transformed_families(fit, rows, forward, known)
    return replace(fit, spec=replace(fit.spec, target=known.spec), response=families)
