"""Calibration of predictive distributions under several noise distributions.

Simulations for coverage.py: levels beyond the rows, quantiles, distributions, small samples, and
the shortest intervals. The number of knots and the size of the tails of a shape were chosen on
draws of the first six noises, and the ranks of the shortest intervals by figures of this file. The
last three noises came after that; only the p-value of the test for shapes was raised since.
"""

from collections.abc import Callable, Iterator

import numpy as np
from plain import plain_ensemble
from replication import replicate
from report import Row
from scipy import stats
from settings import Array

from ulmus import ELMEnsembleRegressor
from ulmus.metrics import coverage, crps_quantiles, mean_width

Report = Iterator[str | Row]
POINTS = 400
SD = 0.4


def wave(X: Array) -> Array:
    """A bent sine, 1-D."""
    return np.sin(5 * X[:, 0] ** 1.5) + X[:, 0]


def ridge(X: Array) -> Array:
    """A smooth step across two inputs, a bowl and a slope, 4-D."""
    step = np.tanh(4 * (X[:, 0] + X[:, 1] - 1))
    return step + 3 * (X[:, 2] - 0.5) ** 2 - 0.5 * X[:, 3]


def two_peaks(rng: np.random.Generator, n: int) -> Array:
    peaks = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return (peaks + 0.35 * rng.standard_normal(n)) / np.sqrt(1 + 0.35**2)


def uneven_peaks(rng: np.random.Generator, n: int) -> Array:
    """Three quarters around -0.5 and one quarter around 1.5: mean 0, variance 1."""
    peaks = np.where(rng.random(n) < 0.25, 1.5, -0.5)
    return peaks + 0.5 * rng.standard_normal(n)


def lognormal(rng: np.random.Generator, n: int) -> Array:
    law = stats.lognorm(0.8)
    return (law.rvs(n, random_state=rng) - law.mean()) / law.std()


FUNCTIONS: dict[str, tuple[Callable[[Array], Array], int]] = {"1-D": (wave, 1), "4-D": (ridge, 4)}
# Noises of mean 0 and variance 1.
NOISES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "exponential": lambda rng, n: rng.standard_exponential(n) - 1,
    "t3": lambda rng, n: rng.standard_t(3, n) / np.sqrt(3),
    "lognormal": lognormal,
    "uniform": lambda rng, n: rng.uniform(-np.sqrt(3), np.sqrt(3), n),
    "two peaks": two_peaks,
    "gamma": lambda rng, n: (2 - rng.gamma(2, size=n)) / np.sqrt(2),
    "Laplace": lambda rng, n: rng.laplace(size=n) / np.sqrt(2),
    "uneven peaks": uneven_peaks,
}
# Lengths of the shortest 90 % intervals.
SHORTEST = {"exponential": np.log(10), "normal": 2 * stats.norm.ppf(0.95)}


def simulated(
    name: str, noise: str, n: int, r: int
) -> tuple[ELMEnsembleRegressor, Array, Array, Array]:
    """A fit, points, new observations at them, and their expectations."""
    f, d = FUNCTIONS[name]
    rng = np.random.default_rng([*f"{name}, {noise}".encode(), n, r])
    X, points = rng.random((n, d)), rng.random((POINTS, d))
    y = f(X) + SD * NOISES[noise](rng, n)
    target = f(points) + SD * NOISES[noise](rng, POINTS)
    return plain_ensemble(10, 50, random_state=r).fit(X, y), points, target, f(points)


# --- levels beyond the rows ------------------------------------------------------------------

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999]


def failures(noise: str, n: int, r: int) -> tuple[bool, bool]:
    """Whether the intervals of all levels raise, and whether a higher one ends inside."""
    model, points, *_ = simulated("1-D", noise, n, r)
    try:
        low, high = np.moveaxis(model.predict_interval(points, LEVELS), 1, 0)
    except ValueError:
        return True, False
    return False, bool(np.any(np.diff(low) > 1e-12) or np.any(np.diff(high) < -1e-12))


def levels(jobs: int, replications: int | None) -> Report:
    R = replications or 100
    yield f"Intervals of levels {LEVELS} by 'auto', {R} replications\n"
    for noise in ("exponential", "lognormal"):
        for n in (20, 50, 100, 200):
            raised, crossed = np.mean(replicate(jobs, failures, noise, n, times=R), axis=0)
            name = f"{noise}, n = {n}: fits that raise or whose levels are not nested"
            yield Row(name, raised + crossed, "share", f"{raised:.0%} raise", "<=", 0.0)


# --- quantiles -------------------------------------------------------------------------------

TAUS = [0.05, 0.1, 0.5, 0.9, 0.95]


def shares_below(noise: str, n: int, r: int) -> Array:
    model, points, target, _ = simulated("1-D", noise, n, r)
    return np.mean(target[:, None] <= model.predict_quantiles(points, TAUS), axis=0)


def quantiles(jobs: int, replications: int | None) -> Report:
    R = replications or 300
    yield f"New observations below predicted quantiles, 1-D, {R} replications of {POINTS} points\n"
    yield f"{'noise':<12} {'n':>4} " + " ".join(f"{tau:>6}" for tau in TAUS)
    for noise in ("normal", "exponential"):
        for n in (20, 50, 200):
            below = np.mean(replicate(jobs, shares_below, noise, n, times=R), axis=0)
            yield f"{noise:<12} {n:>4} " + " ".join(f"{b:6.3f}" for b in below)
            gap = float(np.max(np.abs(below - TAUS)))
            source = "worst of five levels"
            yield Row(f"{noise}, n = {n}: |share - level|", gap, "rate", source, "<=", 0.03)


# --- distributions ---------------------------------------------------------------------------

FINE = np.arange(0.005, 1, 0.01)


def distribution_scores(name: str, noise: str, n: int, r: int) -> Array:
    """PIT at three levels; CRPS, and those of quantiles and of a normal; both log scores."""
    model, points, target, _ = simulated(name, noise, n, r)
    law, normal = model.predict_dist(points), stats.norm(*model.predict(points, return_std=True))
    pit = law.cdf(target)
    inside = FINE[(1 / (n + 1) <= FINE) & (n / (n + 1) >= FINE)]
    predictions = [
        law.ppf(inside[:, None]).T,
        model.predict_quantiles(points, inside),
        normal.ppf(inside[:, None]).T,
    ]
    crps = [crps_quantiles(target, q, inside) for q in predictions]
    logs = [np.mean(one.logpdf(target)) for one in (law, normal)]
    return np.array([*(np.mean(pit <= u) for u in (0.05, 0.5, 0.95)), *crps, *logs])


def distribution(jobs: int, replications: int | None) -> Report:
    R = replications or 60
    yield "predict_dist: PIT at .05, .5, .95; CRPS over that of predict_quantiles (q) and of the"
    yield f"normal distribution (g); gain in log score over the normal. {R} replications\n"
    yield f"{'function, noise':<22} {'n':>4} {'PIT':^20} {'/ q':>6} {'/ g':>6} {'log':>7}"
    for name in FUNCTIONS:
        for noise in NOISES:
            for n in (100, 300):
                runs = replicate(jobs, distribution_scores, name, noise, n, times=R)
                pit, crps, logs = np.split(np.mean(runs, axis=0), [3, 6])
                ratios = crps[0] / crps[1:]
                figures = " ".join(f"{v:6.3f}" for v in (*pit, *ratios))
                cell = f"{name}, {noise}"
                yield f"{cell:<22} {n:>4} {figures} {logs[0] - logs[1]:7.4f}"
                gap = float(np.max(np.abs(pit - [0.05, 0.5, 0.95])))
                cell = f"{cell}, n = {n}"
                source = f"CRPS {ratios[0]:.3f} of that of quantiles"
                yield Row(f"{cell}: |PIT - level|", gap, "rate", source, "<=", 0.02)


# --- small samples ---------------------------------------------------------------------------


def gaussian_coverage(name: str, n: int, r: int) -> Array:
    model, points, target, _ = simulated(name, "normal", n, r)
    bounds = model.predict_interval(points, [0.9, 0.95], method="gaussian")
    mean, sd = model.predict(points, return_std=True)
    half = stats.norm.ppf(0.95) * sd
    plain = np.stack([mean - half, mean + half], axis=1)
    return np.array([*coverage(target, bounds), coverage(target, plain)])


def small(jobs: int, replications: int | None) -> Report:
    R = replications or 300
    yield f"method='gaussian' under normal noise, {R} replications of {POINTS} points\n"
    for name in FUNCTIONS:
        for n in (20, 50, 200):
            runs = np.mean(replicate(jobs, gaussian_coverage, name, n, times=R), axis=0)
            source = f"{runs[2]:.3f} with normal quantiles; {runs[1]:.3f} at 95 %"
            yield Row(f"{name}, n = {n}: coverage at 90 %", runs[0], "rate", source, ">=", 0.87)


# --- the shortest intervals ------------------------------------------------------------------


def shortest_scores(name: str, noise: str, n: int, r: int) -> Array:
    """Coverage and width of equal tails and of the shortest, at 90 %, also without the rows."""
    model, points, target, _ = simulated(name, noise, n, r)
    bounds = [model.predict_interval(points, 0.9, shape=s) for s in ("equal", "shortest")]
    bounds.append(model.compress().predict_interval(points, 0.9, tails="shortest"))
    return np.array([*(coverage(target, b) for b in bounds), *map(mean_width, bounds)])


def shortest(jobs: int, replications: int | None) -> Report:
    R = replications or 100
    yield f"tails='shortest' at 90 %, {R} replications; e: equal, s: shortest, c: after compress\n"
    heads = f"{'coverage e, s, c':^20} {'width / e: s, c':^13}"
    yield f"{'function, noise':<22} {'n':>4} {heads} width / oracle's: e, s"
    for name in FUNCTIONS:
        for noise in ("normal", "t3", "uniform", "exponential", "lognormal"):
            for n in (50, 100, 300, 1000):
                runs = replicate(jobs, shortest_scores, name, noise, n, times=R)
                inside, width = np.split(np.mean(runs, axis=0), 2)
                cell = f"{name}, {noise}"
                shown = [*inside, *width[1:] / width[0]]
                if noise in SHORTEST:
                    shown += list(width[:2] / (SD * SHORTEST[noise]))
                yield f"{cell:<22} {n:>4} " + " ".join(f"{v:6.3f}" for v in shown)
                lost = float(inside[0] - inside[1])
                source = f"{inside[1]:.3f} of {inside[0]:.3f}; 1 / sqrt(n) is {n**-0.5:.3f}"
                yield Row(f"{cell}, n = {n}: coverage lost", lost, "rate", source, "<=", n**-0.5)


PARTS: dict[str, Callable[[int, int | None], Report]] = {
    "levels": levels,
    "quantiles": quantiles,
    "distribution": distribution,
    "small": small,
    "shortest": shortest,
}
