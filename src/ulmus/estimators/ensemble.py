"""Ensemble of Extreme Learning Machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ulmus.core.fit.fit import Fit
from ulmus.core.variance.estimates import (
    MemberCorrelation,
    VarianceComponents,
    components,
    correlation,
    sufficient_members,
    variance_at,
)
from ulmus.estimators import _parameters as check
from ulmus.estimators._base import BaseELM
from ulmus.estimators._docstrings import shared_docs
from ulmus.estimators._threads import threaded
from ulmus.exceptions import DegenerateFitWarning, InputError, warn
from ulmus.messages import Message, Setting, invalid


@shared_docs
class ELMEnsembleRegressor(BaseELM):
    r"""Ensemble of Extreme Learning Machines with standard errors in closed form.

    Each member is a ridge regression on a randomly drawn hidden layer; predictions are averages
    over the members. The variance of a prediction, over the noise and the hidden weights, is
    estimated without refits or resampling:

    .. math:: \widehat{\operatorname{Var}} \hat f(x) = \hat\mu' \hat\Sigma \hat\mu
              + \tfrac{1}{M} \hat\sigma^2_f(x),

    where :math:`\mu` is the mean over members of the smoother row at x, :math:`\Sigma` the noise
    covariance, and :math:`\sigma^2_f(x)` the sample variance of the M member predictions. There are
    estimates for homoskedastic, heteroskedastic and correlated noise, see ``variance``.

    Read more in the :doc:`User Guide </guide/index>`.

    Parameters
    ----------
    n_estimators : int or "auto", default="auto"
        Number of members M. With an integer ``random_state``, a larger ensemble contains the
        members of a smaller one. ``"auto"`` is 6, up to 8 of few hidden units, and down to 3
        where many rows make members expensive; on a GPU, 8.
    {n_neurons, alpha, activation, weight_distribution, weight_scale, input_map, expand_inputs}
    {tuning_fraction, fit_intercept, standardize, categorical, missing, na_values}
    {unknown, target_transform, target_range, target_kind, noise}
    variance : str or list of str, default="auto"
        Estimates of the variance of a prediction to compute: one, a list, or ``"all"`` that the
        noise allows. ``"auto"`` is ``"BR"``, ``"BM"``, ``"S2"`` or ``"BD"``.

        - Homoskedastic noise: ``"NHo"`` (naive) and ``"BR"`` (bias-reduced).
        - Heteroskedastic noise: ``"NHe"`` (naive), ``"S1"``, ``"S2"`` and ``"S3"`` (U-statistics
          over one, two and three distinct members).
        - A model of the noise variance: ``"NM"`` (naive) and ``"BM"`` (bias-reduced), with the
          predicted noise variance of each row. They are ``"NHo"`` and ``"BR"`` where no such model
          is used.
        - Correlated noise of :mod:`ulmus.noise`: ``"ND"`` (naive) and ``"BD"`` (bias-reduced).
          ``"NHo"`` and ``"BR"`` are available for comparison.
    hc : {"HC0", "HC2", "HC3", "HC3-exact", "pooled"}, default="pooled"
        Squared residuals of the heteroskedastic estimates. ``"HC0"`` to ``"HC3"`` are the usual
        corrections of the residuals of each member for their leverage, and ``"HC3-exact"`` is
        the paper's jackknife matrix. Residuals of a single member include errors that average
        out over the ensemble; ``"pooled"`` averages the HC2 residuals of all members before they
        are squared.
    {noise_variance, exact, random_state, device, dtype, n_jobs, verbose}

    Attributes
    ----------
    {fitted_, alpha_, coef_, intercept_, hidden_weights_, hidden_biases_, input_map_}
    {feature_relevance_, noise_variance_, noise_covariance_, dof_, rank_, undersmoothing_gap_}
    {variance_tolerance_, variance_estimates_, leverage_, loo_residuals_}
    {target_transform_, n_features_in_, feature_names_in_, columns_}

    See Also
    --------
    ELMRegressor : A single member.

    References
    ----------
    F. Guignard, F. Amato and M. Kanevski (2021). Uncertainty quantification in extreme learning
    machine: analytical developments, variance estimates and confidence intervals.
    Neurocomputing 456, 436-449. Sections 2 and 3.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(120, random_state=0)
    >>> model = ELMEnsembleRegressor(n_neurons=30, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[1.5], [4.0]], return_std=True)
    >>> mean.round(1)  # true values: sin(1.5) and sin(4)
    array([ 1.1, -0.8])
    >>> standard_error = model.predict_var([[1.5], [4.0]], component="model") ** 0.5
    >>> standard_error < std
    array([ True,  True])
    """

    def __init__(
        self,
        n_estimators: int | str = "auto",
        n_neurons: int | str = "auto",
        *,
        alpha: float | str = "loo",
        activation: str | Callable[[Any], Any] = "tanh",
        weight_distribution: str = "normal",
        weight_scale: Any = "auto",
        input_map: Any = "auto",
        expand_inputs: Any = "auto",
        tuning_fraction: float | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        categorical: Sequence[str] = (),
        missing: str = "impute",
        na_values: Sequence[str] = (),
        unknown: str = "average",
        target_transform: Any = None,
        target_range: Any = None,
        target_kind: str | None = None,
        noise: str = "auto",
        variance: str | Sequence[str] = "auto",
        hc: str = "pooled",
        noise_variance: Any = "pilot",
        exact: bool = False,
        random_state: Any = None,
        device: str | None = None,
        dtype: str = "float64",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.n_neurons = n_neurons
        self.alpha = alpha
        self.activation = activation
        self.weight_distribution = weight_distribution
        self.weight_scale = weight_scale
        self.input_map = input_map
        self.expand_inputs = expand_inputs
        self.tuning_fraction = tuning_fraction
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.categorical = categorical
        self.missing = missing
        self.na_values = na_values
        self.unknown = unknown
        self.target_transform = target_transform
        self.target_range = target_range
        self.target_kind = target_kind
        self.noise = noise
        self.variance = variance
        self.hc = hc
        self.noise_variance = noise_variance
        self.exact = exact
        self.random_state = random_state
        self.device = device
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _n_members(self) -> int | None:
        return check.checked_size("n_estimators", self.n_estimators)

    def _variance_choice(self) -> Any:
        return self.variance

    def _warn_about_fit(self, fit: Fit) -> None:
        super()._warn_about_fit(fit)
        if fit.ensemble.n_members == 1:
            text = (
                "implies a variance given the hidden weights of one member, which excludes the "
                "effect of redrawing them"
            )
            remedy = Setting("n_estimators", phrase="use {} >= 2")
            message = Message("one-member", text, "n_estimators", 1, (remedy,))
            warn(message, DegenerateFitWarning)

    @shared_docs
    @threaded
    def variance_components(self, X: Any, estimate: str | None = None) -> VarianceComponents:
        """Components of the variance of a prediction.

        Parameters
        ----------
        {X, estimate}

        Returns
        -------
        components : VarianceComponents
            Named tuple of arrays ``noise`` (variance of a member due to noise), ``covariance``
            (between members) and ``weights`` (due to the hidden weights). Their sum is the estimate
            over distinct pairs of members, ``"BR"``, ``"BM"``, ``"S2"``, ``"S3"`` or ``"BD"``,
            without the variance of the selected alpha and map. Of a transformed or counted target
            they are on the link scale.

        Examples
        --------
        >>> import numpy as np
        {sine_model}
        >>> noise, covariance, weights = model.variance_components([[1.0], [4.0]])
        >>> bool(np.all(covariance > noise) and np.all(noise > weights))
        True
        """
        X, parts = self._member_parts(X, estimate, "variance_components")
        return VarianceComponents(*(self._output(a, X) for a in components(parts)))

    @shared_docs
    @threaded
    def member_correlation(self, X: Any, estimate: str | None = None) -> MemberCorrelation:
        """Correlation between the predictions of two members, and its upper bound.

        Parameters
        ----------
        {X, estimate}

        Returns
        -------
        correlation : MemberCorrelation
            Named tuple of arrays ``correlation`` and ``bound``, which is attained if noise
            dominates (paper, section 2.5).

        Examples
        --------
        {sine_model}
        >>> correlation, bound = model.member_correlation([[1.0], [4.0]])
        >>> correlation.round(1), bound.round(1)
        (array([0.9, 0.7]), array([0.9, 0.9]))
        """
        X, parts = self._member_parts(X, estimate, "member_correlation")
        return MemberCorrelation(*(self._output(a, X) for a in correlation(parts)))

    @shared_docs
    @threaded
    def variance_at(self, X: Any, n_estimators: int, estimate: str | None = None) -> Any:
        """Variance of the prediction of an ensemble of another size.

        Parameters
        ----------
        {X}
        n_estimators : int
            Number of members.
        {estimate}

        Returns
        -------
        variance : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Estimated variance, without that of the selected alpha and map; of a transformed or
            counted target on the link scale.

        Examples
        --------
        {sine_model}
        >>> share = model.variance_at([[1.0], [4.0]], 50) / model.variance_at([[1.0], [4.0]], 5)
        >>> share.round(2)  # ten times the members: a few percent less
        array([0.98, 0.93])
        """
        n_members = check.checked_count("n_estimators", n_estimators)
        X, parts = self._member_parts(X, estimate, "variance_at")
        return self._output(variance_at(parts, n_members), X)

    @shared_docs
    @threaded
    def suggest_n_estimators(self, X: Any, tolerance: float = 0.05, quantile: float = 0.9) -> int:
        """Number of members beyond which the variance hardly decreases.

        Parameters
        ----------
        {X}
        tolerance : float, default=0.05
            Largest variance due to the hidden weights, relative to the variance of an infinite
            ensemble.
        quantile : float, default=0.9
            Share of the points at which this holds.

        Returns
        -------
        n_estimators : int
            At least 2 and at most 10,000.

        Examples
        --------
        {sine_model}
        >>> 10 < model.suggest_n_estimators(X) < 40
        True
        """
        check.checked_number("tolerance", tolerance, 0.0, strict=True)
        if not 0 <= check.checked_number("quantile", quantile, 0.0) <= 1:
            raise InputError(invalid("quantile", "must lie in [0, 1]", quantile))
        _, parts = self._member_parts(X, None, "suggest_n_estimators")
        return sufficient_members(parts, tolerance, quantile)

    def _member_parts(self, X: Any, estimate: str | None, method: str) -> tuple[Any, Any]:
        X = self._checked_points(X)
        members = self.fitted_.ensemble.n_members
        if members < 2:
            text = f"is too small for {method}, which compares members"
            remedy = Setting("n_estimators", phrase="fit with {} >= 2")
            raise InputError(Message("one-member", text, "n_estimators", members, (remedy,)))
        return X, self.fitted_.parts(X, check.checked_estimate(estimate, self.fitted_))
