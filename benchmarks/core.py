"""Speed and memory of the numerical core, beside UncELMe 1.1 and beside the machine's own rate.

``make bench`` runs it on one thread. It is a report, not a test: its exit status is 0 whether or
not a target is reached. ``--only speed`` runs one part, ``--markdown`` prints a Markdown table.
"""

import argparse
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
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits
from UncELMe.elm_ensemble import ELMEnsemble
from UncELMe.elm_estimator import ELM

from ulmus import ELMEnsembleRegressor

D, M, N = 10, 20, 100  # inputs, members, neurons
SHAPE = {"n_estimators": M, "n_neurons": N, "activation": "logistic", "random_state": 0}
# The paper's least squares on raw inputs, which is what UncELMe computes.
PLAIN = {"alpha": 0.0, "fit_intercept": False, "standardize": False, "noise_variance": "residual"}
OURS = {
    "BR": {"variance": "BR"},
    "S2": {"variance": "S2", "noise": "heteroskedastic", "hc": "HC3"},
}
THEIRS = {
    "BR": lambda model: model.homoskedastic_variance()[0],
    "S2": lambda model: model.heteroskedastic_variance("S2", approx=True)[0],
}
STATUS = Path("/proc/self/status")
UNITS = {"x": "{:.1f} x", "ratio": "{:.2f}", "MB": "{:.0f} MB", "share": "{:.0%}"}
UNITS |= {"Gflop/s": "{:.1f} Gflop/s", "difference": "{:.1e}"}
LINE = "{:<51} {:>12} {:>10} {:>8}  {}"


@dataclass(frozen=True)
class Row:
    """One figure; without a target it is there to judge the others by."""

    measure: str
    value: float
    unit: str
    detail: str = ""
    bound: str = ""
    target: float | None = None

    def cells(self) -> list[str]:
        """Measure, figure, target, whether it is reached, and where the figure comes from."""
        show = UNITS[self.unit].format
        if self.target is None:
            return [self.measure, show(self.value), "-", "-", self.detail]
        # np.nan, a figure that could not be measured, reaches nothing.
        holds = {
            ">=": self.value >= self.target,
            "<=": self.value <= self.target,
            "<": self.value < self.target,
        }
        target = UNITS[self.unit].replace(".1f", ".0f").format(self.target)
        reached = "yes" if holds[self.bound] else "NO"
        return [self.measure, show(self.value), f"{self.bound} {target}", reached, self.detail]


# ---------------------------------------------------------------- what is measured


def data(n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (n, D), y (n,) and points (p, D), inputs uniform, noise growing with the first."""
    rng = np.random.default_rng(0)
    X, points = rng.uniform(-1, 1, (n, D)), rng.uniform(-1, 1, (p, D))
    noise = (0.3 + 0.2 * X[:, 0]) * rng.standard_normal(n)
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + noise, points


def our_fit(case: str, X: np.ndarray, y: np.ndarray) -> ELMEnsembleRegressor:
    return ELMEnsembleRegressor(**SHAPE, **PLAIN, **OURS[case]).fit(X, y)


def our_points(model: ELMEnsembleRegressor, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return model.predict(points), model.predict_var(points, component="model")


def their_fit(X: np.ndarray, y: np.ndarray) -> ELMEnsemble:
    return ELMEnsemble(**SHAPE, weight_distr="uniform", weight_scl=1.0).fit(X, y)


def their_points(
    case: str, model: ELMEnsemble, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    return model.predict(points), THEIRS[case](model)


def all_of(library: str, case: str, X: np.ndarray, y: np.ndarray, points: np.ndarray) -> tuple:
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
        theirs = all_of("UncELMe", case, X, y, points)
    pairs = zip(our_points(model, points), theirs, strict=True)
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in pairs)


def dgemm_flops() -> tuple[Callable[[], np.ndarray], float]:
    """A matrix product and the floating point operations in it."""
    A = np.random.default_rng(0).standard_normal((2, 2000, 2000))
    return lambda: A[0] @ A[1], 2 * 2000**3


def fit_flops(n: int) -> float:
    """Hidden layer, rotation to Q, Gram matrices within members and, halved, between them."""
    return 2 * n * D * M * N + 2 * n * M * N**2 + n * M * N**2 + n * M * (M - 1) * N**2


def point_flops(p: int) -> float:
    """Hidden layer, rotation to t, and half of the symmetric form between members."""
    return 2 * p * D * M * N + 2 * p * M * N**2 + p * M * (M - 1) * N**2


# ---------------------------------------------------------------- how it is measured


def best_times(*tasks: Callable[[], object], repeats: int) -> list[float]:
    """Least wall time of each task; they take turns, so that a busy spell hits all of them."""
    best = [np.inf] * len(tasks)
    for _ in range(repeats):
        for i, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def in_fresh_process(function: Callable[..., float], *args: object) -> float:
    """Result of a function in a new interpreter that has imported this file and no more."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *args).result()


def status_mb(field: str) -> float:
    """A field of /proc/self/status in MB. ru_maxrss would not do: it starts at the parent's."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024 / 1e6


def extra_memory(task: Callable[[], object]) -> float:
    """Peak resident memory during a task, above what was resident before, in MB; Linux only."""
    if not STATUS.exists():
        return np.nan
    gc.collect()
    # Memory that was freed but not given back would hide what the task takes.
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = status_mb("VmRSS")
    task()
    return status_mb("VmHWM") - before


def memory_of_all(library: str, case: str, n: int, p: int) -> float:
    all_of(library, case, *data(4 * N, 10))  # one-time costs: BLAS buffers, lazy imports
    table = data(n, p)
    return extra_memory(lambda: all_of(library, case, *table))


def memory_of_points(case: str, n: int, p: int) -> float:
    X, y, points = data(n, p)
    model = our_fit(case, X, y)
    return extra_memory(lambda: model.predict_var(points, component="model"))


def import_time(package: str) -> float:
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code.format(package)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# ---------------------------------------------------------------- the parts of the report


def dgemm() -> Iterator[Row]:
    product, flops = dgemm_flops()
    (seconds,) = best_times(product, repeats=8)
    yield Row("dgemm 2000 x 2000 x 2000", flops / seconds / 1e9, "Gflop/s", f"{seconds:.2f} s")


def speed() -> Iterator[Row]:
    table = data(2000, 2000)
    for case, target in (("BR", 3), ("S2", 5)):
        ours, theirs = best_times(
            lambda case=case: all_of("ulmus", case, *table),
            lambda case=case: all_of("UncELMe", case, *table),
            repeats=4,
        )
        name = f"fit + predict + {case}, n = p = 2000"
        detail = f"{ours:.2f} s, UncELMe {theirs:.2f} s"
        yield Row(f"{name}: faster", theirs / ours, "x", detail, ">=", target)
        same = difference(case, *table)
        yield Row(f"{name}: difference", same, "difference", "relative, same hidden weights")


def memory() -> Iterator[Row]:
    for case in OURS:
        ours, theirs = (
            in_fresh_process(memory_of_all, library, case, 2000, 2000)
            for library in ("ulmus", "UncELMe")
        )
        name = f"fit + predict + {case}, n = p = 2000: less memory"
        detail = f"{ours:.0f} MB, UncELMe {theirs:.0f} MB"
        yield Row(name, theirs / ours, "x", detail, ">=", 8)


def large() -> Iterator[Row]:
    n, few = 20000, 500
    X, y, points = data(n, n)
    model = their_fit(X, y)
    for case in OURS:
        ours, fit, at_one, at_few = best_times(
            lambda case=case: all_of("ulmus", case, X, y, points),
            lambda: their_fit(X, y),
            lambda case=case: their_points(case, model, points[:1]),
            lambda case=case: their_points(case, model, points[:few]),
            repeats=3,
        )
        blocks = fit + at_few * n / few
        at_once = fit + at_one + (at_few - at_one) * (n - 1) / (few - 1)
        name = f"fit + predict + {case}, n = p = {n}"
        detail = f"{ours:.1f} s, UncELMe {fit:.1f} s + {n // few} x {at_few:.1f} s ({few} points)"
        yield Row(f"{name}: faster", blocks / ours, "x", detail, ">=", 40)
        detail = f"UncELMe {at_once:.0f} s if its cost per call, {at_one:.1f} s, is paid once"
        yield Row(f"{name}: all at once", at_once / ours, "x", detail)


def large_memory() -> Iterator[Row]:
    for case in OURS:
        extra = in_fresh_process(memory_of_points, case, 20000, 20000)
        name = f"predict_var {case}, n = p = 20000: extra memory"
        yield Row(name, extra, "MB", "above the fitted model", "<", 300)


def compressed() -> Iterator[Row]:
    sizes = (1000, 50000)
    points = data(1, 1000)[2]
    models = [ELMEnsembleRegressor(**SHAPE).fit(*data(n, 1)[:2]).compress() for n in sizes]
    few, many = best_times(*(lambda m=m: m.predict_var(points) for m in models), repeats=15)
    name = "compressed, n = 50000 / 1000: predict_var time"
    detail = f"{1e3 * many:.0f} ms / {1e3 * few:.0f} ms for 1000 points, default settings"
    yield Row(name, max(many / few, few / many), "ratio", detail, "<=", 1.2)
    size = max(len(pickle.dumps(m)) for m in models) / 1e6
    yield Row("compressed: pickle", size, "MB", f"M = {M}, N = {N}", "<", 40)


def efficiency() -> Iterator[Row]:
    n = 20000
    X, y, points = data(n, n)
    product, flops = dgemm_flops()
    for case in OURS:
        model = our_fit(case, X, y)
        gemm, fit, at_points = best_times(
            product,
            lambda case=case: our_fit(case, X, y),
            lambda model=model: model.predict_var(points, component="model"),
            repeats=4,
        )
        rate = flops / gemm
        for name, count, seconds in (
            (f"fit {case}, n", fit_flops(n), fit),
            (f"predict_var {case}, p", point_flops(n), at_points),
        ):
            share = count / seconds / rate
            detail = f"{count / 1e9:.1f} Gflop in {seconds:.2f} s, dgemm {rate / 1e9:.1f} Gflop/s"
            yield Row(f"{name} = {n}: share of dgemm rate", share, "share", detail, ">=", 0.5)


def imports() -> Iterator[Row]:
    pairs = [(import_time("ulmus"), import_time("sklearn")) for _ in range(6)]
    ours, theirs = np.min(pairs[1:], axis=0)  # the first pair warms the disk cache
    detail = f"{ours:.2f} s / {theirs:.2f} s, without the interpreter's start"
    yield Row("import ulmus / import sklearn", ours / theirs, "ratio", detail, "<", 1.5)


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "speed": speed,
    "memory": memory,
    "large": large,
    "large-memory": large_memory,
    "compressed": compressed,
    "efficiency": efficiency,
    "imports": imports,
}


# ---------------------------------------------------------------- the report


def machine() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return f"{next(names, platform.processor() or platform.machine())}, {os.cpu_count()} cores"


def one_thread() -> str:
    """Hold BLAS to one thread, here and in new processes; say how many it had."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    had = max((pool["num_threads"] for pool in pools), default=1)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    threadpool_limits(1)
    blas = next(
        (f"{p['internal_api']} {p['version']} ({p.get('architecture')})" for p in pools), "?"
    )
    return f"{blas}, 1 thread" + (f" (had {had}; limited for this run)" if had > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, help="run one part")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    options = parser.parse_args()
    versions = ", ".join(f"{name} {version(name)}" for name in ("ulmus", "UncELMe", "numpy"))
    today, blas = datetime.date.today().isoformat(), one_thread()
    command = " ".join(["benchmarks/core.py", *(["--only", options.only] if options.only else [])])
    titles = ["measure", "figure", "target", "reached", "from"]
    if options.markdown:
        titles = ["command", "machine", "date", *titles]
        print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
    else:
        print(f"{machine()}, load {os.getloadavg()[0]:.1f}\n{versions}; {blas}\n{today}")
        print(f"d = {D}, M = {M}, N = {N}; least wall time of several turns\n")
        print(LINE.format(*titles))
    for part in (dgemm, *([PARTS[options.only]] if options.only else PARTS.values())):
        for row in part():
            cells = row.cells()
            if options.markdown:
                print(f"| {' | '.join([f'`{command}`', machine(), today, *cells])} |", flush=True)
            else:
                print(LINE.format(*cells), flush=True)


if __name__ == "__main__":
    main()
