"""Families of positive, counted and bounded targets, and regressions that know the family.

The linear predictor is a smooth function of uniform inputs. Each family turns it into the law of
the target. The oracle of a family is a GAM of pygam, or a GLM of statsmodels on B-splines, that
knows the family, the link and which two inputs interact; its predictive distribution has plug-in
means and an estimated dispersion.
"""

from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import statsmodels.api as sm
from patsy import dmatrix
from pygam import GammaGAM, LinearGAM, LogisticGAM, PoissonGAM
from scipy import special, stats
from statsmodels.othermod.betareg import BetaModel

Array = np.ndarray
Law = Any  # a frozen distribution of scipy.stats for each point, or ZeroMixture
Oracle = Callable[[Array, Array, Array], Law]  # from training rows and points
N_SPLINES = 10
PENALTIES = np.logspace(-3, 5, 17)
FACTORS = np.array([0.01, 0.1, 10, 100, 1e4])
SPLINE_DFS = (1, 3, 4, 5, 6)  # 1: a straight line
MEAN_OF_EXP = np.exp(0.24)  # of the linear predictor, about


def predictor(X: Array) -> Array:
    """Linear predictor, of mean 0 and standard deviation 0.7 to 0.8: additive but for a product."""
    wave = np.sin(2 * np.pi * X[:, 0])
    if X.shape[1] == 1:
        return wave
    eta = 0.7 * wave + 1.2 * (X[:, 1] - 0.5) + 3 * ((X[:, 2] - 0.5) ** 2 - 1 / 12)
    eta += 3 * product(X)[:, 0]
    return eta + 0.5 * np.cos(np.pi * X[:, 3]) if X.shape[1] > 3 else eta


def product(X: Array) -> Array:
    """The product of the two inputs that interact (n, 1), or no column if d = 1."""
    return np.prod(X[:, :2] - 0.5, axis=1)[:, None] if X.shape[1] > 1 else X[:, :0]


# --- laws -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ZeroMixture:
    """Zero with a probability (p,), else a value of another law on the numbers from zero on."""

    zero: Array
    other: Law

    def mean(self) -> Array:
        return (1 - self.zero) * self.other.mean()

    def cdf(self, y: Array) -> Array:
        return np.where(y >= 0, self.zero, 0.0) + (1 - self.zero) * self.other.cdf(y)

    def ppf(self, u: Array) -> Array:
        rest = np.maximum(u - self.zero, 0) / (1 - self.zero)
        return np.maximum(self.other.ppf(rest), 0)


def lognormal_law(mu: Array, sd: float) -> Law:
    return stats.lognorm(sd, scale=np.exp(mu))


def gamma_law(mean: Array, shape: float) -> Law:
    return stats.gamma(shape, scale=mean / shape)


def negative_binomial_law(mean: Array, size: float) -> Law:
    return stats.nbinom(size, size / (size + mean))


def beta_law(mean: Array, precision: float) -> Law:
    return stats.beta(mean * precision, (1 - mean) * precision)


def mean_of_counts(X: Array, overall: float) -> Array:
    return overall / MEAN_OF_EXP * np.exp(predictor(X))


def zero_inflated_counts(X: Array) -> Law:
    """Poisson counts of mean 3, and 30 % further zeros."""
    return ZeroMixture(np.full(len(X), 0.3), stats.poisson(mean_of_counts(X, 3.0)))


def rain_of_one_predictor(X: Array) -> Law:
    """35 % zeros, frequent where amounts are small."""
    eta = predictor(X)
    return ZeroMixture(special.expit(-0.7 - eta), lognormal_law(eta, 0.7))


def rain_of_two_predictors(X: Array) -> Law:
    """35 % zeros, whose probability depends on the last input."""
    zero = special.expit(-0.65 + 3 * (X[:, -1] - 0.5))
    return ZeroMixture(zero, gamma_law(np.exp(predictor(X)), 2.0))


# --- oracles ----------------------------------------------------------------------------------


def additive(model: type, X: Array, y: Array) -> tuple[Any, Callable[[Array], Array]]:
    """GAM of all inputs and their product, and its mean. Penalties have the least AICc.

    First one penalty is chosen for all terms, then that of each term in turn.
    """

    def columns(points: Array) -> Array:
        return np.hstack([points, product(points)])

    gam = model(n_splines=N_SPLINES)
    search = partial(gam.gridsearch, columns(X), y, objective="AICc", progress=False)
    with redirect_stdout(None):  # pygam prints that a penalty of the grid did not converge
        search(lam=PENALTIES)
        for j in range(columns(X).shape[1] * (X.shape[1] > 1)):
            grid = [np.ravel(penalty) for penalty in gam.lam]
            grid[j] = grid[j] * FACTORS
            search(lam=grid)
    return gam, lambda points: gam.predict_mu(columns(points))


def lognormal_oracle(X: Array, y: Array, points: Array) -> Law:
    gam, mean = additive(LinearGAM, X, np.log(y))
    return lognormal_law(mean(points), gam.distribution.scale)


def gamma_oracle(X: Array, y: Array, points: Array) -> Law:
    gam, mean = additive(GammaGAM, X, y)
    return gamma_law(mean(points), gam.distribution.scale**-2)


def poisson_oracle(X: Array, y: Array, points: Array) -> Law:
    return stats.poisson(additive(PoissonGAM, X, y)[1](points))


def rain_oracle(amounts: Oracle) -> Oracle:
    """Logistic GAM of zeros, and a GAM of the amounts above zero."""

    def law(X: Array, y: Array, points: Array) -> Law:
        wet = y > 0
        zero = additive(LogisticGAM, X, (~wet).astype(float))[1](points)
        return ZeroMixture(zero, amounts(X[wet], y[wet], points))

    return law


def spline_columns(X: Array, dfs: Sequence[int]) -> Array:
    """Intercept, B-splines of each input with these degrees of freedom, and the product."""
    columns = [np.ones((len(X), 1)), product(X)]
    for x, df in zip(X.T, dfs, strict=True):
        formula = f"bs(x, df={df}, lower_bound=0, upper_bound=1) - 1" if df > 1 else "x - 1"
        columns.append(np.asarray(dmatrix(formula, {"x": x})))
    return np.hstack(columns)


class SplineRegression(NamedTuple):
    """A maximum likelihood fit to B-splines, and its AICc."""

    aicc: float
    dfs: tuple[int, ...]
    fit: Any

    def predictor(self, points: Array, skip: int = 0) -> Array:
        """Linear predictor, whose coefficients are the parameters after the first ``skip``."""
        Z = spline_columns(points, self.dfs)
        return Z @ self.fit.params[skip : skip + Z.shape[1]]


def spline_regression(model: type, X: Array, y: Array) -> SplineRegression:
    """The fit of least AICc: degrees of freedom for all inputs, then for each input in turn."""

    @cache
    def fitted(dfs: tuple[int, ...]) -> SplineRegression:
        Z = spline_columns(X, dfs)
        try:
            fit = model(y, Z).fit(disp=0, maxiter=300)
        except (np.linalg.LinAlgError, ValueError):
            return SplineRegression(np.inf, dfs, None)
        k = len(fit.params)
        aicc = fit.aic + 2 * k * (k + 1) / (len(y) - k - 1) if len(y) > k + 1 else np.inf
        return SplineRegression(aicc if np.isfinite(aicc) else np.inf, dfs, fit)

    d = X.shape[1]
    best = min((fitted((df,) * d) for df in SPLINE_DFS), key=lambda one: one.aicc)
    for j in range(d):
        near = ((*best.dfs[:j], df, *best.dfs[j + 1 :]) for df in SPLINE_DFS)
        best = min(map(fitted, near), key=lambda one: one.aicc)
    return best


def negative_binomial_oracle(X: Array, y: Array, points: Array) -> Law:
    best = spline_regression(sm.NegativeBinomial, X, y)
    return negative_binomial_law(np.exp(best.predictor(points)), 1 / max(best.fit.params[-1], 1e-4))


def zero_inflated_oracle(X: Array, y: Array, points: Array) -> Law:
    best = spline_regression(sm.ZeroInflatedPoisson, X, y)
    counts = stats.poisson(np.exp(best.predictor(points, skip=1)))
    return ZeroMixture(special.expit(best.fit.params[0]), counts)


def beta_oracle(X: Array, y: Array, points: Array) -> Law:
    best = spline_regression(BetaModel, X, y)
    return beta_law(special.expit(best.predictor(points)), np.exp(best.fit.params[-1]))


# --- families ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """Law of the target at rows X, its oracle, and the parameters that a user would give."""

    law: Callable[[Array], Law]
    oracle: Oracle
    given: dict[str, Any]
    support: tuple[float, float] = (0.0, np.inf)


LOG = {"target_transform": "log"}
COUNT = {"target_kind": "count"}
RAIN = {"target_transform": "sqrt", "target_range": (0, None)}
SHARE = {"target_transform": "logit", "target_range": (0, 1)}


def lognormal_family(sd: float) -> Family:
    return Family(lambda X: lognormal_law(predictor(X), sd), lognormal_oracle, LOG)


def poisson_family(overall: float) -> Family:
    return Family(lambda X: stats.poisson(mean_of_counts(X, overall)), poisson_oracle, COUNT)


def beta_family(precision: float) -> Family:
    def law(X: Array) -> Law:
        return beta_law(special.expit(predictor(X)), precision)

    return Family(law, beta_oracle, SHARE, (0.0, 1.0))


FAMILIES = {
    "lognormal-0.5": lognormal_family(0.5),
    "lognormal-1": lognormal_family(1.0),
    "gamma": Family(lambda X: gamma_law(np.exp(predictor(X)), 2.0), gamma_oracle, LOG),
    "poisson-1": poisson_family(1.0),
    "poisson-8": poisson_family(8.0),
    "negative-binomial": Family(
        lambda X: negative_binomial_law(mean_of_counts(X, 4.0), 2.0),
        negative_binomial_oracle,
        COUNT,
    ),
    "zero-inflated": Family(zero_inflated_counts, zero_inflated_oracle, COUNT),
    "rain-lognormal": Family(rain_of_one_predictor, rain_oracle(lognormal_oracle), RAIN),
    "rain-gamma": Family(rain_of_two_predictors, rain_oracle(gamma_oracle), RAIN),
    "beta-5": beta_family(5.0),
    "beta-20": beta_family(20.0),
}
