"""Outcomes of commands on mangled tables and model files: ``make fuzz``.

Every case mangles a good file and runs a command on it, in this process. It must end with exit code
0 or 2 and without a traceback. With 2 there is one line about it and no output. With 0 the
output is complete, its numbers are finite and its bounds in order; and the predictions of a mangled
model are those of the good one to the last bit, unless its checksums were written anew.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from mangling import SEALED, WAYS
from typer.testing import CliRunner

from ulmus.cli.app import app

KINDS = tuple(WAYS)
N_ROWS = 60
SMALL = ("--n-estimators", "2", "--n-neurons", "8")


@dataclass(frozen=True)
class Case:
    """A file of one kind, mangled in one way, given to one command."""

    number: int
    seed: int = 0

    @property
    def kind(self):
        return KINDS[self.number % len(KINDS)]

    @property
    def command(self):
        commands = ("predict", "average") if self.kind == "ulmus" else ("predict", "fit", "average")
        return commands[self.number // len(KINDS) % len(commands)]

    @property
    def rng(self):
        return np.random.default_rng([self.seed, self.number])

    @property
    def way(self):
        return WAYS[self.kind][int(self.rng.integers(len(WAYS[self.kind])))]

    def mangled(self, data):
        return self.way(self.rng, data)

    def __str__(self):
        way = self.way.__name__.replace("_", " ")
        return f"case {self.number}: {self.command}, {self.kind}, {way}"


@dataclass(frozen=True)
class Outcome:
    """How a case ended, and what is wrong about it, if anything is."""

    case: Case
    code: int
    said: str
    problem: str | None


def good_files(folder):
    """A table in all formats, its model, and the predictions of that."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "x": rng.uniform(0, 6, N_ROWS).round(3),
            "site": rng.choice(["north", "south", "west"], N_ROWS),
            "day": pd.date_range("2024-01-01", periods=N_ROWS).date,
            "count": rng.integers(0, 9, N_ROWS),
        }
    )
    noise = 0.2 * rng.standard_normal(N_ROWS)
    table["y"] = (np.sin(table.x) + (table.site == "west") + noise).round(4)
    paths = {kind: folder / f"good.{kind}" for kind in KINDS}
    table.to_csv(paths["csv"], index=False)
    table.to_csv(paths["csv.gz"], index=False)
    table.to_parquet(paths["parquet"])
    table.to_feather(paths["arrow"])
    run("fit", paths["csv"], "-t", "y", "-o", paths["ulmus"], *SMALL)
    run("predict", paths["ulmus"], paths["csv"], "-o", folder / "good.predictions.csv")
    run("average", paths["ulmus"], paths["csv"], "-o", folder / "good.averages.csv", "--by", "site")
    return paths


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def outcome(case, paths):
    """Run a case in the folder of the good files, which is afterwards as it was."""
    folder = paths["csv"].parent
    before = set(folder.iterdir())
    given = folder / f"given.{case.kind}"
    given.write_bytes(case.mangled(paths[case.kind].read_bytes()))
    model, data = (given, paths["csv"]) if case.kind == "ulmus" else (paths["ulmus"], given)
    output = folder / ("out.ulmus" if case.command == "fit" else "out.csv")
    if case.command == "fit":
        result = run("fit", data, "-t", "y", "-o", output, "--json", *SMALL)
    else:
        more = ("--by", "site") if case.command == "average" else ()
        result = run(case.command, model, data, "-o", output, "--json", *more)
    problem = _problem(case, result, output, data)
    for path in (given, output):
        path.unlink(missing_ok=True)
    left = set(folder.iterdir()) - before
    for path in left:
        path.unlink()
    if left and problem is None:
        problem = f"left {', '.join(path.name for path in left)}"
    lines = result.stderr.splitlines()
    return Outcome(case, result.exit_code, lines[-1] if lines else "", problem)


def _problem(case, result, output, data):
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"traceback of {result.exception!r}"
    if "Traceback" in result.output:
        return "a traceback"
    if result.exit_code not in (0, 2):
        return f"exit code {result.exit_code}"
    if result.exit_code == 2:
        failures = [line.startswith("ulmus: ") for line in result.stderr.splitlines()]
        if failures.count(True) != 1 or not failures[-1]:
            return f"{len(failures)} lines, of which {failures.count(True)} report a failure"
        return "an output in spite of a failure" if output.exists() else None
    facts = json.loads(result.stdout)
    if case.command == "fit":
        return _problem_of_model(output, data)
    if case.kind == "ulmus" and case.way not in SEALED:
        names = {"predict": "good.predictions.csv", "average": "good.averages.csv"}
        good = output.with_name(names[case.command])
        return None if output.read_bytes() == good.read_bytes() else "other predictions"
    if case.command == "average":
        return _problem_of_effects(pd.read_csv(output))
    return _problem_of_predictions(pd.read_csv(output), facts, data)


def _problem_of_model(model, data):
    """What is wrong about the predictions of a model for the table that it was fitted to."""
    output = model.with_name("again.csv")
    result = run("predict", model, data, "-o", output, "--json")
    if result.exit_code:
        return f"a model that cannot predict its own table: {result.stderr.strip()}"
    try:
        return _problem_of_predictions(pd.read_csv(output), json.loads(result.stdout), data)
    finally:
        output.unlink()


def _problem_of_predictions(frame, facts, data):
    n_read = _n_rows(data)
    if len(frame) != facts["rows"] or facts["rows"] + facts["rows_excluded"] != n_read:
        return f"{len(frame)} rows for {n_read} ({facts['rows']}, {facts['rows_excluded']})"
    if not np.isfinite(frame).all(axis=None):
        return "predictions that are not finite"
    if (frame.conf_low > frame.conf_high).any() or (frame.pred_low > frame.pred_high).any():
        return "bounds in the wrong order"
    return "negative standard errors" if (frame.std_error < 0).any() else None


def _problem_of_effects(frame):
    numbers = frame[["estimate", "std_error", "conf_low", "conf_high"]]
    if not len(frame) or not np.isfinite(numbers).all(axis=None):
        return "effects that are not finite"
    return "bounds in the wrong order" if (frame.conf_low > frame.conf_high).any() else None


def _n_rows(path):
    """Rows of a table by another reader than that of the commands, where there is one."""
    if path.suffix == ".parquet":
        return pa.parquet.read_table(path).num_rows
    if path.suffix == ".arrow":
        return pa.feather.read_table(path).num_rows
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode(errors="replace")
    return sum(1 for row in csv.reader(io.StringIO(text, newline="")) if row) - 1


def outcomes(n_cases, seed=0, first=0):
    """How cases end, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        paths = good_files(Path(folder))
        for number in range(first, first + n_cases):
            yield outcome(Case(number, seed), paths)


def report(found):
    """Lines of a table: how many files of each kind were refused and accepted."""
    counts = Counter((o.case.kind, o.case.command, o.problem or o.code) for o in found)
    yield f"{'file':8} {'command':8} {'refused':>8} {'accepted':>8} {'wrong':>8}"
    for kind, command in sorted({key[:2] for key in counts}, key=lambda k: (KINDS.index(k[0]), k)):
        row = {key[2]: n for key, n in counts.items() if key[:2] == (kind, command)}
        wrong = sum(row.values()) - row.get(0, 0) - row.get(2, 0)
        yield f"{kind:8} {command:8} {row.get(2, 0):8} {row.get(0, 0):8} {wrong:8}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=300, help="how many (300)")
    parser.add_argument("--seed", type=int, default=0, help="another seed mangles otherwise")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    options = parser.parse_args(arguments)
    found = []
    for one in outcomes(options.cases, options.seed, options.first):
        found.append(one)
        if one.problem or options.verbose:
            wrong = f" WRONG, {one.problem}" if one.problem else ""
            print(f"{one.case}: {one.code}{wrong}: {one.said}", flush=True)
    print("\n".join(report(found)))
    sys.exit(any(one.problem for one in found))


if __name__ == "__main__":
    main()
