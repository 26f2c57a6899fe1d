"""A single Extreme Learning Machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ulmus.estimators._base import BaseELM
from ulmus.estimators._docstrings import shared_docs


@shared_docs
class ELMRegressor(BaseELM):
    r"""Extreme Learning Machine: ridge regression on random hidden units.

    .. math:: \hat f(x) = \beta_0 + \sum_j \beta_j \, g(w_j'x + b_j)

    Standard errors are conditional on the hidden weights :math:`w_j, b_j`; those of
    :class:`ELMEnsembleRegressor` include the variance due to the weights. Attributes have the
    shapes of an ensemble of M = 1 members.

    Parameters
    ----------
    {n_neurons, alpha, activation, weight_distribution, weight_scale, input_map, expand_inputs}
    {tuning_fraction, fit_intercept, standardize, categorical, missing, na_values}
    {unknown, target_transform, target_range, target_kind, noise}
    hc : {"HC0", "HC2", "HC3", "HC3-exact", "pooled"}, default="HC2"
        Correction of the squared residuals for their leverage, for heteroskedastic noise.
    {noise_variance, exact, random_state, device, dtype, n_jobs, verbose}

    Attributes
    ----------
    {fitted_, alpha_, coef_, intercept_, hidden_weights_, hidden_biases_, input_map_}
    {feature_relevance_, noise_variance_, noise_covariance_, dof_, rank_, undersmoothing_gap_}
    {variance_tolerance_, variance_estimates_, leverage_, loo_residuals_}
    {target_transform_, n_features_in_, feature_names_in_, columns_}

    See Also
    --------
    ELMEnsembleRegressor : Ensemble, with standard errors that include the hidden weights.

    References
    ----------
    F. Guignard, F. Amato and M. Kanevski (2021). Neurocomputing 456, 436-449. Section 2.1.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from ulmus import ELMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ELMRegressor(random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))
    """

    def __init__(
        self,
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
        hc: str = "HC2",
        noise_variance: Any = "pilot",
        exact: bool = False,
        random_state: Any = None,
        device: str | None = None,
        dtype: str = "float64",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
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
        self.hc = hc
        self.noise_variance = noise_variance
        self.exact = exact
        self.random_state = random_state
        self.device = device
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _n_members(self) -> int:
        return 1

    def _variance_choice(self) -> Any:
        return "auto"
