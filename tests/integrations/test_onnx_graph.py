"""What is in an ONNX graph: its constants, functions and words, and what is refused."""

import json
import subprocess
import sys

import numpy as np
import pytest
from messages import mentions
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose
from onnx_comparison import (
    OUTPUTS,
    builder,
    by_graph,
    by_model,
    default_fit,
    evaluated,
    mixed_table,
    onnx,
    session,
    to_onnx,
)
from scipy import special, stats
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ulmus import __version__
from ulmus.core.layer.hidden_layer import ACTIVATIONS
from ulmus.core.ridge.member_pairs import COMMON, PairSums
from ulmus.core.variance.estimates import ESTIMATES, PointParts, never_negative
from ulmus.core.variance.quadratic_forms import row_form
from ulmus.integrations.onnx import layer as parts
from ulmus.integrations.onnx.bounds import student_quantile
from ulmus.integrations.onnx.forms import row_factor
from ulmus.integrations.onnx.variance import never_negative as graph_estimate
from ulmus.onnx import usage

# ---------------------------------------------------------------- the graph itself


@pytest.mark.slow
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
    X, y = mixed_table(80)
    model = plain_ensemble(3, 40, noise="heteroskedastic", hc=hc, random_state=0).fit(X, y)
    form = model.fitted_.ensemble.regressions[0].forms["own"].shared
    assert form.Q.shape[2] == 80
    arrays = to_onnx(model).graph.initializer
    written = np.concatenate([np.frombuffer(a.raw_data) for a in arrays])
    scaled = form.Q * np.sqrt(form.omega)[:, None, :]
    for secret in (X[:, [0, 1, 3]], y, form.Q[:, 1:], scaled):
        assert not np.any(np.isin(np.abs(secret[secret != 0]), np.abs(written)))


def test_row_factor_depend_on_products_alone(rng):
    Q = rng.standard_normal((2, 6, 9))
    turned, again = (row_factor(row_form(q, COMMON)) for q in (Q, Q[:, :, ::-1]))
    assert_allclose(np.abs(turned), np.abs(again), rtol=1e-9, atol=1e-12)
    stacked = Q.reshape(12, 9)
    assert_allclose(turned @ turned.T, stacked @ stacked.T, rtol=1e-9, atol=1e-12)


def test_bad_rows_give_no_numbers_and_spoil_no_others():
    X = mixed_table(20, seed=1)[0].copy()
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
    X, y = mixed_table(60)
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
    X, y = mixed_table(60)
    model = plain_ensemble(3, 10, random_state=0).fit(X, y)
    proto, path = to_onnx(model), tmp_path / "model.onnx"
    onnx.save(proto, path)
    code = [line[4:] for line in usage(proto, path).split("Input")[0].splitlines()[2:]]
    names = {"table": X}
    exec("\n".join(code), names)
    assert_allclose(names["estimate"], model.predict(X), rtol=1e-6)
    assert_allclose(names["pred_high"], by_model(model, X)["pred_high"], rtol=1e-6)


def test_every_activation_has_a_graph():
    assert set(parts.ACTIVATIONS) == set(ACTIVATIONS)


def test_error_function():
    u = np.concatenate([np.linspace(-7, 7, 4001), [-1e300, -0.0, 0.0, 1e-300, 1e300]])
    assert_allclose(evaluated(parts.ACTIVATIONS["erf"], u), special.erf(u), rtol=0, atol=3e-15)


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates_are_never_negative(name, rng):
    M, n = 4, 500
    A, U, spread = rng.exponential(size=n), 3 * rng.standard_normal(n), rng.exponential(size=n)

    def estimate(graph, x):
        pair = PairSums(graph.constant(A), graph.constant(U))
        return graph_estimate(graph, name, pair, x, M)

    parts_of_points = PointParts(np.zeros(n), spread, A, U, A, M)
    expected = never_negative(name, parts_of_points)
    assert_allclose(evaluated(estimate, spread / M), expected, rtol=1e-12, atol=1e-14)


def test_student_quantiles():
    dof = np.concatenate([np.linspace(3, 30, 500), np.geomspace(30, 1e6, 500)])
    for level in (1e-3, 0.5, 0.95, 0.999, 1 - 1e-9):
        found = evaluated(lambda g, x, level=level: student_quantile(g, x, level), 1 / dof)
        assert_allclose(found, stats.t.isf((1 - level) / 2, dof), rtol=1e-10)


# ---------------------------------------------------------------- what is refused


def test_refusals(monkeypatch):
    X, y = mixed_table(60)
    model = plain_member(10, random_state=0)
    with pytest.raises(NotFittedError):
        to_onnx(model)
    with pytest.raises(ValueError, match=mentions("Pipeline", "last step")):
        to_onnx(make_pipeline(StandardScaler(), model).fit(X, y))
    with pytest.raises(ValueError, match=mentions("confidence_level", "between 0 and 1")):
        to_onnx(model.fit(X, y), confidence_level=95)
    with pytest.raises(ValueError, match=mentions("activation", "is a function", "'tanh'")):
        to_onnx(plain_member(10, activation=np.arctan).fit(X, y))
    monkeypatch.setattr(builder, "LARGEST_BYTES", 1000)
    with pytest.raises(ValueError, match=mentions("GB", "n_neurons", "n_estimators")):
        to_onnx(model)


@pytest.mark.slow
def test_only_exports_need_onnx():
    code = "import sys; sys.modules['onnx'] = None; import ulmus; print('fine'); import ulmus.onnx"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "fine"
    assert "pip install 'ulmus[onnx]'" in run.stderr


def test_usage_of_a_data_frame_encodes_it(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"kind": rng.choice(["elm", "oak"], 60), "t": rng.normal(size=60)})
    model = plain_ensemble(3, 9, random_state=0).fit(table, rng.normal(size=60))
    proto, path = to_onnx(model), tmp_path / "m.onnx"
    onnx.save(proto, path)
    code = usage(proto, path).partition("onnxruntime`:")[2].partition("Input\n")[0]
    found = {"model": model, "table": table}
    exec("\n".join(line.removeprefix("    ") for line in code.splitlines()), found)
    assert_allclose(found["estimate"], model.predict(table), rtol=1e-6)
