"""The fields of a summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ulmus.diagnostics.finding import Finding
from ulmus.diagnostics.summary_text import summary_html, summary_text
from ulmus.messages import Dialect, Message, python


class FeatureRelevance(NamedTuple):
    """Share of an input in the prediction.

    Parameters
    ----------
    name : str
        Name of the input.
    share : float
        Its share; the shares of all inputs sum to one.
    sd : float
        Standard deviation of the share.

    Examples
    --------
    >>> from ulmus.diagnostics import FeatureRelevance
    >>> rain = FeatureRelevance("rain", share=0.4, sd=0.05)
    >>> f"{rain.name}: {rain.share:.0%}"
    'rain: 40%'
    """

    name: str
    share: float
    sd: float


class VarianceShares(NamedTuple):
    """Components of the variance of a prediction, as shares that sum to one.

    Parameters
    ----------
    data : float
        Noise of the training rows, common to all members.
    members : float
        Random hidden weights; inversely proportional to the number of members.
    choices : float
        Selection of alpha and the input map.

    Examples
    --------
    >>> from ulmus.diagnostics import VarianceShares
    >>> shares = VarianceShares(data=0.5, members=0.25, choices=0.25)
    >>> shares.members, sum(shares)
    (0.25, 1.0)
    """

    data: float
    members: float
    choices: float


class NoiseShare(NamedTuple):
    """Estimated noise variance over the mean squared leave-one-out error, at most one.

    Parameters
    ----------
    share : float
        The estimate. Misfit is part of it where the model does not follow the function.
    low, high : float
        95 % confidence interval, from the residual degrees of freedom.

    Examples
    --------
    >>> from ulmus.diagnostics import NoiseShare
    >>> noise = NoiseShare(0.9, low=0.7, high=1.0)
    >>> f"{noise.share:.0%}"
    '90%'
    """

    share: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Summary:
    """A summary of a fit, as returned by :meth:`ulmus.ELMEnsembleRegressor.summary`.

    Fields of the target, the ridge, the noise and the leave-one-out errors are one value, or a
    tuple with one for each output if y had several. What was not computed is None.

    Parameters
    ----------
    title : str
        Title of the summary.
    n_rows, n_features : int
        Rows of positive weight, and inputs.
    n_outputs : int or None
        Number of outputs; None if y had one axis.
    target_mean, target_sd : float, tuple of float or None
        Weighted mean and standard deviation of the target.
    n_estimators, n_neurons : int
        Members, and hidden units of each.
    activation : str
        Activation function of the hidden units.
    input_map : str or None
        Type of the input map: ``"ard"``, ``"full"``, ``"common"``, ``"given"``.
    alpha, dof : float or tuple of float
        Ridge parameter, and effective degrees of freedom.
    noise_sd : float or tuple of float
        Standard deviation of the noise of an observation of mean weight.
    noise_sd_interval : (float, float), tuple of these, or None
        Its 95 % confidence interval for normal errors; None if the noise variance was given.
    noise_modelled : bool or tuple of bool
        Whether it is a function of the inputs.
    noise_range : (float, float), tuple of these and None, or None
        Its range over the training rows that are kept, if it is a function of the inputs or their
        weights differ.
    mean_weight : float or None
        The mean weight, where the weights of the training rows differ by more than a factor of 1.5.
    noise_share : float, tuple of float or None
        Share of the noise in the variance of the target.
    noise_covariance : str, tuple of str or None
        Estimated covariance of correlated noise in a phrase.
    relevance : tuple of FeatureRelevance
        In decreasing order; empty without a learned input map.
    rmse, rmse_of_mean, r2 : float, tuple of float or None
        Leave-one-out error of the model, that of the mean, and coefficient of determination.
    noise_share_of_error : NoiseShare, tuple of these, or None
        Estimated noise variance over the mean squared leave-one-out error.
    coverage : float, tuple of float or None
        Coverage of the prediction intervals of the training rows, leave-one-out.
    coverage_level : float
        Level of these intervals.
    variance_shares : VarianceShares, tuple of these or None
        Components of the variance of predictions, mean over training rows.
    variance_rank : int or None
        Rank of the forms that standard errors are computed from; None for exact ones.
    variance_tolerance : float or None
        Largest relative error of a standard error by these forms.
    suggested_n_estimators : int or None
        Members that limit the variance of the random weights to a twentieth of the rest.
    warnings : tuple of Finding or None
        Findings of ``check`` that are not ok; None if it was not run.
    notes : tuple of str
        What was not computed, and why.
    advice : tuple of Message
        Suggestions that follow from the numbers.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> summary = model.summary()
    >>> summary.n_rows, summary.n_estimators, summary.noise_modelled
    (60, 5, False)
    >>> print(str(summary).splitlines()[1])
    network        5 members of 20 hidden units (tanh); no input map.
    """

    title: str
    n_rows: int
    n_features: int
    n_outputs: int | None
    target_mean: Any
    target_sd: Any
    n_estimators: int
    n_neurons: int
    activation: str
    input_map: str | None
    alpha: Any
    dof: Any
    noise_sd: Any
    noise_modelled: Any
    noise_range: Any
    noise_share: Any
    noise_sd_interval: Any = None
    mean_weight: float | None = None
    noise_covariance: Any = None
    relevance: tuple[FeatureRelevance, ...] = ()
    rmse: Any = None
    rmse_of_mean: Any = None
    r2: Any = None
    noise_share_of_error: Any = None
    coverage: Any = None
    coverage_level: float = 0.95
    variance_shares: Any = None
    variance_rank: int | None = None
    variance_tolerance: float | None = None
    suggested_n_estimators: int | None = None
    warnings: tuple[Finding, ...] | None = None
    notes: tuple[str, ...] = ()
    advice: tuple[Message, ...] = ()

    def to_dict(self, dialect: Dialect = python) -> dict[str, Any]:
        """The fields as JSON values; numbers that are not finite are None.

        Parameters
        ----------
        dialect : callable, default=ulmus.messages.python
            Renders the parameters of suggestions.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.warnings is not None:
            values["warnings"] = [one.to_dict(dialect) for one in self.warnings]
        values["advice"] = [one.render(dialect) for one in self.advice]
        return _plain(values)

    def format(self, dialect: Dialect = python, next_steps: Sequence[str] | None = None) -> str:
        """The summary as text: an aligned entry for each label.

        Parameters
        ----------
        dialect : callable, default=ulmus.messages.python
            Renders the parameters of suggestions.
        next_steps : sequence of str, optional
            Last lines; by default methods of the estimator to call next.
        """
        return summary_text(self, dialect, next_steps)

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """A plain table for notebooks."""
        return summary_html(self)


def _plain(value: Any) -> Any:
    """Lists and dicts of plain values."""
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
