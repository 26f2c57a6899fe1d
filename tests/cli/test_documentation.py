"""The guide and the table of names are complete, and their commands print what they show."""

import re
import shlex
from pathlib import Path

import pytest
from command_line import COMMANDS, PLAIN, facts, options_of, run

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide" / "command_line.md").read_text()
NAMES = (ROOT / "docs" / "reference" / "names.md").read_text()
OPTION = re.compile(r"--[a-z][a-z-]*[a-z]")


def rows_below(text, head):
    """The rows of the table below a head, each with its cells."""
    lines = text[text.index(head) :].splitlines()[2:]
    table = lines[: next(i for i, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def test_the_table_of_names_has_every_option():
    everything = set().union(*(options_of(command) for command in COMMANDS))
    in_names = set(OPTION.findall(NAMES))
    assert everything - {"--help", "--header"} <= in_names
    assert in_names <= everything


def test_options_in_the_guide_exist():
    everything = set().union(*(options_of(command) for command in COMMANDS))
    assert set(OPTION.findall(GUIDE)) <= everything | {"--level", "--install-completion"}


def test_every_parameter_of_the_estimator_has_an_option_or_a_reason():
    import ulmus

    parameters = set(ulmus.ELMEnsembleRegressor().get_params())
    options = {name[2:].replace("-", "_") for name in options_of("fit")}
    assert parameters - options == {"verbose"}


def commands_of_the_guide():
    blocks = re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip()]


@pytest.mark.parametrize("line", commands_of_the_guide())
def test_commands_of_the_guide_have_these_options(line):
    command = shlex.split(line[line.index("ulmus ") :])[1]
    assert command in COMMANDS
    assert set(OPTION.findall(line)) <= options_of(command)


def documented_keys(command):
    """The keys of the JSON document of a command, and those that it has in some cases."""
    for cells in rows_below(GUIDE, "| command | keys |"):
        if f"`{command}`" in cells[0]:
            always, _, sometimes = cells[1].partition(";")
            keys, more = (set(re.findall(r"`([a-z_]+)`", text)) for text in (always, sometimes))
            return keys | {"notes"}, more
    raise AssertionError(f"{command} is not documented")


CASES = {
    "fit": ("TABLE", "-t", "y", "-o", "OUT/m.ulmus", *PLAIN),
    "predict": ("MODEL", "TABLE", "-o", "OUT/p.csv"),
    "check": ("MODEL",),
    "info": ("MODEL", "--header"),
    "average": ("MODEL", "TABLE", "--by", "kind", "--hypothesis", "equal"),
    "compare": ("MODEL", "TABLE", "--variables", "t"),
    "slope": ("MODEL", "TABLE"),
    "plot": ("MODEL", "-o", "OUT/f.svg"),
    "report": ("MODEL", "TABLE", "-o", "OUT/r.html"),
    "explore": ("MODEL", "-o", "OUT/e.html"),
    "export": ("MODEL", "--onnx", "OUT/m.onnx"),
}


def words_of(case, small_model, tmp_path):
    names = {"MODEL": small_model / "m.ulmus", "TABLE": small_model / "t.csv"}
    return [names.get(word, str(word).replace("OUT", str(tmp_path))) for word in case]


@pytest.mark.slow
@pytest.mark.parametrize("command", CASES)
def test_json_documents_have_the_documented_keys(command, small_model, tmp_path):
    if command == "export":
        pytest.importorskip("onnx")
    result = facts(command, *words_of(CASES[command], small_model, tmp_path))
    assert set(result) == documented_keys(command)[0]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "info"])
def test_json_documents_have_more_keys_where_the_guide_says_so(command, small_model, tmp_path):
    words = words_of(CASES[command], small_model, tmp_path)
    words = [word for word in words[:2] if word != "--header"]
    always, more = documented_keys(command)
    assert more
    assert set(facts(command, *words)) == always | more


@pytest.mark.slow
@pytest.mark.parametrize("command", CASES)
def test_errors_are_documents_too(command, small_model, tmp_path):
    import json

    words = [command, *words_of(CASES[command], small_model, tmp_path), "--json"]
    words[1] = tmp_path / "no.ulmus" if words[1].suffix == ".ulmus" else tmp_path / "no.csv"
    result = run(*words)
    assert result.exit_code == 2
    assert set(json.loads(result.stdout)) == {"error", "exit_code"}


def test_every_command_has_json_and_is_in_the_guide():
    for command in COMMANDS:
        assert "--json" in options_of(command)
        assert documented_keys(command)
        assert f"ulmus {command}" in GUIDE or f"`{command}`" in GUIDE


def test_displays_of_the_guide_are_all_displays():
    from ulmus.cli.plot import DisplayChoice

    listed = [cells[0].strip("` ") for cells in rows_below(GUIDE, "| `--display` | table |")]
    assert sorted(listed) == sorted(one.value for one in DisplayChoice)
