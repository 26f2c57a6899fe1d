"""What one ELM and an ensemble of them share: every question about points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ulmus.estimators import _parameters as check
from ulmus.estimators._answers import Answers
from ulmus.estimators._attributes import FittedAttributes
from ulmus.estimators._fitting import Fitting
from ulmus.estimators._kriging import Kriging, require_kriged_kind
from ulmus.estimators._points import Points
from ulmus.estimators._presentation import Presentation
from ulmus.estimators._saving import Saving
from ulmus.estimators._subject import OwnTables
from ulmus.estimators._together import Together
from ulmus.estimators._validation import checked_table, require_dense
from ulmus.intervals.confidence import expectation_errors, function_errors
from ulmus.intervals.distribution import predictive_distribution, without_rows
from ulmus.intervals.kriging import kriged_bounds
from ulmus.intervals.prediction import prediction_bounds
from ulmus.intervals.prediction import quantiles as fit_quantiles
from ulmus.intervals.standard_errors import Variance, prediction_variance

if TYPE_CHECKING:
    from ulmus.honesty import HonestyReport

COMPONENTS = ("total", "model", "noise", "weights")
PREDICTION_METHODS = ("auto", "jackknife+", "jackknife", "cv+", "gaussian")
CONFIDENCE_METHODS = ("auto", "t", "normal")
TARGETS = ("function", "expectation")
SHAPES = ("equal", "shortest")


class BaseELM(
    FittedAttributes,
    Fitting,
    OwnTables,
    Answers,
    Together,
    Kriging,
    Points,
    Presentation,
    Saving,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    """Predictions, variances and intervals of a fitted ELM; subclasses have the parameters."""

    def _n_members(self) -> int:
        raise NotImplementedError

    def _variance_choice(self) -> Any:
        raise NotImplementedError

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
        name = check.checked_estimate(estimate, fit.estimates)
        if component == "noise":
            return self._output(fit.noise_variance(X), X)
        if component == "weights":
            parts = fit.parts(X, name)
            return self._output(parts.spread / parts.n_members, X)
        total = prediction_variance(fit, X, name).model
        if component == "total":
            total = total + fit.noise_variance(X)
        return self._output(total, X)

    def predict_interval(
        self,
        X: Any,
        confidence_level: Any = 0.95,
        *,
        kind: str = "prediction",
        method: str = "auto",
        target: str = "function",
        shape: str = "equal",
        residual_kriging: bool = False,
        time: Any = None,
        coords: Any = None,
        groups: Any = None,
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
            leave-one-out residuals without any refit; ``"cv+"`` leaves each fifth of the rows out
            of everything, the learned map and the choice of alpha included, and is jackknife+
            where no map is learned; ``"gaussian"`` is mean plus and minus a Student quantile times
            the standard deviation. ``"auto"`` is jackknife+ with residuals scaled by their own
            standard deviations, with unequal sides when residuals are skewed; with at least 5000
            rows, and 20 for each degree of freedom, it leaves out the shifts by single rows, which
            are then far smaller than the noise. With too few rows for a level it is
            ``"gaussian"``, and without training rows (after ``compress``) it has the quantiles of
            ``predict_dist``. For confidence: ``"auto"`` or ``"t"`` use Student quantiles with
            Satterthwaite's degrees of freedom, ``"normal"`` normal ones.
        target : {"function", "expectation"}, default="function"
            For confidence intervals. ``"expectation"`` is the paper's interval for
            :math:`E \hat f(x)`, the mean of this estimator over noise and weights, and ignores
            its bias. ``"function"`` is for the true function f: its centre is an undersmoothed
            fit of wider networks, made of groups of members side by side. Where hidden features
            leave the span of the training rows it is widened by what a ridge regression would
            expect of directions without data, and where left-out residuals of neighbours agree
            in sign, or a step would explain a steep change as well, by what these show; each
            with a warning.
        shape : {"equal", "shortest"}, default="equal"
            For prediction intervals. ``"equal"`` leaves half the error on each side,
            ``"shortest"`` as much as makes the interval short: with skewed residuals, more on the
            side of the long tail. The shares are chosen by the residuals and are the same at all
            points, which costs coverage of the order of :math:`1 / \sqrt{n}`. It is for
            ``method="auto"`` and ``"gaussian"``; normal intervals, and those of residuals that
            are not clearly skewed, are equal and shortest.
        residual_kriging : bool, default=False
            For prediction intervals: whether the residuals of training rows nearby tell about the
            noise of the new observation, as in ``predict``. ``"gaussian"`` has Student quantiles;
            ``"auto"`` has those of the errors of rows that are left out of the fit and of kriging,
            in closed form and in units of their own standard deviations, or Student quantiles
            where rows are too few for a level.
        time, coords, groups : array-like, default=None
            Where the new observations are, for ``residual_kriging=True``, as in ``predict``.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels)
            Lower and upper bounds. With several outputs, their axis comes second.

        Notes
        -----
        Jackknife+ covers a new observation with probability at least :math:`1 - 2\alpha` for
        any distribution when hyper-parameters are fixed, and about :math:`1 - \alpha` in
        practice (Barber et al., 2021). That proof covers neither an alpha or a map chosen on the
        same data nor the scaling of ``"auto"``; simulations do. Behind a learned map CV+ has about
        the same guarantee with everything chosen anew for each fold, and is wider; without a map
        also give alpha, as CV+ is jackknife+ then. With at most 400 rows and a
        learned map, left-out residuals come from maps that were learned without the row's fold,
        which takes five times as long as the fit, once, when error bars are first asked for.
        Intervals for f are approximate: undersmoothing makes bias small against the standard
        error where the hidden layers can represent f. :doc:`/guide/honesty` has the figures.

        A Pipeline has no ``predict_interval``; ``ulmus.answers(pipe)`` has.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> model.predict_interval([[1.0], [4.0]], 0.9).round(1)  # for a new observation
        array([[ 0.3,  1.3],
               [-1.3, -0.2]])
        >>> model.predict_interval([[1.0], [4.0]], 0.9, kind="confidence").round(
        ...     1
        ... )  # for the function
        array([[ 0.6,  0.9],
               [-0.9, -0.6]])
        >>> model.predict_interval(X, [0.5, 0.8, 0.95]).shape
        (100, 2, 3)
        """
        check.checked_choice("kind", kind, ("prediction", "confidence"))
        levels = check.checked_levels(confidence_level)
        if kind == "prediction":
            check.checked_choice("method", method, PREDICTION_METHODS)
            check.checked_choice("shape", shape, SHAPES)
        else:
            check.checked_choice("method", method, CONFIDENCE_METHODS)
            check.checked_choice("target", target, TARGETS)
        if shape == "shortest" and (kind == "confidence" or method not in ("auto", "gaussian")):
            raise ValueError(
                f"shape='shortest' is for prediction intervals of method 'auto' or 'gaussian', got "
                f"kind={kind!r}, method={method!r}; use shape='equal', whose sides are alike there."
            )
        at = self._new_places(X, residual_kriging, time=time, coords=coords, groups=groups)
        X = self._checked_points(X)
        if at is not None:
            require_kriged_kind(kind, method)
            bounds = kriged_bounds(self.fitted_, X, at, levels, method, shape)
        elif kind == "prediction":
            bounds = prediction_bounds(self.fitted_, X, levels, method, shape=shape)
        elif target == "function":
            bounds = function_errors(self.fitted_, X).bounds(levels, method)
        else:
            variance = prediction_variance(self.fitted_, X)
            bounds = expectation_errors(self.fitted_, variance).bounds(levels, method)
        return self._interval_output(bounds, X, np.ndim(confidence_level) == 0)

    def predict_quantiles(self, X: Any, quantiles: Any) -> Any:
        """Quantiles of a new observation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        quantiles : float or list of float
            Levels between 0 and 1. They come from the leave-one-out predictions plus scaled
            leave-one-out residuals, of which the level q has the place q (n + 1) in their order,
            or from ``predict_dist`` without training rows. Levels beyond the reach of the
            training rows get the outermost residual, with a warning.

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_quantiles)
            Never crossing. With several outputs, their axis comes second.

        Notes
        -----
        The quantiles 0.05 and 0.95 are not ``predict_interval(X, 0.9)``: quantiles count residuals
        with their signs, so that each side has its own, and the interval counts their sizes, the
        same on both sides, unless they are clearly skewed.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> model.predict_quantiles([[1.0], [4.0]], [0.1, 0.5, 0.9]).round(1)
        array([[ 0.3,  0.8,  1.2],
               [-1.2, -0.7, -0.3]])
        """
        levels = check.checked_levels(quantiles, "quantiles")
        X = self._checked_points(X)
        values = np.moveaxis(fit_quantiles(self.fitted_, X, levels), 0, -1)
        return self._like_points(values[:, 0] if self.fitted_.one_output else values, X)

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

    def summary_frame(
        self, X: Any, confidence_level: float = 0.95, *, target: str = "function"
    ) -> Any:
        """Table of predictions with both kinds of intervals, named as in statsmodels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        confidence_level : float, default=0.95
            Level of the intervals.
        target : {"function", "expectation"}, default="function"
            What the interval of the mean is for, as in ``predict_interval``.

        Returns
        -------
        frame : pandas.DataFrame or numpy.recarray
            Columns ``mean``, ``mean_se``, ``mean_ci_lower``, ``mean_ci_upper``,
            ``obs_ci_lower`` and ``obs_ci_upper``. A record array if pandas is not
            installed. Rows keep the index of X if it has one.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> frame = model.summary_frame([[1.0], [4.0]], 0.9)
        >>> frame[["mean", "obs_ci_lower", "obs_ci_upper"]].round(1)
           mean  obs_ci_lower  obs_ci_upper
        0   0.8           0.3           1.3
        1  -0.7          -1.3          -0.2
        """
        check_is_fitted(self)
        levels = check.checked_levels([confidence_level])
        check.checked_choice("target", target, TARGETS)
        if not self.fitted_.one_output:
            raise ValueError(
                "summary_frame describes one output and the model has several; call "
                "predict_interval, whose second axis is the output."
            )
        index = X.index if hasattr(X, "iloc") else None
        X = self._checked_points(X)
        fit, variance = self.fitted_, prediction_variance(self.fitted_, X)
        errors = (
            function_errors(fit, X) if target == "function" else expectation_errors(fit, variance)
        )
        mean_ci = errors.bounds(levels)[:, 0, :, 0]
        obs_ci = prediction_bounds(fit, X, levels, "auto", variance)[:, 0, :, 0]
        columns = {
            "mean": fit.mean(X)[0],
            "mean_se": np.sqrt(variance.model[:, 0]),
            "mean_ci_lower": mean_ci[0],
            "mean_ci_upper": mean_ci[1],
            "obs_ci_lower": obs_ci[0],
            "obs_ci_upper": obs_ci[1],
        }
        columns = {name: self._like_points(values, X) for name, values in columns.items()}
        try:
            import pandas as pd
        except ImportError:
            table: Any = np.rec
            return table.fromarrays(list(columns.values()), names=list(columns))
        return pd.DataFrame(columns, index=index)

    def check(self, X: Any = None, y: Any = None) -> HonestyReport:
        """Whether the error bars are honest, as far as data can tell.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), optional
            Points that the fit has not seen: the honest test. Without them every training row is
            left out in turn. All of these together are covered as often as asked by
            construction, so that only the coverage of groups of them is informative.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            What was observed there.

        Returns
        -------
        report : HonestyReport
            ``print`` it, or see its ``findings`` (name, light, statistic, says, remedy), the
            worst ``light``, the table ``coverage`` (group, level, n, coverage) and
            ``to_frame()``. Of honest fits, about one in twenty is not all green by chance.

        Examples
        --------
        >>> import numpy as np
        >>> from ulmus import ELMEnsembleRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 6, size=(300, 1))
        >>> y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(300)
        >>> model = ELMEnsembleRegressor(20, 50, input_map=None, random_state=0)
        >>> report = model.fit(X[:200], y[:200]).check(X[200:], y[200:])
        >>> report.light
        'green'
        >>> [(row.level, row.n) for row in report.coverage if row.group == "all"]
        [(0.5, 100), (0.8, 100), (0.9, 100), (0.95, 100)]
        """
        # Its metrics load parts of scikit-learn that a fit does not need.
        from ulmus.honesty import honesty_report

        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if X is None and y is None:
            return honesty_report(self.fitted_, names=names)
        if X is None or y is None:
            missing = "X" if X is None else "y"
            raise ValueError(f"check needs X and y or neither, got no {missing}; give both.")
        X, y = checked_table(self, X, y, reset=False)
        require_dense(X, self.device, self.fitted_.ensemble.layer.W)
        outputs = np.ascontiguousarray(y.reshape(len(y), -1).T)
        if len(outputs) != self.fitted_.ensemble.n_outputs:
            raise ValueError(
                f"y has {len(outputs)} outputs, but the fit had {self.fitted_.ensemble.n_outputs}; "
                "give the same outputs as in fit."
            )
        return honesty_report(self.fitted_, X, outputs, names=names)

    def compress(self) -> Self:
        """Drop the training rows, so that size and prediction cost no longer depend on them.

        Returns
        -------
        self : object
            The estimator, without its attributes of length ``n_samples``.

        See Also
        --------
        save : Writes the fit, with or without the rows, to a file.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> hasattr(model, "leverage_")
        True
        >>> hasattr(model.compress(), "leverage_")
        False
        >>> model.predict_interval([[1.0]]).shape
        (1, 2)
        """
        check_is_fitted(self)
        self.fitted_ = without_rows(self.fitted_)
        return self

    # ------------------------------------------------------------ points in, answers out

    def _sd(self, X: Any, variance: Variance) -> np.ndarray:
        """Standard deviation of a new observation, shape (p, K)."""
        return np.sqrt(variance.model + self.fitted_.noise_variance(X))

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
