"""Threads and progress of an estimator's methods, by its parameters ``n_jobs`` and ``verbose``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from joblib import effective_n_jobs

from ulmus.core.arrays.threads import thread_pool
from ulmus.exceptions import InputError
from ulmus.messages import invalid
from ulmus.progress import Lines, Progress, reported_to

P = ParamSpec("P")
Result = TypeVar("Result")


# Threads by default where a GPU computes: blocks of one thread are moved and combined on the host
# while the card computes those of another (benchmarks/gpu.py).
GPU_THREADS = 4


def n_threads(n_jobs: Any, *, on_gpu: bool = False) -> int:
    """Number of threads for a value of ``n_jobs``, by the conventions of joblib."""
    whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise InputError(invalid("n_jobs", "must be None or a whole number, -1 for all", n_jobs))
    return GPU_THREADS if n_jobs is None and on_gpu else int(effective_n_jobs(n_jobs))


def printed_progress(verbose: Any) -> Progress | None:
    """What prints a line for each stage, and details for ``verbose`` above 1; None for 0."""
    if not isinstance(verbose, (int, float, np.integer)):
        raise InputError(invalid("verbose", "must be 0, 1 or 2", verbose))
    return Lines(print, details=bool(verbose > 1)) if verbose else None


def threaded(
    method: Callable[Concatenate[Any, P], Result],
) -> Callable[Concatenate[Any, P], Result]:
    """Run a method of an estimator on its number of threads, with BLAS on one.

    Its stages are printed if the estimator is verbose.
    """

    @wraps(method)
    def run(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        with thread_pool(self._n_threads), reported_to(self._progress):
            return method(self, *args, **kwargs)

    return run
