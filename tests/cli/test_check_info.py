"""``ulmus check`` and ``ulmus info``."""

import json

import numpy as np
import pytest
from command_line import PLAIN, done, facts, refusal, run, sample

import ulmus
from ulmus.model_file import model_document


@pytest.fixture(scope="module")
def place(small_model):
    """A folder with a model with rows, and the same without."""
    model, table = small_model / "m.ulmus", small_model / "t.csv"
    ulmus.model_file.save(ulmus.load(model), small_model / "bare.ulmus", rows=False, target="y")
    assert table.exists()
    return small_model


def test_check_of_the_training_rows_is_that_of_python(place):
    result = facts("check", place / "m.ulmus")
    report = ulmus.load(place / "m.ulmus").check()
    assert result["severity"] == report.severity
    assert result["title"] == report.title
    assert [f["code"] for f in result["findings"]] == [f.code for f in report.findings]
    assert len(result["coverage"]) == len(report.coverage)
    text = done("check", place / "m.ulmus").stdout
    assert text.startswith(f"[{report.severity}] {report.title}\n")


def test_check_of_a_table_is_an_out_of_sample_test(place, tmp_path):
    sample(60, seed=5).to_csv(tmp_path / "new.csv", index=False)
    result = run("check", place / "m.ulmus", tmp_path / "new.csv", "--json")
    assert "60" in json.loads(result.stdout)["title"]


@pytest.mark.parametrize("severity", ["ok", "warning", "error"])
def test_the_exit_code_is_1_for_an_error_only(place, tmp_path, severity, monkeypatch):
    from ulmus.diagnostics import DiagnosticReport, Finding

    found = Finding("rows", "rows", "size", severity, 1.0, "few.", ("add rows",))
    report = DiagnosticReport("a title", (found,), ())
    monkeypatch.setattr(ulmus.ELMEnsembleRegressor, "check", lambda *_, **__: report)
    result = run("check", place / "m.ulmus")
    assert result.exit_code == (severity == "error")
    assert f"[{severity}]" in result.stdout
    quiet = run("check", place / "m.ulmus", "--quiet")
    assert (quiet.exit_code, quiet.output) == (severity == "error", "")
    document = run("check", place / "m.ulmus", "--json")
    assert document.exit_code == (severity == "error")
    assert json.loads(document.stdout)["findings"][0]["suggestion"] in ("add rows.", "")


def test_observations_that_are_wrong_by_far_are_an_error(place, tmp_path):
    """A real table with severity ``error``, so that the exit code is not that of a mock."""
    new = sample(80, seed=9)
    new["y"] = new.y * 20 + 50
    new.to_csv(tmp_path / "new.csv", index=False)
    result = run("check", place / "m.ulmus", tmp_path / "new.csv", "--json")
    assert json.loads(result.stdout)["severity"] == "error"
    assert result.exit_code == 1


def test_check_without_rows_needs_a_table(place, tmp_path):
    message = refusal("check", place / "bare.ulmus")
    assert "contains no training rows" in message
    assert "give a table with the target" in message
    assert run("check", place / "bare.ulmus", place / "t.csv").exit_code in (0, 1)


def test_check_names_the_target_that_is_lacking(place, tmp_path):
    sample().drop(columns="y").to_csv(tmp_path / "new.csv", index=False)
    assert "new.csv has no column 'y'" in refusal("check", place / "m.ulmus", tmp_path / "new.csv")
    renamed = sample().rename(columns={"y": "height"})
    renamed.to_csv(tmp_path / "other.csv", index=False)
    start = ("check", place / "m.ulmus", tmp_path / "other.csv", "--target", "height")
    assert run(*start).exit_code in (0, 1)


# ---------------------------------------------------------------- info


def test_the_header_is_the_document_of_the_file(place):
    result = facts("info", place / "m.ulmus", "--header")
    document = model_document(place / "m.ulmus")
    assert result["ulmus"] == document["ulmus"]
    assert result["date"] == document["date"]
    assert result["training_rows"] == 80
    assert result["training_rows_kept"] is True
    assert result["bytes"] == (place / "m.ulmus").stat().st_size
    assert result["target"] == "y"
    assert [column["name"] for column in result["columns"]] == ["t", "kind", "day", "wet", "count"]
    types = {column["name"]: column["type"] for column in result["columns"]}
    assert types == {
        "t": "number",
        "kind": "category",
        "day": "date",
        "wet": "boolean",
        "count": "number",
    }
    assert result["parameters"]["n_estimators"] == 2
    assert result["parameters"]["input_map"] is None
    assert "summary" not in result


def test_info_has_the_brief_summary(place):
    result = facts("info", place / "m.ulmus")
    expected = ulmus.load(place / "m.ulmus").summary().to_dict()
    assert result["summary"]["r2"] == pytest.approx(expected["r2"])
    text = done("info", place / "m.ulmus").stdout
    for words in (
        "category: a, b, c",
        "contains its training rows",
        "leave-one-out",
        "n_neurons=10",
    ):
        assert words in text
    assert max(map(len, text.splitlines())) <= 100


def test_info_says_what_a_file_without_rows_cannot_do(place):
    text = done("info", place / "bare.ulmus").stdout
    assert "contains no training rows" in text
    assert "requires a table" in text
    assert facts("info", place / "bare.ulmus")["training_rows_kept"] is False


def test_info_of_a_model_of_an_array(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = ulmus.ELMEnsembleRegressor(2, 5, input_map=None, random_state=0)
    model.fit(X, X.sum(axis=1)).save(tmp_path / "m.ulmus")
    result = facts("info", tmp_path / "m.ulmus")
    assert [column["name"] for column in result["columns"]] == ["x0", "x1"]
    assert result["target"] is None
    done("info", tmp_path / "m.ulmus")


def test_info_refuses_other_files(place):
    assert "is not a model file" in refusal("info", place / "t.csv")
    assert "does not exist" in refusal("info", place / "no.ulmus")


def test_a_fit_that_is_streamed_has_no_rows_to_check(place, tmp_path):
    start = ("fit", place / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus")
    done(*start, *PLAIN, "--stream")
    assert "give a table" in refusal("check", tmp_path / "m.ulmus")


def test_info_lists_the_first_of_many_columns(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 60))
    model = ulmus.ELMEnsembleRegressor(2, 5, input_map=None, random_state=0)
    model.fit(X, X.sum(axis=1)).save(tmp_path / "m.ulmus")
    text = done("info", tmp_path / "m.ulmus", "--header").stdout
    assert "x49  number" in text
    assert "x50" not in text
    assert "and 10 more; --json lists all of them" in text
    assert len(facts("info", tmp_path / "m.ulmus", "--header")["columns"]) == 60
