"""A fit: one immutable value from which predictions, variances and diagnostics are computed.

Results that are expensive and not always needed are computed on first use. They depend on the
fields alone, so that no result depends on earlier calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import Array, dense, taken_rows, to_numpy
from ulmus.core.data.scaling import FeatureScale
from ulmus.core.ensemble.components import (
    leverages,
    low_rank_undersmoothed_parts,
    point_parts,
    undersmoothed_parts,
)
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.ensemble.map_uncertainty import MapUncertainty
from ulmus.core.fit.layer import InputMap
from ulmus.core.fit.low_rank import (
    Compact,
    LowRank,
    LowRankBasis,
    LowRankShifts,
    LowRankUndersmoothing,
    large_forms,
    low_rank,
    low_rank_undersmoothing,
)
from ulmus.core.fit.misfit import Misfit, mapped, misfit
from ulmus.core.fit.refits import (
    MOST_FOLDED_ROWS,
    Fold,
    Refits,
    held_out_folds,
    map_shifts,
    refitted,
    refitted_folds,
)
from ulmus.core.fit.spec import FitSpec, LayerSpec
from ulmus.core.fit.training_rows import CompressedRows, RowSums, TrainingRows
from ulmus.core.fit.undersmoothed_fit import Undersmoothing, undersmoothing
from ulmus.core.fit.unknown_levels import unknown_level_variance
from ulmus.core.layer.functionals import Functionals, Points, by_features, count
from ulmus.core.noise_covariance.diagnostics import NeighbourCorrelation
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.hac import HACEstimate
from ulmus.core.noise_model.model import NoiseVarianceModel
from ulmus.core.response import LogMean, ResponseFamilies
from ulmus.core.response.residual_distribution import ResidualShape
from ulmus.core.response.target import TargetScore
from ulmus.core.variance.estimates import (
    ESTIMATES,
    ChoiceShifts,
    PointParts,
    Shifts,
    UndersmoothedParts,
    joined,
)
from ulmus.core.variance.quadratic_forms import PairForms
from ulmus.exceptions import DegenerateFitWarning, NoResidualDofError, NoUndersmoothedFitError, warn
from ulmus.messages import Message, Setting

# Ratio of the largest to the smallest row weight above which noise differs visibly between rows.
DIFFERENT_WEIGHTS = 1.5


@dataclass(frozen=True)
class Fit:
    """A fitted ensemble."""

    ensemble: Ensemble  # the members, their regressions and forms
    spec: FitSpec  # the specification, as it was fitted
    scale: FeatureScale  # mean, standard deviation and range of the inputs
    # (p, d): some training inputs, at which the fit is compared with an undersmoothed one.
    gap_points: Any
    # The map in front of the hidden layer, which the layer includes.
    input_map: InputMap | None = None
    # Effect of its choice on predictions to first order; None where folds measure it.
    map_uncertainty: MapUncertainty | None = None
    # Noise variance as a function of the inputs; None for a constant one.
    noise_model: NoiseVarianceModel | None = None
    # Covariance of the noise of each output, in the units of y.
    noise_covariance: tuple[CovarianceEstimate | HACEstimate, ...] | None = None
    rows: TrainingRows | None = None  # the training rows of an in-memory fit
    sums: RowSums | None = None  # sums over the rows, kept by partial_fit
    compressed: CompressedRows | None = None  # what replaces the rows of a compressed fit
    # Stored refits; None if they are computed from rows and specification.
    refits: Refits | None = None
    # What replaces the exact forms, where these are not kept.
    compact: Compact | None = None
    # How predictions lead back to y, for each output; None where the regression is that of y.
    response: ResponseFamilies | None = None
    target_scores: tuple[TargetScore, ...] = ()  # scores of transformations that were compared

    def __getstate__(self) -> dict[str, Any]:
        """The state without forms of low rank, which are computed again in less time than a fit."""
        forms = (
            "_low_rank",
            "exact_ensemble",
            "low_rank_shifts",
            "low_rank_undersmoothing",
            "on_link_scale",
        )
        return {name: value for name, value in vars(self).items() if name not in forms}

    @property
    def estimates(self) -> tuple[str, ...]:
        """Variance estimates, the default first."""
        return self.spec.regression.estimates

    @property
    def encoded_columns(self) -> np.ndarray | None:
        """Column of the user's table that each input encodes, (d,); None if they are the same."""
        layer = self.spec.layer
        return layer.columns if isinstance(layer, LayerSpec) else None

    @property
    def one_output(self) -> bool:
        """Whether y had a single axis."""
        return self.spec.one_output

    def with_parameters(self, **parameters: str) -> Fit:
        """The same fit with other parameters of the layer, as text."""
        spec = replace(self.spec, parameters={**self.spec.parameters, **parameters})
        return replace(self, spec=spec)

    @property
    def residual_shape(self) -> ResidualShape | None:
        """Distribution of the residuals of a compressed fit, where it is not normal."""
        return None if self.compressed is None else self.compressed.residual_shape

    @property
    def n_rows(self) -> int:
        """Rows of positive weight."""
        return self.ensemble.regressions[0].smoother.n_rows

    @property
    def mean_weight(self) -> float:
        """Mean weight of the rows of positive weight: that of a new observation by default."""
        return self.ensemble.regressions[0].smoother.mass / self.n_rows

    @property
    def has_working_weights(self) -> bool:
        """Whether the weights of the rows follow from the means of y."""
        return any(isinstance(one, LogMean) for one in self.response or ())

    @cached_property
    def on_link_scale(self) -> Fit:
        """The same fit, whose results are those of the regression instead of the response."""
        if self.response is None:
            return self
        link = replace(self, response=None)
        # What was computed already is shared.
        names = {one.name for one in fields(self)}
        vars(link).update({k: v for k, v in vars(self).items() if k not in names})
        return link

    @property
    def weights_differ(self) -> bool:
        """Whether the rows have so different weights that their mean describes few of them."""
        if self.has_working_weights:
            return False
        low, high = self.scale.weight_range
        return high > DIFFERENT_WEIGHTS * low

    @property
    def gamma(self) -> np.ndarray:
        """Effective degrees of freedom of a member, shape (K,)."""
        parts = self.ensemble.regressions
        return self.ensemble.per_output(part.smoother.gamma for part in parts)

    @cached_property
    def sigma2(self) -> np.ndarray:
        """Noise variance at weight 1, shape (K,)."""
        return self.per_regression(lambda p: p.noise_variance.sigma2) * self.ensemble.unit**2

    def per_regression(self, value: Callable[[Regression], Array], axis: int = 0) -> np.ndarray:
        """A result of each regression, joined in the order of the outputs."""
        parts = [to_numpy(value(part)) for part in self.ensemble.regressions]
        return self.ensemble.ordered(parts, axis=axis)

    # ------------------------------------------------------------ points and functionals

    def features(self, X: Array) -> Array:
        """Hidden features h of points, shape (M, N', p)."""
        return self.ensemble.layer(X)

    def mean(self, X: Array | Functionals) -> np.ndarray:
        """Prediction at the rows of X, or of functionals, shape (K, p)."""
        return self.ensemble.mean(X)

    def parts(self, X: Points, estimate: str | None = None) -> PointParts:
        """Mean, spread and both means of the form at rows of X or of functionals, each (p, K)."""
        if self.low_rank is None:
            _ = self.exact_ensemble
        return joined(
            by_features(partial(self.parts_of, estimate=estimate), self.ensemble.layer, X)
        )

    def parts_of(
        self, h: Array, estimate: str | None = None, other: Array | None = None
    ) -> PointParts:
        """The same for features h (M, N', p), or bilinear in them and other features."""
        pairing = ESTIMATES[self.estimates[0] if estimate is None else estimate].pairing
        if self.low_rank is not None:
            return point_parts(self.ensemble, pairing, h, other, self.low_rank.parts)
        return point_parts(self.exact_ensemble, pairing, h, other)

    def leverage(self, X: Array | Functionals) -> np.ndarray:
        """Squared lengths of the coordinates, mean over members, shape (K, p)."""
        if self.low_rank is None:
            task = partial(leverages, self.exact_ensemble)
        else:
            task = partial(leverages, self.ensemble, low_rank=self.low_rank.parts)
        return np.concatenate(by_features(task, self.ensemble.layer, X), axis=1)

    @property
    def variance_tolerance(self) -> float:
        """Largest relative error of a standard error that was measured; zero for exact forms."""
        return 0.0 if self.low_rank is None else self.low_rank.tolerance

    @property
    def low_rank(self) -> LowRank | None:
        """Forms of low rank for the variances of predictions, where they replace the exact ones."""
        if self.compact is not None:
            return self.compact.forms
        return None if self._low_rank is None else self._low_rank.forms

    @cached_property
    def _low_rank(self) -> LowRankBasis | None:
        return low_rank(self)

    @cached_property
    def low_rank_shifts(self) -> tuple[LowRankShifts, ...] | None:
        """Leave-one-out shifts of each regression in low-rank coordinates, where these are used."""
        if self.low_rank is None or self.rows is None:
            return None
        basis = self._low_rank
        return None if basis is None else basis.shifts(self.exact_ensemble, self.rows)

    @cached_property
    def low_rank_undersmoothing(self) -> LowRankUndersmoothing | None:
        """The forms of low rank of the undersmoothed networks."""
        if self.compact is not None and self.compact.undersmoothing is not None:
            return self.compact.undersmoothing
        return None if self.low_rank is None else low_rank_undersmoothing(self)

    @cached_property
    def exact_ensemble(self) -> Ensemble:
        """The ensemble with exact forms: computed again from the rows if they are not kept."""
        if self.compact is None or self.rows is None:
            return self.ensemble
        return refitted(self)

    def prepare(self) -> None:
        """Compute the forms and refits that variances use, once and before blocks of points."""
        if self.low_rank is None:
            _ = self.exact_ensemble
        _ = self.folded

    @property
    def noise_forms(self) -> tuple[PairForms, ...]:
        """Forms of the noise of the undersmoothed networks, for each regression."""
        forms = self.undersmoothing.forms
        if forms is not None:
            return forms
        pairing = ESTIMATES[self.estimates[0]].pairing
        return tuple(part.forms[pairing] for part in self.exact_ensemble.regressions)

    def noise_variance(self, X: Array, weight: np.ndarray | None = None) -> np.ndarray:
        """Variance of a new observation around its prediction, shape (p, K).

        Observations have the weights (p,), or the mean weight of the rows. Where the level of a
        category is unknown, the variance of the function over its levels is added.
        """
        weight = np.array([self.mean_weight]) if weight is None else weight
        noise = (self.unit_noise(X) * self.ensemble.unit[:, None] ** 2 / weight).T
        return noise + unknown_level_variance(self.ensemble, self.spec.levels, X)

    def unit_noise(self, X: Array) -> np.ndarray:
        """The same at weight 1 and in the fit's units of y, shape (K, p)."""
        if self.noise_model is not None:
            return self.noise_model.variance(X)
        residual = self.per_regression(lambda part: part.noise_variance.residual)
        return np.repeat(residual[:, None], X.shape[0], axis=1)

    def choice_variance(self, X: Points) -> np.ndarray:
        """Variance of the prediction due to the choice of alpha and map, shape (p, K)."""
        return self.choice_shifts(X).variance

    def choice_shifts(self, X: Points) -> ChoiceShifts:
        """Shifts of the prediction from which that variance and its covariances follow."""
        added, subtracted = self.ensemble.alpha_shifts(X)
        return ChoiceShifts(Shifts(added[None], subtracted[None]), self.map_shifts(X))

    def map_variance(self, X: Points) -> np.ndarray:
        """Variance of the prediction due to the choice of the map, shape (K, p)."""
        return self.map_shifts(X).variance

    def map_shifts(self, X: Points) -> Shifts:
        """Shifts of the prediction due to the map: of each fold, or to first order, (s, K, p)."""
        none = np.zeros((0, self.ensemble.n_outputs, count(X)))
        if self.folded:
            return Shifts(map_shifts(self.folds, X), none)
        if self.map_uncertainty is None:
            return Shifts(none, none)
        return Shifts(*self.map_uncertainty.shifts(self.ensemble, X))

    # ------------------------------------------------------------ refits

    @property
    def _map_optimised(self) -> bool:
        return self.input_map is not None and self.input_map.optimised

    @property
    def _needs_folds(self) -> bool:
        """Whether the map was optimised on so few rows that folds enter the error bars."""
        few = self.rows is not None and self.rows.map_rows is None
        return few and self._map_optimised and self.n_rows <= MOST_FOLDED_ROWS

    @property
    def folded(self) -> bool:
        """Whether the choice of the map enters the error bars by refits."""
        if self.refits is not None:
            return bool(self.refits.folds)
        return self._needs_folds and bool(self.folds)

    @property
    def needs_refits(self) -> bool:
        """Whether error bars require refits of the map that the fit does not store."""
        return self.refits is None and self._needs_folds

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """Fits with input maps that were learned without one fold of the rows; none without a map.

        If a refit has no residual degrees of freedom, the result is empty, and a warning is issued.
        """
        if self.refits is not None:
            return self.refits.folds
        if not self._map_optimised or self.rows is None:
            return ()
        structure = self.covariances[0].structure if self.covariances else None
        try:
            return refitted_folds(
                self.rows.data,
                self.spec,
                self.ensemble,
                self.rows.fold_importances,
                structure,
                self.rows.locations,
            )
        except NoResidualDofError as error:
            cause = (
                "standard errors and intervals exclude the variance due to the optimised map, "
                "because a fit behind the map of a fold failed: " + str(error).rstrip(".")
            )
            suggestions = (Setting("alpha", "loo"), Setting("input_map", None))
            message = Message("map-refits-failed", cause, suggestions=suggestions)
            warn(message, DegenerateFitWarning)
            return ()

    @cached_property
    def held_out(self) -> tuple[Fold, ...]:
        """Fits that exclude a fold of the rows from map and regressions, for CV+."""
        if self.refits is not None:
            return self.refits.held_out
        if self.rows is None:
            return ()
        return held_out_folds(self.rows.data, self.spec, self.folds)

    def with_refits(self) -> Fit:
        """The same fit with the refits that its error bars need stored in it.

        Where rows are many, no error bar but CV+ needs any, and none are stored.
        """
        if not self.needs_refits:
            return self
        return replace(self, refits=Refits(self.folds, self.held_out))

    # ------------------------------------------------------------ correlated noise

    @property
    def covariance_dof(self) -> np.ndarray:
        """Degrees of freedom of the variance of correlated noise, else infinite, (K,)."""
        estimates = self.noise_covariance or ()
        limits = [math.inf if one.independent else one.dof for one in estimates]
        return np.array(limits or [math.inf] * self.ensemble.n_outputs)

    @property
    def noise_dof(self) -> np.ndarray:
        """Degrees of freedom of the variance of a new observation's noise, shape (K,)."""
        limits = [one.sill_dof if one else math.inf for one in self._correlated]
        return np.minimum(self.n_rows - self.gamma, limits)

    @property
    def has_covariance(self) -> np.ndarray:
        """Outputs whose noise has an estimated covariance other than zero, shape (K,)."""
        return np.array([one is not None for one in self._correlated])

    @property
    def covariances(self) -> tuple[CovarianceEstimate, ...]:
        """Estimated parametric covariances of the noise of each output, if there are any."""
        return tuple(
            one for one in self.noise_covariance or () if isinstance(one, CovarianceEstimate)
        )

    @property
    def _correlated(self) -> list[CovarianceEstimate | None]:
        """Covariance of the noise of each output, None where rows are independent."""
        estimates = self.covariances or (None,) * self.ensemble.n_outputs
        return [None if one is None or one.independent else one for one in estimates]

    @property
    def serial_correlations(self) -> tuple[NeighbourCorrelation, ...]:
        """Correlation of successive rows of each output; none without rows."""
        return () if self.rows is None else self.rows.serial_correlations

    # ------------------------------------------------------------ bias

    @cached_property
    def undersmoothing(self) -> Undersmoothing:
        """Networks of the same members with a smaller ridge parameter."""
        if self.compressed is None:
            data, omega = (None, None) if self.rows is None else (self.rows.data, self.rows.omega)
            return undersmoothing(self.exact_ensemble, self.estimates[0], data, omega)
        if self.compressed.undersmoothing is None:
            return undersmoothing(self.ensemble, self.estimates[0])
        return self.compressed.undersmoothing

    def undersmoothed_parts(self, X: Array | Functionals) -> UndersmoothedParts:
        """Mean and variance of the undersmoothed networks at rows of X or of functionals."""
        # Factored once, before the blocks of points.
        if self.low_rank_undersmoothing is None:
            _ = self.undersmoothing
        parts = by_features(self.undersmoothed_parts_of, self.ensemble.layer, X)
        columns = zip(*(part[:4] for part in parts), strict=True)
        mean, spread, noise, null_space = (np.concatenate(a) for a in columns)
        return parts[0]._replace(mean=mean, spread=spread, noise=noise, null_space=null_space)

    def undersmoothed_parts_of(self, h: Array, other: Array | None = None) -> UndersmoothedParts:
        """The same for features h (M, N', p), or bilinear in them and other features."""
        low_rank = self.low_rank_undersmoothing
        if low_rank is None:
            networks = self.undersmoothing.networks
            return undersmoothed_parts(self.exact_ensemble, networks, self.noise_forms, h, other)
        return low_rank_undersmoothed_parts(self.ensemble, low_rank.parts, low_rank.dof, h, other)

    @cached_property
    def undersmoothing_gap(self) -> float:
        """Largest distance between prediction and undersmoothed fit, in standard errors.

        Not a number where there is no undersmoothed fit, or no point to compare at.
        """
        if self.compressed is not None:
            return self.compressed.undersmoothing_gap
        if self.gap_points.shape[0] == 0:
            return float("nan")
        try:
            parts = self.undersmoothed_parts(self.gap_points)
        except NoUndersmoothedFitError:
            return float("nan")
        se = np.sqrt(parts.variance)
        gap = np.abs(self.mean(self.gap_points).T - parts.mean)
        return float(np.max(np.divide(gap, se, out=np.zeros_like(gap), where=se > 0)))

    @cached_property
    def misfit(self) -> Misfit | None:
        """Signs that the layer cannot represent the function; None without rows.

        None also for rows with block ids: residuals of neighbours agree where noise is correlated.
        """
        if self.rows is None or self.rows.data.block_ids is not None:
            return None
        residuals = self.rows.residuals(self.ensemble.unit)
        relevance = None if self.input_map is None else self.input_map.relevance
        if relevance is not None and self.encoded_columns is not None:
            relevance = relevance[self.encoded_columns]
        return misfit(
            self.ensemble, self.rows.data, residuals, self.sigma2, self.map_matrix, relevance
        )

    def misfit_allowance(self, X: Array | Functionals) -> np.ndarray:
        """Half-width that misfit adds to an interval for the function, shape (p, K).

        For functionals, the largest sum over the points that they are made of.
        """
        if self.misfit is None or not self.misfit.found:
            return np.zeros((count(X), self.ensemble.n_outputs))
        if isinstance(X, Functionals):
            return X.largest_sum(lambda few: self.misfit_allowance(few).T, self.ensemble.layer)
        inputs = mapped(self.ensemble, dense(X), self.map_matrix)
        return self.misfit.allowance(inputs, self.mean(X)).T

    @property
    def map_matrix(self) -> np.ndarray | None:
        """Matrix (d', d') of the map of the inputs; None without a map."""
        return None if self.input_map is None else self.input_map.matrix

    # ------------------------------------------------------------ compression

    def compacted(self) -> Fit:
        """The same fit without exact forms, if these are large and follow from its rows."""
        if self.compact is not None or self.rows is None or not large_forms(self):
            return self
        return self._without_forms(Compact(self.low_rank, None))

    def _without_forms(self, compact: Compact) -> Fit:
        noise_model = None if self.noise_model is None else self.noise_model.summary
        return replace(
            self, ensemble=self.ensemble.summary, noise_model=noise_model, compact=compact
        )

    def compress(self, residual_shape: ResidualShape | None = None) -> Fit:
        """The same fit without training rows: with forms of low rank, or all in primal shape."""
        smaller, gap = None, self.undersmoothing_gap
        unavailable = bool(np.isnan(gap))
        undersmoothed = None if unavailable else self.low_rank_undersmoothing
        if self.low_rank is not None and (unavailable or undersmoothed is not None):
            fit = self._without_forms(Compact(self.low_rank, undersmoothed))
        else:
            fit = replace(self, ensemble=self.exact_ensemble, compact=None)
            smaller = None if unavailable else self.undersmoothing.primal()
        parts = [
            replace(part, forms={name: pair.primal() for name, pair in part.forms.items()})
            for part in fit.ensemble.regressions
        ]
        return replace(
            fit,
            ensemble=replace(fit.ensemble, regressions=tuple(parts)),
            gap_points=taken_rows(fit.gap_points, slice(0)),
            rows=None,
            sums=None,
            compressed=CompressedRows(gap, smaller, residual_shape),
            refits=Refits(self.folds, ()) if self.folded else None,
        )
