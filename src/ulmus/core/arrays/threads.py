"""Threads of a computation: BLAS uses one, and independent tasks use several.

Matrix products of a fit are too small for the threads of BLAS, which wait for each other after
every product; on a busy machine, waiting costs more than the products (benchmarks/threads.py).
Tasks such as members, folds and blocks of rows wait for each other once. NumPy releases the
interpreter lock, so that they run on threads of one process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, cached_property
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

# ------------------------------------------------------------ BLAS


@cache
def blas_libraries() -> list[Any]:
    """Controllers of the BLAS libraries of NumPy and SciPy; finding them takes a millisecond."""
    import scipy.linalg  # noqa: F401  # loads the BLAS of SciPy

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class BlasLimit:
    """A context in which BLAS runs on one thread, which several threads may enter.

    Most BLAS libraries have one number of threads for the process: the first thread that enters
    sets it to one, and the last one that leaves restores it. Others have a number for each thread,
    which is set and restored in each. Nested contexts of a thread have no effect.
    """

    def __init__(self, libraries: Callable[[], list[Any]] = blas_libraries) -> None:
        self._libraries = libraries
        self._lock = threading.Lock()
        self._inside = 0  # number of threads inside
        self._earlier: list[int] = []  # number of threads of each library before
        self._thread = threading.local()

    def __enter__(self) -> None:
        depth = getattr(self._thread, "depth", 0)
        if depth == 0:
            with self._lock:
                libraries = self._libraries()
                if self._inside == 0:
                    self._earlier = [library.num_threads for library in libraries]
                self._inside += 1
                for library in libraries:
                    _set_threads(library, 1)
        self._thread.depth = depth + 1

    def __exit__(self, *error: object) -> None:
        self._thread.depth -= 1
        if self._thread.depth == 0:
            with self._lock:
                self._inside -= 1
                for library, n in zip(self._libraries(), self._earlier, strict=True):
                    if self._inside == 0 or _by_thread(library):
                        _set_threads(library, n)


def _by_thread(library: Any) -> bool:
    """Whether a library has a number of threads for each thread."""
    return library.internal_api == "mkl" or library.threading_layer == "openmp"


def _set_threads(library: Any, n: int) -> None:
    """Set the number of threads of a library."""
    # threadpoolctl 3.8 ignores all threads but the first one that sets a number.
    release = getattr(library, "clear_controlling_thread", lambda **_: None)
    release(force=True)
    library.set_num_threads(n)
    release(force=True)


one_blas_thread = BlasLimit()

# ------------------------------------------------------------ tasks


class _Workers:
    """Threads for tasks, started when the first tasks run."""

    def __init__(self, n: int) -> None:
        self.n = n

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.n)

    def close(self) -> None:
        if "pool" in vars(self):
            self.pool.shutdown()


NO_WORKERS = _Workers(1)
_workers: ContextVar[_Workers | None] = ContextVar("workers", default=None)


@contextmanager
def thread_pool(n_threads: int) -> Iterator[None]:
    """Context in which BLAS runs on one thread, and tasks of ``mapped`` on ``n_threads``.

    Contexts within it and within tasks have no effect.
    """
    with one_blas_thread:
        if _workers.get() is not None:
            yield
            return
        workers = _Workers(n_threads)
        token = _workers.set(workers)
        try:
            yield
        finally:
            _workers.reset(token)
            workers.close()


def available_threads() -> int:
    """Number of threads that tasks run on."""
    workers = _workers.get()
    return 1 if workers is None else workers.n


def mapped(task: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Results of a task for each item, in their order, on the threads of ``thread_pool``.

    Tasks within a task run one after the other. An error is raised when running tasks have ended.
    """
    workers, items = _workers.get(), list(items)
    if workers is None or workers.n == 1 or len(items) < 2:
        return [task(item) for item in items]
    futures = [workers.pool.submit(copy_context().run, _alone, task, item) for item in items]
    try:
        return [future.result() for future in futures]
    finally:
        wait([future for future in futures if not future.cancel()])


def _alone(task: Callable[[Item], Result], item: Item) -> Result:
    """A task on a thread of its own."""
    _workers.set(NO_WORKERS)
    with one_blas_thread:
        return task(item)
