"""Variances by forms of low rank agree with the exact ones, everywhere a fit uses them."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import ulmus
from ulmus import ELMEnsembleRegressor
from ulmus.core.fit.low_rank import TOLERANCE
from ulmus.core.variance.low_rank import (
    MemberKernel,
    NetworkKernel,
    kernel_spectrum,
    low_rank_forms,
)

SETTINGS = {"input_map": None, "expand_inputs": None, "random_state": 0, "n_estimators": 5}


def table(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n)


def points(seed=1, n=150, d=3):
    """New points, and points up to ten percent outside the range."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return np.concatenate([X, 1.1 * X[:50]])


def with_exact_forms(model):
    """The same model with exact forms."""
    other = ulmus.ELMEnsembleRegressor(**{**model.get_params(), "exact": True})
    other.__dict__.update(model.__dict__)
    fit = model.fitted_
    other.fitted_ = replace(
        fit, spec=replace(fit.spec, regression=replace(fit.spec.regression, exact=True))
    )
    return other


@pytest.fixture(scope="module", params=["homoskedastic", "heteroskedastic", "primal"])
def model(request):
    X, y = table(1500 if request.param == "primal" else 400)
    noise = "homoskedastic" if request.param == "primal" else request.param
    return ELMEnsembleRegressor(n_neurons=170, noise=noise, **SETTINGS).fit(X, y)


def test_standard_errors_agree_within_the_stated_tolerance(model):
    exact, X = with_exact_forms(model), points()
    assert 0 < model.variance_tolerance_ <= TOLERANCE
    assert exact.variance_tolerance_ == 0
    for component in ("model", "total"):
        variances = (one.predict_var(X, component=component) for one in (model, exact))
        approximate, expected = (np.sqrt(v) for v in variances)
        np.testing.assert_allclose(approximate, expected, rtol=TOLERANCE)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-12)


def test_effects_and_their_covariances_agree(model):
    exact, (X, _) = with_exact_forms(model), table(60, seed=5)
    by = np.repeat([0, 1, 2], 20)
    frames = [
        (one.average(X, by=by), one.compare(X, 0, by=by), one.slope(X, 1, by=by))
        for one in (model, exact)
    ]
    for a, b in zip(*frames, strict=True):
        np.testing.assert_allclose(a["estimate"], b["estimate"], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(a["std_error"], b["std_error"], rtol=2 * TOLERANCE)
        C, D = (np.asarray(frame.attrs["covariance"]) for frame in (a, b))
        sd = np.sqrt(np.diag(D))
        np.testing.assert_allclose(C / sd / sd[:, None], D / sd / sd[:, None], atol=2 * TOLERANCE)


def test_joint_covariance_agrees_and_is_semidefinite(model):
    exact, X = with_exact_forms(model), points(3, 40)
    C, D = (one.predict_cov(X) for one in (model, exact))
    sd = np.sqrt(np.diag(D))
    np.testing.assert_allclose(C / sd / sd[:, None], D / sd / sd[:, None], atol=2 * TOLERANCE)
    assert np.linalg.eigvalsh(C)[0] > -1e-12 * np.max(C)


@pytest.mark.parametrize("target", ["expectation", "function"])
def test_confidence_intervals_agree(model, target):
    exact, X = with_exact_forms(model), points(7)
    a, b = (one.predict_interval(X, kind="confidence", target=target) for one in (model, exact))
    width = b[:, 1] - b[:, 0]
    np.testing.assert_allclose(a[:, 1] - a[:, 0], width, rtol=2 * TOLERANCE)
    assert np.max(np.abs(np.mean(a - b, axis=1)) / width) < 1e-9


@pytest.mark.parametrize("method", ["auto", "jackknife+", "gaussian"])
def test_prediction_intervals_agree(model, method):
    exact, X = with_exact_forms(model), points(9)
    a, b = (one.predict_interval(X, method=method) for one in (model, exact))
    # Largest at isolated points, whose leverage needs more coordinates.
    moved = np.abs(a - b).max(axis=1) / (b[:, 1] - b[:, 0])
    assert np.max(moved) < 0.04
    assert np.quantile(moved, 0.95) < TOLERANCE


@pytest.mark.parametrize("rows", [True, False])
def test_results_are_equal_after_saving(model, rows, tmp_path):
    X = points(11)
    model.save(tmp_path / "model.ulmus", rows=rows)
    again = ulmus.load(tmp_path / "model.ulmus")
    assert again.variance_tolerance_ == model.variance_tolerance_
    pairs = again.predict(X, return_std=True), model.predict(X, return_std=True)
    for a, b in zip(*pairs, strict=True):
        np.testing.assert_array_equal(a, b)
    for target in ("expectation", "function"):
        kind = {"kind": "confidence", "target": target}
        a, b = (one.predict_interval(X, **kind) for one in (again, model))
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
    if rows:
        # Their forms are computed again from the rows, and stored in single precision.
        a, b = (one.predict_interval(X) for one in (again, model))
        np.testing.assert_allclose(a, b, atol=1e-7)
        a, b = (one.next_points(X, n=2) for one in (again, model))
        assert list(a["row"]) == list(b["row"])
        np.testing.assert_allclose(a["variance"], b["variance"], rtol=1e-9)


def test_compressed_models_keep_their_standard_errors(model):
    X = points(13)
    expected = model.predict(X, return_std=True)
    other = ELMEnsembleRegressor(**model.get_params())
    other.__dict__.update(model.__dict__)
    compressed = other.compress()
    for a, b in zip(compressed.predict(X, return_std=True), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="exact=True"):
        compressed.next_points(X)


def test_variances_are_never_negative_and_do_not_collapse_far_outside(model):
    exact = with_exact_forms(model)
    far = 3.0 * points(15)
    with pytest.warns(ulmus.exceptions.ExtrapolationWarning):
        approximate, expected = (
            np.sqrt(one.predict_var(far, component="model")) for one in (model, exact)
        )
    assert np.all(approximate > 0.5 * expected)
    inside = np.sqrt(model.predict_var(points(15), component="model"))
    assert np.median(approximate) > 2 * np.median(inside)


def test_standard_errors_follow_the_units_of_y():
    X, y = table()
    settings = {"n_neurons": 150, "noise": "homoskedastic", **SETTINGS}
    one = ELMEnsembleRegressor(**settings).fit(X, y)
    other = ELMEnsembleRegressor(**settings).fit(X, 8.0 * y - 3.0)
    assert one.variance_tolerance_ > 0
    a, b = (m.predict_var(points(), component="model") for m in (one, other))
    np.testing.assert_allclose(b, 64 * a, rtol=1e-6)


def test_outputs_with_noise_of_their_own():
    X, y = table()
    Y = np.column_stack([y, X[:, 1] * (1 + 0.5 * np.random.default_rng(2).normal(size=len(X)))])
    model = ELMEnsembleRegressor(n_neurons=170, noise="auto", **SETTINGS).fit(X, Y)
    exact = with_exact_forms(model)
    assert model.variance_tolerance_ > 0
    a, b = (np.sqrt(one.predict_var(points(), component="model")) for one in (model, exact))
    np.testing.assert_allclose(a, b, rtol=TOLERANCE)
    a, b = (one.predict_interval(points()) for one in (model, exact))
    assert np.max(np.abs(a - b) / np.median(b[..., 1, :] - b[..., 0, :])) < TOLERANCE


def test_small_fits_and_fits_that_need_many_coordinates_stay_exact():
    X, y = table(100)
    assert ELMEnsembleRegressor(n_neurons=30, **SETTINGS).fit(X, y).variance_tolerance_ == 0
    X, _ = table(500, d=12)
    noise = np.random.default_rng(0).normal(size=500)
    rough = ELMEnsembleRegressor(n_neurons=200, alpha=1e-6, **SETTINGS).fit(X, noise)
    assert rough.variance_tolerance_ == 0
    assert rough.fitted_.low_rank is None


def test_points_between_rows_of_few_distinct_inputs():
    """Neighbours of a row are not its copies, so that the basis covers what lies between rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 5)).astype(float)
    y = X.sum(axis=1) + X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=400)
    model = ELMEnsembleRegressor(n_neurons=170, noise="homoskedastic", **SETTINGS).fit(X, y)
    assert model.variance_tolerance_ > 0
    between = X.copy()
    between[np.arange(400), rng.integers(0, 5, 400)] = rng.random(400)  # on an edge
    a, b = (
        np.sqrt(m.predict_var(between, component="model")) for m in (model, with_exact_forms(model))
    )
    np.testing.assert_allclose(a, b, rtol=2 * model.variance_tolerance_)


def test_forms_beyond_single_precision_raise_no_warning_of_numpy():
    X, _ = table(1100)
    settings = {**SETTINGS, "n_estimators": 2, "n_neurons": 400, "activation": "logistic"}
    model = ELMEnsembleRegressor(alpha=1e-6, noise="homoskedastic", **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ulmus.exceptions.UlmusWarning)
        model.fit(X, np.full(len(X), 3.7))
        assert np.all(model.predict_var(X[:9], component="model") < 1e-20)


def test_single_precision_and_torch():
    torch = pytest.importorskip("torch")
    X, y = table()
    settings = {"n_neurons": 150, "noise": "homoskedastic", **SETTINGS}
    expected = ELMEnsembleRegressor(**settings).fit(X, y)
    sd = np.sqrt(expected.predict_var(points(), component="model"))
    model = ELMEnsembleRegressor(**settings).fit(torch.asarray(X), torch.asarray(y))
    assert model.variance_tolerance_ > 0
    found = np.sqrt(np.asarray(model.predict_var(torch.asarray(points()), component="model")))
    np.testing.assert_allclose(found, sd, rtol=TOLERANCE)
    single = ELMEnsembleRegressor(**settings, dtype="float32").fit(X, y)
    rough = np.sqrt(single.predict_var(points(), component="model"))
    exact = np.sqrt(with_exact_forms(single).predict_var(points(), component="model"))
    np.testing.assert_allclose(rough, exact, rtol=2 * TOLERANCE)


@pytest.fixture(scope="module")
def small():
    X, y = table(60)
    model = ELMEnsembleRegressor(n_neurons=15, noise="homoskedastic", **SETTINGS)
    return model.fit(X, y), X


def test_full_rank_reproduces_every_form_at_the_basis_points(small):
    fit, h = small[0].fitted_, small[0].fitted_.features(small[1])
    (part,) = fit.ensemble.regressions
    kernel = MemberKernel(part.exact, part.forms["common"], 0.1)
    basis = kernel_spectrum(kernel, h).basis(80, 0.0)
    t = kernel.coordinates(h)
    gram = np.sum(kernel.gram(t)), kernel.gram(t)
    forms = low_rank_forms(kernel, part.forms, basis)
    c = forms.coordinates(h)
    np.testing.assert_allclose(c.T @ c, gram[1], rtol=2e-4, atol=2e-4 * np.max(gram[1]))
    expected = part.forms["common"].means(part.exact.coordinates(h))
    for found, one in zip(forms.pairs["common"].means(c), expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=5e-3)


def test_adjoint_of_undersmoothed_coordinates(small):
    fit, h = small[0].fitted_, small[0].fitted_.features(small[1])
    (part,), (network,) = fit.ensemble.regressions, fit.undersmoothing.networks
    pairs = fit.noise_forms[0]
    kernel = NetworkKernel(part.exact, network, pairs.shared, pairs.scale[0], 0)
    t = kernel.coordinates(h)
    a = np.random.default_rng(0).normal(size=(t.shape[0], 3))
    np.testing.assert_allclose(kernel.adjoint(a).T @ h.reshape(-1, h.shape[2]), a.T @ t, rtol=1e-6)
    parts = fit.undersmoothed_parts(small[1])
    means = kernel.group_coefficients @ h.reshape(-1, h.shape[2])
    unit, shift = fit.ensemble.unit, fit.ensemble.shift
    np.testing.assert_allclose(shift + unit * means.mean(axis=0), parts.mean[:, 0], rtol=1e-9)


def test_a_loaded_model_can_be_compressed(model, tmp_path):
    X = points(11)
    model.save(tmp_path / "model.ulmus")
    again = ulmus.load(tmp_path / "model.ulmus").compress()
    np.testing.assert_array_equal(
        again.predict(X, return_std=True), model.predict(X, return_std=True)
    )
    kind = {"kind": "confidence", "target": "function"}
    a, b = (one.predict_interval(X, **kind) for one in (again, model))
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def test_a_file_without_exact_forms_computes_them_from_its_rows(tmp_path):
    X, y = table(500, d=12)
    settings = {"n_neurons": 200, "alpha": 1e-6, "noise": "homoskedastic", **SETTINGS}
    model = ELMEnsembleRegressor(**settings).fit(X, y)
    path = tmp_path / "model.ulmus"
    model.save(path)
    assert path.stat().st_size < 1e6 < model.fitted_.ensemble.regressions[0].exact.to_t.nbytes
    again = ulmus.load(path)
    new = X[:50] + 0.1
    for estimate in model.variance_estimates_:
        a, b = (one.predict_var(new, estimate=estimate) for one in (again, model))
        np.testing.assert_allclose(a, b, rtol=1e-9)
    a, b = (one.predict_interval(new) for one in (again, model))
    np.testing.assert_allclose(a, b, rtol=1e-9)


def test_graphs_have_the_same_standard_errors(model):
    onnxruntime = pytest.importorskip("onnxruntime")
    from ulmus.onnx import to_onnx

    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    X = points(19)
    estimate, std_error, sd, *_ = session.run(None, {"X": X})
    np.testing.assert_allclose(estimate, model.predict(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        std_error, np.sqrt(model.predict_var(X, component="model")), rtol=1e-4
    )
    np.testing.assert_allclose(sd, model.predict(X, return_std=True)[1], rtol=1e-5)
