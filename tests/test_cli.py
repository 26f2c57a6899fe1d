"""The command line, run in process."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner

from ulmus.cli import app

KEYS = [
    "table",
    "setting",
    "n_estimators",
    "split",
    "measure",
    "estimate",
    "mean",
    "sd",
    "paper_mean",
    "paper_sd",
]


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_table(tmp_path):
    sizes = ("--replications", 4, "--ensembles", 10)
    target = tmp_path / "numbers.json"
    result = run("table1", *sizes, "--output", tmp_path, "--json", target)
    assert result.exit_code == 0, result.output
    assert "n=100" in result.output
    found = json.loads(target.read_text())
    assert len(found) == 112
    assert all(list(row) == KEYS for row in found)
    assert {row["split"] for row in found} == {"train", "test"}
    assert all(row["paper_mean"] is not None for row in found)
    for suffix in ("csv", "json"):
        assert (tmp_path / f"table1.{suffix}").exists()


def test_figure(tmp_path):
    pytest.importorskip("matplotlib")
    result = run("figure1", "--replications", 4, "--ensembles", 10, "--output", tmp_path)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "figure1.png").exists()
    assert (tmp_path / "figure1.svg").exists()


def test_selection(tmp_path, monkeypatch):
    from ulmus.experiments import selection

    monkeypatch.setattr(selection, "SEARCHES", selection.SEARCHES[:1])
    result = run("selection", "--replications", 3, "--output", tmp_path)
    assert result.exit_code == 0, result.output
    assert "n_neurons" in result.output


def test_bad_arguments_say_what_is_wrong():
    result = run("table9")
    assert result.exit_code == 2
    result = run("table1", "--precision", "half")
    assert result.exit_code == 2
    assert "float64" in result.output


def test_importing_ulmus_loads_no_extra():
    code = (
        "import sys, ulmus; "
        "print([m for m in ('typer', 'rich', 'matplotlib', 'torch', 'joblib.parallel') "
        "if m in sys.modules and m != 'joblib.parallel'])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert output.stdout.strip() == "[]"
