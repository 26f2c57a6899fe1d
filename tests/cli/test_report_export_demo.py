"""Commands that make something for others: reports, graphs, and the demonstration."""

import json
import re

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
    assert "bounds are Gaussian ones" in text
    assert "not those of `ulmus predict` by default" in text
    model, X = ulmus.load(folder / "m.ulmus"), read_csv(folder / "new.csv")
    session = runtime.InferenceSession(path)
    inputs = model.columns_.encode(model.columns_.parse(X)[0])
    mean, se, sd, lower, upper = session.run(None, {"X": inputs})
    code = text.split("onnxruntime`:")[1].split("Input\n")[0]  # what the command prints
    names = {"table": X}
    exec("\n".join(line[4:] for line in code.splitlines()), names)
    np.testing.assert_array_equal(names["estimate"], mean)
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
    assert re.search(r"This took \d+ seconds\.", text)


def test_the_demonstration_as_json(tmp_path, monkeypatch):
    """One document; the commands, whose results are files, print nothing."""
    run_commands = []
    monkeypatch.setattr("ulmus.cli.demo._run", lambda words, console: run_commands.append(words))
    result = facts("demo", tmp_path / "demo")
    assert result["model"] == str(tmp_path / "demo" / "model.ulmus")
    assert result["seconds"] >= 0
    assert [words[0] for words in run_commands] == ["fit", "predict", "slope"]


def test_the_help_of_export_says_which_bounds_it_writes():
    text = " ".join(done("export", "--help").stdout.split())
    assert "ulmus predict --method gaussian" in text
    assert "They differ from the default of ulmus predict" in text


@pytest.mark.slow
def test_gaussian_bounds_of_predict_are_those_of_the_graph(folder, tmp_path):
    """What the text of ``ulmus export`` says of its bounds."""
    out = tmp_path / "o.csv"
    start = ("predict", folder / "m.ulmus", folder / "new.csv", "-o", out)
    done(*start, "--method", "gaussian")
    model, X = ulmus.load(folder / "m.ulmus"), read_csv(folder / "new.csv")
    bounds = model.predict_interval(X, method="gaussian")
    np.testing.assert_allclose(read_csv(out)[["pred_low", "pred_high"]], bounds)
    assert not np.allclose(bounds, model.predict_interval(X))
    done(*start, "--tails", "shortest")
    shortest = model.predict_interval(X, tails="shortest")
    np.testing.assert_allclose(read_csv(out)[["pred_low", "pred_high"]], shortest)
