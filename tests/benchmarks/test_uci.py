"""The benchmark on standard data sets runs, continues where it was, and names the data it needs."""

import csv
import importlib
import math
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MODELS = ("hgb", "bayesian-ridge")
SETS = ("yacht", "boston")
OPTIONS = ["--sets", ",".join(SETS), "--models", ",".join(MODELS), "--first", "2"]


@pytest.fixture(scope="module")
def uci():
    """The benchmark, with its folder on the path only while it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        module = importlib.import_module("uci")
        patch.undo()
        patch.setattr(module, "header", lambda device: ["some machine"])
        yield module


@pytest.fixture
def folder(tmp_path):
    """Two sets of the right names, with all splits."""
    rng = np.random.default_rng(0)
    for name in SETS:
        X = rng.uniform(-1, 1, (150, 2))
        y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(150)
        orders = np.array([rng.permutation(150) for _ in range(20)])
        arrays = {"X": X, "y": y, "train_idx": orders[:, :120], "test_idx": orders[:, 120:]}
        np.savez(tmp_path / f"{name}.npz", **arrays)
    return tmp_path


@pytest.fixture
def start(uci, folder):
    """Function that runs the benchmark with more options."""

    def start(*more):
        uci.main(["--data", str(folder), "--out", str(folder / "out"), *OPTIONS, *more])
        return folder / "out"

    return start


def rows(file):
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.slow
def test_run_writes_scores_and_goes_on(start, capsys):
    out = start("--first", "1")
    first = {file: rows(file) for file in out.glob("*.csv")}
    assert {file.name for file in first} == {f"{s}.{m}.csv" for s in SETS for m in MODELS}
    assert "boston, hgb, split 5: rmse 0." in capsys.readouterr().out
    start()
    output = capsys.readouterr().out
    assert "split 6: rmse" in output
    assert "split 5: rmse" not in output
    for file, before in first.items():
        now = rows(file)
        assert now[:1] == before  # the seconds too: nothing was fitted again
        assert [row["split"] for row in now] == ["5", "6"]
        assert all(0.05 < float(row["rmse"]) < 0.5 for row in now)
        assert all(0.6 < float(row["coverage"]) <= 1 for row in now)
    assert not list(out.glob("*.tmp"))


@pytest.mark.slow
def test_tables_and_plot(start, capsys):
    out = start("--markdown")
    output = capsys.readouterr().out
    errors = [float(row["rmse"]) for row in rows(out / "boston.hgb.csv")]
    (line,) = (line for line in output.splitlines() if line.startswith("| hgb") and "sets" in line)
    mean, spread = np.mean(errors), np.std(errors, ddof=1) / math.sqrt(2)
    assert line.split("|")[3].strip() == f"{mean:.3f} ({spread:.3f})"
    assert line.split("|")[4].strip() == "1.000 (2 sets)"
    assert "concrete dropout" in output
    assert (out / "rmse.png").stat().st_size > 10_000
    (out / "rmse.png").unlink()
    start("--table-only")
    assert "NGBoost" in capsys.readouterr().out
    assert (out / "rmse.png").exists()


def test_failure_is_a_row_and_no_end(uci, start, monkeypatch, capsys):
    def fail(X, y):
        raise ArithmeticError("no number will do")

    monkeypatch.setitem(uci.RIVALS, "hgb", uci.Model(fail))
    out = start()
    output = capsys.readouterr().out
    assert "failed, ArithmeticError: no number will do" in output
    assert all(math.isnan(float(row["rmse"])) for row in rows(out / "boston.hgb.csv"))
    assert len(rows(out / "boston.bayesian-ridge.csv")) == 2


def test_missing_package_and_too_many_rows_are_skipped(uci, start, monkeypatch, capsys):
    absent = uci.Model(uci.RIVALS["hgb"].fit, package="no_such_package")
    monkeypatch.setitem(uci.RIVALS, "hgb", absent)
    small = uci.Model(uci.RIVALS["bayesian-ridge"].fit, most_rows=100)
    monkeypatch.setitem(uci.RIVALS, "bayesian-ridge", small)
    out = start()
    assert "hgb is skipped: the package no_such_package" in capsys.readouterr().out
    assert not list(out.glob("*.csv"))


def test_missing_data_are_named(uci, folder, start):
    with pytest.raises(SystemExit, match=r"no file .*protein\.npz[\s\S]*arrays X \(rows"):
        start("--sets", "yacht,protein")
    with pytest.raises(SystemExit, match=r"--data needs a folder with yacht\.npz"):
        uci.main(["--sets", "yacht"])
    np.savez(folder / "yacht.npz", X=np.ones((3, 1)), y=np.ones(3))
    with pytest.raises(SystemExit, match="lacks train_idx, test_idx"):
        start()
