"""Where blocks come from, which are refused, and what is shown while they are read."""

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from fit_comparison import assert_same_fit, cut
from messages import mentions
from models import every_estimate_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from progress_recorder import Recorder

from ulmus.progress import reported_to
from ulmus.tables import from_arrow

# Results of fits with different weights are compared at the mean weight.

# ---------------------------------------------------------------- where blocks come from


def test_slices_of_a_file_mapped_into_memory(make_table, tmp_path):
    X, y, _, X_new = make_table(200)
    table = np.memmap(tmp_path / "table.f8", dtype=float, mode="w+", shape=(200, 4))
    table[:, :3], table[:, 3] = X, y
    table.flush()
    table = np.memmap(tmp_path / "table.f8", dtype=float, mode="r", shape=(200, 4))
    blocks = [(table[a : a + 32, :3], table[a : a + 32, 3]) for a in range(0, 200, 32)]
    assert_same_fit(
        every_estimate_ensemble().fit_blocks(blocks), every_estimate_ensemble().fit(X, y), X_new
    )


def test_a_function_is_called_for_each_reading(make_table):
    X, y, w, X_new = make_table(60)
    readings = []

    def blocks():
        readings.append(0)
        yield from cut(X, y, w)

    assert_same_fit(
        every_estimate_ensemble().fit_blocks(blocks), every_estimate_ensemble().fit(X, y, w), X_new
    )
    assert len(readings) > 1


@pytest.mark.parametrize("kind", ["generator", "zip", "map"])
def test_an_iterator_is_refused_with_a_suggestion(make_table, kind):
    X, y, _, _ = make_table(60)
    blocks = cut(X, y)
    iterator = {
        "generator": (block for block in blocks),
        "zip": zip(*zip(*blocks, strict=True), strict=True),
        "map": map(tuple, blocks),
    }[kind]
    with pytest.raises(ValueError, match=mentions("iterator", "list", "function")):
        every_estimate_ensemble().fit_blocks(iterator)
    assert len(list(iterator)) == len(blocks)  # nothing was taken from it


def test_a_function_that_gives_the_same_iterator_again_is_noticed(make_table):
    X, y, _, _ = make_table(60)
    iterator = iter(cut(X, y))
    with pytest.raises(ValueError, match="rows"):
        every_estimate_ensemble().fit_blocks(lambda: iterator)


@pytest.fixture
def frame(make_table):
    X, y, w, _ = make_table(120)
    columns = {f"x{j}": X[:, j] for j in range(3)}
    return pd.DataFrame({**columns, "y": y, "z": y**2 - 3, "w": w})


def written(frame, path, format):
    """Write a table in a format."""
    pytest.importorskip("pyarrow", reason="files are read with pyarrow")
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.Table.from_pandas(frame, preserve_index=False)
    if format == "csv":
        pyarrow.csv.write_csv(table, path)
    elif format == "parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=50)
    else:
        pyarrow.feather.write_feather(table, path)
    return path


@pytest.mark.parametrize("format", ["parquet", "csv", "feather"])
def test_files(frame, tmp_path, make_table, format):
    path = written(frame, tmp_path / f"table.{format}", format)
    X, y, w, X_new = make_table(120)
    blocks = from_arrow(
        path, target="y", columns=["x0", "x1", "x2"], sample_weight="w", batch_rows=32
    )
    assert max(len(block[0]) for block in blocks) <= 32
    named = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    points = pd.DataFrame(X_new, columns=named.columns)
    assert_same_fit(
        every_estimate_ensemble().fit_blocks(blocks),
        every_estimate_ensemble().fit(named, y, w),
        points,
    )


def test_a_folder_of_files_several_targets_and_the_columns_left(frame, tmp_path, make_table):
    for part in range(3):
        rows = frame.iloc[40 * part : 40 * part + 40]
        written(rows, tmp_path / f"part-{part}.csv", "csv")
    blocks = from_arrow(tmp_path, target=["y", "z"], sample_weight="w", format="csv")
    assert blocks.columns == ("x0", "x1", "x2")
    _, _, w, X_new = make_table(120)
    expected = every_estimate_ensemble().fit(
        frame[["x0", "x1", "x2"]], frame[["y", "z"]].to_numpy(), w
    )
    points = pd.DataFrame(X_new, columns=["x0", "x1", "x2"])
    assert_same_fit(every_estimate_ensemble().fit_blocks(blocks), expected, points)
    several = from_arrow(
        [tmp_path / f"part-{part}.csv" for part in range(3)], target=["y"], sample_weight="w"
    )
    points = frame[list(several.columns)].head(2)
    assert every_estimate_ensemble().fit_blocks(several).predict(points).shape == (2, 1)


def test_columns_that_a_file_does_not_have_are_named(frame, tmp_path):
    path = written(frame, tmp_path / "table.parquet", "parquet")
    for wrong in ({"target": "t"}, {"target": "y", "columns": ["x0", "t"]}):
        with pytest.raises(ValueError, match=mentions("'t'", "'x0'", "not in the data set")):
            from_arrow(path, **wrong)
    with pytest.raises(ValueError, match=mentions("'mass'", "not in the data set")):
        from_arrow(path, target="y", sample_weight="mass")


def test_a_missing_value_in_a_file_is_filled_in_or_named(frame, tmp_path):
    frame.loc[70, "x1"] = None
    path = written(frame, tmp_path / "table.parquet", "parquet")
    blocks = from_arrow(path, target="y", batch_rows=25)
    model = every_estimate_ensemble().fit_blocks(blocks)
    assert "x1 (missing)" in model.columns_.features
    with pytest.raises(ValueError, match="'x1' has no value in data row 71"):
        every_estimate_ensemble(missing="error").fit_blocks(blocks)


def test_files_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    with pytest.raises(ImportError, match=mentions("pyarrow", "install ulmus")):
        from_arrow("table.parquet", target="y")


def test_data_frames_name_the_features(frame, make_table):
    names = ["x0", "x1", "x2"]
    blocks = [(part[names], part["y"], part["w"]) for part in (frame[:50], frame[50:])]
    model = every_estimate_ensemble().fit_blocks(blocks)
    assert list(model.feature_names_in_) == names
    X, y, w, X_new = make_table(120)
    assert_same_fit(model.fit_blocks(cut(X, y, w)), every_estimate_ensemble().fit(X, y, w), X_new)
    assert not hasattr(model, "feature_names_in_")
    model.fit_blocks(blocks).predict(pd.DataFrame(X_new, columns=names))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X_new, columns=["x0", "x2", "x1"]))


# ---------------------------------------------------------------- bad blocks


def spoiled(blocks, at, change):
    """Blocks, one of them changed."""
    return [change(*block) if i == at else block for i, block in enumerate(blocks)]


def set_value(array, where, value):
    """A copy with one value replaced."""
    out = array.copy()
    out[where] = value
    return out


BAD_BLOCKS = {
    "narrow": (lambda X, y, w: (X[:, :2], y, w), ["block 17", "2 features", "3"]),
    "outputs": (
        lambda X, y, w: (X, np.stack([y, y], axis=1), w),
        ["block 17", "2 outputs", "have 1"],
    ),
    "NaN in X": (
        lambda X, y, w: (set_value(X, (2, 1), np.nan), y, w),
        ["X of block 17", "NaN", "row 2;", "drop or fill"],
    ),
    "infinite y": (lambda X, y, w: (X, set_value(y, 4, np.inf), w), ["y of block 17", "row 4;"]),
    "NaN in w": (
        lambda X, y, w: (X, y, set_value(w, 1, np.nan)),
        ["sample_weight of block 17", "row 1;"],
    ),
    "negative w": (
        lambda X, y, w: (X, y, set_value(w, 3, -1.0)),
        ["sample_weight of block 17", "negative", "row 3:"],
    ),
    "short y": (lambda X, y, w: (X, y[:-1], w), ["block 17", "5 rows of X, 4 of y"]),
    "short w": (lambda X, y, w: (X, y, w[:-1]), ["block 17", "sample_weight", "5 rows and 4"]),
    "wide w": (lambda X, y, w: (X, y, w[:, None]), ["block 17", "sample_weight", "2 axes"]),
    "flat X": (lambda X, y, w: (X[:, 0], y, w), ["block 17", "rows and columns"]),
    "no y": (lambda X, y, w: X, ["block 17", "(X, y)", "sample_weight"]),
    "too many": (lambda X, y, w: (X, y, w, w), ["block 17", "(X, y)"]),
    "sparse NaN": (
        lambda X, y, w: (scipy.sparse.csr_array(set_value(X, (2, 1), np.nan)), y, w),
        ["X of block 17", "NaN", "row 2;"],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("bad", BAD_BLOCKS)
def test_a_bad_block_is_named_and_the_last_fit_kept(make_table, bad, n_jobs):
    change, words = BAD_BLOCKS[bad]
    X, y, w, X_new = make_table(100)
    model = every_estimate_ensemble(n_jobs=n_jobs).fit(X, y)
    before = model.predict(X_new, return_std=True)
    with pytest.raises(ValueError, match=mentions(*words)):
        model.fit_blocks(spoiled(cut(X, y, w, size=5), 17, change))
    assert_array_equal(model.predict(X_new, return_std=True), before)
    assert len(model.leverage_) == 100
    assert_same_fit(model.fit_blocks(cut(X, y, w)), every_estimate_ensemble().fit(X, y, w), X_new)


def test_no_rows():
    for blocks in ([], [(np.empty((0, 3)), np.empty(0))] * 3, lambda: iter([])):
        with pytest.raises(ValueError, match=mentions("blocks", "no rows", "two rows")):
            every_estimate_ensemble().fit_blocks(blocks)


def test_one_row_is_not_enough(make_table):
    X, y, _, _ = make_table(60)
    with pytest.raises(ValueError, match="two"):
        every_estimate_ensemble(variance="auto").fit_blocks([(X[:1], y[:1])])


def test_weights_that_are_all_zero(make_table):
    X, y, _, _ = make_table(60)
    with pytest.raises(ValueError, match="weight"):
        every_estimate_ensemble().fit_blocks(cut(X, y, np.zeros(60)))


def test_least_squares_needs_more_rows_than_the_rank(make_table):
    X, y, _, _ = make_table(60)
    with pytest.raises(ValueError, match=mentions("alpha=0", "rows", "alpha='loo'")):
        every_estimate_ensemble(2, 8, alpha=0, variance="auto").fit_blocks(
            cut(X[:8], y[:8], size=3)
        )


# ---------------------------------------------------------------- what a stream shows


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_passes_are_printed(make_table, capsys, n_jobs):
    X, y, _, X_new = make_table(60)
    how = {"n_jobs": n_jobs, "noise": "heteroskedastic"}
    model = every_estimate_ensemble(verbose=1, **how).fit_blocks(cut(X, y))
    lines = [line.partition("] ")[2] for line in capsys.readouterr().out.splitlines()]
    first = lines.index("Fitting networks: sums of features")
    assert lines[0] == "Reading rows"
    assert lines[first + 1 : first + 3] == [
        "Choosing alpha: leave-one-out errors",
        "Residuals and standard errors",
    ]
    assert lines[-1] == "Uncertainty due to the input map"
    assert_same_fit(model, every_estimate_ensemble(**how).fit_blocks(cut(X, y)), X_new)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_share_of_rows_is_reported_once_their_number_is_known(make_table, n_jobs):
    X, y, *_ = make_table(60)
    recorder, shares = Recorder(), {}
    with reported_to(recorder):
        every_estimate_ensemble(n_jobs=n_jobs).fit_blocks(cut(X, y, size=20))
    for name, share in recorder.reports:
        shares.setdefault(name, []).append(share)
    assert shares["Reading rows"] == [None]
    assert shares["Fitting networks: sums of features"][0] is None
    assert_allclose(shares["Fitting networks: sums of features"][1:], [1 / 3, 2 / 3, 1])


def test_a_failed_fit_leaves_no_progress_behind(make_table, capsys):
    X, y, _, _ = make_table(100)
    model = every_estimate_ensemble(verbose=1)
    blocks = spoiled(cut(X, y, size=5), 17, lambda X, y: (X, y * np.nan))
    for _ in range(2):
        with pytest.raises(ValueError, match="block 17"):
            model.fit_blocks(blocks)
        assert "Reading rows" in capsys.readouterr().out
    model.set_params(verbose=0).fit_blocks(cut(X, y))
    assert capsys.readouterr().out == ""
