"""Progress on the command line: a bar on terminals, lines of long stages in pipes."""

import io
import re
import time

import pytest
from command_line import SMALL, done, sample
from rich.console import Console as RichConsole

from ulmus.cli import console as module
from ulmus.cli.console import Bar, Console
from ulmus.progress import Lines, reported_to, stage


def terminal():
    """A terminal, and the text that is written to it."""
    text = io.StringIO()
    return RichConsole(file=text, force_terminal=True, width=100, color_system=None), text


def screens(text):
    """What a terminal showed, without control sequences."""
    return re.sub(r"\x1b\[[0-9?]*[a-zA-Z]", "", text.getvalue())


def test_a_bar_shows_stages_and_shares():
    console, text = terminal()
    with Bar(console) as bar, reported_to(bar):
        with stage("Learning the input map"):
            bar._display.refresh()
        with stage("Predicting rows") as share:
            share(0.25)
            bar._display.refresh()
        with stage("Writing"):
            bar._display.refresh()
    lines = re.split(r"[\r\n]+", screens(text))
    (learning, predicting, writing) = (
        [line for line in lines if name in line]
        for name in ("Learning the input map", "Predicting rows", "Writing")
    )
    assert learning
    assert not any("%" in line for line in learning)
    assert any(" 25% " in line for line in predicting)
    assert writing
    assert not any("%" in line for line in writing)


def test_notes_are_printed_above_the_bar():
    console, text = terminal()
    commands = Console("fit")
    commands.__dict__["_stderr"] = console
    with commands.working("Fitting"):
        commands.note("A note.")
    assert "A note.\n" in screens(text).replace("\r", "")


@pytest.fixture
def impatient(patient, monkeypatch):
    """Stages are printed from the beginning."""
    monkeypatch.setattr(module, "PATIENCE", 0.0)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    sample().to_csv(path, index=False)
    return path


def test_lines_of_a_fit_and_of_predictions_in_a_pipe(table, tmp_path, impatient):
    model = tmp_path / "m.ulmus"
    lines = done("fit", table, "-t", "y", "-o", model, *SMALL).stderr.splitlines()
    stages = [line.partition("] ")[2] for line in lines if line.startswith("[")]
    for name in ("Reading the table", "Learning the input map", "Residuals and standard errors"):
        assert name in stages
    lines = done("predict", model, table, "-o", tmp_path / "o.csv").stderr.splitlines()
    assert any(line.endswith("s] Predicting rows") for line in lines)


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_no_progress_where_none_is_wanted(table, tmp_path, impatient, option):
    fit = ("fit", table, "-t", "y", "-o", tmp_path / "m.ulmus", *SMALL, option)
    assert done(*fit).stderr.count("[") == 0


def test_short_stages_are_not_printed_in_a_pipe(table, tmp_path):
    result = done("fit", table, "-t", "y", "-o", tmp_path / "m.ulmus", *SMALL)
    assert not any(line.startswith("[") for line in result.stderr.splitlines())


def test_a_stage_is_printed_while_it_lasts():
    written = []
    lines = Lines(written.append, patience=0.05)
    with reported_to(lines):
        with stage("short"):
            pass
        with stage("long"):
            deadline = time.monotonic() + 10
            while not written and time.monotonic() < deadline:
                time.sleep(0.01)
        with stage("closed"):
            pass
        lines.close()
    time.sleep(0.1)
    assert [line.partition("] ")[2] for line in written] == ["long"]


def test_rows_that_are_predicted_are_counted(table, tmp_path, impatient, monkeypatch):
    model, new = tmp_path / "m.ulmus", tmp_path / "new.parquet"
    done("fit", table, "-t", "y", "-o", model, *SMALL, "--columns", "t")
    reports = []

    class Recorded(Lines):
        def report(self, stage, share):
            reports.append((stage, share))

    monkeypatch.setattr(module, "Lines", Recorded)
    monkeypatch.setattr("ulmus.tables.files.BATCH_ROWS", 20)
    sample(50)[["t"]].to_parquet(new)
    done("predict", model, new, "-o", tmp_path / "o.parquet")
    shares = [share for stage, share in reports if stage == "Predicting rows"]
    assert shares == [None, None, 0.4, 0.8, 1.0]
