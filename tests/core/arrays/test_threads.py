"""BLAS runs on one thread within a computation, and tasks run on several."""

import contextvars
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import joblib
import numpy as np
import pytest
from fit_comparison import assert_same_fit
from models import every_estimate_ensemble, mapped_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import _hist_gradient_boosting
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_info, threadpool_limits

from ulmus.core.arrays import threads
from ulmus.core.arrays.backend import contracted, member_products
from ulmus.core.arrays.linalg import lower_product, upper_product
from ulmus.core.arrays.threads import BlasLimit, available_threads, mapped, thread_pool
from ulmus.core.fit.fit import Fit
from ulmus.estimators import _fit_methods, _importance
from ulmus.estimators._threads import n_threads


def blas_threads():
    return max(library["num_threads"] for library in threadpool_info() if is_blas(library))


def is_blas(library):
    return library["user_api"] == "blas"


@pytest.fixture(autouse=True)
def two_blas_threads():
    """BLAS with two threads outside, which are there afterwards."""
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() < 2:
            pytest.skip("this BLAS has one thread only")
        yield
        assert blas_threads() == 2


# ---------------------------------------------------------------- BLAS


def test_blas_has_one_thread_within_and_as_many_as_before_afterwards():
    with thread_pool(1):
        assert blas_threads() == 1
        with thread_pool(2):
            assert blas_threads() == 1
        assert blas_threads() == 1
    assert blas_threads() == 2


def test_an_error_restores_the_threads():
    with pytest.raises(ZeroDivisionError), thread_pool(2):
        mapped(lambda x: 1 / x, [1, 0, 2])
    assert blas_threads() == 2


def test_the_last_of_several_threads_restores_the_number():
    first_inside, second_inside, first_outside = (threading.Event() for _ in range(3))
    seen = []

    def first():
        with thread_pool(1):
            first_inside.set()
            assert second_inside.wait(10)
        first_outside.set()

    def second():
        assert first_inside.wait(10)
        with thread_pool(1):
            second_inside.set()
            assert first_outside.wait(10)
            seen.append(blas_threads())

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result()
    assert seen == [1]
    assert blas_threads() == 2


def test_a_limit_within_a_limit_of_another_thread():
    """A thread that has set a number itself does not keep others from setting it."""
    threadpool_limits(2, user_api="blas")
    with ThreadPoolExecutor(1) as pool:

        def inside():
            with thread_pool(1):
                return blas_threads()

        assert pool.submit(inside).result() == 1


class ByThread:
    """A BLAS on OpenMP, which has a number of threads for each thread."""

    internal_api, threading_layer = "openblas", "openmp"

    def __init__(self):
        self.own = threading.local()

    @property
    def num_threads(self):
        return getattr(self.own, "n", 4)

    def set_num_threads(self, n):
        self.own.n = n


def test_a_number_for_each_thread_is_set_and_restored_in_each():
    library = ByThread()
    limit, inside = BlasLimit(lambda: [library]), threading.Barrier(2, timeout=10)
    outside = threading.Barrier(2, timeout=10)

    def numbers(last):
        with limit:
            within = library.num_threads
            inside.wait()
            if last:
                outside.wait()
        after = library.num_threads
        if not last:
            outside.wait()
        return within, after

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(numbers, [False, True])) == [(1, 4), (1, 4)]


def test_entering_costs_little():
    def seconds():
        start = time.perf_counter()
        for _ in range(100):
            with thread_pool(1):
                pass
        return (time.perf_counter() - start) / 100

    seconds()
    assert min(seconds() for _ in range(5)) < 2e-4
    with thread_pool(1):
        assert min(seconds() for _ in range(5)) < 5e-5


# ---------------------------------------------------------------- tasks


def test_results_are_in_the_order_of_the_items():
    def task(x):
        time.sleep(0.002 * (5 - x))
        return x, threading.get_ident(), blas_threads()

    with thread_pool(2):
        results = mapped(task, range(5))
    assert [x for x, *_ in results] == list(range(5))
    assert len({thread for _, thread, _ in results}) == 2
    assert {n for *_, n in results} == {1}


def test_without_threads_tasks_run_here():
    assert set(mapped(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}
    with thread_pool(1):
        assert available_threads() == 1
        assert set(mapped(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


def test_tasks_within_tasks_run_one_after_the_other():
    def outer(_):
        with thread_pool(2):
            own = {threading.get_ident()}
            assert available_threads() == 1
            assert set(mapped(lambda _: threading.get_ident(), range(3))) == own
        return available_threads()

    with thread_pool(2):
        assert available_threads() == 2
        assert mapped(outer, range(6)) == [1] * 6
        assert available_threads() == 2


def test_the_first_error_ends_the_others():
    started = []

    def task(x):
        started.append(x)
        time.sleep(0.005)
        if x == 1:
            raise ValueError("task 1")

    with thread_pool(2), pytest.raises(ValueError, match="task 1"):
        mapped(task, range(200))
    n = len(started)
    assert n < 200
    time.sleep(0.03)
    assert len(started) == n


def test_tasks_have_the_settings_of_the_caller():
    setting = contextvars.ContextVar("setting", default=0)
    setting.set(3)
    with np.errstate(divide="raise"), thread_pool(2):
        assert mapped(lambda _: setting.get(), range(2)) == [3, 3]
        with pytest.raises(FloatingPointError):
            mapped(lambda x: np.ones(2) / x, [np.ones(2), np.zeros(2)])


@pytest.mark.parametrize("size", [40, 300, 700])
def test_products_are_the_same_on_any_number_of_threads(rng, size):
    """Also of sizes that are not multiples of the blocks that threads take."""
    A, B = rng.normal(size=(2, 3, 30, size))
    T = np.tril(rng.normal(size=(3, size, size)))
    C = rng.normal(size=(3, size, 20))
    tasks = {
        "joint": (lambda: contracted(A, B, joint=True), np.einsum("mkn,mkp->np", A, B)),
        "own": (lambda: contracted(A, A, joint=True), np.einsum("mkn,mkp->np", A, A)),
        "rows": (lambda: member_products(A, B), np.einsum("mkn,mln->mkl", A, B)),
        "lower": (lambda: lower_product(T, C), T @ C),
        "upper": (lambda: upper_product(T.transpose(0, 2, 1), C), T.transpose(0, 2, 1) @ C),
    }
    for task, expected in tasks.values():
        with thread_pool(1):
            alone = task()
        assert_allclose(alone, expected, rtol=1e-10, atol=1e-10)
        for n in (2, 3):
            with thread_pool(n):
                assert_array_equal(task(), alone)


# ---------------------------------------------------------------- n_jobs


def test_n_jobs_follows_joblib():
    assert n_threads(None) == n_threads(1) == 1
    assert n_threads(3) == n_threads(np.int64(3)) == 3
    assert n_threads(-1) == joblib.cpu_count()
    with joblib.parallel_config(n_jobs=2):
        assert n_threads(None) == 2
        assert n_threads(1) == 1


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_of_joblib_do_not_multiply(backend):
    jobs = [joblib.delayed(n_threads)(None) for _ in range(2)]
    assert joblib.Parallel(n_jobs=2, backend=backend)(jobs) == [1, 1]


@pytest.fixture
def watched(monkeypatch):
    """Numbers of threads of BLAS and of tasks in the steps of a computation, by step."""
    seen = {}

    def watch(owner, name):
        function = getattr(owner, name)

        def recorded(*args, **kwargs):
            numbers = blas_threads(), available_threads()
            seen.setdefault(name, set()).add(numbers)
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, recorded)

    watch(_fit_methods, "build")
    watch(_fit_methods, "update")
    watch(Fit, "mean")
    watch(Fit, "parts")
    watch(Fit, "undersmoothed_parts")
    return seen


def test_every_method_sets_the_threads(make_table, watched):
    X, y, _, X_new = make_table(60)
    model = every_estimate_ensemble(4, n_jobs=2).fit(X, y)
    model.predict(X_new, return_std=True)
    model.predict_var(X_new)
    model.predict_interval(X_new)
    model.predict_interval(X_new, kind="confidence", target="function")
    model.average(X_new)
    model.check()
    model.summary()
    model.variance_components(X_new)
    model.fit_blocks([(X, y)])
    how = {"n_jobs": 2, "noise": "homoskedastic", "variance": "auto"}
    every_estimate_ensemble(4, **how).partial_fit(X, y)
    assert set(watched) == {"build", "update", "mean", "parts", "undersmoothed_parts"}
    assert set.union(*watched.values()) <= {(1, 2), (1, 1)}
    assert (1, 2) in set.intersection(*watched.values())


def test_a_fit_that_fails_restores_the_threads(make_table, monkeypatch):
    X, y, _, _ = make_table(60)

    def failing(*args):
        raise RuntimeError("a step")

    monkeypatch.setattr(_fit_methods, "build", failing)
    with pytest.raises(RuntimeError, match="a step"):
        every_estimate_ensemble(4).fit(X, y)
    assert blas_threads() == 2


@pytest.mark.slow
def test_fits_in_several_threads_are_the_same(make_table):
    X, y, w, X_new = make_table(80)
    expected = mapped_ensemble(3, 20).fit(X, y, w).predict_interval(X_new)

    def fitted(n_jobs):
        return mapped_ensemble(3, 20, n_jobs=n_jobs).fit(X, y, w).predict_interval(X_new)

    with ThreadPoolExecutor(3) as pool:
        for ours in pool.map(fitted, [1, 2, 1, 2]):
            assert_array_equal(ours, expected)
    assert blas_threads() == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ensemble", "n_rows"),
    [(partial(mapped_ensemble, 4, 60), 120), (partial(every_estimate_ensemble, 4), 1200)],
    ids=["map and folds", "several blocks"],
)
def test_results_do_not_depend_on_n_jobs(make_table, ensemble, n_rows):
    X, y, w, X_new = make_table(n_rows)
    expected = ensemble(n_jobs=1).fit(X, y, w)
    for n_jobs in (2, -1):
        assert_same_fit(ensemble(n_jobs=n_jobs).fit(X, y, w), expected, X_new)


def test_the_configuration_of_joblib_is_respected(make_table, watched):
    X, y, _, X_new = make_table(60)
    with joblib.parallel_config(n_jobs=2):
        every_estimate_ensemble(4).fit(X, y).predict(X_new)
    assert watched["build"] == {(1, 2)}
    assert watched["mean"] >= {(1, 2)}


@pytest.mark.slow
def test_cross_validation_in_processes_uses_one_thread_each(make_table):
    X, y, _, _ = make_table(60)

    def used(model, X, y):  # not at the top, where processes could not find it
        with thread_pool(n_threads(model.n_jobs)):
            libraries = threadpool_info()
            return max(available_threads(), *(library["num_threads"] for library in libraries))

    model = every_estimate_ensemble(4)
    assert_array_equal(cross_val_score(model, X, y, cv=2, n_jobs=2, scoring=used), [1, 1])


def test_trees_run_on_one_thread_of_openmp(rng, monkeypatch):
    class Watched(_importance.HistGradientBoostingRegressor):
        def fit(self, X, y):
            numbers.append(_hist_gradient_boosting.gradient_boosting._openmp_effective_n_threads())
            return super().fit(X, y)

    numbers = []
    monkeypatch.setattr(_importance, "HistGradientBoostingRegressor", Watched)
    X = rng.normal(size=(120, 2))
    with thread_pool(2):
        assert _importance.tree_importances(X, X[:, :1], np.arange(2)) is not None
    assert set(numbers) == {1}


def test_libraries_are_searched_once(monkeypatch):
    def searched():
        raise AssertionError("searched again")

    with thread_pool(1):
        pass
    monkeypatch.setattr(threads, "ThreadpoolController", searched)
    with thread_pool(1):
        assert blas_threads() == 1
