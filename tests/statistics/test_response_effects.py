"""Standard errors of effects on the scale of y, over replications of skewed and counted targets."""

import numpy as np
import pytest
from models import plain_ensemble

N_ROWS, TIMES = 200, 150
X = np.random.default_rng(0).uniform(-1, 1, (N_ROWS, 2))
ETA = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1]


def lognormal(rng):
    """Noise of standard deviation 1 on the scale of the logarithm."""
    return np.exp(ETA + rng.standard_normal(N_ROWS))


def counts(rng):
    """Poisson counts with a mean of about 3."""
    return rng.poisson(np.exp(1 + ETA)).astype(float)


def amounts(rng):
    """Sums of a random number of gamma variables: 35 % of them are zero."""
    mean = np.exp(0.3 + ETA)
    number = rng.poisson(0.9 * np.sqrt(mean))
    size = mean / (0.9 * np.sqrt(mean))
    return np.where(number > 0, rng.gamma(np.maximum(2 * number, 1), size / 2), 0.0)


TARGETS = {
    "lognormal": (lognormal, {"target_transform": "log"}),
    "counts": (counts, {"target_kind": "count"}),
    "amounts": (amounts, {"target_transform": "log"}),
}


def effects(target, r):
    """Estimates, standard errors and bounds of four effects, and whether y is zero."""
    draw, how = TARGETS[target]
    y = draw(np.random.default_rng([1, r]))
    layer = {"activation": "tanh", "weight_distribution": "normal", "weight_scale": "auto"}
    model = plain_ensemble(4, 40, alpha=0.1, random_state=r, **layer, **how).fit(X, y)
    frames = [
        model.average(X),
        model.compare(X, {0: (-0.5, 0.5)}),
        model.compare(X, {0: (-0.5, 0.5)}, comparison="ratio"),
        model.slope(X, 0),
    ]
    columns = ["estimate", "std_error", "conf_low", "conf_high"]
    return np.array([frame[columns].to_numpy()[0] for frame in frames]), np.mean(y == 0)


@pytest.mark.parametrize("target", TARGETS)
def test_error_bars_of_means_of_y_are_those_of_replications(target):
    runs = [effects(target, r) for r in range(TIMES)]
    estimate, se, low, high = np.moveaxis([rows for rows, _ in runs], 2, 0)
    if target == "amounts":
        assert 0.3 < np.mean([zeros for _, zeros in runs]) < 0.4
    # The standard deviation over 150 replications is known to 6 %, or to 9 % if it is skewed:
    # bands of three errors.
    ratio = np.sqrt(np.mean(se**2, axis=0)) / np.std(estimate, axis=0, ddof=1)
    assert np.all((ratio > 0.8) & (ratio < 1.25)), ratio
    assert 0.83 < ratio[0] < 1.2
    # Ratios of means are skewed, and their logarithms are not.
    logs = np.std(np.log(estimate[:, 2]), ddof=1)
    assert 0.83 < np.sqrt(np.mean((se[:, 2] / estimate[:, 2]) ** 2)) / logs < 1.2
    true_mean = np.mean(estimate, axis=0)
    # A coverage of .95 is known to .018; skewness costs up to .04.
    cover = np.mean((low <= true_mean) & (true_mean <= high), axis=0)
    assert np.all((cover > 0.855) & (cover < 0.995)), cover
