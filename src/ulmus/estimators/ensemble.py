"""An ensemble of Extreme Learning Machines with the paper's variance estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ulmus.core.fit.fit import Fit
from ulmus.core.variance.estimates import (
    MemberCorrelation,
    VarianceComponents,
    components,
    correlation,
    enough_members,
    variance_at,
)
from ulmus.estimators import _parameters as check
from ulmus.estimators._base import BaseELM
from ulmus.exceptions import DegenerateFitWarning, warn


class ELMEnsembleRegressor(BaseELM):
    r"""Mean of independently drawn Extreme Learning Machines, with error bars.

    Each member draws a random hidden layer and fits its output by (ridge) least squares; the
    ensemble averages them. The variance of the average, over noise and over weights, is
    estimated in closed form:

    .. math:: \widehat{\operatorname{Var}} f(x) = \hat\mu' \hat\Sigma \hat\mu
              + \tfrac{1}{M} \hat\sigma^2_f(x),

    where :math:`\mu` is the mean smoother row, :math:`\Sigma` the noise covariance, and the
    last term the sample variance of the members.

    Parameters
    ----------
    n_estimators : int, default=8
        Number of members M. Adding members keeps the first ones if ``random_state`` is a number.
    n_neurons : int or "auto", default="auto"
        Hidden units N of each member. ``"auto"`` is 20 times the root of the number of rows, at
        least 100 and at most 900, and less for very many rows; on a graphics card 40 times and at
        most 8000.
    alpha : float, "loo", "block-loo" or "gcv", default="loo"
        Ridge parameter, shared by all members; 0 is plain least squares. ``"loo"`` takes the
        least exact leave-one-out error of the ensemble, ``"gcv"`` the least generalised
        cross-validation score, both judged by the first members (at most five). Each output
        chooses its own; outputs that choose differently cost a regression each. With noise of
        :mod:`ulmus.noise`, ``"loo"`` is ``"block-loo"``: rows that hang together are left out
        together, unless their noise turns out to be independent.
    activation : str or callable, default="tanh"
        ``"logistic"``, ``"tanh"``, ``"relu"``, ``"erf"``, ``"cos"`` (random Fourier features),
        ``"rbf"`` (:math:`e^{-u^2}`), ``"identity"``, or a function of the array of
        pre-activations :math:`u = xW + b`.
    weight_distribution : {"uniform", "normal"}, default="normal"
        Distribution of hidden weights.
    weight_scale : "auto", float or array-like of shape (n_features,), default="auto"
        With a number s, weights and biases are uniform on [-s, s], or normal with standard
        deviation s. ``"auto"`` has weights of scale :math:`0.7/\sqrt{d'}` for d' inputs of the
        layer, and biases uniform on [-1.5, 1.5].
    input_map : None, "ard", "full", "auto" or array of shape (d', d'), default="auto"
        A linear map of the inputs before the hidden layer. ``"ard"`` learns a scale for each
        input, ``"full"`` a matrix, both by the evidence of Bayesian ridge regressions on some
        thousand rows; ``"auto"`` is ``"full"`` where there are 20 rows for each entry of the
        matrix, else ``"ard"``. An activation that is a function of your own has no known
        derivative, and with ``"auto"`` no map; nor is one learned from fewer than 30 rows or for
        more than 1000 inputs. None is no map, a matrix is taken as it is.
    expand_inputs : None, "normal_scores", "one_hot", list of these or "auto", default="auto"
        Further inputs of the hidden layer, whose relevance the map decides. ``"normal_scores"`` are
        normal scores of the ranks of each input with more than two values, a smooth curve
        through some thirty knots; ``"one_hot"`` are indicators of the values of inputs with 3 to 10
        of them, all zero for another value. ``"auto"`` has both where a map is learned from a dense
        table of at most 200 inputs, and else none; and scores only of inputs that are skewed or
        stretched (whose values correlate with their scores by less than 0.97) or have at most 32
        values.
    tuning_fraction : float, default=None
        Share of the rows that a map is learned from, drawn at random. The others then never saw
        it, and prediction intervals are made from their left-out residuals alone: with a given
        alpha jackknife+ has its guarantee back, at the price of a map from fewer rows. With None
        the map is learned from all rows, and up to 400 of them it is learned again without each
        fifth of the rows, when error bars are first asked for, to see what it owes to them.
    fit_intercept : bool, default=True
        Whether each member has an unpenalised intercept.
    standardize : bool, default=True
        Whether inputs are centred and scaled by their training mean and standard deviation.
    noise : {"auto", "homoskedastic", "heteroskedastic"} or an object of ulmus.noise, default="auto"
        Whether the noise variance is one number or may differ between rows. ``"auto"`` has the
        homoskedastic estimates for the variance of a prediction, and for that of a new
        observation a model of the noise variance: a second small ensemble for the logarithm of
        squared left-out residuals. Each output uses it if it predicts left-out rows clearly
        better than a constant does (2.5 standard errors of the log score). ``"homoskedastic"``
        has no such model; ``"heteroskedastic"`` has the heteroskedastic estimates too, and uses
        the model where it is better at all. ``partial_fit`` sees rows once and stays with a
        constant. An object of :mod:`ulmus.noise` says how noise hangs together between rows.
    variance : str or list of str, default="auto"
        Estimates to prepare: ``"NHo"`` and ``"BR"`` for homoskedastic noise, ``"NHe"``,
        ``"S1"``, ``"S2"`` and ``"S3"`` for heteroskedastic noise, several of them, or
        ``"all"``. ``"auto"`` is ``"BR"`` or ``"S2"``.
    hc : str, default="pooled"
        Squared residuals of the heteroskedastic estimates. ``"HC0"``, ``"HC2"`` and
        ``"HC3"`` correct those of each member for leverage, and ``"HC3-exact"`` is the paper's
        jackknife matrix. Residuals of a single member contain errors that average out over the
        ensemble; ``"pooled"`` averages the HC2-corrected residuals of all members before they
        are squared.
    noise_variance : "pilot", "residual" or float, default="pilot"
        How ``noise_variance_`` is estimated. ``"residual"`` is the paper's estimate, which
        contains the squared bias of the fit; ``"pilot"`` takes the residuals of a fit that
        smooths less. A number is taken as known, but not beside noise of ``ulmus.noise`` whose
        covariance is fitted.
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
    alpha_ : float or ndarray of shape (n_outputs,)
        Ridge parameter used.
    coef_ : ndarray of shape (M, N) or (M, n_outputs, N)
        Output weights.
    intercept_ : ndarray of shape (M,) or (M, n_outputs)
        Intercepts.
    hidden_weights_ : ndarray of shape (M, d', N)
        Hidden weights for the d' inputs of the layer (standardised inputs, then scores, then
        levels), the map included.
    hidden_biases_ : ndarray of shape (M, N)
        Hidden biases.
    input_map_ : ndarray of shape (d', d') or None
        The map of the inputs.
    feature_relevance_, feature_relevance_std_ : ndarray of shape (n_features,)
        Share of each feature in the prediction, its scores and levels included, where a map was
        learned; and its standard deviation.
    noise_variance_ : float or ndarray of shape (n_outputs,)
        Noise variance (of a row of weight 1), estimated as ``noise_variance`` says.
    dof_ : float or ndarray of shape (n_outputs,)
        Effective degrees of freedom, mean of tr(2P - P^2) over members.
    rank_ : ndarray of shape (M,)
        Numerical rank of each member, intercept included: units that are no combination of
        those before them or, without ridge, directions that are kept.
    undersmoothing_gap_ : float
        Largest distance between prediction and undersmoothed fit, in standard errors.
    variance_estimates_ : tuple of str
        Estimates that can be asked for, the default first.
    leverage_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Mean leverage of each training row.
    loo_residuals_, loo_predictions_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Exact leave-one-out residuals and predictions of the ensemble; with noise of
        :mod:`ulmus.noise`, those without the whole block of a row.
    noise_covariance_ : CovarianceEstimate or HACEstimate, or a list with one for each output
        How noise hangs together, where ``noise`` asks for it; ``print`` it.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had any.

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
    >>> import numpy as np
    >>> from ulmus import ELMEnsembleRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, size=(120, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(120)
    >>> model = ELMEnsembleRegressor(n_neurons=30, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[1.5], [4.0]], return_std=True)
    >>> bool(np.all(np.abs(mean - np.sin([1.5, 4.0])) < 0.15))
    True
    >>> standard_error = np.sqrt(model.predict_var([[1.5], [4.0]], component="model"))
    >>> bool(np.all(standard_error < std))
    True
    """

    def __init__(
        self,
        n_estimators: int = 8,
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
        variance: str | Sequence[str] = "auto",
        hc: str = "pooled",
        noise_variance: Any = "pilot",
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
        self.noise = noise
        self.variance = variance
        self.hc = hc
        self.noise_variance = noise_variance
        self.random_state = random_state
        self.device = device
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _n_members(self) -> int:
        return check.checked_count("n_estimators", self.n_estimators)

    def _variance_choice(self) -> Any:
        return self.variance

    def _warn_about_fit(self, fit: Fit) -> None:
        super()._warn_about_fit(fit)
        if fit.ensemble.n_members == 1:
            warn(
                "n_estimators=1: the variance is that of one member given its hidden weights, "
                "and leaves out what redrawing them would change; use n_estimators >= 2.",
                DegenerateFitWarning,
            )

    def variance_components(self, X: Any, estimate: str | None = None) -> VarianceComponents:
        """Split the model's variance into its three terms.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        estimate : str, default=None
            One of ``variance_estimates_``.

        Returns
        -------
        components : VarianceComponents
            Named tuple of arrays ``noise`` (least-squares noise averaged over the weights),
            ``covariance`` (between members) and ``weights`` (bias variation caused by the
            weights). They add up to the distinct-pairs estimate, ``"BR"``, ``"S2"`` or ``"S3"``:
            the model variance without what choosing alpha and the map adds.

        Examples
        --------
        >>> import numpy as np
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> noise, covariance, weights = model.variance_components([[1.0], [4.0]])
        >>> bool(np.all(covariance > noise) and np.all(noise > weights))
        True
        """
        X, parts = self._member_parts(X, estimate, "variance_components")
        return VarianceComponents(*(self._output(a, X) for a in components(parts)))

    def member_correlation(self, X: Any, estimate: str | None = None) -> MemberCorrelation:
        """Correlation between the predictions of two members, and its upper bound.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        estimate : str, default=None
            One of ``variance_estimates_``.

        Returns
        -------
        correlation : MemberCorrelation
            Named tuple of arrays ``correlation`` and ``bound``; the bound b is reached when
            noise dominates (paper, section 2.5).

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> correlation, bound = model.member_correlation([[1.0], [4.0]])
        >>> correlation.round(1), bound.round(1)
        (array([0.9, 0.7]), array([0.9, 0.9]))
        """
        X, parts = self._member_parts(X, estimate, "member_correlation")
        return MemberCorrelation(*(self._output(a, X) for a in correlation(parts)))

    def variance_at(self, X: Any, n_estimators: int, estimate: str | None = None) -> Any:
        """Model variance that an ensemble of another size would have.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points.
        n_estimators : int
            Size of that ensemble.
        estimate : str, default=None
            One of ``variance_estimates_``.

        Returns
        -------
        variance : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predicted variance.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> share = model.variance_at([[1.0], [4.0]], 50) / model.variance_at([[1.0], [4.0]], 5)
        >>> share.round(2)  # ten times the members lower the variance by a few percent
        array([0.98, 0.93])
        """
        n_members = check.checked_count("n_estimators", n_estimators)
        X, parts = self._member_parts(X, estimate, "variance_at")
        return self._output(variance_at(parts, n_members), X)

    def suggest_n_estimators(self, X: Any, tolerance: float = 0.05, quantile: float = 0.9) -> int:
        """Number of members after which more of them hardly lower the variance.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points that matter.
        tolerance : float, default=0.05
            Largest share of the variance that redrawing the weights may still cause, relative
            to the variance of an infinite ensemble.
        quantile : float, default=0.9
            Share of the points for which this must hold.

        Returns
        -------
        n_estimators : int
            At least 2 and at most 10,000.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
        >>> 10 < model.suggest_n_estimators(X) < 40
        True
        >>> model.suggest_n_estimators(X, tolerance=0.5)
        3
        """
        check.checked_number("tolerance", tolerance, 0.0, strict=True)
        if not 0 <= check.checked_number("quantile", quantile, 0.0) <= 1:
            raise ValueError(f"quantile must lie in [0, 1], got {quantile!r}.")
        _, parts = self._member_parts(X, None, "suggest_n_estimators")
        return enough_members(parts, tolerance, quantile)

    def _member_parts(self, X: Any, estimate: str | None, method: str) -> tuple[Any, Any]:
        X = self._checked_points(X)
        members = self.fitted_.ensemble.n_members
        if members < 2:
            raise ValueError(
                f"{method} compares members and needs n_estimators >= 2, got {members}; fit with "
                "more members."
            )
        return X, self.fitted_.parts(X, check.checked_estimate(estimate, self.fitted_))
