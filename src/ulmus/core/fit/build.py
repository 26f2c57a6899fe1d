"""From rows and a specification to a fit: scale, input map, layer, regressions and noise model.

Rows in memory are kept in the fit. A stream is read several times and not kept. Rows that come once
are added to the sums of an earlier fit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import double_precision, taken_rows, to_numpy
from ulmus.core.data.scaling import FeatureScale, checked_feature_scale, feature_scale
from ulmus.core.data.source import OrderedSource, RowBlocks, Source
from ulmus.core.ensemble.correlated_noise import estimated_covariances, with_correlated_noise
from ulmus.core.ensemble.ensemble import Ensemble
from ulmus.core.ensemble.regression import FittedRows, RegressionSpec, fitted_rows, sample_scaling
from ulmus.core.ensemble.stream import fitted_moments, fitted_stream
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.layer import FEWEST_ROWS, DrawnLayer, MapSearch, hidden_layer
from ulmus.core.fit.map_choice import importances_of_folds, uncertainty_of_map
from ulmus.core.fit.refits import MOST_FOLDED_ROWS
from ulmus.core.fit.spec import FitSpec, LayerSpec
from ulmus.core.fit.target import fit_target, updated_target
from ulmus.core.fit.training_rows import RowSums, TrainingRows
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.layer.inputs import Inputs, plain_inputs
from ulmus.core.noise.ordered_rows import ordered_rows, ordered_stream
from ulmus.core.noise_covariance.spec import CovarianceSpec, NoiseCovarianceEstimate
from ulmus.core.noise_model.forms import BlockVariances, RowVariances, with_modelled_noise
from ulmus.core.noise_model.model import NoiseVarianceModel, selected_noise_model
from ulmus.core.noise_model.stream import streamed_noise_model
from ulmus.core.ridge.member_pairs import MODELLED
from ulmus.core.ridge.moments import FirstPass
from ulmus.core.ridge.preconditioner import sample_rows
from ulmus.core.ridge.sampled_pairs import pair_sampling
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

# Training rows at which a fit is compared with an undersmoothed one.
GAP_ROWS = 500
# Squares of larger numbers exceed the range of single precision.
LARGEST_SINGLE = 1e18
# Smaller differences of inputs are cast to zero, or to numbers of few digits.
SMALLEST_SINGLE = 1e-30


def build(
    source: Source,
    spec: FitSpec,
    covariance: CovarianceSpec | None = None,
    search: MapSearch | None = None,
) -> Fit:
    """Fit rows in memory, which are kept, or rows of a source that can be read several times."""

    def link_fit(source: Source, spec: FitSpec, *, independent: bool = False) -> Fit:
        return _build(source, spec, None if independent else covariance, search)

    if spec.target is None:
        return link_fit(source, spec)
    return fit_target(source, spec, link_fit, correlated=covariance is not None)


def _build(
    source: Source, spec: FitSpec, covariance: CovarianceSpec | None, search: MapSearch | None
) -> Fit:
    _check_float32_outputs(source)
    scale = checked_feature_scale(source.reduce(feature_scale))
    _check_float32_inputs(source, scale)
    if isinstance(source, RowBlocks):
        return _build_rows(source, spec, scale, covariance, search)
    return _build_stream(source, spec, scale, covariance, search)


def update(
    rows: RowBlocks, spec: FitSpec, earlier: Fit | None = None, search: MapSearch | None = None
) -> Fit:
    """Fit rows that are read once, together with those of an earlier fit of the same layer."""

    def link_fit(source: Source, spec: FitSpec, *, independent: bool = False) -> Fit:
        return _build(source, spec, None, search)

    def link_update(rows: RowBlocks, spec: FitSpec) -> Fit:
        return _update(rows, spec, earlier, search)

    if spec.target is None:
        return link_update(rows, spec)
    return updated_target(rows, spec, earlier, link_update, link_fit)


def _update(rows: RowBlocks, spec: FitSpec, earlier: Fit | None, search: MapSearch | None) -> Fit:
    # There is no second pass for a noise model.
    spec = replace(spec, regression=spec.regression.with_constant_noise)
    _check_float32_outputs(rows)
    scale = rows.reduce(feature_scale)
    scale = checked_feature_scale(scale) if earlier is None else earlier.scale + scale
    _check_float32_inputs(rows, scale)
    if earlier is None:
        layer, input_map, _ = _layer(rows, spec, scale, None, search)
    else:
        layer, input_map = earlier.ensemble.layer, earlier.input_map
    rows = rows.for_width(layer.width)
    every = [slice(0, layer.n_members)]
    if earlier is None:
        sample = rows.sample(sample_rows(layer.n_units))
        scaling, points = sample_scaling(sample, layer), _first_points(sample.X)
        moments = rows.reduce(FirstPass(scaling.whitening, scaling.units, every))
    else:
        sums = _row_sums(earlier)
        scaling, points = sums.scaling, earlier.gap_points
        moments = sums.moments + rows.reduce(FirstPass(scaling.whitening, scaling.units, every))
    return Fit(
        ensemble=fitted_moments(moments, scaling, layer, spec.regression),
        spec=spec,
        scale=scale,
        gap_points=points,
        input_map=input_map,
        sums=RowSums(scaling, moments),
    )


def _row_sums(fit: Fit) -> RowSums:
    """The sums of a fit, computed from its rows if it stores none."""
    if fit.sums is not None:
        return fit.sums
    if fit.rows is None:
        cause = (
            "partial_fit requires the rows of the earlier fit or their sums, which compress drops "
            "and fit_blocks does not keep"
        )
        remedy = "start a new estimator with partial_fit, or fit again"
        raise InputError(Message("rows-not-kept", cause, suggestions=(remedy,)))
    layer, rows = fit.ensemble.layer, fit.rows.data
    scaling = sample_scaling(rows.sample(sample_rows(layer.n_units)), layer)
    every = [slice(0, layer.n_members)]
    return RowSums(scaling, rows.reduce(FirstPass(scaling.whitening, scaling.units, every)))


def _check_float32_outputs(source: Source) -> None:
    """Raise an error for outputs whose squares exceed single precision, before they are cast."""
    if isinstance(source, RowBlocks) and not double_precision(source.reference):
        _check_float32_range("y", float(np.max(np.abs(source.y))))


def _check_float32_inputs(source: Source, scale: FeatureScale) -> None:
    """Raise an error for inputs that single precision cannot represent, or not their squares."""
    if double_precision(source.sample(1).y):
        return
    _check_float32_range("X", float(max(np.max(-scale.low), np.max(scale.high))))
    size = (scale.high - scale.low).astype(float)
    if np.any((size > 0) & (size < SMALLEST_SINGLE)):
        j = int(np.argmax((size > 0) & (size < SMALLEST_SINGLE)))
        cause = f"cannot represent input {j} of X, which varies by {size[j]:.1g}"
        suggestions = Setting("dtype", "float64"), "multiply it by a factor that brings it near 1"
        raise InputError(Message("range", cause, "dtype", "float32", suggestions))


def _check_float32_range(name: str, largest: float) -> None:
    if largest > LARGEST_SINGLE:
        cause = f"cannot represent the square of {name}, which reaches {largest:.1g}"
        remedy = f"multiply {name} by a factor that brings it near 1"
        suggestions = (Setting("dtype", "float64"), remedy)
        raise InputError(Message("range", cause, "dtype", "float32", suggestions))


def _layer(
    source: Source,
    spec: FitSpec,
    scale: FeatureScale,
    covariance: CovarianceSpec | None,
    search: MapSearch | None,
) -> DrawnLayer:
    if isinstance(spec.layer, HiddenLayer):
        return DrawnLayer(spec.layer, None, None)
    source = source.for_width(len(scale.mean))
    return hidden_layer(source, spec.layer, scale, source.sample(1).y, covariance, search)


# ------------------------------------------------------------ rows in memory


def _build_rows(
    rows: RowBlocks,
    spec: FitSpec,
    scale: FeatureScale,
    covariance: CovarianceSpec | None,
    search: MapSearch | None,
) -> Fit:
    map_rows, map_source, map_covariance = _map_rows(rows, spec), rows, covariance
    if map_rows is not None:
        index = np.flatnonzero(map_rows)
        map_source = rows.taken(index)
        map_covariance = None if covariance is None else covariance.taken(index)
    layer, input_map, learned_from = _layer(map_source, spec, scale, map_covariance, search)
    dual = spec.keeps_coordinates(rows.n_rows, layer)
    regression = _by_blocks(spec.regression, covariance)
    fitted, estimates = fitted_rows(rows, layer, regression, dual=dual), None
    if covariance is not None:
        ordered = ordered_rows(rows.for_width(layer.width), covariance.locations)
        estimates = estimated_covariances(
            fitted.ensemble, ordered, covariance.structure, regression.hc
        )
        # A fixed alpha is refitted too: the leave-one-out residuals of its rows depend on blocks.
        if spec.regression.alpha != "block-loo" and all(one.independent for one in estimates):
            regression, rows = spec.regression, rows.without_blocks()
            fitted = fitted_rows(rows, layer, regression, dual=dual)
        ensemble = with_correlated_noise(
            fitted.ensemble, ordered, estimates, regression.hc, dual=dual
        )
        fitted = replace(fitted, ensemble=ensemble)
    data = rows.for_width(layer.width)
    inputs = plain_inputs(scale, True, layer.b)
    training, noise_model = _training_rows(fitted, data, inputs, spec)
    ensemble, regression = _with_noise_model(
        fitted.ensemble, data, regression, noise_model, RowVariances(training.noise)
    )
    uncertainty, importances = None, tuple[np.ndarray, ...]()
    if map_rows is None and int(np.sum(rows.used)) <= MOST_FOLDED_ROWS:
        importances = importances_of_folds(data, spec, learned_from, search)
    elif covariance is None:
        uncertainty = uncertainty_of_map(ensemble, learned_from, noise_model)
    locations = None if covariance is None else covariance.locations
    training = replace(
        training, map_rows=map_rows, locations=locations, fold_importances=importances
    )
    return Fit(
        ensemble=ensemble,
        spec=replace(spec, regression=regression),
        scale=scale,
        gap_points=data.sample(GAP_ROWS).X,
        input_map=input_map,
        map_uncertainty=uncertainty,
        noise_model=noise_model,
        noise_covariance=_in_units_of_y(estimates, fitted.ensemble),
        rows=training,
    )


def _map_rows(rows: RowBlocks, spec: FitSpec) -> np.ndarray | None:
    """Rows that the map is optimised on, shape (n,); None for all."""
    fraction = spec.tuning_fraction
    if fraction is None or not isinstance(spec.layer, LayerSpec):
        return None
    used = np.flatnonzero(rows.used)
    n_map = int(np.ceil(fraction * len(used)))
    if n_map < FEWEST_ROWS or len(used) - n_map < 2:
        cause = (
            f"of {len(used)} rows sets {n_map} aside for the map, which requires at least "
            f"{FEWEST_ROWS}, and leaves {len(used) - n_map} for intervals"
        )
        suggestions = (
            Setting("tuning_fraction", phrase="use another {}"),
            Setting("tuning_fraction", None),
        )
        message = Message("map-rows", cause, "tuning_fraction", fraction, suggestions)
        raise InputError(message)
    chosen = np.zeros(rows.n_rows, dtype=bool)
    chosen[np.random.default_rng(spec.layer.map_seed).permutation(used)[:n_map]] = True
    return chosen


def _by_blocks(regression: RegressionSpec, covariance: CovarianceSpec | None) -> RegressionSpec:
    """Leave-one-out leaves out blocks of rows where noise is correlated."""
    if covariance is None or regression.alpha != "loo":
        return regression
    return replace(regression, alpha="block-loo")


def _training_rows(
    fitted: FittedRows, data: RowBlocks, inputs: Inputs, spec: FitSpec
) -> tuple[TrainingRows, Any]:
    """Leave-one-out results of the rows, and the noise model."""
    ensemble = fitted.ensemble
    loo_leverage = ensemble.ordered(_per_output(fitted, "loo_leverage"), axis=1)
    leverage = ensemble.ordered(_per_output(fitted, "leverage"), axis=1)
    loo = ensemble.ordered([record["loo"] for record in fitted.records], axis=1)
    omega = None
    if spec.regression.records_omega:
        omega = ensemble.ordered([record["omega"] for record in fitted.records])
    residual = ensemble.ordered([to_numpy(p.noise_variance.residual) for p in ensemble.regressions])
    noise_model, noise = None, np.repeat(residual[:, None], loo.shape[2], axis=1)
    if spec.min_gain_in_se is not None:
        noise_model, noise = selected_noise_model(
            data, inputs, ensemble, loo, loo_leverage, spec.min_gain_in_se
        )
    rows = TrainingRows(
        data=data,
        leverage=leverage.mean(axis=0),
        largest_leverage=float(leverage.max()),
        loo=loo,
        loo_leverage=loo_leverage.mean(axis=0),
        noise=noise,
        omega=omega,
    )
    return rows, noise_model


def _with_noise_model(
    ensemble: Ensemble,
    source: Source,
    regression: RegressionSpec,
    model: NoiseVarianceModel | None,
    variances: BlockVariances | None,
) -> tuple[Ensemble, RegressionSpec]:
    """The ensemble with forms of the modelled noise, if its estimates use them and it varies.

    Otherwise the estimates are those of constant noise.
    """
    if model is None or variances is None or not np.any(model.varies):
        return ensemble, regression.with_constant_noise
    if MODELLED.name not in regression.pairings:
        return ensemble, regression
    modelled = with_modelled_noise(
        ensemble, source, model.varies, variances, exact=regression.exact
    )
    return modelled, regression


def _per_output(fitted: FittedRows, name: str) -> list[np.ndarray]:
    """Recorded results of a regression, (M, n), repeated for each of its outputs, (M, K, n)."""
    parts = zip(fitted.records, fitted.ensemble.regressions, strict=True)
    return [np.repeat(r[name][:, None, :], len(p.outputs), axis=1) for r, p in parts]


def _in_units_of_y(
    estimates: tuple[NoiseCovarianceEstimate, ...] | None, ensemble: Ensemble
) -> tuple[NoiseCovarianceEstimate, ...] | None:
    if estimates is None:
        return None
    units = zip(estimates, ensemble.unit, strict=True)
    return tuple(one.in_units(float(unit)) for one, unit in units)


# ------------------------------------------------------------ rows of a stream


def _build_stream(
    source: Source,
    spec: FitSpec,
    scale: FeatureScale,
    covariance: CovarianceSpec | None,
    search: MapSearch | None,
) -> Fit:
    layer, input_map, learned_from = _layer(source, spec, scale, covariance, search)
    source = source.for_width(layer.width)
    sample = source.sample(sample_rows(layer.n_units))
    scaling = sample_scaling(sample, layer)
    regression = _by_blocks(spec.regression, covariance)
    sampling = pair_sampling(scale.n_rows, layer, exact=regression.exact)
    ensemble, estimates = fitted_stream(source, layer, regression, scaling, sampling), None
    if covariance is not None:
        assert isinstance(source, OrderedSource)  # others are refused before rows are read
        ordered = ordered_stream(source.in_order, covariance.used_locations)
        estimates = estimated_covariances(ensemble, ordered, covariance.structure, regression.hc)
        # A stream keeps no leave-one-out residuals, so that only the choice of alpha uses blocks.
        if spec.regression.alpha == "loo" and all(one.independent for one in estimates):
            regression, source = spec.regression, source.without_blocks()
            ensemble = fitted_stream(source, layer, regression, scaling, sampling)
        ensemble = with_correlated_noise(ensemble, ordered, estimates, regression.hc, dual=False)
    noise_model = variances = None
    if spec.min_gain_in_se is not None:
        inputs = plain_inputs(scale, True, layer.b)
        noise_model, variances = streamed_noise_model(source, inputs, ensemble, spec.min_gain_in_se)
    ensemble, regression = _with_noise_model(ensemble, source, regression, noise_model, variances)
    uncertainty = None
    if covariance is None:
        uncertainty = uncertainty_of_map(ensemble, learned_from, noise_model)
    return Fit(
        ensemble=ensemble,
        spec=replace(spec, regression=regression),
        scale=scale,
        gap_points=_first_points(sample.X),
        input_map=input_map,
        map_uncertainty=uncertainty,
        noise_model=noise_model,
        noise_covariance=_in_units_of_y(estimates, ensemble),
    )


def _first_points(X: Any) -> Any:
    return taken_rows(X, slice(min(GAP_ROWS, X.shape[0])))
