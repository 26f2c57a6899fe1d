"""Interval methods of the estimators."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from ulmus.core.backend import double_precision, taken_rows, to_numpy
from ulmus.core.forms import COMMON
from ulmus.core.jackknife import TrainingRows, left_out_predictions
from ulmus.core.variance import ESTIMATES, WideParts
from ulmus.estimators import _parameters as check
from ulmus.estimators._fitting import FittableELM
from ulmus.exceptions import BiasWarning
from ulmus.intervals import (
    conformal_bounds,
    conformal_ranks,
    is_skewed,
    normal_bounds,
    satterthwaite_dof,
)

PREDICTION_METHODS = ("auto", "jackknife+", "jackknife", "gaussian")
CONFIDENCE_METHODS = ("auto", "t", "normal")
TARGETS = ("function", "expectation")
# The prediction may differ from the undersmoothed one by noise alone; more than this many
# standard errors is bias.
LARGE_BIAS = 5.0


class IntervalELM(FittableELM):
    """Intervals, quantiles and distributions of a fitted ELM."""

    _alarm_: float

    def predict_interval(
        self,
        X: Any,
        confidence_level: Any = 0.95,
        *,
        kind: str = "prediction",
        method: str = "auto",
        target: str = "function",
    ) -> Any:
        r"""Intervals for new observations, for the true function, or for its expectation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        confidence_level : float or list of float, default=0.95
            Levels between 0 and 1.
        kind : {"prediction", "confidence"}, default="prediction"
            ``"prediction"`` covers a new observation, ``"confidence"`` a value of a function.
        method : str, default="auto"
            For predictions: ``"jackknife+"`` and ``"jackknife"`` are conformal, from exact
            leave-one-out residuals without any refit; ``"gaussian"`` is mean plus and minus
            a normal quantile times the standard deviation. ``"auto"`` is jackknife+ with
            residuals scaled by their own standard deviations, with unequal sides when
            residuals are skewed; without training rows (after ``compress``) it is
            ``"gaussian"``. For confidence: ``"auto"`` or ``"t"`` use Student quantiles with
            Satterthwaite's degrees of freedom, ``"normal"`` normal ones.
        target : {"function", "expectation"}, default="function"
            For confidence intervals. ``"expectation"`` is the paper's interval for
            :math:`E \hat f(x)`, the mean of this estimator over noise and weights, and ignores
            its bias. ``"function"`` is for the true function f: its centre is an undersmoothed
            fit of wider networks, made of groups of members side by side.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels)
            Lower and upper bounds. With several outputs, their axis comes second.

        Notes
        -----
        Jackknife+ covers a new observation with probability at least :math:`1 - 2\alpha` for
        any distribution when hyper-parameters are fixed, and about :math:`1 - \alpha` in
        practice (Barber et al., 2021). That proof covers neither an alpha chosen on the same
        data nor the scaling of ``"auto"``; simulations do. Intervals for f are approximate:
        undersmoothing makes bias small against the standard error where the hidden layers can
        represent f, and nothing reveals bias where they cannot.
        """
        check.checked_choice("kind", kind, ("prediction", "confidence"))
        levels = check.checked_levels(confidence_level)
        if kind == "prediction":
            check.checked_choice("method", method, PREDICTION_METHODS)
        else:
            check.checked_choice("method", method, CONFIDENCE_METHODS)
            check.checked_choice("target", target, TARGETS)
        X = self._checked_points(X)
        self._warn_about_points(X)
        if kind == "prediction":
            bounds = self._prediction_bounds(X, levels, method)
        else:
            bounds = self._confidence_bounds(X, levels, method, target)
        return self._interval_output(bounds, X, np.ndim(confidence_level) == 0)

    def predict_quantiles(self, X: Any, quantiles: Any) -> Any:
        """Quantiles of a new observation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        quantiles : float or list of float
            Levels between 0 and 1. They come from the leave-one-out predictions plus scaled
            leave-one-out residuals, or from a normal distribution without training rows.

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_quantiles)
            Never crossing. With several outputs, their axis comes second.
        """
        levels = check.checked_levels(quantiles, "quantiles")
        X = self._checked_points(X)
        self._warn_about_points(X)
        if self._training_ is None:
            mean, sd = self._mean_and_sd(X)
            values = np.stack([mean + stats.norm.ppf(level) * sd for level in levels])
        else:
            values = self._empirical_quantiles(X, levels, self._training_)
        values = np.moveaxis(values, 0, -1)
        return self._like_points(values[:, 0] if self._one_output_ else values, X)

    def predict_dist(self, X: Any) -> Any:
        """Normal distribution of a new observation at each point.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.

        Returns
        -------
        distribution : frozen scipy.stats distribution
            With methods ``mean``, ``std``, ``cdf``, ``ppf`` (quantiles), ``logpdf``, ``rvs``
            (samples) and others, all vectorised over the points.
        """
        mean, sd = self.predict(X, return_std=True)
        return stats.norm(loc=mean, scale=sd)

    def summary_frame(self, X: Any, confidence_level: float = 0.95) -> Any:
        """Table of predictions with both kinds of intervals, named as in statsmodels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        confidence_level : float, default=0.95
            Level of the intervals.

        Returns
        -------
        frame : pandas.DataFrame or numpy.recarray
            Columns ``mean``, ``mean_se``, ``mean_ci_lower``, ``mean_ci_upper`` (for the true
            function), ``obs_ci_lower`` and ``obs_ci_upper``. A record array if pandas is not
            installed. Rows keep the index of X if it has one.
        """
        check_is_fitted(self)
        (level,) = check.checked_levels([confidence_level])
        if not self._one_output_:
            raise ValueError(
                "summary_frame describes one output and the model has several; call "
                "predict_interval, whose second axis is the output."
            )
        mean_ci = self.predict_interval(X, level, kind="confidence")
        obs_ci = self.predict_interval(X, level)
        columns = {
            "mean": self.predict(X),
            "mean_se": np.sqrt(self.predict_var(X, component="model")),
            "mean_ci_lower": mean_ci[:, 0],
            "mean_ci_upper": mean_ci[:, 1],
            "obs_ci_lower": obs_ci[:, 0],
            "obs_ci_upper": obs_ci[:, 1],
        }
        try:
            import pandas as pd
        except ImportError:
            table: Any = np.rec
            return table.fromarrays(list(columns.values()), names=list(columns))
        return pd.DataFrame(columns, index=X.index if hasattr(X, "iloc") else None)

    def compress(self) -> Self:
        """Drop the training rows, so that size and prediction cost no longer depend on them.

        Returns
        -------
        self : object
            The estimator, without its attributes of length ``n_samples``.
        """
        check_is_fitted(self)
        self._alarm_ = self.bias_alarm_
        self.model_ = self.model_.compressed()
        for name in ("leverage_", "loo_residuals_", "loo_predictions_", "_alarm_points_"):
            if hasattr(self, name):
                delattr(self, name)
        self._training_ = None
        return self

    @property
    def bias_alarm_(self) -> float:
        """Largest distance between prediction and undersmoothed fit, in standard errors.

        Taken over at most 500 training rows. Noise alone gives two to four; more says that the
        prediction, and the interval for its expectation, is biased. Not a number where there
        are no intervals for the function.
        """
        check_is_fitted(self)
        if not hasattr(self, "_alarm_points_"):
            return self._alarm_
        X = self._alarm_points_
        try:
            parts = self._wide_parts(X)
        except ValueError:
            return np.nan
        se = np.sqrt(_wide_variance(parts))
        gap = np.abs(to_numpy(self.model_.mean(X)).T - parts.mean)
        return float(np.max(np.divide(gap, se, out=np.zeros_like(gap), where=se > 0)))

    def _wide_parts(self, X: Any) -> WideParts:
        weights = ESTIMATES[self.variance_estimates_[0]].weights
        if not double_precision(self.model_.q):
            raise ValueError(
                "target='function' needs smaller ridge parameters than dtype='float32' resolves; "
                "use target='expectation', or dtype='float64'."
            )
        if weights is not COMMON and "wide" not in self.model_.forms:
            raise ValueError(
                "target='function' with noise='heteroskedastic' needs residuals of the training "
                "rows, which a streamed fit does not keep; use target='expectation', or fit in "
                "memory."
            )
        return self.model_.wide_parts(X, weights)

    def _confidence_bounds(
        self, X: Any, levels: list[float], method: str, target: str
    ) -> np.ndarray:
        model = self.model_
        if target == "expectation":
            parts, name = self._parts(X, None)
            variance = self._model_variance(parts, name)
            from_weights = np.minimum(parts.spread / parts.n_members, variance)
            center, groups, dof = parts.mean, parts.n_members, float(self.dof_)
        else:
            wide = self._wide_parts(X)
            variance, from_weights = _wide_variance(wide), wide.spread / wide.n_groups
            center, groups, dof = wide.mean, wide.n_groups, wide.dof
            self._warn_about_bias(to_numpy(model.mean(X)).T, center, np.sqrt(variance))
        residual_dof = model.fit.n - dof - (target == "function" and model.basis.constant)
        degrees: Any = np.inf
        if method != "normal":
            noise = variance - from_weights
            degrees = satterthwaite_dof(noise, from_weights, residual_dof, groups - 1)
        return normal_bounds(center, np.sqrt(variance), levels, degrees)

    def _warn_about_bias(self, mean: np.ndarray, center: np.ndarray, se: np.ndarray) -> None:
        biased = int(np.sum(np.abs(mean - center) > LARGE_BIAS * se))
        if biased:
            warnings.warn(
                f"at {biased} of {mean.size} points the prediction lies more than "
                f"{LARGE_BIAS:g} standard errors from the undersmoothed fit that centres these "
                "intervals: the prediction is biased there, and the intervals may be too. "
                "Use more n_neurons or another weight_scale.",
                BiasWarning,
                stacklevel=4,
            )

    def _prediction_bounds(self, X: Any, levels: list[float], method: str) -> np.ndarray:
        rows = self._training_
        if rows is None and method.startswith("jackknife"):
            raise ValueError(
                f"method={method!r} needs the training rows, which compress() dropped or a "
                "streamed fit never kept; use method='gaussian', or fit in memory."
            )
        if rows is None or method == "gaussian":
            mean, sd = self._mean_and_sd(X)
            return normal_bounds(mean, sd, levels)
        n = int(np.sum(rows.used))
        loo = rows.loo.mean(axis=0)
        row_sd = self._row_sd(rows)
        scaled = method == "auto"
        sides = [scaled and is_skewed(r) for r in (loo / row_sd)[:, rows.used]]
        bounds = np.empty((2, len(levels), X.shape[0], loo.shape[0]))
        for chunk in left_out_predictions(self.model_, rows.data, rows.loo, X):
            point_sd = self._point_sd(taken_rows(X, chunk.points), chunk.norm2) if scaled else None
            for k in range(len(loo)):
                shift: Any = chunk.shift[k, rows.used] if method != "jackknife" else 0.0
                error = loo[k, rows.used, None]
                if point_sd is not None:
                    error = error / row_sd[k, rows.used, None] * point_sd[k]
                left_out = chunk.mean[k] - shift
                signed = sides[k]
                ranks = [conformal_ranks(n, level, two_sided=signed) for level in levels]
                margin = error if signed else np.abs(error)
                low = left_out + margin if signed else left_out - margin
                bounds[:, :, chunk.points, k] = conformal_bounds(low, left_out + margin, ranks)
        return bounds

    def _empirical_quantiles(self, X: Any, levels: list[float], rows: TrainingRows) -> np.ndarray:
        loo, row_sd = rows.loo.mean(axis=0), self._row_sd(rows)
        n = int(np.sum(rows.used))
        ranks = [int(np.clip(np.ceil(np.round(level * (n + 1), 9)), 1, n)) - 1 for level in levels]
        values = np.empty((len(levels), X.shape[0], loo.shape[0]))
        for chunk in left_out_predictions(self.model_, rows.data, rows.loo, X):
            sd = self._point_sd(taken_rows(X, chunk.points), chunk.norm2)
            for k in range(loo.shape[0]):
                error = (loo[k] / row_sd[k])[rows.used, None] * sd[k]
                sample = chunk.mean[k] - chunk.shift[k, rows.used] + error
                values[:, chunk.points, k] = np.partition(sample, ranks, axis=0)[ranks]
        return values

    def _row_sd(self, rows: TrainingRows) -> np.ndarray:
        """Standard deviation of each leave-one-out residual, shape (K, n)."""
        sigma2, weight = to_numpy(self.model_.sigma2)[:, None], rows.data.root_weight
        inverse = 1.0 if weight is None else 1 / np.where(weight > 0, weight, 1.0) ** 2
        return _positive_sd(rows.noise * inverse + sigma2 * rows.norm2)

    def _point_sd(self, X: Any, norm2: np.ndarray) -> np.ndarray:
        """Standard deviation of a new observation around a prediction, shape (K, p)."""
        noise = self._noise_variance(X).T
        return _positive_sd(noise + to_numpy(self.model_.sigma2)[:, None] * norm2)

    def _interval_output(self, bounds: np.ndarray, X: Any, one_level: bool) -> Any:
        """Bounds (2, k, p, K) in the shape of y, MAPIE's order of axes and the dtype of X."""
        intervals = np.transpose(bounds, (2, 3, 0, 1))
        if self._one_output_:
            intervals = intervals[:, 0]
        return self._like_points(intervals[..., 0] if one_level else intervals, X)


def _wide_variance(parts: WideParts) -> np.ndarray:
    return parts.noise + parts.spread / parts.n_groups


def _positive_sd(variance: np.ndarray) -> np.ndarray:
    """Square root; data without any noise get a scale of one."""
    return np.sqrt(np.where(variance > 0, variance, 1.0))
