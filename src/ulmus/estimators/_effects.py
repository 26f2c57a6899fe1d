"""Effects: averages, contrasts, slopes and curves of the fitted function."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ulmus.effects import estimands, grids
from ulmus.effects.dropped_features import dropped_changes
from ulmus.effects.frames import InferenceOptions, effects_frame
from ulmus.effects.response_scale import estimated
from ulmus.estimators import _parameters as check
from ulmus.estimators._docstrings import shared_docs
from ulmus.estimators._inference_source import InferenceSource
from ulmus.estimators._threads import threaded
from ulmus.exceptions import InputError
from ulmus.intervals.confidence import TARGETS
from ulmus.messages import Message, Setting, invalid

# Weights between this and its inverse have squares that do not overflow.
SMALLEST_WEIGHT = 1e-100


class Effects(InferenceSource):
    """Effects of a fit as data frames with standard errors, tests and intervals."""

    @shared_docs
    @threaded
    def functional(
        self,
        A: Any,
        X: Any,
        *,
        confidence_level: float = 0.95,
        target: str = "expectation",
        scale: str = "response",
        simultaneous: bool = False,
        hypothesis: Any = None,
        adjust: str | None = None,
    ) -> Any:
        r"""Linear combinations of values of the function, :math:`A f(X)`.

        Parameters
        ----------
        A : array-like or sparse matrix of shape (q, n_samples)
            Weights, one row for each combination, or a vector for one.
        X : array-like or data frame of shape (n_samples, n_features)
            Points. A data frame may have further columns.
        {confidence_level, target, scale, simultaneous, hypothesis, adjust}

        Returns
        -------
        {frame}

        Notes
        -----
        The standard error accounts for the correlation of the errors at different points. It
        includes the noise, the random hidden weights, and the selection of alpha and of the map.
        Where y is transformed or counted, f is the mean of y, and standard errors are computed by
        the delta method. They include the error of the estimated distribution of the noise, but
        not that of a model of its variance.

        Examples
        --------
        {sine_model}
        >>> frame = model.functional([[-1.0, 1.0]], [[1.0], [4.0]])  # f(4) - f(1)
        >>> frame[["estimate", "std_error"]].round(1)
           estimate  std_error
        0      -1.5        0.1
        """
        table = self._table(X)
        estimand = estimands.weighted_sums(table, _checked_weights(A, table.n_rows))
        how = confidence_level, target, scale, simultaneous, hypothesis, adjust
        return self._frame(estimand, *how)

    @shared_docs
    @threaded
    def average(
        self,
        X: Any,
        *,
        by: Any = None,
        weights: Any = None,
        confidence_level: float = 0.95,
        target: str = "expectation",
        scale: str = "response",
        simultaneous: bool = False,
        hypothesis: Any = None,
        adjust: str | None = None,
    ) -> Any:
        r"""Average of the function over rows or groups of rows (marginal means).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows to average over. A data frame may have further columns.
        {by, weights, confidence_level, target, scale, simultaneous, hypothesis, adjust}

        Returns
        -------
        {frame}

        Examples
        --------
        {sine_model}
        >>> model.average(X, by=X[:, 0] > 3)[["by", "estimate", "std_error"]].round(2)
              by  estimate  std_error
        0  False      0.61       0.04
        1   True     -0.45       0.05
        >>> model.average(X, by=X[:, 0] > 3, hypothesis="pairwise").term[0]
        'True - False'
        """
        estimand = estimands.averages(self._table(X), by, weights)
        how = confidence_level, target, scale, simultaneous, hypothesis, adjust
        return self._frame(estimand, *how)

    @shared_docs
    @threaded
    def compare(
        self,
        X: Any,
        variables: Any,
        *,
        by: Any = None,
        weights: Any = None,
        comparison: str = "difference",
        confidence_level: float = 0.95,
        target: str = "expectation",
        scale: str = "response",
        simultaneous: bool = False,
        hypothesis: Any = None,
        adjust: str | None = None,
    ) -> Any:
        r"""Contrasts: the change of the function between values of a column, averaged over rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows whose columns are changed.
        variables : dict, str or list of str
            Columns and the contrast of each: ``(10, 20)`` or more values are compared with the
            first; a number is a step from each row's own value; ``"sd"`` is one standard
            deviation, centred at it; ``"iqr"`` and ``"minmax"`` compare the quartiles and the
            extremes. For a name alone, the contrast is a step of 1, or between all categories or
            booleans. Columns without names are numbered from 0.
        {by, weights}
        comparison : {"difference", "ratio"}, default="difference"
            Ratios of averages have standard errors by the delta method, and are tested against 1.
        {confidence_level, target, scale, simultaneous, hypothesis, adjust}

        Returns
        -------
        {frame}

        Notes
        -----
        A contrast compares two predictions. It is the effect of an intervention only under the
        usual assumptions of causal inference. With ``target_transform="log"`` and constant noise,
        the ratio of the means of a single row is the exponential function of the difference on
        the link scale, whatever the distribution of the noise.

        Examples
        --------
        {sine_model}
        >>> frame = model.compare(X, {0: (1.0, 4.0)})
        >>> frame[["term", "contrast", "estimate", "conf_low", "conf_high"]].round(1)
          term contrast  estimate  conf_low  conf_high
        0   x0    4 - 1      -1.5      -1.7       -1.3
        """
        check.checked_choice("comparison", comparison, ("difference", "ratio"))
        if comparison == "ratio" and scale == "link" and self._inference_fit().response is not None:
            text = "divides values of the link scale; a difference of logarithms is that of a ratio"
            remedies = Setting("comparison", "difference"), Setting("scale", "response")
            raise InputError(Message("link-ratio", text, "comparison", comparison, remedies))
        estimand = estimands.comparisons(self._table(X), variables, by, weights, comparison)
        how = confidence_level, target, scale, simultaneous, hypothesis, adjust
        return self._frame(estimand, *how)

    @shared_docs
    @threaded
    def slope(
        self,
        X: Any,
        variables: Any = None,
        *,
        by: Any = None,
        weights: Any = None,
        confidence_level: float = 0.95,
        target: str = "expectation",
        scale: str = "response",
        simultaneous: bool = False,
        hypothesis: Any = None,
        adjust: str | None = None,
    ) -> Any:
        r"""Partial derivatives of the function by columns, averaged over rows (marginal effects).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows at which the function is differentiated.
        variables : str, int or list of these, default=None
            Columns; all numeric columns by default.
        {by, weights, confidence_level, target, scale, simultaneous, hypothesis, adjust}

        Returns
        -------
        {frame}

        Notes
        -----
        Derivatives are exact, through standardisation, normal scores, the map and the hidden
        units, in units of y per unit of the column. Those of the mean of a transformed y include
        the change of the noise, if its variance is modelled. One-hot indicators are constant
        between their values and do not contribute; use ``compare`` for such columns. With a map
        learned from more than 400 rows, standard errors exclude the variance of the map, which is
        larger for slopes than for averages (:doc:`/guide/effects`).

        Examples
        --------
        {sine_model}
        >>> frame = model.slope([[1.0], [4.0]], by="row")  # true values: cos(1) and cos(4)
        >>> frame[["row", "estimate", "std_error"]].round(1)
           row  estimate  std_error
        0    0       0.6        0.1
        1    1      -0.6        0.1
        """
        estimand = estimands.derivatives(self._table(X), variables, by, weights)
        how = confidence_level, target, scale, simultaneous, hypothesis, adjust
        return self._frame(estimand, *how)

    @shared_docs
    @threaded
    def partial_dependence(
        self,
        X: Any,
        features: Any,
        *,
        grid_resolution: int | None = None,
        percentiles: Any = (0.05, 0.95),
        grid: Any = None,
        kind: str = "average",
        centered: bool = False,
        weights: Any = None,
        confidence_level: float = 0.95,
        target: str = "expectation",
        scale: str = "response",
        simultaneous: bool = False,
        hypothesis: Any = None,
        adjust: str | None = None,
    ) -> Any:
        r"""Partial dependence: the function of one or two columns, averaged over all rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows to average over.
        features : str, int, or list of one or two of these
            Columns that are set to the values of a grid.
        grid_resolution : int, default=None
            Number of values of each column, evenly spaced between two quantiles; 50 for one
            column and 20 for each of two by default. The grid of a column with fewer values, or
            of categories, contains all of them.
        percentiles : tuple of float, default=(0.05, 0.95)
            Levels of the two quantiles.
        grid : array-like, or list of two, default=None
            Values of each column, instead of the default grid.
        kind : {"average", "slope"}, default="average"
            The curve, or its derivative by one numeric column.
        centered : bool, default=False
            Whether to subtract the mean of the curve; standard errors are then smaller.
        {weights, confidence_level, target, scale, simultaneous, hypothesis, adjust}

        Returns
        -------
        {frame}

        Notes
        -----
        Estimates agree with ``sklearn.inspection.partial_dependence`` and ``method="brute"``, at
        the cost of a prediction of all rows for each value of the grid.

        Examples
        --------
        {sine_model}
        >>> frame = model.partial_dependence(X, 0, grid=[1.0, 4.0], simultaneous=True)
        >>> frame[["x0", "estimate", "conf_low", "conf_high"]].round(1)
            x0  estimate  conf_low  conf_high
        0  1.0       0.8       0.6        0.9
        1  4.0      -0.7      -0.9       -0.6
        """
        check.checked_choice("kind", kind, ("average", "slope"))
        check.checked_flag("centered", centered)
        if grid_resolution is not None:
            check.checked_count("grid_resolution", grid_resolution, 2)
        table = self._table(X)
        names = grids.curve_features(table, features)
        slope = kind == "slope"
        if slope and len(names) == 2:
            text = "requires a single feature"
            raise InputError(Message("slope-of-surface", text, "kind", kind, ("give one column",)))
        nodes = grids.curve_grids(table, names, grid_resolution, percentiles, grid)
        estimand = estimands.curve(
            table, names, nodes, weights, slope=slope, subtract_mean=centered
        )
        how = confidence_level, target, scale, simultaneous, hypothesis, adjust
        return self._frame(estimand, *how)

    def _frame(
        self,
        estimand: estimands.Estimand,
        level: float,
        target: str,
        scale: str,
        simultaneous: bool,
        hypothesis: Any,
        adjust: str | None,
    ) -> Any:
        """Estimates of an estimand as a data frame with intervals and tests."""
        check.checked_choice("target", target, TARGETS)
        check.checked_flag("simultaneous", simultaneous)
        if adjust is not None:
            check.checked_choice("adjust", adjust, ("holm",))
        if np.ndim(level):
            raise InputError(invalid("confidence_level", "must be one number here", level))
        check.checked_levels([level])
        fit, transform = check.fit_on_scale(self._inference_fit(), scale), estimand.transform
        options = InferenceOptions(
            float(level), target, bool(simultaneous), hypothesis, adjust, fit.one_output, scale
        )
        self._warn_about_points(estimand.functionals)
        dropped = dropped_changes(fit, estimand)
        joint = options.needs_joint or transform is not None
        estimates = estimated(fit, estimand, target, dropped, joint=joint)
        return effects_frame(transform(estimates) if transform else estimates, options)


def _checked_weights(A: Any, n_rows: int) -> Any:
    """Weights (q, n_rows), dense or sparse."""
    is_sparse = scipy.sparse.issparse(A)
    try:
        A = scipy.sparse.csr_array(A) if is_sparse else np.atleast_2d(np.asarray(A, dtype=float))
    except (TypeError, ValueError) as error:
        raise _weights_error(f"must be a matrix of numbers: {error}") from error
    if A.ndim != 2 or A.shape[1] != n_rows or A.shape[0] == 0:
        text = f"must have a column for each of the {n_rows} rows of X, got shape {A.shape}"
        raise _weights_error(text)
    size = np.abs(A.data if is_sparse else A)
    if not np.all(np.isfinite(size)):
        raise _weights_error("contains NaN or infinity", "give finite weights")
    largest = float(np.max(size, initial=0.0))
    if largest and not SMALLEST_WEIGHT < largest < 1 / SMALLEST_WEIGHT:
        problem = "overflows" if largest > 1 else "underflows"
        text = f"contains {largest:g}, whose square {problem} float64"
        raise _weights_error(text, "multiply A by a factor that brings it near 1")
    return A


def _weights_error(text: str, *suggestions: str) -> InputError:
    return InputError(Message("functional-weights", text, "A", suggestions=suggestions))
