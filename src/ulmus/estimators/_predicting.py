"""Predictions: the mean, the variance and the distribution of what is asked at points."""

from __future__ import annotations

from typing import Any

import numpy as np

from ulmus.estimators import _parameters as check
from ulmus.estimators._kriging import Kriging
from ulmus.intervals.distribution import predictive_distribution
from ulmus.intervals.standard_errors import Variance, prediction_variance

COMPONENTS = ("total", "model", "noise", "weights")


class Predicting(Kriging):
    """What a fitted estimator expects at points, and how far from it observations are."""

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        *,
        residual_kriging: bool = False,
        time: Any = None,
        coords: Any = None,
        groups: Any = None,
    ) -> Any:
        r"""Predict the mean and, if asked, the standard deviation of a new observation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        return_std : bool, default=False
            Whether to return the standard deviation of a new observation as well: model
            and noise together. The model's own standard error is the square root of
            ``predict_var(X, component="model")``.
        residual_kriging : bool, default=False
            Whether to add what the residuals of training rows nearby tell about the noise of the
            new observation, after a fit with noise that hangs together and has a covariance:
            ``AR1``, ``Exponential`` or ``Matern`` of ``ulmus.noise``. Far from all rows
            nothing is added.
        time, coords, groups : array-like, default=None
            Where the new observations are, for ``residual_kriging=True``: as in ``fit``, and all
            that the noise needs, but what it takes from columns of X by their names. Where
            ``fit`` had no times, rows are at 0, 1, ..., counted within groups. Groups that
            ``fit`` has not seen are independent of all rows.

        Returns
        -------
        y_mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        y_std : ndarray of the same shape
            Only if ``return_std`` is True.

        See Also
        --------
        predict_var : Variance of the prediction, of a new observation, and their parts.
        predict_interval : Intervals that need no normal distribution.

        Notes
        -----
        With the covariance :math:`\Sigma` of the noise of the rows, its covariance c with that of
        the new observation, and :math:`w = \Sigma^{-1} c`, residual kriging predicts
        :math:`\hat f(x) + w'(y - \hat f(X))`. Its variance is that of the noise less
        :math:`c'w`, and that of the functional :math:`\hat f(x) - w'\hat f(X)`. Beyond 2500 rows
        in space, the nearest 50 count.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> mean, std = model.predict([[1.0], [4.0]], return_std=True)
        >>> mean.round(1), std.round(1)
        (array([ 0.8, -0.7]), array([0.3, 0.3]))

        Values that are missing in a series are nearer to those around them:

        >>> import numpy as np
        >>> from ulmus.noise import AR1
        >>> rng, t = np.random.default_rng(0), np.arange(250)
        >>> e = rng.standard_normal(250)
        >>> for i in t[1:]:
        ...     e[i] += 0.8 * e[i - 1]
        >>> X, y, missing = np.sin(t[:, None] / 10), np.sin(t / 10) + e, t % 5 == 0
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, noise=AR1(), random_state=0)
        >>> model = model.fit(X[~missing], y[~missing], time=t[~missing])
        >>> plain = model.predict(X[missing])
        >>> near = model.predict(X[missing], residual_kriging=True, time=t[missing])
        >>> [float(np.std(y[missing] - mean).round(1)) for mean in (plain, near)]
        [1.7, 0.6]
        """
        at = self._new_places(X, residual_kriging, time=time, coords=coords, groups=groups)
        X = self._checked_points(X)
        if at is not None:
            return self._kriged(X, at, return_std)
        if not return_std:
            return self._output(self.fitted_.mean(X).T, X)
        variance = prediction_variance(self.fitted_, X)
        return self._output(variance.mean, X), self._output(self._sd(X, variance), X)

    def predict_var(self, X: Any, component: str = "total", estimate: str | None = None) -> Any:
        """Variance at the given points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        component : {"total", "model", "noise", "weights"}, default="total"
            ``"model"`` is the variance of the prediction (its square root is the standard
            error): the estimate, and what choosing alpha and a map adds to it. ``"noise"`` is that
            of a new observation around it (noise, and the bias that residuals show: at least
            ``noise_variance_`` on average), ``"total"`` their sum, and ``"weights"`` the part of
            the model's that redrawing the hidden weights on the same data would cause. After a
            fit with ``sample_weight``, the new observation has the mean weight of the training
            rows.
        estimate : str, default=None
            One of the estimates computed in ``fit``, see the parameter ``variance``; the first
            of them by default.

        Returns
        -------
        variance : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Never negative.

        Examples
        --------
        >>> import numpy as np
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> standard_error = np.sqrt(model.predict_var([[1.0], [4.0]], component="model"))
        >>> standard_error.round(2)
        array([0.07, 0.07])
        >>> noise = np.sqrt(model.predict_var([[1.0], [4.0]], component="noise"))  # 0.32 in truth
        >>> noise.round(2)
        array([0.33, 0.33])
        """
        check.checked_choice("component", component, COMPONENTS)
        X = self._checked_points(X)
        fit = self.fitted_
        name = check.checked_estimate(estimate, fit)
        if component == "noise":
            return self._output(fit.noise_variance(X), X)
        if component == "weights":
            parts = fit.parts(X, name)
            return self._output(parts.spread / parts.n_members, X)
        total = prediction_variance(fit, X, name).model
        if component == "total":
            total = total + fit.noise_variance(X)
        return self._output(total, X)

    def predict_dist(self, X: Any) -> Any:
        """Distribution of a new observation at each point.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.

        Returns
        -------
        distribution : frozen scipy.stats distribution
            With methods ``mean``, ``std``, ``cdf``, ``ppf`` (quantiles), ``logpdf``, ``rvs``
            (samples) and others, all vectorised over the points. Where there is no noise at all
            it has the smallest spread that its mean can resolve.

        Notes
        -----
        It is Student's, with the location and scale of ``predict`` and the degrees of freedom of
        ``method="gaussian"``, unless a test of skewness and kurtosis says that the leave-one-out
        residuals of an output are not normal (p < 0.02, and at least 20 of them). Then it has
        their shape, smoothed, with tails that fall off as an exponential function; its mean may
        differ a little from ``predict``. ``compress`` keeps the shape; streamed fits have none.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> distribution = model.predict_dist([[1.0], [4.0]])
        >>> distribution.cdf(0.5).round(1)  # probability of a value below 0.5
        array([0.2, 1. ])
        >>> distribution.rvs(size=(1000, 2), random_state=0).shape
        (1000, 2)
        """
        X = self._checked_points(X)
        one_output = self.fitted_.one_output
        return predictive_distribution(self.fitted_, X, drop_output=one_output)

    def _sd(self, X: Any, variance: Variance) -> np.ndarray:
        """Standard deviation of a new observation, shape (p, K)."""
        return np.sqrt(variance.model + self.fitted_.noise_variance(X))
