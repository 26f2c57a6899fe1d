"""Fitting in memory, from blocks of rows, and block after block."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ulmus.blocks import (
    BlockSource,
    checked_blocks,
    joined_blocks,
    progress_bar,
    reader,
    silent,
)
from ulmus.core.backend import Array, like, reference_array, taken_rows, to_numpy
from ulmus.core.fitting import (
    FirstPass,
    Settings,
    fitted_model,
    moments_model,
    started_fit,
)
from ulmus.core.forms import RegeneratedForm
from ulmus.core.hidden import HiddenLayer, drawn_layer
from ulmus.core.jackknife import TrainingRows
from ulmus.core.model import Training, TrainingRecorder, rows_of_q
from ulmus.core.moments import Block, Moments
from ulmus.core.noise_model import kept_noise_model, streamed_noise_model
from ulmus.core.rows import RowBlocks
from ulmus.core.scaling import FeatureScale, feature_scale, require_mass
from ulmus.core.whitening import ROWS_PER_UNIT, Whitening
from ulmus.estimators import _parameters as check
from ulmus.estimators._base import BaseELM
from ulmus.estimators._validation import checked_table, checked_weight
from ulmus.exceptions import DegenerateFitWarning, NeedsTwoPassesError

# A row whose leverage is this close to 1 determines its own prediction.
FULL_LEVERAGE = 1 - 1e-8
# Training rows at which ``bias_alarm_`` is taken.
ALARM_ROWS = 500


@dataclass(frozen=True)
class Stream:
    """What ``partial_fit`` carries from one call to the next."""

    whitening: Whitening
    y_shift: Array
    moments: Moments
    points: Any


class FittableELM(BaseELM):
    """The three ways to fit, all through the same sums over blocks of rows."""

    _stream_: Stream | None = None

    def _n_members(self) -> int:
        raise NotImplementedError

    def _variance_choice(self) -> Any:
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the output weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training inputs. Torch tensors and CuPy arrays are computed with where they are.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Training outputs.
        sample_weight : array-like of shape (n_samples,), default=None
            Inverse noise variance of each row, up to a constant factor. A row of weight zero
            is left out.

        Returns
        -------
        self : object
            The fitted estimator. A fit that fails leaves the previous one usable.
        """
        fresh = self._blank()
        fresh._fit_rows(X, y, sample_weight)
        return self._take(fresh)

    def fit_blocks(self, blocks: Any) -> Self:
        """Fit a table that comes in blocks of rows and need not fit into memory.

        Parameters
        ----------
        blocks : re-iterable of (X, y) or (X, y, sample_weight)
            A list of arrays (or of slices of a ``numpy.memmap``), a function that returns a
            fresh iterator, or :func:`ulmus.blocks.from_arrow`. After a look at the inputs'
            means and ranges, it is read once for homoskedastic and twice for heteroskedastic
            estimates, once more for ``alpha="loo"``, and twice more for the model of a
            heteroskedastic noise variance.

        Returns
        -------
        self : object
            The fitted estimator, equal to what ``fit`` gives on all rows but without the
            attributes of length ``n_samples``. A fit that fails leaves the previous one usable.
        """
        fresh = self._blank()
        fresh._fit_stream(reader(blocks))
        return self._take(fresh)

    @property
    def partial_fit(self) -> Callable[..., Self]:
        """Add rows to the fit, exactly, without keeping them: ``partial_fit(X, y)``.

        Takes ``X``, ``y`` and ``sample_weight`` as ``fit`` does and returns the estimator fitted
        to all rows so far. The first call sets the preconditioner and the standardisation, and
        should have some hundred rows. ``alpha="loo"`` is replaced by generalised
        cross-validation, as leave-one-out needs all rows again; ``fit_blocks`` has neither
        limit. There is no ``partial_fit`` for heteroskedastic estimates, which need two passes.
        """
        if check.needs_residuals(self.noise, self._variance_choice()):
            raise NeedsTwoPassesError(
                "partial_fit sees each row once and cannot make the heteroskedastic estimates of "
                f"noise={self.noise!r}, variance={self._variance_choice()!r}, which need two "
                "passes; use fit_blocks, or noise='homoskedastic' and variance='auto'."
            )
        return self._partial_fit

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        fresh = self._blank()
        if hasattr(self, "model_"):
            fresh._continue_from(self)
        fresh._fit_more(X, y, sample_weight)
        return self._take(fresh)

    def _blank(self) -> Self:
        return type(self)(**self.get_params(deep=False))

    def _take(self, fresh: Self) -> Self:
        """Replace all fitted attributes by those of a fit that succeeded."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        for name, value in vars(fresh).items():
            if name.endswith("_"):
                setattr(self, name, value)
        return self

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._resolve_estimates()
        X, y = checked_table(self, X, y)
        weight = checked_weight(sample_weight, X.shape[0])
        self._one_output_ = y.ndim == 1
        outputs = np.ascontiguousarray(y.reshape(len(y), -1).T)
        root_weight = None if weight is None else np.sqrt(weight)
        reference = reference_array(X, self.device, self.dtype)
        rows = RowBlocks(X, outputs, root_weight, X.shape[1], reference, self._n_threads())
        scale = require_mass(rows.reduce(feature_scale))
        self._range_ = scale.low, scale.high
        layer = self._layer(scale, reference)
        data = replace(rows, features=layer.size)
        # Through the rows every point costs n MN products, through the features (MN)^2.
        settings = self._settings(len(outputs), keep_rows=len(y) < layer.size, wide=True)
        sample = data.sample(ROWS_PER_UNIT * layer.n_units)
        recorder = TrainingRecorder("HC2" if self.hc == "ensemble" else self.hc)
        self.model_ = fitted_model(data, sample, layer, settings, recorder)
        self._set_attributes()
        self._set_row_attributes(data, sample, recorder.training(self.model_, data))
        self._warn_about_fit()

    def _fit_stream(self, read: Callable[[], Iterator[Any]]) -> None:
        self._resolve_estimates()
        first = next(checked_blocks(read), None)
        if first is None:
            raise ValueError("blocks holds no rows; give at least two rows of data.")
        d, K = first.X.shape[1], first.y.shape[0]
        self.n_features_in_, self._one_output_ = d, first.one_output
        if first.names is not None:
            self.feature_names_in_ = np.asarray(first.names, dtype=object)
        progress = progress_bar if self.verbose else silent
        reference = reference_array(first.X, self.device, self.dtype)
        rows = BlockSource(read, d, K, d, reference, self._n_threads(), progress)
        self._fit_source(rows, reference)

    def _fit_source(self, rows: Any, reference: Array) -> None:
        """Fit rows that are not kept, from a source of blocks that can show its head."""
        scale = require_mass(rows.reduce(feature_scale))
        self._range_ = scale.low, scale.high
        layer = self._layer(scale, reference)
        source = replace(rows, features=layer.size)
        sample = joined_blocks(source.head(), ROWS_PER_UNIT * layer.n_units)
        settings = self._settings(sample.y.shape[0])
        self.model_ = fitted_model(source, sample, layer, settings)
        self._noise_model_ = None
        if self.noise == "heteroskedastic":
            self._noise_model_ = streamed_noise_model(source, sample, self.model_)
        self._set_attributes()
        self._set_streamed(sample.X)
        self._warn_about_fit()

    def _fit_more(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._resolve_estimates()
        stream = self._stream_
        X, y = checked_table(self, X, y, reset=stream is None)
        weight = checked_weight(sample_weight, X.shape[0], at_least=2 if stream is None else 0)
        outputs = np.ascontiguousarray(y.reshape(len(y), -1).T)
        root_weight = None if weight is None else np.sqrt(weight)
        reference = reference_array(X, self.device, self.dtype)
        rows = RowBlocks(X, outputs, root_weight, X.shape[1], reference, self._n_threads())
        scale = rows.reduce(feature_scale)
        if stream is None:
            self._one_output_ = y.ndim == 1
            layer = self._layer(require_mass(scale), reference)
        else:
            layer = stream.whitening.layer
            if len(outputs) != stream.moments.y_square.shape[0]:
                raise ValueError(
                    f"y has {len(outputs)} outputs, the rows before had "
                    f"{stream.moments.y_square.shape[0]}; give the same ones."
                )
        rows = replace(rows, features=layer.size)
        every = [slice(0, layer.n_members)]
        if stream is None:
            sample = rows.sample(ROWS_PER_UNIT * layer.n_units)
            start = started_fit(sample, layer)
            stream = Stream(*start, rows.reduce(FirstPass(*start, every)), sample.X)
            self._range_ = scale.low, scale.high
        else:
            first_pass = FirstPass(stream.whitening, stream.y_shift, every)
            stream = replace(stream, moments=stream.moments + rows.reduce(first_pass))
            low, high = self._range_
            self._range_ = np.minimum(low, scale.low), np.maximum(high, scale.high)
        self._stream_ = stream
        settings = self._settings(len(outputs))
        self.model_ = moments_model(
            stream.moments, stream.whitening, stream.y_shift, settings, None
        )
        self._noise_model_ = None
        self._set_attributes()
        self._set_streamed(stream.points)
        self._warn_about_fit()

    def _continue_from(self, fitted: FittableELM) -> None:
        """Take over the sums of an earlier fit, making them from its rows if need be."""
        for name in ("_one_output_", "_range_", "n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        self._stream_ = fitted._stream_
        if self._stream_ is not None:
            return
        if fitted._training_ is None:
            raise ValueError(
                "partial_fit cannot go on from a fit whose rows are gone (compress or "
                "fit_blocks); start a new estimator with partial_fit, or fit again."
            )
        model, rows = fitted.model_, fitted._training_.data
        every = [slice(0, model.n_members)]
        moments = rows.reduce(FirstPass(model.whitening, model.y_shift, every))
        self._stream_ = Stream(model.whitening, model.y_shift, moments, fitted._alarm_points_)

    def _resolve_estimates(self) -> None:
        check.checked_choice("noise", self.noise, check.NOISE_MODELS)
        check.checked_choice("hc", self.hc, check.HC_NAMES)
        check.checked_flag("fit_intercept", self.fit_intercept)
        check.checked_flag("standardize", self.standardize)
        check.checked_choice("dtype", self.dtype, ("float64", "float32"))
        self.variance_estimates_ = check.resolved_estimates(
            self._variance_choice(), self.noise, self._n_members()
        )

    def _settings(self, n_outputs: int, *, keep_rows: bool = False, wide: bool = False) -> Settings:
        return Settings(
            alpha=check.checked_alpha(self.alpha),
            noise_variance=check.checked_noise_variance(self.noise_variance, n_outputs),
            hc=self.hc,
            estimates=self.variance_estimates_,
            keep_rows=keep_rows,
            wide=wide,
        )

    def _n_threads(self) -> int:
        if self.n_jobs is None:
            return 1
        n_jobs = self.n_jobs
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
            raise ValueError(f"n_jobs must be None or a whole number, -1 for all, got {n_jobs!r}.")
        cores = os.cpu_count() or 1
        return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))

    def _layer(self, scale: FeatureScale, reference: Array) -> HiddenLayer:
        n_features = len(scale.mean)
        activation = check.checked_activation(self.activation)
        weights, biases = drawn_layer(
            check.member_seeds(self.random_state, self._n_members()),
            n_features,
            check.checked_count("n_neurons", self.n_neurons),
            distribution=check.checked_distribution(self.weight_distribution),
            scale=check.checked_scale(self.weight_scale, n_features),
            activation=activation,
        )
        offset = scale.mean if self.standardize else np.zeros(n_features)
        width = scale.sd if self.standardize else np.ones(n_features)
        return HiddenLayer(
            weights=like(np.ascontiguousarray(weights.transpose(0, 2, 1)), reference),
            biases=like(biases, reference),
            offset=like(offset, reference),
            scale=like(width, reference),
            activation=activation,
            constant=bool(self.fit_intercept),
        )

    def _set_attributes(self) -> None:
        model = self.model_
        layer = model.whitening.layer
        first = int(layer.constant)
        beta = to_numpy(model.beta)
        coef = beta[:, first:, :].transpose(0, 2, 1)
        constant = beta[:, 0, :] + to_numpy(model.y_shift)
        intercept = constant if first else np.zeros_like(constant)
        sigma2 = to_numpy(model.sigma2)
        self.alpha_ = model.alpha
        self.coef_ = coef[:, 0, :] if self._one_output_ else coef
        self.intercept_ = intercept[:, 0] if self._one_output_ else intercept
        self.hidden_weights_ = to_numpy(layer.weights).transpose(0, 2, 1)
        self.hidden_biases_ = to_numpy(layer.biases)
        self.noise_variance_ = float(sigma2[0]) if self._one_output_ else sigma2
        self.dof_ = float(to_numpy(model.fit.dof).mean())
        self.rank_ = to_numpy(model.basis.rank(model.alpha))

    def _set_streamed(self, points: Any) -> None:
        """Set what stands for the rows of a fit that does not keep them."""
        self._alarm_points_ = taken_rows(points, slice(min(ALARM_ROWS, points.shape[0])))
        self._training_ = None
        self._largest_leverage_ = 0.0

    def _set_row_attributes(self, data: RowBlocks, sample: Block, rows: Training) -> None:
        """Set what only an in-memory fit knows."""
        model = self.model_
        loo = rows.loo.mean(axis=0)
        self.leverage_ = rows.leverage.mean(axis=0)
        self.loo_residuals_ = self._shaped(loo.T)
        self.loo_predictions_ = self._shaped((data.y - loo).T)
        self._largest_leverage_ = float(rows.leverage.max())
        self._alarm_points_ = data.sample(ALARM_ROWS).X
        self._stream_ = None
        noise = np.broadcast_to(to_numpy(model.residual2)[:, None], loo.shape)
        self._noise_model_ = None
        if self.noise == "heteroskedastic":
            Q = rows_of_q(model, data)
            model.forms["wide"] = [RegeneratedForm(Q, like(w, model.q)) for w in rows.omega]
            self._noise_model_, noise = kept_noise_model(data, sample.X.shape[0], model, rows)
        self._training_ = TrainingRows(data, rows.loo, rows.norm2.mean(axis=0), noise)

    def _warn_about_fit(self, stacklevel: int = 4) -> None:
        if self._largest_leverage_ > FULL_LEVERAGE:
            warnings.warn(
                "some training rows have leverage 1: the fit passes through them whatever their "
                "value, and their leave-one-out residuals are not usable. Use alpha='loo' or "
                "fewer n_neurons.",
                DegenerateFitWarning,
                stacklevel=stacklevel,
            )
        saturated = int(np.sum(self.n_neurons - (self.rank_ - int(self.fit_intercept)) > 0))
        if self.alpha_ == 0 and saturated:
            warnings.warn(
                f"{saturated} of {len(self.rank_)} members have hidden units that are constant "
                "or repeat one another; they are dropped. Use a smaller weight_scale, "
                "standardize=True or alpha='loo'.",
                DegenerateFitWarning,
                stacklevel=stacklevel,
            )
