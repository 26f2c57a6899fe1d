"""A fit: one immutable value that answers every question about points and functionals.

It is made once, from a source of rows and a specification (make.py), and never changed after.
What is expensive and not always asked for, the wide networks, is made on first use and kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import Array, dense, double_precision, taken_rows, to_numpy
from ulmus.core.data.scaling import FeatureScale
from ulmus.core.ensemble.components import point_parts, undersmoothed_parts
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.fit.layer_spec import InputMap
from ulmus.core.fit.misfit import Misfit, mapped, misfit
from ulmus.core.fit.refits import MOST_FOLDED_ROWS, Fold, MapRefit, map_shifts
from ulmus.core.fit.residual_distribution import ResidualShape
from ulmus.core.fit.training_data import Stream, TrainingRows
from ulmus.core.fit.undersmoothing_forms import group_products, per_row_forms
from ulmus.core.layer.functionals import Functionals, count, features
from ulmus.core.noise import noise_of_estimate
from ulmus.core.noise_covariance.diagnostics import SerialCorrelation
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.hac import HACEstimate
from ulmus.core.noise_model.model import NoiseVarianceModel
from ulmus.core.variance.estimates import (
    ESTIMATES,
    ChoiceShifts,
    PointParts,
    UndersmoothedParts,
    joined,
)
from ulmus.core.variance.quadratic_forms import PairForms
from ulmus.core.variance.undersmoothing import UndersmoothedNetworks, undersmoothed_networks
from ulmus.exceptions import NoUndersmoothedFitError
from ulmus.messages import Message, Setting

FLOAT32 = Message(
    "float32-undersmoothing",
    "requires smaller ridge parameters than float32 resolves",
    "target",
    "function",
    (Setting("target", "expectation"), Setting("dtype", "float64", "fit with {}")),
)
REFITS_NOT_KEPT = (
    "method='cv+' needs maps of the inputs that were learned without a fold of the rows, and this "
    "model file has none; ask for method='cv+' once before the model is saved, or fit again."
)


@dataclass(frozen=True)
class Fit:
    """A fitted ensemble.

    Parameters
    ----------
    ensemble : Ensemble
        The members, their regressions and forms.
    estimates : tuple of str
        Estimates that can be asked for, the default first.
    scale : FeatureScale
        Mean, deviation and range of the inputs.
    points : array of shape (p, d)
        Some training inputs, at which the fit compares itself with a rougher one.
    one_output : bool
        Whether y had a single axis.
    drawn : dict
        The parameters that the layer was drawn with, as text.
    input_map : InputMap or None
        The map in front of the hidden layer, which the layer includes.
    noise_model : NoiseVarianceModel or None
        Noise variance as a function of the inputs; None for a constant one.
    rows : TrainingRows or None
        The training rows, where they are kept.
    stream : Stream or None
        Sums that more rows can be added to.
    kept_networks : tuple of UndersmoothedNetworks, or None
        Wide networks of each regression, where the rows they were made from were dropped.
    kept_forms : tuple of PairForms, or None
        Forms of their noise, where these need rows.
    kept_alarm : float or None
        The alarm about bias, where the points for it were dropped.
    retuning : MapRefit or None
        How to learn the map again, where one was learned.
    kept_folds : tuple of Fold, or None
        Fits behind maps learned without a fold, where the rows they were made from were dropped.
    kept_shape : ResidualShape or None
        The shape of the left-out residuals, where they were dropped and were not normal.
    kept_held_out : tuple of Fold, or None
        Fits that have not seen a fold at all, where they cannot be made any more.
    dependence : tuple of CovarianceEstimate or HACEstimate, or None
        How the noise of each output hangs together between rows, in the units of y.
    """

    ensemble: Ensemble
    estimates: tuple[str, ...]
    scale: FeatureScale
    points: Any
    one_output: bool
    drawn: dict[str, str]
    input_map: InputMap | None = None
    noise_model: NoiseVarianceModel | None = None
    rows: TrainingRows | None = None
    stream: Stream | None = None
    kept_networks: tuple[UndersmoothedNetworks, ...] | None = None
    kept_forms: tuple[PairForms, ...] | None = None
    kept_alarm: float | None = None
    retuning: MapRefit | None = None
    kept_folds: tuple[Fold, ...] | None = None
    kept_shape: ResidualShape | None = None
    kept_held_out: tuple[Fold, ...] | None = None
    noise_covariance: tuple[CovarianceEstimate | HACEstimate, ...] | None = None

    @property
    def n_rows(self) -> int:
        """Rows of positive weight."""
        return self.ensemble.regressions[0].smoother.n_rows

    @property
    def mean_weight(self) -> float:
        """Mean weight of the rows of positive weight: that of a new observation."""
        return self.ensemble.regressions[0].smoother.mass / self.n_rows

    @property
    def _whole_forms(self) -> bool:
        """Whether the forms of the default estimate serve wide networks too.

        Those of single rows do not: residuals of each member are its own.
        """
        return not noise_of_estimate(self.estimates[0]).heteroskedastic

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

    def parts(self, X: Array | Functionals, estimate: str | None = None) -> PointParts:
        """Mean, spread and both means of the form at rows of X or of functionals, each (p, K)."""
        return joined([self.parts_of(h, estimate) for h in features(self.ensemble.layer, X)])

    def parts_of(
        self, h: Array, estimate: str | None = None, other: Array | None = None
    ) -> PointParts:
        """The same for features h (M, N', p), or bilinear in them and other features."""
        pairing = ESTIMATES[self.estimates[0] if estimate is None else estimate].pairing
        return point_parts(self.ensemble, pairing, h, other)

    def noise_variance(self, X: Array) -> np.ndarray:
        """Variance of a new observation of mean weight around its prediction, shape (p, K)."""
        return (self.unit_noise(X) * self.ensemble.unit[:, None] ** 2 / self.mean_weight).T

    def unit_noise(self, X: Array) -> np.ndarray:
        """The same at weight 1 and in the fit's units of y, shape (K, p)."""
        if self.noise_model is not None:
            return self.noise_model.variance(X)
        residual = self.per_regression(lambda part: part.variance.residual)
        return np.repeat(residual[:, None], X.shape[0], axis=1)

    def choice_variance(self, X: Array | Functionals) -> np.ndarray:
        """Variance of the prediction because alpha and the map were chosen, shape (p, K)."""
        return self.choice_shifts(X).variance

    def choice_shifts(self, X: Array | Functionals) -> ChoiceShifts:
        """What it is made of, and what covariances are made of too."""
        return ChoiceShifts(self.ensemble.alpha_shifts(X), self.map_shifts(X))

    def map_variance(self, X: Array | Functionals) -> np.ndarray:
        """The part of it that the map has, where its rows are few, shape (K, p)."""
        return np.sum(self.map_shifts(X) ** 2, axis=0)

    def map_shifts(self, X: Array | Functionals) -> np.ndarray:
        """Shifts of the prediction, one for each fold, whose squares sum to it, (folds, K, p)."""
        if not self.folded:
            return np.zeros((1, self.ensemble.n_outputs, count(X)))
        return map_shifts(self.folds, X)

    @property
    def folded(self) -> bool:
        """Whether the map rests on so few rows that their pull on it counts."""
        if self.retuning is None or self.rows is None:
            return self.kept_folds is not None
        return self._few_rows and bool(self.folds)

    @property
    def awaits_folds(self) -> bool:
        """Whether error bars would first learn maps without each fold, which takes its time."""
        return self.retuning is not None and self._few_rows and "folds" not in vars(self)

    @property
    def _few_rows(self) -> bool:
        """Whether rows are kept and so few that each pulls the map towards itself."""
        if self.rows is None or self.rows.tuned is not None:
            return False
        return self.n_rows <= MOST_FOLDED_ROWS

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """Fits behind maps that were each learned without a fold of the rows."""
        if self.kept_folds is not None:
            return self.kept_folds
        if self.retuning is None or self.rows is None:
            return ()
        return self.retuning.folds(self.rows.data, self.rows.locations)

    @cached_property
    def held_out(self) -> tuple[Fold, ...]:
        """Fits that have not seen a fold of the rows at all, for CV+; none without a map."""
        if self.kept_held_out is not None:
            return self.kept_held_out
        if self._relevance is None or self.rows is None:
            return ()
        if self.retuning is None:
            raise ValueError(REFITS_NOT_KEPT)
        return tuple(self.retuning.held_out(self.rows.data, fold) for fold in self.folds)

    @property
    def gamma(self) -> np.ndarray:
        """Effective degrees of freedom of a member, shape (K,)."""
        parts = self.ensemble.regressions
        return self.ensemble.per_output(part.smoother.gamma for part in parts)

    @property
    def covariance_dof(self) -> np.ndarray:
        """Degrees of freedom of a variance of noise that hangs together, else infinite, (K,)."""
        found = self.noise_covariance or ()
        limits = [math.inf if one.independent else one.dof for one in found]
        return np.array(limits or [math.inf] * self.ensemble.n_outputs)

    @property
    def noise_dof(self) -> np.ndarray:
        """Degrees of freedom of the variance of a new observation's noise, shape (K,)."""
        limits = [one.sill_dof if one else math.inf for one in self._dependent]
        return np.minimum(self.n_rows - self.gamma, limits)

    @property
    def has_covariance(self) -> np.ndarray:
        """Which outputs have noise with a covariance by which rows hang together, shape (K,)."""
        return np.array([one is not None for one in self._dependent])

    @property
    def covariances(self) -> tuple[CovarianceEstimate, ...]:
        """Fitted covariances of the noise of each output; none for other kinds of noise."""
        return tuple(
            one for one in self.noise_covariance or () if isinstance(one, CovarianceEstimate)
        )

    @property
    def _dependent(self) -> list[CovarianceEstimate | None]:
        """Covariance of the noise of each output, None where rows are independent."""
        found = self.covariances or (None,) * self.ensemble.n_outputs
        return [None if one is None or one.independent else one for one in found]

    @cached_property
    def sigma2(self) -> np.ndarray:
        """Noise variance at weight 1, shape (K,)."""
        return self.per_regression(lambda p: p.variance.sigma2) * self.ensemble.unit**2

    # ------------------------------------------------------------ wide networks

    def undersmoothed_parts(self, X: Array | Functionals) -> UndersmoothedParts:
        """Mean and variance of the undersmoothed wide networks at rows of X or of functionals."""
        parts = [self.undersmoothed_parts_of(h) for h in features(self.ensemble.layer, X)]
        columns = zip(*(part[:4] for part in parts), strict=True)
        mean, spread, noise, unseen = (np.concatenate(a) for a in columns)
        return parts[0]._replace(mean=mean, spread=spread, noise=noise, unseen=unseen)

    def undersmoothed_parts_of(self, h: Array, other: Array | None = None) -> UndersmoothedParts:
        """The same for features h (M, N', p), or bilinear in them and other features."""
        return undersmoothed_parts(self.ensemble, self.networks, self.undersmoothed_forms, h, other)

    @cached_property
    def networks(self) -> tuple[UndersmoothedNetworks, ...]:
        """Wide networks of each regression, factored once."""
        if self.kept_networks is not None:
            return self.kept_networks
        if not double_precision(self.ensemble.layer.W):
            raise NoUndersmoothedFitError(FLOAT32)
        products = group_products(self.ensemble, self.rows)
        parts = zip(self.ensemble.regressions, products, strict=True)
        return tuple(
            undersmoothed_networks(p.smoother, p.y_square, stacked) for p, stacked in parts
        )

    @cached_property
    def undersmoothed_forms(self) -> tuple[PairForms, ...]:
        """Forms of their noise."""
        if self._whole_forms:
            pairing = ESTIMATES[self.estimates[0]].pairing
            return tuple(part.forms[pairing] for part in self.ensemble.regressions)
        if self.kept_forms is not None:
            return self.kept_forms
        parts = self.ensemble.regressions
        return tuple(per_row_forms(self.ensemble, part, self.rows) for part in parts)

    @cached_property
    def misfit(self) -> Misfit | None:
        """Signs that the layer cannot follow the function; None where the rows are gone.

        Nor can they be told from rows that are left out in blocks, as noise hangs together:
        residuals of neighbours then agree anyway.
        """
        if self.rows is None or self.rows.data.block_ids is not None:
            return None
        residuals = self.rows.residuals(self.ensemble.unit)
        return misfit(
            self.ensemble, self.rows.data, residuals, self.sigma2, self._matrix, self._relevance
        )

    @property
    def serial_correlations(self) -> tuple[SerialCorrelation, ...]:
        """Correlation of successive rows of each output; none without rows."""
        return () if self.rows is None else self.rows.serial_correlations

    @property
    def unmodelled_correlation(self) -> SerialCorrelation | None:
        """The clearest sign that rows hang together which were taken as independent, if any."""
        if self.rows is None or self.noise_covariance is not None:
            return None
        return self.rows.clearest_correlation

    def misfit_allowance(self, X: Array | Functionals) -> np.ndarray:
        """What misfit adds to both sides of an interval for the function, shape (p, K).

        Functionals get what the points they are made of add up to at most.
        """
        if self.misfit is None or not self.misfit.found:
            return np.zeros((count(X), self.ensemble.n_outputs))
        if isinstance(X, Functionals):
            return X.largest_sum(lambda few: self.misfit_allowance(few).T, self.ensemble.layer)
        inputs = mapped(self.ensemble, dense(X), self._matrix)
        return self.misfit.allowance(inputs, self.mean(X)).T

    @property
    def _matrix(self) -> np.ndarray | None:
        return None if self.input_map is None else self.input_map.matrix

    @property
    def _relevance(self) -> np.ndarray | None:
        return None if self.input_map is None else self.input_map.relevance

    @cached_property
    def undersmoothing_gap(self) -> float:
        """Largest distance between prediction and undersmoothed fit, in standard errors.

        Not a number where there are no wide networks.
        """
        if self.kept_alarm is not None:
            return self.kept_alarm
        try:
            parts = self.undersmoothed_parts(self.points)
        except ValueError:
            return float("nan")
        se = np.sqrt(parts.variance)
        gap = np.abs(self.mean(self.points).T - parts.mean)
        return float(np.max(np.divide(gap, se, out=np.zeros_like(gap), where=se > 0)))

    # ------------------------------------------------------------ smaller values

    def compressed(self) -> Fit:
        """The same fit with every form in its primal shape, without training rows."""
        alarm, networks, forms = self.undersmoothing_gap, None, None
        if not np.isnan(alarm):
            networks = self.networks
            if not self._whole_forms:
                forms = tuple(pair.primal() for pair in self.undersmoothed_forms)
        parts = [
            replace(part, forms={name: pair.primal() for name, pair in part.forms.items()})
            for part in self.ensemble.regressions
        ]
        return replace(
            self,
            ensemble=replace(self.ensemble, regressions=tuple(parts)),
            points=taken_rows(self.points, slice(0)),
            rows=None,
            stream=None,
            kept_networks=networks,
            kept_forms=forms,
            kept_alarm=alarm,
            retuning=None,
            kept_folds=self.folds if self.folded else None,
            kept_held_out=None,
        )

    def settled(self) -> Fit:
        """The same fit with all made that a file of arrays cannot make later.

        Fits without a fold are kept where folds are, or where they were asked for: with many rows
        they take as long as five fits.
        """
        wanted = self.rows is not None and (self.folded or "held_out" in vars(self))
        return replace(
            self,
            retuning=None,
            kept_folds=self.folds if self.folded else None,
            kept_held_out=self.held_out if wanted else self.kept_held_out,
        )
