"""A table in blocks of rows gives the fit of the whole table, however it is cut."""

import itertools
import pickle
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse
from fit_comparison import assert_same_fit, cut
from hypothesis import given
from hypothesis import strategies as st
from messages import mentions
from models import every_estimate_ensemble, plain_ensemble, plain_member
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from ulmus.exceptions import DegenerateFitWarning

# Results of fits with different weights are compared at the mean weight.

HCS = ["HC0", "HC2", "HC3", "HC3-exact", "pooled"]
ROW_ATTRIBUTES = ["leverage_", "loo_residuals_", "loo_predictions_"]


# ---------------------------------------------------------------- the same as in memory


@pytest.mark.parametrize("n", [30, 90], ids=["fewer rows than features", "more"])
@pytest.mark.parametrize("hc", HCS)
def test_every_estimate_is_that_of_the_whole_table(make_table, hc, n):
    X, y, w, X_new = make_table(n)
    model = every_estimate_ensemble(alpha=0.1, hc=hc)
    assert_same_fit(
        model.fit_blocks(cut(X, y, w)),
        every_estimate_ensemble(alpha=0.1, hc=hc).fit(X, y, w),
        X_new,
    )


@pytest.mark.parametrize("alpha", ["loo", "gcv"])
@pytest.mark.parametrize("intercept", [True, False])
def test_choosing_alpha_costs_the_same_with_fewer_rows_than_units(make_table, alpha, intercept):
    X, y, w, X_new = make_table(24)
    how = {"n_neurons": 40, "alpha": alpha, "fit_intercept": intercept, "variance": "auto"}
    streamed, whole = (
        every_estimate_ensemble(**how).fit_blocks(cut(X, y, w)),
        every_estimate_ensemble(**how).fit(X, y, w),
    )
    costs = [one.fitted_.choice_variance(X_new) for one in (streamed, whole)]
    assert np.any(costs[1] > 0)
    assert_allclose(*costs, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("alpha", ["loo", "gcv"])
def test_choosing_alpha_costs_the_same_where_units_are_dependent(rng, alpha):
    """Rectified units that are never or always active on the rows span few directions."""
    X = rng.standard_normal((200, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(200)
    model = plain_ensemble(3, 60, alpha=alpha, activation="relu", random_state=0)
    whole = clone(model).fit(X, y).fitted_
    assert np.all(whole.ensemble.regressions[0].smoother.rank < 60)
    streamed = model.fit_blocks(cut(X, y)).fitted_
    deviations = [one.ensemble.regressions[0].alpha_deviation for one in (streamed, whole)]
    assert_allclose(*deviations, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 0.3, "loo", "gcv"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_every_setting_is_that_of_the_whole_table(make_table, alpha, intercept, weighted, noise):
    X, y, w, X_new = make_table(120)
    w = w if weighted else None
    how = {"alpha": alpha, "fit_intercept": intercept, "noise": noise, "variance": "auto"}
    ours, expected = (
        every_estimate_ensemble(**how).fit_blocks(cut(X, y, w)),
        every_estimate_ensemble(**how).fit(X, y, w),
    )
    assert_same_fit(ours, expected, X_new)
    # A noise variance that varies comes from two more regressions, on residuals of the first.
    rtol = 1e-8 if noise == "homoskedastic" else 1e-7
    for component in ("total", "model", "weights"):
        variances = [m.predict_var(X_new, component=component) for m in (ours, expected)]
        assert_allclose(*variances, rtol=rtol, err_msg=component)
    for one, two in zip(
        ours.predict(X_new, return_std=True), expected.predict(X_new, return_std=True), strict=True
    ):
        assert_allclose(one, two, rtol=1e-8)


def test_the_noise_of_a_heteroskedastic_stream_differs_between_points(make_table):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 1))
    y = X[:, 0] + np.exp(1.5 * X[:, 0]) * rng.standard_normal(600)
    points = np.linspace(-0.9, 0.9, 9)[:, None]
    how = {"noise": "heteroskedastic", "variance": "auto"}
    ours, expected = (
        every_estimate_ensemble(**how).fit_blocks(cut(X, y, size=100)),
        every_estimate_ensemble(**how).fit(X, y),
    )
    noise = ours.predict_var(points, component="noise")
    assert noise[-1] > 4 * noise[0]
    assert_allclose(noise, expected.predict_var(points, component="noise"), rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("hc", ["HC2", "HC3-exact", "pooled"])
@pytest.mark.parametrize("alpha", [0.1, "loo"])
def test_several_outputs(make_table, alpha, hc):
    X, y, w, X_new = make_table(90)
    Y = np.stack([y, 100 - 5 * X[:, 0], y**2], axis=1)
    how = {"alpha": alpha, "hc": hc, "noise": "heteroskedastic"}
    ours, expected = (
        every_estimate_ensemble(**how).fit_blocks(cut(X, Y, w)),
        every_estimate_ensemble(**how).fit(X, Y, w),
    )
    assert_same_fit(ours, expected, X_new)
    assert ours.predict(X_new).shape == (7, 3)
    assert ours.coef_.shape == expected.coef_.shape == (4, 3, 8)


def test_one_member(make_table):
    X, y, w, X_new = make_table(60)
    ours, expected = (plain_member(8, hc="HC3", random_state=0) for _ in range(2))
    assert_same_fit(ours.fit_blocks(cut(X, y, w)), expected.fit(X, y, w), X_new)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_sparse_blocks(make_table, standardize, weighted, form):
    X, y, w, X_new = make_table(90)
    X = np.where(np.abs(X) > 0.4, X, 0.0)
    blocks = [(form(a), b, c) for a, b, c in cut(X, y, w if weighted else None)]
    how = {"standardize": standardize, "hc": "HC3"}
    expected = every_estimate_ensemble(**how).fit(X, y, w if weighted else None)
    assert_same_fit(every_estimate_ensemble(**how).fit_blocks(blocks), expected, X_new)


def test_blocks_with_and_without_weights_mix(make_table):
    X, y, w, X_new = make_table(60)
    w[20:40] = 1
    blocks = [(X[:20], y[:20], w[:20]), (X[20:40], y[20:40]), (X[40:], y[40:], w[40:])]
    for order in itertools.permutations(blocks):
        model = every_estimate_ensemble().fit_blocks(list(order))
        assert_same_fit(model, every_estimate_ensemble().fit(X, y, w), X_new)


def test_integers_lists_and_single_precision_are_read(make_table):
    X, y, _, X_new = make_table(60)
    X, y = np.round(X * 4), np.round(y * 10)
    blocks = [
        (X[:20].astype(int), y[:20].astype(int)),
        (X[20:40].tolist(), y[20:40].tolist()),
        (X[40:].astype(np.float32), y[40:].astype(np.float32)),
    ]
    assert_same_fit(
        every_estimate_ensemble().fit_blocks(blocks), every_estimate_ensemble().fit(X, y), X_new
    )


@pytest.mark.parametrize("alpha", [0.3, "loo"])
def test_rows_of_weight_zero_are_excluded(make_table, alpha):
    X, y, w, X_new = make_table(90)
    expected = every_estimate_ensemble(alpha=alpha).fit(X, y, w)
    # What such a row holds does not matter, nor where it stands.
    nothing = (np.full((200, 3), 3.0), np.full(200, 1e3), np.zeros(200))
    for blocks in ([*cut(X, y, w), nothing], [nothing, *cut(X, y, w)]):
        model = every_estimate_ensemble(alpha=alpha).fit_blocks(blocks)
        assert np.all(np.isfinite(model.predict(X_new)))
        assert_same_fit(model, expected, X_new)


def test_the_range_of_the_inputs_is_that_of_all_rows():
    X = np.linspace(0, 1, 400)[:, None]
    y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(400)
    model = every_estimate_ensemble(variance="auto").fit_blocks(cut(X, y, size=20))
    model.predict_var(X)  # training rows, sorted or not, are no extrapolation


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("weight_scale", "alpha", "condition", "rtol"),
    [
        (1.5, 0.0, 5e8, 1e-8),
        (1.5, 1e-6, 5e8, 1e-8),
        (1.5, "loo", 5e8, 1e-8),
        (0.05, 1e-6, 1e13, 1e-8),
        # Without ridge, directions down to sqrt(eps) are kept: half of the digits remain.
        (0.05, 0.0, 1e13, 1e-6),
    ],
)
def test_an_ill_conditioned_layer(hidden, weight_scale, alpha, condition, rtol, intercept):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (1500, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(1500)
    model = every_estimate_ensemble(
        3,
        60,
        weight_scale=weight_scale,
        standardize=False,
        alpha=alpha,
        fit_intercept=intercept,
        hc="HC3",
        noise_variance="residual",
    )
    dropped = pytest.warns(DegenerateFitWarning, match="constant or linearly dependent")
    with dropped if alpha == 0 else nullcontext():
        ours = clone(model).fit_blocks(cut(X, y, size=400))
        expected = clone(model).fit(X, y)
    H = np.stack(hidden(expected, X, X))
    s = np.linalg.svd(H - H.mean(axis=1, keepdims=True) if intercept else H, compute_uv=False)
    assert np.min(s[:, 0] / s[:, -1]) > condition
    # With ridge, the rank counts directions of the size of round-off, which change nothing.
    assert_same_fit(ours, expected, X[:40], rtol, same_rank=alpha == 0)


@given(
    cuts=st.lists(st.integers(0, 60), max_size=12),
    alpha=st.sampled_from([0.0, 0.3, "loo", "gcv"]),
    hc=st.sampled_from(HCS),
    noise=st.sampled_from(["homoskedastic", "heteroskedastic"]),
)
def test_any_cut_gives_the_same_fit(make_table, cuts, alpha, hc, noise):
    X, y, w, X_new = make_table(60)
    # Cuts that repeat make empty blocks, neighbours and the ends make blocks of one row.
    edges = [0, *sorted([*cuts, 1, 31, 32, 32, 59]), 60]
    blocks = [(X[a:b], y[a:b], w[a:b]) for a, b in itertools.pairwise(edges)]
    assert {0, 1} <= {len(block[0]) for block in blocks}
    how = {"alpha": alpha, "hc": hc, "noise": noise}
    ours = every_estimate_ensemble(3, 6, **how).fit_blocks(blocks)
    assert_same_fit(ours, every_estimate_ensemble(3, 6, **how).fit(X, y, w), X_new)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [2, -1])
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_the_number_of_threads_does_not_matter(make_table, n_jobs, noise):
    X, y, w, X_new = make_table(150)
    how = {"hc": "HC3", "noise": noise}
    ours = every_estimate_ensemble(n_jobs=n_jobs, **how).fit_blocks(cut(X, y, w))
    assert_same_fit(ours, every_estimate_ensemble(**how).fit_blocks(cut(X, y, w)), X_new)
    assert_same_fit(every_estimate_ensemble(n_jobs=n_jobs, **how).fit(X, y, w), ours, X_new)


# ---------------------------------------------------------------- after a stream


@pytest.fixture
def streamed(make_table):
    X, y, _, X_new = make_table(90)
    model = every_estimate_ensemble(variance="auto").fit_blocks(cut(X, y))
    return model, every_estimate_ensemble(variance="auto").fit(X, y), X_new


def test_rows_are_not_kept(streamed):
    model, in_memory, _ = streamed
    for name in ROW_ATTRIBUTES:
        assert hasattr(in_memory, name)
        assert not hasattr(model, name)
    rng = np.random.default_rng(0)
    model.fit(rng.uniform(-1, 1, (90, 3)), rng.permutation(np.arange(90.0)))
    assert all(hasattr(model, name) for name in ROW_ATTRIBUTES)


def test_the_size_of_a_model_does_not_depend_on_its_rows(make_table):
    sizes = []
    for n in (5000, 9000):  # products between members are from a sample of either
        X, y, _, _ = make_table(n)
        sizes.append(len(pickle.dumps(every_estimate_ensemble().fit_blocks(cut(X, y, size=500)))))
    assert sizes[1] < sizes[0] * 1.01


def test_a_streamed_model_pickles(streamed):
    model, _, X_new = streamed
    sent = pickle.loads(pickle.dumps(model))
    both = [m.predict(X_new, return_std=True) for m in (sent, model)]
    assert_allclose(*both, rtol=1e-13)


def test_conformal_intervals_need_rows_and_auto_is_gaussian(streamed):
    model, in_memory, X_new = streamed
    with pytest.raises(ValueError, match=mentions("'jackknife+'", "'gaussian'", "in memory")):
        model.predict_interval(X_new, method="jackknife+")
    auto = model.predict_interval(X_new, [0.5, 0.9])
    assert_array_equal(auto, model.predict_interval(X_new, [0.5, 0.9], method="gaussian"))
    gaussian = in_memory.predict_interval(X_new, [0.5, 0.9], method="gaussian")
    assert_allclose(auto, gaussian, rtol=1e-8)
    quantiles = model.predict_quantiles(X_new, [0.25, 0.75])
    assert_allclose(quantiles, auto[:, :, 0], rtol=1e-8)


@pytest.mark.parametrize("target", ["function", "expectation"])
def test_confidence_intervals_of_a_homoskedastic_stream(streamed, target):
    model, in_memory, X_new = streamed
    both = [m.predict_interval(X_new, kind="confidence", target=target) for m in (model, in_memory)]
    assert_allclose(*both, rtol=1e-8)
    assert np.isfinite(model.undersmoothing_gap_)


def test_confidence_intervals_of_a_heteroskedastic_stream(make_table):
    X, y, _, X_new = make_table(90)
    how = {"noise": "heteroskedastic", "variance": "auto"}
    model, in_memory = (
        every_estimate_ensemble(**how).fit_blocks(cut(X, y)),
        every_estimate_ensemble(**how).fit(X, y),
    )
    both = [
        m.predict_interval(X_new, kind="confidence", target="expectation")
        for m in (model, in_memory)
    ]
    assert_allclose(*both, rtol=1e-8)
    with pytest.raises(
        ValueError, match=mentions("target='function'", "'expectation'", "in memory")
    ):
        model.predict_interval(X_new, kind="confidence", target="function")


def test_members_can_be_compared_after_a_stream(streamed):
    model, in_memory, X_new = streamed
    for ask in (
        lambda m: m.variance_components(X_new),
        lambda m: m.member_correlation(X_new),
        lambda m: m.variance_at(X_new, 50),
    ):
        assert_allclose(ask(model), ask(in_memory), rtol=1e-7)


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_a_streamed_model_can_be_compressed(make_table, noise):
    X, y, _, X_new = make_table(90)
    model = every_estimate_ensemble(noise=noise, variance="auto").fit_blocks(cut(X, y))
    before = model.predict(X_new, return_std=True)
    assert_allclose(model.compress().predict(X_new, return_std=True), before, rtol=1e-13)
