"""Error bars of effects over replications: a short version of benchmarks/effects.py."""

import numpy as np
import pytest
from models import plain_ensemble

N_ROWS, TIMES = 200, 150
GRID = np.linspace(-0.9, 0.9, 9)
X = np.random.default_rng(0).uniform(-1, 1, (N_ROWS, 2))
MEAN = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1]
NOISES = {
    "homoskedastic": np.full(N_ROWS, 0.3),
    "heteroskedastic": 0.3 + 0.25 * X[:, 0],
}


def effects(noise, r):
    """Estimates, standard errors and bounds of four effects, and a curve with its band."""
    y = MEAN + NOISES[noise] * np.random.default_rng([1, r]).standard_normal(N_ROWS)
    model = plain_ensemble(5, 30, noise=noise, weight_scale=1.5, random_state=r).fit(X, y)
    frames = [
        model.average(X[X[:, 0] > 0]),
        model.compare(X, {0: (-0.5, 0.5)}),
        model.slope(X, 0),
        model.slope([[0.2, -0.3]], 1),
    ]
    columns = ["estimate", "std_error", "conf_low", "conf_high"]
    rows = [frame[columns].to_numpy()[0] for frame in frames]
    curve = model.partial_dependence(X, 0, grid=GRID, simultaneous=True)
    return np.array(rows), curve[["estimate", "conf_low", "conf_high"]].to_numpy()


@pytest.mark.parametrize("noise", NOISES)
def test_error_bars_of_effects_are_those_of_replications(noise):
    runs = [effects(noise, r) for r in range(TIMES)]
    estimate, se, low, high = np.moveaxis([rows for rows, _ in runs], 2, 0)
    # The standard deviation over 150 replications is known to 6 %: bands of three errors.
    ratio = np.mean(se, axis=0) / np.std(estimate, axis=0, ddof=1)
    assert np.all((ratio > 0.82) & (ratio < 1.2)), ratio
    true_mean = np.mean(estimate, axis=0)
    # A coverage of .95 is known to .018; with so few rows, a chosen alpha costs another .02.
    cover = np.mean((low <= true_mean) & (true_mean <= high), axis=0)
    assert np.all((cover > 0.875) & (cover < 0.995)), cover
    curve, below, above = np.moveaxis([curve for _, curve in runs], 2, 0)
    middle = np.mean(curve, axis=0)
    joint = np.mean(np.all((below <= middle) & (middle <= above), axis=1))
    assert 0.875 < joint < 0.995
