"""Designs whose noise is correlated, and what is true about an ensemble on them.

Inputs are the same in all replications and lie in [0, 1], or are series of their own; noise and
hidden weights are drawn anew. Noise has the variance .1 and a known correlation R of rows, from
whose root both the draws and the truth are made.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, special
from scipy.spatial.distance import cdist

Array = np.ndarray

VARIANCE = 0.1
TRUE_MEMBERS = 400


def steps(n: int) -> Array:
    """Steps of time between rows, shape (n, n)."""
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def autoregressive(phi: float, share: float = 1.0) -> Callable[[Array], Array]:
    """Correlation phi^k at lag k of a share of the noise; the rest is white."""
    return lambda lag: np.where(lag == 0, 1.0, share * phi**lag)


def moving_average(length: int) -> Callable[[Array], Array]:
    """Correlation of sums over so many rows: it falls in a straight line to zero."""
    return lambda lag: np.maximum(1 - lag / length, 0.0)


def exponential(scale: float) -> Callable[[Array], Array]:
    return lambda distance: np.exp(-distance / scale)


def wave(X: Array) -> Array:
    """A function of time."""
    return np.sin(2 * np.pi * X[:, 0]) + X[:, 0]


def bowl(X: Array) -> Array:
    """A function of two covariates that are series."""
    return np.sin(X[:, 0]) + 0.3 * X[:, 0] * X[:, 1]


def hill(X: Array) -> Array:
    """A function of two coordinates."""
    return np.exp(-6 * np.sum((X - 0.4) ** 2, axis=1)) + X[:, 1]


def clock(rng: np.random.Generator, n: int) -> Array:
    return (np.arange(n)[:, None] + 0.5) / n


def series(rng: np.random.Generator, n: int) -> Array:
    """Two autoregressions."""
    return linalg.cholesky(autoregressive(0.8)(steps(n)), lower=True) @ rng.standard_normal((n, 2))


def square(rng: np.random.Generator, n: int) -> Array:
    return rng.random((n, 2))


@dataclass(frozen=True)
class Setting:
    """Inputs, a function of them, the noise covariance, and parameters of the ensemble.

    Distances are those of the inputs where noise is in space, else steps between rows.
    """

    name: str
    inputs: Callable[[np.random.Generator, int], Array]
    f: Callable[[Array], Array]
    correlation: Callable[[Array], Array]
    spatial: bool = False
    n: int = 300
    layer: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def title(self) -> str:
        return f"{self.name}, {self.note}" if self.note else self.name

    @property
    def chooses(self) -> bool:
        """Whether the ridge parameter is chosen from the data."""
        return isinstance(self.parameters["alpha"], str)

    @cached_property
    def X(self) -> Array:
        return self.inputs(np.random.default_rng(7), self.n)

    @cached_property
    def root(self) -> Array:
        """Lower root of the covariance of the noise, shape (n, n)."""
        distance = cdist(self.X, self.X) if self.spatial else steps(self.n)
        R = self.correlation(distance) + 1e-10 * np.eye(self.n)
        return VARIANCE**0.5 * linalg.cholesky(R, lower=True)

    def noise(self, *key: int) -> Array:
        rng = np.random.default_rng([*self.name.encode(), *key])
        return self.root @ rng.standard_normal(self.n)

    def outputs(self, r: int) -> Array:
        return self.f(self.X) + self.noise(r)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the ensemble, but for its noise."""
        alpha = 1e-3 if self.spatial else 1e-4
        return {"n_estimators": 10, "n_neurons": 50, "alpha": alpha} | self.layer


TIME = (
    Setting("independent", clock, wave, autoregressive(0.0)),
    Setting("AR(.5)", clock, wave, autoregressive(0.5)),
    Setting("AR(.8)", clock, wave, autoregressive(0.8)),
    Setting("AR(.8), AR(.8) inputs", series, bowl, autoregressive(0.8)),
    Setting("half white, half AR(.9)", clock, wave, autoregressive(0.9, 0.5)),
    Setting("MA, triangular", clock, wave, moving_average(5)),
)
SPACE = (
    Setting("independent", square, hill, autoregressive(0.0), spatial=True, n=200),
    Setting("exponential, range .03", square, hill, exponential(0.03), spatial=True, n=200),
    Setting("exponential, range .1", square, hill, exponential(0.1), spatial=True, n=200),
)


@dataclass(frozen=True)
class Truth:
    """Mean and standard deviation of f_hat at the rows, over noise and hidden weights, (n,)."""

    mean: Array
    sd: Array


def truth(setting: Setting) -> Truth:
    r"""Both for a given alpha, from members that are drawn without ulmus.

    With mu and C the mean and the covariance of a member's smoother rows z, the variance is
    :math:`\mu'\Sigma\mu + (tr(\Sigma C) + f'Cf) / M`: noise is integrated out exactly, and the
    excess :math:`tr(\Sigma C) / L` of the square of a mean over L members removed.
    """
    parameters, rng, f = setting.parameters, np.random.default_rng(1), setting.f(setting.X)
    z, square, zf, zf2 = np.zeros((setting.n, setting.n)), *np.zeros((3, setting.n))
    for _ in range(TRUE_MEMBERS):
        one = member_rows(setting.X, parameters, rng)
        z += one / TRUE_MEMBERS
        square += np.sum((setting.root.T @ one) ** 2, axis=0) / TRUE_MEMBERS
        zf += f @ one / TRUE_MEMBERS
        zf2 += (f @ one) ** 2 / TRUE_MEMBERS
    mean2 = np.sum((setting.root.T @ z) ** 2, axis=0)
    unbiased = TRUE_MEMBERS / (TRUE_MEMBERS - 1)
    trace, bias_variation = (square - mean2) * unbiased, (zf2 - zf**2) * unbiased
    variance = mean2 - trace / TRUE_MEMBERS + (trace + bias_variation) / parameters["n_estimators"]
    return Truth(zf, np.sqrt(variance))


def member_rows(X: Array, parameters: dict[str, Any], rng: np.random.Generator) -> Array:
    """Smoother rows z of one member at the training rows, one in each column, shape (n, n)."""
    scale, width = parameters.get("weight_scale", 1.0), parameters["n_neurons"]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    W, b = (scale * rng.uniform(-1, 1, size) for size in ((X.shape[1], width), width))
    H = special.expit(Z @ W + b)
    U, s, _ = np.linalg.svd(H - H.mean(axis=0), full_matrices=False)
    return (U * (s**2 / (s**2 + parameters["alpha"]))) @ U.T + 1 / len(X)
