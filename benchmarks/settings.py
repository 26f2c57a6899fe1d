"""Functions, noises and designs of the simulations in coverage.py.

Inputs lie in the unit cube. A noise is a distribution of unit variance times a profile over the
inputs, in units of the noise variance that belongs to the function.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ulmus import datasets

Array = np.ndarray


def uniform_inputs(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.random((n, d))


def trapezoidal_inputs(rng: np.random.Generator, n: int, d: int) -> Array:
    """The paper's inputs in one dimension, scaled to [0, 1]."""
    return datasets.trapezoidal_inputs(rng, n) / (2 * np.pi)


def sine(X: Array) -> Array:
    return datasets.sine(2 * np.pi * X)


def hill(X: Array) -> Array:
    """A hill on a wave, 2-D."""
    top = 1.5 * np.exp(-12 * ((X[:, 0] - 0.3) ** 2 + (X[:, 1] - 0.6) ** 2))
    return top + np.sin(3 * X[:, 0] + 2 * X[:, 1])


def swirl(X: Array) -> Array:
    """Products of three inputs."""
    return 2 * np.sin(np.pi * X[:, 0] * X[:, 1]) + np.cos(4 * X[:, 2]) * X[:, 0]


def kink(X: Array) -> Array:
    """A fold, a product and two slopes; two of the eight inputs do nothing."""
    fold = 6 * np.abs(X[:, 0] + X[:, 1] - 1)
    return fold + 4 * X[:, 2] * X[:, 3] + 2 * X[:, 4] - np.exp(X[:, 5])


@dataclass(frozen=True)
class Function:
    """A regression function on the unit cube, and the variance of the noise added to it."""

    name: str
    f: Callable[[Array], Array]
    d: int
    variance: float
    inputs: Callable[[np.random.Generator, int, int], Array] = uniform_inputs


SINE = Function("sine 1-D", sine, 1, datasets.SINE_NOISE_VARIANCE, trapezoidal_inputs)
FRIEDMAN = Function("Friedman 5-D", datasets.friedman, 5, datasets.FRIEDMAN_NOISE_VARIANCE)
HILL = Function("hill 2-D", hill, 2, 0.05)
SWIRL = Function("swirl 3-D", swirl, 3, 0.05)
KINK = Function("kink 8-D", kink, 8, 0.5)


def student(rng: np.random.Generator, n: int) -> Array:
    return rng.standard_t(3, n) / np.sqrt(3)


def exponential(rng: np.random.Generator, n: int) -> Array:
    return rng.standard_exponential(n) - 1


def constant(X: Array) -> Array:
    return np.ones(len(X))


def paper_profile(X: Array) -> Array:
    """The paper's heteroskedastic variance, in units of its homoskedastic one."""
    return datasets.heteroskedastic_variance(X) / datasets.FRIEDMAN_NOISE_VARIANCE


def square_profile(X: Array) -> Array:
    """0.05 + 4 x_4^2 over 0.5, with the last input for want of a fourth."""
    return 0.1 + 8 * X[:, min(3, X.shape[1] - 1)] ** 2


@dataclass(frozen=True)
class Noise:
    """A distribution of unit variance and its profile over the inputs."""

    name: str
    draw: Callable[[np.random.Generator, int], Array]
    profile: Callable[[Array], Array] = constant

    @property
    def model(self) -> dict[str, str]:
        """The parameter ``noise`` of the estimator."""
        flat = self.profile is constant
        return {"noise": "homoskedastic" if flat else "heteroskedastic"}


NORMAL = Noise("homoskedastic", datasets.normal_noise)
UNIFORM = Noise("uniform", datasets.uniform_noise)
PAPER_NOISE = Noise("paper's heterosk.", datasets.normal_noise, paper_profile)
SQUARE_NOISE = Noise(".1 + 8 x^2", datasets.normal_noise, square_profile)
STUDENT = Noise("t3", student)
SKEWED = Noise("exponential", exponential)
NOISES = (NORMAL, PAPER_NOISE, SQUARE_NOISE, STUDENT, SKEWED)


@dataclass(frozen=True)
class Setting:
    """A function, a noise and a number of rows; ``paper`` are the paper's parameters for it."""

    function: Function
    noise: Noise
    n: int
    paper: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.function.name}, n = {self.n}"

    def rng(self, *key: int) -> np.random.Generator:
        """A generator of its own for each setting and key."""
        name = f"{self.name}, {self.noise.name}".encode()
        return np.random.default_rng([*name, *key])

    def inputs(self, rng: np.random.Generator, n: int) -> Array:
        return self.function.inputs(rng, n, self.function.d)

    def fixed_inputs(self, n_points: int) -> tuple[Array, Array]:
        """The same X each time, and points of the same distribution inside its range."""
        rng = self.rng()
        X = self.inputs(rng, self.n)
        points = self.inputs(rng, 20 * n_points)
        inside = np.all((points >= X.min(axis=0)) & (points <= X.max(axis=0)), axis=1)
        return X, points[inside][:n_points]

    def outputs(self, rng: np.random.Generator, X: Array) -> Array:
        variance = self.function.variance * self.noise.profile(X)
        return self.function.f(X) + np.sqrt(variance) * self.noise.draw(rng, len(X))


# Least squares on the hidden layer alone, and residuals for the noise.
LEAST_SQUARES = {
    "fit_intercept": False,
    "standardize": False,
    "noise_variance": "residual",
    "alpha": 0.0,
}
PAPER_SETTINGS = (
    Setting(SINE, UNIFORM, 60, LEAST_SQUARES | {"n_estimators": 10, "n_neurons": 4}),
    Setting(FRIEDMAN, NORMAL, 500, LEAST_SQUARES | {"n_estimators": 5, "n_neurons": 91}),
    Setting(
        FRIEDMAN,
        PAPER_NOISE,
        1000,
        LEAST_SQUARES | {"n_estimators": 5, "n_neurons": 109, "hc": "HC3"},
    ),
)
HOLD_OUTS = (Setting(HILL, NORMAL, 200), Setting(SWIRL, NORMAL, 250), Setting(KINK, NORMAL, 400))


@dataclass(frozen=True)
class SpreadCase:
    """A setting, the paper's re_k for it if there is one, and the target."""

    name: str
    setting: Setting
    alpha: float
    paper: float
    target: float | None = 0.05

    @property
    def parameters(self) -> dict[str, Any]:
        return self.setting.paper | {"alpha": self.alpha}


SPREAD_CASES = (
    SpreadCase("Friedman, plain", PAPER_SETTINGS[1], 0.0, 0.070),
    SpreadCase("Friedman, ridge 6e-6", PAPER_SETTINGS[1], 6e-6, 0.112),
    SpreadCase("sine, plain", PAPER_SETTINGS[0], 0.0, 0.062, target=None),
)
