"""What one ELM and an ensemble of them share: validation, fitting, prediction."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from ulmus.core.backend import row_blocks
from ulmus.core.fitting import Settings, fitted_model
from ulmus.core.hidden import HiddenLayer, drawn_layer
from ulmus.core.model import training_rows
from ulmus.core.moments import Block
from ulmus.core.variance import (
    ESTIMATES,
    PointParts,
    model_variance,
    positive_part,
)
from ulmus.core.whitening import ROWS_PER_UNIT
from ulmus.estimators import _parameters as check
from ulmus.exceptions import DegenerateFitWarning, ExtrapolationWarning, NegativeVarianceWarning

COMPONENTS = ("total", "model", "noise", "weights")
# A row whose leverage is this close to 1 determines its own prediction.
FULL_LEVERAGE = 1 - 1e-8
# Points farther out than this share of the training range count as extrapolation.
RANGE_MARGIN = 0.1


@dataclass(frozen=True)
class RowBlocks:
    """In-memory data cut into blocks of rows, iterable as often as needed."""

    X: Any
    y: np.ndarray
    root_weight: np.ndarray | None
    features: int

    def __iter__(self) -> Iterator[Block]:
        for rows in row_blocks(self.y.shape[1], self.features):
            yield self.block(rows)

    def reduce(self, row_pass: Callable[[Iterable[Block]], Any]) -> Any:
        """Run a pass over all blocks, one after another."""
        return row_pass(self)

    def block(self, rows: Any) -> Block:
        """Rows by slice or index."""
        root_weight = None if self.root_weight is None else self.root_weight[rows]
        return Block(self.X[rows], self.y[:, rows], root_weight)

    def sample(self, n_rows: int) -> Block:
        """Evenly spaced rows of positive weight."""
        used = np.arange(self.y.shape[1])
        if self.root_weight is not None:
            used = used[self.root_weight > 0]
        if len(used) <= n_rows:
            return self.block(used)
        return self.block(used[np.linspace(0, len(used) - 1, n_rows).astype(int)])


class BaseELM(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Shared shell; subclasses have the parameters."""

    def _n_members(self) -> int:
        raise NotImplementedError

    def _variance_choice(self) -> Any:
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the output weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training inputs.
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
        fresh = type(self)(**self.get_params(deep=False))
        fresh._fit(X, y, sample_weight)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        for name, value in vars(fresh).items():
            if name.endswith("_"):
                setattr(self, name, value)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        n_members = self._n_members()
        check.checked_choice("noise", self.noise, check.NOISE_MODELS)
        check.checked_choice("hc", self.hc, check.HC_NAMES)
        self.variance_estimates_ = check.resolved_estimates(
            self._variance_choice(), self.noise, n_members
        )
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            multi_output=True,
            y_numeric=True,
            ensure_min_samples=2,
        )
        weight = _checked_weight(sample_weight, X)
        self._one_output_ = y.ndim == 1
        outputs = np.ascontiguousarray(np.asarray(y, dtype=float).reshape(len(y), -1).T)
        layer = self._drawn_layer(X, weight, n_members)
        root_weight = None if weight is None else np.sqrt(weight)
        data = RowBlocks(X, outputs, root_weight, layer.size)
        n_rows = outputs.shape[1]
        settings = Settings(
            alpha=check.checked_alpha(self.alpha),
            noise_variance=check.checked_noise_variance(self.noise_variance, len(outputs)),
            hc=self.hc,
            estimates=self.variance_estimates_,
            # Through the rows every point costs n MN products, through the features (MN)^2.
            keep_rows=n_rows < layer.size,
        )
        sample = data.sample(ROWS_PER_UNIT * layer.n_units)
        self.model_ = fitted_model(data, sample, layer, settings)
        self._set_attributes(X, data)
        self._warn_about_fit()

    def _drawn_layer(self, X: Any, weight: np.ndarray | None, n_members: int) -> HiddenLayer:
        n_features = X.shape[1]
        activation = check.checked_activation(self.activation)
        weights, biases = drawn_layer(
            check.member_seeds(self.random_state, n_members),
            n_features,
            check.checked_count("n_neurons", self.n_neurons),
            distribution=check.checked_distribution(self.weight_distribution),
            scale=check.checked_scale(self.weight_scale, n_features),
            activation=activation,
        )
        offset, scale = np.zeros(n_features), np.ones(n_features)
        if self.standardize:
            scaler = StandardScaler(with_mean=False).fit(X.astype(np.float64), sample_weight=weight)
            offset, scale = scaler.mean_, scaler.scale_
        return HiddenLayer(
            np.ascontiguousarray(weights.transpose(0, 2, 1)),
            biases,
            offset,
            scale,
            activation,
            bool(self.fit_intercept),
        )

    def _set_attributes(self, X: Any, data: RowBlocks) -> None:
        model = self.model_
        first = int(model.whitening.layer.constant)
        beta = model.beta
        coef = beta[:, first:, :].transpose(0, 2, 1)
        intercept = np.zeros(coef.shape[:2])
        if first:
            center = model.whitening.center[:, 1:, 0]
            intercept = beta[:, 0, :] - np.einsum("mn,mkn->mk", center, coef) + model.y_shift
        rows = training_rows(model, data)
        loo = rows.loo.mean(axis=0).T
        self.alpha_ = model.alpha
        self.coef_ = coef[:, 0, :] if self._one_output_ else coef
        self.intercept_ = intercept[:, 0] if self._one_output_ else intercept
        self.hidden_weights_ = model.whitening.layer.weights.transpose(0, 2, 1)
        self.hidden_biases_ = model.whitening.layer.biases
        self.noise_variance_ = float(model.sigma2[0]) if self._one_output_ else model.sigma2
        self.dof_ = float(model.fit.dof.mean())
        self.rank_ = model.basis.rank(model.alpha)
        self.leverage_ = rows.leverage.mean(axis=0)
        self.loo_residuals_ = self._shaped(loo)
        self.loo_predictions_ = self._shaped(data.y.T - loo)
        self._largest_leverage_ = float(rows.leverage.max())
        self._range_ = _feature_range(X)

    def _warn_about_fit(self) -> None:
        if self._largest_leverage_ > FULL_LEVERAGE:
            warnings.warn(
                "some training rows have leverage 1: the fit passes through them whatever their "
                "value, and their leave-one-out residuals are not usable. Use alpha='loo' or "
                "fewer n_neurons.",
                DegenerateFitWarning,
                stacklevel=4,
            )
        saturated = int(np.sum(self.n_neurons - (self.rank_ - int(self.fit_intercept)) > 0))
        if self.alpha_ == 0 and saturated:
            warnings.warn(
                f"{saturated} of {len(self.rank_)} members have hidden units that are constant "
                "or repeat one another; they are dropped. Use a smaller weight_scale, "
                "standardize=True or alpha='loo'.",
                DegenerateFitWarning,
                stacklevel=4,
            )

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the mean and, if asked, the standard deviation of a new observation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        return_std : bool, default=False
            Whether to return the standard deviation of a new observation as well: model
            and noise together. The model's own standard error is the square root of
            ``predict_var(X, component="model")``.

        Returns
        -------
        y_mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        y_std : ndarray of the same shape
            Only if ``return_std`` is True.
        """
        X = self._checked_points(X)
        if return_std:
            parts, name = self._parts(X, None)
            variance = self._model_variance(parts, name) + self.model_.sigma2
            return self._output(parts.mean, X), self._output(np.sqrt(variance), X)
        return self._output(self.model_.mean(X).T, X)

    def predict_var(self, X: Any, component: str = "total", estimate: str | None = None) -> Any:
        """Variance at the given points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        component : {"total", "model", "noise", "weights"}, default="total"
            ``"model"`` is the variance of the prediction (its square root is the standard
            error), ``"noise"`` that of a new observation around the true function, ``"total"``
            their sum, and ``"weights"`` the part of the model's that redrawing the hidden
            weights on the same data would cause.
        estimate : str, default=None
            One of the estimates computed in ``fit``, see the parameter ``variance``; the first
            of them by default.

        Returns
        -------
        variance : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Never negative.
        """
        check.checked_choice("component", component, COMPONENTS)
        X = self._checked_points(X)
        parts, name = self._parts(X, estimate)
        noise = np.broadcast_to(self.model_.sigma2, parts.mean.shape)
        if component == "noise":
            return self._output(noise, X)
        if component == "weights":
            return self._output(parts.spread / parts.n_members, X)
        model = self._model_variance(parts, name)
        return self._output(model if component == "model" else model + noise, X)

    def compress(self) -> Self:
        """Drop the training rows, so that size and prediction cost no longer depend on them.

        Returns
        -------
        self : object
            The estimator, without its attributes of length ``n_samples``.
        """
        check_is_fitted(self)
        self.model_ = self.model_.compressed()
        for name in ("leverage_", "loo_residuals_", "loo_predictions_"):
            if hasattr(self, name):
                delattr(self, name)
        return self

    def _parts(self, X: Any, estimate: str | None) -> tuple[PointParts, str]:
        name = self.variance_estimates_[0] if estimate is None else estimate
        if name not in self.variance_estimates_:
            check.checked_choice("estimate", name, ESTIMATES)
            computed = ", ".join(map(repr, self.variance_estimates_))
            raise ValueError(
                f"estimate={name!r} was not computed in fit, only {computed}; set the parameter "
                f"variance to {name!r}, a list with it, or 'all', and fit again."
            )
        return self.model_.point_parts(X, ESTIMATES[name].weights), name

    def _model_variance(self, parts: PointParts, name: str) -> np.ndarray:
        variance = model_variance(name, parts)
        negative = variance < 0
        if np.any(negative):
            warnings.warn(
                f"{int(negative.sum())} of {variance.size} variances estimated by {name!r} were "
                "negative and are replaced by their positive-part form; more n_estimators make "
                "this rare.",
                NegativeVarianceWarning,
                stacklevel=4,
            )
            variance = np.where(negative, positive_part(parts), variance)
        return variance

    def _checked_points(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        low, high = self._range_
        margin = RANGE_MARGIN * (high - low)
        outside = int(np.sum(_outside(X, low - margin, high + margin)))
        if outside:
            warnings.warn(
                f"{outside} of {X.shape[0]} points lie outside the range of the training inputs "
                "by more than a tenth of it; error bars there rest on extrapolation.",
                ExtrapolationWarning,
                stacklevel=4,
            )
        return X

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """Drop the output axis if y had none."""
        return values[:, 0] if self._one_output_ else values

    def _output(self, values: np.ndarray, X: Any) -> np.ndarray:
        """Result in the shape of y and the precision of X."""
        return self._shaped(values).astype(X.dtype, copy=False)

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _checked_weight(sample_weight: Any, X: Any) -> Any:
    if sample_weight is None:
        return None
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must have one number per row, got {weight.ndim} axes.")
    check_consistent_length(X, weight)
    if np.any(weight < 0):
        raise ValueError(f"sample_weight must not be negative, got {weight.min():g}.")
    if np.sum(weight > 0) < 2:
        raise ValueError(
            "sample_weight must differ from zero in at least two rows, got "
            f"{int(np.sum(weight > 0))} such weights."
        )
    return weight


def _feature_range(X: Any) -> tuple[np.ndarray, np.ndarray]:
    if scipy.sparse.issparse(X):
        return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    return X.min(axis=0), X.max(axis=0)


def _outside(X: Any, low: np.ndarray, high: np.ndarray) -> Any:
    """Whether each row has a value outside the given bounds."""
    if not scipy.sparse.issparse(X):
        return np.any((low > X) | (high < X), axis=1)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    beyond = (low[X.indices] > X.data) | (high[X.indices] < X.data)
    return np.bincount(rows, beyond, minlength=X.shape[0]) > 0
