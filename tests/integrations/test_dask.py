"""Dask collections on a cluster of processes give the fit of the table in memory."""

import importlib
import os
import signal
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from fit_comparison import assert_same_fit
from messages import mentions
from models import every_estimate_ensemble, plain_member, small_ensemble
from numpy.testing import assert_allclose

import ulmus

pytest.importorskip("dask", reason="needs dask")
pytest.importorskip("distributed", reason="needs distributed")
import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster

import ulmus.dask

pytestmark = pytest.mark.slow  # the cluster of processes takes seconds to start


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes that do not wait long for a lost one."""
    how = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "3s"}),
        LocalCluster(**how) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def data(make_table):
    return make_table(150)


def chunked(X, y, w=None, rows=(40, 1, 70, 39), columns=(2, 1)):
    """Dask arrays whose chunks do not agree with one another."""
    weight = None if w is None else da.from_array(w, chunks=31)
    return da.from_array(X, chunks=(rows, columns)), da.from_array(y, chunks=50), weight


# ---------------------------------------------------------------- fit


@pytest.mark.parametrize(
    "how",
    [
        {"alpha": 0.3, "variance": "auto"},
        {"alpha": "loo", "hc": "HC3-exact", "fit_intercept": False},
        {"alpha": "loo", "noise": "heteroskedastic", "variance": ["S2"]},
        {"alpha": "gcv", "hc": "pooled", "standardize": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [True, False])
def test_arrays_in_uneven_chunks(cluster, data, how, weighted):
    X, y, w, X_new = data
    w = w if weighted else None
    model = every_estimate_ensemble(**how)
    assert ulmus.dask.fit(model, *chunked(X, y, w)) is model
    assert_same_fit(model, every_estimate_ensemble(**how).fit(X, y, w), X_new)
    assert not hasattr(model, "leverage_")


def test_several_outputs(cluster, data):
    X, y, w, X_new = data
    Y = np.stack([y, 100 - 3 * X[:, 0], y**2], axis=1)
    lazy_X, _, weight = chunked(X, y, w)
    model = ulmus.dask.fit(
        every_estimate_ensemble(), lazy_X, da.from_array(Y, chunks=(60, 2)), weight
    )
    assert_same_fit(model, every_estimate_ensemble().fit(X, Y, w), X_new)
    mean = ulmus.dask.predict(model, lazy_X)
    assert mean.shape == (150, 3)
    assert_allclose(mean.compute(), model.predict(X), rtol=1e-12)


def test_one_member(cluster, data):
    X, y, _, X_new = data
    model = ulmus.dask.fit(plain_member(8, random_state=0), *chunked(X, y))
    assert_same_fit(model, plain_member(8, random_state=0).fit(X, y), X_new)


def test_chunks_of_unknown_size_and_empty_ones(cluster, data):
    X, y, _, X_new = data
    lazy_X, lazy_y, _ = chunked(X, y, rows=(50, 30, 70), columns=(3,))
    kept = (X[:, 0] > 0) & (np.arange(150) >= 50)  # nothing of the first chunk
    mask = da.from_array(kept, chunks=((50, 30, 70),))
    lazy_y = lazy_y.rechunk(((50, 30, 70),))
    model = ulmus.dask.fit(every_estimate_ensemble(), lazy_X[mask], lazy_y[mask])
    X_new = np.abs(X_new) * [1, 0, 0]
    assert_same_fit(model, every_estimate_ensemble().fit(X[kept], y[kept]), X_new)


def test_data_frames(cluster, data):
    X, y, w, X_new = data
    names = ["a", "b", "c"]
    frame = pd.DataFrame(X, columns=names).assign(y=y, z=-y, w=w)
    lazy = dd.from_pandas(frame, npartitions=4)
    model = ulmus.dask.fit(every_estimate_ensemble(), lazy[names], lazy["y"], lazy["w"])
    expected = every_estimate_ensemble().fit(frame[names], y, w)
    assert list(model.feature_names_in_) == names
    points = pd.DataFrame(X_new, columns=names)
    assert_allclose(model.predict(points), expected.predict(points), rtol=1e-8)
    assert_allclose(model.predict_var(points), expected.predict_var(points), rtol=1e-8)
    mean = ulmus.dask.predict(model, lazy[names]).compute()
    assert isinstance(mean, pd.Series)
    assert mean.index.equals(frame.index)
    assert_allclose(mean, expected.predict(frame[names]), rtol=1e-8)
    several = ulmus.dask.fit(every_estimate_ensemble(), lazy[names], lazy[["y", "z"]])
    both = ulmus.dask.predict(several, lazy[names]).compute()
    assert both.shape == (150, 2)
    assert_allclose(both[1], -both[0], rtol=1e-8)


def test_without_a_cluster(data):
    X, y, w, X_new = data
    with dask.config.set(scheduler="threads"):
        model = ulmus.dask.fit(every_estimate_ensemble(), *chunked(X, y, w))
    assert_same_fit(model, every_estimate_ensemble().fit(X, y, w), X_new)


# ---------------------------------------------------------------- predict


@pytest.mark.parametrize("component", ["total", "model", "noise", "weights"])
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_variances_are_computed_where_the_rows_are(cluster, data, noise, component):
    X, y, _, _ = data
    model = every_estimate_ensemble(noise=noise, variance="auto").fit(X, y)
    lazy, _, _ = chunked(X, y)
    variance = ulmus.dask.predict_var(model, lazy, component=component)
    assert isinstance(variance, da.Array)
    assert variance.shape == (150,)
    assert_allclose(variance.compute(), model.predict_var(X, component=component), rtol=1e-12)


def test_predictions_are_lazy_and_keep_the_chunks(cluster, data):
    X, y, _, _ = data
    model = every_estimate_ensemble(variance=["S2", "BR"]).fit(X, y)
    lazy, _, _ = chunked(X, y)
    mean = ulmus.dask.predict(model, lazy)
    assert isinstance(mean, da.Array)
    assert mean.chunks == ((40, 1, 70, 39),)
    assert_allclose(mean.compute(), model.predict(X), rtol=1e-12)
    variance = ulmus.dask.predict_var(model, lazy, estimate="BR")
    assert_allclose(variance.compute(), model.predict_var(X, estimate="BR"), rtol=1e-12)


def test_variances_of_a_data_frame(cluster, data):
    X, y, _, _ = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(150) * 2)
    model = every_estimate_ensemble(variance="auto").fit(frame, y)
    variance = ulmus.dask.predict_var(model, dd.from_pandas(frame, npartitions=3)).compute()
    assert variance.index.equals(frame.index)
    assert_allclose(variance, model.predict_var(frame), rtol=1e-12)


# ---------------------------------------------------------------- a lost worker


def test_a_lost_worker_changes_nothing(cluster, make_table, tmp_path):
    X, y, w, X_new = make_table(600)
    folder = str(tmp_path)

    def watched(block, block_info=None):
        """The block, after a while, leaving a file that names the process."""
        import os
        import time
        from pathlib import Path

        if block_info:
            Path(folder, f"{os.getpid()}-{time.monotonic_ns()}").touch()
            time.sleep(0.02)
        return block

    def processes():
        return [int(name.split("-")[0]) for name in os.listdir(folder)]

    lazy = da.from_array(X, chunks=(30, 3)).map_blocks(watched, dtype=float, meta=X[:0])
    model, errors = (
        every_estimate_ensemble(alpha="loo", variance=["S2"], noise="heteroskedastic"),
        [],
    )

    def fit():
        try:
            ulmus.dask.fit(model, lazy, da.from_array(y, chunks=30), da.from_array(w, chunks=30))
        except BaseException as error:
            errors.append(error)

    before = set(cluster.run(os.getpid).values())
    thread = threading.Thread(target=fit)
    thread.start()
    deadline = time.monotonic() + 60
    while len(processes()) < 6 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert thread.is_alive(), errors
    victim = processes()[0]
    assert victim in before
    os.kill(victim, signal.SIGKILL)
    thread.join(60)
    assert not thread.is_alive()
    assert not errors
    cluster.wait_for_workers(2, timeout=30)
    assert victim not in set(cluster.run(os.getpid).values())
    expected = every_estimate_ensemble(alpha="loo", variance=["S2"], noise="heteroskedastic").fit(
        X, y, w
    )
    assert_same_fit(model, expected, X_new)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("what", ["X", "y", "sample_weight"])
def test_a_missing_value_names_its_partition(cluster, data, what):
    X, y, w, X_new = data
    model = every_estimate_ensemble(variance="auto").fit(X, y)
    before = model.predict(X_new)
    X, y, w = X.copy(), y.copy(), w.copy()
    {"X": X[:, 1], "y": y, "sample_weight": w}[what][115] = np.nan  # 40 + 1 + 70 + 4
    with pytest.raises(ValueError, match=mentions(f"{what} of partition 3", "row 4;")):
        ulmus.dask.fit(model, *chunked(X, y, w))
    assert_allclose(model.predict(X_new), before, rtol=0)


def test_a_negative_weight_names_its_partition(cluster, data):
    X, y, w, _ = data
    w[45] = -1.0
    with pytest.raises(ValueError, match=mentions("sample_weight of partition 2", "row 4")):
        ulmus.dask.fit(every_estimate_ensemble(), *chunked(X, y, w))


@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist, pd.DataFrame])
def test_other_tables_are_refused_with_a_suggestion(data, kind):
    X, y, _, _ = data
    with pytest.raises(ValueError, match=mentions("Dask arrays or data frames", "fit_blocks")):
        ulmus.dask.fit(every_estimate_ensemble(), kind(X), kind(y))


def test_lengths_must_agree(data):
    X, y, w, _ = data
    lazy_X, lazy_y, weight = chunked(X, y, w)
    with pytest.raises(ValueError, match=mentions("150", "149", "y")):
        ulmus.dask.fit(every_estimate_ensemble(), lazy_X, lazy_y[1:])
    with pytest.raises(ValueError, match=mentions("150", "149", "sample_weight")):
        ulmus.dask.fit(every_estimate_ensemble(), lazy_X, lazy_y, weight[1:])


def test_no_rows():
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(ValueError, match=mentions("no rows", "two rows")),
    ):
        ulmus.dask.fit(
            every_estimate_ensemble(), da.empty((0, 3), chunks=(5, 3)), da.empty(0, chunks=5)
        )


def test_without_dask(monkeypatch):
    for name in ("ulmus.dask", "ulmus.integrations.dask"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=mentions("needs dask and distributed", "ulmus[dask]")):
        importlib.import_module("ulmus.dask")


def test_an_empty_partition_has_no_predictions(normal_rows):
    da = pytest.importorskip("dask.array")
    import dask.dataframe as dd

    import ulmus.dask

    X, y = normal_rows
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for outputs in (y, np.column_stack([y, -y])):
        model = small_ensemble(5, 20).fit(X, outputs)
        points = da.from_array(X, chunks=((0, 300, 0, 300), (3,)))
        for method in (ulmus.dask.predict, ulmus.dask.predict_var):
            ours = method(model, points).compute()
            assert_allclose(ours, getattr(model, method.__name__)(X))
        named = small_ensemble(5, 20).fit(frame, outputs)
        rare = dd.from_pandas(frame, npartitions=40)
        rare = rare[rare["a"] > 2.2]
        assert len(ulmus.dask.predict(named, rare).compute()) == np.sum(X[:, 0] > 2.2)
