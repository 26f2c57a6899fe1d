"""Fits beside busy processes, and on two cores: what threads cost and gain.

Environment variables that limit the threads of BLAS are removed. The processes that keep the cores
busy are started here, and end with the measurement: other work on the machine is disturbed for
about a minute. ``--only jobs`` runs one part, ``--markdown`` prints a Markdown table.
"""

import itertools
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import report
import timing
from core import in_fresh_process
from report import Row
from threadpoolctl import threadpool_limits

from ulmus import ELMEnsembleRegressor

D = 8  # inputs
POINTS = 1000  # points of an interval
SPINNING, LONGEST = 2, 300  # busy processes, and seconds after which they end by themselves
PRODUCTS = (250, 500, 1000, 2000, 4000)  # rows of products with 500 features, as in a fit

Times = np.ndarray  # wall and processor time


def table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3])
    return X, f + 0.3 * rng.normal(size=n)


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@contextmanager
def busy_cores(n: int) -> Iterator[None]:
    """Processes that each keep a core busy."""
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=spin, args=(LONGEST,), daemon=True) for _ in range(n)]
    for process in processes:
        process.start()
    time.sleep(2.0)  # until they have started
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


@contextmanager
def no_limits() -> Iterator[None]:
    """New processes have the default number of threads."""
    names = [name for name in os.environ if name.endswith("_NUM_THREADS")]
    limits = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(limits)


def both_times(task: Callable[[], object]) -> Times:
    wall, processor = time.perf_counter(), time.process_time()
    task()
    return np.array([time.perf_counter() - wall, time.process_time() - processor])


def fit_times(n: int, n_jobs: int | None, turns: int) -> tuple[Times, Times]:
    """Least times of a default fit, and of its first prediction intervals."""
    X, y = table(n)
    points = np.clip(table(POINTS, seed=1)[0], -1, 1)
    fits, intervals = [], []
    for _ in range(turns):
        model = ELMEnsembleRegressor(random_state=0, n_jobs=n_jobs)
        fits.append(both_times(partial(model.fit, X, y)))
        intervals.append(both_times(partial(model.predict_interval, points)))
    return np.min(fits, axis=0), np.min(intervals, axis=0)


def neighbours() -> Iterator[Row]:
    n = 200
    quiet = in_fresh_process(fit_times, n, None, 2)
    with busy_cores(SPINNING):
        busy = in_fresh_process(fit_times, n, None, 2)
    for name, (wall, processor), (alone, own) in zip(
        ("default fit", "default fit and intervals"),
        (busy[0], sum(busy)),
        (quiet[0], sum(quiet)),
        strict=True,
    ):
        title = f"{name}, n = {n}, beside {SPINNING} spinning processes / quiet"
        source = f"{wall:.2f} s / {alone:.2f} s"
        yield Row(f"{title}: wall", wall / alone, "ratio", source, "<=", 3.0)
        source = f"{processor:.2f} s / {own:.2f} s"
        yield Row(f"{title}: processor", processor / own, "ratio", source, "<=", 1.2)


def jobs() -> Iterator[Row]:
    for n, target in ((300, None), (2000, 1.5)):
        one, two = (in_fresh_process(fit_times, n, n_jobs, 2) for n_jobs in (1, 2))
        names = "fit", "intervals", "both"
        for name, alone, shared in zip(names, (*one, sum(one)), (*two, sum(two)), strict=True):
            source = f"wall {shared[0]:.2f} s, n_jobs=1 {alone[0]:.2f} s; "
            source += f"processor {shared[1]:.2f} s, {alone[1]:.2f} s"
            bound = {"bound": ">=", "target": target} if target and name != "intervals" else {}
            title = f"{name}, n = {n}, n_jobs=2 / 1: faster"
            yield Row(title, alone[0] / shared[0], "ratio", source, **bound)


def product_times(n: int, threads: int) -> float:
    """Median time of the Gram matrix of n rows, by one product or by two tasks of half the rows."""
    A = np.random.default_rng(0).normal(size=(n, 500))
    with threadpool_limits(threads, user_api="blas"):
        A.T @ A
        times = []
        for _ in range(min(200, 10 + 100_000 // n)):
            times.append(timing.seconds(lambda: A.T @ A))
    return float(np.median(times))


def products() -> Iterator[Row]:
    for busy, n in itertools.product((0, SPINNING), PRODUCTS):
        with busy_cores(busy):
            one, two = (in_fresh_process(product_times, n, threads) for threads in (1, 2))
        beside = f"beside {busy} spinning processes" if busy else "quiet"
        name = f"A'A, A {n} x 500, {beside}: 2 BLAS threads / 1: faster"
        yield Row(name, one / two, "ratio", f"{1e3 * two:.2f} ms, {1e3 * one:.2f} ms")


PARTS = (neighbours, jobs, products)


def main() -> None:
    options = report.parser(__doc__, [part.__name__ for part in PARTS]).parse_args()
    with no_limits():
        report.print_parts("threads.py", options, (), (timing.dgemm, *PARTS))


if __name__ == "__main__":
    main()
