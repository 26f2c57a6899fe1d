"""Intervals and quantiles at points: for new observations and for the function."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ulmus.estimators import _parameters as check
from ulmus.estimators._kriging import Kriging, require_kriged_kind
from ulmus.estimators._subject import TARGETS
from ulmus.intervals.confidence import expectation_error_bars, function_error_bars
from ulmus.intervals.kriging import kriged_bounds
from ulmus.intervals.prediction import prediction_bounds
from ulmus.intervals.prediction import quantiles as fit_quantiles
from ulmus.intervals.standard_errors import prediction_variance

PREDICTION_METHODS = ("auto", "jackknife+", "cv+", "gaussian")
CONFIDENCE_METHODS = ("auto", "t", "normal")
SHAPES = ("equal", "shortest")


class Intervals(Kriging):
    """Bounds that hold what is asked for with a given probability."""

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
            For predictions: ``"jackknife+"`` is conformal, from exact leave-one-out predictions
            and residuals without any refit; ``"cv+"`` leaves each fifth of the rows out
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
        error where the hidden layers can represent f. :doc:`/guide/calibration` has the figures.

        A Pipeline has no ``predict_interval``; ``ulmus.inference(pipe)`` has.

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
            bounds = function_error_bars(self.fitted_, X).bounds(levels, method)
        else:
            variance = prediction_variance(self.fitted_, X)
            bounds = expectation_error_bars(self.fitted_, variance).bounds(levels, method)
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
            function_error_bars(fit, X) if target == "function" else expectation_error_bars(fit, variance)
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
