"""Tables on standard input and output, in pipes and on terminals, by real processes."""

import json
import os
import pty
import subprocess
import sys

import pandas as pd
import pytest
from command_line import PLAIN, done, facts, read_csv, refusal, run, sample
from numpy.testing import assert_array_equal

COMMAND = [sys.executable, "-m", "ulmus.cli"]


def process(*arguments, **options):
    """A finished process of a command, with its output and errors as text."""
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, **options)


def on_a_terminal(*arguments):
    """What a command prints on a terminal as its standard output, and its exit code."""
    ours, theirs = pty.openpty()
    words = [*COMMAND, *map(str, arguments)]
    running = subprocess.Popen(words, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    printed = b""
    try:
        while part := os.read(ours, 4096):
            printed += part
    except OSError:  # the terminal is closed at the end of the process
        pass
    errors = running.communicate()[1].decode()
    os.close(ours)
    return printed.decode().replace("\r\n", "\n"), errors, running.returncode


@pytest.fixture(scope="module")
def folder(small_model, tmp_path_factory):
    """The small model, and its predictions in a file."""
    out = tmp_path_factory.mktemp("streams") / "out.csv"
    done("predict", small_model / "m.ulmus", small_model / "t.csv", "-o", out)
    return small_model, out


def test_a_pipe_receives_csv_and_nothing_else(folder):
    (place, out) = folder
    for options in ((), ("-o", "-")):
        finished = process("predict", place / "m.ulmus", place / "t.csv", *options)
        assert finished.returncode == 0, finished.stderr
        assert finished.stdout == out.read_text()
    assert "Wrote" not in finished.stderr


def test_standard_output_has_no_json_and_csv_at_once(folder):
    start = ("predict", folder[0] / "m.ulmus", folder[0] / "t.csv")
    result = run(*start, "-o", "-", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"].endswith("use either -o - or --json.")


def test_json_of_predictions_in_a_pipe_contains_them(folder):
    place, out = folder
    result = facts("predict", place / "m.ulmus", place / "t.csv", "--keep", "day,kind")
    predictions = pd.DataFrame(result["predictions"])
    assert list(predictions.columns) == result["columns"]
    assert_array_equal(predictions.estimate, read_csv(out).estimate)
    assert predictions.day[0] == "2024-01-01"


def test_standard_input_is_a_table(folder):
    place, out = folder
    text = (place / "t.csv").read_text()
    finished = process("predict", place / "m.ulmus", "-", input=text)
    assert (finished.returncode, finished.stdout) == (0, out.read_text())
    semicolons = text.replace(",", ";")
    finished = process("predict", place / "m.ulmus", "-", "-o", "-", input=semicolons)
    assert finished.stdout == out.read_text()
    assert "Columns of standard input are separated by semicolons." in finished.stderr


def test_all_commands_read_standard_input(folder, tmp_path):
    place, text = folder[0], (folder[0] / "t.csv").read_text()
    fitted = process(
        "fit", "-", "-t", "y", "-o", tmp_path / "m.ulmus", *map(str, PLAIN), input=text
    )
    assert fitted.returncode == 0, fitted.stderr
    assert "report" not in fitted.stdout  # a report would need the same rows again
    average = process("average", place / "m.ulmus", "-", "--by", "kind", input=text)
    from_file = process("average", place / "m.ulmus", place / "t.csv", "--by", "kind")
    assert average.stdout == from_file.stdout != ""
    assert process("check", place / "m.ulmus", "-", input=text).returncode in (0, 1)


@pytest.mark.parametrize("text", ["", "t,kind\n1,a\n"])
def test_messages_say_standard_input(folder, text):
    finished = process("predict", folder[0] / "m.ulmus", "-", input=text)
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert finished.stderr.startswith("ulmus: standard input ")
    assert "tmp" not in finished.stderr


def test_a_reader_that_stops_is_no_error(folder):
    place = folder[0]
    table = pd.concat([sample()] * 60)
    table.to_csv(place / "long.csv", index=False)
    words = f"{sys.executable} -m ulmus.cli predict {place}/m.ulmus {place}/long.csv"
    finished = subprocess.run(
        ["bash", "-c", f"{words} | head -1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
    )
    assert finished.stdout.startswith('"estimate"')
    assert "Error" not in finished.stderr
    assert "broken" not in finished.stderr.lower()
    assert finished.returncode in (0, 141)  # 0 if all was written before


def test_a_terminal_shows_the_first_rows(folder):
    place, out = folder
    printed, errors, code = on_a_terminal("predict", place / "m.ulmus", place / "t.csv")
    lines = printed.splitlines()
    assert code == 0, errors
    assert lines[0].split() == list(read_csv(out).columns)
    assert len(lines) == 21
    assert "The first 20 rows; -o FILE.csv writes all of them." in errors


def test_a_terminal_shows_a_short_table_without_a_note(folder, tmp_path):
    sample(3).to_csv(tmp_path / "three.csv", index=False)
    printed, errors, _ = on_a_terminal("predict", folder[0] / "m.ulmus", tmp_path / "three.csv")
    assert len(printed.splitlines()) == 4
    assert "writes all" not in errors


def test_tables_on_a_narrow_terminal_are_complete(folder):
    printed, _, code = on_a_terminal("slope", folder[0] / "m.ulmus", folder[0] / "t.csv")
    assert code == 0
    assert "…" not in printed
    assert "std_error" in printed
    assert "conf_high" in printed


def test_effects_are_written_to_standard_output_as_csv(folder, tmp_path):
    start = ("average", folder[0] / "m.ulmus", folder[0] / "t.csv", "--by", "kind")
    done(*start, "-o", tmp_path / "o.csv")
    assert done(*start, "-o", "-").stdout == (tmp_path / "o.csv").read_text()


@pytest.mark.parametrize("command", ["fit", "report", "export", "plot"])
def test_files_that_are_no_tables_are_not_written_to_standard_output(folder, command):
    model, table = folder[0] / "m.ulmus", folder[0] / "t.csv"
    words = {
        "fit": (table, "-t", "y", "-o", "-"),
        "report": (model, table, "-o", "-"),
        "export": (model, "--onnx", "-"),
        "plot": (model, table, "-o", "-"),
    }[command]
    assert refusal(command, *words).endswith("give the name of a file.")


@pytest.mark.slow
def test_progress_in_a_pipe_is_lines_on_standard_error(folder):
    code = (
        "import sys\nfrom ulmus.cli import console, main\nconsole.PATIENCE = 0.001\n"
        f"sys.argv = ['ulmus', 'check', {str(folder[0] / 'm.ulmus')!r}]\nmain()"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "] Computing diagnostics" in finished.stderr
    assert "\x1b" not in finished.stderr
    assert finished.stdout.startswith("[")
