"""Do intervals follow a noise whose standard deviation varies tenfold, and at what price if not?

Test points are put into ten bins of equal count by their true noise, and the coverage of 90 %
intervals is computed exactly in each. Functions live on the unit cube, as in settings.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from plain import plain_ensemble
from scipy import stats
from settings import constant, hill, sine, student, swirl

from ulmus import ELMEnsembleRegressor, datasets
from ulmus.metrics import mean_width

Array = np.ndarray
LEVEL, BINS, TEST_POINTS = 0.9, 10, 1000


def six(X: Array) -> Array:
    """A function of six inputs that does not depend on the last two."""
    return swirl(X) + X[:, 3]


def slope(X: Array) -> Array:
    return X[:, 0]


def product(X: Array) -> Array:
    return 0.5 + 0.5 * (2 * X[:, 0] - 1) * (2 * X[:, 1] - 1)


def last(X: Array) -> Array:
    """The last input, on which the mean does not depend."""
    return X[:, -1]


def bump(X: Array) -> Array:
    return np.exp(-(((X[:, 0] - 0.5) / 0.2) ** 2))


@dataclass(frozen=True)
class NoiseSetting:
    """A mean on the unit cube, and the profile of its noise: log sd between 0 and log 10.

    ``profile`` goes from 0 to 1; ``constant`` is a noise of one sd. ``draw`` has unit variance.
    """

    d: int
    f: Callable[[Array], Array]
    profile: Callable[[Array], Array]
    n: int = 500
    draw: Callable[[np.random.Generator, int], Array] = datasets.normal_noise

    @property
    def name(self) -> str:
        heavy = " of t3" if self.draw is student else ""
        return f"{self.d}-D, n = {self.n}, {self.profile.__name__}{heavy}"

    def sd(self, X: Array) -> Array:
        """Standard deviation of the noise, about a third of the function's where it is middling."""
        share = 0.5 if self.profile is constant else self.profile(X)
        return 0.3 * 10.0 ** (share - 0.5) * np.ones(len(X))

    def table(self, r: int) -> tuple[Array, Array, Array]:
        """Training rows, their outputs, and points."""
        rng = np.random.default_rng([*self.name.encode(), r])
        X, points = rng.random((self.n, self.d)), rng.random((TEST_POINTS, self.d))
        return X, self.f(X) + self.sd(X) * self.draw(rng, self.n), points

    def covered(self, points: Array, bounds: Array) -> Array:
        """Probability that a new observation lies between the bounds (p, 2) at each point."""
        law = stats.t(3, scale=3**-0.5) if self.draw is student else stats.norm
        low, high = ((bounds[:, i] - self.f(points)) / self.sd(points) for i in (0, 1))
        return law.cdf(high) - law.cdf(low)


def in_bins(values: Array, order: Array) -> Array:
    """Means of values in bins of equal count along an order."""
    return np.array([part.mean() for part in np.array_split(values[np.argsort(order)], BINS)])


def scores(setting: NoiseSetting, model: object, points: Array) -> Array:
    """Coverage in each bin, then coverage, width and mean log density of new observations."""
    bounds = model.predict_interval(points, LEVEL)
    covered = setting.covered(points, bounds)
    mean, sd = model.predict(points, return_std=True)
    true_sd = setting.sd(points)
    square = (mean - setting.f(points)) ** 2 + true_sd**2
    density = -np.mean(np.log(sd) + 0.5 * square / sd**2 + 0.5 * np.log(2 * np.pi))
    bins = in_bins(covered, true_sd)
    return np.array([*bins, covered.mean(), mean_width(bounds), density])


def model_scores(setting: NoiseSetting, plain: bool, noise: str, r: int) -> Array:
    """Scores of one fit, on the plain layer or with the defaults."""
    X, y, points = setting.table(r)
    make = plain_ensemble if plain else ELMEnsembleRegressor
    return scores(setting, make(noise=noise, random_state=r).fit(X, y), points)


VARYING = (
    NoiseSetting(1, sine, slope),
    NoiseSetting(1, sine, bump),
    NoiseSetting(2, hill, slope),
    NoiseSetting(2, hill, product),
    NoiseSetting(2, sine, last),
    NoiseSetting(2, hill, bump),
    NoiseSetting(6, six, slope),
    NoiseSetting(6, six, product),
    NoiseSetting(6, six, last),
    NoiseSetting(6, six, bump),
)
CONSTANT = (
    NoiseSetting(1, sine, constant),
    NoiseSetting(2, hill, constant),
    NoiseSetting(6, six, constant),
    NoiseSetting(6, six, constant, draw=student),
)
