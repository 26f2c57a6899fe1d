"""Commands that make something for others: reports, graphs, and the demonstration."""

import json

import numpy as np
import pytest
from command_line import SMALL, done, facts, read_csv, refusal, sample

import ulmus

pytest.importorskip("jinja2")
pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("products")
    sample().to_csv(folder / "t.csv", index=False)
    sample(40, 1).to_csv(folder / "new.csv", index=False)
    sample(40, 1).drop(columns="y").to_csv(folder / "bare.csv", index=False)
    done("fit", folder / "t.csv", "-t", "y", *SMALL, "-o", folder / "m.ulmus")
    return folder


def page(path):
    return path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_fit_can_write_its_report(folder, tmp_path):
    for way in ("--in-memory", "--stream"):
        out = tmp_path / f"{way}.html"
        start = ("fit", folder / "t.csv", "-t", "y", *SMALL, "-o", tmp_path / "m.ulmus", way)
        result = facts(*start, "--report", out)
        assert result["report"] == str(out)
        assert "A model of y" in page(out)


@pytest.mark.slow
def test_reports_of_training_rows_of_new_ones_and_without_a_target(folder, tmp_path):
    out = tmp_path / "r.html"
    result = facts("report", folder / "m.ulmus", folder / "t.csv", "-o", out)
    assert (result["rows"], result["observed"]) == (80, True)
    assert "They are the rows of this report" in page(out)
    facts("report", folder / "m.ulmus", folder / "new.csv", "-o", out, "--title", "Ozone & co")
    assert "They are the rows of this report" not in page(out)
    assert "Ozone &amp; co" in page(out)
    result = facts("report", folder / "m.ulmus", folder / "bare.csv", "-o", out)
    assert not result["observed"]
    assert "there are no observations" in " ".join(result["notes"])


@pytest.mark.slow
def test_a_report_that_cannot_be_written(folder, tmp_path):
    start = ("report", folder / "m.ulmus", folder / "t.csv", "-o")
    assert ".html" in refusal(*start, tmp_path / "r.txt")
    assert "folder" in refusal(*start, tmp_path / "none" / "r.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_exported_graph_computes_what_predict_computes(folder, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    path = tmp_path / "m.onnx"
    text = done("export", folder / "m.ulmus", "--onnx", path, "--confidence-level", 0.9).stdout
    assert "InferenceSession" in text
    assert "kind=" in text
    model, X = ulmus.load(folder / "m.ulmus"), read_csv(folder / "new.csv")
    session = runtime.InferenceSession(path)
    inputs = model.columns_.encode(model.columns_.parse(X)[0])
    mean, se, sd, lower, upper = session.run(None, {"X": inputs})
    np.testing.assert_allclose(mean, model.predict(X), rtol=1e-6)
    np.testing.assert_allclose(sd, model.predict(X, return_std=True)[1], rtol=1e-6)
    np.testing.assert_allclose(se**2, model.predict_var(X, component="model"), rtol=1e-6)
    bounds = model.predict_interval(X, 0.9, method="gaussian")
    np.testing.assert_allclose(np.column_stack([lower, upper]), bounds, rtol=1e-6)
    assert "must end in .onnx" in refusal("export", folder / "m.ulmus", "--onnx", tmp_path / "m")


@pytest.mark.slow
def test_the_demonstration(tmp_path):
    text = done("demo", tmp_path / "demo").stdout
    files = {path.name for path in (tmp_path / "demo").iterdir()}
    assert files == {"diabetes.csv", "model.ulmus", "predictions.csv", "report.html"}
    assert "$ ulmus fit" in text
    document = ulmus.model_file.model_document(tmp_path / "demo" / "model.ulmus")
    assert document["target"] == "progression"
    assert json.dumps(document)
    assert len(read_csv(tmp_path / "demo" / "predictions.csv")) == 442
