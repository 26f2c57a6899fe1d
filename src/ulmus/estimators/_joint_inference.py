"""Joint inference at points: covariances, exceedance, simulation and sequential design."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import is_foreign, namespace, to_numpy
from ulmus.effects.frames import design_frame
from ulmus.effects.response_scale import response_covariance, response_design, response_noise
from ulmus.effects.simulation import (
    mean_draws,
    mean_exceedance,
    observation_draws,
    observation_exceedance,
)
from ulmus.estimators import _parameters as check
from ulmus.estimators._docstrings import shared_docs
from ulmus.estimators._inference_source import InferenceSource
from ulmus.estimators._threads import threaded
from ulmus.estimators._weights import observation_weight, refuse_weight
from ulmus.exceptions import InputError, UlmusWarning, warn
from ulmus.intervals.confidence import TARGETS
from ulmus.messages import Message, Setting, invalid

SIMULATED = ("mean", "observation")


class JointInference(InferenceSource):
    """Joint covariances, exceedance probabilities, draws and new design points."""

    @shared_docs
    @threaded
    def predict_cov(
        self,
        X: Any,
        X2: Any = None,
        *,
        component: str = "model",
        estimate: str | None = None,
        scale: str = "response",
        sample_weight: Any = None,
    ) -> Any:
        """Joint covariance of predictions, or of new observations.

        Parameters
        ----------
        {X}
        X2 : array-like of shape (n_samples_2, n_features), default=None
            Other points, for covariances between those of X and these.
        component : {"model", "total", "noise"}, default="model"
            Covariance of the predictions, of new observations (whose noise is independent, and
            adds to the diagonal only), or of their noise.
        {estimate, scale, sample_weight}

        Returns
        -------
        covariance : ndarray of shape (n_samples, n_samples_2)
            Symmetric and positive semidefinite if X2 is None; its diagonal is ``predict_var`` of
            the same component. With several outputs, (n_outputs, n_samples, n_samples_2).

        Notes
        -----
        The estimates over distinct pairs of members (BR, BM, S2, S3, BD) are unbiased and need
        not be positive semidefinite. Negative eigenvalues of the correlation matrix are replaced
        by zero and its diagonal is rescaled to one; variances do not change. With X2, this is done
        for the points of X and X2 jointly. The covariance of means of a transformed or counted y
        is computed by the delta method.

        Examples
        --------
        >>> import numpy as np
        {sine_model}
        >>> covariance = model.predict_cov([[1.0], [1.1], [4.0]])
        >>> sd = np.sqrt(np.diag(covariance))
        >>> (covariance / np.outer(sd, sd)).round(1) + 0.0  # errors of neighbours are correlated
        array([[1., 1., 0.],
               [1., 1., 0.],
               [0., 0., 1.]])
        """
        check.checked_choice("component", component, ("model", "total", "noise"))
        first = self._table_points(X)
        n, fit = first.shape[0], check.fit_on_scale(self._inference_fit(), scale)
        name = check.checked_estimate(estimate, fit)
        second = None if X2 is None else self._table_points(X2)
        n_second = n if second is None else second.shape[0]
        covariance = np.zeros((fit.ensemble.n_outputs, n, n_second))
        weight = None
        if component != "model" and second is None:
            weight = observation_weight(fit, n, sample_weight)
        if component != "noise":
            both = first if second is None else _stacked(first, second)
            covariance = response_covariance(fit, both, name, weight)[:, :n, -n_second:]
        if component != "model" and second is None:
            covariance[:, np.arange(n), np.arange(n)] += response_noise(fit, first, weight).T
        return covariance[0] if fit.one_output else covariance

    @shared_docs
    @threaded
    def exceedance(
        self,
        X: Any,
        threshold: Any,
        *,
        of: str = "observation",
        target: str = "expectation",
        sample_weight: Any = None,
    ) -> Any:
        r"""Probability of exceeding a threshold.

        Parameters
        ----------
        {X}
        threshold : float or list of float
            Values of y.
        of : {"observation", "mean"}, default="observation"
            A new observation, by ``predict_dist``; or the function itself, by its confidence
            distribution. Where y is transformed or counted, the function is the mean of y.
        target : {"expectation", "function"}, default="expectation"
            Quantity for ``of="mean"``, as in ``functional``.
        {sample_weight}

        Returns
        -------
        probability : ndarray of shape (n_samples,) or (n_samples, n_thresholds)
            With several outputs, their axis is the second.

        Examples
        --------
        {sine_model}
        >>> model.exceedance([[1.0], [4.0]], 0.5).round(1)  # of a new observation
        array([0.8, 0. ])
        """
        check.checked_choice("of", of, SIMULATED)
        check.checked_choice("target", target, TARGETS)
        thresholds = _checked_thresholds(threshold)
        points, fit = self._table_points(X), self._inference_fit()
        if of == "observation":
            weight = observation_weight(fit, points.shape[0], sample_weight)
            probability = observation_exceedance(fit, points, thresholds, weight)
        else:
            refuse_weight(sample_weight, "of", of, "observation")
            probability = mean_exceedance(fit, points, thresholds, target)
        probability = probability[..., 0] if np.ndim(threshold) == 0 else probability
        return probability[:, 0] if fit.one_output else probability

    @shared_docs
    @threaded
    def simulate(
        self,
        X: Any,
        n_draws: int,
        *,
        of: str = "mean",
        target: str = "expectation",
        sample_weight: Any = None,
        random_state: Any = None,
    ) -> Any:
        r"""Joint draws of the function, or of new observations, for any other functional.

        Parameters
        ----------
        {X}
        n_draws : int
            Number of draws.
        of : {"mean", "observation"}, default="mean"
            The function, from a normal distribution with the covariance of ``predict_cov``; or
            new observations, each from the distribution of ``predict_dist`` at its point, and
            correlated by the error of the function. Where y is transformed or counted, means of y
            are those of normal draws on the link scale, and stay in the range of y.
        target : {"expectation", "function"}, default="expectation"
            Quantity for ``of="mean"``, as in ``functional``.
        {sample_weight}
        random_state : int, Generator or None, default=None
            Seed of the draws.

        Returns
        -------
        draws : ndarray of shape (n_draws, n_samples) or (n_draws, n_samples, n_outputs)
            One draw per row.

        Examples
        --------
        {sine_model}
        >>> curves = model.simulate([[1.0], [2.5], [4.0]], 1000, random_state=0)
        >>> (curves[:, 0] > curves[:, 1]).mean() > 0.9  # probability that f(1) > f(2.5)
        np.True_
        """
        check.checked_choice("of", of, SIMULATED)
        check.checked_choice("target", target, TARGETS)
        check.checked_count("n_draws", n_draws)
        points, fit = self._table_points(X), self._inference_fit()
        rng = check.checked_generator(random_state)
        if of == "mean":
            refuse_weight(sample_weight, "of", of, "observation")
            draws = mean_draws(fit, points, n_draws, target, rng)
        else:
            weight = observation_weight(fit, points.shape[0], sample_weight)
            draws = observation_draws(fit, points, n_draws, rng, weight)
        return draws[:, :, 0] if fit.one_output else draws

    @shared_docs
    @threaded
    def next_points(self, candidates: Any, *, targets: Any = None, n: int = 1) -> Any:
        """Sequential design: the points that reduce the variance of predictions most.

        Parameters
        ----------
        candidates : array-like of shape (n_candidates, n_features)
            Points that can be measured, also repeatedly.
        targets : array-like of shape (n_targets, n_features), default=None
            Points whose predictions matter; the candidates by default. Repeated points count
            repeatedly.
        n : int, default=1
            Number of measurements, chosen greedily.

        Returns
        -------
        frame : pandas.DataFrame
            One row for each measurement: ``step``, ``row`` (label or number of the candidate), its
            features, and ``variance``, the remaining sum over the targets of the variance of the
            prediction. ``frame.attrs["before"]`` is the current sum. With several outputs, each
            has its own sum and is weighted by the inverse of its current sum.

        Notes
        -----
        Variances are those of a refit with the new rows and the same hidden weights, ridge
        parameter and noise variance, computed by rank-one updates. The noise of new measurements
        is assumed to be independent of that of the training rows. A measurement that would increase
        the sum is listed, with a warning, and not used: with a fixed ridge parameter, shrinkage
        decreases with the number of rows. Where y is transformed or counted, variances are those of
        the means of y; a new count has the weight of its predicted mean.

        Examples
        --------
        {sine_model}
        >>> model.next_points([[0.5], [3.0], [6.0]], n=2)[["step", "row", "x0"]]
           step  row   x0
        0     1    2  6.0
        1     2    2  6.0
        """
        check.checked_count("n", n)
        table = self._table(candidates)
        from_table = table.points(slice(0, table.n_rows), {})
        points = from_table if targets is None else self._table_points(targets)
        design = response_design(self._inference_fit(), from_table, points, n)
        if not np.all(design.improved):
            text = (
                f"no candidate after the first {int(np.sum(design.improved))} measurements reduces "
                "the variance at the targets, so that further ones are not used"
            )
            remedies = "give other candidates", Setting("alpha", phrase="use a smaller {}")
            warn(Message("no-better-point", text, suggestions=remedies), UlmusWarning)
        return design_frame(design, table)


def _checked_thresholds(threshold: Any) -> list[float]:
    try:
        values = np.atleast_1d(np.asarray(threshold, dtype=float))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or len(values) == 0 or np.any(np.isnan(values)):
        raise InputError(invalid("threshold", "must be a number or a list of numbers", threshold))
    return values.tolist()


def _stacked(first: Any, second: Any) -> Any:
    if scipy.sparse.issparse(first) or scipy.sparse.issparse(second):
        return scipy.sparse.vstack([first, second], format="csr")
    if is_foreign(first) != is_foreign(second):
        first, second = to_numpy(first), to_numpy(second)
    return namespace(first, second).concat([first, second])
