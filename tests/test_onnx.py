"""The ONNX graph of a model, run by onnxruntime, says what the model says."""

import json
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from plain import plain_ensemble, plain_member
from scipy import special, stats
from shared import says
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ulmus import ELMEnsembleRegressor, ELMRegressor, __version__
from ulmus.core import activations
from ulmus.core.forms import row_form
from ulmus.core.pairing import COMMON
from ulmus.core.variance import ESTIMATES, model_variance
from ulmus.exceptions import DegenerateFitWarning, ExtrapolationWarning, NegativeVarianceWarning
from ulmus.intervals.distribution import observation_sd
from ulmus.intervals.standard_errors import prediction_variance

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from ulmus.onnx import graph as builder  # noqa: E402
from ulmus.onnx import layer as parts  # noqa: E402
from ulmus.onnx import to_onnx, usage  # noqa: E402
from ulmus.onnx.bounds import student_quantile  # noqa: E402
from ulmus.onnx.forms import turned_rows  # noqa: E402

OUTPUTS = ["mean", "se", "sd", "lower", "upper"]
SMALL = {"random_state": 0, "input_map": None, "expand_inputs": None}


@cache
def table(n, seed=0):
    """A plain column, a skewed one, five levels and a second plain one; the noise varies."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 4))
    X[:, 1] = np.exp(1.5 * X[:, 1])
    X[:, 2] = rng.integers(0, 5, n) ** 2
    y = np.sin(2 * X[:, 0]) + np.log(X[:, 1]) * X[:, 3] + 0.05 * X[:, 2]
    return X, y + 0.3 * np.exp(X[:, 0] / 2) * rng.standard_normal(n)


def session(proto):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = proto.SerializeToString()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def by_graph(run, X):
    """Results of a graph, or of a session that has loaded it, at points."""
    run = session(run) if isinstance(run, onnx.ModelProto) else run
    return dict(zip(OUTPUTS, run.run(OUTPUTS, {"X": X}), strict=True))


def by_model(model, X, level=0.95):
    """What the graph should say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        warnings.simplefilter("ignore", NegativeVarianceWarning)
        bounds = model.predict_interval(X, level, method="gaussian")
        return {
            "mean": model.predict(X),
            "se": np.sqrt(model.predict_var(X, component="model")),
            "sd": model.predict(X, return_std=True)[1],
            "lower": bounds[..., 0],
            "upper": bounds[..., 1],
        }


def require_agreement(model, *tables, level=0.95, graph=None):
    """Compare all results at the points of some tables, and return the graph."""
    proto = to_onnx(model, confidence_level=level) if graph is None else graph
    run = session(proto)
    for X in tables:
        ours, theirs = by_model(model, X, level), by_graph(run, X)
        size = np.max(np.abs(ours["mean"]), axis=0)
        for name in OUTPUTS:
            assert theirs[name].shape == ours[name].shape
            assert theirs[name].dtype == np.float64
            limit = 1e-6 * np.abs(ours[name]) + 1e-9 * size
            assert np.all(np.abs(theirs[name] - ours[name]) <= limit), name
    return proto


# ---------------------------------------------------------------- whole models


@cache
def default_fit(n):
    """A fit with the default parameters, and its graph."""
    model = ELMEnsembleRegressor(random_state=0).fit(*table(n))
    return model, to_onnx(model)


@pytest.mark.parametrize("n", [120, 600])
def test_defaults(n):
    model, graph = default_fit(n)
    require_agreement(model, *(table(p, seed=1)[0] for p in (1, 7, 1000)), graph=graph)
    fit = model.fitted_
    assert fit.ensemble.layer.inputs.scores
    assert fit.ensemble.layer.inputs.levels
    assert fit.folded == (n == 120)
    assert n == 120 or fit.noise_model.logs[0] is not None


@pytest.mark.parametrize("n", [120, 600])
def test_points_far_outside(n):
    model, graph = default_fit(n)
    X = table(50, seed=1)[0]
    require_agreement(model, *(factor * X for factor in (-3, 100, 1e6)), graph=graph)


def test_knots_and_levels_themselves():
    model, graph = default_fit(120)
    inputs, X = model.fitted_.ensemble.layer.inputs, np.tile(table(1, seed=1)[0], (80, 1))
    tables = []
    for curve in inputs.scores:
        tables.append(X[: len(curve.knots)].copy())
        tables[-1][:, curve.column] = curve.knots
    (levels,) = inputs.levels
    for nudge in (0, 0.5, 1.5):
        tables.append(X[: len(levels.values)].copy())
        tables[-1][:, levels.column] = levels.values + nudge * float(levels.reach)
    require_agreement(model, *tables, graph=graph)


def test_one_graph_serves_all_batches():
    run = session(default_fit(120)[1])
    X = table(300, seed=1)[0]
    whole = by_graph(run, X)
    for few in (slice(0, 0), slice(5, 6), slice(0, 7), slice(100, 300)):
        for name, values in by_graph(run, X[few]).items():
            assert_allclose(values, whole[name][few], rtol=1e-9)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.999, 1 - 1e-9])
def test_levels(level):
    require_agreement(default_fit(120)[0], table(40, seed=1)[0], level=level)


@pytest.mark.parametrize("n_inputs", [1, 2])
def test_few_inputs(n_inputs):
    """Optimisers treat single numbers in their own way."""
    X, y = table(100)
    model = ELMEnsembleRegressor(4, 20, random_state=0).fit(X[:, :n_inputs], y)
    require_agreement(model, table(40, seed=1)[0][:, :n_inputs])


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_one_unit(fit_intercept):
    X, y = table(100)
    X = X[:, :1]
    for model in (plain_member(1), plain_ensemble(3, 1)):
        model.set_params(fit_intercept=fit_intercept, random_state=0)
        require_agreement(model.fit(X, y), X[:40])


@pytest.mark.parametrize("kind", ["auto", "homoskedastic", "heteroskedastic"])
def test_one_network(kind):
    model = ELMRegressor(30, noise=kind, **SMALL).fit(*table(200))
    require_agreement(model, table(40, seed=1)[0])


# ---------------------------------------------------------------- parts of the layer


@pytest.mark.parametrize("activation", activations.ACTIVATIONS)
@pytest.mark.parametrize("alpha", [0.0, "loo"])
def test_activations(activation, alpha):
    parameters = SMALL | {"activation": activation, "alpha": alpha}
    model = ELMEnsembleRegressor(4, 20, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateFitWarning)
        model.fit(*table(150))
    X = table(40, seed=1)[0]
    require_agreement(model, X, 1e3 * X)


def test_every_activation_has_a_graph():
    assert set(parts.ACTIVATIONS) == set(activations.ACTIVATIONS)


def test_error_function():
    u = np.concatenate([np.linspace(-7, 7, 4001), [-1e300, -0.0, 0.0, 1e-300, 1e300]])
    assert_allclose(evaluated(parts.ACTIVATIONS["erf"], u), special.erf(u), rtol=0, atol=3e-15)


@pytest.mark.parametrize(
    ("input_map", "expand_inputs"),
    [
        (None, "scores"),
        (None, "levels"),
        (None, ["scores", "levels"]),
        ("ard", None),
        ("ard", ["scores", "levels"]),
        ("full", None),
        ("full", "scores"),
    ],
)
def test_inputs_and_maps(input_map, expand_inputs):
    X, y = table(60)
    model = ELMEnsembleRegressor(
        3, 15, input_map=input_map, expand_inputs=expand_inputs, random_state=0
    ).fit(X, y)
    require_agreement(model, table(40, seed=1)[0], X)


def test_given_map(rng):
    matrix = rng.standard_normal((4, 4))
    model = ELMEnsembleRegressor(3, 15, **SMALL | {"input_map": matrix}).fit(*table(90))
    require_agreement(model, table(40, seed=1)[0])


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
def test_paper_settings(fit_intercept, standardize):
    model = plain_ensemble(5, 20, fit_intercept=fit_intercept, standardize=standardize)
    require_agreement(model.fit(*table(150)), table(40, seed=1)[0])


@pytest.mark.parametrize("factor", [1e-8, 1e8])
@pytest.mark.parametrize("of", ["X", "y"])
def test_units(factor, of):
    X, y = table(150)
    X, y = (factor * X, y) if of == "X" else (X, factor * (y + 3))
    expanded = SMALL | {"expand_inputs": ["scores", "levels"]}
    model = ELMEnsembleRegressor(4, 30, **expanded).fit(X, y)
    require_agreement(model, X[:40] + 0.01 * X[40:80])


# ---------------------------------------------------------------- variances and noise


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize("hc", ["HC3", "HC3-exact", "pooled"])
def test_estimates(estimate, n, hc):
    """With 60 rows forms keep them, with 400 they are matrices."""
    model = plain_ensemble(5, 20, noise="heteroskedastic", variance=[estimate], hc=hc)
    if ESTIMATES[estimate].pairing == "common":
        model.set_params(noise="homoskedastic")
    require_agreement(model.fit(*table(n)), table(40, seed=1)[0])


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
    model = ELMEnsembleRegressor(4, 60, alpha=0, **SMALL).fit(*table(150))
    require_agreement(model, table(40, seed=1)[0])


def test_choosing_alpha_counts():
    X = table(40, seed=1)[0]
    model = plain_ensemble(4, 20, random_state=0).fit(*table(100))
    fixed = plain_ensemble(4, 20, alpha=model.alpha_, random_state=0).fit(*table(100))
    assert np.any(model.fitted_.choice_variance(X) > 0)
    assert np.all(model.predict_var(X, "model") >= fixed.predict_var(X, "model") * (1 - 1e-12))
    require_agreement(model, X)
    require_agreement(fixed, X)


def test_degrees_of_freedom_vary():
    """Members that disagree share the variance with few degrees of freedom."""
    model = plain_ensemble(2, 30, alpha=1e-4, random_state=0).fit(*table(80))
    X = table(200, seed=1)[0]
    fit = model.fitted_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NegativeVarianceWarning)
        dof = observation_sd(fit, X, prediction_variance(fit, X))[1]
    assert np.max(dof) > 2 * np.min(dof)
    require_agreement(model, X)


def test_student_quantiles():
    dof = np.concatenate([np.linspace(3, 30, 500), np.geomspace(30, 1e6, 500)])
    for level in (1e-3, 0.5, 0.95, 0.999, 1 - 1e-9):
        found = evaluated(lambda g, x, level=level: student_quantile(g, x, level), 1 / dof)
        assert_allclose(found, stats.t.isf((1 - level) / 2, dof), rtol=1e-9)


def test_several_outputs():
    X, y = table(150)
    rng = np.random.default_rng(3)
    quiet = 1e-3 * np.cos(X[:, 0]) + 1e-5 * rng.standard_normal(len(X))
    y = np.column_stack([quiet, 100 * y, 5 * rng.standard_normal(len(X))])
    model = ELMEnsembleRegressor(4, 30, noise="heteroskedastic", random_state=0, hc="HC3")
    model.fit(X, y)
    assert len(model.fitted_.ensemble.regressions) > 1
    proto = require_agreement(model, table(40, seed=1)[0])
    assert "(batch, 3)" in usage(proto, "a.onnx")


def test_one_output_in_two_axes():
    X, y = table(100)
    model = plain_ensemble(3, 10, random_state=0).fit(X, y[:, None])
    require_agreement(model, table(40, seed=1)[0])


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_row_weights(noise):
    X, y = table(150)
    weight = np.random.default_rng(4).uniform(0, 3, len(y))
    weight[:5] = 0
    model = plain_ensemble(4, 20, noise=noise, random_state=0).fit(X, y, sample_weight=weight)
    require_agreement(model, table(40, seed=1)[0])


def test_constant_output():
    X, _ = table(60)
    model = plain_ensemble(3, 10, random_state=0).fit(X, np.full(60, 4.0))
    values = by_graph(to_onnx(model), X)
    assert_allclose(values["mean"], 4.0, rtol=1e-12)
    assert_allclose(values["upper"], 4.0, rtol=1e-9)


# ---------------------------------------------------------------- where the rows came from


@pytest.mark.parametrize("noise", ["auto", "heteroskedastic"])
def test_compressed(noise):
    model = ELMEnsembleRegressor(4, 20, noise=noise, random_state=0).fit(*table(100))
    X = table(40, seed=1)[0]
    before = by_graph(to_onnx(model), X)
    after = by_graph(require_agreement(model.compress(), X), X)
    for name in OUTPUTS:
        assert_allclose(after[name], before[name], rtol=1e-9, atol=1e-12)


def test_streams():
    X, y = table(600)
    blocks = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 600, 100)]
    model = ELMEnsembleRegressor(4, 20, noise="heteroskedastic", **SMALL)
    require_agreement(model.fit_blocks(blocks), table(40, seed=1)[0])
    model = plain_ensemble(4, 20, random_state=0)
    for block in blocks:
        model.partial_fit(*block)
    require_agreement(model, table(40, seed=1)[0])


def test_sparse_rows():
    X, y = table(100)
    model = ELMEnsembleRegressor(3, 15, random_state=0).fit(scipy.sparse.csr_array(X), y)
    require_agreement(model, table(40, seed=1)[0])


def test_torch():
    torch = pytest.importorskip("torch")
    X, y = table(100)
    model = ELMEnsembleRegressor(3, 15, random_state=0).fit(torch.asarray(X), y)
    require_agreement(model, table(40, seed=1)[0])


def test_single_precision_agrees_to_its_digits():
    model = ELMEnsembleRegressor(4, 30, dtype="float32", random_state=0).fit(*table(150))
    X = table(40, seed=1)[0]
    ours, theirs = by_model(model, X), by_graph(to_onnx(model), X)
    size = np.max(np.abs(ours["mean"]))
    for name in OUTPUTS:
        assert_allclose(theirs[name], ours[name], rtol=1e-2, atol=1e-3 * size)


# ---------------------------------------------------------------- the graph itself


def evaluated(function, x):
    """A function that is written into a graph, at numbers x."""
    graph = builder.Graph()
    result = graph("Identity", function(graph, "x"))
    return session(graph.model({"x": [len(x)]}, {"y": (result, [len(x)])})).run(None, {"x": x})[0]


def test_graph_is_valid_and_standard():
    proto = default_fit(120)[1]
    onnx.checker.check_model(proto, full_check=True)
    assert {node.domain for node in proto.graph.node} == {""}
    assert proto.opset_import[0].version == 17
    doubles = {onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64}
    assert {array.data_type for array in proto.graph.initializer} == doubles


def test_constants_and_nodes_are_stored_once():
    proto = default_fit(120)[1]
    arrays = [(a.data_type, tuple(a.dims), a.raw_data) for a in proto.graph.initializer]
    assert all(raw for *_, raw in arrays)
    assert len(set(arrays)) == len(arrays)
    nodes = [(n.op_type, tuple(n.input), str(n.attribute)) for n in proto.graph.node]
    inner = [node for node in nodes if node[0] != "Identity"]
    assert len(set(inner)) == len(inner)


@pytest.mark.parametrize("hc", ["pooled", "HC3"])
def test_no_training_rows_are_written(hc):
    X, y = table(80)
    model = plain_ensemble(3, 40, noise="heteroskedastic", hc=hc, random_state=0).fit(X, y)
    form = model.fitted_.ensemble.regressions[0].forms["own"].shared
    assert form.Q.shape[2] == 80
    arrays = to_onnx(model).graph.initializer
    written = np.concatenate([np.frombuffer(a.raw_data) for a in arrays])
    scaled = form.Q * np.sqrt(form.omega)[:, None, :]
    for secret in (X[:, [0, 1, 3]], y, form.Q[:, 1:], scaled):
        assert not np.any(np.isin(np.abs(secret[secret != 0]), np.abs(written)))


def test_turned_rows_depend_on_products_alone(rng):
    Q = rng.standard_normal((2, 6, 9))
    turned, again = (turned_rows(row_form(q, COMMON)) for q in (Q, Q[:, :, ::-1]))
    assert_allclose(np.abs(turned), np.abs(again), rtol=1e-9, atol=1e-12)
    stacked = Q.reshape(12, 9)
    assert_allclose(turned @ turned.T, stacked @ stacked.T, rtol=1e-9, atol=1e-12)


def test_bad_rows_give_no_numbers_and_spoil_no_others():
    X = table(20, seed=1)[0].copy()
    run = session(default_fit(120)[1])
    whole = by_graph(run, X)
    for j in range(X.shape[1]):
        bad = X.copy()
        bad[3, j] = np.nan
        for name, values in by_graph(run, bad).items():
            assert np.isnan(values[3])
            assert_allclose(np.delete(values, 3), np.delete(whole[name], 3), rtol=1e-12)


def test_metadata():
    pd = pytest.importorskip("pandas")
    X, y = table(60)
    frame = pd.DataFrame(X, columns=["a", "Größe", 'the "third"', "d"])
    proto = to_onnx(plain_ensemble(3, 10, random_state=0).fit(frame, y), confidence_level=0.8)
    properties = {item.key: item.value for item in proto.metadata_props}
    assert properties["ulmus_version"] == __version__
    assert float(properties["confidence_level"]) == 0.8
    assert properties["estimate"] == "BR"
    assert json.loads(properties["feature_names"]) == list(frame.columns)
    text = usage(proto, "a file.onnx")
    for name in (*OUTPUTS, *frame.columns, "X", "(batch, 4)", "level 0.8", "a file.onnx"):
        assert name in text


def test_usage_can_be_run(tmp_path):
    X, y = table(60)
    model = plain_ensemble(3, 10, random_state=0).fit(X, y)
    proto, path = to_onnx(model), tmp_path / "model.onnx"
    onnx.save(proto, path)
    code = [line[4:] for line in usage(proto, path).split("Input")[0].splitlines()[2:]]
    names = {"table": X}
    exec("\n".join(code), names)
    assert_allclose(names["mean"], model.predict(X), rtol=1e-6)
    assert_allclose(names["upper"], by_model(model, X)["upper"], rtol=1e-6)


# ---------------------------------------------------------------- what is refused


def test_refusals(monkeypatch):
    X, y = table(60)
    model = plain_member(10, random_state=0)
    with pytest.raises(NotFittedError):
        to_onnx(model)
    with pytest.raises(ValueError, match=says("Pipeline", "last step")):
        to_onnx(make_pipeline(StandardScaler(), model).fit(X, y))
    with pytest.raises(ValueError, match=says("confidence_level", "between 0 and 1")):
        to_onnx(model.fit(X, y), confidence_level=95)
    with pytest.raises(ValueError, match=says("activation", "by name", "'tanh'")):
        to_onnx(plain_member(10, activation=np.arctan).fit(X, y))
    monkeypatch.setattr(builder, "LARGEST_BYTES", 1000)
    with pytest.raises(ValueError, match=says("GB", "n_neurons", "n_estimators")):
        to_onnx(model)


def test_only_exports_need_onnx():
    code = "import sys; sys.modules['onnx'] = None; import ulmus; print('fine'); import ulmus.onnx"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "fine"
    assert "pip install 'ulmus[onnx]'" in run.stderr
