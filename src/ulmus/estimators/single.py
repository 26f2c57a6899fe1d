"""One Extreme Learning Machine, with the variance it has given its hidden weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ulmus.estimators._base import BaseELM


class ELMRegressor(BaseELM):
    r"""A single Extreme Learning Machine: ridge regression on random hidden units.

    Its variance is conditional on the hidden weights that were drawn: it leaves out how much
    the prediction would change with other weights. Use :class:`ELMEnsembleRegressor` for error
    bars that include it.

    .. math:: f(x) = \beta_0 + \sum_j \beta_j \, g(w_j'x + b_j)

    Parameters
    ----------
    n_neurons : int or "auto", default="auto"
        Hidden units.
    alpha : float, "loo", "block-loo" or "gcv", default="loo"
        Ridge parameter, or how to choose it; 0 is plain least squares.
    activation : str or callable, default="tanh"
        As in :class:`ELMEnsembleRegressor`.
    weight_distribution : {"uniform", "normal"}, default="normal"
        Distribution of hidden weights.
    weight_scale : "auto", float or array-like of shape (n_features,), default="auto"
        Half width, or standard deviation, of that distribution.
    input_map : None, "ard", "full", "auto" or array of shape (d', d'), default="auto"
        Map of the inputs before the hidden layer, as in :class:`ELMEnsembleRegressor`.
    expand_inputs : None, "normal_scores", "one_hot", list of these or "auto", default="auto"
        Further inputs of the hidden layer, as in :class:`ELMEnsembleRegressor`.
    tuning_fraction : float, default=None
        Share of the rows that a map is learned from, drawn at random. The others then never saw
        it, and prediction intervals are made from their left-out residuals alone: with a given
        alpha jackknife+ has its guarantee back, at the price of a map from fewer rows. With None
        the map is learned from all rows, and up to 400 of them it is learned again without each
        fifth of the rows, when error bars are first asked for, to see what it owes to them.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    standardize : bool, default=True
        Whether inputs are centred and scaled.
    noise : {"auto", "homoskedastic", "heteroskedastic"} or an object of ulmus.noise, default="auto"
        Whether the noise variance is one number or may differ between rows. ``"auto"`` has the
        homoskedastic estimates for the variance of a prediction, and for that of a new
        observation a model of the noise variance: a second small ensemble for the logarithm of
        squared left-out residuals. Each output uses it if it predicts left-out rows clearly
        better than a constant does (2.5 standard errors of the log score). ``"homoskedastic"``
        has no such model; ``"heteroskedastic"`` has the heteroskedastic estimates too, and uses
        the model where it is better at all. ``partial_fit`` sees rows once and stays with a
        constant. An object of :mod:`ulmus.noise` says how noise hangs together between rows.
    hc : str, default="HC2"
        Squared residuals used for heteroskedastic noise.
    noise_variance : "pilot", "residual" or float, default="pilot"
        How ``noise_variance_`` is estimated, or its known value.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the hidden weights.
    device : str, default=None
        Where to compute, as torch names it, for example ``"cuda"``; blocks of rows are sent
        there. By default computation follows the data: NumPy on the processor, torch tensors
        and CuPy arrays where they are.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the computation. ``"float32"`` is for graphics cards that are slow in double
        precision: expect three correct digits in predictions and two in variances, with the
        residual noise variance instead of the pilot one and no intervals for the function.
        Results always come in the precision of the points.
    n_jobs : int, default=None
        Threads that share the blocks of rows in a fit; -1 for all cores. With None, blocks come
        one after another and matrix products use the threads of the BLAS.
    verbose : int, default=0
        Whether a fit tells how far it is: what the map of the inputs has reached, and in
        ``fit_blocks`` how many blocks are done.

    Attributes
    ----------
    fitted_ : Fit
        The fit, one immutable value from which all other attributes are read.
    alpha_, noise_variance_, dof_ : float or ndarray of shape (n_outputs,)
        Ridge parameter, noise variance and effective degrees of freedom.
    coef_ : ndarray of shape (1, N) or (1, n_outputs, N)
        Output weights.
    intercept_ : ndarray of shape (1,) or (1, n_outputs)
        Intercept.
    hidden_weights_ : ndarray of shape (1, d', N)
        Hidden weights for the d' inputs of the layer, the map included.
    hidden_biases_ : ndarray of shape (1, N)
        Hidden biases.
    input_map_ : ndarray of shape (d', d') or None
        The map of the inputs.
    feature_relevance_, feature_relevance_std_ : ndarray of shape (n_features,)
        Share of each feature in the prediction, where a map was learned; and its standard
        deviation.
    undersmoothing_gap_ : float
        Largest distance between prediction and undersmoothed fit, in standard errors.
    rank_ : ndarray of shape (1,)
        Numerical rank, intercept included.
    variance_estimates_ : tuple of str
        ``("NHo",)`` or, for heteroskedastic noise, ``("S1",)``.
    leverage_, loo_residuals_, loo_predictions_ : ndarray
        Leverage and exact leave-one-out results of the training rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had any.

    See Also
    --------
    ELMEnsembleRegressor : Many of them, with error bars that include the draw of the weights.

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
        noise: str = "auto",
        hc: str = "HC2",
        noise_variance: Any = "pilot",
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
        self.noise = noise
        self.hc = hc
        self.noise_variance = noise_variance
        self.random_state = random_state
        self.device = device
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _n_members(self) -> int:
        return 1

    def _variance_choice(self) -> Any:
        return "auto"
