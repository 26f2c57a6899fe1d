"""Regressions of rows that are not kept: a stream that is read several times, or sums alone."""

from __future__ import annotations

from dataclasses import replace

from ulmus.core.data.source import Source
from ulmus.core.ensemble.ensemble import Ensemble
from ulmus.core.ensemble.regression import (
    RegressionSpec,
    SampleScaling,
    SecondPass,
    regression_noise,
    regressions,
    with_residual_noises,
)
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.ridge.factor import factor_of_moments
from ulmus.core.ridge.member_pairs import COMMON, lone_members, member_groups
from ulmus.core.ridge.moments import FirstPass, Moments
from ulmus.core.ridge.sampled_pairs import ALL_ROWS, PairSampling
from ulmus.core.variance.quadratic_forms import common_forms


def fitted_stream(
    source: Source,
    layer: HiddenLayer,
    spec: RegressionSpec,
    scaling: SampleScaling,
    sampling: PairSampling = ALL_ROWS,
) -> Ensemble:
    """Fit rows that are not kept."""
    source = source.for_width(layer.width)
    first = _first_pass(layer, spec, sampling)
    moments = source.reduce(FirstPass(scaling.whitening, scaling.units, *first))
    ensemble = fitted_moments(moments, scaling, layer, spec, source)
    if spec.residual_noises:
        totals = source.reduce(SecondPass(ensemble, [], spec.residual_noises, (), sampling))
        ensemble = with_residual_noises(ensemble, totals, spec.residual_noises)
    return ensemble


def _first_pass(
    layer: HiddenLayer, spec: RegressionSpec, sampling: PairSampling
) -> tuple[list[slice], PairSampling]:
    """Groups of members whose pairs the first pass sums over, and the sample of other pairs.

    Estimates of constant noise require all pairs, the pilot those of its group.
    """
    M, n_neurons = layer.b.shape
    if spec.constant_noise:
        return sampling.groups(M, n_neurons), sampling
    if spec.pilot:
        group = member_groups(M, n_neurons)[0]
        return [group, *lone_members(M, group.stop)], ALL_ROWS
    return lone_members(M), ALL_ROWS


def fitted_moments(
    moments: Moments,
    scaling: SampleScaling,
    layer: HiddenLayer,
    spec: RegressionSpec,
    source: Source | None = None,
) -> Ensemble:
    """Fit from the sums of the first pass; leave-one-out selection of alpha needs the source."""
    if moments.n_rows < 2:
        raise ValueError(
            f"the data contain {moments.n_rows} row of positive weight; give at least two."
        )
    factor = factor_of_moments(moments, scaling.whitening)
    spec = spec.in_units(scaling.units)
    parts = []
    for regression, from_phi in regressions(factor, layer, scaling.units, spec, source):
        assert from_phi is not None  # the factor is one of whitened features
        gram = moments.gram.rotated(from_phi[:, : regression.exact.n_strong, :])
        variance, forms = regression_noise(regression, spec, gram), {}
        if spec.constant_noise:
            forms[COMMON.name] = common_forms(gram, variance.sigma2)
        parts.append(replace(regression, noise_variance=variance, forms=forms))
    return Ensemble(layer, scaling.units, tuple(parts))
