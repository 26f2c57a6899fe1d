"""Commands run in process, tables for them, and the form of every error."""

import json

import numpy as np
import pandas as pd
import pyarrow.csv
from typer.testing import CliRunner

import ulmus
from ulmus.cli.app import app

SMALL = ("--n-estimators", 2, "--n-neurons", 10)
# Without the search for a map, where the map is not the subject.
PLAIN = (*SMALL, "--input-map", "none")


def run(*arguments):
    """Result of a command: its exit code, standard output and standard error."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


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
