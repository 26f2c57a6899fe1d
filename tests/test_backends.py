"""Torch and other arrays give NumPy's numbers, in their own library; precision; threads."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.special
from numpy.testing import assert_allclose
from shared import says
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.core.backend import (
    column_sums,
    erf,
    like,
    logistic,
    member_products,
    row_products,
    to_numpy,
    triangular_factor,
)
from ulmus.core.forms import COMMON, OTHERS, OWN, PairGram, member_groups
from ulmus.core.hidden import ACTIVATIONS
from ulmus.core.moments import Block
from ulmus.core.scaling import feature_scale
from ulmus.exceptions import DegenerateFitWarning


@pytest.fixture(scope="module", params=["torch", "array_api_strict"])
def xp(request):
    """An array library other than NumPy."""
    return pytest.importorskip(request.param, reason=f"needs {request.param}")


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="needs torch")


@pytest.fixture
def on_device(monkeypatch):
    """Arrays count as living on a device, wherever they are."""
    for module in ("backend", "forms"):
        monkeypatch.setattr(f"ulmus.core.{module}.is_on_host", lambda array: False)


def ensemble(**parameters):
    """A small ensemble with every estimate unless told."""
    parameters = {"weight_scale": 2.0, "variance": "all", "random_state": 0} | parameters
    return ELMEnsembleRegressor(6, 8, **parameters)


def assert_close(ours, expected, rtol=1e-8, **how):
    """Two results agree, whatever library they are of."""
    expected = to_numpy(expected)
    atol = rtol * np.abs(expected).mean()
    assert_allclose(to_numpy(ours), expected, rtol=rtol, atol=atol, **how)


def answers(model, X):
    """All that a fitted model says about points, by name."""
    mean, sd = model.predict(X, return_std=True)
    out = {"mean": mean, "sd": sd, "gaussian": model.predict_interval(X, method="gaussian")}
    for component in ("total", "model", "noise", "weights"):
        out[component] = model.predict_var(X, component=component)
    for estimate in ("NHo", "BR", "NHe", "S1", "S2", "S3"):
        out[estimate] = model.predict_var(X, component="model", estimate=estimate)
    for target in ("expectation", "function") if model.noise == "homoskedastic" else ():
        out[target] = model.predict_interval(X, kind="confidence", target=target)
    return out


def assert_same_answers(ours, expected, points, X_new, kind):
    """Two models say the same; ours in the library of its points."""
    for name in ("alpha_", "noise_variance_", "dof_", "rank_"):
        assert_allclose(getattr(ours, name), getattr(expected, name), rtol=1e-8, err_msg=name)
    theirs = answers(expected, X_new)
    for name, value in answers(ours, points).items():
        assert isinstance(value, kind), name
        assert value.dtype == points.dtype, name
        assert tuple(value.shape) == theirs[name].shape, name
        assert_close(value, theirs[name], err_msg=name)


# ---------------------------------------------------------------- other array libraries


@pytest.mark.parametrize("n", [30, 150], ids=["fewer rows than features", "more"])
@pytest.mark.parametrize(
    "how",
    [
        {"alpha": 0.1, "hc": "HC3"},
        {"alpha": "loo", "hc": "HC3-exact", "fit_intercept": False},
        {"alpha": "gcv", "hc": "ensemble", "noise": "heteroskedastic"},
        {"alpha": "loo", "noise_variance": "residual", "standardize": False},
    ],
    ids=str,
)
def test_fit_follows_the_data(xp, make_table, how, n):
    X, y, w, X_new = make_table(n)
    ours = ensemble(**how).fit(xp.asarray(X), xp.asarray(y), xp.asarray(w))
    expected = ensemble(**how).fit(X, y, w)
    points = xp.asarray(X_new)
    assert isinstance(ours.model_.q, type(points))
    assert_same_answers(ours, expected, points, X_new, type(points))
    for name in ("leverage_", "loo_residuals_", "loo_predictions_", "coef_", "intercept_"):
        assert isinstance(getattr(ours, name), np.ndarray)
        assert_allclose(getattr(ours, name), getattr(expected, name), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
@pytest.mark.parametrize("method", ["auto", "jackknife+", "jackknife", "gaussian"])
def test_prediction_intervals(xp, make_table, method, noise):
    X, y, _, X_new = make_table(90)
    how = {"noise": noise, "variance": "auto"}
    ours, expected = ensemble(**how).fit(xp.asarray(X), xp.asarray(y)), ensemble(**how).fit(X, y)
    points = xp.asarray(X_new)
    bounds = ours.predict_interval(points, [0.5, 0.9], method=method)
    assert isinstance(bounds, type(points))
    assert_close(bounds, expected.predict_interval(X_new, [0.5, 0.9], method=method))
    quantiles = ours.predict_quantiles(points, [0.1, 0.9])
    assert isinstance(quantiles, type(points))
    assert_close(quantiles, expected.predict_quantiles(X_new, [0.1, 0.9]))


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_fit_blocks_follows_the_data(xp, make_table, noise):
    X, y, w, X_new = make_table(90)
    blocks = [
        (xp.asarray(X[a:b]), xp.asarray(y[a:b]), xp.asarray(w[a:b]))
        for a, b in ((0, 40), (40, 40), (40, 41), (41, 90))
    ]
    ours, expected = ensemble(noise=noise).fit_blocks(blocks), ensemble(noise=noise).fit(X, y, w)
    points = xp.asarray(X_new)
    assert isinstance(ours.model_.q, type(points))
    theirs = answers(expected, X_new)
    for name, value in answers(ours, points).items():
        assert isinstance(value, type(points)), name
        assert_close(value, theirs[name], err_msg=name)


def test_partial_fit_follows_the_data(xp, make_table):
    X, y, w, X_new = make_table(90)
    how = {"alpha": 0.1, "standardize": False, "variance": "auto"}
    ours = ensemble(**how)
    for rows in (slice(50), slice(50, 51), slice(51, 90)):
        ours.partial_fit(xp.asarray(X[rows]), xp.asarray(y[rows]), xp.asarray(w[rows]))
    expected = ensemble(**how).fit(X, y, w)
    variance = ours.predict_var(xp.asarray(X_new))
    assert isinstance(variance, type(xp.asarray(X_new)))
    assert_close(variance, expected.predict_var(X_new))


def test_several_outputs(xp, make_table):
    X, y, _, X_new = make_table(90)
    Y = np.stack([y, 100 - 3 * X[:, 0]], axis=1)
    for ours in (
        ensemble().fit(xp.asarray(X), xp.asarray(Y)),
        ensemble().fit_blocks([(xp.asarray(X[:50]), Y[:50]), (xp.asarray(X[50:]), Y[50:])]),
    ):
        expected = ensemble().fit(X, Y)
        assert_close(ours.predict(xp.asarray(X_new)), expected.predict(X_new))
        assert_close(ours.predict_var(xp.asarray(X_new)), expected.predict_var(X_new))


def test_one_member(xp, make_table):
    X, y, _, X_new = make_table(60)
    ours = ELMRegressor(8, random_state=0).fit(xp.asarray(X), xp.asarray(y))
    expected = ELMRegressor(8, random_state=0).fit(X, y)
    assert_close(ours.predict_var(xp.asarray(X_new)), expected.predict_var(X_new))


def test_libraries_mix(xp, make_table):
    X, y, _, X_new = make_table(60)
    foreign, points = ensemble().fit(xp.asarray(X), y), xp.asarray(X_new)
    local = ensemble().fit(X, y)
    for ours, at, kind in ((foreign, X_new, np.ndarray), (local, points, type(points))):
        assert isinstance(ours.predict(at), kind)
        assert_close(ours.predict(at), local.predict(X_new))
        assert_close(ours.predict_var(at), local.predict_var(X_new))


def test_members_can_be_compared(xp, make_table):
    X, y, _, X_new = make_table(90)
    ours, expected = ensemble().fit(xp.asarray(X), y), ensemble().fit(X, y)
    for ask in ("variance_components", "member_correlation"):
        ours_parts = getattr(ours, ask)(xp.asarray(X_new))
        expected_parts = getattr(expected, ask)(X_new)
        for one, two in zip(ours_parts, expected_parts, strict=True):
            assert_close(one, two)
    assert_allclose(ours.bias_alarm_, expected.bias_alarm_, rtol=1e-7)
    ours.compress()
    assert_close(ours.predict_var(xp.asarray(X_new)), expected.predict_var(X_new))


def test_bad_arrays_are_refused(xp, make_table):
    X, y, _, X_new = make_table(60)
    bad = X.copy()
    bad[41, 1] = np.nan
    with pytest.raises(ValueError, match=says("NaN", "drop or fill")):
        ensemble().fit(xp.asarray(bad), y)
    blocks = [(xp.asarray(bad[:40]), y[:40]), (xp.asarray(bad[40:]), y[40:])]
    with pytest.raises(ValueError, match=says("X of block 1", "row 1;")):
        ensemble().fit_blocks(blocks)
    model = ensemble().fit(xp.asarray(X), y)
    with pytest.raises(ValueError, match=says("2 features", "3")):
        model.predict(xp.asarray(X_new[:, :2]))
    with pytest.raises(ValueError, match="axes"):
        model.predict(xp.asarray(X_new[0]))


def test_the_scale_of_the_inputs(xp, make_table):
    X, y, w, _ = make_table(60)
    root = np.sqrt(w)
    ours = feature_scale([Block(xp.asarray(X), xp.asarray(y[None, :]), xp.asarray(root))])
    expected = feature_scale([Block(X, y[None, :], root)])
    assert isinstance(ours.sd, np.ndarray)
    assert_allclose(ours.mean, expected.mean, rtol=1e-12)
    assert_allclose(ours.sd, expected.sd, rtol=1e-12)


# ---------------------------------------------------------------- a device by name


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_a_device_computes_for_numpy(torch, make_table, noise):
    X, y, w, X_new = make_table(90)
    expected = ensemble(noise=noise).fit(X, y, w)
    blocks = [(X[:50], y[:50], w[:50]), (X[50:], y[50:], w[50:])]
    for ours in (
        ensemble(noise=noise, device="cpu").fit(X, y, w),
        ensemble(noise=noise, device="cpu").fit_blocks(blocks),
    ):
        assert isinstance(ours.model_.q, torch.Tensor)
        assert_same_answers(ours, expected, X_new, X_new, np.ndarray)


def test_a_device_and_threads(torch, make_table):
    X, y, w, X_new = make_table(90)
    ours = ensemble(device="cpu", n_jobs=2).fit(X, y, w)
    assert_same_answers(ours, ensemble().fit(X, y, w), X_new, X_new, np.ndarray)


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
        groups = [slice(0, M)] if pairs else member_groups(M)
        total = PairGram.zeros(4, groups, like=tensor)
        for rows in (slice(300), slice(300, 500)):
            part = None if omega is None else torch.asarray(omega[:, rows])
            total.add(tensor[:, :, rows], weights, part)
        return total

    expected = gram()
    for module in ("backend", "forms"):
        monkeypatch.setattr(f"ulmus.core.{module}.is_on_host", lambda array: False)
    ours = gram()
    assert_allclose(ours.single.numpy(), expected.single.numpy(), rtol=1e-10, atol=1e-10)
    for one, two in zip(ours.upper, expected.upper, strict=True):
        assert_allclose(one.numpy(), two.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", [30, 400], ids=["fewer rows than features", "more"])
@pytest.mark.parametrize("hc", ["HC2", "HC3-exact", "ensemble"])
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_a_fit_by_the_ways_of_a_device(torch, make_table, on_device, n, hc, noise):
    X, y, w, X_new = make_table(n)
    how = {"hc": hc, "noise": noise}
    # NumPy arrays have no device: theirs are the ways of the host only without the patch.
    ours = ensemble(**how).fit(*map(torch.asarray, (X, y, w)))
    with pytest.MonkeyPatch.context() as host:
        for module in ("backend", "forms"):
            host.setattr(f"ulmus.core.{module}.is_on_host", lambda array: True)
        expected = ensemble(**how).fit(X, y, w)
        theirs = answers(expected, X_new)
    for name, value in answers(ours, torch.asarray(X_new)).items():
        assert_close(value, theirs[name], err_msg=name)


# ---------------------------------------------------------------- functions

POINTS = np.concatenate([np.linspace(-6, 6, 101), [-1e3, -40.0, 0.0, 40.0, 1e3]])


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations(xp, reference_activations, name):
    value = ACTIVATIONS[name](xp.asarray(POINTS.copy()))
    assert isinstance(value, type(xp.asarray(POINTS)))
    assert_allclose(to_numpy(value), reference_activations[name](POINTS), rtol=1e-13, atol=1e-15)


def test_logistic_and_error_function(xp):
    ours = logistic(xp.asarray(POINTS.copy())), erf(xp.asarray(POINTS))
    assert_allclose(to_numpy(ours[0]), scipy.special.expit(POINTS), rtol=1e-13, atol=1e-15)
    assert_allclose(to_numpy(ours[1]), scipy.special.erf(POINTS), rtol=1e-13, atol=1e-15)


def test_matrices(xp):
    A = np.random.default_rng(0).standard_normal((3, 20, 4))
    R = to_numpy(triangular_factor(xp.asarray(A)))
    assert R.shape == (3, 4, 4)
    assert_allclose(R.transpose(0, 2, 1) @ R, A.transpose(0, 2, 1) @ A, rtol=1e-10, atol=1e-10)
    sums = to_numpy(column_sums(xp.asarray(A), xp.asarray(A)))
    assert_allclose(sums, np.einsum("ijk,ijk->k", A, A), rtol=1e-12)
    back = to_numpy(like(A[:, ::2], xp.asarray(A[0])))
    assert_allclose(back, A[:, ::2], rtol=0)


# ---------------------------------------------------------------- single precision


@pytest.fixture(scope="module")
def smooth():
    """A well-conditioned example: few units, strong weights, ridge; and its exact fit."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    y = 2 + np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(2000)
    model = ELMEnsembleRegressor(
        8, 20, alpha=0.1, weight_scale=4.0, variance=["BR", "NHo", "S2"], random_state=0
    )
    return X, y, rng.uniform(-0.9, 0.9, (200, 3)), model


@pytest.mark.parametrize("device", [None, "cpu"], ids=["numpy", "torch"])
@pytest.mark.parametrize("streamed", [False, True])
def test_single_precision(smooth, request, device, streamed):
    if device:
        request.getfixturevalue("torch")
    X, y, points, model = smooth
    # Single precision cannot resolve the pilot's ridge and uses the residual noise variance.
    exact = clone(model).set_params(noise_variance="residual").fit(X, y)
    ours = clone(model).set_params(dtype="float32", device=device)
    if streamed:
        ours.fit_blocks([(X[a : a + 500], y[a : a + 500]) for a in range(0, 2000, 500)])
    else:
        ours.fit(X, y)
    assert "float32" in str(ours.model_.q.dtype)
    mean = ours.predict(points)
    assert mean.dtype == np.float64  # results have the precision of the points
    assert np.abs(mean - exact.predict(points)).max() < 1e-4 * np.std(y)
    assert_allclose(ours.noise_variance_, exact.noise_variance_, rtol=1e-3)
    for estimate in ours.variance_estimates_:
        both = [m.predict_var(points, "model", estimate) for m in (ours, exact)]
        assert_allclose(*both, rtol=0.01, err_msg=estimate)
    bounds = [m.predict_interval(points, method="gaussian") for m in (ours, exact)]
    assert_allclose(*bounds, rtol=0, atol=1e-3 * np.std(y))


@pytest.mark.parametrize("device", [None, "cpu"], ids=["numpy", "torch"])
@pytest.mark.parametrize("noise_variance", ["pilot", "residual"])
@pytest.mark.parametrize("variance", ["BR", "S2"])
def test_single_precision_with_a_hundred_units(smooth, request, device, noise_variance, variance):
    if device:
        request.getfixturevalue("torch")
    X, y, points, _ = smooth
    model = ELMEnsembleRegressor(
        8, 100, noise_variance=noise_variance, variance=variance, random_state=0
    )
    exact = clone(model).fit(X, y)
    ours = clone(model).set_params(dtype="float32", device=device).fit(X, y)
    assert np.abs(ours.predict(points) - exact.predict(points)).max() < 1e-2 * np.std(y)
    assert_allclose(ours.noise_variance_, exact.noise_variance_, rtol=0.05)
    both = [m.predict_var(points, component="model") for m in (ours, exact)]
    assert_allclose(*both, rtol=0.05)


@pytest.mark.parametrize("alpha", ["loo", "gcv", 1e-3, 0.0])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.NegativeVarianceWarning")
def test_single_precision_is_finite_where_layers_are_ill_conditioned(
    make_table, request, kind, alpha
):
    X, y, _, X_new = make_table(300)
    model = ELMEnsembleRegressor(4, 60, alpha=alpha, dtype="float32", random_state=0)
    if kind == "torch":
        torch = request.getfixturevalue("torch")
        X, X_new = torch.asarray(X), torch.asarray(X_new)
    if alpha == 0:
        with pytest.warns(DegenerateFitWarning, match="constant or repeat"):
            model.fit(X, y)
    else:
        model.fit(X, y)
    mean, sd = (to_numpy(a) for a in model.predict(X_new, return_std=True))
    assert np.all(np.isfinite(mean))
    assert np.all(sd > 0)
    exact = ELMEnsembleRegressor(4, 60, alpha="loo", random_state=0).fit(to_numpy(X), y)
    assert np.abs(mean - exact.predict(to_numpy(X_new))).max() < np.std(y)


def test_points_in_single_precision_get_results_in_it(xp, make_table):
    X, y, _, X_new = make_table(90)
    model = ensemble(variance="auto").fit(X, y)
    points = xp.asarray(X_new.astype(np.float32))
    assert model.predict(points).dtype == points.dtype
    assert_close(model.predict(points), model.predict(X_new), rtol=1e-5)
    assert model.predict(X_new.astype(np.float32)).dtype == np.float32


def test_an_unknown_precision(make_table):
    X, y, _, _ = make_table(60)
    with pytest.raises(ValueError, match=says("dtype", "'float16'", "'float32'")):
        ensemble(dtype="float16").fit(X, y)


# ---------------------------------------------------------------- what is loaded, and threads


LOADED = """
import sys
import numpy as np, sklearn.linear_model, sklearn.metrics, scipy.stats, threadpoolctl

before = set(sys.modules)  # pandas, which scikit-learn loads, has favourites of its own
import ulmus, ulmus.blocks, ulmus.metrics

X = np.random.default_rng(0).uniform(size=(50, 2))
model = ulmus.ELMEnsembleRegressor(3, 5, random_state=0)
model.fit_blocks([(X, X[:, 0])]).predict_interval(X)
model.fit(X, X[:, 0]).predict_interval(X)
ours = {"torch", "cupy", "dask", "distributed", "pyarrow", "matplotlib", "rich"}
print(sorted(ours & (set(sys.modules) - before)))
print(sorted({"torch", "cupy", "dask", "distributed", "matplotlib"} & set(sys.modules)))
"""


def test_a_numpy_fit_loads_no_optional_package():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[]", "[]"]


@pytest.mark.parametrize("streamed", [False, True])
def test_threads_do_not_multiply(make_table, streamed):
    X, y, _, _ = make_table(400)
    seen = {}

    def blas_threads():
        return max(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")

    def watched(u):
        seen.setdefault(threading.current_thread(), set()).add(blas_threads())
        return np.tanh(u)

    model = ensemble(activation=watched, n_jobs=2, variance="auto")
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() < 2:
            pytest.skip("this BLAS has one thread only")
        if streamed:
            model.fit_blocks([(X[a : a + 20], y[a : a + 20]) for a in range(0, 400, 20)])
        else:
            model.fit(X, y)
        assert blas_threads() == 2  # as it was before
    in_passes = [n for thread, n in seen.items() if thread is not threading.main_thread()]
    assert in_passes
    assert set.union(*in_passes) == {1}


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_an_unusable_number_of_threads(make_table, n_jobs):
    X, y, _, _ = make_table(60)
    with pytest.raises(ValueError, match=says("n_jobs", repr(n_jobs))):
        ensemble(n_jobs=n_jobs).fit(X, y)
