"""A device by name and the ways it computes, threads, and what is loaded for them."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse
from fit_comparison import assert_close, assert_same_predictions, every_prediction
from messages import mentions
from models import PLAIN, every_estimate_ensemble, small_ensemble
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_info, threadpool_limits

from ulmus.core.arrays.backend import member_products, row_products
from ulmus.core.ridge.member_pairs import COMMON, OTHERS, OWN, PairGram, member_groups


@pytest.fixture
def on_device(monkeypatch):
    """All arrays count as arrays on a device."""
    for module in ("arrays.backend", "ridge.member_pairs"):
        monkeypatch.setattr(f"ulmus.core.{module}.is_on_host", lambda array: False)


# ---------------------------------------------------------------- a device by name


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_a_device_computes_for_numpy(torch, make_table, noise):
    X, y, w, X_new = make_table(90)
    expected = every_estimate_ensemble(6, noise=noise).fit(X, y, w)
    blocks = [(X[:50], y[:50], w[:50]), (X[50:], y[50:], w[50:])]
    for ours in (
        every_estimate_ensemble(6, noise=noise, device="cpu").fit(X, y, w),
        every_estimate_ensemble(6, noise=noise, device="cpu").fit_blocks(blocks),
    ):
        assert isinstance(ours.fitted_.ensemble.layer.W, torch.Tensor)
        assert_same_predictions(ours, expected, X_new, X_new, np.ndarray)


def test_a_device_and_threads(torch, make_table):
    X, y, w, X_new = make_table(90)
    ours = every_estimate_ensemble(6, device="cpu", n_jobs=2).fit(X, y, w)
    assert_same_predictions(ours, every_estimate_ensemble(6).fit(X, y, w), X_new, X_new, np.ndarray)


# ---------------------------------------------------------------- the ways of a device


@pytest.mark.parametrize("b", [10, 127, 128, 1000, 5003])
@pytest.mark.parametrize("shape", [(5, 7), (130, 4)])
def test_row_products_in_pieces(torch, on_device, b, shape):
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((side, b)) for side in shape)
    product = row_products(torch.asarray(left), torch.asarray(right))
    assert_allclose(product.numpy(), left @ right.T, rtol=1e-10, atol=1e-10)
    stacks = [np.stack([a, -2 * a]) for a in (left, right)]
    products = member_products(*map(torch.asarray, stacks))
    expected = stacks[0] @ stacks[1].transpose(0, 2, 1)
    assert_allclose(products.numpy(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("weights", [COMMON, OWN, OTHERS], ids=lambda w: w.name)
@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("M", [1, 2, 7])
def test_grams_by_span_are_those_by_member(torch, monkeypatch, weights, pairs, M):
    rng = np.random.default_rng(0)
    A, omega = rng.standard_normal((M, 4, 500)), rng.uniform(0.5, 2, (M, 500))
    omega = None if weights is COMMON else omega

    def gram():
        tensor = torch.asarray(A)
        groups = [slice(0, M)] if pairs else member_groups(M, 4)
        total = PairGram.zeros(4, groups, like=tensor)
        for rows in (slice(300), slice(300, 500)):
            part = None if omega is None else torch.asarray(omega[:, rows])
            total.add(tensor[:, :, rows], weights, part)
        return total

    expected = gram()
    for module in ("arrays.backend", "ridge.member_pairs"):
        monkeypatch.setattr(f"ulmus.core.{module}.is_on_host", lambda array: False)
    ours = gram()
    assert_allclose(ours.single.numpy(), expected.single.numpy(), rtol=1e-10, atol=1e-10)
    for one, two in zip(ours.upper, expected.upper, strict=True):
        assert_allclose(one.numpy(), two.numpy(), rtol=1e-10, atol=1e-10)


# Six small members underfit the function, which raises a warning.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning")
@pytest.mark.parametrize("n", [30, 400], ids=["fewer rows than features", "more"])
@pytest.mark.parametrize("hc", ["HC2", "HC3-exact", "pooled"])
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_a_fit_by_the_ways_of_a_device(torch, make_table, on_device, n, hc, noise):
    X, y, w, X_new = make_table(n)
    how = {"hc": hc, "noise": noise}
    # NumPy arrays have no device: theirs are the ways of the host only without the patch.
    ours = every_estimate_ensemble(6, **how).fit(*map(torch.asarray, (X, y, w)))
    with pytest.MonkeyPatch.context() as host:
        for module in ("arrays.backend", "ridge.member_pairs"):
            host.setattr(f"ulmus.core.{module}.is_on_host", lambda array: True)
        expected = every_estimate_ensemble(6, **how).fit(X, y, w)
        theirs = every_prediction(expected, X_new)
    for name, value in every_prediction(ours, torch.asarray(X_new)).items():
        assert_close(value, theirs[name], err_msg=name)


# ---------------------------------------------------------------- what is loaded, and threads


LOADED = """
import sys
import numpy as np, sklearn.linear_model, sklearn.metrics, scipy.stats, threadpoolctl

before = set(sys.modules)  # pandas, which scikit-learn loads, has favourites of its own
import ulmus, ulmus.tables, ulmus.metrics

X = np.random.default_rng(0).uniform(size=(50, 2))
model = ulmus.ELMEnsembleRegressor(3, 5, random_state=0, noise="homoskedastic", **PLAIN)
model.fit_blocks([(X, X[:, 0])]).predict_interval(X)
model.fit(X, X[:, 0]).predict_interval(X)
ours = {"torch", "cupy", "dask", "distributed", "pyarrow", "matplotlib", "rich"}
print(sorted(ours & (set(sys.modules) - before)))
print(sorted({"torch", "cupy", "dask", "distributed", "matplotlib"} & set(sys.modules)))
"""


@pytest.mark.slow
def test_a_numpy_fit_loads_no_optional_package():
    done = subprocess.run(
        [sys.executable, "-c", f"PLAIN = {PLAIN}\n{LOADED}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["[]", "[]"]


@pytest.mark.parametrize("streamed", [False, True])
def test_threads_do_not_multiply(make_table, streamed):
    X, y, _, _ = make_table(400)
    threads = {}

    def blas_threads():
        return max(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")

    def watched(u):
        threads.setdefault(threading.current_thread(), set()).add(blas_threads())
        return np.tanh(u)

    model = every_estimate_ensemble(6, activation=watched, n_jobs=2, variance="auto")
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() < 2:
            pytest.skip("this BLAS has one thread only")
        if streamed:
            model.fit_blocks([(X[a : a + 20], y[a : a + 20]) for a in range(0, 400, 20)])
        else:
            model.fit(X, y)
        assert blas_threads() == 2  # as it was before
    in_passes = [n for thread, n in threads.items() if thread is not threading.main_thread()]
    assert in_passes
    assert set.union(*in_passes) == {1}


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_an_unusable_number_of_threads(make_table, n_jobs):
    X, y, _, _ = make_table(60)
    with pytest.raises(ValueError, match=mentions("n_jobs", repr(n_jobs))):
        every_estimate_ensemble(6, n_jobs=n_jobs).fit(X, y)


def test_sparse_rows_are_refused_where_torch_computes(torch, normal_rows):
    X, y = normal_rows
    rows = scipy.sparse.csr_array(X)
    for fit in (
        small_ensemble(5, 20, device="cpu").fit,
        small_ensemble(5, 20, device="cpu").partial_fit,
    ):
        with pytest.raises(ValueError, match=mentions("sparse", "device='cpu'", "toarray")):
            fit(rows, y)
    with pytest.raises(ValueError, match=mentions("sparse", "toarray")):
        small_ensemble(5, 20, device="cpu").fit_blocks([(rows, y)])
    model = small_ensemble(5, 20).fit(torch.asarray(X), torch.asarray(y))
    with pytest.raises(ValueError, match=mentions("sparse", "toarray")):
        model.predict(rows)


def test_a_device_that_torch_does_not_know(torch, normal_rows):
    with pytest.raises(ValueError, match=mentions("device='gpu'", "'cuda'", "None")):
        small_ensemble(5, 20, device="gpu").fit(*normal_rows)


def test_a_device_without_torch(normal_rows, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=mentions("device='cuda'", "ulmus[torch]")):
        small_ensemble(5, 20, device="cuda").fit(*normal_rows)
