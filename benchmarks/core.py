"""Speed and memory of the numerical core, beside UncELMe 1.1 and beside the machine's own rate.

``make bench`` runs it on one thread. It is a report, not a test: its exit status is 0 whether or
not a target is reached. ``--only speed`` runs one part, ``--markdown`` prints a Markdown table.
"""

import ctypes
import datetime
import gc
import multiprocessing
import os
import pickle
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import numpy as np
import report
from plain import plain_ensemble
from report import Row, machine
from sklearn.linear_model import Ridge
from timing import best_times, dgemm, one_thread, product, seconds
from UncELMe.elm_ensemble import ELMEnsemble
from UncELMe.elm_estimator import ELM

from ulmus import ELMEnsembleRegressor

D, M, N = 10, 20, 100  # inputs, members, neurons
SHAPE = {"n_estimators": M, "n_neurons": N, "activation": "logistic", "random_state": 0}
# The paper's least squares on raw inputs, which is what UncELMe computes.
LEAST_SQUARES = {
    "alpha": 0.0,
    "fit_intercept": False,
    "standardize": False,
    "noise_variance": "residual",
}
OURS = {
    "BR": {"variance": "BR"},
    "S2": {"variance": "S2", "noise": "heteroskedastic", "hc": "HC3"},
}
THEIRS = {
    "BR": lambda model: model.homoskedastic_variance()[0],
    "S2": lambda model: model.heteroskedastic_variance("S2", approx=True)[0],
}
LIBRARIES = ("ulmus", "UncELMe")


def data(n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (n, D), y (n,) and points (p, D); the noise grows with the first input."""
    rng = np.random.default_rng(0)
    X, points = rng.uniform(-1, 1, (n, D)), rng.uniform(-1, 1, (p, D))
    noise = (0.3 + 0.2 * X[:, 0]) * rng.standard_normal(n)
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + noise, points


def our_fit(case: str, X: np.ndarray, y: np.ndarray) -> ELMEnsembleRegressor:
    return plain_ensemble(**SHAPE, **LEAST_SQUARES, **OURS[case]).fit(X, y)


def our_points(model: ELMEnsembleRegressor, points: np.ndarray) -> list[np.ndarray]:
    return [model.predict(points), model.predict_var(points, component="model")]


def their_fit(X: np.ndarray, y: np.ndarray) -> ELMEnsemble:
    return ELMEnsemble(**SHAPE, weight_distr="uniform", weight_scl=1.0).fit(X, y)


def their_points(case: str, model: ELMEnsemble, points: np.ndarray) -> list[np.ndarray]:
    return [model.predict(points), THEIRS[case](model)]


def everything(library: str, case: str, X: np.ndarray, y: np.ndarray, points: np.ndarray) -> list:
    """Fit, predictions and variances, by one of the two libraries."""
    if library == "ulmus":
        return our_points(our_fit(case, X, y), points)
    return their_points(case, their_fit(X, y), points)


def difference(case: str, X: np.ndarray, y: np.ndarray, points: np.ndarray) -> float:
    """Largest relative difference of predictions and variances on the same hidden weights."""
    model = our_fit(case, X, y)
    layers = zip(model.hidden_weights_, model.hidden_biases_, strict=True)

    def same_weights(elm: ELM) -> None:
        elm.coef_hidden_, elm.intercept_hidden_ = next(layers)

    with mock.patch.object(ELM, "_weight_draw", same_weights):
        theirs = everything("UncELMe", case, X, y, points)
    pairs = zip(our_points(model, points), theirs, strict=True)
    return max(float(np.max(np.abs(ours / other - 1))) for ours, other in pairs)


# Only what any implementation of this algebra needs, and of symmetric matrices only half. The
# pairs are those of distinct members: the blocks on the diagonal are in neither BR nor S2.
def fit_flops(n: int) -> int:
    """Hidden layer, rotation of the features to Q, Gram matrices of members and of pairs."""
    return 2 * n * D * M * N + 2 * n * M * N**2 + n * M * N**2 + n * M * (M - 1) * N**2


def point_flops(p: int) -> int:
    """Hidden layer, rotation to t, and the form over pairs of members."""
    return 2 * p * D * M * N + 2 * p * M * N**2 + p * M * (M - 1) * N**2


def in_fresh_process(function: Callable, *args: object) -> tuple[float, float]:
    """Result of a function in a new interpreter that has imported this file and no more."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(function, *args).result()


def status_mb(field: str) -> float:
    """A field of /proc/self/status in MB. ru_maxrss would not do: it starts at the parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(field))


def extra_memory(task: Callable[[], object]) -> tuple[float, float]:
    """Peak resident memory (MB) above what was resident before, Linux only; and wall time."""
    if sys.platform != "linux":
        return np.nan, seconds(task)
    gc.collect()
    # Memory that was freed but not given back would hide what the task takes.
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = status_mb("VmRSS")
    wall = seconds(task)
    return status_mb("VmHWM") - before, wall


def memory_of_everything(library: str, case: str, n: int) -> tuple[float, float]:
    everything(library, case, *data(4 * N, 10))  # what is paid once: BLAS buffers, late imports
    return extra_memory(partial(everything, library, case, *data(n, n)))


def memory_of_points(case: str, n: int) -> tuple[float, float]:
    X, y, points = data(n, n)
    model = our_fit(case, X, y)
    return extra_memory(partial(model.predict_var, points, component="model"))


def import_time(package: str) -> float:
    code = f"import time; t = time.perf_counter(); import {package}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def speed() -> Iterator[Row]:
    table = data(2000, 2000)
    for case, target in (("BR", 3), ("S2", 5)):
        tasks = [partial(everything, library, case, *table) for library in LIBRARIES]
        ours, theirs = best_times(*tasks, turns=6).min(axis=0)
        name = f"fit + predict + {case}, n = p = 2000"
        source = f"{ours:.2f} s, UncELMe {theirs:.2f} s"
        yield Row(f"{name}: faster", theirs / ours, "x", source, ">=", target)
        source = "largest relative one, on the same hidden weights"
        yield Row(f"{name}: difference", difference(case, *table), "difference", source)


def memory() -> Iterator[Row]:
    for case, target in (("BR", 3), ("S2", 5)):
        fresh = partial(in_fresh_process, memory_of_everything)
        runs = [[fresh(library, case, 2000) for library in LIBRARIES] for _ in range(3)]
        (ours, our_wall), (theirs, their_wall) = np.min(runs, axis=0)
        name = f"fit + predict + {case}, n = p = 2000"
        source = f"{ours:.0f} MB, UncELMe {theirs:.0f} MB"
        yield Row(f"{name}: less memory", theirs / ours, "x", source, ">=", 8)
        source = f"{our_wall:.2f} s, UncELMe {their_wall:.2f} s, in a fresh process"
        yield Row(f"{name}: faster, first run", their_wall / our_wall, "x", source, ">=", target)


def large() -> Iterator[Row]:
    n, few = 20000, 500  # all points at once would take UncELMe more than 64 GB
    X, y, points = data(n, n)
    model = their_fit(X, y)
    for case in OURS:
        first, second = best_times(
            partial(everything, "ulmus", case, X, y, points),
            partial(their_fit, X, y),
            partial(their_points, case, model, points[:1]),
            partial(their_points, case, model, points[:few]),
            turns=2,
        )
        best = np.minimum(first, second)
        name = f"fit + predict + {case}, n = p = {n}: faster"
        for label, (ours, fit, _, some) in ((name, best), (f"{name}, first run", first)):
            source = f"{ours:.1f} s, UncELMe {fit:.1f} s + {n // few} x {some:.1f} s, {few} points"
            yield Row(label, (fit + some * n / few) / ours, "x", source, ">=", 40)
        ours, fit, one, some = best
        at_once = fit + one + (some - one) * (n - 1) / (few - 1)
        source = f"UncELMe {at_once:.0f} s if its cost per call, {one:.1f} s, were paid only once"
        yield Row(f"{name}, in one call", at_once / ours, "x", source)


def large_memory() -> Iterator[Row]:
    for case in OURS:
        extra, wall = in_fresh_process(memory_of_points, case, 20000)
        name = f"predict_var {case}, n = p = 20000: extra memory"
        yield Row(name, extra, "MB", f"above the fitted model, {wall:.1f} s", "<", 300)


def compressed() -> Iterator[Row]:
    points = data(1, 1000)[2]
    tables = (data(n, 1)[:2] for n in (1000, 50000))
    models = [plain_ensemble(**SHAPE).fit(X, y).compress() for X, y in tables]
    tasks = (partial(m.predict_var, points) for m in models)
    few, many = best_times(*tasks, turns=10).min(axis=0)
    source = f"{1e3 * many:.0f} ms / {1e3 * few:.0f} ms for 1000 points, plain layer"
    name = "compressed, n = 50000 / n = 1000: predict_var time"
    yield Row(name, max(many / few, few / many), "ratio", source, "<=", 1.2)
    size = max(len(pickle.dumps(m)) for m in models) / 1e6
    yield Row("compressed: pickle", size, "MB", f"M = {M}, N = {N}, plain layer", "<", 40)


def efficiency() -> Iterator[Row]:
    n = 20000
    X, y, points = data(n, n)
    task, flops = product()
    for case in OURS:
        model = our_fit(case, X, y)
        variance = partial(model.predict_var, points, component="model")
        walls = best_times(task, partial(our_fit, case, X, y), variance, turns=2).min(axis=0)
        rate = flops / walls[0]
        names = (f"fit {case}, n = {n}", f"predict_var {case}, p = {n}")
        counts = (fit_flops(n), point_flops(n))
        for name, count, wall in zip(names, counts, walls[1:], strict=True):
            source = f"{count / 1e9:.1f} Gflop in {wall:.2f} s, dgemm {rate / 1e9:.1f} Gflop/s"
            target = 0.55 if name.startswith("fit S2") else 0.5
            yield Row(f"{name}: of dgemm rate", count / wall / rate, "share", source, ">=", target)


# Rows, neurons and members of fits whose cost is compared with ridge regression.
SHAPES = ((1000, 100, 20), (1000, 1000, 10), (5000, 1000, 10), (20000, 300, 20), (100000, 100, 20))


def hidden_features(X: np.ndarray, n_neurons: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    W, b = rng.uniform(-1, 1, (D, n_neurons)), rng.uniform(-1, 1, n_neurons)
    return 1 / (1 + np.exp(-(X @ W + b)))


def wide() -> Iterator[Row]:
    """Fits by leave-one-out with BR, beside scikit-learn's Ridge on the same features."""
    task, flops = product()
    rate = flops / best_times(task, turns=3).min()
    for n, neurons, members in SHAPES:
        X, y, _ = data(n, 1)
        H = hidden_features(X, neurons)
        model = plain_ensemble(members, neurons, random_state=0)
        ridge, ours = (
            partial(Ridge(alpha=1e-3, solver="cholesky").fit, H, y),
            partial(model.fit, X, y),
        )
        one = min(seconds(ridge) for _ in range(5))
        wall = min(seconds(ours) for _ in range(2))
        pairs = n * neurons**2 * members * (members - 1) / rate
        both = members * one + pairs
        name = f"fit n = {n}, N = {neurons}, M = {members}: time over M ridge fits and pairs"
        source = f"{wall:.2f} s / ({members * one:.2f} s + {pairs:.2f} s)"
        yield Row(name, wall / both, "x", source, "<=", 8)
        name = f"fit n = {n}, N = {neurons}, M = {members}: less pairs, over M ridge fits"
        yield Row(name, (wall - pairs) / (members * one), "x", source)


def calls() -> Iterator[Row]:
    """Intervals after a fit: the second one for a function, and many points after many rows."""
    X, y, points = data(1000, 100)
    model = plain_ensemble(10, 1000, random_state=0).fit(X, y)
    first, second = (seconds(partial(function_intervals, model, points)) for _ in range(2))
    name = "confidence for 100 points, N = 1000, M = 10: later calls"
    yield Row(name, second, "s", f"first call {first:.1f} s", "<", 0.5)
    X, y, points = data(100_000, 1000)
    model = plain_ensemble(M, N, random_state=0).fit(X, y)
    start = time.process_time()
    model.predict_interval(points)
    name = "predict_interval of 1000 points, n = 100000: processor time"
    yield Row(name, time.process_time() - start, "s", "method='auto'", "<", 3)
    start = time.process_time()
    model.predict_interval(points, method="jackknife+")
    yield Row(name, time.process_time() - start, "s", "method='jackknife+'")


def function_intervals(model: ELMEnsembleRegressor, points: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.predict_interval(points, kind="confidence")


def alpha_members() -> Iterator[Row]:
    """Error of predictions whose ridge parameter few members chose, over that of all."""
    errors = {count: [] for count in (1, 2, 5, M)}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, points = rng.uniform(-1, 1, (300, 5)), rng.uniform(-1, 1, (500, 5))
        f, truth = (np.sin(3 * A[:, 0]) + A[:, 1] * A[:, 2] for A in (X, points))
        y = f + 0.3 * rng.standard_normal(300)
        for count in errors:
            with mock.patch("ulmus.core.ridge.alpha.ALPHA_MEMBERS", count):
                model = plain_ensemble(M, N, random_state=seed).fit(X, y)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                errors[count].append(np.sqrt(np.mean((model.predict(points) - truth) ** 2)))
    for count in (1, 2, 5):
        ratio = np.mean(errors[count]) / np.mean(errors[M])
        source = f"alpha by {count} of {M} members, n = 300, d = 5, 40 tables"
        yield Row(f"error with alpha chosen by {count} members over all", ratio, "rate", source)


def imports() -> Iterator[Row]:
    walls = [(import_time("ulmus"), import_time("sklearn")) for _ in range(5)]
    ours, theirs = np.min(walls, axis=0)
    source = f"{ours:.2f} s / {theirs:.2f} s, start of the interpreter not counted"
    yield Row("import ulmus / import sklearn: time", ours / theirs, "ratio", source, "<", 1.5)


PARTS = (
    speed,
    memory,
    large,
    large_memory,
    compressed,
    efficiency,
    wide,
    calls,
    alpha_members,
    imports,
)


def header(threads: str) -> Iterator[str]:
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    versions = [f"{name} {version(name)}" for name in ("ulmus", "UncELMe", "numpy")]
    load = os.getloadavg()[0]
    busy = "; other jobs are running, so the times are too long" if load > 1 else ""
    yield f"{machine()}, {datetime.date.today()}, load at the start {load:.1f}{busy}"
    yield f"Python {platform.python_version()}, {', '.join(versions)}"
    yield f"{blas['name']} {blas['version']}, {threads}"
    yield f"d = {D}, M = {M}, N = {N}; times are the least of several runs\n"


def main() -> None:
    options = report.parser(__doc__, [part.__name__ for part in PARTS]).parse_args()
    report.print_parts("core.py", options, header(one_thread()), (dgemm, *PARTS))


if __name__ == "__main__":
    main()
