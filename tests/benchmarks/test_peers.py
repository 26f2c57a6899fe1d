"""The benchmark against other packages runs, goes on where it was, and compares with ours."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # all tests share a run of the benchmark

pytest.importorskip("mapie")
pytest.importorskip("UncELMe")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
COLUMNS = {"rmse", "coverage", "width", "score", "seconds"}
NOISE_SD = 0.3


@pytest.fixture(scope="module")
def peers():
    """The benchmark, with its folder on the path only while it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        module = importlib.import_module("peers")
        patch.undo()
        patch.setattr(module, "header", lambda device: ["some machine"])
        patch.setattr(module, "prepare", lambda models: None)
        yield module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of the right name, with all splits."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (280, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + NOISE_SD * rng.standard_normal(280)
    orders = np.array([rng.permutation(280) for _ in range(20)])
    arrays = {"X": X, "y": y, "train_idx": orders[:, :220], "test_idx": orders[:, 220:]}
    folder = tmp_path_factory.mktemp("data")
    np.savez(folder / "yacht.npz", **arrays)
    return folder


@pytest.fixture(scope="module")
def start(peers, folder):
    """Function that runs the benchmark on one split, and returns what it has written."""

    def start(*more):
        file = folder / "out" / "peers.json"
        options = ["--data", str(folder), "--out", str(file), "--sets", "yacht", "--first", "1"]
        peers.main([*options, *more])
        return json.loads(file.read_text())["scores"]["yacht"]

    return start


@pytest.fixture(scope="module")
def rows(peers, start):
    """Scores of all models on the first split that is reported."""
    return {model: splits["5"] for model, splits in start().items()}


def test_every_model_has_all_scores(peers, rows):
    assert set(rows) == set(peers.MODELS)
    for row in rows.values():
        assert set(row) == COLUMNS
        assert np.all(np.isfinite(list(row.values())))
        assert 0.6 * NOISE_SD < row["rmse"] < 2 * NOISE_SD
        assert 0.8 < row["coverage"] <= 1
        assert 2 * NOISE_SD < row["width"] <= row["score"]  # a score adds penalties to a width
        assert row["seconds"] > 0


def test_summary_is_relative_to_ours(peers, start, rows, capsys):
    start("--table-only")
    output = capsys.readouterr().out
    (line,) = (line for line in output.splitlines() if line.startswith("| GP | 1 |"))
    theirs, ours = rows["GP"], rows["ulmus"]
    ratios = {m: peers.number(theirs[m] / ours[m]) for m in ("rmse", "width", "score", "seconds")}
    covered = peers.number(theirs["coverage"])
    expected = [ratios["rmse"], covered, f"{covered} (yacht)", *list(ratios.values())[1:]]
    assert [cell.strip() for cell in line.split("|")[3:-1]] == expected
    assert "CV+ with ten folds" in output


def test_run_goes_on_where_it_was(start, rows, capsys):
    capsys.readouterr()
    now = start("--first", "2", "--models", "UncELMe")
    assert "split 5: rmse" not in capsys.readouterr().out
    assert now["UncELMe"]["5"] == rows["UncELMe"]  # the seconds too: nothing was fitted again
    assert set(now["UncELMe"]) == {"5", "6"}
    assert set(now["ulmus"]) == {"5"}


def test_long_tables_are_cut_and_slow_models_skipped(peers, folder, monkeypatch):
    seen = []

    def fit(X, y, points, seed):
        seen.append(len(X))
        return peers.Forecast(np.zeros(len(points)), np.tile([-9.0, 9.0], (len(points), 1)))

    monkeypatch.setattr(peers, "MODELS", {"ulmus": fit, "GP": fit})
    monkeypatch.setattr(peers, "MOST_ROWS", 50)
    monkeypatch.setattr(peers, "MOST_ROWS_OF", {"GP": 40})
    out = folder / "cut" / "peers.json"
    options = ["--data", str(folder), "--sets", "yacht", "--first", "1", "--out", str(out)]
    peers.main([*options, "--models", "ulmus,GP"])
    assert seen == [50]
