"""Replications of a simulation in several processes."""

import warnings
from collections.abc import Callable

from joblib import Parallel, delayed, parallel_config


def quietly(function: Callable, *args: object) -> object:
    """Result without the warnings: extrapolation and bias are what is being measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


def replicate(jobs: int, function: Callable, *args: object, times: int) -> list:
    """Results of ``function(*args, r)`` for r = 0, 1, ... in several processes."""
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        return Parallel()(delayed(quietly)(function, *args, r) for r in range(times))
