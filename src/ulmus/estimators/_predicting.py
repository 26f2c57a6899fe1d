"""Predictions at points: mean, variance and predictive distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from ulmus.estimators import _parameters as check
from ulmus.estimators._docstrings import shared_docs
from ulmus.estimators._kriging import Kriging
from ulmus.estimators._threads import threaded
from ulmus.estimators._weights import observation_weight
from ulmus.intervals.distribution import predictive_distribution
from ulmus.intervals.observations import response_medians
from ulmus.intervals.response import response_mean, response_prediction


class Predicting(Kriging):
    """Predicted mean, variance and distribution of new observations."""

    @shared_docs
    @threaded
    def predict(
        self,
        X: Any,
        return_std: bool = False,
        *,
        sample_weight: Any = None,
        residual_kriging: bool = False,
        time: Any = None,
        coords: Any = None,
        groups: Any = None,
    ) -> Any:
        r"""Predict the mean and, optionally, the standard deviation of a new observation.

        Parameters
        ----------
        {X}
        return_std : bool, default=False
            Whether to also return the standard deviation of a new observation, which includes the
            noise. The standard error of the prediction is the square root of
            ``predict_var(X, component="model")``.
        {sample_weight, residual_kriging, time}

        Returns
        -------
        y_mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        y_std : ndarray of the same shape
            Only if ``return_std`` is True.

        See Also
        --------
        predict_var : Variance of the prediction and of a new observation.
        predict_interval : Prediction and confidence intervals.

        Notes
        -----
        With the noise covariance :math:`\Sigma` of the rows, its covariance c with the noise of
        the new observation, and :math:`w = \Sigma^{-1} c`, residual kriging predicts
        :math:`\hat f(x) + w'(y - \hat f(X))`. The variance is that of the noise minus
        :math:`c'w`, plus that of the functional :math:`\hat f(x) - w'\hat f(X)`. For more than
        2500 rows in space, the 50 nearest rows are used.
        :doc:`/guide/correlated_errors` has examples.

        Examples
        --------
        {sine_model}
        >>> mean, std = model.predict([[1.0], [4.0]], return_std=True)
        >>> mean.round(1), std.round(1)
        (array([ 0.8, -0.7]), array([0.3, 0.3]))
        """
        locations = self._new_locations(X, residual_kriging, time, coords, groups)
        X = self._checked_points(X)
        if locations is not None:
            return self._kriged(X, locations, sample_weight, return_std)
        if not return_std and (sample_weight is None or self.fitted_.response is None):
            return self._output(response_mean(self.fitted_, X), X)
        weight = observation_weight(self.fitted_, X.shape[0], sample_weight)
        if not return_std:
            return self._output(response_mean(self.fitted_, X, weight), X)
        predicted = response_prediction(self.fitted_, X, weight=weight)
        sd = np.sqrt(predicted.model + predicted.noise)
        return self._output(predicted.mean, X), self._output(sd, X)

    @shared_docs
    @threaded
    def predict_median(self, X: Any, *, sample_weight: Any = None) -> Any:
        """Predict the median of a new observation.

        For a transformed target (``target_transform``) it is about the prediction on the scale of
        the regression, transformed back, and differs from the mean where the noise is skewed.

        Parameters
        ----------
        {X, sample_weight}

        Returns
        -------
        median : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The quantile of level 0.5 of ``predict_quantiles``.

        Examples
        --------
        >>> import numpy as np
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(200, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, target_transform="log", random_state=0)
        >>> model = model.fit(X, np.exp(3 * y))
        >>> model.predict_median([[1.0]]) < model.predict([[1.0]])  # log-normal noise
        array([ True])
        """
        X = self._checked_points(X)
        weight = observation_weight(self.fitted_, X.shape[0], sample_weight)
        return self._output(response_medians(self.fitted_, X, weight), X)

    @shared_docs
    @threaded
    def predict_var(
        self,
        X: Any,
        component: str = "total",
        estimate: str | None = None,
        *,
        sample_weight: Any = None,
    ) -> Any:
        """Variance of the prediction and of a new observation.

        Parameters
        ----------
        {X}
        component : {"total", "model", "noise", "weights"}, default="total"
            ``"model"`` is the variance of the prediction, the square of its standard error,
            including that of the selected alpha and map. ``"noise"`` is the variance of a new
            observation around the prediction (noise, and the squared bias in the residuals: at
            least ``noise_variance_`` on average). ``"total"`` is their sum. ``"weights"`` is the
            part of ``"model"`` due to the random hidden weights.
        {estimate, sample_weight}

        Returns
        -------
        variance : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Never negative.

        Examples
        --------
        >>> import numpy as np
        {sine_model}
        >>> np.sqrt(model.predict_var([[1.0], [4.0]], component="model")).round(2)
        array([0.07, 0.07])
        >>> np.sqrt(model.predict_var([[1.0], [4.0]], component="noise")).round(2)  # true: 0.32
        array([0.33, 0.33])
        """
        check.checked_choice("component", component, ("total", "model", "noise", "weights"))
        X, fit = self._checked_points(X), self.fitted_
        name, weight = check.checked_estimate(estimate, fit), None
        if component in ("noise", "total"):
            weight = observation_weight(fit, X.shape[0], sample_weight)
        if component == "noise" and fit.response is None:
            return self._output(fit.noise_variance(X, weight), X)
        predicted = response_prediction(fit, X, name, weight)
        variances = {
            "total": predicted.model + predicted.noise,
            "model": predicted.model,
            "noise": predicted.noise,
            "weights": predicted.from_weights,
        }
        return self._output(variances[component], X)

    @shared_docs
    @threaded
    def predict_dist(self, X: Any, *, sample_weight: Any = None) -> Any:
        """Predictive distribution of a new observation at each point.

        Parameters
        ----------
        {X, sample_weight}

        Returns
        -------
        distribution : frozen scipy.stats distribution
            With methods ``mean``, ``std``, ``cdf``, ``ppf`` (quantiles), ``logpdf``, ``rvs``
            (samples) and others, vectorised over the points. For a transformed, bounded or counted
            target it is a ``ResponseDistribution`` with the same methods, and with ``pmf``, the
            probability of single values.

        Notes
        -----
        It is Student's, with the location and scale of ``predict`` and the degrees of freedom of
        ``method="gaussian"``, unless a test of skewness and kurtosis rejects normality of at least
        20 leave-one-out residuals (p < 0.02). Then it is their smoothed empirical distribution
        with exponential tails, and its mean may differ slightly from ``predict``. ``compress``
        keeps that distribution; it does not exist after a streamed fit.

        Examples
        --------
        {sine_model}
        >>> model.predict_dist([[1.0], [4.0]]).cdf(0.5).round(1)  # probability of a value below 0.5
        array([0.2, 1. ])
        """
        X = self._checked_points(X)
        fit = self.fitted_
        weight = observation_weight(fit, X.shape[0], sample_weight)
        return predictive_distribution(fit, X, weight, drop_output=fit.one_output)
