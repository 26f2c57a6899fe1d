"""The ONNX graph of a model, run by onnxruntime, computes what the model computes."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose
from onnx_comparison import (
    OUTPUTS,
    SMALL,
    by_graph,
    by_model,
    default_fit,
    mixed_table,
    require_agreement,
    session,
    to_onnx,
)
from scipy.signal import lfilter

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.core.layer.hidden_layer import ACTIVATIONS
from ulmus.core.ridge.member_pairs import PairGram
from ulmus.core.ridge.sampled_pairs import SampledPairs
from ulmus.core.variance.estimates import ESTIMATES, model_variance
from ulmus.core.variance.quadratic_forms import RowForm
from ulmus.exceptions import DegenerateFitWarning, NegativeVarianceWarning
from ulmus.intervals.distribution import observation_sd
from ulmus.intervals.standard_errors import prediction_variance
from ulmus.noise import AR1

# ---------------------------------------------------------------- whole models


@pytest.mark.slow
@pytest.mark.parametrize("n", [120, 600])
def test_defaults(n):
    model, graph = default_fit(n)
    require_agreement(model, *(mixed_table(p, seed=1)[0] for p in (1, 7, 1000)), graph=graph)
    fit = model.fitted_
    assert fit.ensemble.layer.inputs.normal_scores
    assert fit.ensemble.layer.inputs.one_hot
    assert fit.folded == (n == 120)
    assert n == 120 or fit.noise_model.logs[0] is not None


@pytest.mark.slow
@pytest.mark.parametrize("n", [120, 600])
def test_points_far_outside(n):
    model, graph = default_fit(n)
    X = mixed_table(50, seed=1)[0]
    require_agreement(model, *(factor * X for factor in (-3, 100, 1e6)), graph=graph)


@pytest.mark.slow
def test_knots_and_levels_themselves():
    model, graph = default_fit(120)
    inputs, X = model.fitted_.ensemble.layer.inputs, np.tile(mixed_table(1, seed=1)[0], (80, 1))
    tables = []
    for curve in inputs.normal_scores:
        tables.append(X[: len(curve.knots)].copy())
        tables[-1][:, curve.column] = curve.knots
    (levels,) = inputs.one_hot
    for nudge in (0, 0.5, 1.5):
        tables.append(X[: len(levels.values)].copy())
        tables[-1][:, levels.column] = levels.values + nudge * float(levels.tolerance)
    require_agreement(model, *tables, graph=graph)


def test_one_graph_serves_all_batches():
    run = session(default_fit(120)[1])
    X = mixed_table(300, seed=1)[0]
    whole = by_graph(run, X)
    for few in (slice(0, 0), slice(5, 6), slice(0, 7), slice(100, 300)):
        for name, values in by_graph(run, X[few]).items():
            assert_allclose(values, whole[name][few], rtol=1e-9)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.999, 1 - 1e-9])
def test_levels(level):
    require_agreement(default_fit(120)[0], mixed_table(40, seed=1)[0], level=level)


@pytest.mark.slow
@pytest.mark.parametrize("n_inputs", [1, 2])
def test_few_inputs(n_inputs):
    """Optimisers treat single numbers in their own way."""
    X, y = mixed_table(100)
    model = ELMEnsembleRegressor(4, 20, random_state=0).fit(X[:, :n_inputs], y)
    require_agreement(model, mixed_table(40, seed=1)[0][:, :n_inputs])


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_one_unit(fit_intercept):
    X, y = mixed_table(100)
    X = X[:, :1]
    for model in (plain_member(1), plain_ensemble(3, 1)):
        model.set_params(fit_intercept=fit_intercept, random_state=0)
        require_agreement(model.fit(X, y), X[:40])


@pytest.mark.parametrize("kind", ["auto", "homoskedastic", "heteroskedastic"])
def test_one_network(kind):
    model = ELMRegressor(30, noise=kind, **SMALL).fit(*mixed_table(200))
    require_agreement(model, mixed_table(40, seed=1)[0])


# ---------------------------------------------------------------- parts of the layer


@pytest.mark.slow
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("alpha", [0.0, "loo"])
def test_activations(activation, alpha):
    parameters = SMALL | {"activation": activation, "alpha": alpha}
    model = ELMEnsembleRegressor(4, 20, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateFitWarning)
        model.fit(*mixed_table(150))
    X = mixed_table(40, seed=1)[0]
    require_agreement(model, X, 1e3 * X)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("input_map", "expand_inputs"),
    [
        (None, "normal_scores"),
        (None, "one_hot"),
        (None, ["normal_scores", "one_hot"]),
        ("ard", None),
        ("ard", ["normal_scores", "one_hot"]),
        ("full", None),
        ("full", "normal_scores"),
    ],
)
def test_inputs_and_maps(input_map, expand_inputs):
    X, y = mixed_table(60)
    model = ELMEnsembleRegressor(
        3, 15, input_map=input_map, expand_inputs=expand_inputs, random_state=0
    ).fit(X, y)
    require_agreement(model, mixed_table(40, seed=1)[0], X)


def test_given_map(rng):
    matrix = rng.standard_normal((4, 4))
    model = ELMEnsembleRegressor(3, 15, **SMALL | {"input_map": matrix}).fit(*mixed_table(90))
    require_agreement(model, mixed_table(40, seed=1)[0])


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
def test_paper_settings(fit_intercept, standardize):
    model = plain_ensemble(5, 20, fit_intercept=fit_intercept, standardize=standardize)
    require_agreement(model.fit(*mixed_table(150)), mixed_table(40, seed=1)[0])


@pytest.mark.parametrize("factor", [1e-8, 1e8])
@pytest.mark.parametrize("of", ["X", "y"])
def test_units(factor, of):
    X, y = mixed_table(150)
    X, y = (factor * X, y) if of == "X" else (X, factor * (y + 3))
    expanded = SMALL | {"expand_inputs": ["normal_scores", "one_hot"]}
    model = ELMEnsembleRegressor(4, 30, **expanded).fit(X, y)
    require_agreement(model, X[:40] + 0.01 * X[40:80])


# ---------------------------------------------------------------- variances and noise


@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize(
    ("estimate", "hc"),
    [
        ("NHo", "HC3"),
        ("BR", "HC3"),
        *((name, hc) for name in ("NHe", "S1", "S2", "S3") for hc in ("pooled", "HC3-exact")),
        *((name, "HC3") for name in ("NHe", "S1", "S2", "S3")),
    ],
)
def test_estimates(estimate, hc, n):
    """With 60 rows forms keep them, with 400 they are matrices."""
    model = plain_ensemble(5, 20, variance=[estimate], hc=hc, random_state=0).fit(*mixed_table(n))
    (forms,) = (part.forms for part in model.fitted_.ensemble.regressions)
    form = forms[ESTIMATES[estimate].pairing].shared
    assert isinstance(getattr(form, "diagonal", form), RowForm if n == 60 else PairGram)
    require_agreement(model, mixed_table(40, seed=1)[0])


@pytest.mark.parametrize(("estimate", "n_neurons"), [("BR", 20), ("NHo", 500), ("S2", 20)])
def test_products_between_members_from_a_sample_of_rows(estimate, n_neurons):
    """Groups of several members of 20 units, and of one member of 500."""
    table = mixed_table(11_000 if n_neurons == 500 else 4200)
    model = plain_ensemble(3, n_neurons, variance=[estimate], random_state=0).fit(*table)
    (part,) = model.fitted_.ensemble.regressions
    assert isinstance(part.forms[ESTIMATES[estimate].pairing].shared, SampledPairs)
    require_agreement(model, mixed_table(40, seed=1)[0])


@pytest.mark.parametrize(("estimate", "M"), [("BR", 2), ("S2", 2), ("S3", 3)])
def test_negative_variances(estimate, M):
    """Few wild units: members are hardly correlated, so that estimates may fall below zero."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (40, 1)), 0.1 * rng.standard_normal(40)
    wild = {"alpha": 0.1, "activation": "cos", "weight_scale": 9.0, "fit_intercept": False}
    model = plain_ensemble(M, 3, variance=[estimate], hc="HC2", random_state=6, **wild).fit(X, y)
    points = np.linspace(X.min(), X.max(), 300)[:, None]
    raw = model_variance(estimate, model.fitted_.parts(points))
    assert np.sum(raw < 0) > 5
    require_agreement(model, points)


def test_alpha_without_ridge():
    model = ELMEnsembleRegressor(4, 60, alpha=0, **SMALL).fit(*mixed_table(150))
    require_agreement(model, mixed_table(40, seed=1)[0])


def test_choosing_alpha_counts():
    X = mixed_table(40, seed=1)[0]
    model = plain_ensemble(4, 20, random_state=0).fit(*mixed_table(100))
    fixed = plain_ensemble(4, 20, alpha=model.alpha_, random_state=0).fit(*mixed_table(100))
    assert np.any(model.fitted_.choice_variance(X) > 0)
    assert np.all(model.predict_var(X, "model") >= fixed.predict_var(X, "model") * (1 - 1e-12))
    require_agreement(model, X)
    require_agreement(fixed, X)


def test_degrees_of_freedom_vary():
    """Members that disagree share the variance with few degrees of freedom."""
    model = plain_ensemble(2, 30, alpha=1e-4, random_state=0).fit(*mixed_table(80))
    X = mixed_table(200, seed=1)[0]
    fit = model.fitted_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NegativeVarianceWarning)
        dof = observation_sd(fit, X, prediction_variance(fit, X))[1]
    assert np.max(dof) > 2 * np.min(dof)
    require_agreement(model, X)


def test_noise_that_hangs_together():
    X, y = mixed_table(150)
    noise = lfilter([0.6], [1, -0.8], np.random.default_rng(0).standard_normal(150))
    model = ELMEnsembleRegressor(4, 30, noise=AR1(), **SMALL).fit(X, y + noise)
    assert model.fitted_.noise_dof[0] < 100
    require_agreement(model, X)


@pytest.mark.slow
def test_several_outputs():
    X, y = mixed_table(150)
    rng = np.random.default_rng(3)
    quiet = 1e-3 * np.cos(X[:, 0]) + 1e-5 * rng.standard_normal(len(X))
    y = np.column_stack([quiet, 100 * y, 5 * rng.standard_normal(len(X))])
    model = ELMEnsembleRegressor(4, 30, noise="heteroskedastic", hc="HC3", **SMALL).fit(X, y)
    assert len(model.fitted_.ensemble.regressions) > 1
    require_agreement(model, mixed_table(40, seed=1)[0])


def test_outputs_that_share_a_regression():
    """One noise varies, the other does not."""
    X, y = mixed_table(600)
    y = np.column_stack([np.random.default_rng(3).standard_normal(600), y])
    model = plain_ensemble(4, 20, alpha=0.1, noise="auto", random_state=0).fit(X, y)
    assert len(model.fitted_.ensemble.regressions) == 1
    assert [one is None for one in model.fitted_.noise_model.logs] == [True, False]
    require_agreement(model, mixed_table(40, seed=1)[0])


def test_one_output_in_two_axes():
    X, y = mixed_table(100)
    model = plain_ensemble(3, 10, random_state=0).fit(X, y[:, None])
    require_agreement(model, mixed_table(40, seed=1)[0])


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_row_weights(noise):
    X, y = mixed_table(150)
    weight = np.random.default_rng(4).uniform(0, 3, len(y))
    weight[:5] = 0
    model = plain_ensemble(4, 20, noise=noise, random_state=0).fit(X, y, sample_weight=weight)
    require_agreement(model, mixed_table(40, seed=1)[0])


def test_constant_output():
    X, _ = mixed_table(60)
    model = plain_ensemble(3, 10, random_state=0).fit(X, np.full(60, 4.0))
    values = by_graph(to_onnx(model), X)
    assert_allclose(values["estimate"], 4.0, rtol=1e-12)
    assert_allclose(values["pred_high"], 4.0, rtol=1e-9)


# ---------------------------------------------------------------- where the rows came from


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["auto", "heteroskedastic"])
def test_compressed(noise):
    model = ELMEnsembleRegressor(4, 20, noise=noise, random_state=0).fit(*mixed_table(100))
    X = mixed_table(40, seed=1)[0]
    before = by_graph(to_onnx(model), X)
    after = by_graph(require_agreement(model.compress(), X), X)
    for name in OUTPUTS:
        assert_allclose(after[name], before[name], rtol=1e-9, atol=1e-12)


def test_streams():
    X, y = mixed_table(600)
    blocks = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 600, 100)]
    model = ELMEnsembleRegressor(4, 20, noise="heteroskedastic", **SMALL)
    require_agreement(model.fit_blocks(blocks), mixed_table(40, seed=1)[0])
    model = plain_ensemble(4, 20, random_state=0)
    for block in blocks:
        model.partial_fit(*block)
    require_agreement(model, mixed_table(40, seed=1)[0])


def test_sparse_rows():
    X, y = mixed_table(100)
    model = ELMEnsembleRegressor(3, 15, random_state=0).fit(scipy.sparse.csr_array(X), y)
    require_agreement(model, mixed_table(40, seed=1)[0])


@pytest.mark.slow
def test_torch():
    torch = pytest.importorskip("torch")
    X, y = mixed_table(100)
    model = ELMEnsembleRegressor(3, 15, random_state=0).fit(torch.asarray(X), y)
    require_agreement(model, mixed_table(40, seed=1)[0])


@pytest.mark.slow
def test_single_precision_agrees_to_its_digits():
    model = ELMEnsembleRegressor(4, 30, dtype="float32", random_state=0).fit(*mixed_table(150))
    X = mixed_table(40, seed=1)[0]
    ours, theirs = by_model(model, X), by_graph(to_onnx(model), X)
    size = np.max(np.abs(ours["estimate"]))
    for name in OUTPUTS:
        assert_allclose(theirs[name], ours[name], rtol=1e-2, atol=1e-3 * size)
