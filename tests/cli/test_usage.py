"""Usage errors: one line each, with the name of the option and what to give instead."""

import ast
import json
import re
from pathlib import Path

import pytest
from command_line import options_of, refusal, run

import ulmus.cli
from ulmus.cli.app import PANELS, app
from ulmus.cli.usage import REPLACED

SOURCES = Path(ulmus.cli.__file__).parent
COMMANDS = [command.callback.__name__ for command in app.registered_commands]

ERRORS = [
    (("fit", "t.csv", "--dorp", "id"), "ulmus fit has no option --dorp; did you mean --drop?"),
    (("predict", "--level", "0.9"), "ulmus predict has no option --level; use --confidence-level."),
    (("fit", "--members", "9"), "ulmus fit has no option --members; use --n-estimators."),
    (("fit", "--no-map"), "ulmus fit has no option --no-map; use --input-map none."),
    (("slope", "--change", "t"), "ulmus slope has no option --change; use --variables."),
    (("plot", "--variables", "t"), "ulmus plot has no option --variables; use --features."),
    (("plot", "--variable", "t"), "ulmus plot has no option --variable; use --features."),
    (("slope", "--features", "t"), "ulmus slope has no option --features; use --variables."),
    (
        ("predict", "--seed", "1"),
        "ulmus predict has no option --seed; --random-state is an option of ulmus fit.",
    ),
    (("export", "--zzz"), "ulmus export has no option --zzz; see ulmus export --help."),
    (("--zzz",), "ulmus has no option --zzz; see ulmus --help."),
    (("fitt",), "no such command 'fitt'; did you mean 'fit'?"),
    (
        ("fit", "t.csv", "-t", "y", "-o", "m", "--missing", "ignore"),
        "--missing must be one of 'error', 'drop', 'impute', got 'ignore'.",
    ),
    (
        ("fit", "t.csv", "-t", "y", "-o", "m", "--random-state=x"),
        "--random-state must be a whole number, got 'x'.",
    ),
    (
        ("predict", "m", "t.csv", "--confidence-level", "high"),
        "--confidence-level must be a number, got 'high'.",
    ),
    (("fit", "t.csv", "-t", "y"), "ulmus fit requires --output (-o): model file to write"),
    (("fit", "t.csv", "-o", "m"), "ulmus fit requires --target (-t): column to predict."),
    (("predict",), "ulmus predict requires MODEL: model file written by"),
    (("predict", "m"), "ulmus predict requires TABLE: table: .csv"),
    (("check", "a", "b", "c"), "got unexpected extra argument(s) (c); see ulmus check --help."),
]


@pytest.mark.parametrize(("words", "message"), ERRORS, ids=lambda v: str(v)[:50])
def test_usage_errors_are_one_line_with_a_remedy(words, message):
    text = refusal(*words)
    assert text.startswith(message)
    assert run(*words).stderr.count("\n") == 1


def test_a_usage_error_is_json_too():
    result = run("fit", "--dorp", "id", "--json")
    assert result.exit_code == 2
    error = json.loads(result.stdout)
    assert error["exit_code"] == 2
    assert error["error"] in result.stderr


def test_without_a_command_the_help_page_is_printed():
    result = run()
    assert result.exit_code == 0
    assert "Fit and predict" in result.stdout


def test_commands_are_in_the_order_of_their_use():
    text = run("--help").stdout
    places = [text.index(f"│ {command}  ") for command in COMMANDS if command != "predict"]
    assert places == sorted(places)
    assert [text.index(f"─ {panel} ─") for panel in PANELS] == sorted(
        text.index(f"─ {panel} ─") for panel in PANELS
    )


def test_replacements_exist():
    everything = set().union(*(options_of(command) for command in COMMANDS))
    for old, new in REPLACED.items():
        if new.startswith("--"):
            assert new.split()[0] in everything
        assert old != new


def texts(path):
    """The texts in a source file."""
    tree = ast.parse(path.read_text())
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


@pytest.mark.parametrize(
    "path", sorted(SOURCES.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCES))
)
def test_options_in_texts_exist(path):
    known = set().union(*(options_of(command) for command in COMMANDS))
    known |= {"--help", "--version", *(REPLACED if path.name == "usage.py" else ())}
    named = {name for text in texts(path) for name in re.findall(r"--[a-z][a-z-]*[a-z]", text)}
    assert named <= known
