"""Roots of covariances against the covariances, written out pair by pair."""

import numpy as np
import pytest
from messages import mentions
from numpy.testing import assert_allclose

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.quadratic_spectral import QuadraticSpectralRoot
from ulmus.core.noise_covariance.roots import (
    BartlettRoot,
    ClusterRoot,
    DenseRoot,
    ExponentialRoot,
    IdentityRoot,
    StackedRoot,
)


def exponential(lag):
    return np.exp(-lag / 2.3)


def bartlett(lag):
    return max(0.0, 1 - lag / 3.7)


def quadratic_spectral(lag, bandwidth=4.1):
    if lag == 0:
        return 1.0
    a = 6 * np.pi * lag / (5 * bandwidth)
    return 3 / a**2 * (np.sin(a) / a - np.cos(a))


def covariance(time, groups, kernel):
    """Kernel of the lag within groups, zero between them, with loops."""
    n = len(time)
    S = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if groups[i] == groups[j]:
                S[i, j] = kernel(abs(time[i] - time[j]))
    return S


def matrix(root, n):
    """L L' of a root, from what it makes of the unit vectors."""
    L = root.applied(np.eye(n))
    return L @ L.T


def times_and_groups(n, kind, n_groups=1):
    """Times and groups in the order of locations."""
    rng = np.random.default_rng(n)
    groups = np.sort(rng.integers(0, n_groups, n))
    if kind == "regular":
        time = np.arange(n, dtype=float)
    elif kind == "tenths":  # whose sums are not exact
        time = np.arange(n) * 0.1 * 3.7
    else:
        time = rng.exponential(2.0, n).cumsum()
    if kind == "ties":
        time = np.round(time / 4)
    locations = Locations(time, groups=groups)
    return time[locations.order], groups[locations.order]


kinds = pytest.mark.parametrize("kind", ["regular", "tenths", "irregular", "ties"])
sizes = pytest.mark.parametrize(("n", "n_groups"), [(1, 1), (40, 1), (300, 1), (300, 7), (257, 90)])


@sizes
@kinds
def test_roots_along_time_are_those_of_their_kernels(kind, n, n_groups):
    time, groups = times_and_groups(n, kind, n_groups)
    for root, kernel in [
        (ExponentialRoot(time, groups, 2.3), exponential),
        (BartlettRoot(time, groups, 3.7), bartlett),
    ]:
        assert_allclose(matrix(root, n), covariance(time, groups, kernel), atol=1e-11)


@pytest.mark.parametrize("shift", [0.0, 1.7e9])
def test_times_may_be_far_from_zero(shift):
    time, groups = times_and_groups(60, "regular")
    for root, kernel in [
        (ExponentialRoot(time + shift, groups, 2.3), exponential),
        (BartlettRoot(time + shift, groups, 3.7), bartlett),
        (QuadraticSpectralRoot(time + shift, 4.1), quadratic_spectral),
    ]:
        assert_allclose(matrix(root, 60), covariance(time, groups, kernel), atol=1e-11)


@kinds
@pytest.mark.parametrize("n", [1, 40, 300])
def test_the_quadratic_spectral_root_is_that_of_its_kernel(kind, n):
    time, _ = times_and_groups(n, kind)
    root = QuadraticSpectralRoot(time, 4.1)
    S = covariance(time, np.zeros(n), quadratic_spectral)
    assert_allclose(matrix(root, n), S, atol=1e-11)


def test_regular_times_need_no_more_columns_than_lags():
    root = BartlettRoot(np.arange(100.0), np.zeros(100, dtype=int), 6.0)
    assert root.applied(np.eye(100)).shape == (100, 105)


def test_the_bartlett_root_is_newey_and_west():
    sm = pytest.importorskip("statsmodels.api", reason="needs statsmodels")
    from statsmodels.stats.sandwich_covariance import S_hac_simple

    assert sm is not None
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((80, 3))
    lagged = BartlettRoot(np.arange(80.0), np.zeros(80, dtype=int), 5.0).applied(scores.T)
    assert_allclose(lagged @ lagged.T, S_hac_simple(scores, nlags=4), rtol=1e-11)


def test_clusters_are_sums_of_their_rows():
    groups = np.random.default_rng(1).integers(-3, 20, 300)
    S = covariance(np.zeros(300), groups, lambda lag: 1.0)
    assert_allclose(matrix(ClusterRoot(groups), 300), S, atol=1e-11)
    assert ClusterRoot(groups).applied(np.eye(300)).shape[1] == len(np.unique(groups))


def sequential_roots(n=300):
    time, groups = times_and_groups(n, "irregular", 5)
    scattered = np.random.default_rng(2).permutation(groups)
    return [
        IdentityRoot(),
        ExponentialRoot(time, groups, 2.3),
        BartlettRoot(time, groups, 9.0),
        ClusterRoot(groups),
        ClusterRoot(scattered),
        QuadraticSpectralRoot(time, 8.0),
    ]


def streamed(root, t, cuts):
    """Columns from blocks of rows between the cuts."""
    running = root.running()
    parts = [running.add(block) for block in np.split(t, cuts, axis=-1)]
    rest = running.last()
    return np.concatenate([*parts, *([] if rest is None else [rest])], axis=-1)


@pytest.mark.parametrize("cuts", [[], [1], [0, 299], [100, 100, 101, 130], range(1, 300)], ids=str)
def test_any_blocks_of_rows_give_the_same_columns(cuts):
    t = np.random.default_rng(3).standard_normal((2, 3, 300))
    for root in sequential_roots():
        assert_allclose(streamed(root, t, list(cuts)), root.applied(t), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("cuts", [[], [17, 150]], ids=str)
def test_stacked_roots_are_weighted_sums_of_covariances(cuts):
    n, t = 300, np.random.default_rng(4).standard_normal((4, 300))
    roots = tuple(sequential_roots())
    weights = (0.5, 1.5, 0.0, 2.0, 0.1, 3.0)
    stack = StackedRoot(roots, weights)
    S = sum(w * matrix(root, n) for root, w in zip(roots, weights, strict=True))
    assert_allclose(matrix(stack, n), S, atol=1e-10)
    columns = streamed(stack, t, cuts)  # in another order
    assert_allclose(columns @ columns.T, t @ S @ t.T, rtol=1e-10)


def test_running_sums_do_not_drift():
    n = 50_000
    rng = np.random.default_rng(5)
    t = 3 + rng.standard_normal((1, n))
    time, groups = np.arange(n, dtype=float), np.zeros(n, dtype=int)
    sums = np.convolve(t[0], np.ones(10))[:n]  # the sum of the last ten rows
    ours = BartlettRoot(time, groups, 10.0).applied(t)[0, :n] * 10**0.5
    assert_allclose(ours, sums, rtol=1e-12)


@pytest.mark.slow
def test_other_array_libraries(xp):
    t = np.random.default_rng(6).standard_normal((2, 3, 300))
    time, groups = times_and_groups(300, "irregular", 5)
    dense = DenseRoot(covariance(time, groups, exponential))
    for root in [*sequential_roots(), dense, StackedRoot((dense, IdentityRoot()), (2.0, 3.0))]:
        ours = root.applied(xp.asarray(t))
        assert isinstance(ours, type(xp.asarray(t)))
        assert_allclose(to_numpy(ours), root.applied(t), rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------- dense covariances


def test_dense_roots_of_covariances_near_the_edge():
    rng = np.random.default_rng(7)
    x = rng.random(150)
    S = np.exp(-((x[:, None] - x) ** 2) / 0.1) * np.outer(1 + x, 1 + x)  # singular to round-off
    assert_allclose(matrix(DenseRoot(S), 150), S, atol=1e-8)
    B = rng.standard_normal((150, 3))
    assert_allclose(matrix(DenseRoot(B @ B.T), 150), B @ B.T, atol=1e-7)
    zero = np.zeros((4, 4))
    assert_allclose(matrix(DenseRoot(zero), 4), zero, atol=1e-8)


def test_slightly_negative_eigenvalues_are_cut_and_clear_ones_refused():
    V = np.linalg.qr(np.random.default_rng(8).standard_normal((40, 40)))[0]
    values = np.linspace(0, 1, 40)
    values[0] = -1e-7
    assert_allclose(matrix(DenseRoot((V * values) @ V.T), 40), (V * values) @ V.T, atol=1e-6)
    values[0] = -0.1
    with pytest.raises(ValueError, match=mentions("eigenvalue", "positive semidefinite")):
        DenseRoot((V * values) @ V.T).applied(V)


# ---------------------------------------------------------------- refusals


def test_rows_out_of_order_are_refused():
    for time, groups in [([0.0, 2, 1], [0, 0, 0]), ([0.0, 0, 1], [0, 1, 0])]:
        for root in (ExponentialRoot, BartlettRoot):
            with pytest.raises(ValueError, match=mentions("order", "sort")):
                root(np.array(time), np.array(groups), 1.0)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_scales_are_positive(value):
    time, groups = np.arange(3.0), np.zeros(3, dtype=int)
    with pytest.raises(ValueError, match=mentions("scale", str(value), "positive")):
        ExponentialRoot(time, groups, value)
    with pytest.raises(ValueError, match=mentions("bandwidth", str(value), "positive")):
        BartlettRoot(time, groups, value)
    with pytest.raises(ValueError, match=mentions("bandwidth", str(value), "positive")):
        QuadraticSpectralRoot(time, value)


def test_a_quadratic_spectral_bandwidth_far_below_the_steps_is_refused():
    with pytest.raises(
        ValueError, match=mentions("bandwidth=0.001", "independent", "homoskedastic")
    ):
        QuadraticSpectralRoot(np.arange(100.0), 0.001)


def test_every_row_is_given_once():
    for root in sequential_roots(20)[1:]:
        for wrong in (19, 21):
            with pytest.raises(ValueError, match=mentions(str(wrong), "20", "rows")):
                root.applied(np.zeros((1, wrong)))


def test_weights_of_a_stack_are_not_negative():
    for weights in [(-1.0,), (1.0, 1.0), ()]:
        with pytest.raises(ValueError, match="weights"):
            StackedRoot((IdentityRoot(),), weights)


def test_dense_roots_do_not_take_blocks():
    with pytest.raises(ValueError, match=mentions("DenseRoot", "all rows", "in memory")):
        StackedRoot((DenseRoot(np.eye(2)),), (1.0,)).running()
