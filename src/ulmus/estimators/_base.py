"""What one ELM and an ensemble of them share after a fit: predictions and variances."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ulmus.core.backend import like, to_numpy
from ulmus.core.jackknife import TrainingRows
from ulmus.core.model import Model
from ulmus.core.noise_model import NoiseModel
from ulmus.core.variance import ESTIMATES, PointParts, model_variance, positive_part
from ulmus.estimators import _parameters as check
from ulmus.estimators._validation import checked_points, is_foreign, rows_outside
from ulmus.exceptions import ExtrapolationWarning, NegativeVarianceWarning

COMPONENTS = ("total", "model", "noise", "weights")
# Points farther out than this share of the training range count as extrapolation.
RANGE_MARGIN = 0.1


class BaseELM(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Predictions and variances of a fitted ELM; subclasses have the parameters."""

    model_: Model
    variance_estimates_: tuple[str, ...]
    _one_output_: bool
    _range_: tuple[np.ndarray, np.ndarray]
    _noise_model_: NoiseModel | None
    _training_: TrainingRows | None

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
        return self._output(to_numpy(self.model_.mean(X)).T, X)

    def predict_var(self, X: Any, component: str = "total", estimate: str | None = None) -> Any:
        """Variance at the given points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        component : {"total", "model", "noise", "weights"}, default="total"
            ``"model"`` is the variance of the prediction (its square root is the standard
            error), ``"noise"`` that of a new observation around it (noise, and the bias that
            residuals show: at least ``noise_variance_``), ``"total"`` their sum, and
            ``"weights"`` the part of the model's that redrawing the hidden weights on the same
            data would cause.
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
        model = self._model_variance(parts, name, stacklevel=3)
        total = model if component == "model" else model + self._noise_variance(X)
        return self._output(total, X)

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
        residual2 = to_numpy(self.model_.residual2)
        return np.broadcast_to(residual2, (X.shape[0], len(residual2)))

    def _model_variance(self, parts: PointParts, name: str, stacklevel: int = 4) -> np.ndarray:
        variance = model_variance(name, parts)
        negative = variance < 0
        if np.any(negative):
            warnings.warn(
                f"{int(negative.sum())} of {variance.size} variances estimated by {name!r} were "
                "negative and are replaced by their positive-part form; more n_estimators make "
                "this rare.",
                NegativeVarianceWarning,
                stacklevel=stacklevel,
            )
            variance = np.where(negative, positive_part(parts), variance)
        return variance

    def _checked_points(self, X: Any) -> Any:
        check_is_fitted(self)
        return checked_points(self, X)

    def _warn_about_points(self, X: Any, stacklevel: int = 3) -> None:
        low, high = self._range_
        margin = RANGE_MARGIN * (high - low)
        outside = rows_outside(X, low - margin, high + margin)
        if outside:
            warnings.warn(
                f"{outside} of {X.shape[0]} points lie outside the range of the training inputs "
                "by more than a tenth of it; error bars there rest on extrapolation.",
                ExtrapolationWarning,
                stacklevel=stacklevel,
            )

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """Drop the output axis if y had none."""
        return values[:, 0] if self._one_output_ else values

    def _output(self, values: np.ndarray, X: Any) -> Any:
        """Result in the shape of y, and in the array type and precision of X."""
        return self._like_points(self._shaped(values), X)

    def _like_points(self, values: np.ndarray, X: Any) -> Any:
        """Result in the array type and precision of X."""
        return like(values, X) if is_foreign(X) else values.astype(X.dtype, copy=False)

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
