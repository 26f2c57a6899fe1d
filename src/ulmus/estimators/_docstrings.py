r"""Docstring paragraphs that several classes and methods share.

The decorator :func:`shared_docs` replaces a line ``{alpha, noise}`` of a docstring by the
paragraphs of these names.
"""

from __future__ import annotations

import re
from typing import TypeVar

Documented = TypeVar("Documented")

PARAGRAPHS = r"""
n_neurons : int or "auto", default="auto"
    Number of hidden units N of a member. ``"auto"`` is 200 plus twice the effective degrees of
    freedom that were found with the map, at least 100, and at most 20 times the square root of
    the number of rows, or less for thousands of rows; on a GPU, 40 times that root and at most
    8000.
alpha : float, "loo", "block-loo" or "gcv", default="loo"
    Ridge parameter; 0 is ordinary least squares. ``"loo"`` minimises the exact leave-one-out
    error of the prediction and ``"gcv"`` the generalised cross-validation score, both computed
    from at most five members and about 10,000 rows. Each output has its own alpha; outputs with
    different values require a regression each. With noise of :mod:`ulmus.noise`, ``"loo"`` is
    ``"block-loo"``: blocks of correlated rows are left out together, unless their noise is
    estimated to be independent.
activation : str or callable, default="tanh"
    ``"logistic"``, ``"tanh"``, ``"relu"``, ``"erf"``, ``"cos"`` (random Fourier features),
    ``"rbf"`` (:math:`e^{-u^2}`), ``"identity"``, or a function of the array of pre-activations
    :math:`u = xW + b`.
weight_distribution : {"uniform", "normal"}, default="normal"
    Distribution of hidden weights.
weight_scale : "auto", float or array-like of shape (n_features,), default="auto"
    With a number s, weights and biases are uniform on [-s, s], or normal with standard
    deviation s. ``"auto"`` draws weights of scale :math:`0.7/\sqrt{d'}` for d' inputs of the
    layer, and biases uniformly on [-1.5, 1.5].
input_map : None, "ard", "full", "auto" or array of shape (d', d'), default="auto"
    Linear map of the inputs before the hidden layer. ``"ard"`` learns a scale for each input
    and ``"full"`` a matrix, both by maximising the marginal likelihood of Bayesian ridge
    regressions on a sample of some thousand rows; ``"auto"`` is ``"full"`` with at least 20
    rows for each entry of the matrix, else ``"ard"``. No map is learned from fewer than 30
    rows, for more than 1000 inputs or, with ``"auto"``, for a callable activation, whose
    derivative is unknown. None is the identity, and an array is used as given.
expand_inputs : None, "normal_scores", "one_hot", list of these or "auto", default="auto"
    Additional inputs of the hidden layer. ``"normal_scores"`` are the normal scores of the
    ranks of each input with more than two values, a smooth curve through about thirty knots;
    ``"one_hot"`` are indicators of the values of inputs with 3 to 10 distinct values, all zero
    for any other value. ``"auto"`` uses both where a map is learned from a dense table of at
    most 200 inputs, and none otherwise; normal scores then only of inputs whose correlation
    with their scores is below 0.97 or that have at most 32 values.
tuning_fraction : float, default=None
    Share of the rows, drawn at random, from which the map is learned. Prediction intervals then
    use the residuals of the other rows only: with a fixed alpha, this restores the guarantee of
    jackknife+, at the price of a map from fewer rows. With None the map is learned from all
    rows. Standard errors include the variance of the map: with at most 400 rows it is relearned
    on five folds, with more its response to the noise is computed to first order.
fit_intercept : bool, default=True
    Whether to fit an unpenalised intercept.
standardize : bool, default=True
    Whether inputs are centred and scaled by their training mean and standard deviation.
categorical : list of str, default=()
    Columns of a data frame whose numbers are labels of categories. Columns of texts, booleans
    and categorical dtypes are found by themselves.
missing : {"impute", "drop", "error"}, default="impute"
    What happens to missing values of X. ``"impute"`` replaces a missing number by its
    conditional mean given the other columns, adds an indicator of missing values as an input,
    and treats missing categories as a category. ``"drop"`` excludes such rows from ``fit``;
    ``"error"`` refuses them.
na_values : list of str, default=()
    Texts and numbers of a data frame that stand for a missing value, such as ``"-999"``.
unknown : {"average", "error"}, default="average"
    What happens to a category that no training row has. ``"average"`` predicts an average over
    the categories of the training rows, with a warning, and adds the variance between them
    to that of a new observation; ``"error"`` refuses it.
target_transform : None, "auto", str or transformer, default=None
    Transformation T of the target. The regression is that of T(y), and results are those of y:
    predictions are means (by smearing over leave-one-out residuals), and intervals and
    quantiles are transformed back. ``"log"`` and ``"sqrt"`` are of y minus its lower bound,
    ``"logit"`` of its share of ``target_range``; ``"yeo-johnson"`` has the power with the best
    leave-one-out predictive density. ``"auto"`` chooses among those that the values allow, and
    keeps y unless the density of another one is better by 3 standard errors. A transformer of
    scikit-learn must increase; it is fitted to y if it is not fitted.
target_range : None or tuple (low, high), default=None
    Known bounds of y, of which one may be None. Predictions, intervals and distributions stay
    within them. If many rows equal the lower bound (zero rain), it has a positive probability.
target_kind : None, "continuous" or "count", default=None
    ``"count"`` fits whole numbers by penalised iteratively reweighted least squares with a log
    link; the predictive distribution is Poisson or negative binomial, with extra zeros where
    the rows support them. With None, ``target_transform="auto"`` compares counts with the
    transformations where y contains small whole numbers.
noise : {"auto", "homoskedastic", "heteroskedastic"} or an object of ulmus.noise, default="auto"
    Assumption about the noise. ``"auto"`` fits a model of the noise variance (a small
    ensemble for the logarithm of squared leave-one-out residuals), and uses it for each
    output whose leave-one-out log score it improves by 2.5 standard errors: for the noise of
    a new observation, and as the noise variance of each training row in all standard errors.
    Otherwise the variance is constant. ``"homoskedastic"`` fits no such model.
    ``"heteroskedastic"`` computes heteroskedasticity-consistent standard errors, and uses the
    model for new observations wherever it improves the score. ``partial_fit`` passes over the
    rows once and assumes constant noise. An object of :mod:`ulmus.noise` specifies correlated
    noise: time series, spatial data or clusters.
noise_variance : "pilot", "residual" or float, default="pilot"
    Estimate of ``noise_variance_``. ``"residual"`` is the paper's estimate, which includes the
    squared bias of the fit; ``"pilot"`` uses the residuals of an undersmoothed fit. A number is
    taken as known, and not allowed with noise whose covariance is estimated.
exact : bool, default=False
    Whether variances are computed by the exact forms. By default they are computed by forms of
    low rank where these are cheaper and their standard errors agree with the exact ones to one
    percent at points among, between and 10 % outside the rows (``variance_tolerance_``);
    predictions, alpha and the spread of the members are exact in either case.
random_state : int, RandomState, Generator or None, default=None
    Seed of the hidden weights.
device : str, default=None
    Device of the computation as named by torch, for example ``"cuda"``; blocks of rows are
    copied there. By default computation follows the data: NumPy on the CPU, torch tensors and
    CuPy arrays on their device.
dtype : {"float64", "float32"}, default="float64"
    Precision of the computation. ``"float32"`` is for GPUs that are slow in double precision:
    predictions have about three correct digits and variances two, ``noise_variance="pilot"`` is
    replaced by ``"residual"``, and there are no confidence intervals for the function. Results
    are returned in the precision of the points.
n_jobs : int, default=None
    Number of threads of each method, by the conventions of joblib: -1 for all cores; None is 1,
    unless ``joblib.parallel_config`` sets another number, and 4 for predictions on a GPU.
    Threads share the networks from which the map is learned, the folds, the members, and the
    blocks of rows and points. Results are the same up to rounding. While a method runs, BLAS
    has one thread in the whole process, because its own threads are slow wherever another
    process is busy.
verbose : int, default=0
    With 1, the stages of a fit are printed, and those of the refits that the first error bars
    of small tables require: a line for each stage, with the seconds since the start. With 2,
    the marginal likelihood at each step of the search for the map as well.
fitted_ : Fit
    The fit, an immutable value from which all other attributes are computed.
alpha_ : float or ndarray of shape (n_outputs,)
    Ridge parameter.
coef_ : ndarray of shape (M, N) or (M, n_outputs, N)
    Output weights.
intercept_ : ndarray of shape (M,) or (M, n_outputs)
    Intercepts.
hidden_weights_ : ndarray of shape (M, d', N)
    Hidden weights for the d' inputs of the layer (standardised inputs, normal scores, one-hot
    indicators), multiplied by the map.
hidden_biases_ : ndarray of shape (M, N)
    Hidden biases.
input_map_ : ndarray of shape (d', d') or None
    Map of the inputs.
feature_relevance_, feature_relevance_std_ : ndarray of shape (n_features,)
    Share of each feature in the variation of the prediction, and its standard deviation; only
    with a learned map.
noise_variance_ : float or ndarray of shape (n_outputs,)
    Estimated noise variance, of a row of weight 1.
noise_covariance_ : CovarianceEstimate or HACEstimate, or a list with one for each output
    Estimated noise covariance, with its parameters and their standard errors; only with noise
    of :mod:`ulmus.noise`.
dof_ : float or ndarray of shape (n_outputs,)
    Effective degrees of freedom, the mean of tr(2P - P^2) over members.
rank_ : ndarray of shape (M,)
    Numerical rank of each member, intercept included.
undersmoothing_gap_ : float
    Largest distance between the prediction and an undersmoothed fit, in standard errors. Noise
    alone results in two to four; a larger value indicates bias.
variance_tolerance_ : float
    Largest relative error of standard errors by forms of low rank, at points among the training
    rows, between neighbours, and up to 10 % outside their range; zero with exact forms.
variance_estimates_ : tuple of str
    Computed variance estimates, the default first.
leverage_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    Mean leverage of each training row.
loo_residuals_, loo_predictions_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    Exact leave-one-out residuals and predictions; leave-block-out with noise of
    :mod:`ulmus.noise`.
target_transform_ : str or list of str
    Transformation of the target of each output, or the distribution of counts;
    ``"identity"`` for y itself.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, if X is a data frame.
columns_ : Schema
    The columns of the training table and how they are encoded as inputs of the model; only if
    the table has categories, dates or missing values.
X : array-like or sparse matrix of shape (n_samples, n_features)
    Points.
estimate : str, default=None
    One of ``variance_estimates_``; the first by default.
residual_kriging : bool, default=False
    Whether to predict the noise of new observations from the residuals of neighbouring
    training rows. Requires a fit with noise that has a covariance function: ``AR1``,
    ``Exponential`` or ``Matern`` of :mod:`ulmus.noise`.
time, coords, groups : array-like, default=None
    Times, coordinates and groups of the new observations, for ``residual_kriging=True``: as
    in ``fit``, unless the noise reads them from columns of X. Where ``fit`` had no times,
    rows are at 0, 1, ..., counted within groups. Groups that are not in the training data
    are independent of all rows.
sample_weight : array-like of shape (n_samples,), default=None
    Weights of the new observations in the units of those of ``fit``: the noise variance of
    an observation is that of weight 1, divided by its weight. With None it is that of the
    mean weight of the training rows, with a warning if these differ by a factor above 1.5.
confidence_level : float, default=0.95
    Level of the intervals.
target : {"expectation", "function"}, default="expectation"
    Quantity that intervals cover. ``"expectation"`` is :math:`E \hat f`, the mean of this
    estimator over noise and hidden weights; its intervals ignore bias. ``"function"`` is
    the true function: estimates come from an undersmoothed fit and intervals are wider (see
    ``predict_interval``).
simultaneous : bool, default=False
    Whether the intervals of all rows cover jointly with probability ``confidence_level``,
    instead of each by itself. The critical value is simulated with 20,000 draws and a fixed
    seed, or Bonferroni's for levels above 0.99975; ``frame.attrs["simultaneous"]`` contains
    its Monte Carlo error.
hypothesis : "pairwise", "equal" or array-like of shape (r, q), default=None
    Test pairwise differences of the rows, their joint equality, or given linear
    combinations instead. ``frame.attrs["wald"]`` contains the joint F-test that all
    combinations are zero.
adjust : "holm" or None, default=None
    Adjustment of the p-values for multiple testing (Holm, 1979).
by : str, array-like of shape (n_samples,), list of these or "row", default=None
    Groups: a column of X, an array of labels, several of these, or ``"row"`` for each row
    by itself. Labels are taken by position, whatever their index. Groups are sorted, those
    of a categorical column in the order of its categories. Rows with a missing value in a
    column are the group ``(missing)``.
weights : str or array-like of shape (n_samples,), default=None
    Weights of the rows, or the name of a column that contains them.
scale : {"response", "link"}, default="response"
    Scale of the results: that of y, or that of the regression where y is transformed or
    counted (``target_transform``, ``target_kind``).
frame : pandas.DataFrame
    One row for each estimate, with the columns ``term``, ``contrast``, one for each group
    key or grid, ``estimate``, ``std_error``, ``statistic``, ``p_value``, ``conf_low`` and
    ``conf_high``. ``frame.attrs["covariance"]`` is the joint covariance of the rows (of at
    most 500, unless intervals or tests require it); ``.of(part)`` is that of sorted or
    selected rows, by their labels. With several outputs there is a column ``output``, and
    covariances between outputs are NaN.
"""


def _paragraphs(text: str) -> dict[str, list[str]]:
    """Lines of each paragraph, by the first name in its first line."""
    paragraphs: dict[str, list[str]] = {}
    for line in text.strip().splitlines():
        if not line.startswith(" "):
            name = re.split("[ ,]", line)[0]
            paragraphs[name] = []
        paragraphs[name].append(line)
    return paragraphs


# A fit to a sine curve, for examples.
SINE_MODEL = """
>>> from ulmus import ELMEnsembleRegressor
>>> from ulmus.datasets import make_sine
>>> X, y, *_ = make_sine(100, random_state=0)
>>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
"""

SHARED = _paragraphs(PARAGRAPHS) | {"sine_model": SINE_MODEL.strip().splitlines()}


def shared_docs(documented: Documented) -> Documented:
    """Insert shared paragraphs into the docstring of a class or function."""
    lines: list[str] = []
    for line in (documented.__doc__ or "").splitlines():
        names = re.fullmatch(r"( *)\{([\w, ]+)\}", line)
        if names is None:
            lines.append(line)
            continue
        for name in names[2].split(", "):
            lines += [names[1] + part for part in SHARED[name]]
    if documented.__doc__ is not None:  # python -OO has no docstrings
        documented.__doc__ = "\n".join(lines)
    return documented
