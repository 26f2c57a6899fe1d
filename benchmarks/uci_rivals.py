"""The models that uci.py sets beside the ensembles, each with its own error bars.

A model is a function: from training rows it makes a function that predicts points. What error bars
need of the training rows belongs to the first of the two, so that its time is the time of a fit.
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ulmus.metrics import normal_intervals

Array = np.ndarray
LEVEL = 0.95
ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)


class Prediction(NamedTuple):
    """Means and sds (p,), intervals (p, 2), and a frozen scipy distribution of the targets."""

    mean: Array
    sd: Array
    intervals: Array
    distribution: Any


Predict = Callable[[Array], Prediction]
Fit = Callable[[Array, Array], Predict]


@dataclass(frozen=True)
class Model:
    """A fit, its largest number of rows, its package, and an untimed preparation."""

    fit: Fit
    most_rows: float = np.inf
    package: str = "ulmus"
    prepare: Callable[[], object] | None = None

    @property
    def installed(self) -> bool:
        return find_spec(self.package) is not None


def normal(mean: Array, sd: Array | float, intervals: Array | None = None) -> Prediction:
    """Prediction by a normal distribution, whose intervals may come from elsewhere."""
    sd = np.broadcast_to(sd, mean.shape)
    if intervals is None:
        intervals = normal_intervals(mean, sd, LEVEL)
    return Prediction(mean, sd, intervals, stats.norm(mean, sd))


# --- Gaussian process -------------------------------------------------------------------------


def gaussian_process(X: Array, y: Array) -> Predict:
    """One length scale per input; the sd contains the noise, which is part of the kernel."""
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    process = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0
    )
    model = make_pipeline(StandardScaler(), process).fit(X, y)
    return lambda points: normal(*model.predict(points, return_std=True))


# --- trees ------------------------------------------------------------------------------------


def boosting(X: Array, y: Array) -> Predict:
    """Means of all rows; a second model of 80 % of them, and the rest, give sd and intervals."""
    model = HistGradientBoostingRegressor(random_state=0).fit(X, y)
    rows, held_out, y_rows, y_held_out = train_test_split(X, y, test_size=0.2, random_state=0)
    split = HistGradientBoostingRegressor(random_state=0).fit(rows, y_rows)
    residuals = np.abs(y_held_out - split.predict(held_out))
    sd, half = np.sqrt(np.mean(residuals**2)), conformal_quantile(residuals)

    def predict(points: Array) -> Prediction:
        ends = split.predict(points)[:, None] + np.array([-half, half])
        return normal(model.predict(points), sd, ends)

    return predict


def conformal_quantile(residuals: Array, level: float = LEVEL) -> float:
    """Half width of split-conformal intervals; infinite where residuals are too few."""
    rank = int(np.ceil(level * (len(residuals) + 1)))
    return np.sort(residuals)[rank - 1] if rank <= len(residuals) else np.inf


def forest(X: Array, y: Array) -> Predict:
    """The sd and the quantiles of residuals are those of the rows that a tree did not draw."""
    model = RandomForestRegressor(oob_score=True, random_state=0).fit(X, y)
    residuals = y - model.oob_prediction_
    sd, ends = np.sqrt(np.mean(residuals**2)), np.quantile(residuals, ENDS)

    def predict(points: Array) -> Prediction:
        mean = model.predict(points)
        return normal(mean, sd, mean[:, None] + ends)

    return predict


# --- random features --------------------------------------------------------------------------

# Times the number of inputs: the kernel is exp(-gamma |x - x'|^2) of standardised inputs.
GAMMAS = (0.01, 0.03, 0.1, 0.3, 1.0)


def bayesian_ridge(X: Array, y: Array) -> Predict:
    """The kernel width of largest marginal likelihood among a few."""
    centre, spread = np.mean(y), np.std(y)
    models = (random_features(gamma / X.shape[1]) for gamma in GAMMAS)
    fits = [model.fit(X, (y - centre) / spread) for model in models]
    best = max(fits, key=lambda model: model[-1].scores_[-1])

    def predict(points: Array) -> Prediction:
        mean, sd = best.predict(points, return_std=True)
        return normal(centre + spread * mean, spread * sd)

    return predict


def random_features(gamma: float) -> Pipeline:
    features = RBFSampler(gamma=gamma, n_components=500, random_state=0)
    return make_pipeline(StandardScaler(), features, BayesianRidge(compute_score=True))


# --- Neo LS-SVM -------------------------------------------------------------------------------


@cache
def neo_class() -> type:
    """The class, its functions compiled, so that no fit pays for that.

    It is imported without this folder on the path: numba imports a package named coverage,
    and would get coverage.py.
    """
    here = Path(__file__).resolve().parent
    elsewhere = [path for path in sys.path if Path(path).resolve() != here]
    with mock.patch.object(sys, "path", elsewhere):
        neo = importlib.import_module("neo_ls_svm").NeoLSSVM
    X = np.random.default_rng(0).standard_normal((200, 3))
    neo().fit(X, X[:, 0]).predict_interval(X)
    return neo


def neo_ls_svm(X: Array, y: Array) -> Predict:
    """Its own intervals; the sd is that of its leave-one-out residuals.

    Its ``predict_std`` is no sd of a target: it is what intervals are calibrated from.
    """
    model = neo_class()().fit(X, y)
    sd = np.sqrt(np.mean(model.loo_residuals_**2))
    model.predict_interval(X[:1], coverage=LEVEL)  # calibrated by the first call

    def predict(points: Array) -> Prediction:
        ends = np.sort(model.predict_interval(points, coverage=LEVEL))  # a few come crossed
        return normal(model.predict(points), sd, ends)

    return predict


RIVALS = {
    "hgb": Model(boosting),
    "forest": Model(forest),
    "bayesian-ridge": Model(bayesian_ridge),
    "gpr-ard": Model(gaussian_process, most_rows=1500),
    "neo-ls-svm": Model(neo_ls_svm, package="neo_ls_svm", prepare=neo_class),
}
