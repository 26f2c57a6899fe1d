"""Answers about the fitted function: averages, differences, slopes, curves and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ulmus.core.backend import namespace
from ulmus.core.fit import Fit
from ulmus.core.functionals import Functionals
from ulmus.estimators import _parameters as check
from ulmus.intervals.standard_errors import joint_variance
from ulmus.questions import functions as ask
from ulmus.questions import grids
from ulmus.questions.answers import answer, centered, ratios
from ulmus.questions.draws import mean_draws, observation_draws
from ulmus.questions.frames import How, framed
from ulmus.questions.probabilities import mean_exceedance, observation_exceedance
from ulmus.questions.tables import PlainTable, Table

TARGETS = ("expectation", "function")
KINDS = ("mean", "observation")
COVARIANCES = ("model", "total", "noise")


class Answers:
    """Questions about the function, each answered with an error bar.

    What they are asked about is a table: rows of the columns that the model was fitted to, perhaps
    with further columns to group by. Subclasses say what its rows are to the fit.
    """

    def _answering_fit(self) -> Fit:
        raise NotImplementedError

    def _table(self, X: Any) -> Table:
        raise NotImplementedError

    def _points_of(self, X: Any) -> Any:
        raise NotImplementedError

    def _warn_about(self, asked: Functionals) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------ functionals

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
            20,000 draws with a fixed seed; ``frame.attrs["simultaneous"]`` has its Monte-Carlo
            error.
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
            for each row by itself.
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
            from the smallest to the largest value. A name alone has a step of 1, or all categories.
            Columns without names are counted from 0.
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
        """
        check.checked_choice("comparison", comparison, ("difference", "ratio"))
        question = ask.comparisons(self._table(X), variables, by, weights, comparison)
        how = self._how(confidence_level, target, simultaneous, hypothesis, adjust)
        if comparison == "difference":
            return self._framed(question, how)
        self._warn_about(question.asked)
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
        else the layer sees of it; compare its values instead. Normal scores have kinks where
        their knots are: there the slope is the mean of both sides.
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
    ) -> ask.Question:
        if resolution is None:
            resolution = grids.CURVE if len(names) == 1 else grids.SURFACE
        check.checked_count("grid_resolution", resolution, 2)
        if kind == "slope" and len(names) == 2:
            raise ValueError("kind='slope' is for one of the features; give one column.")
        if kind == "slope":
            ask.require_numeric(table, names[0], "features")
        custom = [grid] if len(names) == 1 else grid
        if grid is None:
            custom = [None] * len(names)
        elif len(custom) != len(names):
            raise ValueError(f"grid must have values for each of {names}, got {len(custom)} lists.")
        shares = grids.checked_percentiles(percentiles)
        each = [
            grids.grid(table, name, resolution, shares, own)
            for name, own in zip(names, custom, strict=True)
        ]
        return ask.curve(table, names, each, weights, slope=kind == "slope")

    def _how(
        self, level: float, target: str, simultaneous: bool, hypothesis: Any, adjust: Any
    ) -> How:
        """Checked options of an answer."""
        check.checked_choice("target", target, TARGETS)
        check.checked_flag("simultaneous", simultaneous)
        if adjust is not None:
            check.checked_choice("adjust", adjust, ("holm",))
        if np.ndim(level):
            raise ValueError(f"confidence_level must be one number here, got {level!r}.")
        (checked,) = check.checked_levels([level])
        one_output = self._answering_fit().one_output
        return How(checked, target, bool(simultaneous), hypothesis, adjust, one_output)

    def _framed(self, question: ask.Question, how: How, *, subtract_mean: bool = False) -> Any:
        """A question's answer as a frame."""
        fit, together = self._answering_fit(), how.together or subtract_mean
        self._warn_about(question.asked)
        given = answer(fit, question.asked, question.labels, how.target, together=together)
        return framed(centered(given) if subtract_mean else given, how)

    # ------------------------------------------------------------ points together

    def predict_cov(
        self, X: Any, X2: Any = None, *, component: str = "model", estimate: str | None = None
    ) -> Any:
        """Joint covariance of predictions, or of new observations, at points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        X2 : array-like of shape (n_samples_2, n_features), default=None
            Other points: the covariances of those of X with these. With None, of the points of X
            with one another.
        component : {"model", "total", "noise"}, default="model"
            Of the predictions, of new observations (whose noise is independent, and adds to the
            diagonal only), or of their noise.
        estimate : str, default=None
            One of the estimates computed in ``fit``; the first by default.

        Returns
        -------
        covariance : ndarray of shape (n_samples, n_samples_2)
            Symmetric and positive semidefinite if X2 is None; its diagonal is ``predict_var`` of
            the same component. With several outputs, (n_outputs, n_samples, n_samples_2).

        Notes
        -----
        The estimates over distinct pairs of members (BR, S2, S3) are unbiased and need not be
        positive semidefinite. Negative eigenvalues of the correlations are replaced by zero, the
        nearest such matrix, and its diagonal is scaled back to ones; variances stay what they
        are. With X2, this is done for all points together.
        """
        check.checked_choice("component", component, COVARIANCES)
        first = self._points_of(X)
        n, fit = first.shape[0], self._answering_fit()
        second = None if X2 is None else self._points_of(X2)
        shape = (fit.ensemble.n_outputs, n, n if second is None else second.shape[0])
        covariance = np.zeros(shape)
        if component != "noise":
            both = first if second is None else _stacked(first, second)
            covariance = joint_variance(fit, both, estimate)[1]
            covariance = covariance if second is None else covariance[:, :n, n:]
        if component != "model" and second is None:
            covariance[:, np.arange(n), np.arange(n)] += fit.noise_variance(first).T
        return covariance[0] if fit.one_output else covariance

    def exceedance(
        self,
        X: Any,
        threshold: Any,
        *,
        of: str = "observation",
        target: str = "expectation",
    ) -> Any:
        """Probability of lying above a threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        threshold : float or list of float
            Values of y.
        of : {"observation", "mean"}, default="observation"
            A new observation, by ``predict_dist``; or the function itself, by the distribution
            that its confidence intervals have.
        target : {"expectation", "function"}, default="expectation"
            For ``of="mean"``: which function, as in ``functional``.

        Returns
        -------
        probability : ndarray of shape (n_samples,) or (n_samples, n_thresholds)
            With several outputs, their axis comes second.
        """
        check.checked_choice("of", of, KINDS)
        check.checked_choice("target", target, TARGETS)
        thresholds = _checked_thresholds(threshold)
        points, fit = self._points_of(X), self._answering_fit()
        if of == "observation":
            probability = observation_exceedance(fit, points, thresholds)
        else:
            probability = mean_exceedance(fit, points, thresholds, target)
        probability = probability[..., 0] if np.ndim(threshold) == 0 else probability
        return probability[:, 0] if fit.one_output else probability

    def simulate(
        self,
        X: Any,
        n_draws: int,
        *,
        of: str = "mean",
        target: str = "expectation",
        random_state: Any = None,
    ) -> Any:
        """Joint draws of the function, or of new observations, for questions not foreseen here.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        n_draws : int
            Number of draws.
        of : {"mean", "observation"}, default="mean"
            Draws of the function, normal with the covariance of ``predict_cov``: along a line of
            points each is a smooth curve. Or of new observations, each with the distribution of
            ``predict_dist`` at its point and correlated by the error of the function.
        target : {"expectation", "function"}, default="expectation"
            For ``of="mean"``: which function, as in ``functional``.
        random_state : int, Generator or None, default=None
            Seed of the draws.

        Returns
        -------
        draws : ndarray of shape (n_draws, n_samples) or (n_draws, n_samples, n_outputs)
            One draw in each row.
        """
        check.checked_choice("of", of, KINDS)
        check.checked_choice("target", target, TARGETS)
        check.checked_count("n_draws", n_draws)
        points, fit = self._points_of(X), self._answering_fit()
        rng = check.checked_generator(random_state)
        if of == "mean":
            draws = mean_draws(fit, points, n_draws, target, rng)
        else:
            draws = observation_draws(fit, points, n_draws, rng)
        return draws[:, :, 0] if fit.one_output else draws


class OwnAnswers(Answers):
    """Answers of an estimator about tables of its own inputs."""

    fitted_: Any

    def _answering_fit(self) -> Fit:
        return self.fitted_

    def _points_of(self, X: Any) -> Any:
        return self._checked_points(X)  # type: ignore[attr-defined]

    def _table(self, X: Any) -> Table:
        names = getattr(self, "feature_names_in_", None)
        inputs = X
        if names is not None and hasattr(X, "columns") and set(names) <= set(X.columns):
            inputs = X[list(names)]
        points = self._valid_points(inputs)  # type: ignore[attr-defined]
        if names is None:
            names = [f"x{j}" for j in range(points.shape[1])]
        return PlainTable(X, points, tuple(map(str, names)))

    def _warn_about(self, asked: Functionals) -> None:
        layer = self.fitted_.ensemble.layer
        blocks = (
            piece.points(rows)
            for piece in asked.pieces
            for rows, _ in piece.blocks(slice(0, asked.count), layer)
        )
        self._warn_outside(blocks)  # type: ignore[attr-defined]


def _checked_matrix(A: Any, n_rows: int) -> Any:
    """Weights (q, n_rows), dense or sparse."""
    if not scipy.sparse.issparse(A):
        try:
            A = np.atleast_2d(np.asarray(A, dtype=float))
        except (TypeError, ValueError) as error:
            raise ValueError(f"A must be a matrix of numbers: {error}.") from error
    if A.ndim != 2 or A.shape[1] != n_rows or A.shape[0] == 0:
        raise ValueError(
            f"A must have a column for each of the {n_rows} rows of X, got shape {A.shape}."
        )
    if not np.all(np.isfinite(A.data if scipy.sparse.issparse(A) else A)):
        raise ValueError("A holds NaN or infinity; give finite weights.")
    return A


def _checked_thresholds(threshold: Any) -> list[float]:
    try:
        values = np.atleast_1d(np.asarray(threshold, dtype=float))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or len(values) == 0 or np.any(np.isnan(values)):
        raise ValueError(f"threshold must be a number or a list of numbers, got {threshold!r}.")
    return values.tolist()


def _stacked(first: Any, second: Any) -> Any:
    if scipy.sparse.issparse(first) or scipy.sparse.issparse(second):
        return scipy.sparse.vstack([first, second], format="csr")
    return namespace(first, second).concat([first, second])
