"""Effects: accuracy of standard errors, coverage of intervals, and cost.

Inputs are the same in all replications; noise and hidden weights are drawn anew. The truth is the
standard deviation of an estimate over replications, and their mean is what 95 % intervals for the
expectation should cover. A curve is covered if its simultaneous band contains all of it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import report
from plain import plain_ensemble
from replication import replicate
from report import Row
from timing import best_times, product

from ulmus import ELMEnsembleRegressor

Array = np.ndarray
Report = Iterator[str | Row]
GRID = np.linspace(-0.9, 0.9, 15)


class Setting(NamedTuple):
    """A function on [-1, 1]^d, the standard deviation of its noise, and how it is fitted."""

    f: Callable[[Array], Array]
    sd: Callable[[Array], Array]
    fit: Callable[..., ELMEnsembleRegressor]
    d: int = 3
    n: int = 500


def waves(X: Array) -> Array:
    return np.sin(2.5 * X[:, 0] + X[:, 1]) + 0.5 * X[:, 2] ** 2


def product_of_two(X: Array) -> Array:
    return X[:, 0] * X[:, 1] + np.exp(-X[:, 2])


def hill(X: Array) -> Array:
    return 2 * np.exp(-2 * (X[:, 0] - 0.2) ** 2 - X[:, 1] ** 2) + X[:, 2]


def constant(X: Array) -> Array:
    return np.full(len(X), 0.3)


def varying(X: Array) -> Array:
    """From 0.1 to 0.7."""
    return 0.4 + 0.3 * X[:, 0]


FUNCTIONS = (waves, product_of_two, hill)
FITS = {
    # No map, so that theory holds, and what users get who name nothing.
    ("plain", constant): partial(plain_ensemble, 10, 150),
    ("plain", varying): partial(plain_ensemble, 10, 150, noise="auto"),
    ("plain, heteroskedastic", varying): partial(plain_ensemble, 10, 150, noise="heteroskedastic"),
    ("defaults", constant): ELMEnsembleRegressor,
    ("defaults", varying): ELMEnsembleRegressor,
}
SETTINGS = {
    f"{f.__name__}, {sd.__name__} noise, {how}": Setting(f, sd, fit)
    for (how, sd), fit in FITS.items()
    for f in FUNCTIONS
}


class EstimatedEffects(NamedTuple):
    """Estimates, standard errors and bounds of effects, each (q,), and the band of a curve."""

    estimate: Array
    se: Array
    low: Array
    high: Array
    curve: Array
    band: Array


def one_run(setting: Setting, r: int) -> EstimatedEffects:
    X = np.random.default_rng([setting.d, setting.n]).uniform(-1, 1, (setting.n, setting.d))
    noise = np.random.default_rng([1, r]).standard_normal(setting.n)
    y = setting.f(X) + setting.sd(X) * noise
    model = setting.fit(random_state=r).fit(X, y)
    there = X[(X[:, 0] > 0) & (X[:, 1] > 0)]
    frames = [
        model.average(there),
        model.compare(X, {"x0": (-0.5, 0.5)}),
        model.slope(X, "x0"),
        model.slope(np.array([[0.3, -0.2, 0.1]]), "x1"),
        model.functional([[1.0, -1.0]], [[0.5, 0.5, 0.0], [-0.5, 0.0, 0.3]]),
    ]
    columns = ("estimate", "std_error", "conf_low", "conf_high")
    values = (np.concatenate([frame[column] for frame in frames]) for column in columns)
    curve = model.partial_dependence(X, "x0", grid=GRID, simultaneous=True)
    return EstimatedEffects(*values, curve["estimate"], curve[["conf_low", "conf_high"]].to_numpy())


NAMES = ("average of a region", "difference", "average slope", "slope at a point", "contrast")


def errors(jobs: int, replications: int | None) -> Report:
    times = replications or 400
    yield f"Effects, d = 3, n = 500, {times} replications\n"
    yield f"{'':<44} " + " ".join(f"{name:>22}" for name in NAMES) + "  curve together"
    for name, setting in SETTINGS.items():
        runs = replicate(jobs, one_run, setting, times=times)
        estimate, se, low, high = (np.array([run[i] for run in runs]) for i in range(4))
        ratio = se.mean(axis=0) / estimate.std(axis=0, ddof=1)
        truth = estimate.mean(axis=0)
        cover = np.mean((low <= truth) & (truth <= high), axis=0)
        curves = np.array([run.curve for run in runs])
        band = np.array([run.band for run in runs])
        middle = curves.mean(axis=0)
        inside = (band[:, :, 0] <= middle) & (middle <= band[:, :, 1])
        together = float(np.mean(np.all(inside, axis=1)))
        cells = " ".join(f"{a:>14.2f} / {b:.3f}" for a, b in zip(ratio, cover, strict=True))
        yield f"{name:<44} {cells} {together:>10.3f}"
        source = f"{times} replications"
        yield Row(f"{name}: least sd ratio", float(ratio.min()), "ratio", source, ">=", 0.95)
        yield Row(f"{name}: largest sd ratio", float(ratio.max()), "ratio", source, "<=", 1.08)
        yield Row(f"{name}: least coverage", float(cover.min()), "rate", source, ">=", 0.93)
        yield Row(f"{name}: largest coverage", float(cover.max()), "rate", source, "<=", 0.97)
        yield Row(f"{name}: curve covered", together, "rate", source, ">=", 0.93)


def six_inputs(X: Array) -> Array:
    return np.sin(2 * X[:, 0] + X[:, 1]) + X[:, 2] * X[:, 3] + 0.5 * np.abs(X[:, 4])


# Functions of default fits and their inputs.
LEARNED = {waves: 3, product_of_two: 3, hill: 8, six_inputs: 6}
GROUPS = {"predictions": slice(5, None), "average": 0, "difference": 1, "slopes": slice(2, 5)}


def default_fit_run(f: Callable[[Array], Array], n: int, r: int) -> tuple[Array, Array]:
    """Estimates and standard errors of effects and predictions, noise sd 0.3."""
    d = LEARNED[f]
    rng = np.random.default_rng([d, n])
    X, points = rng.uniform(-1, 1, (n, d)), rng.uniform(-0.95, 0.95, (40, d))
    y = f(X) + 0.3 * np.random.default_rng([2, r]).standard_normal(n)
    model = ELMEnsembleRegressor(random_state=r).fit(X, y)
    frames = [
        model.average(points[points[:, 0] > 0]),
        model.compare(points, {"x0": (-0.5, 0.5)}),
        model.slope(points, "x0"),
        model.slope(points[:2], "x1", by="row"),
    ]
    estimate, se = (np.concatenate([one[c] for one in frames]) for c in ("estimate", "std_error"))
    variance = model.predict_var(points, component="model")
    return np.append(estimate, model.predict(points)), np.append(se, np.sqrt(variance))


def sizes(jobs: int, replications: int | None) -> Report:
    """Standard errors of default fits by the number of rows."""
    times = replications or 60
    yield f"Default fits, {times} replications: estimated over true sd / coverage of E f_hat\n"
    yield f"{'':<26} " + " ".join(f"{name:>13}" for name in GROUPS)
    for n in (100, 200, 500, 1000, 3000):
        rows = []
        for f in LEARNED:
            runs = replicate(jobs, default_fit_run, f, n, times=times)
            estimate, se = (np.array(a) for a in zip(*runs, strict=True))
            true, inside = estimate.std(axis=0, ddof=1), np.abs(estimate - estimate.mean(axis=0))
            cells = []
            for few in GROUPS.values():
                ratio = np.sqrt(np.mean(se[:, few] ** 2) / np.mean(true[few] ** 2))
                cells.append((ratio, np.mean(inside[:, few] < 1.96 * se[:, few])))
            rows.append(cells)
            texts = " ".join(f"{a:>6.2f} / {b:.2f}" for a, b in cells)
            yield f"{f.__name__ + f', n = {n}':<26} {texts}"
        ratios = np.array(rows)[:, :, 0]
        for name, each in zip(GROUPS, ratios.T, strict=True):
            source = f"four functions, {each.min():.2f} to {each.max():.2f}"
            mean = float(np.exp(np.mean(np.log(each))))
            yield Row(f"n = {n}, {name}: mean sd ratio", mean, "ratio", source, ">=", 0.95)


def speed(jobs: int, replications: int | None) -> Report:
    """A long average against predict, and a covariance against its products."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 5))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(2000)
    model = ELMEnsembleRegressor(random_state=0).fit(X, y)
    long = rng.uniform(-1, 1, (1_000_000, 5))
    (average, predict), _ = best_times(
        lambda: model.average(long), lambda: model.predict(long), turns=1
    )
    source = f"{average:.1f} s / {predict:.1f} s"
    yield Row(
        "average of 1,000,000 rows against predict", average / predict, "ratio", source, "<=", 1.5
    )
    points = rng.uniform(-1, 1, (2000, 5))
    task, flops = product()
    (covariance, gemm), _ = best_times(lambda: model.predict_cov(points), task, turns=2)
    needed = covariance_flops(model, 2000)
    ratio = covariance / (needed / (flops / gemm))
    source = f"{covariance:.1f} s for {needed:.1e} operations at {flops / gemm / 1e9:.0f} Gflop/s"
    yield Row("predict_cov of 2000 x 2000 points", ratio, "ratio", source, "<=", 3.0)


def covariance_flops(model: ELMEnsembleRegressor, p: int) -> float:
    """Operations of the products that a covariance of p points is made of."""
    layer, n = model.fitted_.ensemble.layer, model.fitted_.n_rows
    M, N, width = layer.n_members, layer.n_units, layer.width
    coordinates = p * M * N**2  # a triangle
    # Through the rows or through the pairs of members, whichever the fit has chosen.
    through = 2 * n * width * p + n * p**2 if n < width else width**2 * p + width * p**2
    within = 2 * p * M * N**2 + width * p**2
    return coordinates + through + within


PARTS = {"errors": errors, "sizes": sizes, "speed": speed}

if __name__ == "__main__":
    report.simulate("effects.py", __doc__, PARTS)
