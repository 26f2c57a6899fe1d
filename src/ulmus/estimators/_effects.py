"""Effects about the fitted function: averages, differences, slopes and curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ulmus.effects import estimands as ask
from ulmus.effects import grids
from ulmus.effects.columns import Table, listed
from ulmus.effects.dropped_features import warn_about_left_out
from ulmus.effects.frames import InferenceOptions, framed
from ulmus.effects.inference import answer, centered, ratios
from ulmus.estimators import _parameters as check
from ulmus.estimators._subject import TARGETS, Subject

# Weights whose squares are numbers lie between this and its inverse.
SMALLEST_WEIGHT = 1e-100


class Effects(Subject):
    """Averages, differences, slopes and curves of the function, as frames with error bars."""

    def functional(
        self,
        A: Any,
        X: Any,
        *,
        confidence_level: float = 0.95,
        target: str = "expectation",
        simultaneous: bool = False,
        hypothesis: Any = None,
        adjust: str | None = None,
    ) -> Any:
        r"""Any weighted sums of values of the function, :math:`A f(X)`.

        Parameters
        ----------
        A : array-like or sparse matrix of shape (q, n_samples)
            Weights, one row for each sum. One row may come as a vector.
        X : array-like or data frame of shape (n_samples, n_features)
            Points. A data frame may have further columns.
        confidence_level : float, default=0.95
            Level of the intervals.
        target : {"expectation", "function"}, default="expectation"
            ``"expectation"`` is for :math:`E \hat f`, the mean of this estimator over noise and
            hidden weights: its intervals cover that mean, and leave the estimator's bias out.
            ``"function"`` is for the true function: estimates come from undersmoothed wide
            networks, and intervals are wider (see ``predict_interval``).
        simultaneous : bool, default=False
            Whether the intervals of all rows are to hold together, with the probability
            ``confidence_level``; otherwise each does by itself. The critical value comes from
            20,000 draws with a fixed seed, and beyond the level 0.99975 from Bonferroni's
            inequality; ``frame.attrs["simultaneous"]`` has its Monte-Carlo error.
        hypothesis : "pairwise", "equal" or array-like of shape (r, q), default=None
            Instead of the rows, their differences in pairs, one joint test that all are equal, or
            given combinations. ``frame.attrs["wald"]`` has the joint F-test that all of these are
            zero.
        adjust : "holm" or None, default=None
            Whether p-values are adjusted for their number (Holm, 1979).

        Returns
        -------
        frame : pandas.DataFrame
            One row for each sum, with the columns ``term``, ``contrast``, ``estimate``,
            ``std_error``, ``statistic``, ``p_value`` (of the hypothesis that it is zero),
            ``conf_low`` and ``conf_high``. ``frame.attrs["covariance"]`` is the joint covariance
            of the rows (of at most 500, unless it is needed). With several outputs there is a
            column ``output``, and covariances between outputs are not known (NaN).

        Notes
        -----
        The standard error of a sum is that of the sum, not a sum of standard errors: errors at
        different points are correlated. It holds the noise, the redrawing of the hidden weights,
        and what choosing alpha and the map costs.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> frame = model.functional([[-1.0, 1.0]], [[1.0], [4.0]])  # f(4) - f(1)
        >>> frame[["estimate", "std_error"]].round(1)
           estimate  std_error
        0      -1.5        0.1
        """
        table = self._table(X)
        question = ask.weighted_sums(table, _checked_matrix(A, table.n_rows))
        how = self._how(confidence_level, target, simultaneous, hypothesis, adjust)
        return self._framed(question, how)

    def average(
        self,
        X: Any,
        *,
        by: Any = None,
        weights: Any = None,
        confidence_level: float = 0.95,
        target: str = "expectation",
        simultaneous: bool = False,
        hypothesis: Any = None,
        adjust: str | None = None,
    ) -> Any:
        """Averages of the function over rows, for all of them or for groups.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows to average over. A data frame may have further columns.
        by : str, array-like of shape (n_samples,), list of these or "row", default=None
            Groups: the name of a column of X, an array of labels, several of either, or ``"row"``
            for each row by itself. Labels are taken in the order of the rows, whatever index they
            have. Groups come sorted, those of categories in the order of the categories.
        weights : str or array-like of shape (n_samples,), default=None
            Weights of the rows within their group, or the name of a column that has them.
        confidence_level, target, simultaneous, hypothesis, adjust
            As in ``functional``.

        Returns
        -------
        frame : pandas.DataFrame
            As in ``functional``, with a column for each of ``by``.

        Examples
        --------
        >>> import numpy as np
        >>> from ulmus import ELMEnsembleRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 1, size=(200, 2))
        >>> y = 3 * X[:, 0] + rng.standard_normal(200)
        >>> model = ELMEnsembleRegressor(n_neurons=50, input_map=None, random_state=0).fit(X, y)
        >>> frame = model.average(X, by=X[:, 0] > 0.5)
        >>> list(frame.columns[:4])
        ['term', 'contrast', 'by', 'estimate']
        >>> model.average(X, by=X[:, 0] > 0.5, hypothesis="pairwise").term[0]
        'True - False'
        """
        question = ask.averages(self._table(X), by, weights)
        how = self._how(confidence_level, target, simultaneous, hypothesis, adjust)
        return self._framed(question, how)

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
        simultaneous: bool = False,
        hypothesis: Any = None,
        adjust: str | None = None,
    ) -> Any:
        """How much the function changes when a column does, averaged over rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows whose columns are changed.
        variables : dict, str or list of str
            Columns and what to do with each: ``(10, 20)`` or more values are compared with the
            first, a number is a step from each row's own value, ``"sd"`` a standard deviation
            around it, ``"iqr"`` and ``"minmax"`` go from the first to the third quartile and
            from the smallest to the largest value. A name alone has a step of 1, or all categories
            or truth values. Columns without names are counted from 0.
        by, weights
            As in ``average``.
        comparison : {"difference", "ratio"}, default="difference"
            Ratios of averages have standard errors by the delta method, and are tested against 1.
        confidence_level, target, simultaneous, hypothesis, adjust
            As in ``functional``.

        Returns
        -------
        frame : pandas.DataFrame
            As in ``functional``; ``term`` is the column, ``contrast`` what it was changed to and
            from.

        Notes
        -----
        It is a difference between two predictions. Whether changing the column in the world would
        do the same is not for a regression to say.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> frame = model.compare(X, {0: (1.0, 4.0)})
        >>> frame[["term", "contrast", "estimate", "conf_low", "conf_high"]].round(1)
          term contrast  estimate  conf_low  conf_high
        0   x0    4 - 1      -1.5      -1.7       -1.3
        """
        check.checked_choice("comparison", comparison, ("difference", "ratio"))
        question = ask.comparisons(self._table(X), variables, by, weights, comparison)
        how = self._how(confidence_level, target, simultaneous, hypothesis, adjust)
        if comparison == "difference":
            return self._framed(question, how)
        self._warn_of(question)
        both = answer(self._answering_fit(), question.asked, {}, target, together=True)
        return framed(ratios(both, question.labels), how)

    def slope(
        self,
        X: Any,
        variables: Any = None,
        *,
        by: Any = None,
        weights: Any = None,
        confidence_level: float = 0.95,
        target: str = "expectation",
        simultaneous: bool = False,
        hypothesis: Any = None,
        adjust: str | None = None,
    ) -> Any:
        """Derivatives of the fitted function by columns, averaged over rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows at which the function is differentiated.
        variables : str, int or list of these, default=None
            Columns; all columns of numbers by default.
        by, weights
            As in ``average``; ``by="row"`` has the slopes at each row.
        confidence_level, target, simultaneous, hypothesis, adjust
            As in ``functional``.

        Returns
        -------
        frame : pandas.DataFrame
            As in ``functional``, in units of y for each unit of the column.

        Notes
        -----
        Derivatives are exact, through standardisation, normal scores, the map and the hidden
        units. Indicators of the levels of a column are flat, so that its slope is that of what
        else the layer sees of it; compare its values instead. Behind a map learned from more than
        400 rows, standard errors leave out what choosing the map costs, which counts more for
        slopes than for averages (:doc:`/guide/answers`).

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> frame = model.slope([[1.0], [4.0]], by="row")  # cos(1) and cos(4) in truth
        >>> frame[["row", "estimate", "std_error"]].round(1)
           row  estimate  std_error
        0    0       0.6        0.1
        1    1      -0.6        0.1
        """
        question = ask.derivatives(self._table(X), variables, by, weights)
        how = self._how(confidence_level, target, simultaneous, hypothesis, adjust)
        return self._framed(question, how)

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
        simultaneous: bool = False,
        hypothesis: Any = None,
        adjust: str | None = None,
    ) -> Any:
        """The function along one or two columns, averaged over all rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows to average over.
        features : str, int, or list of one or two of these
            Columns that are set to the values of a grid.
        grid_resolution : int, default=None
            Values of each column, evenly between two quantiles; 50 for one column and 20 for each
            of two by default. A column with fewer values has all of them, as have categories.
        percentiles : tuple of float, default=(0.05, 0.95)
            Shares of the rows below the first and the last value.
        grid : array-like, or list of two, default=None
            Values of your own, for each column.
        kind : {"average", "slope"}, default="average"
            The curve, or its derivative; the latter for one column of numbers.
        centered : bool, default=False
            Whether the mean of the curve is subtracted: its shape has smaller error bars than its
            height.
        weights : str or array-like of shape (n_samples,), default=None
            Weights of the rows.
        confidence_level, target, simultaneous, hypothesis, adjust
            As in ``functional``.

        Returns
        -------
        frame : pandas.DataFrame
            As in ``functional``, with the values of the grid in a column for each of ``features``.

        Notes
        -----
        Estimates are those of ``sklearn.inspection.partial_dependence`` with
        ``method="brute"``, and cost a prediction of all rows for each value of the grid.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> frame = model.partial_dependence(X, 0, grid=[1.0, 4.0], simultaneous=True)
        >>> frame[["x0", "estimate", "conf_low", "conf_high"]].round(1)
            x0  estimate  conf_low  conf_high
        0  1.0       0.8       0.6        0.9
        1  4.0      -0.7      -0.9       -0.6
        """
        check.checked_choice("kind", kind, ("average", "slope"))
        check.checked_flag("centered", centered)
        table = self._table(X)
        names = grids.asked_features(table, features)
        question = self._curve(table, names, grid_resolution, percentiles, grid, kind, weights)
        how = self._how(confidence_level, target, simultaneous, hypothesis, adjust)
        return self._framed(question, how, subtract_mean=centered)

    def _curve(
        self,
        table: Table,
        names: list[str],
        resolution: int | None,
        percentiles: Any,
        grid: Any,
        kind: str,
        weights: Any,
    ) -> ask.Estimand:
        if resolution is None:
            resolution = grids.CURVE if len(names) == 1 else grids.SURFACE
        check.checked_count("grid_resolution", resolution, 2)
        if kind == "slope" and len(names) == 2:
            raise ValueError("kind='slope' is for one of the features; give one column.")
        if kind == "slope":
            ask.require_numeric(table, names[0], "features")
        custom = [grid] if len(names) == 1 else listed(grid)
        if grid is None:
            custom = [None] * len(names)
        elif len(custom) != len(names):
            raise ValueError(f"grid must have values for each of {names}, got {grid!r}.")
        shares = grids.checked_percentiles(percentiles)
        each = [
            grids.grid(table, name, resolution, shares, own)
            for name, own in zip(names, custom, strict=True)
        ]
        return ask.curve(table, names, each, weights, slope=kind == "slope")

    def _how(
        self, level: float, target: str, simultaneous: bool, hypothesis: Any, adjust: Any
    ) -> InferenceOptions:
        """Checked options of an answer."""
        check.checked_choice("target", target, TARGETS)
        check.checked_flag("simultaneous", simultaneous)
        if adjust is not None:
            check.checked_choice("adjust", adjust, ("holm",))
        if np.ndim(level):
            raise ValueError(f"confidence_level must be one number here, got {level!r}.")
        (checked,) = check.checked_levels([level])
        one_output = self._answering_fit().one_output
        return InferenceOptions(checked, target, bool(simultaneous), hypothesis, adjust, one_output)

    def _framed(
        self, question: ask.Estimand, how: InferenceOptions, *, subtract_mean: bool = False
    ) -> Any:
        """A question's answer as a frame."""
        fit, together = self._answering_fit(), how.together or subtract_mean
        self._warn_of(question)
        given = answer(fit, question.asked, question.labels, how.target, together=together)
        return framed(centered(given) if subtract_mean else given, how)

    def _warn_of(self, question: ask.Estimand) -> None:
        """Warn of points far outside, and of columns that the map has left out."""
        self._warn_about(question.asked)
        warn_about_left_out(self._answering_fit(), question)


def _checked_matrix(A: Any, n_rows: int) -> Any:
    """Weights (q, n_rows), dense or sparse."""
    if scipy.sparse.issparse(A):
        A = scipy.sparse.csr_array(A)
    else:
        try:
            A = np.atleast_2d(np.asarray(A, dtype=float))
        except (TypeError, ValueError) as error:
            raise ValueError(f"A must be a matrix of numbers: {error}.") from error
    if A.ndim != 2 or A.shape[1] != n_rows or A.shape[0] == 0:
        raise ValueError(
            f"A must have a column for each of the {n_rows} rows of X, got shape {A.shape}."
        )
    size = np.abs(A.data if scipy.sparse.issparse(A) else A)
    if not np.all(np.isfinite(size)):
        raise ValueError("A holds NaN or infinity; give finite weights.")
    largest = float(np.max(size, initial=0.0))
    if largest and not SMALLEST_WEIGHT < largest < 1 / SMALLEST_WEIGHT:
        raise ValueError(
            f"A reaches {largest:g}, which has no square among the numbers; multiply it by a "
            "factor that brings it near 1."
        )
    return A
