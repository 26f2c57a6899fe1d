"""Prediction and confidence intervals, and quantiles, at points."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ulmus.estimators import _parameters as check
from ulmus.estimators._docstrings import shared_docs
from ulmus.estimators._kriging import Kriging, require_kriged_kind
from ulmus.estimators._threads import threaded
from ulmus.estimators._weights import observation_weight, refuse_weight
from ulmus.exceptions import InputError
from ulmus.intervals.confidence import TARGETS, error_bars
from ulmus.intervals.kriging import kriged_bounds
from ulmus.intervals.observations import prediction_bounds, response_quantiles
from ulmus.intervals.prediction import METHODS, TAILS
from ulmus.intervals.response import response_bounds, response_mean, response_prediction
from ulmus.intervals.standard_errors import prediction_variance
from ulmus.messages import Message, Setting


class Intervals(Kriging):
    """Intervals for new observations and for the function."""

    @shared_docs
    @threaded
    def predict_interval(
        self,
        X: Any,
        confidence_level: Any = 0.95,
        *,
        kind: str = "prediction",
        method: str = "auto",
        target: str = "function",
        tails: str = "equal",
        scale: str = "response",
        sample_weight: Any = None,
        residual_kriging: bool = False,
        time: Any = None,
        coords: Any = None,
        groups: Any = None,
    ) -> Any:
        r"""Prediction intervals for new observations, and confidence intervals for the function.

        Parameters
        ----------
        {X}
        confidence_level : float or list of float, default=0.95
            Levels between 0 and 1.
        kind : {"prediction", "confidence"}, default="prediction"
            ``"prediction"`` intervals cover a new observation, ``"confidence"`` intervals a value
            of the function.
        method : str, default="auto"
            For prediction intervals: ``"jackknife+"`` is conformal, from exact leave-one-out
            residuals without refits. ``"cv+"`` uses refits on five folds, including the map and
            alpha, and is ``"jackknife+"`` where no map is learned. ``"gaussian"`` is the mean
            plus and minus a Student quantile times the standard deviation. ``"auto"`` is
            jackknife+ with residuals divided by their standard deviations, and with unequal tails
            if these are skewed; with at least 1000 rows and 5 for each degree of freedom, it
            neglects the shift of the prediction by single rows. With too few rows for a level
            (fewer than 19 for 95 %) it is the wider of the Student interval and the widest
            jackknife+ interval, with a warning, and without training rows (after ``compress``) it
            uses the quantiles of ``predict_dist``. For confidence intervals: ``"auto"`` or ``"t"``
            are Student intervals with Satterthwaite's degrees of freedom, ``"normal"`` normal ones.
        target : {"function", "expectation"}, default="function"
            For confidence intervals. ``"expectation"`` is the paper's interval for
            :math:`E \hat f(x)`, the mean of this estimator over noise and weights, and ignores
            bias. ``"function"`` is for the true function f. Its centre is an undersmoothed fit of
            wider networks, formed by groups of members. It includes the prior variance of
            directions of the hidden features without training data, and an allowance, with a
            warning, where leave-one-out residuals of neighbours agree in sign or where a step
            function fits a steep change as well.
        tails : {"equal", "shortest"}, default="equal"
            For prediction intervals with ``method="auto"`` or ``"gaussian"``. ``"equal"`` puts half
            of the error probability in each tail; ``"shortest"`` minimises the length if
            residuals are skewed, with the same shares at all points, at a loss of coverage of the
            order of :math:`1 / \sqrt{n}`. For symmetric residuals both are the same. For a
            transformed or counted target, the shares are those of least length at each point.
        {scale, sample_weight, residual_kriging, time}

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels)
            Lower and upper bounds. With several outputs, their axis is the second.

        Notes
        -----
        Jackknife+ covers a new observation with probability at least :math:`1 - 2\alpha` for
        any distribution if hyper-parameters are fixed, and about :math:`1 - \alpha` in
        practice (Barber et al., 2021). The proof does not cover a map or ridge parameter selected
        on the same data, nor the scaling of ``"auto"``, whose coverage was measured by simulation
        (:doc:`/guide/calibration`).
        CV+ repeats the selection of the map in each fold and has a similar guarantee. With at most
        400 rows and a learned map, residuals come from maps that were learned without the fold of
        the row. With ``residual_kriging=True``, ``"auto"`` uses leave-one-out errors of fit and
        kriging in units of their standard deviations, or Student quantiles where rows are too few.
        Intervals of a transformed target (``target_transform``) are transformed back, and have the
        same coverage; those for the function are for the mean of y. Counts and point masses have
        quantiles of ``predict_dist`` (``"gaussian"``), at levels that ``"auto"`` calibrates by
        leave-one-out predictions.
        Intervals for the function are approximate: undersmoothing makes the bias small relative
        to the standard error if the hidden layers can represent the function.

        ``ulmus.inference(pipe)`` provides this method for a Pipeline.

        Examples
        --------
        {sine_model}
        >>> model.predict_interval([[1.0], [4.0]], 0.9).round(1)  # for a new observation
        array([[ 0.3,  1.3],
               [-1.3, -0.2]])
        >>> model.predict_interval([[1.0], [4.0]], 0.9, kind="confidence").round(1)
        array([[ 0.6,  0.9],
               [-0.9, -0.6]])
        """
        check.checked_choice("kind", kind, ("prediction", "confidence"))
        levels = check.checked_levels(confidence_level)
        if kind == "prediction":
            check.checked_choice("method", method, METHODS)
            check.checked_choice("tails", tails, TAILS)
        else:
            check.checked_choice("method", method, ("auto", "t", "normal"))
            check.checked_choice("target", target, TARGETS)
            refuse_weight(sample_weight, "kind", kind, "prediction")
        if tails == "shortest" and (kind == "confidence" or method not in ("auto", "gaussian")):
            text = "is for prediction intervals of method 'auto' or 'gaussian', not for "
            text += f"kind={kind!r}, method={method!r}"
            equal = (Setting("tails", "equal"),)
            raise InputError(Message("shortest-tails", text, "tails", tails, equal))
        locations = self._new_locations(X, residual_kriging, time, coords, groups)
        X = self._checked_points(X)
        if scale == "link" and kind == "prediction" and self.fitted_.has_working_weights:
            text = "is the scale of the mean, and observations are counts or have a point mass"
            remedies = Setting("scale", "response"), Setting("kind", "confidence")
            raise InputError(Message("no-link-observations", text, "scale", scale, remedies))
        fit, weight = check.fit_on_scale(self.fitted_, scale), None
        if kind == "prediction":
            weight = observation_weight(fit, X.shape[0], sample_weight)
        if locations is not None:
            require_kriged_kind(kind, method)
            bounds = kriged_bounds(fit, X, locations, levels, method, tails, weight)
        elif kind == "prediction":
            bounds = prediction_bounds(fit, X, levels, method, tails=tails, weight=weight)
        else:
            bars = error_bars(fit, X, target)
            bounds = response_bounds(fit, X, bars, levels, method)
        return self._interval_output(bounds, X, np.ndim(confidence_level) == 0)

    @shared_docs
    @threaded
    def predict_quantiles(self, X: Any, quantiles: Any, *, sample_weight: Any = None) -> Any:
        """Quantiles of a new observation.

        Parameters
        ----------
        {X}
        quantiles : float or list of float
            Levels between 0 and 1.
        {sample_weight}

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_quantiles)
            Quantiles that do not cross. With several outputs, their axis is the second.

        Notes
        -----
        The quantile of level q has rank q (n + 1) among the leave-one-out predictions plus scaled
        leave-one-out residuals; extreme levels get the extreme value, with a warning. Without
        training rows it is that of ``predict_dist``. Residuals are signed, so that the quantiles
        0.05 and 0.95 differ from ``predict_interval(X, 0.9)``, which uses absolute residuals
        unless they are skewed.

        Examples
        --------
        {sine_model}
        >>> model.predict_quantiles([[1.0], [4.0]], [0.1, 0.5, 0.9]).round(1)
        array([[ 0.3,  0.8,  1.2],
               [-1.2, -0.7, -0.3]])
        """
        levels = check.checked_levels(quantiles, "quantiles")
        X = self._checked_points(X)
        weight = observation_weight(self.fitted_, X.shape[0], sample_weight)
        values = response_quantiles(self.fitted_, X, levels, weight)
        return self._output(np.moveaxis(values, 0, -1), X)

    @shared_docs
    @threaded
    def summary_frame(
        self,
        X: Any,
        confidence_level: float = 0.95,
        *,
        target: str = "function",
        sample_weight: Any = None,
    ) -> Any:
        """Predictions with standard errors, confidence and prediction intervals.

        Parameters
        ----------
        {X, confidence_level}
        target : {"function", "expectation"}, default="function"
            Quantity that the confidence intervals cover, as in ``predict_interval``.
        {sample_weight}

        Returns
        -------
        frame : pandas.DataFrame or numpy.recarray
            Columns ``estimate``, ``std_error``, ``conf_low`` and ``conf_high`` (confidence
            interval), ``pred_low`` and ``pred_high`` (prediction interval), with the index of X.
            A record array if pandas is not installed.

        Examples
        --------
        {sine_model}
        >>> model.summary_frame([[1.0], [4.0]], 0.9)[["estimate", "pred_low", "pred_high"]].round(1)
           estimate  pred_low  pred_high
        0       0.8       0.3        1.3
        1      -0.7      -1.3       -0.2
        """
        check_is_fitted(self)
        levels = check.checked_levels([confidence_level])
        check.checked_choice("target", target, TARGETS)
        n_outputs = self.fitted_.ensemble.n_outputs
        if n_outputs > 1:
            text = f"summary_frame requires a single output, but the model has {n_outputs}"
            raise ValueError(f"{text}; use predict_interval, whose second axis is the output.")
        index = X.index if hasattr(X, "iloc") else None
        X = self._checked_points(X)
        weight = observation_weight(self.fitted_, X.shape[0], sample_weight)
        fit, variance = self.fitted_, prediction_variance(self.fitted_, X)
        bars = error_bars(fit, X, target, variance)
        conf_low, conf_high = response_bounds(fit, X, bars, levels)[:, 0, :, 0]
        bounds = prediction_bounds(fit, X, levels, "auto", variance, weight=weight)
        pred_low, pred_high = bounds[:, 0, :, 0]
        predicted = response_prediction(fit, X, weight=weight, variance=variance)
        columns = {
            "estimate": response_mean(fit, X, weight)[:, 0],
            "std_error": np.sqrt(predicted.model[:, 0]),
            "conf_low": conf_low,
            "conf_high": conf_high,
            "pred_low": pred_low,
            "pred_high": pred_high,
        }
        columns = {name: self._like_points(values, X) for name, values in columns.items()}
        try:
            import pandas as pd
        except ImportError:
            arrays, names = list(columns.values()), list(columns)
            return np.rec.fromarrays(arrays, names=names)  # type: ignore[call-overload]
        return pd.DataFrame(columns, index=index)
