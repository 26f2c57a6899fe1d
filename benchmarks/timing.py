"""Wall times, the machine's own rate, and how the benchmarks hold themselves to one thread."""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from report import Row
from threadpoolctl import threadpool_info, threadpool_limits


def product() -> tuple[Callable[[], np.ndarray], float]:
    """A matrix product and the floating point operations in it."""
    A, B = np.random.default_rng(0).standard_normal((2, 2000, 2000))
    return partial(np.matmul, A, B), 2 * 2000**3


def best_times(*tasks: Callable[[], object], turns: int) -> np.ndarray:
    """Least wall times of a first and of a second run of each task, shape (2, tasks).

    The tasks take turns, so that a busy spell hits all of them. The second run comes at once: a
    virtual machine may have to fetch the memory of the first from its host, a gigabyte in two
    seconds where a tenth of one is usual, and UncELMe needs gigabytes.
    """
    walls = [[(seconds(task), seconds(task)) for task in tasks] for _ in range(turns)]
    return np.min(walls, axis=0).T


def seconds(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def dgemm() -> Iterator[Row]:
    task, flops = product()
    best = best_times(task, turns=5).min()
    yield Row("dgemm, 2000 x 2000 x 2000", flops / best / 1e9, "Gflop/s", f"{best:.2f} s")


def one_thread() -> str:
    """Hold BLAS to one thread, here and in new processes, and say if it had more."""
    had = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    threadpool_limits(1)
    return "1 thread" if had == 1 else f"limited to 1 thread by this script, had {had}"
