"""What one ELM and an ensemble of them share: validation, fitting, prediction."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from ulmus.core.fitting import Settings, fitted_model
from ulmus.core.forms import RegeneratedForm
from ulmus.core.hidden import HiddenLayer, drawn_layer
from ulmus.core.jackknife import TrainingRows
from ulmus.core.model import rows_of_q, training_rows
from ulmus.core.noise_model import NoiseModel, fitted_noise_model, left_out_logs, log_targets
from ulmus.core.rows import RowBlocks
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
# Training rows at which ``bias_alarm_`` is taken.
ALARM_ROWS = 500


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
        sample_size = ROWS_PER_UNIT * layer.n_units
        self.model_ = fitted_model(data, data.sample(sample_size), layer, settings)
        self._set_attributes(X)
        self._set_row_attributes(data, sample_size)
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

    def _set_attributes(self, X: Any) -> None:
        model = self.model_
        first = int(model.whitening.layer.constant)
        beta = model.beta
        coef = beta[:, first:, :].transpose(0, 2, 1)
        intercept = np.zeros(coef.shape[:2])
        if first:
            center = model.whitening.center[:, 1:, 0]
            intercept = beta[:, 0, :] + model.y_shift - np.einsum("mn,mkn->mk", center, coef)
        self.alpha_ = model.alpha
        self.coef_ = coef[:, 0, :] if self._one_output_ else coef
        self.intercept_ = intercept[:, 0] if self._one_output_ else intercept
        self.hidden_weights_ = model.whitening.layer.weights.transpose(0, 2, 1)
        self.hidden_biases_ = model.whitening.layer.biases
        self.noise_variance_ = float(model.sigma2[0]) if self._one_output_ else model.sigma2
        self.dof_ = float(model.fit.dof.mean())
        self.rank_ = model.basis.rank(model.alpha)
        self._range_ = _feature_range(X)

    def _set_row_attributes(self, data: RowBlocks, sample_size: int) -> None:
        """Set what only an in-memory fit knows."""
        hc = "HC2" if self.hc == "ensemble" else self.hc
        rows = training_rows(self.model_, data, hc)
        loo = rows.loo.mean(axis=0)
        self.leverage_ = rows.leverage.mean(axis=0)
        self.loo_residuals_ = self._shaped(loo.T)
        self.loo_predictions_ = self._shaped((data.y - loo).T)
        self._largest_leverage_ = float(rows.leverage.max())
        self._alarm_points_ = data.sample(ALARM_ROWS).X
        sigma2 = self.model_.sigma2
        noise = np.broadcast_to(sigma2[:, None], loo.shape)
        self._noise_model_: NoiseModel | None = None
        if self.noise == "heteroskedastic":
            Q = rows_of_q(self.model_, data)
            self.model_.forms["wide"] = [RegeneratedForm(Q, omega) for omega in rows.omega]
            weight = 1.0 if data.root_weight is None else data.root_weight**2
            u2 = weight * loo**2 / (1 + weight * rows.norm2)
            logs = data.relabelled(log_targets(u2, sigma2))
            layer = self.model_.whitening.layer
            fitted = fitted_noise_model(logs, logs.sample(sample_size), layer, sigma2)
            left_out = np.concatenate(list(left_out_logs(fitted.model, logs)), axis=1)
            self._noise_model_, noise = fitted, fitted.from_log(left_out)
        self._training_: TrainingRows | None = TrainingRows(data, rows.loo, rows.norm2, noise)

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
            self._warn_about_points(X)
            mean, sd = self._mean_and_sd(X)
            return self._output(mean, X), self._output(sd, X)
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
        self._warn_about_points(X)
        if component == "noise":
            return self._output(self._noise_variance(X), X)
        parts, name = self._parts(X, estimate)
        if component == "weights":
            return self._output(parts.spread / parts.n_members, X)
        model = self._model_variance(parts, name)
        total = model if component == "model" else model + self._noise_variance(X)
        return self._output(total, X)

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
        self._training_ = None
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

    def _mean_and_sd(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a new observation, each (p, K)."""
        parts, name = self._parts(X, None)
        variance = self._model_variance(parts, name) + self._noise_variance(X)
        return parts.mean, np.sqrt(variance)

    def _noise_variance(self, X: Any) -> np.ndarray:
        """Noise variance at the points, shape (p, K)."""
        if self._noise_model_ is not None:
            return self._noise_model_.variance(X).T
        return np.broadcast_to(self.model_.sigma2, (X.shape[0], len(self.model_.sigma2)))

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
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )

    def _warn_about_points(self, X: Any) -> None:
        low, high = self._range_
        margin = RANGE_MARGIN * (high - low)
        outside = int(np.sum(_outside(X, low - margin, high + margin)))
        if outside:
            warnings.warn(
                f"{outside} of {X.shape[0]} points lie outside the range of the training inputs "
                "by more than a tenth of it; error bars there rest on extrapolation.",
                ExtrapolationWarning,
                stacklevel=3,
            )

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
