"""Base class of the estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ulmus.estimators._attributes import FittedAttributes
from ulmus.estimators._columns import encoded_points
from ulmus.estimators._docstrings import shared_docs
from ulmus.estimators._effects import Effects
from ulmus.estimators._fit_methods import FitMethods
from ulmus.estimators._inference_source import EstimatorSource
from ulmus.estimators._intervals import Intervals
from ulmus.estimators._joint_inference import JointInference
from ulmus.estimators._predicting import Predicting
from ulmus.estimators._presentation import Presentation
from ulmus.estimators._saving import Saving
from ulmus.estimators._threads import threaded
from ulmus.estimators._validation import (
    checked_inputs_and_outputs,
    checked_table,
    require_dense,
)
from ulmus.exceptions import InputError
from ulmus.intervals.distribution import without_rows
from ulmus.messages import Message
from ulmus.tables.checks import checked_positive_weight

if TYPE_CHECKING:
    from ulmus.diagnostics import DiagnosticReport


class BaseELM(
    FittedAttributes,
    FitMethods,
    EstimatorSource,
    Effects,
    JointInference,
    Predicting,
    Intervals,
    Presentation,
    Saving,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    """Fit, predictions, intervals and effects; subclasses define the parameters."""

    def _n_members(self) -> int | None:
        raise NotImplementedError

    def _variance_choice(self) -> Any:
        raise NotImplementedError

    @shared_docs
    @threaded
    def check(self, X: Any = None, y: Any = None, *, sample_weight: Any = None) -> DiagnosticReport:
        """Diagnostics: calibration of the intervals, and adequacy of the fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), optional
            Held-out points, for an out-of-sample test. Training rows among them, which are found by
            the values of X and y, are predicted leave-one-out. By default each training row is left
            out in turn; the coverage of all rows is then correct by construction, and only that of
            groups of rows is informative.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Observations at these points.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of these observations, as in ``predict_interval``. Training rows have their own.

        Returns
        -------
        report : DiagnosticReport
            Text when printed; with its ``findings``, the worst ``severity``, the table
            ``coverage`` (group, level, n, coverage) and ``to_frame()``. About one in twenty
            correctly specified fits has a finding other than ``"ok"`` by chance.

        Examples
        --------
        {sine_model}
        >>> X_new, y_new, *_ = make_sine(200, random_state=1)
        >>> report = model.check(X_new, y_new)
        >>> report.severity, [one.name for one in report.findings if one.severity != "ok"]
        ('warning', ['members'])
        >>> [(row.level, row.n) for row in report.coverage if row.group == "all"]
        [(0.5, 200), (0.8, 200), (0.9, 200), (0.95, 200)]
        """
        # Imported here, because it loads parts of scikit-learn that a fit does not need.
        from ulmus.diagnostics import diagnostic_report

        check_is_fitted(self)
        names = self._input_names() if hasattr(self, "feature_names_in_") else None
        if X is None and y is None:
            if sample_weight is not None:
                text = "is for new rows; the training rows have the weights of fit"
                remedies = ("give X and y", "omit it")
                raise InputError(
                    Message("unused-weight", text, "sample_weight", suggestions=remedies)
                )
            return diagnostic_report(self.fitted_, names=names)
        if X is None or y is None:
            missing = "X" if X is None else "y"
            raise ValueError(f"check requires both X and y, or neither; {missing} is missing.")
        schema = vars(self).get("columns_")
        if schema is None:
            X, y = checked_table(self, X, y, reset=False)
            require_dense(X, self.device, self.fitted_.ensemble.layer.W)
        else:
            X, y = checked_inputs_and_outputs(encoded_points(schema, X), y)
        outputs = np.ascontiguousarray(y.reshape(len(y), -1).T)
        n_outputs = self.fitted_.ensemble.n_outputs
        if len(outputs) != n_outputs:
            raise ValueError(f"y must have {n_outputs} outputs, as in fit, got {len(outputs)}.")
        weight = sample_weight
        if sample_weight is not None:
            weight = checked_positive_weight(sample_weight, len(y))
        return diagnostic_report(self.fitted_, X, outputs, names=names, weight=weight)

    @shared_docs
    @threaded
    def compress(self) -> Self:
        """Drop the training rows, so that size and cost of predictions do not depend on n_samples.

        Variances are then computed by forms of low rank, where these agree with the exact ones to
        one percent (``variance_tolerance_``), else by exact ones. ``next_points`` requires the
        latter, which ``exact=True`` keeps.

        Returns
        -------
        self : object
            The estimator, without its attributes of length ``n_samples``.

        See Also
        --------
        save : Write the fit, with or without the rows, to a file.

        Examples
        --------
        {sine_model}
        >>> hasattr(model, "leverage_"), hasattr(model.compress(), "leverage_")
        (True, False)
        """
        check_is_fitted(self)
        self.fitted_ = without_rows(self.fitted_)
        return self
