"""Transformed, bounded and counted targets in blocks and on a cluster are those in memory."""

import numpy as np
import pytest
from fit_comparison import cut
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_allclose

from ulmus.exceptions import InputError

N = 400


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (N, 2))
    f, e = np.sin(2 * X[:, 0]) + X[:, 1], rng.standard_normal(N)
    targets = {
        "positive": np.exp(f + 0.4 * e),
        "count": rng.poisson(np.exp(f)).astype(float),
        "rain": np.maximum(f + 0.6 * e, 0.0),
    }
    return X, targets, rng.uniform(-0.9, 0.9, (30, 2))


# Parameters, the column that they are for, and what the transformation is called.
TARGETS = {
    "log": ({"target_transform": "log"}, "positive", "log"),
    "auto": ({"target_transform": "auto"}, "positive", "log"),
    "yeo-johnson": ({"target_transform": "yeo-johnson"}, "positive", "yeo-johnson"),
    "range": ({"target_range": (0, None)}, "positive", "identity"),
    "count": ({"target_kind": "count"}, "count", "count, Poisson"),
    "auto count": ({"target_transform": "auto"}, "count", "count, Poisson"),
    "rain": (
        {"target_transform": "sqrt", "target_range": (0, None)},
        "rain",
        "sqrt with a point mass at 0",
    ),
}


def small(name):
    return small_ensemble(3, 15, alpha=0.1, **TARGETS[name][0])


def in_memory(table, name):
    return small(name).fit(table[0], table[1][TARGETS[name][1]])


def require_same_results(model, expected, X, name):
    """Means in standard errors, standard errors in percent, and intervals in interval widths."""
    assert model.target_transform_ == expected.target_transform_ == TARGETS[name][2]
    se = np.sqrt(expected.predict_var(X, "model"))
    assert np.max(np.abs(model.predict(X) - expected.predict(X)) / se) < 0.03
    assert_allclose(np.sqrt(model.predict_var(X, "model")), se, rtol=0.03)
    sd = expected.predict(X, return_std=True)[1]
    assert_allclose(model.predict(X, return_std=True)[1], sd, rtol=0.03)
    if name == "range":  # its residuals are skewed, and streams assume that they are normal
        return
    bounds = expected.predict_interval(X, 0.9)
    error = np.mean(np.abs(model.predict_interval(X, 0.9) - bounds))
    assert error < 0.06 * np.mean(bounds[:, 1] - bounds[:, 0])


@pytest.mark.parametrize("name", TARGETS)
def test_blocks_give_the_fit_in_memory(table, name):
    X, targets, X_new = table
    model = small(name).fit_blocks(cut(X, targets[TARGETS[name][1]], size=61))
    require_same_results(model, in_memory(table, name), X_new, name)
    assert model.fitted_.rows is None


@pytest.mark.parametrize("name", ["log", "yeo-johnson", "range"])
def test_the_regression_is_the_same_to_round_off(table, name):
    X, targets, X_new = table
    model = small(name).fit_blocks(cut(X, targets["positive"], size=61))
    expected = in_memory(table, name)
    values = (one.fitted_.mean(X_new) for one in (model, expected))
    assert_allclose(*values, rtol=1e-6, atol=1e-8)


def test_rows_that_come_once(table):
    X, targets, X_new = table
    model = small("log")
    for block in cut(X, targets["positive"], size=100):
        model.partial_fit(*block)
    expected = in_memory(table, "log")
    # Inputs are scaled by the first block, and residuals are those of the last one.
    assert_allclose(model.predict_median(X_new), expected.predict_median(X_new), rtol=0.03)
    assert_allclose(model.predict(X_new), expected.predict(X_new), rtol=0.03)
    with pytest.raises(ValueError, match=mentions("several passes", "fit_blocks", "sqrt")):
        small("count").partial_fit(X, targets["count"])


def test_values_outside_the_range_are_found_in_any_block(table):
    X, targets, _ = table
    y = targets["positive"].copy()
    y[-1] = -1.0
    with pytest.raises(InputError, match=mentions("target_range", "-1")):
        small("range").fit_blocks(cut(X, y, size=61))
    with pytest.raises(InputError, match=mentions("target_kind", "whole numbers")):
        small("count").fit_blocks(cut(X, y, size=61))


# ---------------------------------------------------------------- Dask


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, to which passes and maps of blocks are pickled."""
    pytest.importorskip("dask", reason="needs dask")
    distributed = pytest.importorskip("distributed", reason="needs distributed")
    how = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**how) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_cluster_gives_the_fit_in_blocks(cluster, table, name):
    import dask.array as da

    import ulmus.dask

    X, targets, X_new = table
    y = targets[TARGETS[name][1]]
    parts = da.from_array(X, chunks=(61, 2)), da.from_array(y, chunks=61)
    model = ulmus.dask.fit(small(name), *parts)
    expected = small(name).fit_blocks(cut(X, y, size=61))
    assert model.target_transform_ == TARGETS[name][2]
    assert_allclose(model.predict(X_new), expected.predict(X_new), rtol=1e-8)
    variances = (one.predict_var(X_new) for one in (model, expected))
    assert_allclose(*variances, rtol=1e-8)
    require_same_results(model, in_memory(table, name), X_new, name)
    lazy = da.from_array(X_new, chunks=(7, 2))
    assert_allclose(ulmus.dask.predict(model, lazy).compute(), model.predict(X_new), rtol=1e-12)


@pytest.mark.slow
def test_weights_of_a_cluster(cluster, table):
    import dask.array as da

    import ulmus.dask

    X, targets, X_new = table
    weight = np.resize([1.0, 2.0, 0.5, 0.0], N)
    columns = X, targets["count"], weight
    parts = [da.from_array(one, chunks=(61, *one.shape[1:])) for one in columns]
    model = ulmus.dask.fit(small("count"), *parts)
    expected = small("count").fit_blocks(cut(*columns, size=61))
    assert_allclose(model.predict(X_new), expected.predict(X_new), rtol=1e-8)
