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
        Weighted mean and standard deviation of the target, as it was given; not weighted for
        counts and point masses. None for a stream whose target is transformed.
    n_estimators, n_neurons : int
        Members, and hidden units of each.
    activation : str
        Activation function of the hidden units.
    input_map : str or None
        Type of the input map: ``"ard"``, ``"full"``, ``"common"``, ``"given"``.
    alpha, dof : float or tuple of float
        Ridge parameter, and effective degrees of freedom.
    noise_sd : float, tuple of float or None
        Standard deviation of the noise of an observation of mean weight, on the scale
        ``noise_scale``; beside a point mass, that of the other values at the mean prediction. None
        for counts, whose variance follows from their mean.
    noise_sd_interval : (float, float), tuple of these, or None
        Its 95 % confidence interval for normal errors; None if the noise variance was given, and
        for counts and point masses.
    noise_modelled : bool or tuple of bool
        Whether it is a function of the inputs.
    noise_range : (float, float), tuple of these and None, or None
        Its range over the training rows that are kept, if it is a function of the inputs or their
        weights differ.
    mean_weight : float or None
        The mean weight, where the weights of the training rows differ by more than a factor of 1.5.
    noise_share : float, tuple of float or None
        Share of the noise in the variance of the target, on the scale ``noise_scale``; None for
        counts and point masses.
    noise_covariance : str, tuple of str or None
        Estimated covariance of correlated noise in a phrase.
    relevance : tuple of FeatureRelevance
        In decreasing order; empty without a learned input map.
    rmse, rmse_of_mean, r2 : float, tuple of float or None
        Leave-one-out error of the model, that of the mean, and coefficient of determination, for
        the target as it was given.
    noise_share_of_error : NoiseShare, tuple of these, or None
        Estimated noise variance over the mean squared leave-one-out error, on the scale
        ``noise_scale``; None for counts and point masses.
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
    target_transform : str or tuple of str
        Transformation of the target or distribution of counts, as the attribute
        ``target_transform_``.
    fitted_target : str, tuple of str, or None
        What was fitted, in words, such as ``"log(y)"``; None for y itself.
    target_gain : (float, float), tuple of these and None, or None
        Gain of the chosen transformation in leave-one-out log density, per row and over y itself,
        and its standard error; None if it was not chosen by ``target_transform="auto"``.
    noise_scale : str, tuple of str and None, or None
        Scale of ``noise_sd``, such as ``"log"``; None for that of y.
    dispersion, extra_zeros : float, tuple of float and None, or None
        Of counts with mean m: their variance is m plus the dispersion times the square of m, but
        for extra zeros, whose probability is that at the mean prediction. None for other targets.
    point_mass : float, tuple of float and None, or None
        Share of the rows whose target equals its lower bound, where that is a point mass; for a
        stream its probability at the mean prediction.
    coverage_at_least : bool, tuple of bool, or None
        Whether intervals cover more than their level, because values such as zero have a positive
        probability; None for y itself.

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
    target_transform: Any = "identity"
    fitted_target: Any = None
    target_gain: Any = None
    noise_scale: Any = None
    dispersion: Any = None
    extra_zeros: Any = None
    point_mass: Any = None
    coverage_at_least: Any = None

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
