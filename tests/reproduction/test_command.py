"""``python -m reproduction``, run in process."""

import json

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

import typer
from typer.testing import CliRunner

from reproduction.__main__ import reproduce

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
    app = typer.Typer()
    app.command()(reproduce)
    return CliRunner().invoke(app, [*map(str, arguments)])


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
    from reproduction import selection

    monkeypatch.setattr(selection, "SEARCHES", selection.SEARCHES[:1])
    result = run("selection", "--replications", 3, "--output", tmp_path)
    assert result.exit_code == 0, result.output
    assert "n_neurons" in result.output
    assert json.loads((tmp_path / "selection.json").read_text())[0]["paper"] == 4


def test_bad_arguments_say_what_is_wrong():
    result = run("table9")
    assert result.exit_code == 2
    result = run("table1", "--precision", "half")
    assert result.exit_code == 2
    assert "float64" in result.output


@pytest.mark.parametrize(
    ("option", "value"), [("--device", "nowhere"), ("--jobs", 0), ("--inputs", -1)]
)
def test_a_bad_option_is_one_message(option, value, tmp_path):
    result = run("table1", option, value, "--output", tmp_path)
    assert result.exit_code == 2
    assert option in result.output
    assert "Traceback" not in result.output


def test_an_output_that_is_a_file_is_found_before_the_simulation(tmp_path):
    target = tmp_path / "file"
    target.write_text("mine")
    result = run("table1", "--output", target)
    assert result.exit_code == 2
    assert target.read_text() == "mine"
