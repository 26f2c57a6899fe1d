"""Making a fit: one function for each way that rows arrive; they differ only in the source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import taken_rows, to_numpy
from ulmus.core.data.scaling import FeatureScale
from ulmus.core.data.source import OrderedSource, RowBlocks, Source
from ulmus.core.ensemble.correlated_noise import estimated_covariances, with_correlated_noise
from ulmus.core.ensemble.ensemble import Ensemble
from ulmus.core.ensemble.regression import (
    FittedRows,
    Specification,
    fitted_moments,
    fitted_rows,
    fitted_stream,
    started,
)
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.layer_spec import InputMap, LayerSpec
from ulmus.core.fit.refits import MapRefit
from ulmus.core.fit.training_data import Stream, TrainingRows
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.layer.inputs import Inputs, plain_inputs
from ulmus.core.noise.ordered_rows import ordered_rows, ordered_stream
from ulmus.core.noise_covariance.spec import CovarianceSpec, NoiseCovarianceEstimate
from ulmus.core.noise_model.model import selected_noise_model, streamed_noise_model
from ulmus.core.ridge.moments import FirstPass
from ulmus.core.ridge.preconditioner import sample_rows

# Training rows at which a fit is compared with a rougher one.
ALARM_ROWS = 500


@dataclass(frozen=True)
class Task:
    """What is to be fitted: the layer, the scale of the inputs, and how.

    Parameters
    ----------
    layer : HiddenLayer
        Drawn hidden units.
    input_map : InputMap or None
        The map in front of them, which the layer includes.
    scale : FeatureScale
        Scale and range of the inputs.
    spec : Specification
        Ridge, noise variance and estimates.
    min_gain_in_se : float or None
        Standard errors by which a noise variance that is a function of the inputs must beat a
        constant on left-out rows; None for a constant one.
    one_output : bool
        Whether y had a single axis.
    drawn : dict
        The parameters that the layer was drawn with, as text.
    recipe : LayerSpec or None
        How the layer was made, where rows can be made a layer of again.
    tuned : ndarray of shape (n,) or None
        Which rows the map was learned from, where others were kept from it.
    dependence : Dependence or None
        How the noise hangs together between rows, where it does.
    keeps_blocks : bool
        Whether rows are left out in blocks even if their noise turns out to be independent.
    """

    layer: HiddenLayer
    input_map: InputMap | None
    scale: FeatureScale
    spec: Specification
    min_gain_in_se: float | None
    one_output: bool
    drawn: dict[str, str]
    recipe: LayerSpec | None = None
    tuned: np.ndarray | None = None
    noise_covariance: CovarianceSpec | None = None
    keeps_blocks: bool = False

    def needs_no_blocks(self, found: tuple[NoiseCovarianceEstimate, ...]) -> bool:
        """Whether noise turned out to be independent, so that blocks guard against nothing."""
        return not self.keeps_blocks and all(one.independent for one in found)

    def by_rows(self) -> Task:
        """The same with rows left out one at a time."""
        rule = self.spec.alpha
        spec = replace(self.spec, alpha="loo" if rule == "block-loo" else rule)
        return replace(self, spec=spec)

    @property
    def sample_rows(self) -> int:
        """Rows wanted for the preconditioner."""
        return sample_rows(self.layer.n_units)

    @property
    def noise_inputs(self) -> Inputs:
        """Inputs of a model of the noise: those of the table, standardised."""
        return plain_inputs(self.scale, True, self.layer.b)


def fit_of_rows(rows: RowBlocks, task: Task) -> Fit:
    """Fit rows in memory, and keep them."""
    # Through the rows every point costs n MN products, through the features (MN)^2.
    task = replace(task, spec=replace(task.spec, dual=rows.n_rows < task.layer.width))
    fitted, found = fitted_rows(rows, task.layer, task.spec), None
    if task.noise_covariance is not None:
        ordered = ordered_rows(rows.for_width(task.layer.width), task.noise_covariance.locations)
        found = estimated_covariances(
            fitted.ensemble, ordered, task.noise_covariance.structure, task.spec.hc
        )
        if task.needs_no_blocks(found):
            task, rows = task.by_rows(), rows.without_blocks()
            fitted = fitted_rows(rows, task.layer, task.spec)
        ensemble = with_correlated_noise(
            fitted.ensemble, ordered, found, task.spec.hc, dual=task.spec.dual
        )
        fitted = replace(fitted, ensemble=ensemble)
    return _with_rows(fitted, rows.for_width(task.layer.width), task, found)


def _with_rows(
    fitted: FittedRows,
    data: RowBlocks,
    task: Task,
    found: tuple[NoiseCovarianceEstimate, ...] | None,
) -> Fit:
    ensemble = fitted.ensemble
    norm = ensemble.ordered(_per_output(fitted, "norm"), axis=1)
    leverage = ensemble.ordered(_per_output(fitted, "leverage"), axis=1)
    loo = ensemble.ordered([r["loo"] for r in fitted.records], axis=1)
    omega = None
    if task.spec.records_omega:
        omega = ensemble.ordered([r["omega"] for r in fitted.records])
    residual = ensemble.ordered([to_numpy(p.variance.residual) for p in ensemble.regressions])
    noise_model, noise = None, np.repeat(residual[:, None], loo.shape[2], axis=1)
    if task.min_gain_in_se is not None:
        noise_model, noise = selected_noise_model(
            data, task.noise_inputs, ensemble, loo, norm, task.min_gain_in_se
        )
    rows = TrainingRows(
        data,
        leverage.mean(axis=0),
        float(leverage.max()),
        loo,
        norm.mean(axis=0),
        noise,
        omega,
        task.tuned,
        None if task.noise_covariance is None else task.noise_covariance.locations,
    )
    points = data.sample(ALARM_ROWS).X
    kept = {"rows": rows, "retuning": _retuning(task), "noise_covariance": _told(found, ensemble)}
    return _fit(ensemble, task, points, noise_model=noise_model, **kept)


def _retuning(task: Task) -> MapRefit | None:
    """How to learn the map of a task again, if it was learned."""
    learned = task.input_map is not None and task.input_map.relevance is not None
    if not learned or task.recipe is None:
        return None
    recipe = replace(task.recipe, n_neurons=task.layer.W.shape[1])
    family = None if task.noise_covariance is None else task.noise_covariance.parametric
    return MapRefit(recipe, task.spec, family)


def _per_output(fitted: FittedRows, name: str) -> list[np.ndarray]:
    """Recorded results of a regression, (M, n), repeated for each of its outputs, (M, K, n)."""
    parts = zip(fitted.records, fitted.ensemble.regressions, strict=True)
    return [np.repeat(r[name][:, None, :], len(p.outputs), axis=1) for r, p in parts]


def fit_of_stream(source: Source, task: Task) -> Fit:
    """Fit rows that can be read several times and are not kept."""
    source = source.for_width(task.layer.width)
    sample = source.sample(task.sample_rows)
    start = started(sample, task.layer)
    ensemble = fitted_stream(source, task.layer, task.spec, start)
    noise_model, found = None, None
    if task.noise_covariance is not None:
        assert isinstance(source, OrderedSource)  # others are refused before rows are read
        ordered = ordered_stream(source.in_order, task.noise_covariance.used_locations)
        found = estimated_covariances(
            ensemble, ordered, task.noise_covariance.structure, task.spec.hc
        )
        if task.spec.alpha == "block-loo" and task.needs_no_blocks(found):
            task, source = task.by_rows(), source.without_blocks()
            ensemble = fitted_stream(source, task.layer, task.spec, start)
        ensemble = with_correlated_noise(ensemble, ordered, found, task.spec.hc, dual=False)
    if task.min_gain_in_se is not None:
        noise_model = streamed_noise_model(source, task.noise_inputs, ensemble, task.min_gain_in_se)
    points = _first_points(sample.X)
    return _fit(
        ensemble, task, points, noise_model=noise_model, noise_covariance=_told(found, ensemble)
    )


def _told(
    found: tuple[NoiseCovarianceEstimate, ...] | None, ensemble: Ensemble
) -> tuple[NoiseCovarianceEstimate, ...] | None:
    """What was found about dependent noise, in the units of y."""
    if found is None:
        return None
    units = zip(found, ensemble.unit, strict=True)
    return tuple(fit.in_units(float(unit)) for fit, unit in units)


def fit_of_more(rows: RowBlocks, task: Task, earlier: Fit | None) -> Fit:
    """Fit rows that come once, together with those of an earlier fit of the same layer."""
    rows = rows.for_width(task.layer.width)
    every = [slice(0, task.layer.n_members)]
    if earlier is None:
        sample = rows.sample(task.sample_rows)
        start, points = started(sample, task.layer), _first_points(sample.X)
        moments = rows.reduce(FirstPass(start.whitening, start.units, every))
    else:
        stream = continued(earlier)
        start, points = stream.start, earlier.points
        moments = stream.moments + rows.reduce(FirstPass(start.whitening, start.units, every))
    ensemble = fitted_moments(moments, start, task.layer, task.spec, None)
    return _fit(ensemble, task, points, stream=Stream(start, moments))


def continued(fit: Fit) -> Stream:
    """The sums of a fit, made from its rows if they have not been taken yet."""
    if fit.stream is not None:
        return fit.stream
    if fit.rows is None:
        raise ValueError(
            "partial_fit cannot go on from a fit whose rows are gone (compress or fit_blocks); "
            "start a new estimator with partial_fit, or fit again."
        )
    layer, rows = fit.ensemble.layer, fit.rows.data
    start = started(rows.sample(sample_rows(layer.n_units)), layer)
    every = [slice(0, layer.n_members)]
    return Stream(start, rows.reduce(FirstPass(start.whitening, start.units, every)))


def _fit(ensemble: Ensemble, task: Task, points: Any, **rest: Any) -> Fit:
    known = (task.spec.estimates, task.scale, points, task.one_output, task.drawn)
    return Fit(ensemble, *known, task.input_map, **rest)


def _first_points(X: Any) -> Any:
    return taken_rows(X, slice(min(ALARM_ROWS, X.shape[0])))
