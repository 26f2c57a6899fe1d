"""The same effects from every way to fit, array library and type of table."""

import numpy as np
import pandas as pd
import pytest
from models import small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from parametrisations import noises
from scipy.sparse import csr_array

from ulmus import ELMEnsembleRegressor

# Some rows, and their groups.
GROUPS = np.array(["a", "b", "a", "b", "b", "a", "a"])
A = np.random.default_rng(5).standard_normal((3, 7))
NUMBERS = ["estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"]
EFFECTS = {
    "functional": lambda m, X: m.functional(A, X),
    "sparse functional": lambda m, X: m.functional(csr_array(A), X),
    "average": lambda m, X: m.average(X, by=GROUPS),
    "compare": lambda m, X: m.compare(X, {0: (-0.5, 0.5), 2: 0.1}, by=GROUPS),
    "ratio": lambda m, X: m.compare(X, {1: "minmax"}, comparison="ratio"),
    "slope": lambda m, X: m.slope(X, by="row"),
    "curve": lambda m, X: m.partial_dependence(X, 1, grid_resolution=5, centered=True),
    "surface": lambda m, X: m.partial_dependence(X, [0, 2], grid_resolution=3),
    "bands": lambda m, X: m.slope(X, 0, by=GROUPS, simultaneous=True),
}

SETTINGS = {"alpha": 0.1, "weight_scale": 2.0, "hc": "HC3"}


def assert_same(ours, expected, X_ours, X, rtol=1e-8):
    """All effects of two models agree."""
    for name, compute in EFFECTS.items():
        frame, other = compute(ours, X_ours), compute(expected, X)
        numbers = other[NUMBERS].to_numpy()
        near = {"rtol": rtol, "atol": rtol * np.abs(numbers).mean(), "err_msg": name}
        assert_allclose(frame[NUMBERS], numbers, **near)
        C = np.asarray(other.attrs["covariance"])
        near["atol"] = 10 * rtol * np.abs(C).max()
        assert_allclose(frame.attrs["covariance"], C, **near)
    assert_allclose(ours.predict_cov(X_ours), expected.predict_cov(X), **near)


@pytest.fixture(scope="module")
def data(make_table):
    return make_table(90)


# ---------------------------------------------------------------- ways to fit


@noises
@pytest.mark.parametrize("n", [30, 90], ids=["dual", "primal"])
def test_a_compressed_model(make_table, noise, n):
    X, y, w, X_new = make_table(n)
    model = small_ensemble(5, 8, **SETTINGS, noise=noise).fit(X, y, w)
    ours = small_ensemble(5, 8, **SETTINGS, noise=noise).fit(X, y, w).compress()
    assert_same(ours, model, X_new, X_new)
    frames = [m.slope(X_new, 0, by=GROUPS, target="function") for m in (ours, model)]
    assert_allclose(frames[0][NUMBERS], frames[1][NUMBERS], rtol=1e-7)


@noises
def test_streamed_rows(data, noise):
    X, y, w, X_new = data
    blocks = [(X[a:b], y[a:b], w[a:b]) for a, b in ((0, 40), (40, 41), (41, 90))]
    assert_same(
        small_ensemble(5, 8, **SETTINGS, noise=noise).fit_blocks(blocks),
        small_ensemble(5, 8, **SETTINGS, noise=noise).fit(X, y, w),
        X_new,
        X_new,
    )


def test_rows_added_little_by_little(data):
    X, y, w, X_new = data
    how = {"standardize": False}
    ours = small_ensemble(5, 8, **SETTINGS | how)
    for rows in (slice(50), slice(50, 51), slice(51, 90)):
        ours.partial_fit(X[rows], y[rows], w[rows])
    assert_same(
        ours,
        small_ensemble(5, 8, **SETTINGS | how).fit(X, y, w),
        X_new,
        X_new,
    )


def test_dask_collections(data):
    da = pytest.importorskip("dask.array", reason="needs dask")
    import ulmus.dask

    X, y, _, X_new = data
    lazy = da.from_array(X, chunks=(37, 2)), da.from_array(y, chunks=50)
    assert_same(
        ulmus.dask.fit(small_ensemble(5, 8, **SETTINGS), *lazy),
        small_ensemble(5, 8, **SETTINGS).fit(X, y),
        X_new,
        X_new,
    )


@pytest.mark.parametrize("n", [30, 90], ids=["dual", "primal"])
def test_single_precision_is_near(make_table, n):
    X, y, _, X_new = make_table(n)
    how = {"noise_variance": "residual", "alpha": 1.0}
    ours = small_ensemble(5, 8, **SETTINGS | how, dtype="float32").fit(X, y)
    expected = small_ensemble(5, 8, **SETTINGS | how).fit(X, y)
    for compute in EFFECTS.values():
        columns = ["estimate", "std_error"]
        frame, other = compute(ours, X_new)[columns], compute(expected, X_new)[columns]
        assert_allclose(frame, other, rtol=0.02, atol=1e-3)
    assert_same(ours, ours, X_new.astype(np.float32), X_new, rtol=0.02)


# ---------------------------------------------------------------- array libraries


@pytest.mark.slow
@noises
def test_other_array_libraries(xp, data, noise):
    X, y, w, X_new = data
    ours = small_ensemble(5, 8, **SETTINGS, noise=noise).fit(
        xp.asarray(X), xp.asarray(y), xp.asarray(w)
    )
    assert_same(
        ours,
        small_ensemble(5, 8, **SETTINGS, noise=noise).fit(X, y, w),
        xp.asarray(X_new),
        X_new,
    )


def test_groups_and_weights_of_other_libraries(torch, data):
    X, y, _, X_new = data
    model, groups, weights = (
        small_ensemble(5, 8, **SETTINGS).fit(X, y),
        [0, 1, 0, 1, 1, 0, 0],
        np.arange(1.0, 8.0),
    )
    ours = model.average(X_new, by=torch.tensor(groups), weights=torch.asarray(weights))
    expected = model.average(X_new, by=groups, weights=weights)
    assert_array_equal(ours[NUMBERS], expected[NUMBERS])


@pytest.mark.slow
def test_a_learned_map_in_torch(torch, data):
    X, y, _, X_new = data
    how = {"alpha": 0.1, "random_state": 0, "noise": "homoskedastic"}
    model = ELMEnsembleRegressor(3, 20, **how).fit(X, y)
    ours = ELMEnsembleRegressor(3, 20, **how).fit(torch.asarray(X), torch.asarray(y))
    frames = [m.slope(p, by="row") for m, p in ((ours, torch.asarray(X_new)), (model, X_new))]
    assert_allclose(frames[0].estimate, frames[1].estimate, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- kinds of tables


def test_sparse_rows(data):
    X, y, _, X_new = data
    X, X_new = np.where(np.abs(X) < 0.3, 0, X), np.where(np.abs(X_new) < 0.3, 0, X_new)
    model = small_ensemble(5, 8, **SETTINGS).fit(X, y)
    for ours in (
        model,
        small_ensemble(5, 8, **SETTINGS).fit(csr_array(X), y),
    ):
        assert_same(ours, model, csr_array(X_new), X_new)
    both = model.predict_cov(csr_array(X_new[:3]), csr_array(X_new[3:]))
    assert_allclose(both, model.predict_cov(X_new[:3], X_new[3:]), rtol=1e-8)


def test_lists_and_frames(data):
    X, y, _, X_new = data
    model = small_ensemble(5, 8, **SETTINGS).fit(X, y)
    assert_same(model, model, X_new.tolist(), X_new)
    names = ["t", "u", "v"]
    named = small_ensemble(5, 8, **SETTINGS).fit(pd.DataFrame(X, columns=names), y)
    assert_same(named, model, pd.DataFrame(X_new, columns=names), X_new)


def test_columns_in_another_order_and_further_columns(data):
    X, y, _, X_new = data
    named = small_ensemble(5, 8, **SETTINGS).fit(pd.DataFrame(X, columns=["t", "u", "v"]), y)
    frame = pd.DataFrame(X_new, columns=["t", "u", "v"])
    other = frame[["v", "t", "u"]].assign(site=GROUPS)
    assert_same(named, named, other[["t", "u", "v"]], frame)
    for compute in EFFECTS.values():
        assert_array_equal(compute(named, other)[NUMBERS], compute(named, frame)[NUMBERS])


def test_single_precision_tables(data):
    X, y, _, X_new = data
    model = small_ensemble(5, 8, alpha=1.0, weight_scale=2.0, hc="HC3").fit(X, y)
    for compute in EFFECTS.values():
        ours = compute(model, X_new.astype(np.float32))
        assert_allclose(ours.estimate, compute(model, X_new).estimate, rtol=1e-4, atol=1e-5)
