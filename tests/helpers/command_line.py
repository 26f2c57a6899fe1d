"""Commands run in process, tables for them, and the form of every error."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow.csv
from typer.testing import CliRunner

import ulmus
from ulmus.cli.app import app
from ulmus.cli.option_names import option_names

SMALL = ("--n-estimators", 2, "--n-neurons", 10)
# Without the search for a map, where the map is not the subject.
PLAIN = (*SMALL, "--input-map", "none")


def run(*arguments):
    """Result of a command: its exit code, standard output and standard error.

    Options that its messages name must exist.
    """
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(app, words)
    if words and words[0] in COMMANDS and "--help" not in words:
        require_options_exist(words[0], result.output)
    return result


COMMANDS = tuple(command.callback.__name__ for command in app.registered_commands)


def options_of(command):
    """The long names of all options of a command."""
    return {option.name for option in option_names(command).values()} | {"--help"}


def require_options_exist(command, text):
    """Every option in a text is one of the command, or of another that the text names."""
    text = re.sub(r"has no option \S+", "", text)
    others = [one for one in COMMANDS if f"ulmus {one}" in text]
    known = set().union(*(options_of(one) for one in (command, *others)))
    assert set(re.findall(r"--[a-z][a-z-]*[a-z]", text)) <= known, text


def done(*arguments):
    """Result of a command that must succeed."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def facts(*arguments):
    """The JSON result of a command, which must be all of its output."""
    return json.loads(done(*arguments, "--json").stdout, parse_constant=_refused_constant)


def _refused_constant(text):
    raise AssertionError(f"{text} is not JSON")


def refusal(*arguments, code=2):
    """The error of a command that must fail: the last line, after any notes."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    lines = result.stderr.splitlines()
    assert [line.startswith("ulmus: ") for line in lines] == [False] * (len(lines) - 1) + [True]
    assert "Traceback" not in result.output
    assert result.stdout == ""
    return lines[-1].removeprefix("ulmus: ")


def sample(n=80, seed=0):
    """A table with a column of each kind and a target ``y``."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "t": rng.uniform(0, 6, n).round(3),
            "kind": rng.choice(["a", "b", "c"], n),
            "day": pd.date_range("2024-01-01", periods=n).date,
            "wet": rng.random(n) < 0.5,
            "count": rng.integers(0, 9, n),
        }
    )
    trend = np.sin(table.t) + 2.0 * (table.kind == "b") + 0.1 * table["count"]
    return table.assign(y=(trend + 0.2 * rng.standard_normal(n)).round(4))


def save_often(source, target):
    """Save a model again and again."""
    model = ulmus.load(source)
    for _ in range(20):
        model.save(target)


def read_csv(path):
    """A CSV file with every digit of its numbers."""
    return pyarrow.csv.read_csv(path).to_pandas()
