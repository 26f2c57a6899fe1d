"""Simulations of default fits: are error bars right where nobody tuned them?

Parts of coverage.py, each with functions of its own: intervals for f and warnings, noise
variances of few rows, standard errors after alpha and the map were chosen, prediction intervals
after a map was learned, and points at the edge of the design. Coverage of observations is exact,
from the distribution of the noise.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from replication import replicate
from report import Row
from scipy import stats

from ulmus import ELMEnsembleRegressor
from ulmus.exceptions import BiasWarning

Array = np.ndarray
Report = Iterator[str | Row]
NOISE = 0.25


class Target(NamedTuple):
    """A function of inputs in [-1, 1], and where it has a step along the first of them."""

    d: int
    f: Callable[[Array], Array]
    step: float | None = None


TARGETS = {
    "smooth": Target(3, lambda X: np.sin(2 * X[:, 0] + X[:, 1]) + 0.5 * X[:, 2] ** 2),
    "additive": Target(5, lambda X: np.sin(2.5 * X[:, 0]) + X[:, 1] ** 2 - np.exp(-X[:, 2]) / 2),
    "nearly linear": Target(4, lambda X: X @ [1, -0.7, 0.4, 0.2] + 0.1 * np.sin(4 * X[:, 0])),
    "zero": Target(3, lambda X: 0 * X[:, 0]),
    "fold": Target(1, lambda X: 2 * np.abs(X[:, 0] - 0.21)),
    "ridge": Target(2, lambda X: np.tanh(5 * (X[:, 0] + 0.6 * X[:, 1] - 0.1))),
    "product": Target(5, lambda X: X[:, 0] * (1.5 * X[:, 1] + X[:, 2] * X[:, 3])),
    "2 of 15": Target(15, lambda X: np.sin(3 * X[:, 1]) + X[:, 4] * X[:, 9]),
    "jump": Target(1, lambda X: 1.5 * (X[:, 0] > 0.13) + 0.5 * X[:, 0], 0.13),
    "jump 2-D": Target(2, lambda X: 1.2 * (X[:, 0] > 0.2) + X[:, 1] ** 2, 0.2),
    "chirp": Target(1, lambda X: np.sin(9 * (X[:, 0] + 1.1) ** 2)),
}
FOLLOWED = [name for name, target in TARGETS.items() if target.step is None and name != "chirp"]


def table(target: Target, n: int, *key: int) -> tuple[Array, Array, Array]:
    """Inputs and points that depend on n alone, and outputs that depend on the key as well."""
    rng = np.random.default_rng([n, target.d])
    X, points = rng.uniform(-1, 1, (n, target.d)), rng.uniform(-0.98, 0.98, (200, target.d))
    noise = NOISE * np.random.default_rng([n, target.d, *key]).standard_normal(n)
    return X, target.f(X) + noise, points


# --- intervals for the function --------------------------------------------------------------


class FunctionRun(NamedTuple):
    """95 % intervals for f and E f_hat (p, 2), f_hat and its se (p,), and whether it warned."""

    function: Array
    expectation: Array
    fit: Array
    se: Array
    warned: bool


def function_run(name: str, n: int, r: int) -> FunctionRun:
    X, y, points = table(TARGETS[name], n, r)
    model = ELMEnsembleRegressor(random_state=r).fit(X, y)
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        function = model.predict_interval(points, kind="confidence")
    expectation = model.predict_interval(points, kind="confidence", target="expectation")
    warned = any(issubclass(item.category, BiasWarning) for item in log)
    se = np.sqrt(model.predict_var(points, "model"))
    return FunctionRun(function, expectation, model.predict(points), se, warned)


def inside(bounds: Array, truth: Array) -> Array:
    """Coverage of (runs, p, 2) bounds at each point."""
    return np.mean((bounds[:, :, 0] <= truth) & (truth <= bounds[:, :, 1]), axis=0)


def function(jobs: int, replications: int | None) -> Report:
    yield "95 % intervals of default fits, noise sd .25; fixed X, new noise and weights. Width of"
    yield "the oracle: pointwise 95 % quantile of |f_hat - f|, twice. Points within .1 of a jump"
    yield "are left out. se/sd: standard error over the sd of f_hat, median over points.\n"
    yield f"{'function':<15} {'n':>5} {'f: mean':>8} {'5 %':>5} {'width':>6} {'oracle':>6} " + (
        f"{'warned':>6} {'E f_hat':>8} {'se/sd':>6}"
    )
    false_warnings = []
    for n in (200, 1000):
        R = replications or (40 if n == 200 else 20)
        for name, target in TARGETS.items():
            runs = replicate(jobs, function_run, name, n, times=R)
            bounds, expectation, fits, ses, warned = (
                np.stack(column) for column in zip(*runs, strict=True)
            )
            points = table(target, n)[2]
            truth = target.f(points)
            away = np.full(len(points), True)
            if target.step is not None:
                away = np.abs(points[:, 0] - target.step) > 0.1
            covered = inside(bounds, truth)[away]
            mean, low = np.mean(covered), np.quantile(covered, 0.05)
            oracle = 2 * np.mean(np.quantile(np.abs(fits - truth), 0.95, axis=0))
            ratio = np.median(np.sqrt(np.mean(ses**2, axis=0)) / np.std(fits, axis=0, ddof=1))
            expected = np.mean(inside(expectation, np.mean(fits, axis=0)))
            width = np.mean(bounds[:, :, 1] - bounds[:, :, 0])
            yield f"{name:<15} {n:>5} {mean:8.3f} {low:5.2f} {width:6.3f} {oracle:6.3f} " + (
                f"{np.mean(warned):6.2f} {expected:8.3f} {ratio:6.2f}"
            )
            what = f"{name}, n = {n}"
            if name in FOLLOWED:
                false_warnings.append(warned)
                yield Row(f"{what}: mean coverage of f", mean, "rate", "95 %", ">=", 0.92)
                yield Row(f"{what}: its 5 % quantile", low, "rate", "over points", ">=", 0.80)
            else:
                yield Row(f"{what}: mean coverage away from it", mean, "rate", "", ">=", 0.90)
                yield Row(
                    f"{what}: misfit warning", np.mean(warned), "rate", "share of fits", ">=", 0.90
                )
    share = float(np.mean(np.concatenate(false_warnings)))
    yield Row(
        "false misfit warnings", share, "rate", "functions that can be represented", "<=", 0.03
    )


# --- few rows: noise variance and standard errors --------------------------------------------


def few_rows_run(name: str, n: int, r: int) -> tuple[float, Array, Array, Array]:
    X, y, points = table(TARGETS[name], n, r)
    model = ELMEnsembleRegressor(random_state=r).fit(X, y)
    bounds = model.predict_interval(points, kind="confidence", target="expectation")
    se = np.sqrt(model.predict_var(points, "model"))
    return model.noise_variance_ / NOISE**2, model.predict(points), se, bounds


def chosen(jobs: int, replications: int | None) -> Report:
    yield "Standard errors and noise variances after alpha and the map were chosen.\n"
    head = f"{'s2/true: least':>15} {'mean':>5} {'se/sd':>6} {'E f_hat':>8}"
    yield f"{'function':<15} {'n':>4} {head}"
    R = replications or 50
    for n in (50, 100, 200, 400):
        least = np.inf
        for name in FOLLOWED:
            runs = replicate(jobs, few_rows_run, name, n, times=R)
            noise, fits, ses, bounds = (np.stack(column) for column in zip(*runs, strict=True))
            ratio = np.median(np.sqrt(np.mean(ses**2, axis=0)) / np.std(fits, axis=0, ddof=1))
            covered = np.mean(inside(bounds, np.mean(fits, axis=0)))
            least = min(least, np.min(noise))
            yield f"{name:<15} {n:>4} {np.min(noise):15.2f} {np.mean(noise):5.2f} " + (
                f"{ratio:6.2f} {covered:8.3f}"
            )
            what = f"{name}, n = {n}"
            yield Row(f"{what}: se over sd", ratio, "ratio", ".95 to 1.08")
            yield Row(f"{what}: coverage of E f_hat", covered, "rate", ".93 to .97")
        yield Row(f"n = {n}: least s2 over the truth", least, "ratio", "", ">=", 0.5)


# --- prediction intervals after a map was learned --------------------------------------------


def mixed(X: Array) -> Array:
    if X.shape[1] == 2:
        return np.sin(2 * X[:, 0]) + X[:, 1] ** 2 * X[:, 0]
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]


def curved(X: Array) -> Array:
    weights = np.array([1, 0.8, -0.6, 0.4, 0.3])[: X.shape[1]]
    inner = X[:, : len(weights)]
    return np.exp(inner @ weights / 2) + np.cos(2 * inner[:, -1])


def linear(X: Array) -> Array:
    return X @ (1 / np.arange(1, X.shape[1] + 1))


METHODS = ("auto", "cv+", "gaussian")


def exact_coverage(bounds: Array, center: Array, sd: float) -> float:
    ends = stats.norm.cdf((bounds - center[:, None]) / sd)
    return float(np.mean(ends[:, 1] - ends[:, 0]))


def tuned_run(f: Callable[[Array], Array], n: int, d: int, r: int) -> Array:
    """Coverage and width of 90 % intervals by each method, (methods, 2)."""
    rng = np.random.default_rng([n, d, r])
    X, points, sd = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, (500, d)), 0.4
    y = f(X) + sd * rng.standard_normal(n)
    model = ELMEnsembleRegressor(random_state=r).fit(X, y)
    methods = METHODS if n < 1000 else ("auto", "gaussian")
    bounds = [model.predict_interval(points, 0.9, method=m) for m in methods]
    return np.array(
        [[exact_coverage(b, f(points), sd), np.mean(b[:, 1] - b[:, 0])] for b in bounds]
    )


def tuned(jobs: int, replications: int | None) -> Report:
    yield "90 % prediction intervals behind learned maps: coverage (width) by method auto, CV+,"
    yield "gaussian; new X each time\n"
    for n in (60, 200, 1000):
        R = replications or (40 if n < 1000 else 12)
        for d in (2, 6, 20):
            for f in (mixed, curved, linear):
                means = np.mean(replicate(jobs, tuned_run, f, n, d, times=R), axis=0)
                cells = [f"{cover:.3f} ({width:.2f})" for cover, width in means]
                what = f"{f.__name__}, n = {n}, d = {d}"
                yield f"{what:<28} " + "  ".join(cells)
                yield Row(f"{what}: coverage", means[0, 0], "rate", ".88 to .92")


# --- the edge of the design, and beyond ------------------------------------------------------


def edge_run(d: int, plain: bool, r: int) -> Array:
    """Coverage of 90 % intervals inside, in corners, and slightly outside; share of warnings."""
    rng = np.random.default_rng([d, r, int(plain)])
    X, sd, size = rng.uniform(-1, 1, (200, d)), 0.3, (300, d)
    y = mixed(X) + sd * rng.standard_normal(200)
    options = {"input_map": None} if plain else {}
    model = ELMEnsembleRegressor(random_state=r, **options).fit(X, y)
    signs = rng.choice([-1.0, 1.0], size)
    locations = (rng.uniform(-1, 1, size), signs * rng.uniform(0.9, 1, size))
    out = []
    for points in (*locations, signs * rng.uniform(1.01, 1.09, size)):
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            bounds = model.predict_interval(points, 0.9)
        out += [exact_coverage(bounds, mixed(points), sd), float(bool(log))]
    return np.array(out)


def edges(jobs: int, replications: int | None) -> Report:
    R = replications or 30
    yield "90 % prediction intervals, n = 200: coverage (share of calls with a warning)\n"
    for plain in (True, False):
        for d in (2, 6, 20):
            means = np.mean(replicate(jobs, edge_run, d, plain, times=R), axis=0)
            cells = [f"{means[i]:.3f} ({means[i + 1]:.2f})" for i in (0, 2, 4)]
            layer = "no map" if plain else "default"
            yield f"{layer:<8} d = {d:<3} inside {cells[0]}  corners {cells[1]}  outside {cells[2]}"


PARTS = {"function": function, "chosen": chosen, "tuned": tuned, "edges": edges}
